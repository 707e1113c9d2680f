r"""Text that can be shown: what does not print as itself is escaped, and what is too long is cropped.

The escapes are ones that JSON does not have (``\xE4``, ``\u{2028}``), so that one of them is never taken for a
part of a stream.  Only ``\n``, ``\r`` and ``\t`` are spelled as everyone does.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator

from streamfuzz_strategies.reply import Json

TIDY = 24
"""How far back from the end of a full row a better place to break it is looked for."""

SPELLED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
"""The escapes that everyone knows."""


def printable(text: str, *, plain: bool = False) -> str:
    r"""Text on one line with everything escaped that does not print as itself.

    Control characters could drive a terminal and bidirectional ones reorder what stands around them, so they
    come out as ``\x1B`` and ``\u{202E}``.

    Args:
        text: any text, lone surrogates too.
        plain: escape whatever is not ASCII as well.
    """
    if text.isprintable() and (not plain or text.isascii()):
        return text
    return "".join(c if c.isprintable() and (not plain or c.isascii()) else _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    return SPELLED.get(character) or (f"\\x{code:02X}" if code < 0x80 else f"\\u{{{code:X}}}")


def standing(character: str, plain: bool) -> str:
    """A character for the ruler, where each must keep its place in the order of the bytes."""
    if " " <= character <= "~":
        return character
    moves = unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Mc")
    if moves or unicodedata.bidirectional(character) in ("R", "AL", "AN"):
        return _escape(character)
    return printable(character, plain=plain)


def cells(text: str) -> int:
    """How many columns of a terminal a printable text takes."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def crop(text: str, room: int, gap: str) -> str:
    """Text in so many cells; what is too long loses its middle, for which ``gap`` stands."""
    if cells(text) <= room:
        return text
    left = max(room - cells(gap), 2)
    head, tail = "", ""
    for character in text:
        if cells(head + character) > (left + 1) // 2:
            break
        head += character
    for character in reversed(text):
        if cells(character + tail) > left // 2:
            break
        tail = character + tail
    return head + gap + tail


def broken(text: str, room: int) -> Iterator[str]:
    """Text on rows of so many cells, each broken behind a comma or space if there is one near its end."""
    row, width = "", 0
    for character in text:
        size = cells(character)
        while width + size > room:
            tidy = max(row.rfind(place, max(0, len(row) - TIDY)) for place in ", ") + 1
            yield row[: tidy or None]
            row = row[tidy:] if tidy else ""
            width = cells(row)
        row += character
        width += size
    yield row


def compact(value: Json, plain: bool) -> str:
    """A JSON value on one line; what is no JSON is told as ``str`` tells it."""
    text = json.dumps(value, ensure_ascii=plain, separators=(",", ":"), default=str)
    # In JSON the escapes of JSON are the ones to use.
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
