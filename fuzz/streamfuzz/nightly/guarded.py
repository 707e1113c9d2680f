"""The tasks of a job, done so that a case that kills its process is a finding and costs nothing else.

A shard that lost its worker is done again with the deadly case left out.  Why a case kills is found out, and the
case made small, by running every variant of it in a worker of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import Any, TypeVar

from streamfuzz_strategies.reply import Json

from ..bench import ALL_ORACLES, Bench, read
from ..box import Deadly
from ..case import Case, CaseFile
from ..config import Recipe
from ..deviation import Deviation
from ..engines import Batch, Sighting
from ..engines.goals import goals
from ..finding import Finding
from ..grouping import merged
from ..oracles import unended
from ..shrink import shrink
from ..spec import Delta, Final, Release, Snapshot, UsageError
from ..trace import Trace
from . import lane as lanes
from . import tasks
from .lane import Lane, Limits, Lost, lane
from .tasks import EXPLAINING, Outcome, Rerun, Shard, Sort, causes

DEATHS = 3
"""How many workers a shard may cost; then what is known is returned."""

TRIES = 5
"""How often a case that killed a worker is run alone until it counts as one that does so only sometimes."""

DYING = 4.0
"""Seconds that a process may take to be gone, once a run has killed it, on a machine that is busy."""

LOST = "its worker was lost"
"""How a case came about whose death was seen but whose search was not finished."""


DEPTH = 50
"""How deep a value of a deviation is kept as it is."""


class LaneBench(Bench):
    """A bench whose target runs in a lane: of a case that kills, the death is the deviation."""

    def __init__(self, recipe: Recipe, provider: str, own: Lane, oracles: Sequence[str] = ALL_ORACLES) -> None:
        super().__init__(recipe.target(provider), oracles)
        self.recipe = recipe
        self.own = own
        # What is known to hang need not be waited for as long as what is not.
        self.patience = min(own.limits.patience, max(DYING, 2 * self.target.timeout))

    def __enter__(self) -> LaneBench:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def deviations(self, case: Case) -> list[Deviation]:
        """Run the experiment in the worker and return the invariants that the target breaks."""
        self.cases += 1
        avoid: list[Deadly] = []
        task = partial(self.own.run, _deviations, self.recipe, self.target.provider, self.oracles, case)
        while len(avoid) < DEATHS:
            try:
                found: list[Deviation] = task(avoid=avoid, patience=self.patience)
                return found
            except Lost as lost:
                avoid.append(Deadly(lost.case or case, lost.ending, lost.name, lost.how))
        return [unended(avoid[-1].trace, self.target)]

    def stopped(self) -> bool:
        """Whether running tasks were asked to stop."""
        return self.own.session.stopping

    def sighting(self, death: Deadly) -> Sighting:
        """A death as an engine would have told it."""
        worst = read(death.case).judge(death.case.end).worst if not death.case.probe else None
        rule = worst.rule if worst is not None else None
        return Sighting(death.case, unended(death.trace, self.target, rule), LOST)

    def shows(self, case: Case, deviation: Deviation) -> bool:
        """Whether the same deviation shows on a case, this time."""
        return any(found.same_as(deviation) for found in self.deviations(case))

    def recurs(self, sighting: Sighting) -> bool:
        """Whether a deadly case is deadly when it is run alone, at least once in a few tries."""
        return any(self.shows(sighting.case, sighting.deviation) for _ in range(TRIES))


def guarded_check(recipe: Recipe, provider: str, *, limits: Limits) -> None:
    """Make sure that a target can be called as it is described; one that dies of it is for the search to find.

    Raises:
        UsageError: it cannot be.
    """
    with suppress(Lost):
        lane(limits).run(tasks.check, recipe, provider)


def guarded_search(
    shard: Shard,
    seconds: float,
    explained: Mapping[Sort, int] = MappingProxyType({}),
    examples: str | None = None,
    kept: Sequence[Case] = (),
    *,
    limits: Limits,
) -> tuple[Outcome, list[str]]:
    """Do a shard, again if its worker is lost, without the case that it was lost to.

    Args:
        shard: which.
        seconds: the longest that each attempt may take.
        explained: how many sightings of each sort were explained before, as for :func:`.tasks.search`.
        examples: the example database, for shards that revisit.
        kept: cases that the coverage engine begins with.
        limits: of the worker.

    Returns:
        What the shard brought, with the deaths as findings; and how each lost worker was lost.  After
        :data:`DEATHS` lost workers, that is what the longest of the attempts brought.

    Raises:
        UsageError: the target cannot be made, or this process may start no others.
    """
    own = lane(limits)
    started = perf_counter()
    lost: list[str] = []
    avoid: list[Deadly] = []
    best, outcome = Batch(), None
    while outcome is None and len(lost) < DEATHS:
        if lost and own.session.stopping:
            break
        done = Batch()
        try:
            outcome = own.run(
                _search, shard, seconds, dict(explained), examples, kept, avoid=avoid, told=partial(tasks.add, done)
            )
        except Lost as loss:
            lost.append(loss.how)
            best = max(best, done, key=lambda batch: batch.cases)
            if loss.case is not None:
                avoid.append(Deadly(loss.case, loss.ending, loss.name, loss.how, however_cut=True))
    if outcome is not None and not outcome.deadly and not avoid:
        return outcome, lost
    bench = LaneBench(shard.field.recipe, shard.field.provider, own)
    if outcome is None or outcome.cases < best.cases:
        outcome = _unfinished(bench, shard, best, EXPLAINING * seconds, explained)
    outcome = _with_deaths(bench, outcome, avoid, EXPLAINING * seconds, explained)
    return replace(outcome, seconds=perf_counter() - started), lost


def _unfinished(bench: LaneBench, shard: Shard, done: Batch, seconds: float, explained: Mapping[Sort, int]) -> Outcome:
    """What a shard brought whose worker was lost, by what it had told until then."""
    deadly = tuple(sighting for sighting in done.sightings if sighting.deviation.kills)
    safe = [sighting for sighting in done.sightings if not sighting.deviation.kills]
    findings, asked, more = causes(bench, safe, seconds, explained, bench.stopped)
    more += done.repeats.total()
    return Outcome(shard, done.cases, 0.0, 0.0, done.goals, goals(bench), findings, more, asked, deadly)


def _with_deaths(
    bench: LaneBench, outcome: Outcome, avoid: Sequence[Deadly], seconds: float, explained: Mapping[Sort, int]
) -> Outcome:
    """The outcome with its deadly sightings explained, and those deaths that it did not come across again."""
    met = [sighting.case for sighting in outcome.deadly]
    deadly = [*outcome.deadly, *(bench.sighting(death) for death in avoid if death.case not in met)]
    sure = [sighting for sighting in deadly if bench.recurs(sighting)]
    once = [sighting for sighting in deadly if sighting not in sure]
    findings, asked, more = causes(bench, sure, seconds, explained, bench.stopped)
    groups = {finding.signature: finding for finding in outcome.findings}
    flaky = (Finding(bench.target.name, s.case, s.deviation, (), s.how, flaky=True) for s in once)
    for finding in (*findings, *flaky):
        known = groups.get(finding.signature)
        groups[finding.signature] = finding if known is None else merged(known, finding)
    return replace(
        outcome,
        findings=tuple(groups.values()),
        more=outcome.more + more,
        explained=outcome.explained + asked,
        deadly=(),
    )


def guarded_settle(
    recipe: Recipe, finding: Finding, seconds: float, times: int, *, limits: Limits
) -> tuple[Finding, int, int, list[str]]:
    """Make a finding small and run it again and again.

    Args:
        recipe: how to make the target.
        finding: which.
        seconds: how long to make it smaller.
        times: how often to run it again.
        limits: of the worker.

    Returns:
        The smaller finding; how often it failed, in how many runs (fewer than asked if each of them takes long);
        and how each worker was lost that was not lost to the finding itself.

    Raises:
        UsageError: as for :func:`guarded_search`.
    """
    own = lane(limits)
    ends = perf_counter() + seconds
    lost: list[str] = []
    if not finding.deviation.kills:
        try:
            small, failed = own.run(_settle, recipe, finding, seconds, times)
            return small, failed, times, lost
        except Lost as loss:
            lost.append(loss.how)
    bench = LaneBench(recipe, finding.case.provider, own)
    small = shrink(bench, finding, max(1.0, ends - perf_counter()), bench.stopped)
    failed = runs = 0
    while runs < times and not bench.stopped() and (runs < TRIES or perf_counter() < ends):
        failed += bench.shows(small.case, small.deviation)
        runs += 1
    return replace(small, flaky=failed < runs if runs else finding.flaky), failed, runs, lost


def guarded_rerun(
    recipe: Recipe, files: Sequence[tuple[str, CaseFile]], *, limits: Limits
) -> tuple[list[Rerun], list[str]]:
    """Run kept cases again; of one that kills its worker, the death is what it does.

    Args:
        recipe: how to make the target.
        files: the cases, each with the name that it is told by.
        limits: of the worker.

    Returns:
        What each case does, and how each lost worker was lost.

    Raises:
        UsageError: as for :func:`guarded_search`.
    """
    own = lane(limits)
    lost: list[str] = []
    try:
        return own.run(_rerun, recipe, files), lost
    except Lost as loss:
        lost.append(loss.how)
    done: list[Rerun] = []
    for name, file in files:
        bench = LaneBench(recipe, file.case.provider, own)
        done.append(tasks.rerun_one(bench, name, file))
    return done, lost


def guarded_trace(recipe: Recipe, case: Case, *, limits: Limits) -> Trace | None:
    """What a target does with a case; ``None`` for a probe, and where it kills the worker or cannot be made."""
    if case.probe:
        return None
    try:
        trace: Trace = lane(limits).run(_trace, recipe, case, patience=recipe.target(case.provider).timeout * 2)
        return trace
    except (Lost, UsageError, RuntimeError):
        return None


# -- in the worker ----------------------------------------------------------------------------------------------------


def _search(
    shard: Shard, seconds: float, explained: Mapping[Sort, int], examples: str | None, kept: Sequence[Case]
) -> Outcome:
    here = lanes.here
    assert here is not None

    def told(batch: Batch) -> None:
        here.tell(replace(batch, sightings=[_plain(sighting) for sighting in batch.sightings]))

    outcome = tasks.search(shard, seconds, explained, examples, kept, here.recorder.stopped, told)
    return replace(outcome, findings=tuple(map(_plain, outcome.findings)), deadly=tuple(map(_plain, outcome.deadly)))


def _settle(recipe: Recipe, finding: Finding, seconds: float, times: int) -> tuple[Finding, int]:
    here = lanes.here
    assert here is not None
    small, failed = tasks.settle(recipe, finding, seconds, times, here.recorder.stopped)
    return _plain(small), failed


def _rerun(recipe: Recipe, files: Sequence[tuple[str, CaseFile]]) -> list[Rerun]:
    done = tasks.rerun(recipe, files)
    return [replace(one, findings=tuple(map(_plain, one.findings))) for one in done]


def _deviations(recipe: Recipe, provider: str, oracles: Sequence[str], case: Case) -> list[Deviation]:
    with Bench(recipe.target(provider), oracles) as bench:
        return list(map(plain, bench.deviations(case)))


def _trace(recipe: Recipe, case: Case) -> Trace:
    with Bench(recipe.target(case.provider)) as bench:
        trace = bench.run(case).trace
    return replace(trace, items=tuple(map(_item, trace.items)), result=_json(trace.result))


def _item(item: Any) -> Any:
    return item if isinstance(item, (Delta, Snapshot, Release, Final)) else _json(item)


Told = TypeVar("Told", Finding, Sighting)


def _plain(told: Told) -> Told:
    return replace(told, deviation=plain(told.deviation))


def plain(deviation: Deviation) -> Deviation:
    """The deviation with nothing of the target's own classes in it, which other processes may not know."""
    return replace(deviation, expected=_json(deviation.expected), got=_json(deviation.got))


def _json(value: Any, depth: int = DEPTH) -> Json:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if depth and type(value) is dict:
        return {str(name): _json(member, depth - 1) for name, member in value.items()}
    if depth and type(value) in (list, tuple):
        return [_json(member, depth - 1) for member in value]
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - it is the target's, and may do anything
        return f"a {type(value).__name__}"
