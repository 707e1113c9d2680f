"""Newline-delimited JSON: LF alone ends a line, and what is written reads back."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfuzz_strategies.framing import Decoded, Line
from streamfuzz_strategies.framing.ndjson import NDJSON, NOT_UTF8, WITH_BOM, NDJSONDecoder
from streamfuzz_strategies.stream import Event, Frame, payloads
from streamfuzz_strategies.style import PLAIN, Style
from streamfuzz_strategies.styles import styles

MORSELS = (
    *(b"\n", b"\r", b"\r\n", b" ", b"\t", b"{}", b'{"a":"\xc2\x85"}', b"\xe2\x80\xa8", b"\x0b", b"\x0c", b"\x1c"),
    *(b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"\xf0\x9f", b"\xff", b"\0"),
)
hostile_bytes = st.lists(st.sampled_from(MORSELS), max_size=20).map(b"".join)
strings = st.sampled_from(("a", "\u2028", "\x85", "\n\r", "😀"))
values = st.dictionaries(st.sampled_from(("a", "é", "/")), strings, max_size=3)
events = st.lists(st.builds(Event, values), max_size=4)


def delivered(decoded: Decoded) -> list[Frame]:
    return [*decoded.frames, *([] if decoded.pending is None else [decoded.pending])]


def fed(*chunks: bytes) -> list[Frame]:
    decoder = NDJSONDecoder()
    return [frame for chunk in chunks for frame in decoder.feed(chunk)] + decoder.close()


@given(hostile_bytes)
@settings(deadline=None, max_examples=300)
def test_frames_are_the_lines_between_line_feeds_that_are_not_blank(data: bytes) -> None:
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    texts = [(line[:-1] if line[-1:] == b"\r" else line).decode("utf-8", "replace") for line in lines]
    assert delivered(NDJSON.decode(data)) == [Frame(text) for text in texts if text.strip(" \t\r")]


@given(hostile_bytes)
@settings(deadline=None, max_examples=200)
def test_the_incremental_decoder_agrees_at_every_cut(data: bytes) -> None:
    expected = delivered(NDJSON.decode(data))
    for cut in range(len(data) + 1):
        assert fed(data[:cut], b"", data[cut:]) == expected
    assert fed(*(data[i : i + 1] for i in range(len(data)))) == expected


@given(hostile_bytes)
@settings(deadline=None, max_examples=100)
def test_each_frame_leaves_the_incremental_decoder_with_its_line_feed(data: bytes) -> None:
    decoder, ends = NDJSONDecoder(), []
    for offset in range(len(data)):
        ends += [offset + 1] * len(decoder.feed(data[offset : offset + 1]))
    assert ends == list(NDJSON.decode(data).ends)
    assert all(data[end - 1] == 0x0A for end in ends)


@given(events, styles("ndjson", lines=5))
@settings(deadline=None, max_examples=300)
def test_what_is_written_in_any_style_reads_back(drawn: list[Event], style: Style) -> None:
    spelled = payloads(drawn, style)
    decoded = NDJSON.decode(NDJSON.encode(spelled, style))
    assert [frame.data for frame in delivered(decoded)] == [text for text, _ in spelled]
    assert decoded.broken == ()


@given(hostile_bytes)
@settings(deadline=None, max_examples=300)
def test_the_layout_covers_every_byte_once_and_finds_the_frames(data: bytes) -> None:
    lines = NDJSON.lines(data)
    assert [line.start for line in lines] == [0, *(line.stop for line in lines)][: len(lines)]
    assert (lines[-1].stop if lines else 0) == len(data)
    assert all(b.frame - a.frame == (a.kind == "json") for a, b in pairwise(lines))
    values = [data[x.value : x.end] for x in lines if x.kind == "json"]
    if lines and lines[-1].kind == "json" and lines[-1].end == lines[-1].stop:
        # A CR at the very end may be half of a CRLF: no frame has it, though the layout has no line end there.
        values[-1:] = [value.removesuffix(b"\r") for value in values[-1:]]
    assert [Frame(value.decode("utf-8", "replace")) for value in values] == delivered(NDJSON.decode(data))


def test_a_last_line_without_its_end_is_pending() -> None:
    assert NDJSON.decode(b'{"a":1}\n{"b') == Decoded((Frame('{"a":1}'),), (8,), Frame('{"b'))


def test_what_unicode_calls_a_line_end_is_not_one() -> None:
    line = '{"a":"\x85\u2028\u2029\x0b\x0c"}'
    assert NDJSON.decode(f"{line}\n".encode()).frames == (Frame(line),)


def test_invalid_utf_8_breaks_a_rule_at_its_frame() -> None:
    decoded = NDJSON.decode(b"1\n\n\xff\n2\n\xe2\x82")
    assert decoded.broken == ((NOT_UTF8, 1), (NOT_UTF8, 3))
    assert delivered(decoded) == [Frame("1"), Frame("\ufffd"), Frame("2"), Frame("\ufffd")]
    assert NOT_UTF8.level == "must"


def test_a_byte_order_mark_is_odd_and_skipped() -> None:
    decoded = NDJSON.decode(b"\xef\xbb\xbf{}\n")
    assert decoded.broken == ((WITH_BOM, 0),)
    assert decoded.frames == (Frame("{}"),)
    assert WITH_BOM.level == "may"


def test_a_later_byte_order_mark_is_part_of_its_line() -> None:
    assert NDJSON.decode(b"1\n\xef\xbb\xbf2\n").frames == (Frame("1"), Frame("\ufeff2"))


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (PLAIN, b"1\n2\n"),
        (Style(eols=("\r\n",)), b"1\r\n2\r\n"),
        (Style(eols=("\n", "\r\n")), b"1\n2\r\n"),
        (Style(final_eol=False), b"1\n2"),
        (Style(inserts=((1, ""), (1, ""))), b"1\n\n\n2\n"),
        (Style(inserts=((0, ""), (9, ""))), b"\n1\n2\n\n"),
    ],
)
def test_each_part_of_a_style_is_written_as_it_says(style: Style, expected: bytes) -> None:
    assert NDJSON.encode([("1", None), ("2", "ignored")], style) == expected


def test_no_payloads_write_nothing() -> None:
    assert NDJSON.encode([], Style(final_eol=False)) == b""


def test_a_payload_with_a_line_feed_is_refused() -> None:
    with pytest.raises(ValueError, match="line feed"):
        NDJSON.encode([("[\n1]", None)], PLAIN)


def test_the_layout_of_a_stream() -> None:
    assert NDJSON.lines(b"\xef\xbb\xbf{}\r\n \n[") == (
        Line("bom", 0, 0, 0, 3, 3, 0),
        Line("json", 3, 3, 3, 5, 7, 0),
        Line("blank", 7, 7, 7, 8, 9, 1),
        Line("json", 9, 9, 9, 10, 10, 1),
    )


def test_a_large_line_fed_in_single_bytes_takes_linear_time() -> None:
    def seconds(size: int) -> float:
        decoder = NDJSONDecoder()
        start = time.process_time()
        for _ in range(size):
            decoder.feed(b"x")
        assert decoder.close() == [Frame("x" * size)]
        return time.process_time() - start

    # Quadratic time would make eight times the size take 64 times as long.
    assert seconds(400_000) < 24 * seconds(50_000)
