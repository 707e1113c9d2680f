"""What a worker process is asked to do: plain functions of plain values, so that any process anywhere can do it.

A shard is a seed and a number of cases.  The same shard judges the same cases wherever it is run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from ..bench import ALL_ORACLES, Bench
from ..case import CaseFile
from ..config import Recipe
from ..engines import Budget
from ..engines.sweep import goals, sweep
from ..explain import Finding, explain
from ..grouping import merged
from ..replay import Status, replay_one
from ..shrink import shrink

EXPLAINED = 60
"""How many sightings of a shard are explained; a target that fails everywhere is not asked why a thousand times."""


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
    """

    shard: Shard
    cases: int
    seconds: float
    inside: float
    goals: Counter[str]
    in_all: tuple[str, ...]
    findings: tuple[Finding, ...]
    more: int


def search(
    shard: Shard, seconds: float, oracles: Sequence[str] = ALL_ORACLES, stopped: Callable[[], bool] = lambda: False
) -> Outcome:
    """Do a shard.

    Args:
        shard: which.
        seconds: the longest that it may take, lest a slow target holds a worker for hours.
        oracles: the invariants to hold the target to.
        stopped: asked now and then whether to end early.
    """
    started = perf_counter()
    field = shard.field
    target = field.recipe.target(field.provider)
    budget = Budget(
        seconds,
        shard.cases,
        shard.seed,
        database=shard.revisit,
        family=field.family or None,
        cost=shard.cost,
        stopped=stopped,
    )
    cases, more, reached = 0, 0, Counter[str]()
    sightings = []
    with Bench(target, oracles) as bench:
        for batch in sweep(bench, budget):
            cases += batch.cases
            more += batch.repeats.total()
            reached += batch.goals
            sightings += batch.sightings
        inside = bench.driver.seconds
        groups: dict[str, Finding] = {}
        for number, sighting in enumerate(sightings):
            if number >= EXPLAINED or stopped():
                more += 1
                continue
            found = explain(bench, sighting.case, sighting.deviation, sighting.how)
            known = groups.get(found.signature)
            groups[found.signature] = found if known is None else merged(known, found)
        in_all = goals(bench)
    seconds = perf_counter() - started
    return Outcome(shard, cases, seconds, inside, reached, in_all, tuple(groups.values()), more)


def settle(recipe: Recipe, finding: Finding, seconds: float, times: int) -> tuple[Finding, int]:
    """Make a finding small and run it again and again: the smaller finding, and how often it failed in ``times``."""
    with Bench(recipe.target(finding.case.provider)) as bench:
        small = shrink(bench, finding, seconds)
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
            replayed = replay_one(bench, name, file)
        done.append(Rerun(name, replayed.status, replayed.findings, replayed.judge_differs))
    return done
