"""Server-sent events: the reading is the standard's, and what is written reads back."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamfuzz_strategies.framing import Line
from streamfuzz_strategies.framing.sse import SSE, SSEDecoder
from streamfuzz_strategies.stream import Event, Frame, Raw, payloads
from streamfuzz_strategies.style import PLAIN, Style
from streamfuzz_strategies.styles import styles

MORSELS = (
    *(b"\n", b"\r", b"\r\n", b":", b" ", b"\t", b"\0", b"\xef\xbb\xbf", b"data", b"event", b"id", b"retry", b"x"),
    *(b"data: x\n", b"data:\r\n", b"\n\n", b"7", b"Data", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b", b"\x0c", b"\x1c"),
    *(b"\xf0\x9f\x98\x80", b"\xf0\x9f", b"\xe2", b"\xff", b"\xed\xa0\x80", b"\x80", b"+5", b"\xd9\xa3"),
)
hostile_bytes = st.lists(st.sampled_from(MORSELS), max_size=24).map(b"".join)

texts = st.lists(
    st.sampled_from(("a", " ", "\n", "é", "😀", "\u2028", "\x85", "\0", "\ufeff", "data: x", "[DONE]", ":", "/")),
    max_size=6,
).map("".join)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from((None, None, "ping", "message_start", " padded", "é"))
events = st.lists(st.builds(Event, json_values | st.builds(Raw, texts), names), max_size=4)


def lines_by_the_letter(stream: str) -> list[str]:
    lines, line, position = [], "", 0
    while position < len(stream):
        if stream[position] in "\r\n":
            lines.append(line)
            line = ""
            position += stream[position : position + 2] == "\r\n"
        else:
            line += stream[position]
        position += 1
    return lines


def field_by_the_letter(line: str) -> tuple[str, str]:
    field, value = line.split(":", 1) if ":" in line else (line, "")
    return field, value[1:] if value[:1] == " " else value


def by_the_letter(data: bytes) -> list[Frame]:
    """The standard's algorithm step by step: slow, and written without looking at the decoder."""
    stream = data.decode("utf-8", "replace")
    frames = []
    buffer, event, last_id, retry = "", "", "", None
    for line in lines_by_the_letter(stream[1:] if data.startswith(b"\xef\xbb\xbf") else stream):
        field, value = field_by_the_letter(line)
        if line == "":
            if buffer != "":
                frames.append(Frame(buffer[:-1], event if event != "" else "message", last_id, retry))
            buffer, event, retry = "", "", None
        elif field == "event":
            event = value
        elif field == "data":
            buffer += value + "\n"
        elif field == "id" and "\0" not in value:
            last_id = value
        elif field == "retry" and value != "" and set(value) <= set("0123456789"):
            retry = int(value)
    return frames


def fed(decoder: SSEDecoder, *chunks: bytes) -> list[Frame]:
    return [frame for chunk in chunks for frame in decoder.feed(chunk)] + decoder.close()


