"""Fragmentations: they lose nothing, and they go where readers break."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from streamfuzz_strategies.cuts import (
    WHOLE,
    Cuts,
    chunks,
    coalesced,
    every_byte,
    fragmentations,
    frame_aligned,
    hostile,
    hostile_pairs,
    in_text,
    singles,
    with_empties,
)
from streamfuzz_strategies.framing.ndjson import NDJSON
from streamfuzz_strategies.framing.sse import SSE
from streamfuzz_strategies.wire import Wire

DATA = 'event: a\r\ndata: {"k": "é😀\\n"}\r\n\r\n: ping\r\n\r\ndata: {"n": 12}\r\n\r\ndata: [DONE]\r\n\r\n'.encode()
WIRE = Wire(DATA, SSE)
SHORT = Wire(b"data: a\n\ndata: b\n\ndata: c\n\n", SSE)

wires = st.sampled_from(
    (WIRE, SHORT, Wire(b"", SSE), Wire(b"\n", SSE), Wire(b"ab", SSE), Wire('{"a":1}\n"é"\n3'.encode(), NDJSON))
)


@given(wires, st.data())
@settings(deadline=None, max_examples=300)
def test_a_drawn_fragmentation_is_lawful_and_loses_nothing(wire: Wire, drawn: st.DataObject) -> None:
    cuts = drawn.draw(fragmentations(wire))
    assert list(cuts) == sorted(cuts)
    assert all(0 <= cut <= len(wire.data) for cut in cuts)
    pieces = chunks(wire.data, cuts)
    assert b"".join(pieces) == wire.data
    assert len(pieces) == len(cuts) + 1


def test_chunks_cut_bytes_and_text() -> None:
    assert chunks(b"abc", (1,)) == (b"a", b"bc")
    assert chunks("aé😀", (1, 2)) == ("a", "é", "😀")
    assert chunks(b"abc", (0, 1, 1, 3)) == (b"", b"a", b"", b"bc", b"")
    assert chunks(b"abc", WHOLE) == (b"abc",)


def test_every_byte_is_a_chunk() -> None:
    assert chunks(b"abc", every_byte(3)) == (b"a", b"b", b"c")
    assert every_byte(0) == every_byte(1) == WHOLE


def test_singles_are_all_ways_to_make_two_chunks() -> None:
    assert list(singles(4)) == [(1,), (2,), (3,)]
    assert list(singles(1)) == []


def test_frame_aligned_chunks_are_frames_with_all_of_their_line_ends() -> None:
    assert chunks(SHORT.data, frame_aligned(SHORT)) == (b"data: a\n\n", b"data: b\n\n", b"data: c\n\n")
    assert chunks(DATA, frame_aligned(WIRE)) == (
        'event: a\r\ndata: {"k": "é😀\\n"}\r\n\r\n'.encode(),
        b': ping\r\n\r\ndata: {"n": 12}\r\n\r\n',
        b"data: [DONE]\r\n\r\n",
    )


def test_frame_aligned_chunks_of_ndjson_are_lines() -> None:
    wire = Wire(b"1\n\n2\n3", NDJSON)
    assert chunks(wire.data, frame_aligned(wire)) == (b"1\n", b"\n2\n", b"3")


def test_coalesced_reads_do_not_keep_to_frames() -> None:
    assert [chunks(SHORT.data, cuts) for cuts in coalesced(SHORT)] == [
        (b"data: a\n\ndata: b\n\n", b"data: c\n\n"),
        (b"data: a\n\nd", b"ata: b\n\nd", b"ata: c\n\n"),
        (b"data: a\n", b"\ndata: b\n", b"\ndata: c\n\n"),
    ]
    assert coalesced(Wire(b"data: a\n\n", SSE)) == ()


def test_hostile_offsets_reach_every_place_of_the_stream() -> None:
    offsets = hostile(WIRE)
    assert {WIRE.place(offset) for offset in offsets} == set(WIRE.places())
    assert list(offsets) == sorted(set(offsets))


def test_hostile_offsets_are_few() -> None:
    long = Wire(DATA * 20, SSE)
    per_place = [long.place(offset) for offset in hostile(long)]
    assert max(map(per_place.count, per_place)) == 3
    assert per_place.count("inside a JSON string") == 1


def test_hostile_offsets_span_the_stream() -> None:
    wire = Wire(b"data: a\r\n" * 5, SSE)
    found = [offset for offset in hostile(wire) if wire.place(offset) == "inside CRLF"]
    assert found == [8, 26, 44]


def test_a_stream_too_short_to_cut_has_no_hostile_offsets() -> None:
    assert hostile(Wire(b"", SSE)) == hostile(Wire(b"x", SSE)) == WHOLE


@pytest.mark.parametrize("limit", [1, 7, 50, 100_000])
def test_hostile_pairs_keep_to_their_limit_and_are_pairs_of_hostile_offsets(limit: int) -> None:
    offsets = hostile(WIRE)
    every = len(offsets) * (len(offsets) - 1) // 2
    pairs = list(hostile_pairs(WIRE, limit))
    assert min(limit, every) / 2 < len(pairs) <= limit
    assert len(set(pairs)) == len(pairs)
    assert all(a < b and {a, b} <= set(offsets) for a, b in pairs)


def test_all_hostile_pairs_are_there_if_the_limit_allows() -> None:
    number = len(hostile(WIRE))
    assert len(list(hostile_pairs(WIRE, 100_000))) == number * (number - 1) // 2
    assert list(hostile_pairs(WIRE, 0)) == []


def test_with_empties_puts_an_empty_chunk_everywhere() -> None:
    assert chunks(b"abcd", with_empties((1, 3), 4)) == (b"", b"a", b"", b"bc", b"", b"d", b"")
    assert chunks(b"ab", with_empties(WHOLE, 2)) == (b"", b"ab", b"")


@given(st.text(alphabet="aé你😀\n", max_size=8), st.data())
@settings(deadline=None)
def test_cuts_in_text_are_the_cuts_between_characters(text: str, drawn: st.DataObject) -> None:
    data = text.encode()
    cuts = tuple(sorted(drawn.draw(st.lists(st.integers(0, len(data)), max_size=5))))
    boundaries = [len(text[:n].encode()) for n in range(len(text) + 1)]
    assert in_text(data, cuts) == tuple(boundaries.index(cut) for cut in cuts if cut in boundaries)


def test_bytes_that_are_no_text_cannot_be_cut_as_text() -> None:
    with pytest.raises(UnicodeDecodeError):
        in_text(b"a\xff", (1,))


def test_fragmentations_shrink_to_the_whole() -> None:
    assert find(fragmentations(WIRE), lambda cuts: True) == WHOLE


@pytest.mark.parametrize(
    "wanted",
    [
        lambda cuts: any(0 < cut < len(DATA) and WIRE.place(cut) == "inside a 4-byte character" for cut in cuts),
        lambda cuts: b"" in chunks(DATA, cuts),
        lambda cuts: cuts == every_byte(len(DATA)),
        lambda cuts: cuts == frame_aligned(WIRE),
        lambda cuts: len(cuts) == 1 and cuts[0] not in hostile(WIRE),
    ],
    ids=("inside a character", "an empty chunk", "single bytes", "frames", "anywhere"),
)
def test_fragmentations_reach(wanted: Callable[[Cuts], bool]) -> None:
    options = settings(max_examples=5_000, database=None, phases=(Phase.generate,))
    assert wanted(find(fragmentations(WIRE), wanted, settings=options))
