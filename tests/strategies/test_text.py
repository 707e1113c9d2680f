"""Hostile text: it is what it claims to be, and slicing it loses nothing."""

from __future__ import annotations

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from streamfuzz_strategies.providers import Drawing
from streamfuzz_strategies.text import (
    FAMILIES,
    FRAMING_LOOKALIKES,
    HOSTILE,
    NOT_LINE_ENDS,
    UNICODE,
    slice_text,
    texts,
)

search = settings(deadline=None, database=None, max_examples=3000, phases=[Phase.generate])


@given(texts())
def test_text_is_not_empty_and_can_be_sent(text: str) -> None:
    assert text
    assert text.encode()


@given(texts(Drawing(alphabet="xy")))
def test_text_is_made_of_the_alphabet_asked_for(text: str) -> None:
    assert set(text) <= {"x", "y"}


def test_text_may_be_empty_where_that_is_asked_for() -> None:
    assert find(texts(min_size=0), lambda text: not text, settings=search) == ""
    assert find(texts(Drawing(alphabet="x"), min_size=0), lambda text: not text, settings=search) == ""


@pytest.mark.parametrize("morsel", sorted({*NOT_LINE_ENDS, *FRAMING_LOOKALIKES, "\U0001f600", "\ufeff", "\\"}))
def test_every_trap_is_drawn(morsel: str) -> None:
    assert morsel in find(texts(), lambda text: morsel in text, settings=search)


def test_text_shrinks_to_the_plainest() -> None:
    assert find(texts(), lambda text: True, settings=settings(database=None, deadline=None)) == "a"


def test_what_is_no_line_end_is_one_for_splitlines() -> None:
    for character in NOT_LINE_ENDS:
        assert character == "\x00" or len(f"a{character}b".splitlines()) == 2


def test_the_families_cover_every_length_of_utf8() -> None:
    assert {len(character.encode()) for morsel in UNICODE for character in morsel} == {1, 2, 3, 4}
    assert {morsel for family in FAMILIES.values() for morsel in family} == set(HOSTILE)


# --- slices


@given(st.text(max_size=20), st.integers(2, 12), st.data())
def test_slices_join_to_the_text_and_are_few(text: str, most: int, data: st.DataObject) -> None:
    pieces = slice_text(data.draw, text, max_pieces=most)
    assert "".join(pieces) == text
    assert 1 <= len(pieces) <= most


@st.composite
def slices(draw: st.DrawFn) -> list[str]:
    return slice_text(draw, "abcd")


@pytest.mark.parametrize(
    "wanted",
    [["abcd"], ["a", "b", "c", "d"], ["ab", "cd"], ["", "abcd"], ["abcd", ""], ["ab", "", "cd"]],
)
def test_every_way_of_slicing_is_drawn(wanted: list[str]) -> None:
    assert find(slices(), lambda pieces: pieces == wanted, settings=search) == wanted


def test_empty_text_is_one_empty_slice() -> None:
    @settings(deadline=None, max_examples=20)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        assert slice_text(data.draw, "") == [""]

    check()