@given(hostile_bytes)
@example(b"id: 5\n\ndata: x\n\n")
@example(b"event: x\n\ndata: y\n\n")
@example(b"retry: 1\n\ndata: y\n\n")
@example(b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n")
@settings(deadline=None, max_examples=400)
def test_any_bytes_read_as_the_standard_says(data: bytes) -> None:
    assert SSE.decode(data).frames == tuple(by_the_letter(data))
    assert SSE.decode(data).broken == ()


@given(hostile_bytes)
@settings(deadline=None, max_examples=200)
def test_a_frame_is_decided_by_the_byte_at_its_end_and_not_before(data: bytes) -> None:
    decoded = SSE.decode(data)
    assert len(decoded.ends) == len(decoded.frames)
    for number, end in enumerate(decoded.ends):
        assert SSE.decode(data[:end]).frames == decoded.frames[: number + 1]
        assert SSE.decode(data[: end - 1]).frames == decoded.frames[:number]


@given(hostile_bytes)
@settings(deadline=None, max_examples=200)
def test_the_pending_frame_is_what_a_blank_line_would_dispatch(data: bytes) -> None:
    pending = SSE.decode(data).pending
    # The comment keeps the blank line apart from whatever the bytes end in.
    finished = SSE.decode(data + (b":\n\n" if data.endswith((b"\n", b"\r")) else b"\n:\n\n"))
    assert finished.frames == SSE.decode(data).frames + (() if pending is None else (pending,))


@given(hostile_bytes, st.data())
@settings(deadline=None, max_examples=200)
def test_the_incremental_decoder_agrees_at_every_cut(data: bytes, drawn: st.DataObject) -> None:
    expected = list(SSE.decode(data).frames)
    for cut in range(len(data) + 1):
        assert fed(SSEDecoder(), data[:cut], b"", data[cut:]) == expected
    assert fed(SSEDecoder(), *(data[i : i + 1] for i in range(len(data)))) == expected
    cuts = sorted(drawn.draw(st.lists(st.integers(0, len(data)), max_size=6)))
    assert fed(SSEDecoder(), *(data[a:b] for a, b in pairwise([0, *cuts, len(data)]))) == expected


@given(hostile_bytes)
@settings(deadline=None, max_examples=100)
def test_each_frame_leaves_the_incremental_decoder_with_the_byte_that_decides_it(data: bytes) -> None:
    decoder, ends = SSEDecoder(), []
    for offset in range(len(data)):
        ends += [offset + 1] * len(decoder.feed(data[offset : offset + 1]))
    assert ends == list(SSE.decode(data).ends)


@given(events, styles("sse", lines=10))
@settings(deadline=None, max_examples=400)
def test_what_is_written_in_any_style_reads_back(drawn: list[Event], style: Style) -> None:
    spelled = payloads(drawn, style)
    decoded = SSE.decode(SSE.encode(spelled, style))
    assert [(frame.data, frame.event) for frame in decoded.frames] == [(t, n or "message") for t, n in spelled]
    assert decoded.pending is None


@given(hostile_bytes)
@settings(deadline=None, max_examples=300)
def test_the_layout_covers_every_byte_once_and_counts_frames(data: bytes) -> None:
    lines = SSE.lines(data)
    assert [line.start for line in lines] == [0, *(line.stop for line in lines)][: len(lines)]
    assert (lines[-1].stop if lines else 0) == len(data)
    assert all(x.start <= x.name_end <= x.value <= x.end <= x.stop for x in lines)
    starts = [x.start for x, y in pairwise(lines) if y.frame == x.frame + 1]
    # The blank line of a last frame has no line after it to show the count.
    assert [start + 1 for start in starts] == [end for end in SSE.decode(data).ends if end <= lines[-1].start]
    assert all(y.frame - x.frame in (0, 1) for x, y in pairwise(lines))


@given(hostile_bytes)
@settings(deadline=None, max_examples=200)
def test_the_values_of_the_data_lines_are_the_data(data: bytes) -> None:
    for number, frame in enumerate(SSE.decode(data).frames):
        values = [data[x.value : x.end] for x in SSE.lines(data) if x.frame == number and x.kind == "data"]
        assert "\n".join(value.decode("utf-8", "replace") for value in values) == frame.data


def test_the_layout_tells_the_kinds_of_line_apart() -> None:
    data = b"\xef\xbb\xbfevent: e\r\ndata:x\rid\nretry: 1\n: hi\nfoo: bar\n\ndat"
    assert SSE.lines(data) == (
        Line("bom", 0, 0, 0, 3, 3, 0),
        Line("event", 3, 8, 10, 11, 13, 0),
        Line("data", 13, 17, 18, 19, 20, 0),
        Line("id", 20, 22, 22, 22, 23, 0),
        Line("retry", 23, 28, 30, 31, 32, 0),
        Line("comment", 32, 32, 34, 36, 37, 0),
        Line("field", 37, 40, 42, 45, 46, 0),
        Line("blank", 46, 46, 46, 46, 47, 0),
        Line("field", 47, 50, 50, 50, 50, 1),
    )


ONE = [("a", "e"), ("b", None)]


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (PLAIN, b"event: e\ndata: a\n\ndata: b\n\n"),
        (Style(eols=("\r\n",)), b"event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n"),
        (Style(bom=True), b"\xef\xbb\xbfevent: e\ndata: a\n\ndata: b\n\n"),
        (Style(space=False), b"event:e\ndata:a\n\ndata:b\n\n"),
        (Style(event_last=True), b"data: a\nevent: e\n\ndata: b\n\n"),
        (Style(inserts=((1, ": c"),)), b"event: e\n: c\ndata: a\n\ndata: b\n\n"),
        (Style(inserts=((3, ":"), (3, ""))), b"event: e\ndata: a\n\n:\n\ndata: b\n\n"),
        (Style(inserts=((99, ": end"),)), b"event: e\ndata: a\n\ndata: b\n\n: end\n"),
        (Style(eols=("\n", "\r")), b"event: e\ndata: a\r\rdata: b\r\r"),
        (Style(eols=("\n", "\r\n")), b"event: e\ndata: a\r\n\ndata: b\r\n\n"),
    ],
)
def test_each_part_of_a_style_is_written_as_it_says(style: Style, expected: bytes) -> None:
    assert SSE.encode(ONE, style) == expected


