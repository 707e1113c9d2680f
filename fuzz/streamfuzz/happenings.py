"""What a search tells while it runs.  Reports subscribe; none of them knows another, and the search knows none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from .finding import Finding
from .result import Fixed, Night, Reported


@dataclass(frozen=True, slots=True)
class Began:
    """A job begins: these targets, for so many seconds (``None``: no limit), on so many workers."""

    mode: str
    started: datetime
    targets: Sequence[str]
    seconds: float | None = None
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the search of a target is.

    Attributes:
        target: its name.
        cases: judged until now, in ``seconds`` of searching.
        findings: distinct ones until now.
        goals: reached, of ``goals_in_all``.
        stage: what is being done, in a word or two.
        left: seconds until the whole job ends, if that is known.
    """

    target: str
    cases: int
    seconds: float
    findings: int
    goals: int
    goals_in_all: int
    stage: str = "searching"
    left: float | None = None


@dataclass(frozen=True, slots=True)
class Searched:
    """A shard is done: the JSON that reruns it, and what it brought.

    Attributes:
        target: its name; ``engine``: what searched.
        shard: all that is needed to judge the same cases again, as ``streamfuzz nightly --shard`` takes it.
        cases: judged, in ``seconds``.
        news: goals, rules and signatures that no shard before it had met.
    """

    target: str
    engine: str
    shard: str
    cases: int
    seconds: float
    news: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class NewFinding:
    """A finding that was not met before in this job, not yet shrunk."""

    finding: Finding


@dataclass(frozen=True, slots=True)
class Settled:
    """A finding was shrunk, re-run, and written: this is how it will be reported."""

    reported: Reported


@dataclass(frozen=True, slots=True)
class Mended:
    """A kept case passes now."""

    target: str
    fixed: Fixed


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A worker process died, or was killed because it hung or outgrew its memory; another one takes its place."""

    target: str
    how: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something is wrong with the job itself; it goes on."""

    message: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The job is over."""

    night: Night


Happening: TypeAlias = Began | Progress | Searched | NewFinding | Settled | Mended | WorkerLost | Trouble | Ended
Subscriber: TypeAlias = Callable[[Happening], None]
