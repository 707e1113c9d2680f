"""What one judged case costs, against the length of the stream and against the number of oracles.

Run it with ``python -m tests.bench.costs``.  The target does nothing but join its chunks, so what is left is ours.
"""

from __future__ import annotations

from time import perf_counter

from streamfuzz.bench import ALL_ORACLES, Bench
from streamfuzz.case import Case
from streamfuzz.demo import demo_repaired
from streamfuzz_strategies import cuts
from streamfuzz_strategies.judge import Reading
from streamfuzz_strategies.mutations import encode
from streamfuzz_strategies.providers import get
from streamfuzz_strategies.reply import Choice, Reply, Text
from streamfuzz_strategies.stream import Stream

CHAT = get("openai-chat")


def stream(size: int) -> bytes:
    """A chat stream whose text is so long, in deltas of eight characters."""
    reply = Reply((Choice(tuple(Text("x" * 8) for _ in range(size // 8)), "stop"),), "c", "m")
    return encode(CHAT, Stream(CHAT.name, CHAT.plain_events(reply)))


def microseconds(action, seconds: float = 0.5) -> float:
    """The best of the repetitions that fit into the time."""
    best, end = float("inf"), perf_counter() + seconds
    while perf_counter() < end:
        start = perf_counter()
        action()
        best = min(best, perf_counter() - start)
    return best * 1e6


def main() -> None:
    """Print both tables."""
    print("bytes     judge     run in two chunks, judged and held against the whole   inside the target")
    for size in (8, 64, 512, 4096):
        data = stream(size)
        case = Case(CHAT.name, cuts.chunks(data, (len(data) // 2,)))
        with Bench(demo_repaired()) as bench:
            judging = microseconds(lambda data=data: Reading(CHAT, data).judgement)
            running = microseconds(lambda case=case, bench=bench: bench.deviations(case))
            inside = microseconds(lambda case=case, bench=bench: bench.driver.run(case.chunks)) * 2
        print(f"{len(data):>6} {judging:>8.0f} µs {running:>9.0f} µs {inside:>46.0f} µs")
    data = stream(64)
    case = Case(CHAT.name, cuts.chunks(data, (len(data) // 2,)))
    print("\noracles   run in two chunks")
    for count in (1, 4, 8, len(ALL_ORACLES)):
        with Bench(demo_repaired(), ALL_ORACLES[:count]) as bench:
            print(f"{count:>7} {microseconds(lambda bench=bench: bench.deviations(case)):>9.0f} µs")


if __name__ == "__main__":
    main()
