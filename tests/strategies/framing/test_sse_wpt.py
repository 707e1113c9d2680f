"""The public conformance cases for event streams, each named as its source names it.

Sources: the ``eventsource/format-*`` tests of https://github.com/web-platform-tests/wpt (those about HTTP
apart), and the examples of the HTML standard, "Interpreting an event stream".  Of a test that looks at the
headers of a reconnection only the part in the bytes is here.
"""

from __future__ import annotations

import pytest

from streamfuzz_strategies.framing.sse import SSE, SSEDecoder
from streamfuzz_strategies.stream import Frame

LONG = b"x" * 2048

CASES: dict[str, tuple[bytes, tuple[Frame, ...]]] = {
    "format-bom: one mark at the start is dropped, a later one spoils its line": (
        b"\xef\xbb\xbfdata:1\n\n\xef\xbb\xbfdata:2\n\ndata:3\n\n",
        (Frame("1"), Frame("3")),
    ),
    "format-bom-2: of two marks only the first is dropped": (
        b"\xef\xbb\xbf\xef\xbb\xbfdata:1\n\ndata:2\n\ndata:3\n\n",
        (Frame("2"), Frame("3")),
    ),
    "format-comments: comments among data lines, with NUL, empty, long, and looking like data": (
        b"data:1\r:\0\n:\r\ndata:2\n:" + LONG + b"\rdata:3\n:data:fail\r:" + LONG + b"\ndata:4\n\n",
        (Frame("1\n2\n3\n4"),),
    ),
    "format-data-before-final-empty-line: an event without its blank line is discarded, and its id": (
        b"retry:1000\ndata:test1\n\nid:test\ndata:test2\n",
        (Frame("test1", retry=1000),),
    ),
    "format-field-data: empty data, two empty lines, then text": (
        b"data:\n\ndata\ndata\n\ndata:test\n\n",
        (Frame(""), Frame("\n"), Frame("test")),
    ),
    "format-field-event: a name holds for one event": (
        b"event:test\ndata:x\n\ndata:x\n\n",
        (Frame("x", "test"), Frame("x")),
    ),
    "format-field-event-empty: an empty name is the default": (b"event: \ndata:data\n\n", (Frame("data"),)),
    "format-field-id: an id beyond ASCII": ("id: …\ndata: hello\n\n".encode(), (Frame("hello", id="…"),)),
    "format-field-id-2: an id stays in force for later events": (
        "id: …\ndata: hello\n\ndata: a\n\ndata: b\n\n".encode(),
        (Frame("hello", id="…"), Frame("a", id="…"), Frame("b", id="…")),
    ),
    "format-field-id-3: persists": (b"id: 1\ndata: 1\n\ndata:2\n\n", (Frame("1", id="1"), Frame("2", id="1"))),
    "format-field-id-3: changes and persists": (
        b"id: 1\ndata: 1\n\nid: 2\ndata:2\n\ndata:3\n\n",
        (Frame("1", id="1"), Frame("2", id="2"), Frame("3", id="2")),
    ),
    "format-field-id-3: resets": (
        b"id: 1\ndata: 1\n\nid:\ndata:2\n\ndata:3\n\n",
        (Frame("1", id="1"), Frame("2"), Frame("3")),
    ),
    "format-field-id-null: an id with NUL is ignored": (b"id: \0\0\ndata: hello\n\n", (Frame("hello"),)),
    "format-field-parsing: only exact names count": (
        b"data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\n%b\n\n"
        % b"data:3\rdata:\r\n data:32\ndata:4",
        (Frame("\0\n 2\n1\n3\n\n4"),),
    ),
    "format-field-retry: digits are decimal, also after a zero": (
        b"retry:02000\ndata:x\n\n",
        (Frame("x", retry=2000),),
    ),
    "format-field-retry-bogus: what is not digits leaves the time as it was": (
        b"retry:2000\nretry:1000x\ndata:x\n\n",
        (Frame("x", retry=2000),),
    ),
    "format-field-retry-empty: an empty time is ignored": (b"retry\ndata:test\n\n", (Frame("test"),)),
    "format-field-unknown: unknown fields, odd lines and comments are passed over": (
        b"data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test\n\n",
        (Frame("test\n\ntest"),),
    ),
    "format-leading-space: one space is dropped, a tab is kept": (
        b"data:\ttest\rdata: \ndata:test\n\n",
        (Frame("\ttest\n\ntest"),),
    ),
    "format-newlines: CRLF, LF and CR in one event": (
        b"data:test\r\ndata\ndata:test\r\n\r\n",
        (Frame("test\n\ntest"),),
    ),
    "format-null-character: NUL is data": (b"data:\0\n\n\n\n", (Frame("\0"),)),
    "format-utf-8: always UTF-8": (b"data:ok\xe2\x80\xa6\n\n", (Frame("ok…"),)),
    "standard, first example: several data lines": (b"data: YHOO\ndata: +2\ndata: 10\n\n", (Frame("YHOO\n+2\n10"),)),
    "standard, second example: a comment, an id, an id reset, and a last event that is not ended": (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n",
        (Frame("first event", id="1"), Frame("second event")),
    ),
    "standard, second example, ended: one of two spaces is data": (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        (Frame("first event", id="1"), Frame("second event"), Frame(" third event")),
    ),
    "standard, third example: empty data, a single line feed, and an event that is not ended": (
        b"data\n\ndata\ndata\n\ndata:",
        (Frame(""), Frame("\n")),
    ),
    "standard, fourth example: the space after the colon is optional": (
        b"data:test\n\ndata: test\n\n",
        (Frame("test"), Frame("test")),
    ),
}


@pytest.fixture(params=CASES, ids=lambda name: name.split(":")[0].replace(" ", "-").replace(",", ""))
def case(request: pytest.FixtureRequest) -> tuple[bytes, tuple[Frame, ...]]:
    return CASES[request.param]


def read(*chunks: bytes) -> tuple[Frame, ...]:
    decoder = SSEDecoder()
    return (*(frame for chunk in chunks for frame in decoder.feed(chunk)), *decoder.close())


def test_decoded(case: tuple[bytes, tuple[Frame, ...]]) -> None:
    data, expected = case
    assert SSE.decode(data).frames == expected


def test_fed_whole(case: tuple[bytes, tuple[Frame, ...]]) -> None:
    data, expected = case
    assert read(data) == expected


def test_fed_byte_by_byte(case: tuple[bytes, tuple[Frame, ...]]) -> None:
    data, expected = case
    assert read(*(data[i : i + 1] for i in range(len(data)))) == expected


def test_fed_with_every_single_cut(case: tuple[bytes, tuple[Frame, ...]]) -> None:
    data, expected = case
    assert [cut for cut in range(len(data) + 1) if read(data[:cut], data[cut:]) != expected] == []
