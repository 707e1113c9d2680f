"""The job: kept cases are run again, then time is given where news turn up, and what is found is settled and kept.

One loop in one thread hands plain tasks to an executor and enters what comes back.  It alone writes to the
corpus; a worker that dies takes nothing with it but the task that it was at.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from streamfuzz_strategies.text import FAMILIES

from ..case import CaseFile
from ..finding import Finding
from ..happenings import (
    Began,
    Ended,
    Mended,
    NewFinding,
    Progress,
    Searched,
    Settled,
    Subscriber,
    Trouble,
    WorkerLost,
)
from ..result import Night
from ..spec import UsageError
from ..stopping import Stop
from .base import failing_on
from .history import History
from .keeper import Keeper
from .ledger import Entry, Ledger
from .settings import Settings, Subject
from .sharing import Yield, choose
from .tasks import Field, Outcome, Rerun, Shard

if TYPE_CHECKING:
    from .workers import Workers

SHARD = 10.0
"""Seconds that a shard is meant to take: long beside what it costs to send, short beside what it may lose."""

SHORTEST = 4.0
"""Seconds of a shard in a job that has little time for its many targets."""

BEGUN_WITH = 200
"""Kept cases that the coverage engine begins with."""

LONGER = {"coverage": 20.0}
"""Seconds that a shard of some engines takes at least: they have a process to start, and learn as they go."""

MOST = 10**9
"""Cases of a shard: its time is what ends it.  It is told, and written down, with those that it came to judge."""

TIMES = 10
"""How often a finding is run again before it is reported."""

SHRINKING = 10.0
"""Seconds that the shrinking of one finding may take."""

AFTERWARDS = 0.1
"""The share of a job's time that is kept for settling what was found at its end."""

LEAST_AFTERWARDS, MOST_AFTERWARDS = 5.0, 120.0
"""Seconds that it is at least, even if the job takes longer for it, and at most; the rest is reported as it is."""

BATCH = 20
"""Kept cases that are run again in one task."""

TICK = 0.5
"""Seconds between two looks at the clock."""

GRACE = 10.0
"""Seconds that tasks under way have to hand in what they have, once the job was asked to stop."""


@dataclass(frozen=True, slots=True)
class _Task:
    """What to ask of a worker, and what to do with the answer."""

    submit: Callable[[], Future[Any]]
    enter: Callable[[Any], None]
    field: Field | None = None
    settling: bool = False


