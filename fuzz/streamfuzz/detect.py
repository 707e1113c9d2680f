"""The detectability table: what each damage does to the worth of each provider's streams.

Nothing here is written down by hand: streams are drawn, damaged at every place, and judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from streamfuzz_strategies import providers
from streamfuzz_strategies.draw import streams
from streamfuzz_strategies.judge import Reading
from streamfuzz_strategies.mutations import apply, damage, encode
from streamfuzz_strategies.rules import Level
from streamfuzz_strategies.stream import Stream

from .engines.sweep import draw_batch

STREAMS = 30
"""How many streams of a provider are drawn for the table."""


@cache
def detectability(names: tuple[str, ...] = providers.NAMES) -> Mapping[str, Mapping[str, Mapping[Level, int]]]:
    """For each damage and provider, how often the judged level was ``must``, ``may`` and ``none``."""
    table: dict[str, dict[str, dict[Level, int]]] = {}
    for name in names:
        for drawn in draw_batch(streams(name), STREAMS, 0):
            for kind, level in _judged(name, drawn):
                counts = table.setdefault(kind, {}).setdefault(name, {"must": 0, "may": 0, "none": 0})
                counts[level] += 1
    return table


def _judged(name: str, stream: Stream) -> Iterator[tuple[str, Level]]:
    provider = providers.get(name)
    data = encode(provider, stream)
    reading = Reading(provider, data)
    for end in reading.ends[:-1]:
        yield "cut off between events", reading.upto(end).level
        yield "cut off inside an event", reading.upto(end + 3).level
        yield "reset between events", reading.upto(end, "reset").level
    for mutation in damage(provider, stream):
        yield mutation.name, Reading(provider, apply(provider, stream, (mutation,))).judgement.level


def summary(counts: Mapping[Level, int]) -> str:
    """Say in a word or two how visible a damage is: the levels that occur, with their share in per cent."""
    total = sum(counts.values())
    occurring = [level for level in counts if counts[level]]
    if len(occurring) == 1:
        return occurring[0]
    # However rare a level is, it occurs, so none is said to be 0% or 100%.
    return ", ".join(f"{level} {min(99, max(1, round(100 * counts[level] / total)))}%" for level in occurring)
