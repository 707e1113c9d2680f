"""Resident memory of a long search, minute by minute.

Run it with ``python -m tests.bench.memory [minutes]`` (Linux).
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

from streamfuzz.bench import Bench
from streamfuzz.demo import demo_repaired
from streamfuzz.engines import Budget
from streamfuzz.engines.sweep import sweep


def resident() -> float:
    """Resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main(minutes: float) -> None:
    """Sweep the repaired demo parser, which gives no findings, and print what is resident every half minute."""
    start, shown, cases = perf_counter(), 0.0, 0
    with Bench(demo_repaired()) as bench:
        for batch in sweep(bench, Budget(seconds=minutes * 60, seed=0)):
            cases += batch.cases
            assert not batch.sightings, batch.sightings
            if perf_counter() - start >= shown:
                print(f"{shown / 60:4.1f} min  {cases:>9} cases  {resident():6.1f} MiB", flush=True)
                shown += 30
    print(f"{minutes:4.1f} min  {cases:>9} cases  {resident():6.1f} MiB")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
