"""The nightly job as a whole: how much faster two workers are than one, and whether memory stays flat.

``python -m tests.bench.nights speed [rounds]`` searches the repaired demo and our own reading for half a minute, with
one worker and with two in turn, and prints the judged cases a second of each round and the ratios.

``python -m tests.bench.nights memory MINUTES [streamfuzz nightly's arguments]`` runs a batch and prints the resident
memory of the job and of its workers, in MiB, each half minute.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SECONDS = 30
TARGETS = ("demo-repaired", "reference-openai-chat")
COMMAND = [sys.executable, "-m", "streamfuzz", "nightly", "batch"]


def rate(workers: int, seed: int) -> float:
    """Judged cases a second of a night with so many workers."""
    chosen = [word for name in TARGETS for word in ("--target", name)]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "streamfuzz.toml").write_text('[nightly]\nengines = ["sweep"]\n')
        line = [*COMMAND, *chosen, "--time", f"{SECONDS}s", "--workers", str(workers), "--seed", str(seed), "--json"]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
        night = json.loads(done.stdout)
    return sum(told["cases"] for told in night["targets"]) / night["seconds"]


def speed(rounds: int) -> None:
    """Print the ratio of two workers to one, round by round."""
    ratios = []
    for number in range(rounds):
        one, two = rate(1, number), rate(2, number)
        ratios.append(two / one)
        print(f"1 worker {one:8,.0f}/s   2 workers {two:8,.0f}/s   {two / one:.2f} times", flush=True)
    print(f"median {statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f})")


def resident(pid: int) -> float:
    """Resident memory of a process, in MiB; 0 if it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def descendants(pid: int) -> Iterator[int]:
    """All processes that a process has started, and theirs."""
    try:
        # Each thread has children of its own.
        children = [word for task in Path(f"/proc/{pid}/task").glob("*/children") for word in task.read_text().split()]
    except OSError:
        return
    for child in map(int, children):
        yield child
        yield from descendants(child)


def memory(minutes: float, arguments: list[str]) -> int:
    """Run a batch and print what it and its workers hold; its report goes to stdout at the end."""
    line = [*COMMAND, "--time", f"{minutes:g}m", *arguments]
    with subprocess.Popen(line) as night:
        started = time.monotonic()
        while True:
            try:
                return night.wait(30)
            except subprocess.TimeoutExpired:
                workers = sorted((resident(pid) for pid in descendants(night.pid)), reverse=True)
                held = "  ".join(f"{size:6.1f}" for size in workers if size > 20)
                passed = (time.monotonic() - started) / 60
                print(f"{passed:5.1f} min  job {resident(night.pid):6.1f}  workers {held}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "speed":
        speed(int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    else:
        sys.exit(memory(float(sys.argv[2]), sys.argv[3:]))
