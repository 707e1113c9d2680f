"""What earlier jobs reported, so that this one can say what is new, what is back, and since when.

Each job leaves one record: lines of JSON, the first about the job, then one for each target.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib.metadata import version

import msgspec

from streamfuzz_strategies.reply import Json
from streamfuzz_strategies.stream import MalformedJson, parse_json

from ..finding import Finding
from ..result import Night, Point, Reported, Result, Status, Trend, trend
from ..spec import Known, UsageError

FORMAT = 1
"""The version of the record that this version writes and reads."""

RULE = "rule: "
"""How the names of those goals begin that count how often a stream broke a rule."""


class Seen(msgspec.Struct, frozen=True):
    """A finding as it was reported: of ``runs`` before the report ``failed`` failed; ``count``: how often met."""

    sentence: str
    status: str
    verdict: str = "fail"
    case: str | None = None
    failed: int = 0
    runs: int = 0
    count: int = 1


class Entry(msgspec.Struct, frozen=True):
    """What a job brought for a target.

    Attributes:
        target: its name; ``provider``: whose streams.
        cases: judged, in ``seconds``.
        goals: names of those reached; ``unreached``: of those that no job ever reached.
        rules: ids of those that streams broke.
        findings: by signature.
        fixed: signatures of kept cases that passed again.
        curve: how the search went.
    """

    target: str
    provider: str
    cases: int = 0
    seconds: float = 0.0
    goals: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    findings: dict[str, Seen] = {}
    fixed: tuple[str, ...] = ()
    curve: tuple[Point, ...] = ()


class _Head(msgspec.Struct, frozen=True):
    """The first line of a record."""

    format: int
    id: str
    mode: str
    started: datetime
    finished: bool
    seconds: float
    streamfuzz: str


class Record(msgspec.Struct, frozen=True):
    """What a job left behind.

    Attributes:
        id: tells jobs apart; begins with when it started.
        mode: as in :class:`~..result.Night`.
        started: when, by the clock of its machine, in UTC.
        finished: whether it came to its report; else nobody was told what it found.
        seconds: how long it took.
        streamfuzz: the version that did it.
        entries: one for each target.
    """

    id: str
    mode: str
    started: datetime
    finished: bool
    seconds: float
    streamfuzz: str
    entries: tuple[Entry, ...]


def record(night: Night, id: str, *, finished: bool) -> Record:  # noqa: A002 - it is the name of the field
    """The record of a job, or of as much of it as is done."""
    entries = tuple(map(_entry, night.results))
    started = night.started.astimezone(UTC)
    return Record(id, night.mode, started, finished, night.seconds, version("streamfuzz"), entries)


def _entry(result: Result) -> Entry:
    return Entry(
        result.target,
        result.provider,
        result.cases,
        result.seconds,
        tuple(sorted(name for name in result.goals if not name.startswith(RULE))),
        result.unreached,
        tuple(sorted(name.removeprefix(RULE) for name in result.goals if name.startswith(RULE))),
        {reported.finding.signature: _seen(reported, reported.finding) for reported in result.findings},
        tuple(fixed.signature for fixed in result.fixed),
        tuple(result.curve),
    )


def _seen(reported: Reported, finding: Finding) -> Seen:
    case = reported.path.replace("\\", "/").rpartition("/")[2] if reported.path is not None else None
    verdict = finding.deviation.verdict
    return Seen(finding.sentence, reported.status, verdict, case, reported.failed, reported.runs, finding.count)


def dump(record: Record) -> bytes:
    """Write a record, as ASCII: what targets said may hold anything."""
    head: dict[str, Json] = {"format": FORMAT, **msgspec.to_builtins(record)}
    lines = [head, *head.pop("entries")]
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def load(content: bytes, name: str) -> Record:
    """Read a record; fields that this version does not know are passed over.

    Raises:
        UsageError: it is no record, or one of a later format; ``name`` is in the message.
    """
    try:
        first, *rest = (parse_json(line) for line in content.decode().split("\n") if line.strip())
        if isinstance(first, dict) and isinstance(first.get("format"), int) and first["format"] > FORMAT:
            raise UsageError(f"{name} has format {first['format']}, this version reads {FORMAT}: update streamfuzz")
        head = msgspec.convert(first, _Head)
        entries = msgspec.convert(rest, tuple[Entry, ...])
        # Without a time zone it was written by hand.
        started = head.started.astimezone(UTC) if head.started.tzinfo else head.started.replace(tzinfo=UTC)
    except (ValueError, OverflowError, MalformedJson) as error:
        raise UsageError(f"{name} is not the record of a job: {error}") from None
    return Record(head.id, head.mode, started, head.finished, head.seconds, head.streamfuzz, entries)


@dataclass(slots=True)
class _Trail:
    """What became of one signature over time."""

    first: date
    last: date
    reported: bool = False
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Past:
    """What earlier jobs know of one target.

    Attributes:
        reached: the goals that any of them reached.
    """

    trails: dict[str, _Trail] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)

    def first(self, signature: str) -> date | None:
        """The day, in UTC, on which a signature was seen first; ``None``: never."""
        trail = self.trails.get(signature)
        return trail.first if trail is not None else None

    def last(self, signature: str) -> date | None:
        """The day, in UTC, on which a signature was seen last; ``None``: never."""
        trail = self.trails.get(signature)
        return trail.last if trail is not None else None

    def fixed(self, signature: str) -> bool:
        """Whether the last finished job that knows of a signature says that it is fixed."""
        trail = self.trails.get(signature)
        return trail is not None and trail.fixed

    def status(self, signature: str, known: Iterable[Known] = (), today: date | None = None) -> Status:
        """What a signature that is seen now is to those who saw the earlier jobs.

        Args:
            signature: of the finding.
            known: the deviations that the configuration excuses.
            today: the day by which they expire; by default this day.
        """
        for excuse in known:
            if excuse.signature == signature:
                return "known" if excuse.expires >= (today or date.today()) else "expired"
        trail = self.trails.get(signature)
        if trail is None or not (trail.reported or trail.fixed):
            return "new"
        return "back" if trail.fixed else "again"

    def enter(self, entry: Entry, day: date, *, finished: bool) -> None:
        """Add what a later job brought."""
        self.reached.update(entry.goals)
        for signature in entry.findings:
            trail = self.trails.setdefault(signature, _Trail(day, day))
            trail.first, trail.last = min(trail.first, day), max(trail.last, day)
            if finished:
                trail.reported, trail.fixed = True, False
        if finished:
            for signature in set(entry.fixed) - set(entry.findings):
                self.trails.setdefault(signature, _Trail(day, day)).fixed = True


class History:
    """All earlier jobs.

    A record that claims to be from the future was written by a clock that is wrong; when it happened is not known,
    so whatever another record says of the same thing is taken to be later.

    Args:
        records: what they left, in any order.
        now: by which the future begins; by default this moment.
    """

    def __init__(self, records: Iterable[Record] = (), now: datetime | None = None) -> None:
        present = now or datetime.now(UTC)
        self.records: Sequence[Record] = sorted(records, key=lambda r: (r.started <= present, r.started, r.id))
        self._pasts: dict[str, Past] = {}
        for record in self.records:
            for entry in record.entries:
                self.of(entry.target).enter(entry, record.started.date(), finished=record.finished)

    def of(self, target: str) -> Past:
        """What is known of a target; nothing, if it was never searched."""
        return self._pasts.setdefault(target, Past())

    def trends(self) -> Iterator[Trend]:
        """The finished jobs that searched, in order of time."""
        for record in sorted(self.records, key=lambda record: record.started):
            if record.finished and any(entry.cases for entry in record.entries):
                statuses = [seen.status for entry in record.entries for seen in entry.findings.values()]
                cases = sum(entry.cases for entry in record.entries)
                fixed = sum(len(entry.fixed) for entry in record.entries)
                yield trend(record.started, cases, record.seconds, statuses, fixed)
