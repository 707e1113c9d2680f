"""The coverage engine against raw Atheris and the sweep, on a mistake that four comparisons hide.

Run it with ``python -m tests.bench.coverage [seconds] [rounds]``.  Raw Atheris gets bytes as they are, calls the same
oracles, begins with the same streams, and watches the same package; it has neither our mutations, nor cuts, nor
dictionary.  Each search ends with the first failure, or after so many seconds.  ``python -m tests.bench.coverage
sweep SECONDS`` has the sweep try as long.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic

from streamfuzz.bench import Bench
from streamfuzz.case import Case
from streamfuzz.config import Recipe
from streamfuzz.engines import Budget
from streamfuzz.engines.coverage import Setup, coverage, seeds
from streamfuzz.engines.sweep import sweep
from streamfuzz_strategies.providers import get

DEEP = Recipe("tests.bench.deep:DEEP")


def ours(seconds: float, seed: int) -> tuple[float, float | None]:
    """The cases that the engine judged in a second once it ran, and the seconds in all until the first failure."""
    with tempfile.TemporaryDirectory() as folder, Bench(DEEP.target("sse")) as bench:
        started, running, cases = monotonic(), 0.0, 0
        for batch in coverage(bench, Budget(seconds=seconds, seed=seed), Setup(DEEP, folder=Path(folder))):
            running = running or monotonic()
            cases += batch.cases
            if any(sighting.deviation.verdict == "fail" for sighting in batch.sightings):
                return cases / (monotonic() - running), monotonic() - started
        return cases / (monotonic() - running), None


def raw(seconds: float, seed: int) -> tuple[float, float | None]:
    """The same of raw Atheris, in a process of its own, for it never returns."""
    with tempfile.TemporaryDirectory() as folder:
        for number, given in enumerate(seeds(get("sse"), Budget(seed=seed))):
            (Path(folder) / str(number)).write_bytes(given)
        line = [sys.executable, "-m", "tests.bench.coverage", "raw", str(seed + 1), str(seconds), folder]
        started = monotonic()
        said = subprocess.run(line, capture_output=True, text=True, check=False).stdout
        spent = monotonic() - started
    found, rate = said.split()[-2:]
    return float(rate), spent if found == "found" else None


def naive(seed: str, seconds: str, folder: str) -> None:
    """What one writes first with Atheris: bytes in, oracles called, no more."""
    import atheris

    with atheris.instrument_imports(include=["tests"]):
        target = DEEP.target("sse")
    started, running, cases = monotonic(), 0.0, 0
    with Bench(target) as bench:

        def one(data: bytes) -> None:
            nonlocal running, cases
            running = running or monotonic()
            cases += 1
            failed = any(deviation.verdict == "fail" for deviation in bench.deviations(Case("sse", (data,))))
            if failed or monotonic() - started > float(seconds):
                print("found" if failed else "nothing", cases / (monotonic() - running), flush=True)
                os._exit(0)

        atheris.Setup(["raw", f"-seed={seed}", "-timeout=0", "-verbosity=0", folder], one)
        atheris.Fuzz()


def by_sweep(seconds: float) -> None:
    """Print what the sweep finds in so many seconds."""
    with Bench(DEEP.target("sse")) as bench:
        started, cases = monotonic(), 0
        for batch in sweep(bench, Budget(seconds=seconds, seed=0)):
            cases += batch.cases
            if any(sighting.deviation.verdict == "fail" for sighting in batch.sightings):
                print(f"sweep: found after {monotonic() - started:.0f} s and {cases} cases")
                return
        print(f"sweep: nothing in {seconds:.0f} s and {cases} cases")


def main(seconds: float, rounds: int) -> None:
    """Print a line for each of the two, from a few rounds in which they take turns."""
    done = {"streamfuzz": [], "raw Atheris": []}
    for seed in range(rounds):
        done["streamfuzz"].append(ours(seconds, seed))
        done["raw Atheris"].append(raw(seconds, seed))
    for name, results in done.items():
        rate = statistics.median(rate for rate, _ in results)
        found = sorted(first for _, first in results if first is not None)
        median = f", median {statistics.median(found):.0f} s ({found[0]:.0f} to {found[-1]:.0f})" if found else ""
        print(f"{name:<12} {rate:>6.0f} cases/s, found in {len(found)} of {rounds} rounds of {seconds:.0f} s{median}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["raw", seed, seconds, folder]:
            naive(seed, seconds, folder)
        case ["sweep", seconds]:
            by_sweep(float(seconds))
        case [*given]:
            main(*(float(given[0]) if given else 60.0, int(given[1]) if given[1:] else 5))
