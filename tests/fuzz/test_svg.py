"""A picture is well-formed, says in words what it shows, and lets nothing of a stream become a part of it."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfuzz import ruler, svg
from streamfuzz.case import Case
from streamfuzz.legible import cells
from streamfuzz.ruler import Line, Span
from streamfuzz.show_command import show

SVG = "{http://www.w3.org/2000/svg}"


def parsed(document: str) -> ElementTree.Element:
    return ElementTree.fromstring(document.encode())


def lines_in(document: str) -> list[str]:
    return ["".join(line.itertext()) for line in parsed(document).iter(f"{SVG}text")]


@given(st.lists(st.text(max_size=20).map(str.encode) | st.binary(max_size=20), max_size=4), st.text(), st.text())
@settings(deadline=None)
def test_whatever_is_in_a_stream_the_picture_is_xml_and_shows_the_same(
    chunks: list[bytes], title: str, words: str
) -> None:
    lines = ruler.lay(Case("sse", tuple(chunks)), width=60)
    document = svg.picture(lines, title=title, description=words)
    assert lines_in(document) == [line.text for line in lines]
    assert {element.tag.removeprefix(SVG) for element in parsed(document).iter()} <= {
        *("svg", "title", "desc", "style", "rect", "text", "tspan")
    }


def test_markup_from_a_stream_stays_text() -> None:
    hostile = '</text><script>alert(1)</script><a href="javascript:x">&amp;]]>'
    document = svg.picture([Line((Span(hostile, "bytes"),))], title=hostile, description=hostile)
    root = parsed(document)
    assert not any(element.tag.endswith(("script", "}a")) for element in root.iter())
    assert [root[0].text, root[1].text, *lines_in(document)] == [hostile] * 3


def test_what_xml_cannot_hold_is_replaced() -> None:
    root = parsed(svg.picture([], title="a\x00b\ud800c\ufffe", description=""))
    assert root[0].text == "a\ufffdb\ufffdc\ufffd"


def test_a_picture_is_named_and_described_for_those_who_do_not_see_it() -> None:
    root = parsed(svg.picture([], title="What is wrong", description="And how"))
    assert root.get("role") == "img"
    named = dict(zip((root[0].get("id"), root[1].get("id")), (root[0].text, root[1].text), strict=True))
    assert [named[part] for part in (root.get("aria-labelledby") or "").split()] == ["What is wrong", "And how"]


def test_nothing_is_fetched() -> None:
    document = svg.picture(ruler.lay(Case("sse", (b"data: a\n\n",))), title="", description="")
    assert re.findall(r"https?://[^\"' ]+", document) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"url\(|@import|@font-face|href", document)


def test_parts_of_a_line_stand_where_their_columns_are() -> None:
    line = Line((Span("ab你", "bytes"), Span("┃", "cut"), Span("c", "bytes")))
    spans = list(parsed(svg.picture([line], title="", description="")).iter(f"{SVG}tspan"))
    at = [(float(span.get("x", "")) - svg.MARGIN) / svg.CELL for span in spans]
    wide = [float(span.get("textLength", "")) / svg.CELL for span in spans]
    assert [round(x) for x in at] == [0, 2, 4, 5]
    assert [round(x) for x in wide] == [cells(span.text or "") for span in spans] == [2, 2, 1, 1]


def test_every_line_is_inside_the_picture() -> None:
    lines = ruler.lay(Case("sse", (b"data: " + "你".encode() * 60 + b"\n\n",)))
    root = parsed(svg.picture(lines, title="", description=""))
    heights = [float(text.get("y", "")) for text in root.iter(f"{SVG}text")]
    assert all(after - before == svg.LEADING for before, after in pairwise(heights))
    assert heights[-1] < float(root.get("height", "")) - svg.MARGIN / 2
    for span in root.iter(f"{SVG}tspan"):
        assert float(span.get("x", "")) + float(span.get("textLength", "")) <= float(root.get("width", ""))


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_colour_can_be_read(scheme: int) -> None:
    """WCAG 2.2, success criterion 1.4.3: a contrast of at least 4.5 to 1."""
    style = parsed(svg.picture([], title="", description="")).findtext(f"{SVG}style") or ""
    rules = re.findall(r"([^{}\n]+) \{ fill: (#\w{6}); \}", style.split("@media (prefers-color-scheme: dark)")[scheme])
    colours = {name.strip(". "): colour for names, colour in rules for name in names.split(",")}
    assert set(colours) == {"page", *ROLES}
    page = luminance(colours.pop("page"))
    for colour in colours.values():
        light, dark = sorted((luminance(colour), page), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


ROLES = {"head", "number", "bytes", "escape", "cut", "gap", "pointer", "gave", "note", "good", "bad"}


def test_the_picture_in_the_docs_is_what_the_command_writes(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    case, made = root / "corpus" / "demo" / "e6a6ac115ac096bb.json", tmp_path / "finding.svg"
    done = CliRunner().invoke(show, [str(case), "--target", "demo", "--svg", str(made)])
    assert (done.exit_code, done.output) == (0, f"wrote {made}\n")
    kept = root / "docs" / "finding.svg"
    command = f"streamfuzz show {case.relative_to(root)} --target demo --svg {kept.relative_to(root)}"
    assert made.read_text(encoding="utf-8") == kept.read_text(encoding="utf-8"), f"make it again: {command}"
