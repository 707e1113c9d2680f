"""Bytes with a map: which frame, field and character each byte is, and what a cut at any offset cuts.

The map only names places, for rulers, for goals ("a cut inside a 4-byte character") and for choosing cuts.
No verdict rests on it, so on damaged bytes it may name a place loosely.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from .framing import Framing, Line, LineKind

_UTF8 = (
    "inside a 4-byte character",
    "inside a 3-byte character",
    "inside a 2-byte character",
    "inside a broken character",
)
_JSON = (
    "inside a surrogate pair escape",
    "inside a JSON escape",
    "inside a JSON number",
    "inside a JSON literal",
    "inside a JSON key",
    "at a JSON brace",
    "inside a JSON string",
    "inside a JSON value",
)
_BOM = ("inside the byte order mark", "after the byte order mark")
_LINE_ENDS = (
    "inside the CRLF of a blank line",
    "inside CRLF",
    "between the two line ends of a blank line",
    "before a line end",
    "between frames",
)

PLACES: Mapping[str, tuple[str, ...]] = {
    "sse": (
        *_BOM,
        *_UTF8[:3],
        *_LINE_ENDS,
        "inside a field name",
        "before the colon",
        "after the colon",
        "after the space",
        "inside the [DONE] sentinel",
        *_JSON[:2],
        "between lines",
        "inside a comment",
        "inside a field value",
        *_JSON[2:],
        "inside a text value",
        _UTF8[3],
    ),
    "ndjson": (*_BOM, *_UTF8[:3], *_LINE_ENDS, "inside a blank line", *_JSON, _UTF8[3]),
    "json": (*_BOM, *_UTF8[:3], *_JSON, _UTF8[3]),
}
"""Every name that a place can have in a framing, those where readers break most often first."""

COMMONPLACE = frozenset({"inside a JSON string", "inside a JSON value", "inside a text value", "inside a JSON key"})
"""Places of which streams are full, and in which all cuts are much alike."""

_CHARACTER = re.compile(
    rb"(?P<four>[\xf0-\xf4][\x80-\xbf]{3})|(?P<three>[\xe0-\xef][\x80-\xbf]{2})|(?P<two>[\xc2-\xdf][\x80-\xbf])"
    rb"|(?P<broken>[\x80-\xff][\x80-\xbf]+)"
)
_CHARACTER_PLACES = dict(zip(("four", "three", "two", "broken"), _UTF8, strict=True))

_TOKEN = re.compile(
    rb'(?P<key>"[^"\\]*+(?:\\.[^"\\]*+)*+"(?=[ \t\r\n]*:))|(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))'
    rb"|(?P<brace>[][{}])|(?P<number>-?[0-9][0-9.eE+-]*)|(?P<literal>[A-Za-z]+)",
    re.DOTALL,
)
_TOKEN_PLACES = {
    "key": "inside a JSON key",
    "string": "inside a JSON string",
    "number": "inside a JSON number",
    "literal": "inside a JSON literal",
}
_ESCAPE = re.compile(rb"(?P<pair>\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u.{0,4}|\\.", re.DOTALL)

_SENTINEL = b"[DONE]"


@dataclass(frozen=True)
class Wire:
    """The bytes of a stream and how they are framed.  The map is made when it is first asked for."""

    data: bytes
    framing: Framing

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The layout of the bytes, see :class:`~.framing.Line`."""
        return self.framing.lines(self.data)

    @cached_property
    def _places(self) -> tuple[str, ...]:
        return _map(self.data, self.lines)

    @cached_property
    def _starts(self) -> list[int]:
        return [line.start for line in self.lines]

    def places(self) -> tuple[str, ...]:
        """The place of every cut that divides the bytes: element ``i`` is the cut at offset ``i + 1``."""
        return self._places

    def place(self, offset: int) -> str:
        """What a cut at ``offset`` cuts, in plain words, the most specific of :data:`PLACES`.

        Raises:
            ValueError: the cut does not have bytes on both sides.
        """
        if not 0 < offset < len(self.data):
            raise ValueError(f"a cut at {offset} does not divide {len(self.data)} bytes")
        return self._places[offset - 1]

    def field(self, offset: int) -> tuple[int, LineKind, int]:
        """Where the byte at ``offset`` stands.

        Returns:
            The index of its frame, the kind of its line, and its offset in the line's value: negative before
            the value, and at least the value's length in the line end.

        Raises:
            ValueError: there is no such byte.
        """
        if not 0 <= offset < len(self.data):
            raise ValueError(f"no byte at {offset} among {len(self.data)}")
        line = self.lines[bisect_right(self._starts, offset) - 1]
        return line.frame, line.kind, offset - line.value


