"""The engines side by side: what each finds of the zoo, and how soon.

``python -m tests.zoo.engines [--seconds 20] [name ...]`` prints a table in Markdown; ``docs/engines.md`` has one.
Times are processor seconds until the planted bug breaks the invariant that it should, with those of the processes
that an engine starts; of coverage, a second or so is the start of its process.
"""

from __future__ import annotations

import argparse
import statistics
from contextlib import closing
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time

from streamfuzz.bench import Bench
from streamfuzz.config import Recipe
from streamfuzz.engines import Budget, menu

from .hunt import PAIRS
from .named import name_of
from .pair import Pair


def soon(pair: Pair, engine: str, seconds: float, seed: int = 0) -> float | None:
    """Processor seconds until an engine finds a planted bug; ``None``: not within the time, by the clock."""
    recipe = Recipe(f"tests.zoo.named:{name_of(pair.name, 'faulty')}")
    started = spent()
    with Bench(recipe.target()) as bench, closing(menu.engine(engine, recipe)(bench, Budget(seconds, seed=seed))) as it:
        found = any(
            sighting.deviation.oracle == pair.oracle and sighting.deviation.verdict == "fail"
            for batch in it
            for sighting in batch.sightings
        )
    return spent() - started if found else None


def spent() -> float:
    """Processor seconds of this process, and of those that it has started and that have ended."""
    children = getrusage(RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def shown(found: float | None) -> str:
    """How a time stands in the table."""
    return "-" if found is None else f"{found:.1f}"


def main() -> None:
    """Print a row for each planted bug, then what each engine found in all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=20.0)
    asked = parser.parse_args()
    pairs = [pair for pair in PAIRS if not asked.names or pair.name in asked.names]
    engines = menu.installed()
    found: dict[str, list[float]] = {name: [] for name in engines}
    print("| planted bug | invariant |", " | ".join(engines), "|")
    print("|---|---|" + "---:|" * len(engines))
    for pair in pairs:
        # What coverage drives are bytes.
        able = [name for name in engines if name == "sweep" or pair.takes in ("bytes", "text")]
        times = {name: soon(pair, name, asked.seconds) for name in able}
        for name, time in times.items():
            found[name] += [time] if time is not None else []
        cells = [shown(times[name]) if name in times else "cannot" for name in engines]
        print(f"| {pair.name} | `{pair.oracle}` |", " | ".join(cells), "|", flush=True)
    for name, times_found in found.items():
        median = f", median {statistics.median(times_found):.1f} s" if times_found else ""
        print(f"\n{name}: {len(times_found)} of {len(pairs)} within {asked.seconds:.0f} s{median}")


if __name__ == "__main__":
    main()
