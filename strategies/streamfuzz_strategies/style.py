"""How a stream is spelled: everything about its bytes that a reader must not care about.

A style is a small frozen value, the same for every framing; a framing uses the parts that it knows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .reply import Json

Eol: TypeAlias = Literal["\n", "\r", "\r\n"]
Insert: TypeAlias = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Style:
    r"""One lawful way to write a stream.

    Attributes:
        eols: line ends, used in turn, so one element is a uniform stream and several a mixed one.
        bom: begin with a byte order mark (SSE only).
        space: write the optional space after the colon (SSE only).
        bare_names: write a field whose value is empty as its name alone (SSE only).
        inserts: whole lines without their line end (comments, unknown fields, ``id``, ``retry``, blank lines
            as ``""``), each with the number of the line of the plain stream before which it stands; a number
            past the end means after everything.  SSE: any such line.  NDJSON: only ``""`` makes sense.
        fold: say that payloads with line feeds, which ``indent`` makes, are meant (SSE: several data lines).
        event_last: write the ``event`` line after the data (SSE only).
        final_eol: end the last line (NDJSON only; SSE always needs it).
        separators: item and key separators of the JSON spelling.
        ascii: escape every character beyond ASCII, as surrogate pairs where needed.
        escape_slash: write ``/`` as ``\\/``.
        indent: pretty-print with newlines (SSE: only together with ``fold``).
        sort_keys: write object members in sorted order (``None``: as they are, ``False``: reversed).
    """

    eols: tuple[Eol, ...] = ("\n",)
    bom: bool = False
    space: bool = True
    bare_names: bool = False
    inserts: tuple[Insert, ...] = ()
    fold: bool = False
    event_last: bool = False
    final_eol: bool = True
    separators: tuple[str, str] = (",", ":")
    ascii: bool = False
    escape_slash: bool = False
    indent: int | None = None
    sort_keys: bool | None = None

    def spell(self, value: Json) -> str:
        """Write a JSON value in this style.  Lone surrogates are always escaped: UTF-8 cannot hold them."""
        if self.sort_keys is not None:
            value = _ordered(value, reverse=not self.sort_keys)
        text = json.dumps(value, ensure_ascii=self.ascii, separators=self.separators, indent=self.indent)
        if self.escape_slash:
            text = text.replace("/", "\\/")
        if not self.ascii and not text.isascii():
            text = "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text)
        return text


PLAIN = Style()
"""LF, a space after the colon, compact JSON in UTF-8: what most providers send."""


def _ordered(value: Json, *, reverse: bool) -> Json:
    if isinstance(value, dict):
        return {key: _ordered(value[key], reverse=reverse) for key in sorted(value, reverse=reverse)}
    if isinstance(value, list):
        return [_ordered(item, reverse=reverse) for item in value]
    return value