def _map(data: bytes, lines: Sequence[Line]) -> tuple[str, ...]:
    # Index i is the cut at offset i.  Broad names are written first and narrower ones over them; each byte
    # is written a bounded number of times, so the whole is linear.
    names = [""] * (len(data) + 1)
    before: LineKind | None = None
    json_frame = -1
    for line in lines:
        names[line.start] = _boundary(before, line)
        _fill_line(names, line)
        if line.kind == "json":
            _fill_json(names, data, line)
        elif line.kind == "data" and line.value < line.end:
            if data[line.value : line.end] == _SENTINEL:
                _fill(names, line.value, line.end, "inside the [DONE] sentinel")
            elif line.frame == json_frame or data[line.value] in b'{["':
                # One JSON text over several data lines is recognised by its first.
                json_frame = line.frame
                _fill_json(names, data, line)
        before = line.kind
    if not data.isascii():
        for match in _CHARACTER.finditer(data):
            _fill(names, match.start(), match.end(), _CHARACTER_PLACES[match.lastgroup or ""])
    if lines and lines[0].kind == "bom":
        _fill(names, 0, lines[0].stop, "inside the byte order mark")
    return tuple(names[1:-1])


def _fill(names: list[str], start: int, end: int, name: str) -> None:
    """Name every cut strictly inside ``[start, end)``."""
    if end - start > 1:
        names[start + 1 : end] = [name] * (end - start - 1)


def _boundary(before: LineKind | None, line: Line) -> str:
    """The name of a cut between two lines."""
    if before == "bom":
        return "after the byte order mark"
    if line.kind == "blank" and before != "blank":
        return "between the two line ends of a blank line"
    return "between frames" if before in ("blank", "json") else "between lines"


_VALUES: Mapping[LineKind, str] = {
    "data": "inside a text value",
    "comment": "inside a comment",
    "blank": "inside a blank line",
    "json": "inside a JSON value",
}


def _fill_line(names: list[str], line: Line) -> None:
    """Name the cuts inside one line by the parts of the line alone."""
    inside = _VALUES.get(line.kind, "inside a field value")
    if line.kind == "comment":
        _fill(names, line.start, line.end, inside)
    else:
        _fill(names, line.start, line.name_end, "inside a field name")
        _fill(names, line.value, line.end, inside)
        if line.start < line.name_end < line.value:
            names[line.value] = "after the space"
            names[line.name_end] = "before the colon"
            names[line.name_end + 1] = "after the colon"
    if line.start < line.end < line.stop:
        names[line.end] = "before a line end"
    _fill(
        names,
        line.end,
        line.stop,
        "inside CRLF" if line.kind != "blank" else "inside the CRLF of a blank line",
    )


def _fill_json(names: list[str], data: bytes, line: Line) -> None:
    """Name the cuts inside a line's value by the JSON tokens that they cut."""
    first, last = line.value, line.end
    _fill(names, first, last, "inside a JSON value")
    for match in _TOKEN.finditer(data, first, last):
        start, end = match.span()
        kind = match.lastgroup or ""
        if kind == "brace":
            if start > first:
                names[start] = "at a JSON brace"
            if end < last:
                names[end] = "at a JSON brace"
            continue
        _fill(names, start, end, _TOKEN_PLACES[kind])
        if kind in ("key", "string") and data.find(b"\\", start, end) >= 0:
            for escape in _ESCAPE.finditer(data, start, end):
                pair = escape.lastgroup == "pair"
                _fill(
                    names,
                    *escape.span(),
                    "inside a surrogate pair escape" if pair else "inside a JSON escape",
                )
