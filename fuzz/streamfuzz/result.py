"""What a search found: values that engines make, stores keep and reports read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal, TypeAlias

from .finding import Finding
from .spec import Known

Status: TypeAlias = Literal["new", "back", "again", "known", "expired"]
"""What a finding is to those who saw the searches before.

``new``: never reported; ``back``: it had been fixed; ``again``: reported before and never fixed; ``known``: excused
by the configuration until a date; ``expired``: that date is over.
"""


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding as it is reported: shrunk, with its file and what it is to those who saw the searches before.

    Attributes:
        finding: the finding, with the smallest case known.
        path: where its case file is: a path or a URL.
        status: whether it is news.
        known: the entry of the configuration that excuses it, or excused it until it expired.
        first, last: the days on which it was first and last seen.
        failed, runs: of so many runs of its case just before the report, how many failed; ``runs`` 0: not re-run.
        engine: which engine came across it first.
    """

    finding: Finding
    path: str | None = None
    status: Status = "new"
    known: Known | None = None
    first: date | None = None
    last: date | None = None
    failed: int = 0
    runs: int = 0
    engine: str = "sweep"

    @property
    def counts(self) -> bool:
        """Whether it makes the search fail: it is a failure, it is news, and it showed at least once more."""
        recurred = self.failed > 0 or not self.runs
        return self.status in ("new", "back", "expired") and self.finding.deviation.verdict == "fail" and recurred


@dataclass(frozen=True, slots=True)
class Fixed:
    """A kept case that failed once and passes now.

    Attributes:
        signature, sentence: of the finding that it was.
        path: of its case file.
    """

    signature: str
    sentence: str
    path: str


@dataclass(frozen=True, slots=True)
class Point:
    """How far a search was after so many ``seconds``: the discovery curve is made of these."""

    seconds: float
    cases: int
    goals: int
    rules: int
    findings: int


def extend(curve: list[Point], point: Point) -> None:
    """Add a point to a curve, unless nothing but a moment has passed since the last one."""
    if curve:
        last = curve[-1]
        same = (last.goals, last.rules, last.findings) == (point.goals, point.rules, point.findings)
        if same and point.seconds - last.seconds < max(1.0, last.seconds / 100):
            return
    curve.append(point)


@dataclass(slots=True)
class Share:
    """What one engine did for a target: judged cases, seconds of processor time, findings it came across first."""

    cases: int = 0
    seconds: float = 0.0
    findings: int = 0


@dataclass(slots=True)
class Result:
    """What the search of one target found.

    Attributes:
        target: name of the target; ``provider``: whose streams; ``seed``: of the drawn streams.
        cases: how many cases were judged, in ``seconds``, of which ``inside`` were spent in the target.
        findings: what was found, failures first.
        fixed: kept cases that pass now.
        gone: known deviations that did not occur.
        goals: how often each goal was reached; ``unreached``: the goals that never were.  Goals named ``rule: ID``
            count how often a stream broke that rule.
        interrupted: whether the user stopped the search.
        more: how many cases failed beside those that the findings were made of.
        curve: how the search went, in order of time.
        engines: what each engine did.
        source: where the target is defined, as ``path:line``, if that can be told.
    """

    target: str
    provider: str
    seed: int
    cases: int = 0
    seconds: float = 0.0
    inside: float = 0.0
    findings: list[Reported] = field(default_factory=list)
    fixed: list[Fixed] = field(default_factory=list)
    gone: tuple[Known, ...] = ()
    goals: Counter[str] = field(default_factory=Counter)
    unreached: tuple[str, ...] = ()
    interrupted: bool = False
    more: int = 0
    curve: list[Point] = field(default_factory=list)
    engines: dict[str, Share] = field(default_factory=dict)
    source: str | None = None

    @property
    def exit_code(self) -> int:
        """0 nothing found, 1 findings, 4 nothing was judged or a known deviation is gone."""
        if any(reported.counts for reported in self.findings):
            return 1
        return 4 if self.gone or not self.cases or not self.goals else 0


@dataclass(frozen=True, slots=True)
class Night:
    """A whole job: one result for each target.

    Attributes:
        mode: ``run`` for a single search, or the mode of ``streamfuzz nightly``: change, batch, replay.
        started: when, by the wall clock, with time zone.
        seconds: how long it took.
        results: one for each target, in the order of the configuration.
        workers: how many processes searched at once; ``lost``: how many of them died or had to be killed.
        troubles: what went wrong with the job itself, in sentences: a file that was skipped, a store that failed.
        vacuous: whether a goal that no search ever reached makes the job fail.
        failed: whether the job could not do what was asked (exit code 2): store or scheduler lost.
    """

    mode: str
    started: datetime
    seconds: float
    results: Sequence[Result]
    workers: int = 1
    lost: int = 0
    troubles: Sequence[str] = ()
    vacuous: bool = False
    failed: bool = False

    @property
    def interrupted(self) -> bool:
        """Whether someone stopped it before its time."""
        return any(result.interrupted for result in self.results)

    @property
    def _still_failing(self) -> bool:
        findings = [reported for result in self.results for reported in result.findings]
        return any(found.status == "again" and found.finding.deviation.verdict == "fail" for found in findings)

    @property
    def exit_code(self) -> int:
        """0 nothing new, or another code.

        1 findings (in mode ``replay`` also those that are no news), 2 the job could not do what was asked,
        4 nothing was judged, a goal was never met, or a known deviation is gone.
        """
        codes = {result.exit_code for result in self.results}
        if 1 in codes or (self.mode == "replay" and self._still_failing):
            return 1
        if self.failed:
            return 2
        unmet = self.vacuous and not self.interrupted and any(result.unreached for result in self.results)
        return 4 if unmet or not codes or 4 in codes else 0


@dataclass(frozen=True, slots=True)
class Trend:
    """A job in numbers, for what is told over time.

    Attributes:
        started: when, with time zone.
        cases: judged in all, in ``seconds``.
        new, again, known: findings by status; ``new`` also counts those that were back or no longer excused.
        fixed: kept cases that passed again.
    """

    started: datetime
    cases: int
    seconds: float
    new: int
    again: int
    known: int
    fixed: int

    @classmethod
    def of(cls, night: Night) -> Trend:
        """A job that has just ended."""
        statuses = [reported.status for result in night.results for reported in result.findings]
        cases = sum(result.cases for result in night.results)
        fixed = sum(len(result.fixed) for result in night.results)
        return trend(night.started, cases, night.seconds, statuses, fixed)


def trend(started: datetime, cases: int, seconds: float, statuses: Sequence[str], fixed: int) -> Trend:
    """A job in numbers, given the status of each finding."""
    again, known = statuses.count("again"), statuses.count("known")
    return Trend(started, cases, seconds, len(statuses) - again - known, again, known, fixed)
