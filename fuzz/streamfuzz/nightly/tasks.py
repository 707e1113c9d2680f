"""What a worker process is asked to do: plain functions of plain values, so that any process anywhere can do it.

A shard is a seed and a number of cases.  The same shard judges the same cases wherever it is run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from types import MappingProxyType
from typing import TypeAlias

from ..bench import Bench
from ..campaign import preflight
from ..case import Case, CaseFile
from ..config import Recipe
from ..engines import Batch, Budget, Sighting
from ..engines.goals import goals
from ..engines.menu import engine
from ..explain import explain
from ..finding import Finding
from ..grouping import merged
from ..replay import Status, replay_one
from ..shrink import shrink

EXPLAINING = 0.5
"""The share of a shard's time that the search for causes may take beside it."""

PATIENCE = 2.0
"""Seconds more for what is of a sort that was never explained."""

Sort: TypeAlias = tuple[str, ...]
"""What makes sightings alike before their causes are known: oracle, kind, rule, and how the case came about."""


@dataclass(frozen=True, slots=True)
class Field:
    """A place where time can be spent: one target, its streams with text of one family, one engine.

    Attributes:
        recipe: how to make the target.
        provider: whose streams.
        family: a name of ``streamfuzz_strategies.text.FAMILIES``; empty: all of them in turn.
        engine: the way to search.
    """

    recipe: Recipe
    provider: str
    family: str = ""
    engine: str = "sweep"


