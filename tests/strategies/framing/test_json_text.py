"""One JSON text: everything is pending until the end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfuzz_strategies.framing import Decoded, Line
from streamfuzz_strategies.framing.json_text import JSON_TEXT, NOT_UTF8, WITH_BOM
from streamfuzz_strategies.stream import Event, Frame, parse_json, payloads
from streamfuzz_strategies.style import Style
from streamfuzz_strategies.styles import styles

values = st.recursive(
    st.none() | st.integers(-9, 9) | st.sampled_from(("é", "/", "😀", "\n")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abé"), inner, max_size=3),
    max_leaves=5,
)


@given(values, styles("json"))
@settings(deadline=None, max_examples=200)
def test_what_is_written_in_any_style_reads_back(value: object, style: Style) -> None:
    decoded = JSON_TEXT.decode(JSON_TEXT.encode(payloads([Event(value)], style), style))
    assert decoded.pending is not None
    assert parse_json(decoded.pending.data) == value
    assert decoded == Decoded((), (), decoded.pending)


@pytest.mark.parametrize("data", [b"", b" \r\n\t"])
def test_blank_bytes_hold_no_frame(data: bytes) -> None:
    assert JSON_TEXT.decode(data) == Decoded((), ())


def test_a_byte_order_mark_is_odd_and_skipped() -> None:
    assert JSON_TEXT.decode(b"\xef\xbb\xbf1") == Decoded((), (), Frame("1"), ((WITH_BOM, 0),))
    assert WITH_BOM.level == "may"


def test_invalid_utf_8_breaks_a_rule() -> None:
    assert JSON_TEXT.decode(b'"\xff"') == Decoded((), (), Frame('"\ufffd"'), ((NOT_UTF8, 0),))
    assert NOT_UTF8.level == "must"


def test_line_ends_do_not_divide_a_text() -> None:
    assert JSON_TEXT.decode(b"[\n1\n]\n").pending == Frame("[\n1\n]\n")


def test_the_layout_is_one_line() -> None:
    assert JSON_TEXT.lines(b"[\n1]") == (Line("json", 0, 0, 0, 4, 4, 0),)
    assert JSON_TEXT.lines(b"\xef\xbb\xbf1") == (Line("bom", 0, 0, 0, 3, 3, 0), Line("json", 3, 3, 3, 4, 4, 0))
    assert JSON_TEXT.lines(b"") == ()
