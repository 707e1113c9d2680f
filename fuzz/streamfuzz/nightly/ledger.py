"""What is known of one subject while a job runs: every outcome is entered here, and the result is read off."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import takewhile
from math import floor, log10

from ..case import Case, CaseFile
from ..finding import Finding
from ..grouping import alike, fold, follows, merged, rank
from ..result import Fixed, Point, Reported, Result, Share, extend
from ..spec import source_of
from .history import Past
from .settings import Subject
from .tasks import Outcome, Rerun


@dataclass(slots=True)
class Entry:
    """A finding, where its case is kept, and how often that failed when it was run again."""

    finding: Finding
    engine: str
    path: str | None = None
    failed: int = 0
    runs: int = 0


@dataclass(slots=True)
class Ledger:
    """The state of one subject.

    Attributes:
        entries: what was found, by signature.
        met: goals, rules and signatures met in this job, so that the next shard's news can be told.
        explained: how often each kind of sighting was explained.
        kept: cases of the corpus.
        base: signatures that the code before a change has too.
    """

    subject: Subject
    seed: int
    entries: dict[str, Entry] = field(default_factory=dict)
    fixed: dict[str, Fixed] = field(default_factory=dict)
    goals: Counter[str] = field(default_factory=Counter)
    in_all: tuple[str, ...] = ()
    met: set[str] = field(default_factory=set)
    explained: Counter[tuple[str, ...]] = field(default_factory=Counter)
    engines: dict[str, Share] = field(default_factory=dict)
    curve: list[Point] = field(default_factory=list)
    cases: int = 0
    seconds: float = 0.0
    inside: float = 0.0
    more: int = 0
    base: set[str] = field(default_factory=set)
    kept: list[Case] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """Seconds that one run is taken to need, rounded so that it can be read and written down."""
        cost = self.inside / self.cases if self.cases else FIRST_COST
        return round(cost, 1 - floor(log10(cost))) if cost > 0 else FIRST_COST

    def enter(self, outcome: Outcome, elapsed: float) -> tuple[list[str], list[Finding]]:
        """Enter what a shard brought; returns its news and the findings among them."""
        engine = outcome.shard.field.engine
        share = self.engines.setdefault(engine, Share())
        self.cases += outcome.cases
        self.seconds += outcome.seconds
        self.inside += outcome.inside
        self.more += outcome.more
        self.goals += outcome.goals
        self.explained += outcome.explained
        self.in_all = tuple(dict.fromkeys((*self.in_all, *outcome.in_all)))
        share.cases += outcome.cases
        share.seconds += outcome.seconds
        found = [finding for finding in outcome.findings if self._group(finding, engine)]
        share.findings += len(found)
        names = [*outcome.goals, *(finding.signature for finding in found)]
        news = [name for name in dict.fromkeys(names) if name not in self.met]
        self.met.update(news)
        rules = sum(1 for name in self.goals if name.startswith("rule: "))
        extend(self.curve, Point(elapsed, self.cases, len(self.goals) - rules, rules, len(self.entries)))
        return news, found

    def _group(self, finding: Finding, engine: str) -> bool:
        entry = self.entries.get(finding.signature)
        if entry is None:
            self.entries[finding.signature] = Entry(finding, engine)
            return True
        counted = merged(entry.finding, finding)
        entry.finding = replace(entry.finding, count=counted.count) if entry.path is not None else counted
        return False

    def rerun(self, path: str, file: CaseFile, done: Rerun) -> None:
        """Enter what a kept case does now."""
        self.kept.append(file.case)
        for finding in done.findings:
            self._group(finding, "kept cases")
            entry = self.entries[finding.signature]
            if entry.path is None or finding.case == file.case:
                entry.finding, entry.path = replace(finding, count=entry.finding.count), path
                entry.runs = entry.failed = 1
            self.met.add(finding.signature)
        found = file.found
        if found is not None and not done.findings:
            self.fixed.setdefault(found.signature, Fixed(found.signature, found.sentence, path))

    def worth_settling(self, finding: Finding) -> bool:
        """Whether a finding is no mere consequence of another one, so that time on it is well spent."""
        others = self._unexcused_first()
        earlier = takewhile(lambda other: other.signature != finding.signature, others)
        return not any(follows(finding, other) for other in others) and not any(alike(finding, e) for e in earlier)

    def _unexcused_first(self) -> list[Finding]:
        """The findings in order, but what the configuration excuses last: an excuse covers nothing else."""
        excused = {known.signature for known in self.subject.target.known}
        return sorted((entry.finding for entry in self.entries.values()), key=lambda f: f.signature in excused)

    def reached(self) -> set[str]:
        """The goals reached in this job."""
        return {name for name in self.goals if not name.startswith("rule: ")}

    def reported(self, finding: Finding, past: Past, today: date) -> Reported:
        """A finding as it is told: with what it is to those who saw the jobs before."""
        entry, signature = self.entries[finding.signature], finding.signature
        status = past.status(signature, self.subject.target.known, today)
        if status == "new" and signature in self.base:
            status = "again"
        return Reported(
            finding,
            entry.path,
            status,
            next((known for known in self.subject.target.known if known.signature == signature), None),
            min(past.first(signature) or today, today),
            max(past.last(signature) or today, today),
            entry.failed,
            entry.runs,
            entry.engine,
        )

    def result(self, past: Past, today: date, *, interrupted: bool, gone: bool) -> Result:
        """The result as of now.

        Args:
            past: what earlier jobs reported.
            today: the day of the job.
            interrupted: whether the job was stopped.
            gone: whether to tell known deviations that did not occur.
        """
        findings = fold(self._unexcused_first())
        missed = tuple(known for known in self.subject.target.known if known.signature not in self.entries)
        reached = self.reached() | past.reached
        return Result(
            self.subject.name,
            self.subject.target.provider,
            self.seed,
            self.cases,
            self.seconds,
            self.inside,
            sorted((self.reported(finding, past, today) for finding in findings), key=rank),
            [fixed for name, fixed in self.fixed.items() if name not in self.entries and not past.fixed(name)],
            missed if gone and not interrupted else (),
            self.goals,
            tuple(name for name in self.in_all if name not in reached),
            interrupted,
            self.more,
            self.curve,
            self.engines,
            source_of(self.subject.target.call),
        )


FIRST_COST = 1e-4
"""Seconds that a run is taken to need before any was made."""
