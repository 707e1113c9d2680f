"""The map of the bytes: every place has the right name."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfuzz_strategies.framing import Framing
from streamfuzz_strategies.framing.json_text import JSON_TEXT
from streamfuzz_strategies.framing.ndjson import NDJSON
from streamfuzz_strategies.framing.sse import SSE
from streamfuzz_strategies.wire import COMMONPLACE, PLACES, Wire

FRAMINGS = (SSE, NDJSON, JSON_TEXT)

MARKED: list[tuple[Framing, str, str]] = [
    (SSE, "\ufeff|data: x\n\n", "after the byte order mark"),
    (SSE, "da|ta: x\n\n", "inside a field name"),
    (SSE, "data|: x\n\n", "before the colon"),
    (SSE, "data:| x\n\n", "after the colon"),
    (SSE, "data:|x\n\n", "after the colon"),
    (SSE, "data: |x\n\n", "after the space"),
    (SSE, "data: x|y\n\n", "inside a text value"),
    (SSE, "data: x|\n\n", "before a line end"),
    (SSE, "dat|a\n\n", "inside a field name"),
    (SSE, "data|\n\n", "before a line end"),
    (SSE, "data: x\r|\n\r\n", "inside CRLF"),
    (SSE, "data: x\r\n\r|\n", "inside the CRLF of a blank line"),
    (SSE, "data: x\n|\n", "between the two line ends of a blank line"),
    (SSE, "data: x\r|\r", "between the two line ends of a blank line"),
    (SSE, "data: x\r\n|\r\n", "between the two line ends of a blank line"),
    (SSE, "data: x\n\n|data: y\n\n", "between frames"),
    (SSE, "data: x\n\n|\ndata: y\n\n", "between frames"),
    (SSE, "event: x\n|data: y\n\n", "between lines"),
    (SSE, "event: x|y\ndata: y\n\n", "inside a field value"),
    (SSE, "id: 1|2\ndata: y\n\n", "inside a field value"),
    (SSE, ":| hi\n", "inside a comment"),
    (SSE, ": h|i\n", "inside a comment"),
    (SSE, "data: [DO|NE]\n\n", "inside the [DONE] sentinel"),
    (SSE, "data: {|}\n\n", "at a JSON brace"),
    (SSE, 'data: {"a|b":1}\n\n', "inside a JSON key"),
    (SSE, 'data: {"a": "b|c"}\n\n', "inside a JSON string"),
    (SSE, 'data: {"a"|:1}\n\n', "inside a JSON value"),
    (SSE, 'data: {"a":1|2}\n\n', "inside a JSON number"),
    (SSE, 'data: {"a":-|1.5e3}\n\n', "inside a JSON number"),
    (SSE, 'data: {"a":tr|ue}\n\n', "inside a JSON literal"),
    (SSE, 'data: {"a":"\\|n"}\n\n', "inside a JSON escape"),
    (SSE, 'data: {"a":"\\u00|e9"}\n\n', "inside a JSON escape"),
    (SSE, 'data: {"a":"\\ud83d|\\ude00"}\n\n', "inside a surrogate pair escape"),
    (SSE, 'data: {"a":"\\\\|u0041"}\n\n', "inside a JSON string"),
    (SSE, 'data: {"a":"{|}"}\n\n', "inside a JSON string"),
    (SSE, 'data: {\ndata: "a":1|2}\n\n', "inside a JSON number"),
    (SSE, 'data: {}\n\ndata: say "1|2"\n\n', "inside a text value"),
    (NDJSON, "\ufeff|1\n", "after the byte order mark"),
    (NDJSON, "1\n|2\n", "between frames"),
    (NDJSON, "12|\n2\n", "before a line end"),
    (NDJSON, "1\r|\n2\n", "inside CRLF"),
    (NDJSON, "1\n|\n2\n", "between the two line ends of a blank line"),
    (NDJSON, "1\n\r|\n2\n", "inside the CRLF of a blank line"),
    (NDJSON, "1\n | \n2\n", "inside a blank line"),
    (NDJSON, "1|2\n", "inside a JSON number"),
    (NDJSON, '{"a|":1}\n', "inside a JSON key"),
    (NDJSON, "[tr|ue]\n", "inside a JSON literal"),
    (NDJSON, "[|1]\n", "at a JSON brace"),
    (NDJSON, '"\\|n"\n', "inside a JSON escape"),
    (NDJSON, '"\\ud83d\\u|de00"\n', "inside a surrogate pair escape"),
    (NDJSON, '["a"|,1]\n', "inside a JSON value"),
    (NDJSON, '"a|b"\n', "inside a JSON string"),
    (JSON_TEXT, "\ufeff|1", "after the byte order mark"),
    (JSON_TEXT, "[1,\n| 2]", "inside a JSON value"),
    (JSON_TEXT, "[1|2]", "inside a JSON number"),
    (JSON_TEXT, "nu|ll", "inside a JSON literal"),
    (JSON_TEXT, "[|]", "at a JSON brace"),
    (JSON_TEXT, '{"a|" : 1}', "inside a JSON key"),
    (JSON_TEXT, '"a|b', "inside a JSON string"),
    (JSON_TEXT, '"\\|"', "inside a JSON escape"),
    (JSON_TEXT, '"\\ud83d\\|ude00"', "inside a surrogate pair escape"),
]

IN_BYTES: list[tuple[Framing, bytes, int, str]] = [
    *((framing, b"\xef\xbb\xbf1", 2, "inside the byte order mark") for framing in FRAMINGS),
    *((framing, '["é"]\n\n'.encode(), 3, "inside a 2-byte character") for framing in FRAMINGS),
    *((framing, '["你"]\n\n'.encode(), 4, "inside a 3-byte character") for framing in FRAMINGS),
    *((framing, '["😀"]\n\n'.encode(), 3, "inside a 4-byte character") for framing in FRAMINGS),
    *((framing, b'["\xf0\x9f\x98"]\n\n', 4, "inside a broken character") for framing in FRAMINGS),
    (SSE, 'data: ["\ufeff"]\n\n'.encode(), 9, "inside a 3-byte character"),
]


@pytest.mark.parametrize(("framing", "marked", "place"), MARKED)
def test_a_cut_is_named_after_what_it_cuts(framing: Framing, marked: str, place: str) -> None:
    before, after = marked.split("|")
    assert Wire((before + after).encode(), framing).place(len(before.encode())) == place


@pytest.mark.parametrize(("framing", "data", "offset", "place"), IN_BYTES)
def test_a_cut_inside_a_character_is_named_after_it(framing: Framing, data: bytes, offset: int, place: str) -> None:
    assert Wire(data, framing).place(offset) == place


@pytest.mark.parametrize("framing", FRAMINGS, ids=lambda framing: framing.name)
def test_every_published_place_is_reached(framing: Framing) -> None:
    named = {place for kind, _, place in MARKED if kind is framing}
    named |= {place for kind, _, _, place in IN_BYTES if kind is framing}
    assert named == set(PLACES[framing.name])
    assert len(PLACES[framing.name]) == len(named)


def test_commonplace_places_are_places() -> None:
    assert set(PLACES["sse"]) >= COMMONPLACE


PIECES = (
    *(b"data: ", b"\n", b"\r\n", b"\r", b"{", b'"', b"\\", b"\\u", b"\\ud83d", b"12", b"true", b":", b" ", b"[DONE]"),
    *(b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"\xf0", b"\x80", b"\xc3\xa9", b"id", b'"a":', b"}"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=20).map(b"".join), st.sampled_from(FRAMINGS))
@settings(deadline=None, max_examples=500)
def test_any_bytes_have_a_published_place_at_every_cut(data: bytes, framing: Framing) -> None:
    wire = Wire(data, framing)
    assert len(wire.places()) == max(0, len(data) - 1)
    assert set(wire.places()) <= set(PLACES[framing.name])
    assert [wire.place(offset) for offset in range(1, len(data))] == list(wire.places())


@given(st.lists(st.sampled_from(PIECES), max_size=20).map(b"".join), st.sampled_from(FRAMINGS))
@settings(deadline=None, max_examples=200)
def test_every_byte_belongs_to_the_field_of_its_line(data: bytes, framing: Framing) -> None:
    wire = Wire(data, framing)
    for line in framing.lines(data):
        for offset in range(line.start, line.stop):
            assert wire.field(offset) == (line.frame, line.kind, offset - line.value)


@pytest.mark.parametrize("offset", [-1, 0, 3, 4])
def test_a_cut_must_divide_the_bytes(offset: int) -> None:
    with pytest.raises(ValueError, match="does not divide 3 bytes"):
        Wire(b"abc", SSE).place(offset)


@pytest.mark.parametrize("offset", [-1, 3])
def test_only_bytes_have_a_field(offset: int) -> None:
    with pytest.raises(ValueError, match="no byte at"):
        Wire(b"abc", SSE).field(offset)


@pytest.mark.parametrize("piece", [b'"', b'{"\\', b"{", b"\\u00", b'"" ', b"\xf0\x9f", b"a:", b"\n"])
def test_the_map_is_made_in_linear_time(piece: bytes) -> None:
    def seconds(size: int) -> float:
        data = b'data: {"' + piece * (size // len(piece)) + b"\n\n"
        start = time.process_time()
        Wire(data, SSE).places()
        return time.process_time() - start

    # Quadratic time would make eight times the size take 64 times as long.
    assert seconds(400_000) < 24 * max(seconds(50_000), 0.002)
