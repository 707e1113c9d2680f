"""Corpora: folders of case files, one experiment a file, named by content.

Two machines' corpora merge as a set union, and a file is there whole or not at all.  A corpus may also be an
object store, named by URL; there a whole file is one request.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from streamfuzz_strategies import cuts
from streamfuzz_strategies.judge import Judgement
from streamfuzz_strategies.reply import view

from .bench import read
from .case import Case, CaseError, CaseFile, Expectation, Found, dump, load
from .finding import Finding
from .spec import UsageError

if TYPE_CHECKING:
    from upath import UPath

Place: TypeAlias = "Path | UPath"
"""A file or folder: on this machine, or in an object store."""

P = TypeVar("P", bound="Place")

PART = ".part"
"""How the names of files end that are being written; readers ignore them."""

MARK = ".streamfuzz"
"""An object that is written to see whether a store can be written to; it is always the same one."""

AT_ONCE = 100
"""How many files are asked of an object store at a time."""

S3 = ("s3", "s3a")
"""The schemes of URLs that mean a bucket of S3 or of what speaks like it."""

PATIENCE = {"connect_timeout": 4, "read_timeout": 10, "retries": {"total_max_attempts": 2}}
"""Seconds and tries for one request to S3: who has the address wrong wants to know now, not in minutes."""

ANSWER = 20
"""Seconds that writing one file to an object store may take; S3's client waits for leave to send with no limit."""


def place(text: str) -> Place:
    """The file or folder that a path or a URL means.

    ``s3://bucket/prefix``, ``memory://name`` and the other object stores that fsspec knows need the extra
    ``remote``; ``file:///folder`` is a folder on this machine.

    Raises:
        UsageError: it is a URL of a kind that is not known, or what is needed for it is not installed.
    """
    scheme, separator, _ = text.partition("://")
    if not separator:
        return Path(text)
    if scheme == "file":
        return Path(url2pathname(urlsplit(text).path))
    try:
        from upath import UPath

        made: UPath = UPath(text, **_options(scheme))
        store: Any = made.fs
    except ImportError as error:
        raise UsageError(
            f"cannot use {text}: {error}; install what it needs, for S3: pip install 'streamfuzz[remote]'"
        ) from None
    except ValueError as error:
        raise UsageError(f"cannot use {text}: {error}") from None
    if not made.path.strip("/"):
        raise UsageError(f"{text} names no bucket: write {scheme}://bucket/folder")
    if scheme in S3:
        store.retries = 1  # of its own, around those of the client
    return made


def _options(scheme: str) -> dict[str, Any]:
    """What a store is opened with; for S3 the user's own configuration of fsspec wins."""
    options: dict[str, Any] = {"use_listings_cache": False}  # others write there too
    if scheme in S3:
        from fsspec.config import conf  # type: ignore[import-untyped]

        options |= {"config_kwargs": PATIENCE, **conf.get("s3", {})}
    return options


@contextmanager
def _asking(doing: str, where: Place) -> Iterator[None]:
    """Whatever an object store or its client has to complain about is told with the store's name."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001 - each store's client has errors of its own
        silent = "it does not answer" if isinstance(error, TimeoutError) else type(error).__name__
        reason = " ".join(str(error).split()) or silent
        raise UsageError(
            f"cannot {doing} {where}: {reason}; check the address, the credentials, and that the bucket exists"
        ) from None


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


def save(folder: P, file: CaseFile) -> P:
    """Write a case file into a folder, whole or not at all, and return its path.

    Raises:
        UsageError: the folder cannot be written to.
    """
    path = folder / file.name
    with writing(folder):
        write_whole(path, dump(file))
    return cast(P, path)


def probe(folder: Place) -> None:
    """Make sure that a folder can be written to, before hours of work depend on it.

    Raises:
        UsageError: it cannot.
    """
    with writing(folder):
        if not isinstance(folder, Path):
            write_whole(folder / MARK, b"This folder is a corpus of streamfuzz.\n")
            return
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix="."):
            pass


@contextmanager
def writing(folder: Place) -> Iterator[None]:
    """What goes wrong while files are written below a folder is told with its name, as a :class:`UsageError`."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror or error}; choose another folder") from None


