"""A case as text: the stream chunk by chunk, its bytes made readable, and where it is cut.

Plain lines without colour, so that they read the same in a terminal, in a log, and aloud.  A line of the stream
is a row of the ruler and ends in the line end that it has, so frames look like frames.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any

from streamfuzz_strategies import providers
from streamfuzz_strategies.stream import Event, Frame, Raw
from streamfuzz_strategies.wire import Wire

from .case import Case
from .legible import SPELLED, TIDY, broken, cells, compact, crop, printable, standing
from .spec import Delta, Final, Release, Snapshot
from .trace import Trace

__all__ = ["draw", "printable"]

ROWS = 24
"""Rows that the bytes of a case may take before stretches without a cut or mark are left out."""

CONTEXTS = (400, 200, 100, 50, 24)
"""Bytes kept on each side of a cut or mark where stretches are left out, tried from wide to narrow."""

WORTH = 40
"""The fewest bytes that are worth leaving out."""

CROWD = 10
"""Chunks beyond which a chunk no longer gets rows of its own."""

GIVEN = 3
"""Items shown of what a target gave out after one chunk."""

MOMENTS = 6
"""Moments told at which something came out, where chunks have no rows of their own."""

NARROWEST = 24
"""Columns that the bytes get however narrow the page."""

_PROBES = {
    "isolated": "Two streams: the second is read once the first was cut off half way, and again while it is open.",
    "released": "The target is closed after its first, second and third item.",
    "resliced": "Two encodings of one message are read one after the other; they must give one result.",
    "parity": "The stream is read, and so is the same answer as the API gives it without streaming.",
    "growth-long": "One long event in small pieces is read at growing sizes, made when the case is run.",
    "growth-many": "Many small events in one chunk are read at growing sizes, made when the case is run.",
}
_ENDS = {"eof": "end of stream", "reset": "connection reset"}


@dataclass(frozen=True, slots=True)
class _Glyphs:
    cut: str
    gap: str
    gave: str


_UNICODE = _Glyphs("\u2503", "\u2026", "\u2192")
_ASCII = _Glyphs("|", "...", "->")


def draw(
    case: Case,
    *,
    width: int = 100,
    trace: Trace | None = None,
    marks: Sequence[int] = (),
    ascii: bool = False,  # noqa: A002 - the word for it
) -> list[str]:
    """Draw a case.

    Args:
        case: what to draw; a probe is drawn with a sentence that says what is done, and with both streams.
        width: columns of the page.
        trace: what the target did with it; what it gave out is then told after each chunk.
        marks: what to point at: offsets of bytes, or for cases of frames and events their indexes.  The
            length of the stream points at its end.
        ascii: use nothing but ASCII.

    Returns:
        Lines without line ends, free of control characters.  Long stretches far from any cut or mark are left
        out, and the line says how many bytes they have.
    """
    pen = _Pen(case, width, _ASCII if ascii else _UNICODE, ascii)
    if not case.probe:
        return pen.stream(case.chunks, ROWS, marks, trace)
    lines = list(pen.fold(_PROBES[case.probe]))
    if case.other:
        lines += ["first stream:", *pen.stream(case.chunks, ROWS // 2, marks, trace)]
        return [*lines, "second stream:", *pen.stream(case.other, ROWS // 2)]
    return lines + (pen.stream(case.chunks, ROWS, marks, trace) if case.chunks else [])


@dataclass(frozen=True, slots=True)
class _Token:
    """Bytes ``[start, stop)`` and how they are written; ``ends``: a line of the stream ends here."""

    start: int
    stop: int
    text: str
    ends: bool = False


_PIECE = re.compile(rb"\r\n|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|.", re.DOTALL)


def _tokens(data: bytes, cuts: frozenset[int], *, text: bool, plain: bool) -> Iterator[_Token]:
    """What is written as one: characters, CRLF, and the single bytes of what is cut in two or broken."""
    for match in _PIECE.finditer(data):
        start, stop = match.span()
        piece = match[0]
        if piece in (b"\r", b"\n", b"\r\n"):
            if stop - start == 2 and start + 1 in cuts:
                yield _Token(start, start + 1, r"\r")
                yield _Token(start + 1, stop, r"\n", ends=True)
            else:
                yield _Token(start, stop, "".join(map(SPELLED.__getitem__, piece.decode())), ends=True)
            continue
        try:
            whole = piece.decode("utf-8", "surrogatepass" if text else "strict")
        except UnicodeDecodeError:
            whole = ""
        if whole and cuts.isdisjoint(range(start + 1, stop)):
            yield _Token(start, stop, standing(whole, plain))
        else:
            yield from (_Token(start + n, start + n + 1, f"\\x{byte:02X}") for n, byte in enumerate(piece))


def _without_stretches(tokens: Sequence[_Token], keep: Sequence[int], context: int, gap: str) -> list[_Token]:
    """Leave out what is further than ``context`` bytes from every offset to keep, by whole lines if it can be."""
    made: list[_Token] = []
    position = 0
    starts = [token.start for token in tokens]
    for before, after in pairwise(keep):
        first, last = bisect_right(starts, before + context), bisect_right(starts, after - context) - 1
        if last < 0 or last - first < WORTH:
            continue
        lines = [n for n in range(first, last + 1) if tokens[n - 1].ends]
        frames = [n for n in lines if n > 1 and tokens[n - 2].ends]
        for places in (lines, frames):
            if places and places[-1] - places[0] >= max(WORTH, (last - first) // 2):
                first, last = places[0], places[-1]
        start, stop = tokens[first].start, tokens[last].start
        made += tokens[position:first]
        made.append(_Token(start, stop, f"{gap} {stop - start} bytes {gap}", ends=tokens[last - 1].ends))
        position = last
    return [*made, *tokens[position:]]


@dataclass(slots=True)
class _Row:
    """A line of the page: tokens, and the chunk that begins with it (``None``: it goes on)."""

    tokens: list[_Token]
    chunk: int | None = None
    offset: int | None = None
    cut: int | None = None  # the offset of the cut at its end


class _Pen:
    """Draws streams of one case on a page of a given width."""

    def __init__(self, case: Case, width: int, glyphs: _Glyphs, plain: bool) -> None:
        self.case = case
        self.width = width
        self.glyphs = glyphs
        self.plain = plain
        self.gap = f" {glyphs.gap} "

    def stream(
        self, chunks: Sequence[Any], rows: int, marks: Sequence[int] = (), trace: Trace | None = None
    ) -> list[str]:
        if self.case.takes not in ("bytes", "text"):
            return self.items(chunks, rows, marks, trace)
        pieces = [c if isinstance(c, bytes) else c.encode("utf-8", "surrogatepass") for c in chunks]
        drawing = _Wire(self, pieces, frozenset(marks), trace)
        return drawing.lines(rows)

    def fold(self, text: str, indent: str = "") -> Iterator[str]:
        """Words on as many lines as they need."""
        line = ""
        for word in text.split():
            if line and len(indent) + len(line) + 1 + len(word) > self.width:
                yield indent + line
                line = word
            else:
                line = f"{line} {word}" if line else word
        yield indent + line

    # -- cases of frames and events -------------------------------------------------------------------------------

    def items(self, chunks: Sequence[Any], rows: int, marks: Sequence[int], trace: Trace | None) -> list[str]:
        gutter = max(len(self.case.takes) - 1, len(str(len(chunks)))) + 2
        room = max(self.width - gutter, NARROWEST)
        kept = self._kept(len(chunks), rows, marks)
        each = room * max(1, rows // max(1, len(kept)))
        lines = [f"{self.case.takes[:-1]:>{gutter - 2}}"]
        lines += self.gave(trace, 0, 0, gutter)
        before = -1
        for index in kept:
            if index > before + 1:
                count = f"{index - before - 1} {self.case.takes}"
                lines.append(" " * gutter + f"{self.glyphs.gap} {count} {self.glyphs.gap}")
            text = crop(printable(_item(chunks[index], self.plain), plain=self.plain), each, self.gap)
            for number, row in enumerate(broken(text, room)):
                lines.append((f"{index + 1:>{gutter - 2}}  " if number == 0 else " " * gutter) + row)
            if index in marks:
                lines.append(" " * gutter + "^ here")
            lines += self.gave(trace, before + 2, index + 1, gutter)
            before = index
        if not chunks:
            lines.append(" " * gutter + f"(no {self.case.takes})")
        return lines + self.end(gutter, f"{'end':>{gutter - 2}}  ", len(chunks) in marks, len(chunks), trace)

    @staticmethod
    def _kept(count: int, rows: int, marks: Sequence[int]) -> list[int]:
        if count <= rows:
            return list(range(count))
        near = {mark + step for mark in marks for step in (-1, 0, 1)}
        return [n for n in range(count) if n < rows // 2 or n >= count - rows // 3 or n in near]

    # -- what the target did --------------------------------------------------------------------------------------

    def end(self, gutter: int, label: str, marked: bool, chunks: int, trace: Trace | None) -> list[str]:
        lines = [label + _ENDS[self.case.end]]
        if marked:
            lines.append(" " * gutter + "^ here")
        if trace is not None:
            lines += self.gave(trace, chunks + 1, chunks + 1, gutter)
            lines.append(self._told(_ended(trace, chunks, self.plain), gutter))
        return lines

    def gave(self, trace: Trace | None, first: int, last: int, gutter: int, when: str = "") -> list[str]:
        """What the target gave out after the chunks ``first`` to ``last``, counted from one."""
        if trace is None:
            return []
        items = [item for item, after in zip(trace.items, trace.after, strict=True) if first <= after <= last]
        told = _joined(items)
        lines = [self._told(f"{when}gave {_given(item, self.plain)}", gutter) for item in told[:GIVEN]]
        if len(told) > GIVEN:
            lines.append(self._told(f"{when}gave {len(told) - GIVEN} more", gutter))
        return lines

    def moments(self, trace: Trace | None, chunks: int, gutter: int) -> Iterator[str]:
        """The same for chunks that have no rows of their own: the first few at which something came out."""
        if trace is None:
            return
        after = sorted({number for number in trace.after if 0 < number <= chunks})
        for number in after[:MOMENTS]:
            yield from self.gave(trace, number, number, gutter, f"after chunk {number}: ")
        if len(after) > MOMENTS:
            yield self._told(f"and so on, up to chunk {after[-1]}", gutter)

    def _told(self, text: str, gutter: int) -> str:
        indent = " " * (gutter + 2) + self.glyphs.gave + " "
        return indent + crop(printable(text, plain=self.plain), max(self.width - len(indent), NARROWEST), self.gap)


class _Wire:
    """Draws a stream of bytes or text."""

    def __init__(self, pen: _Pen, chunks: Sequence[bytes], marks: frozenset[int], trace: Trace | None) -> None:
        self.pen = pen
        self.chunks = chunks
        self.marks = marks
        self.trace = trace
        self.data = b"".join(chunks)
        self.starts = [0, *accumulate(map(len, chunks))]
        self.cuts = frozenset(at for at in self.starts[1:] if 0 < at < len(self.data))
        self.crowd = len(chunks) > CROWD
        self.even = len(set(map(len, chunks))) == 1
        self.number = max(len("chunk"), len(str(len(chunks))))
        self.offset = max(len("byte"), len(str(len(self.data))))
        self.gutter = self.number + self.offset + 4
        self.room = max(pen.width - self.gutter, NARROWEST)
        self.wire = Wire(self.data, providers.get(pen.case.provider).framing)

    def lines(self, rows: int) -> list[str]:
        whole = list(_tokens(self.data, self.cuts, text=self.pen.case.takes == "text", plain=self.pen.plain))
        keep = sorted({0, len(self.data), *self.marks, *(() if self.crowd else self.cuts)})
        page = self._rows(whole)
        for context in CONTEXTS:
            if len(page) <= rows:
                break
            page = self._rows(_without_stretches(whole, keep, context, self.pen.glyphs.gap))
        return list(self._written(page))

    def _rows(self, tokens: Iterable[_Token]) -> list[_Row]:
        """Lay tokens out: a new row after each line end, after each cut unless they crowd, and when one is full."""
        rows: list[_Row] = []
        row: _Row | None = None
        waiting = [] if self.crowd else list(range(len(self.chunks)))
        column = 0
        for token in tokens:
            if row is None:
                row, column = _Row([], offset=token.start), 0
                while waiting and self.starts[waiting[0]] <= token.start:
                    number = waiting.pop(0)
                    if self.chunks[number]:
                        row.chunk = number
                    else:
                        rows.append(_Row([], number, self.starts[number]))
                rows.append(row)
            size = cells(self._spelled(token))
            if column + size >= self.room and row.tokens:
                row = _Row(_carried(row.tokens))
                rows.append(row)
                column = sum(cells(self._spelled(carried)) for carried in row.tokens)
            row.tokens.append(token)
            column += size
            if token.stop in self.cuts and not self.crowd:
                row.cut, row = token.stop, None
            elif token.ends:
                row = None
        return rows + [_Row([], number, self.starts[number]) for number in waiting]

    def _written(self, rows: Sequence[_Row]) -> Iterator[str]:
        yield f"{'chunk':>{self.number}}  {'byte':>{self.offset}}"
        if self.crowd:
            yield from self.pen.fold(self._crowd(), " " * self.gutter)
        if not self.chunks:
            yield " " * self.gutter + "(no bytes)"
        yield from self.pen.gave(self.trace, 0, 0, self.gutter)
        last = 0
        for row in rows:
            if row.chunk:
                yield from self.pen.gave(self.trace, last + 1, row.chunk, self.gutter)
                last = row.chunk
            yield self._margin(row) + (self._text(row) if row.tokens else "(empty chunk)")
            yield from self._under(row)
        if self.crowd:
            yield from self.pen.moments(self.trace, len(self.chunks), self.gutter)
        else:
            yield from self.pen.gave(self.trace, last + 1, len(self.chunks), self.gutter)
        label = f"{'end':>{self.number}}  {len(self.data):>{self.offset}}  "
        yield from self.pen.end(self.gutter, label, len(self.data) in self.marks, len(self.chunks), self.trace)

    def _crowd(self) -> str:
        count = len(self.chunks)
        if self.even:
            size = len(self.chunks[0])
            return f"({count} chunks of {size} {'byte' if size == 1 else 'bytes'} each)"
        empty = sum(1 for chunk in self.chunks if not chunk)
        and_empty = f", {empty} of them empty" if empty else ""
        return f"({count} chunks{and_empty}; {self.pen.glyphs.cut} stands where one ends)"

    def _margin(self, row: _Row) -> str:
        chunk = offset = ""
        if self.crowd and row.offset is not None:
            chunk, offset = str(bisect_right(self.starts, row.offset)), str(row.offset)
        elif row.chunk is not None:
            chunk, offset = str(row.chunk + 1), str(self.starts[row.chunk])
        return f"{chunk:>{self.number}}  {offset:>{self.offset}}  "

    def _spelled(self, token: _Token) -> str:
        """The token, with the mark of a cut behind it where cuts do not end their row."""
        crowded = self.crowd and not self.even and token.stop in self.cuts
        return token.text + self.pen.glyphs.cut if crowded else token.text

    def _text(self, row: _Row) -> str:
        last = row.tokens[-1]
        breaks_off = not last.ends and (row.cut is not None or last.stop == len(self.data))
        return "".join(map(self._spelled, row.tokens)) + (self.pen.glyphs.cut if breaks_off else "")

    def _under(self, row: _Row) -> Iterator[str]:
        """The lines below a row: one points at its marked bytes, one names what the cut at its end cuts."""
        pointer, column = "", 0
        for token in row.tokens:
            size = cells(self._spelled(token))
            if not self.marks.isdisjoint(range(token.start, token.stop)):
                pointer = pointer.ljust(column) + "^" * size
            column += size
        labels = [_labelled(pointer, "here", self.room)] if pointer else []
        if row.cut is not None:
            labels.append(_labelled(" " * column + "^", f"cut {self.wire.place(row.cut)}", self.room))
        yield from (" " * self.gutter + line for line in chain.from_iterable(labels))


def _carried(tokens: list[_Token]) -> list[_Token]:
    """Take off the end of a full row what reads better on the next: all behind its last comma or colon."""
    for places in (", ", ":{["):
        for back in range(1, min(TIDY, len(tokens) - 1)):
            if tokens[-back].text in places:
                return [tokens.pop() for _ in range(back - 1)][::-1]
    return []


def _labelled(pointer: str, label: str, room: int) -> Iterator[str]:
    """Carets with their label: behind them, before them where the page ends, or below them."""
    carets = pointer.lstrip(" ")
    before = len(pointer) - len(carets) - 1
    if len(pointer) + 1 + len(label) <= room:
        yield f"{pointer} {label}"
    elif len(label) <= before:
        yield f"{label:>{before}} {carets}"
    else:
        yield pointer
        yield from (f"{part:>{room}}" for part in broken(label, room))


def _item(item: Frame | Event, plain: bool) -> str:
    """A frame or an event as compact JSON, without what it does not say."""
    if isinstance(item, Frame):
        silent = Frame("")
        said = {name: getattr(item, name) for name in ("event", "data", "id", "retry")}
        return compact({n: v for n, v in said.items() if n == "data" or v != getattr(silent, n)}, plain)
    name = f"{item.name} " if item.name is not None else ""
    return name + (item.data.text if isinstance(item.data, Raw) else compact(item.data, plain))


def _joined(items: Iterable[Any]) -> list[Any]:
    """The items with neighbouring pieces of one field joined."""
    made: list[Any] = []
    for item in items:
        last = made[-1] if made else None
        if isinstance(item, Delta) and isinstance(last, Delta) and item.field == last.field:
            made[-1] = Delta(last.text + item.text, item.field)
        else:
            made.append(item)
    return made


def _given(item: Any, plain: bool) -> str:
    if isinstance(item, Delta):
        return f"{item.field} {item.text!r}"
    if isinstance(item, Snapshot):
        return f"the whole so far: {compact(item.view, plain)}"
    if isinstance(item, Release):
        return f"a tool call to act on: {compact(item.call, plain)}"
    if isinstance(item, Final):
        return f"the final message: {compact(item.view, plain)}"
    return compact(item, plain)


def _ended(trace: Trace, chunks: int, plain: bool) -> str:
    """How the target ended, and after how many chunks if it did not wait for all of them."""
    early = f", after {trace.taken} of {chunks} chunks" if trace.taken < chunks else ""
    if trace.failure is not None:
        return f"ended with {trace.failure.type}{early}: {trace.failure.message}"
    if trace.ending == "hang":
        return f"did not end{early}"
    result = f": {compact(trace.result, plain)}" if trace.result is not None else ""
    return f"ended as {trace.ending}{early}{result}"
