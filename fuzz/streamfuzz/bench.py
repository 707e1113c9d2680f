"""Run a case against a target and judge it: the one place where an experiment becomes deviations.

The sweep, replay, the shrinker and the search for causes all come through here, so a finding means the same
wherever it is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from streamfuzz_strategies import providers
from streamfuzz_strategies.judge import End, Reading

from . import probes
from .case import Case, joined
from .deviation import Deviation, Run
from .drive import Driver
from .oracles import ORACLES, check
from .spec import Target
from .trace import Trace

ALL_ORACLES: tuple[str, ...] = (*ORACLES, "fragmentation", *probes.ORACLES)
"""Every oracle by name."""


class Bench:
    """A target on the bench, with the oracles that are asked of it.  Use as a context manager."""

    def __init__(self, target: Target, oracles: Sequence[str] = ALL_ORACLES) -> None:
        self.target = target
        self.oracles = tuple(oracles)
        self.provider = providers.get(target.provider)
        self.driver = Driver(target)
        self.cases = 0

    def __enter__(self) -> Bench:
        self.driver.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.driver.__exit__(*exc)

    def deviations(self, case: Case) -> list[Deviation]:
        """Run the experiment and return the invariants that the target breaks."""
        self.cases += 1
        if case.probe:
            return [d for d in probes.run(self.driver, self.provider, case) if d.oracle in self.oracles]
        return check(self.run(case), self.oracles)

    def run(self, case: Case) -> Run:
        """Run a case that is no probe; one in several chunks is also run whole, to be held against."""
        reading = read(case)
        trace = self.driver.run(case.chunks, case.end)
        run = Run(self.target, reading, reading.judge(case.end), case.chunks, case.end, trace)
        if len(case.chunks) > 1 and case.takes in ("bytes", "text"):
            self.against_whole(run, case.chunks, case.end)
        return run

    def against_whole(self, run: Run, chunks: Sequence[bytes | str], end: End) -> None:
        """Give a cut run the whole run of the same bytes to be held against."""
        empty: bytes | str = b"" if self.target.takes == "bytes" else ""
        whole = (empty.join(chunks),)  # type: ignore[arg-type]
        run.baseline, run.baseline_deviations = self.baseline(run.reading, whole, end)

    def baseline(self, reading: Reading, chunks: Sequence[bytes | str], end: End) -> tuple[Trace, list[Deviation]]:
        """Run the stream in one chunk; also says what the target gets wrong about it."""
        trace = self.driver.run(chunks, end)
        run = Run(self.target, reading, reading.judge(end), chunks, end, trace)
        return trace, check(run, self.oracles)


def read(case: Case) -> Reading:
    """The reference reading of a case's stream."""
    if case.takes == "frames":
        return Reading.of_frames(providers.get(case.provider), case.chunks)
    if case.takes == "events":
        return Reading.of_events(providers.get(case.provider), case.chunks)
    return _read_bytes(case.provider, joined(case.chunks, case.takes))


@lru_cache(maxsize=512)
def _read_bytes(provider: str, data: bytes) -> Reading:
    """The search for causes and the shrinker ask for the same bytes again and again."""
    return Reading(providers.get(provider), data)
