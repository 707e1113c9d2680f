"""What is shown takes as many columns as is reckoned, and says what was left out."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from streamfuzz.legible import broken, cells, compact, crop, exact, halved, printable

ANY = st.text(max_size=80)


@given(ANY, st.booleans())
def test_exact_text_takes_the_cells_that_a_terminal_gives_it(text: str, plain: bool) -> None:
    shown = exact(text, plain)
    assert cells(shown) == cell_len(shown)
    assert shown.isprintable()
    assert shown.isascii() or not plain


@given(ANY)
def test_printable_text_takes_no_more_cells_than_reckoned(text: str) -> None:
    assert cell_len(printable(text)) <= cells(printable(text))


@given(ANY)
def test_no_character_of_exact_text_moves_or_hides(text: str) -> None:
    for character in exact(text, False):
        assert cell_len(character) in (1, 2)
        assert unicodedata.bidirectional(character) not in ("R", "AL", "AN")


@given(ANY, st.integers(12, 60))
def test_broken_rows_fit_and_lose_nothing(text: str, room: int) -> None:
    rows = list(broken(exact(text, False), room))
    assert "".join(rows) == exact(text, False)
    assert max(map(cell_len, rows)) <= room


def test_an_escape_is_not_broken() -> None:
    assert list(broken("abcdefghij\\u{202E}x", 16)) == ["abcdefghij", "\\u{202E}x"]


@given(ANY, st.integers(10, 60))
def test_cropped_text_fits(text: str, room: int) -> None:
    assert cells(crop(exact(text, False), room, " … ")) <= room


@given(st.text("ab你", max_size=80), st.integers(2, 60))
def test_halves_and_what_lies_between_are_the_whole(text: str, room: int) -> None:
    head, out, tail = halved(text, room)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert (len(head) + out + len(tail) == len(text)) or out == 0


@pytest.mark.parametrize(
    ("value", "shown"),
    [({"a": ["é", None]}, '{"a":["é",null]}'), ("\x1b\u202e", '"\\u001b\\u202e"'), ({"a": {1}}, '{"a":"{1}"}')],
)
def test_a_value_is_shown_as_compact_json(value: object, shown: str) -> None:
    assert compact(value, False) == shown
