"""Corpora: folders of case files, one experiment a file, named by content.

Two machines' corpora merge as a set union, and a file is there whole or not at all.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from streamfuzz_strategies import cuts
from streamfuzz_strategies.judge import Judgement
from streamfuzz_strategies.reply import view

from .bench import read
from .case import Case, CaseError, CaseFile, Expectation, Found, dump, load
from .explain import Finding
from .spec import UsageError


def expectation(case: Case) -> Expectation:
    """What the judge says of a case today: ``complete``, ``refuse`` or ``either``, why, and the reply."""
    judgement = read(case).judge(case.end)
    return Expectation(_outcome(judgement), *_reason(judgement))


def _outcome(judgement: Judgement) -> str:
    return {"none": "complete", "may": "either", "must": "refuse"}[judgement.level]


def _reason(judgement: Judgement) -> tuple[str | None, object]:
    worst = judgement.worst
    reply = view(judgement.accepted[0]) if judgement.accepted else None
    return (worst.rule.id if worst is not None else None), reply


def as_file(finding: Finding) -> CaseFile:
    """The case file of a finding."""
    found = Found(finding.target, finding.deviation.oracle, finding.signature, finding.sentence, finding.how)
    return CaseFile(finding.case, finding.sentence, expectation(finding.case), found)


def save(folder: Path, file: CaseFile) -> Path:
    """Write a case file into a folder, whole or not at all, and return its path.

    Raises:
        UsageError: the folder cannot be written to.
    """
    path = folder / file.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, dump(file))
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror or error}; choose another folder") from None
    return path


def probe(folder: Path) -> None:
    """Make sure that a folder can be written to, before hours of work depend on it.

    Raises:
        UsageError: it cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix="."):
            pass
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror or error}; choose another folder") from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new one, never a part.

    Raises:
        OSError: the file cannot be written.
    """
    handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def open_case(path: Path) -> CaseFile:
    """Read one case file.

    Raises:
        CaseError: it cannot be read or is no case file.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CaseError(f"cannot read {path}: {error.strerror or error}") from None
    return load(content, str(path))


def open_any(path: Path, provider: str | None = None) -> tuple[CaseFile, ...]:
    """The cases in a file: a case file's one, or a recorded stream's two, whole and byte by byte.

    A file whose name does not end in ``.json`` is a recorded stream: its bytes as they came.

    Raises:
        CaseError: it cannot be read or is no case file.
        UsageError: it is a recorded stream, and ``provider`` does not say whose.
    """
    if path.suffix == ".json" or path.is_dir():
        return (open_case(path),)
    if provider is None:
        raise UsageError(f"{path} is no case file; if it is a recorded stream, say whose with --provider")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CaseError(f"cannot read {path}: {error.strerror or error}") from None
    fragmentations = (cuts.WHOLE, cuts.every_byte(len(data)))
    return tuple(CaseFile(Case(provider, cuts.chunks(data, at)), f"recorded in {path.name}") for at in fragmentations)


def paths(places: Sequence[Path]) -> Iterator[Path]:
    """The case files in files and folders (searched to any depth), in order of name.

    Raises:
        UsageError: a place does not exist.
    """
    for place in places:
        if place.is_dir():
            yield from sorted(path for path in place.rglob("*.json") if not path.name.startswith("."))
        elif place.exists():
            yield place
        else:
            raise UsageError(f"no such file or folder: {place}")
