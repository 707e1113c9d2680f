"""The page that a case is drawn on: how wide it is, what its lines are made of, and how words are folded onto it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ..legible import broken, exact, halved

NARROWEST = 20
"""Columns that a page has at least."""

STACKED = 48
"""Columns below which numbers stand above what they number, because beside it they would leave it no room."""

GAVE_ROWS = 6
"""Rows that one thing which a target gave out may take before its middle is left out."""

Role: TypeAlias = Literal["head", "number", "bytes", "escape", "cut", "gap", "pointer", "gave", "note", "good", "bad"]
"""What a part of a line is: a heading; the number of a chunk; bytes, as themselves or escaped; the mark of a cut;
what stands for bytes left out; carets and their label; what the target gave out; other words, good and bad ones."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line."""

    text: str
    role: Role


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the page."""

    spans: tuple[Span, ...] = ()

    @property
    def text(self) -> str:
        """The whole line."""
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The signs that are no letters."""

    cut: str
    gap: str
    gave: str


UNICODE = Glyphs("\u2503", "\u2026", "\u2192")
ASCII = Glyphs("|", "...", "->")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a given width.

    Attributes:
        width: in columns.
        glyphs: the signs to use.
        plain: whether nothing but ASCII may stand on it.
        rows: how many a stream may take; ``None``: as many as it needs.
    """

    width: int
    glyphs: Glyphs
    plain: bool
    rows: int | None

    @property
    def stacked(self) -> bool:
        """Whether numbers stand above what they number."""
        return self.width < STACKED

    def shortened(self, parts: int) -> Page:
        """The page for one of so many streams."""
        return self if self.rows is None else replace(self, rows=self.rows // parts)

    @staticmethod
    def line(*parts: tuple[str, Role]) -> Line:
        """A line of parts, without those that are empty."""
        return Line(tuple(Span(text, role) for text, role in parts if text))

    def fold(self, text: str, role: Role, indent: int = 0) -> Iterator[Line]:
        """Words on as many lines as they need."""
        for row in broken(text, self.width - indent):
            yield self.line((" " * indent, "number"), (row.rstrip(" "), role))

    def numbered(self, number: str, text: str, role: Role, indent: int) -> Iterator[Line]:
        """Words with a number before them, or above them where the page is narrow."""
        first, *more = broken(text, self.width - indent)
        if self.stacked:
            yield from self.fold(number.strip(), "number")
            number = ""
        yield self.line((f"{number:<{indent}}", "number"), (first, role))
        yield from (self.line((" " * indent, "number"), (row, role)) for row in more)

    def told(self, text: str, indent: int, *, whole: bool = False) -> Iterator[Line]:
        """What the target did, behind an arrow; the middle of what is very long is left out, and it says so."""
        arrow = f"{self.glyphs.gave} "
        indent += 0 if self.stacked else 2
        room = self.width - indent - len(arrow)
        text = exact(text, self.plain)
        if self.rows is not None and not whole:
            text = self.shortened_text(text, room * GAVE_ROWS)
        for number, row in enumerate(broken(text, room)):
            yield self.line((" " * indent + (arrow if number == 0 else " " * len(arrow)), "gave"), (row, "gave"))

    def shortened_text(self, text: str, room: int) -> str:
        """Text in so many columns; where something had to be left out, it says how much."""
        if len(text) * 2 <= room:
            return text
        head, out, tail = halved(text, room)
        if not out:
            return text
        head, out, tail = halved(text, room - len(self.left_out(len(text), "characters")))
        return f"{head}{self.left_out(out, 'characters')}{tail}"

    def left_out(self, count: int, what: str) -> str:
        """What stands for something left out."""
        return f" {self.glyphs.gap} {count} {what} {self.glyphs.gap} "
