"""Fragmentations: the ways in which one stream can arrive in chunks.

A fragmentation is a tuple of offsets in increasing order, the *cuts*.  An offset given twice makes an empty
chunk there; 0 and the length make one at the start and at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, islice, pairwise
from typing import AnyStr, TypeAlias

from hypothesis import strategies as st

from .wire import COMMONPLACE, Wire

Cuts: TypeAlias = tuple[int, ...]

WHOLE: Cuts = ()
"""Everything in one chunk."""

_EACH = 3
"""Hostile offsets taken of each place: readers that break at a place break at nearly all offsets of it."""


def chunks(data: AnyStr, cuts: Cuts) -> tuple[AnyStr, ...]:
    """Cut bytes, or text between code points, into one chunk more than there are cuts."""
    if len(cuts) == 1:  # by far the most of those that a sweep tries
        return data[: cuts[0]], data[cuts[0] :]
    return tuple([data[a:b] for a, b in pairwise((0, *cuts, len(data)))])


def every_byte(size: int) -> Cuts:
    """One byte a chunk."""
    return tuple(range(1, size))


def singles(size: int) -> Iterator[Cuts]:
    """Every fragmentation in two chunks, neither of them empty."""
    return ((offset,) for offset in range(1, size))


def frame_aligned(wire: Wire) -> Cuts:
    """One frame a chunk, with all of its line ends."""
    return tuple(line.start for before, line in pairwise(wire.lines) if line.frame != before.frame)


def coalesced(wire: Wire) -> tuple[Cuts, ...]:
    """Reads that do not keep to frames, as busy networks make them.

    Two frames a chunk, and every cut one byte after or before the end of a frame; those of them that differ
    from the whole.
    """
    aligned = frame_aligned(wire)
    late = tuple(offset + 1 for offset in aligned if offset + 1 < len(wire.data))
    early = tuple(offset - 1 for offset in aligned)
    return tuple(dict.fromkeys(cuts for cuts in (aligned[1::2], late, early) if cuts))


def hostile(wire: Wire) -> Cuts:
    """A few offsets at each kind of place that the stream has, and one where the place is commonplace.

    They are spread from the first to the last of the kind, deterministic, and in increasing order.
    """
    found: dict[str, list[int]] = {}
    for offset, place in enumerate(wire.places(), 1):
        found.setdefault(place, []).append(offset)
    few = (_few(offsets, 1 if place in COMMONPLACE else _EACH) for place, offsets in found.items())
    return tuple(sorted(chain.from_iterable(few)))


def _few(offsets: list[int], most: int) -> list[int]:
    """At most so many, spread evenly from the first to the last."""
    if len(offsets) <= most:
        return offsets
    return [offsets[i * (len(offsets) - 1) // max(1, most - 1)] for i in range(most)]


def hostile_pairs(wire: Wire, limit: int) -> Iterator[Cuts]:
    """Pairs of hostile offsets, at most ``limit`` of them, spread evenly over all pairs if there are more."""
    offsets = hostile(wire)
    number = len(offsets) * (len(offsets) - 1) // 2
    step = -(-number // limit) if limit > 0 else 0
    return islice(combinations(offsets, 2), 0, None, step) if step else iter(())


def with_empties(cuts: Cuts, size: int) -> Cuts:
    """The same chunks with an empty one before, after and between them."""
    return (0, *(offset for offset in cuts for _ in range(2)), size)


def in_text(data: bytes, cuts: Cuts) -> Cuts:
    """Cuts of UTF-8 bytes as cuts of the text that they spell; those inside a character are left out.

    Raises:
        UnicodeDecodeError: the bytes are not UTF-8.
    """
    text_cuts: list[int] = []
    at = position = 0
    for offset in cuts:
        if offset < len(data) and 0x80 <= data[offset] < 0xC0:
            continue
        position += len(data[at:offset].decode())
        at = offset
        text_cuts.append(position)
    data[at:].decode()
    return tuple(text_cuts)


def fragmentations(wire: Wire) -> st.SearchStrategy[Cuts]:
    """Fragmentations of a stream, most of them cut where readers break, some with empty chunks.

    They shrink to the whole.
    """
    size = len(wire.data)
    regular = (WHOLE, with_empties(WHOLE, size), frame_aligned(wire), *coalesced(wire), every_byte(size))
    regular += (with_empties(frame_aligned(wire), size), with_empties(every_byte(size), size))
    offered = [st.sampled_from(tuple(dict.fromkeys(regular)))]
    spots = hostile(wire)
    if spots:
        some = st.lists(st.sampled_from(spots), min_size=1, max_size=5).map(_in_order)
        offered += [some, some]
    offered.append(st.lists(st.integers(0, size), min_size=1, max_size=5).map(_in_order))
    return st.one_of(offered)


def _in_order(offsets: list[int]) -> Cuts:
    return tuple(sorted(offsets))
