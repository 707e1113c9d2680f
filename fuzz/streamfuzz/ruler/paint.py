"""The lines of a page in the colours of a terminal."""

from __future__ import annotations

from rich.text import Text

from .page import Line, Role

STYLES: dict[Role, str] = {
    "head": "bold",
    "number": "dim",
    "escape": "cyan",
    "cut": "bold red",
    "gap": "dim italic",
    "pointer": "bold yellow",
    "gave": "green",
    "good": "green",
    "bad": "bold red",
}
"""How a terminal with colours shows the parts of a line."""


def painted(line: Line) -> Text:
    """A line as rich prints it."""
    return Text.assemble(*((span.text, STYLES.get(span.role, "")) for span in line.spans))
