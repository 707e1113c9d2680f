"""Judged cases per second: the sweep against one mutation per example, side by side in one process.

Run it with ``python -m tests.bench.throughput [seconds]``.  Both use the same strategies, target and judge.  The
two take turns, so that a machine that speeds up or slows down does so for both.  Needs the extra ``sdks``.
"""

from __future__ import annotations

import statistics
import sys
from time import perf_counter

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from openai._streaming import SSEDecoder

from streamfuzz.bench import Bench
from streamfuzz.case import Case
from streamfuzz.engines import Budget
from streamfuzz.engines.sweep import sweep
from streamfuzz.spec import Target, target
from streamfuzz_strategies import cuts
from streamfuzz_strategies.draw import streams
from streamfuzz_strategies.mutations import apply, mutations
from streamfuzz_strategies.providers import get
from streamfuzz_strategies.wire import Wire

ROUNDS = 5


def decoder(provider: str) -> Target:
    """The event decoder of the openai package, as a target."""
    return target(lambda chunks: SSEDecoder().iter_bytes(chunks), name="openai-sse", provider=provider, gives="frames")


def one_per_example(provider: str, seconds: float, seed: int) -> float:
    """Judged cases per second of a @given test that draws a stream, one mutation and one fragmentation."""
    found = get(provider)
    start, cases = perf_counter(), 0

    @st.composite
    def drawn(draw):
        stream = draw(streams(provider))
        data = apply(found, stream, (draw(mutations(stream)),))
        return cuts.chunks(data, draw(cuts.fragmentations(Wire(data, found.framing))))

    with Bench(decoder(provider)) as bench:
        while perf_counter() - start < seconds:

            @seeded(seed + cases)
            @settings(
                max_examples=50,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(drawn())
            def example(chunks):
                nonlocal cases
                bench.deviations(Case(provider, tuple(chunks)))
                cases += 1

            example()
    return cases / (perf_counter() - start)


def by_sweep(provider: str, seconds: float, seed: int) -> tuple[float, float]:
    """Judged cases per second of the sweep, and the share of the time spent inside the target."""
    start = perf_counter()
    with Bench(decoder(provider)) as bench:
        cases = sum(batch.cases for batch in sweep(bench, Budget(seconds=seconds, seed=seed)))
        spent = perf_counter() - start
        return cases / spent, bench.driver.seconds / spent


def main(seconds: float) -> None:
    """Print the medians of a few rounds."""
    for provider in ("sse", "openai-chat", "anthropic"):
        swept, given_rates, shares = [], [], []
        for number in range(ROUNDS):
            rate, share = by_sweep(provider, seconds, number)
            swept.append(rate)
            shares.append(share)
            given_rates.append(one_per_example(provider, seconds, number))
        ratios = [a / b for a, b in zip(swept, given_rates, strict=True)]
        print(
            f"{provider:<12} sweep {statistics.median(swept):>7.0f}/s   "
            f"@given {statistics.median(given_rates):>5.0f}/s   "
            f"ratio {statistics.median(ratios):.0f} ({min(ratios):.0f} to {max(ratios):.0f})   "
            f"inside the target {statistics.median(shares):.0%}"
        )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0)