@dataclass(frozen=True, slots=True)
class Shard:
    """A piece of a search that can be done again anywhere.

    Attributes:
        field: where.
        seed: of the drawn streams.
        cases: how many to judge.
        cost: seconds that one run is taken to need, which decides how densely streams are cut.
        revisit: begin with the richest streams of earlier searches, from the example database; what is judged
            then depends on what it holds.
    """

    field: Field
    seed: int
    cases: int
    cost: float
    revisit: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a shard brought.

    Attributes:
        shard: which.
        cases: judged; fewer than asked if it was stopped or ran out of time.
        seconds: it took; ``inside``: of those, how many in the target.
        goals: how often each goal was reached.
        in_all: the names of all goals of the target.
        findings: one for each signature, with its causes, not shrunk.
        more: failures beside those.
        explained: how many sightings of each sort were explained.
        deadly: sightings of cases that take their process down, so they must be explained in another one.
    """

    shard: Shard
    cases: int
    seconds: float
    inside: float
    goals: Counter[str]
    in_all: tuple[str, ...]
    findings: tuple[Finding, ...]
    more: int
    explained: Counter[Sort] = field(default_factory=Counter)
    deadly: tuple[Sighting, ...] = ()


def check(recipe: Recipe, provider: str) -> None:
    """Call a target once on a plain stream, to tell a wrong description from a bug.

    Raises:
        UsageError: it cannot be called as it is described, or does not give what it is to give.
    """
    preflight(recipe.target(provider))


def search(
    shard: Shard,
    seconds: float,
    explained: Mapping[Sort, int] = MappingProxyType({}),
    examples: str | None = None,
    kept: Sequence[Case] = (),
    stopped: Callable[[], bool] = lambda: False,
    told: Callable[[Batch], None] = lambda batch: None,
) -> Outcome:
    """Do a shard.

    Args:
        shard: which.
        seconds: the longest that it may take, lest a slow target holds a worker for hours.
        explained: how many sightings of each sort were explained before; those seldom explained have their turn
            first.  Which cases are judged does not depend on it.
        examples: the example database, for shards that revisit.
        kept: cases that the coverage engine begins with, beside drawn streams.
        stopped: asked now and then whether to end early.
        told: is given each stretch of work once it is done.
    """
    started = perf_counter()
    place = shard.field
    target = place.recipe.target(place.provider)
    budget = Budget(
        seconds,
        shard.cases,
        shard.seed,
        database=examples if shard.revisit else None,
        family=place.family or None,
        cost=shard.cost,
        stopped=stopped,
    )
    done = Batch()
    with Bench(target) as bench:
        for batch in engine(place.engine, place.recipe, kept)(bench, budget):
            told(batch)
            add(done, batch)
        inside = bench.driver.seconds
        deadly = tuple(sighting for sighting in done.sightings if sighting.deviation.kills)
        safe = [sighting for sighting in done.sightings if not sighting.deviation.kills]
        seconds = EXPLAINING * (perf_counter() - started)
        findings, asked, more = causes(bench, safe, seconds, explained, stopped)
        in_all = goals(bench)
    more += done.repeats.total()
    seconds = perf_counter() - started
    return Outcome(shard, done.cases, seconds, inside, done.goals, in_all, findings, more, asked, deadly)


def add(whole: Batch, batch: Batch) -> None:
    """Add a stretch of work to all that was done before."""
    whole.cases += batch.cases
    whole.repeats += batch.repeats
    whole.goals += batch.goals
    whole.sightings += batch.sightings


def causes(
    bench: Bench,
    sightings: Sequence[Sighting],
    seconds: float,
    explained: Mapping[Sort, int],
    stopped: Callable[[], bool],
) -> tuple[tuple[Finding, ...], Counter[Sort], int]:
    """Explain sightings, those first whose sort was seldom explained before.

    Args:
        bench: with the target.
        sightings: what to explain.
        seconds: how long to explain what is of a sort that was explained before; what is not has twice that and
            :data:`PATIENCE` more.  Its sort is then first in the next shard that meets it.
        explained: how many sightings of each sort were explained before.
        stopped: asked before each whether to end.

    Returns:
        One finding for each signature, how many sightings of each sort were explained, and how many were left out
        for want of time.  Once stopped, the rest is returned without causes; so is a death that is met late.
    """
    groups: dict[str, Finding] = {}
    asked: Counter[Sort] = Counter()
    started, more = perf_counter(), 0
    for sighting in sorted(sightings, key=lambda sighting: explained.get(_sort(sighting), 0)):
        sort = _sort(sighting)
        known_sort = bool(explained.get(sort, 0) + asked[sort])
        if stopped() and any(other[:2] == sort[:2] for other in (*explained, *asked)):
            known_sort = True  # without its causes it cannot be told from what is known
        room = seconds if known_sort else 2 * seconds + PATIENCE
        late = perf_counter() - started > room
        if (known_sort and (late or stopped())) or (late and not sighting.deviation.kills):
            more += 1
            continue
        asked[sort] += 1
        if late or stopped():
            found = Finding(bench.target.name, sighting.case, sighting.deviation, (), sighting.how)
        else:
            found = explain(bench, sighting.case, sighting.deviation, sighting.how)
        known = groups.get(found.signature)
        groups[found.signature] = found if known is None else merged(known, found)
    return tuple(groups.values()), asked, more


def _sort(sighting: Sighting) -> Sort:
    deviation = sighting.deviation
    return deviation.oracle, deviation.kind, deviation.rule.id if deviation.rule else "", sighting.how


def settle(
    recipe: Recipe, finding: Finding, seconds: float, times: int, stopped: Callable[[], bool] = lambda: False
) -> tuple[Finding, int]:
    """Make a finding small and run it again and again: the smaller finding, and how often it failed in ``times``."""
    with Bench(recipe.target(finding.case.provider)) as bench:
        small = shrink(bench, finding, seconds, stopped)
        failed = sum(
            any(deviation.same_as(small.deviation) for deviation in bench.deviations(small.case)) for _ in range(times)
        )
    return replace(small, flaky=failed < times), failed


@dataclass(frozen=True, slots=True)
class Rerun:
    """What a kept case does now: its status and, if it fails, how."""

    name: str
    status: Status
    findings: tuple[Finding, ...]
    judge_differs: str


def rerun(recipe: Recipe, files: Sequence[tuple[str, CaseFile]]) -> list[Rerun]:
    """Run kept cases again; each comes with the name that it is told by."""
    done = []
    for name, file in files:
        target = recipe.target(file.case.provider)
        with Bench(target) as bench:
            done.append(rerun_one(bench, name, file))
    return done


def rerun_one(bench: Bench, name: str, file: CaseFile) -> Rerun:
    """Run one kept case again on a target that is on the bench."""
    replayed = replay_one(bench, name, file)
    return Rerun(name, replayed.status, replayed.findings, replayed.judge_differs)