def write_whole(path: Place, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new one, never a part.

    Folders above it are made.

    Raises:
        OSError: the file cannot be written.
        UsageError: the object store cannot be written to.
    """
    if not isinstance(path, Path):
        with _asking("write to", path.parent):
            path.fs.pipe_file(path.path, content, **({"timeout": ANSWER} if path.fs.async_impl else {}))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.parent / f".{secrets.token_hex(8)}{PART}"
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def remove(path: Place) -> None:
    """Delete a file; it does not matter if someone else was faster.

    Raises:
        UsageError: it cannot be deleted.
    """
    if not isinstance(path, Path):
        with _asking("delete", path), suppress(FileNotFoundError):
            path.fs.rm_file(path.path)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot delete {path}: {error.strerror or error}") from None


def read_bytes(path: Place) -> bytes:
    """The content of a file.

    Raises:
        CaseError: there is no such file, or it cannot be read.
        UsageError: the object store cannot be reached.
    """
    ((_, content),) = contents([path])
    if content is None:
        raise CaseError(f"cannot read {path}: No such file or directory")
    if isinstance(content, CaseError):
        raise content
    return content


def contents(paths: Sequence[P]) -> Iterator[tuple[P, bytes | CaseError | None]]:
    """The contents of many files, in their order: bytes, why it cannot be read, or ``None`` where there is no file.

    Raises:
        UsageError: the object store cannot be reached.
    """
    rest = iter(paths)
    while batch := tuple(islice(rest, AT_ONCE)):
        first = batch[0]
        if isinstance(first, Path):
            yield from ((path, _local(path)) for path in batch)
        else:
            yield from zip(batch, _remote(cast("Sequence[UPath]", batch)), strict=True)


def _local(path: Place) -> bytes | CaseError | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        return CaseError(f"cannot read {path}: {error.strerror or error}")


def _remote(paths: Sequence[UPath]) -> Iterator[bytes | None]:
    with _asking("read", paths[0].parent):
        for content in paths[0].fs.cat_ranges([path.path for path in paths], None, None, on_error="return"):
            if isinstance(content, FileNotFoundError):
                yield None
            elif isinstance(content, Exception):
                raise content
            else:
                yield content


def open_case(path: Place) -> CaseFile:
    """Read one case file.

    Raises:
        CaseError: it cannot be read or is no case file.
        UsageError: the object store cannot be reached.
    """
    return load(read_bytes(path), str(path))


def open_any(path: Place, provider: str | None = None) -> tuple[CaseFile, ...]:
    """The cases in a file: a case file's one, or a recorded stream's two, whole and byte by byte.

    A file whose name does not end in ``.json`` is a recorded stream: its bytes as they came.

    Raises:
        CaseError: it cannot be read or is no case file.
        UsageError: it is a recorded stream, and ``provider`` does not say whose.
    """
    if path.suffix == ".json" or (isinstance(path, Path) and path.is_dir()):
        return (open_case(path),)
    if provider is None:
        raise UsageError(f"{path} is no case file; if it is a recorded stream, say whose with --provider")
    data = read_bytes(path)
    fragmentations = (cuts.WHOLE, cuts.every_byte(len(data)))
    return tuple(CaseFile(Case(provider, cuts.chunks(data, at)), f"recorded in {path.name}") for at in fragmentations)


def paths(places: Sequence[P]) -> Iterator[P]:
    """The case files in files and folders (searched to any depth), in order of name.

    Raises:
        UsageError: a place does not exist, or the object store cannot be reached.
    """
    for where in places:
        if isinstance(where, Path) and not where.is_dir():
            if not where.exists():
                raise UsageError(f"no such file or folder: {where}")
            yield where
        else:
            yield from files(where, ".json")


def files(folder: P, ending: str) -> list[P]:
    """The files below a folder (to any depth) whose names end so, in order of name; none if there is no folder.

    Raises:
        UsageError: the object store cannot be reached.
    """
    found: Iterator[Place]
    if isinstance(folder, Path):
        found = folder.rglob(f"*{ending}")
    else:
        with _asking("read", folder):
            names = [name for name in folder.fs.find(folder.path) if name.endswith(ending)]
        start = len(folder.path.rstrip("/")) + 1
        found = (folder / name[start:] if name[start:] else folder for name in names)
    return cast("list[P]", sorted(path for path in found if not path.name.startswith(".")))
