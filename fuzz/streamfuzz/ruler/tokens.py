"""The bytes of a stream as they are written: characters, escapes, and what stands for stretches left out."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from ..legible import SPELLED, standing
from .page import Role

WORTH = 40
"""The fewest bytes that are worth leaving out."""

_PIECE = re.compile(rb"\r\n|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|.", re.DOTALL)
_LOOKS_ESCAPED = re.compile(rb"x[0-9A-F]{2}|u\{")


@dataclass(frozen=True, slots=True)
class Token:
    """Bytes ``[start, stop)`` and how they are written; ``ends``: a line of the stream ends here."""

    start: int
    stop: int
    text: str
    role: Role = "bytes"
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Spelling:
    """How bytes are written.

    Attributes:
        cuts: offsets at which the stream is cut; what is cut in two is written as single bytes.
        text: whether the stream is text, where half a surrogate pair is a character too.
        plain: whether nothing but ASCII may be written.
        reserved: the mark of a cut, which a stream may not imitate.
    """

    cuts: Set[int]
    text: bool
    plain: bool
    reserved: str

    def tokens(self, data: bytes, start: int, stop: int) -> Iterator[Token]:
        """What is written as one: characters, CRLF, and the single bytes of what is cut in two or broken."""
        for match in _PIECE.finditer(data, start, stop):
            piece = match[0]
            if piece in (b"\r", b"\n", b"\r\n"):
                yield from self._line_end(piece, *match.span())
            else:
                yield from self._character(piece, *match.span(), data)

    def _line_end(self, piece: bytes, start: int, stop: int) -> Iterator[Token]:
        if stop - start == 2 and start + 1 in self.cuts:
            yield Token(start, start + 1, r"\x0D", "escape")
            yield Token(start + 1, stop, r"\n", "escape", ends=True)
        else:
            yield Token(start, stop, "".join(map(SPELLED.__getitem__, piece.decode())), "escape", ends=True)

    def _character(self, piece: bytes, start: int, stop: int, data: bytes) -> Iterator[Token]:
        try:
            whole = piece.decode("utf-8", "surrogatepass" if self.text else "strict")
        except UnicodeDecodeError:
            whole = ""
        if not whole or not self.cuts.isdisjoint(range(start + 1, stop)):
            yield from (Token(start + n, start + n + 1, f"\\x{byte:02X}", "escape") for n, byte in enumerate(piece))
        elif whole == "\t" or (whole == "\\" and _LOOKS_ESCAPED.match(data, stop)):
            # JSON text is full of \t, and what is written \xE4 must not be taken for the byte.
            yield Token(start, stop, f"\\x{ord(whole):02X}", "escape")
        elif whole == self.reserved:
            yield Token(start, stop, f"\\x{ord(whole):02X}" if whole.isascii() else f"\\u{{{ord(whole):X}}}", "escape")
        else:
            spelled = standing(whole, self.plain)
            yield Token(start, stop, spelled, "bytes" if spelled == whole else "escape")


def stretches(length: int, keep: Sequence[int], context: int) -> Iterator[tuple[int, int]]:
    """The spans ``[start, stop)`` of a stream within so many bytes of an offset to keep, in order."""
    first = last = 0
    for offset in keep:
        if offset - context > last + WORTH:
            yield first, last
            first = offset - context
        last = min(offset + context, length)
    yield first, last


def boundary(data: bytes, offset: int) -> int:
    """The last offset up to this one that is not inside a character or a CRLF, as far as that is to be told."""
    for back in range(4):
        at = offset - back
        if at <= 0 or at >= len(data):
            return max(0, min(at, len(data)))
        if data[at] & 0xC0 != 0x80 and data[at - 1 : at + 1] != b"\r\n":
            return at
    return offset


def divided(data: bytes, cuts: Set[int], offset: int) -> tuple[str, list[str]] | None:
    """The character that a cut divides, and its bytes in hex on each side; ``None``: it divides none."""
    start = boundary(data, offset)
    lead = data[start]
    stop = start + (1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4)
    try:
        whole = data[start:stop].decode()
    except UnicodeDecodeError:
        return None
    if not start < offset < stop or len(whole) != 1:
        return None
    inside = [start, *sorted(cut for cut in cuts if start < cut < stop), stop]
    return whole, [data[a:b].hex(" ").upper() for a, b in pairwise(inside)]


def gap(start: int, stop: int, form: str, *, ends: bool) -> Token:
    """What stands for bytes left out; ``form`` is its text but for their number."""
    return Token(start, stop, form.format(stop - start), "gap", ends)


def without_stretches(tokens: Sequence[Token], keep: Sequence[int], context: int, form: str) -> list[Token]:
    """Leave out what is further than ``context`` bytes from every offset to keep, by whole lines if it can be."""
    made: list[Token] = []
    position = 0
    starts = [token.start for token in tokens]
    for before, after in pairwise(keep):
        first, last = bisect_right(starts, before + context), bisect_right(starts, after - context) - 1
        if last < 0 or last <= first or starts[last] - starts[first] < WORTH:
            continue
        lines = [n for n in range(first, last + 1) if tokens[n - 1].ends]
        frames = [n for n in lines if n > 1 and tokens[n - 2].ends]
        for places in (lines, frames):
            if places and starts[places[-1]] - starts[places[0]] >= max(WORTH, (starts[last] - starts[first]) // 2):
                first, last = places[0], places[-1]
        made += tokens[position:first]
        made.append(gap(starts[first], starts[last], form, ends=tokens[last - 1].ends))
        position = last
    return [*made, *tokens[position:]]