def test_a_blank_line_after_cr_is_never_swallowed_by_an_lf() -> None:
    assert SSE.encode([("a", None)], Style(eols=("\r", "\n"))) == b"data: a\r\r"
    assert SSE.encode([("a", None)], Style(eols=("\r", "\r\n"))) == b"data: a\r\r\n"


def test_inserts_with_a_blank_line_do_not_cut_a_frame() -> None:
    style = Style(inserts=((1, ": c"), (1, ""), (2, ": d")))
    assert SSE.encode([("a", "e")], style) == b": c\n\nevent: e\ndata: a\n: d\n\n"


def test_a_value_that_begins_with_a_space_keeps_it_without_the_optional_one() -> None:
    assert SSE.encode([(" a", " e")], Style(space=False)) == b"event:  e\ndata:  a\n\n"


def test_line_feeds_in_a_payload_become_data_lines() -> None:
    assert SSE.encode([("a\n\nb\n", None)], PLAIN) == b"data: a\ndata: \ndata: b\ndata: \n\n"


def test_an_indented_payload_is_folded() -> None:
    style = Style(fold=True, indent=1)
    assert SSE.encode(payloads([Event([1])], style), style) == b"data: [\ndata:  1\ndata: ]\n\n"


def test_ids_and_retries_are_read_from_inserted_lines() -> None:
    encoded = SSE.encode(ONE, Style(inserts=((1, "id: 7"), (1, "retry: 10"))))
    assert SSE.decode(encoded).frames == (Frame("a", "e", "7", 10), Frame("b", "message", "7"))


@pytest.mark.parametrize(("text", "name"), [("a\rb", None), ("a", "b\n"), ("a", "b\r"), ("\ud83d", None)])
def test_what_no_event_can_carry_is_refused(text: str, name: str | None) -> None:
    with pytest.raises(ValueError, match=r"carriage return|line end|surrogates"):
        SSE.encode([(text, name)], PLAIN)


@pytest.mark.parametrize("value", ["", " 5", "+5", "-5", "1_0", "٣", "5 ", "1000x", "1.0", "9" * 5000])
def test_a_retry_that_is_not_ascii_digits_is_ignored(value: str) -> None:
    assert SSE.decode(f"retry:{' ' * value.startswith(' ')}{value}\ndata:x\n\n".encode()).frames[0].retry is None


def test_pending_is_there_as_soon_as_a_data_line_has_its_name() -> None:
    assert SSE.decode(b"event: e\ndat").pending is None
    assert SSE.decode(b"event: e\ndata").pending == Frame("", "e")
    assert SSE.decode(b"event: e\nid: 1\ndata: a\ndata: \xf0\x9f").pending == Frame("a\n\ufffd", "e", "1")


@pytest.mark.parametrize("line", [b"x", b"data: x\n", b": x\n"])
def test_frames_fed_in_single_bytes_take_linear_time(line: bytes) -> None:
    def seconds(size: int) -> float:
        data = b"data: " + line * (size // len(line)) + b"\n\n"
        decoder = SSEDecoder()
        start = time.process_time()
        for offset in range(len(data)):
            decoder.feed(data[offset : offset + 1])
        return time.process_time() - start

    # Quadratic time would make eight times the size take 64 times as long.
    assert seconds(400_000) < 24 * seconds(50_000)
