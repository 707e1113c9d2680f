"""Hunt the zoo: how soon each planted bug is found, and whether its repaired twin stays clean.

``python -m tests.zoo.hunt [name ...]`` prints a table; the tests use the functions.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass
from importlib import import_module
from time import process_time

from streamfuzz.bench import Bench
from streamfuzz.engines import Budget, Sighting
from streamfuzz.engines.sweep import sweep

from .pair import Pair

MODULES = ("decoding", "fields", "ends", "tools", "terminals", "shapes", "partial_json")
PAIRS: tuple[Pair, ...] = tuple(pair for name in MODULES for pair in import_module(f".{name}", __package__).PAIRS)


@dataclass(frozen=True)
class Hunt:
    """What came of hunting one faulty parser."""

    pair: Pair
    cases: int
    seconds: float
    found: Sighting | None
    others: frozenset[str]


def hunt(pair: Pair, seconds: float = 30.0, seed: int = 0) -> Hunt:
    """Search until the planted bug breaks the invariant that it should, or the time is up (processor seconds)."""
    others: set[str] = set()
    start, cases = process_time(), 0
    with Bench(pair.target("faulty")) as bench:
        for batch in sweep(bench, Budget(seconds=None, cases=10**9, seed=seed)):
            cases += batch.cases
            for sighting in batch.sightings:
                if sighting.deviation.oracle == pair.oracle and sighting.deviation.verdict == "fail":
                    return Hunt(pair, cases, process_time() - start, sighting, frozenset(others))
                others.add(sighting.deviation.oracle)
            if process_time() - start > seconds:
                break
    return Hunt(pair, cases, process_time() - start, None, frozenset(others))


def false_alarms(pair: Pair, cases: int, seed: int = 0) -> list[Sighting]:
    """Everything that is reported on the repaired twin: each is a false alarm."""
    with Bench(pair.target("repaired")) as bench:
        batches = sweep(bench, Budget(seconds=None, cases=cases, seed=seed))
        return [s for batch in batches for s in batch.sightings if s.deviation.verdict == "fail"]


def main(names: list[str]) -> int:
    """Print how soon each bug is found and what is reported on the twins; 1 if one is missed or a twin accused."""
    times, wrong = [], 0
    for pair in PAIRS:
        if names and pair.name not in names:
            continue
        hunted = hunt(pair)
        alarms = false_alarms(pair, 5_000)
        found = "found" if hunted.found else "MISSED"
        wrong += hunted.found is None or bool(alarms)
        if hunted.found:
            times.append(hunted.seconds)
        print(
            f"{pair.name:<34} {pair.oracle:<16} {found:<6} {hunted.seconds:6.2f} s {hunted.cases:>7} cases  "
            f"{f'{len(alarms)} FALSE ALARMS' if alarms else 'twin clean'}  {', '.join(sorted(hunted.others))}",
            flush=True,
        )
        for alarm in alarms[:3] if names else alarms[:1]:
            print(f"    {alarm.deviation} {alarm.how}", *(alarm.case.chunks[:6] if names else ()), flush=True)
    print(f"{len(times)} found, median {statistics.median(times):.2f} s, slowest {max(times):.2f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
