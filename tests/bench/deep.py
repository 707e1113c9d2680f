"""A decoder of server-sent events with a mistake behind four comparisons, each of one byte of an ``id`` field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from streamfuzz.spec import target
from streamfuzz_strategies.framing.sse import SSEDecoder


def decode(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    decoder = SSEDecoder()
    for chunk in chunks:
        for frame in decoder.feed(chunk):
            if not is_odd(frame.id):
                yield {"data": frame.data, "event": frame.event, "id": frame.id}


def is_odd(name: str) -> bool:
    if len(name) < 4:
        return False
    if name[0] != "q":
        return False
    if name[1] != "7":
        return False
    if name[2] != "Z":
        return False
    return name[3] == "!"


DEEP = target(decode, name="deep", provider="sse", gives="frames")
