"""Styles are lawful, and each of their parts is reached."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from streamfuzz_strategies.framing import Framing
from streamfuzz_strategies.framing.json_text import JSON_TEXT
from streamfuzz_strategies.framing.ndjson import NDJSON
from streamfuzz_strategies.framing.sse import SSE
from streamfuzz_strategies.stream import Event, Raw, parse_json, payloads
from streamfuzz_strategies.style import PLAIN, Style
from streamfuzz_strategies.styles import AFTER_EVERYTHING, SINGLE_STYLES, styles

FRAMINGS: dict[str, Framing] = {framing.name: framing for framing in (SSE, NDJSON, JSON_TEXT)}
STREAM = [
    Event({"m": "é/😀", "z": [1, {"b": None}], "a": 0}, "start"),
    Event({"z": 1, "a": "\n"}),
    Event({"z": {"y": 1, "x": 2}}, "stop"),
]
SINGLES = [(framing, style) for framing, menu in SINGLE_STYLES.items() for _, style in menu]
each_single = pytest.mark.parametrize(
    ("framing", "style"),
    SINGLES,
    ids=[f"{framing}-{name}" for framing, menu in SINGLE_STYLES.items() for name, _ in menu],
)
SOON = settings(max_examples=20_000, database=None, phases=(Phase.generate,))


def events_of(framing: str) -> list[Event]:
    if framing == "json":
        return STREAM[:1]
    return [*STREAM, Event(Raw(""))] if framing == "sse" else STREAM


def read(framing: str, data: bytes) -> list[object]:
    decoded = FRAMINGS[framing].decode(data)
    assert decoded.broken == ()
    frames = [*decoded.frames, *([decoded.pending] if decoded.pending else [])]
    return [(parse_json(frame.data) if frame.data else None, frame.event) for frame in frames]


def written(framing: str, style: Style) -> bytes:
    return FRAMINGS[framing].encode(payloads(events_of(framing), style), style)


@pytest.mark.parametrize("framing", FRAMINGS)
@given(drawn=st.data())
@settings(deadline=None, max_examples=200)
def test_every_style_leaves_the_stream_what_it_is(framing: str, drawn: st.DataObject) -> None:
    style = drawn.draw(styles(framing, lines=12))
    assert read(framing, written(framing, style)) == read(framing, written(framing, PLAIN))


@each_single
def test_every_single_style_leaves_the_stream_what_it_is_but_changes_its_bytes(framing: str, style: Style) -> None:
    assert read(framing, written(framing, style)) == read(framing, written(framing, PLAIN))
    assert written(framing, style) != written(framing, PLAIN)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_the_names_and_the_styles_of_the_menu_are_distinct(framing: str) -> None:
    names = [name for name, _ in SINGLE_STYLES[framing]]
    assert len(set(names)) == len(names)
    assert len({style for _, style in SINGLE_STYLES[framing]}) == len(names)


@each_single
def test_every_single_style_can_be_drawn_but_long_runs(framing: str, style: Style) -> None:
    if len(style.inserts) > 100:
        return
    groups = {line for _, line in style.inserts}
    changed = {part.name: getattr(style, part.name) for part in fields(Style) if part.name != "inserts"}

    def has_it(drawn: Style) -> bool:
        return groups <= {line for _, line in drawn.inserts} and all(
            getattr(drawn, part) == value for part, value in changed.items()
        )

    find(styles(framing), has_it, settings=SOON)


def test_changes_are_drawn_together() -> None:
    drawn = find(
        styles("sse"),
        lambda style: style.bom and style.eols == ("\r\n",) and style.inserts != (),
        settings=SOON,
    )
    assert drawn.eols == ("\r\n",)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_styles_shrink_to_the_plain_one(framing: str) -> None:
    assert find(styles(framing), lambda style: True) == PLAIN


@given(styles("sse", lines=3))
@settings(deadline=None, max_examples=200)
def test_sse_styles_keep_to_what_sse_allows(style: Style) -> None:
    assert style.indent is None or style.fold
    assert style.final_eol
    assert all(0 <= at <= 3 and "\n" not in line and "\r" not in line for at, line in style.inserts)


@given(styles("ndjson", lines=3))
@settings(deadline=None, max_examples=200)
def test_ndjson_styles_keep_to_what_ndjson_allows(style: Style) -> None:
    assert style.indent is None
    assert set(style.eols) <= {"\n", "\r\n"}
    assert not style.bom
    assert all(line == "" for _, line in style.inserts)


def test_the_menu_inserts_also_after_everything() -> None:
    style = dict(SINGLE_STYLES["sse"])["a comment"]
    assert (AFTER_EVERYTHING, ": ping") in style.inserts
    assert written("sse", style).endswith(b"\n\n: ping\n")


def test_an_unknown_framing_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match="json, ndjson, sse"):
        styles("xml")