class Job:
    """One run of ``streamfuzz nightly`` in mode batch, change or replay.

    Args:
        settings: what to do.
        keeper: where what is found is kept.
        history: what earlier jobs reported.
        workers: who does the tasks.
        tell: is told what happens.
        stop: whether the user asked to stop.
    """

    def __init__(
        self,
        settings: Settings,
        keeper: Keeper,
        history: History,
        workers: Workers,
        tell: Subscriber,
        stop: Stop,
    ) -> None:
        self.settings = settings
        self.keeper = keeper
        self.history = history
        self.workers = workers
        self.tell = tell
        self.stop = stop
        self.started = datetime.now(UTC)
        self.today = self.started.astimezone().date()
        self.begun = monotonic()
        self.ledgers = {subject.name: Ledger(subject, settings.seed) for subject in settings.subjects}
        self.subjects = {field: one for one in settings.subjects for field in fields(one, settings.engines)}
        self.fields = {field: Yield() for field in self.subjects}
        self.shards: Counter[Field] = Counter()
        self.running: dict[Future[Any], _Task] = {}
        self.waiting: deque[_Task] = deque()
        self.searched = 0.0
        self.lost = 0
        self.troubles: list[str] = []
        self.failed = False

    @property
    def _elapsed(self) -> float:
        return monotonic() - self.begun

    def run(self) -> Night:
        """Do the job; what was found is kept as it is found, so an error on the way loses nothing of it.

        Raises:
            UsageError: a target cannot be made or called where the workers are.
        """
        settings = self.settings
        names = [subject.name for subject in settings.subjects]
        seconds = None if settings.mode == "replay" else settings.seconds
        self.tell(Began(settings.mode, self.started, names, seconds, self.workers.count))
        for subject in settings.subjects:
            submit = partial(self.workers.check, subject.recipe, subject.target.provider)
            self.waiting.append(_Task(submit, lambda answer: None))
        self._queue_kept_cases()
        self._loop()
        if settings.base is not None and not self.stop():
            self._ask_the_base(settings.base)
        self.keeper.record(self._night(finished=True))
        for message in self.keeper.news():
            self._trouble(message)
        night = self._night(finished=True)
        self.tell(Ended(night))
        return night

    # -- the loop ---------------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        asked: float | None = None
        while True:
            while len(self.running) < self.workers.count and (task := self._next()) is not None:
                self.running[task.submit()] = task
            if not self.running:
                return
            done, _ = wait(self.running, timeout=TICK, return_when=FIRST_COMPLETED)
            for future in done:
                self._enter(future)
            self._tick()
            if self.stop():
                if asked is None:
                    asked = monotonic()
                    self.workers.ask_to_stop()
                if monotonic() - asked > GRACE:
                    return

    def _enter(self, future: Future[Any]) -> None:
        task = self.running.pop(future)
        try:
            answer = future.result()
        except self.workers.lost as error:
            self._trouble(f"a task came to nothing: {error}")
            if self.workers.gone():
                self._trouble("the scheduler cannot be reached any more; the job ends with what it has")
                self.failed = True
                self.stop.ask()
            return
        task.enter(answer)

    def _next(self) -> _Task | None:
        if self.stop():
            return None
        searching = self._elapsed < self._search_ends
        if self.waiting:
            if not self.waiting[0].settling or not searching:
                return self.waiting.popleft() if self._elapsed < self._settling_ends else None
            if sum(task.settling for task in self.running.values()) < max(1, self.workers.count // 2):
                return self.waiting.popleft()
        return self._shard() if searching and self.settings.mode != "replay" else None

    @property
    def _search_ends(self) -> float:
        return self.settings.seconds - min(AFTERWARDS * self.settings.seconds, MOST_AFTERWARDS)

    @property
    def _settling_ends(self) -> float:
        """When what still waits to be settled is given up: some time after the last shard was done."""
        if self.settings.mode == "replay" or any(task.field is not None for task in self.running.values()):
            return inf
        room = min(MOST_AFTERWARDS, max(LEAST_AFTERWARDS, AFTERWARDS * self.settings.seconds))
        return max(self.searched, self._search_ends) + room

    # -- kept cases ---------------------------------------------------------------------------------------------------

    def _queue_kept_cases(self) -> None:
        for subject in self.settings.subjects:
            files = [
                (path, file)
                for path, file in self.keeper.kept(subject)
                if (file.case.provider, file.case.takes) == (subject.target.provider, subject.target.takes)
            ]
            for number in range(0, len(files), BATCH):
                part = files[number : number + BATCH]
                submit = partial(self.workers.rerun, subject.recipe, part)
                self.waiting.append(_Task(submit, partial(self._enter_reruns, subject, dict(part))))

    def _enter_reruns(
        self, subject: Subject, files: dict[str, CaseFile], answer: tuple[list[Rerun], list[str]]
    ) -> None:
        reruns, lost = answer
        self._count_lost(subject, lost)
        ledger = self.ledgers[subject.name]
        before = set(ledger.fixed)
        for done in reruns:
            ledger.rerun(done.name, files[done.name], done)
        past = self.history.of(subject.name)
        for signature in ledger.fixed.keys() - before:
            if not past.fixed(signature):
                self.tell(Mended(subject.name, ledger.fixed[signature]))

    # -- searching ----------------------------------------------------------------------------------------------------

    @property
    def _seconds_of_a_shard(self) -> float:
        each = self.settings.seconds * self.workers.count / (8 * len(self.settings.subjects))
        return min(SHARD, max(SHORTEST, each))

    def _shard(self) -> _Task:
        long = self._seconds_of_a_shard
        busy = Counter(task.field for task in self.running.values() if task.field is not None)
        field = choose(self.fields, busy, long, self.shards.total())
        subject = self.subjects[field]
        ledger = self.ledgers[subject.name]
        number = self.shards[field]
        self.shards[field] += 1
        seed = Random(f"{self.settings.seed}/{subject.name}/{field.family}/{field.engine}/{number}").getrandbits(31)
        revisit = number == 0 and not field.family and self.settings.mode == "batch"
        shard = Shard(field, seed, MOST, ledger.cost, revisit)
        most = min(max(long, LONGER.get(field.engine, 0.0)), self._search_ends - self._elapsed)
        kept = tuple(ledger.kept[-BEGUN_WITH:]) if field.engine == "coverage" else ()
        submit = partial(self.workers.search, shard, most, dict(ledger.explained), self.settings.examples, kept)
        return _Task(submit, partial(self._enter_outcome, subject), field)

    def _enter_outcome(self, subject: Subject, answer: tuple[Outcome, list[str]]) -> None:
        outcome, lost = answer
        self._count_lost(subject, lost)
        self.searched = self._elapsed
        ledger = self.ledgers[subject.name]
        news, found = ledger.enter(outcome, self._elapsed)
        field = outcome.shard.field
        self.fields[field].add(len(news), outcome.seconds)
        shard = msgspec.json.encode(replace(outcome.shard, cases=outcome.cases)).decode()
        self.tell(Searched(subject.name, field.engine, shard, outcome.cases, outcome.seconds, news))
        for finding in found:
            self._found(subject, ledger.entries[finding.signature])
        self.keeper.record_now_and_then(partial(self._night, finished=False))

    def _found(self, subject: Subject, entry: Entry) -> None:
        finding = entry.finding
        self.tell(NewFinding(finding))
        entry.path = self.keeper.keep(subject, finding)
        if self.ledgers[subject.name].worth_settling(finding):
            submit = partial(self._settle, subject, finding)
            self.waiting.append(_Task(submit, partial(self._enter_settled, subject, entry), settling=True))

    def _settle(self, subject: Subject, finding: Finding) -> Future[Any]:
        left = self.settings.seconds - self._elapsed
        return self.workers.settle(subject.recipe, finding, min(SHRINKING, max(1.0, left)), TIMES)

    def _enter_settled(self, subject: Subject, entry: Entry, answer: tuple[Finding, int, int, list[str]]) -> None:
        finding, entry.failed, entry.runs, lost = answer
        self._count_lost(subject, lost)
        entry.finding = replace(finding, count=entry.finding.count)
        entry.path = self.keeper.replace(subject, entry.path, finding)
        past = self.history.of(subject.name)
        self.tell(Settled(self.ledgers[subject.name].reported(entry.finding, past, self.today)))

    # -- what is told -------------------------------------------------------------------------------------------------

    def _count_lost(self, subject: Subject, lost: list[str]) -> None:
        self.lost += len(lost)
        for how in lost:
            self.tell(WorkerLost(subject.name, how))

    def _trouble(self, message: str) -> None:
        self.troubles.append(message)
        self.tell(Trouble(message))

    def _tick(self) -> None:
        left = max(0.0, self.settings.seconds - self._elapsed) if self.settings.mode != "replay" else None
        for message in self.keeper.news():
            self._trouble(message)
        busy = Counter(task.field.recipe.spec for task in self.running.values() if task.field is not None)
        for name, ledger in self.ledgers.items():
            searching = bool(busy[ledger.subject.recipe.spec])
            stage = "searching" if searching else "waiting"
            reached, in_all = len(ledger.reached() & set(ledger.in_all)), len(ledger.in_all)
            findings = len(ledger.entries)
            self.tell(Progress(name, ledger.cases, ledger.seconds, findings, reached, in_all, stage, left))

    def _night(self, *, finished: bool) -> Night:
        mode = self.settings.mode
        results = [
            ledger.result(
                self.history.of(name),
                self.today,
                interrupted=self.stop() and finished,
                gone=mode != "change" and finished,
            )
            for name, ledger in self.ledgers.items()
        ]
        return Night(
            mode,
            self.started,
            self._elapsed,
            results,
            self.workers.count,
            self.lost,
            tuple(self.troubles),
            vacuous=mode == "batch",
            failed=self.failed or self.keeper.failed,
        )

    def _ask_the_base(self, base: Path) -> None:
        """Run the case of each new finding on the code before the change: what fails there too is not its doing."""
        for subject in self.settings.subjects:
            ledger, past = self.ledgers[subject.name], self.history.of(subject.name)
            findings = ledger.result(past, self.today, interrupted=False, gone=False).findings
            kept = [self.keeper.keep(subject, reported.finding) for reported in findings if reported.counts]
            news = [path for path in kept if path is not None]
            if news:
                try:
                    ledger.base |= failing_on(base, subject.recipe.spec, news)
                except UsageError as error:
                    self._trouble(str(error))


def fields(subject: Subject, engines: Sequence[str]) -> list[Field]:
    """All fields of a subject: every engine, and then for the sweep each family of text beside all in turn.

    What coverage drives are bytes, so it has nothing to do with targets that take frames or events.
    """
    target = subject.target
    able = [name for name in engines if name == "sweep" or target.takes in ("bytes", "text")]
    kinds = [*(("", name) for name in able), *((family, "sweep") for family in FAMILIES if "sweep" in able)]
    return [Field(subject.recipe, target.provider, family, name) for family, name in kinds]
