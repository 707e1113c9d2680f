"""Where a job keeps what it finds, so that nothing is lost whatever becomes of the store."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

from .. import corpus
from ..case import CaseFile, dump
from ..finding import Finding
from ..result import Night
from ..spec import UsageError
from .settings import Subject
from .store import Store

EVERY = 5.0
"""Seconds between two writings of the record of a job that goes on."""


class Keeper:
    """Keeps case files and the record of a job.

    Args:
        store: the corpus; what it holds is run again.
        findings: a folder for what is found, if the corpus is only read.
    """

    def __init__(self, store: Store, findings: Path | None = None) -> None:
        self.store = store
        self.findings = findings
        self.failed = False
        self.unsaved: list[CaseFile] = []
        self._news: list[str] = []
        self._complaints: set[str] = set()
        self._recorded = monotonic()

    def kept(self, subject: Subject) -> Iterator[tuple[str, CaseFile]]:
        """The kept cases of a subject: those of the corpus and of its own folders, each with where it is."""
        yield from self.store.cases(subject.folder)
        for folder in subject.corpora:
            for path in corpus.paths([folder]):
                try:
                    yield str(path), corpus.open_case(path)
                except UsageError as error:
                    self._news.append(f"skipped: {error}")

    def keep(self, subject: Subject, finding: Finding) -> str | None:
        """Write the case file of a finding; where it is, or ``None`` if it cannot be written anywhere."""
        file = corpus.as_file(finding)
        try:
            if self.findings is not None:
                return str(corpus.save(self.findings / subject.folder, file))
            return self.store.save(subject.folder, file)
        except UsageError as error:
            self._complain(f"{error}; until then case files go to {FALLBACK}")
        try:
            return str(corpus.save(FALLBACK / subject.folder, file))
        except UsageError:
            self.unsaved.append(file)
            return None

    def replace(self, subject: Subject, path: str | None, finding: Finding) -> str | None:
        """Write the smaller case of a finding in place of the one that was kept before."""
        made = self.keep(subject, finding)
        if made is None:
            return path
        if path is not None and path != made:
            try:
                self._drop(subject, path)
            except UsageError as error:
                self._complain(str(error))
        return made

    def _drop(self, subject: Subject, path: str) -> None:
        name = path.replace("\\", "/").rpartition("/")[2]
        if self.findings is not None:
            (self.findings / subject.folder / name).unlink(missing_ok=True)
        elif not path.startswith(str(FALLBACK)):
            self.store.remove(subject.folder, name)

    def record(self, night: Night, *, finished: bool = True) -> None:
        """Write down what the job has brought so far; a job that only reads the corpus leaves no record."""
        if self.findings is not None:
            return
        try:
            self.store.record(night, finished=finished)
        except UsageError as error:
            self._complain(str(error))

    def record_now_and_then(self, night: Callable[[], Night]) -> None:
        """Write the record of a job that goes on, if the last time is a while ago."""
        if monotonic() - self._recorded >= EVERY:
            self.record(night(), finished=False)
            self._recorded = monotonic()

    def _complain(self, message: str) -> None:
        self.failed = True
        if message not in self._complaints:  # a full disk says the same of every file
            self._complaints.add(message)
            self._news.append(message)

    def news(self) -> list[str]:
        """What went wrong since the last time."""
        news, self._news = self._news, []
        return news + self.store.skipped_news()

    def last_words(self) -> str:
        """The case files that could be written nowhere, as text, so that a person can save them."""
        return "".join(dump(file).decode() for file in self.unsaved)


FALLBACK = Path(tempfile.gettempdir()) / "streamfuzz-findings"
"""Where case files go if the corpus does not take them."""
