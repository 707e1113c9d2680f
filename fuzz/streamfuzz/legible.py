r"""Text that can be shown: what does not print as itself is escaped, and what is too long is cropped.

The escapes are ones that JSON does not have (``\xE4``, ``\u{2028}``), so that one of them is never taken for a
part of a stream.  Only ``\n``, ``\r`` and ``\t`` are spelled as everyone does.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from rich.cells import get_character_cell_size

from streamfuzz_strategies.reply import Json

TIDY = 24
"""How far back from the end of a full row a better place to break it is looked for."""

SPELLED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
"""The escapes that everyone knows."""

_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_JOINING = (range(0x1F1E6, 0x1F200), range(0x1F3FB, 0x1F400))  # halves of flags, tones of skin

_ATOM = re.compile(r"\\x[0-9A-F]{2}|\\u\{[0-9A-F]+\}|.", re.DOTALL)


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
    return "".join(c if c.isprintable() and (not plain or c.isascii()) else escaped(c) for c in text)


def escaped(character: str) -> str:
    """A character as its escape."""
    code = ord(character)
    return SPELLED.get(character) or (f"\\x{code:02X}" if code < 0x80 else f"\\u{{{code:X}}}")


def standing(character: str, plain: bool) -> str:
    """A character for the ruler, where each must be seen and keep its place in the order of the bytes."""
    if " " <= character <= "~":
        return character
    return escaped(character) if plain or not _stands(character) else character


@lru_cache(maxsize=4096)
def _stands(character: str) -> bool:
    """Whether a character takes room of its own, is seen, and leaves its neighbours where and what they are."""
    return (
        character.isprintable()
        and get_character_cell_size(character) > 0
        and not unicodedata.combining(character)
        and unicodedata.category(character) not in ("Mn", "Me", "Mc")
        and unicodedata.bidirectional(character) not in ("R", "AL", "AN")
        and character not in _BLANK
        and not any(ord(character) in joining for joining in _JOINING)
    )


def exact(text: str, plain: bool) -> str:
    """Text for the ruler: each character seen, none moved or joined to another by what displays them."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(standing(character, plain) for character in text)


def cells(text: str) -> int:
    """How many columns of a terminal a printable text takes at most; exactly so many where each character stands."""
    return len(text) if text.isascii() else sum(map(_size, text))


def _size(character: str) -> int:
    # What takes no room by itself may make its neighbour wider.
    return max(1, get_character_cell_size(character))


def crop(text: str, room: int, gap: str) -> str:
    """Text in so many cells; what is too long loses its middle, for which ``gap`` stands."""
    if cells(text) <= room:
        return text
    head, _, tail = halved(text, room - cells(gap))
    return head + gap + tail


def halved(text: str, room: int) -> tuple[str, int, str]:
    """The beginning and the end of a text in so many cells together, and how many characters lie between."""
    left = max(room, 2)
    atoms = _ATOM.findall(text)
    head = list(_fitting(atoms, (left + 1) // 2))
    tail = list(_fitting(reversed(atoms), left // 2))[::-1]
    return "".join(head), max(0, len(atoms) - len(head) - len(tail)), "".join(tail)


def _fitting(atoms: Iterable[str], room: int) -> Iterator[str]:
    for atom in atoms:
        room -= cells(atom)
        if room < 0:
            return
        yield atom


def broken(text: str, room: int) -> Iterator[str]:
    """Text on rows of so many cells, each broken behind a comma or space if there is one near its end."""
    row: list[str] = []
    width = 0
    for atom in _ATOM.findall(text):
        size = cells(atom)
        while width + size > room and row:
            tidy = next(
                (back for back, one in enumerate(islice(reversed(row), min(TIDY, len(row) // 2))) if one in ", "), 0
            )
            split = len(row) - tidy
            yield "".join(row[:split])
            row = row[split:]
            width = sum(map(cells, row))
        row.append(atom)
        width += size
    yield "".join(row)


def compact(value: Json, plain: bool) -> str:
    """A JSON value on one line; what is no JSON is told as ``str`` tells it."""
    text = json.dumps(value, ensure_ascii=plain, separators=(",", ":"), default=str)
    # In JSON the escapes of JSON are the ones to use.
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
