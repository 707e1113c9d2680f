"""The corpus as the only store of the nightly job: a folder for each target, and what each job left behind.

The layout is ``TARGET/DIGEST.json`` for cases and ``nights/JOB.ndjson`` for records.  Every file is there whole
or not at all and is named by what it is, so any number of jobs may work on one corpus, and two merge as a union.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from .. import corpus
from ..case import CaseError, CaseFile, load
from ..config import folder_name
from ..corpus import Place
from ..result import Night
from ..spec import UsageError
from . import history
from .history import Record

NIGHTS = "nights"
"""The folder of records.  A target of that name may have it too: the names of files end differently."""

ABANDONED = 3600.0
"""Seconds after which a file that is being written is taken for one that a killed process left behind."""

DIGEST = re.compile(r"[0-9a-f]{16}\.json")
"""The name of a case file that streamfuzz gave it."""


class Store:
    """A corpus.

    Args:
        root: where it is.

    Methods raise :class:`UsageError` if it cannot be reached, or not be written to; the message says what to do.
    """

    def __init__(self, root: Place) -> None:
        self.root = root
        self._job: str | None = None
        self._skipped: dict[str, str] = {}
        self._told = 0

    @classmethod
    def open(cls, where: str | Place, *, write: bool = True) -> Store:
        """Open a corpus, given its path or URL; where nothing is, is an empty one.

        Args:
            where: its path or URL, as text or as :func:`~..corpus.place` made it.
            write: make sure that it can be written to, before hours of work depend on it.
        """
        store = cls(corpus.place(where) if isinstance(where, str) else where)
        if write:
            corpus.probe(store.root)
            store._sweep()
        return store

    def _sweep(self) -> None:
        """Delete what killed processes left behind; an object store has nothing of the kind."""
        if isinstance(self.root, Path):
            for path in self.root.rglob(f".*{corpus.PART}"):
                with suppress(OSError):
                    if time.time() - path.stat().st_mtime > ABANDONED:
                        path.unlink()

    def folder(self, target: str) -> Place:
        """Where the cases of a target are."""
        return self.root / folder_name(target)

    @property
    def skipped(self) -> tuple[str, ...]:
        """Why files that were met could not be read: broken ones, foreign ones, those of a later format."""
        return tuple(self._skipped.values())

    def skipped_news(self) -> list[str]:
        """Those reasons that were not asked for before."""
        news = list(self.skipped[self._told :])
        self._told += len(news)
        return news

    def targets(self) -> list[str]:
        """The names of the folders that hold cases."""
        return sorted({parts[0] for path in self._files(self.root) if len(parts := self._below(path)) > 1})

    def cases(self, target: str) -> Iterator[tuple[str, CaseFile]]:
        """The cases of a target, each with its path or URL, in order of name.

        What cannot be read is skipped and stays where it is; :attr:`skipped` says why.
        """
        for path, content in corpus.contents(self._files(self.folder(target))):
            if isinstance(content, bytes) and (file := self._load(path, content)) is not None:
                yield str(path), file
            elif isinstance(content, CaseError):
                self._skip(path, content)

    def save(self, target: str, file: CaseFile) -> str:
        """Keep a case; returns its path or URL."""
        return str(corpus.save(self.folder(target), file))

    def remove(self, target: str, name: str) -> None:
        """Delete a case, given the name of its file or its path; it does not matter if it is gone already."""
        folder = self.folder(target)
        corpus.remove(folder / name.removeprefix(str(folder)).lstrip("/\\"))

    def record(self, night: Night, *, finished: bool) -> None:
        """Write down what this job has brought until now, in place of what it wrote before."""
        if self._job is None:
            self._job = f"{night.started.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        self._write(NIGHTS, f"{self._job}.ndjson", history.dump(history.record(night, self._job, finished=finished)))

    def nights(self) -> list[Record]:
        """The records of all jobs, in order of name, which is that of time; others are skipped as cases are."""
        found = []
        for path, content in corpus.contents(self._records()):
            if isinstance(content, CaseError):
                self._skip(path, content)
            elif content is not None:
                try:
                    found.append(history.load(content, str(path)))
                except UsageError as error:
                    self._skip(path, error)
        return found

    def _files(self, folder: Place) -> list[Place]:
        return corpus.files(folder, ".json")

    def _records(self) -> list[Place]:
        return corpus.files(self.root / NIGHTS, ".ndjson")

    def _below(self, path: Place) -> tuple[str, ...]:
        """The names of the folders below the root in which a file is, and its own."""
        return tuple(path.parts[len(self.root.parts) :])

    def _load(self, path: Place, content: bytes) -> CaseFile | None:
        try:
            return load(content, str(path))
        except CaseError as error:
            self._skip(path, error)
            return None

    def _skip(self, path: Place, error: UsageError) -> None:
        self._skipped.setdefault(str(path), f"skipped: {error}")

    def _write(self, folder: str, name: str, content: bytes) -> None:
        with corpus.writing(self.root):
            corpus.write_whole(self.root / folder / name, content)


@dataclass(slots=True)
class Merged:
    """What a merge did: cases and records copied, and cases that were there already."""

    cases: int = 0
    nights: int = 0
    present: int = 0


def merge(source: Store, destination: Store) -> Merged:
    """Copy what a corpus lacks from another one: the same experiment is the same name, and is not copied again.

    Records are copied too, so that the history of both is known; one that went on after it was copied replaces
    its copy.  What cannot be read is skipped (``source.skipped`` says why), unless it is a case of a later format.
    """
    done = Merged()
    for target in source.targets():
        present = {path.name for path in destination._files(destination.folder(target))}
        paths = source._files(source.folder(target))
        done.present += sum(path.name in present for path in paths)
        for path, content in corpus.contents([path for path in paths if path.name not in present]):
            if isinstance(content, CaseError):
                source._skip(path, content)
            elif content is not None:
                name = _name(source, path, content)
                if name in present:
                    done.present += 1
                elif name is not None:
                    destination._write(target, name, content)
                    present.add(name)
                    done.cases += 1
    for stray in source._files(source.root):
        if len(source._below(stray)) == 1:
            source._skip(stray, UsageError(f"{stray} is in no target's folder: add it with `streamfuzz corpus add`"))
    done.nights = _merge_nights(source, destination)
    return done


def _name(source: Store, path: Place, content: bytes) -> str | None:
    file = source._load(path, content)
    if file is not None:
        return file.name
    return path.name if DIGEST.fullmatch(path.name) and b'"format"' in content else None


def _merge_nights(source: Store, destination: Store) -> int:
    finished = {record.id: record.finished for record in destination.nights()}
    copied = 0
    for record in source.nights():
        if record.id not in finished or (record.finished and not finished[record.id]):
            destination._write(NIGHTS, f"{record.id}.ndjson", history.dump(record))
            copied += 1
    return copied
