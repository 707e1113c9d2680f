r"""What libFuzzer mutates: the bytes of a stream, the places where they are cut, and how they end, as one byte string.

The bytes come first, as they are.  Where there is anything to say beside them, a trailer follows::

    FF FE | flags | cut | cut | ...

``flags`` is one byte: 1 the source breaks off instead of ending, 2 one byte a chunk.  A cut is three bytes of seven
bits each, the highest first: an offset.  FF FE is no UTF-8 and cannot stand in a trailer, so the last one in the
string begins it.

Every byte string means something, so that no mutation is lost: without FF FE all of it is the stream, uncut; the
eighth bits of a trailer and an unfinished cut are passed over; an offset past the end counts on from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from streamfuzz_strategies import cuts, providers
from streamfuzz_strategies.judge import End, judge
from streamfuzz_strategies.providers import Provider
from streamfuzz_strategies.stream import Raw, payloads
from streamfuzz_strategies.style import PLAIN

from ..case import Case
from ..spec import Target

MARK = b"\xff\xfe"
"""What the trailer begins with."""

RESET, EVERY_BYTE = 1, 2
"""The bits of ``flags``."""

LONGEST = 1 << 21
"""Bytes from which on a cut has no spelling."""


@dataclass(frozen=True, slots=True)
class Input:
    """A stream in chunks: its bytes, the offsets of the cuts in increasing order, and how it ends."""

    data: bytes
    cuts: cuts.Cuts = cuts.WHOLE
    end: End = "eof"


def encode(given: Input) -> bytes:
    """Write an input; :func:`decode` gives it back.

    Raises:
        ValueError: its cuts are not offsets in increasing order, or one is not below :data:`LONGEST`.
    """
    data, offsets = given.data, given.cuts
    if list(offsets) != sorted(offsets) or (offsets and not 0 <= offsets[0] <= offsets[-1] <= len(data)):
        raise ValueError("cuts must be offsets in increasing order")
    if not offsets and given.end == "eof" and MARK not in data:
        return data
    flags = RESET if given.end == "reset" else 0
    if offsets and offsets == cuts.every_byte(len(data)):
        return data + MARK + bytes([flags | EVERY_BYTE])
    if offsets and offsets[-1] >= LONGEST:
        raise ValueError(f"a cut at {offsets[-1]} is too far into the stream: the limit is {LONGEST}")
    spelled = bytearray([flags])
    for offset in offsets:
        spelled += bytes((offset >> 14, offset >> 7 & 0x7F, offset & 0x7F))
    return data + MARK + spelled


def decode(raw: bytes) -> Input:
    """Read any byte string as an input."""
    at = raw.rfind(MARK)
    if at < 0:
        return Input(raw)
    data, trailer = raw[:at], raw[at + len(MARK) :]
    flags = trailer[0] if trailer else 0
    end: End = "reset" if flags & RESET else "eof"
    if flags & EVERY_BYTE:
        return Input(data, cuts.every_byte(len(data)), end)
    low = [byte & 0x7F for byte in trailer[1:]]
    triples = zip(low[0::3], low[1::3], low[2::3], strict=False)
    return Input(data, tuple(sorted((a << 14 | b << 7 | c) % (at + 1) for a, b, c in triples)), end)


def to_case(given: Input, target: Target) -> Case:
    """The experiment that an input means for a target; also for one that takes text, frames or events."""
    provider = providers.get(target.provider)
    end: End = "eof" if target.shape == "push" else given.end  # nobody tells a push object of a reset
    return Case(target.provider, _chunks(given, target, provider), target.takes, end)


def _chunks(given: Input, target: Target, provider: Provider) -> tuple[Any, ...]:
    data, offsets = given.data, given.cuts
    if target.takes == "bytes":
        return cuts.chunks(data, offsets)
    if target.takes == "text":
        text = data.decode("utf-8", "replace")
        readable = text.encode()
        return cuts.chunks(text, cuts.in_text(readable, tuple(min(offset, len(readable)) for offset in offsets)))
    judgement = judge(provider, data)
    if target.takes == "frames":
        return judgement.frames
    return tuple(event for event in judgement.events if not isinstance(event.data, Raw))


def of_case(case: Case) -> Input:
    """An input that means the experiment of a case, without its probe.

    Raises:
        ValueError: its frames or events cannot be written as bytes, or it is too long.
    """
    if case.takes in ("bytes", "text"):
        sizes = [len(c.encode("utf-8", "surrogatepass")) if isinstance(c, str) else len(c) for c in case.chunks]
        return Input(case.data, tuple(accumulate(sizes))[:-1], case.end)
    framing = providers.get(case.provider).framing
    if case.takes == "frames":
        pairs = [(frame.data, None if frame.event == "message" else frame.event) for frame in case.chunks]
    else:
        pairs = payloads(case.chunks, PLAIN)
    return Input(framing.encode(pairs, PLAIN), end=case.end)
