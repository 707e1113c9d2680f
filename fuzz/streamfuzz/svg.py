"""Draws lines of the page as a picture: an SVG whose text can be selected, found, and read aloud.

It needs no font but a monospaced one that is there, follows the reader's choice of light or dark, and holds
nothing but text, so that what comes from a stream stays what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from .legible import cells
from .ruler import Line, Role

SIZE = 14
"""Pixels of the type."""

CELL = 8.43
"""Pixels of a column: the advance of the common monospaced fonts at that size."""

LEADING = 21
"""Pixels from one line to the next."""

MARGIN = 20
"""Pixels around the text."""

FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

_COLOURS: dict[str, tuple[str, str]] = {
    "page": ("#ffffff", "#0d1117"),
    "bytes": ("#1f2328", "#f0f6fc"),
    "note": ("#59636e", "#9198a1"),
    "escape": ("#0550ae", "#79c0ff"),
    "cut": ("#cf222e", "#ff7b72"),
    "pointer": ("#953800", "#ffa657"),
    "gave": ("#116329", "#7ee787"),
}
"""Each colour on light and on dark; every one has at least 4.5 times the contrast of the page."""

_BORDER = ("#d1d9e0", "#3d444d")

_LIKE: dict[Role, str] = {"head": "bytes", "number": "note", "gap": "note", "good": "gave", "bad": "cut"}
"""Parts of a line that have the colour of another."""

_BOLD = ("head", "cut", "pointer", "bad")

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def picture(lines: Sequence[Line], *, title: str, description: str) -> str:
    """Draw lines.

    Args:
        lines: of the page.
        title: what the picture shows, in one sentence.
        description: the same as the lines for those who do not see them.

    Returns:
        A whole SVG document.  Equal lines give equal documents.
    """
    width = round(max((cells(line.text) for line in lines), default=0) * CELL) + 2 * MARGIN
    height = len(lines) * LEADING + 2 * MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' role="img" aria-labelledby="title description">'
    )
    frame = f'<rect class="page" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>'
    return "\n".join(
        (
            head,
            f'<title id="title">{_safe(title)}</title>',
            f'<desc id="description">{_safe(description)}</desc>',
            f"<style>\n{_style()}</style>",
            frame,
            *(_line(line, number) for number, line in enumerate(lines)),
            "</svg>\n",
        )
    )


def _style() -> str:
    return "\n".join(
        (
            f"text {{ font: {SIZE}px {FONTS}; white-space: pre; }}",
            f"{_classes(_BOLD)} {{ font-weight: bold; }}",
            *_fills(0),
            "@media (prefers-color-scheme: dark) {",
            *_fills(1),
            "}\n",
        )
    )


def _fills(which: int) -> Iterator[str]:
    for name, colours in _COLOURS.items():
        classes = _classes((name, *(role for role, like in _LIKE.items() if like == name)))
        yield f"{classes} {{ fill: {colours[which]}; }}"
    yield f".page {{ stroke: {_BORDER[which]}; }}"


def _classes(names: Iterable[str]) -> str:
    return ", ".join(f".{name}" for name in names)


def _line(line: Line, number: int) -> str:
    column = 0
    parts = []
    for span in line.spans:
        for run in _RUNS.findall(span.text):
            x, length = MARGIN + column * CELL, cells(run) * CELL
            parts.append(
                f'<tspan class="{span.role}" x="{x:.6g}" textLength="{length:.6g}" lengthAdjust="spacingAndGlyphs">'
                f"{_safe(run)}</tspan>"
            )
            column += cells(run)
    return f'<text xml:space="preserve" y="{MARGIN + number * LEADING + SIZE + 1}">{"".join(parts)}</text>'


_RUNS = re.compile("[ -~]+|[^ -~]")
"""Stretches of one width: each character that another font may have to draw is placed by itself."""


def _safe(text: str) -> str:
    return escape(_ILLEGAL.sub("\ufffd", text), quote=False)
