"""Draws a stream of bytes or text, with its cuts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby, pairwise
from typing import Any

from streamfuzz_strategies import providers
from streamfuzz_strategies.wire import Wire

from ..case import Case
from ..legible import TIDY, broken, cells, standing
from ..trace import Trace
from .page import Line, Page, Role, Span
from .tokens import Spelling, Token, boundary, divided, gap, stretches, without_stretches
from .told import ENDS, Doings

CROWD = 10
"""Chunks beyond which a chunk gets no rows of its own, where the rows are few."""

CONTEXT = 24
"""The fewest bytes kept on each side of a cut or mark where stretches are left out."""


def wire(page: Page, case: Case, chunks: Sequence[Any], marks: Sequence[int], trace: Trace | None) -> list[Line]:
    """Draw it; see :func:`.draw`."""
    pieces = [chunk if isinstance(chunk, bytes) else chunk.encode("utf-8", "surrogatepass") for chunk in chunks]
    drawing = _Drawing(page, case, pieces, frozenset(marks), trace)
    return list(drawing.written(drawing.rows()))


@dataclass(slots=True)
class _Row:
    """A line of the page: tokens, and the chunk that begins with it (``None``: it goes on)."""

    tokens: list[Token]
    chunk: int | None = None
    offset: int | None = None
    cut: int | None = None  # the offset of the cut at its end


class _Drawing:
    def __init__(
        self, page: Page, case: Case, chunks: Sequence[bytes], marks: frozenset[int], trace: Trace | None
    ) -> None:
        self.page, self.case, self.chunks, self.marks = page, case, chunks, marks
        self.data = b"".join(chunks)
        self.starts = [0, *accumulate(map(len, chunks))]
        self.cuts = frozenset(at for at in self.starts[1:] if 0 < at < len(self.data))
        self.crowd = page.rows is not None and len(chunks) > max(CROWD, page.rows // 3)
        self.even = len(set(map(len, chunks))) == 1
        self.number = max(len("chunk"), len(str(len(chunks))))
        self.offset = max(len("byte"), len(str(len(self.data))))
        self.gutter = 2 if page.stacked else self.number + self.offset + 4
        self.room = page.width - self.gutter
        self.doings = Doings(page, case, trace, self.gutter)
        self.spelling = Spelling(self.cuts, case.takes == "text", page.plain, page.glyphs.cut)
        sign = page.glyphs.gap
        self.gap = f"{sign}{{}} bytes" if page.stacked else f"{sign} {{}} bytes {sign}"
        self.wire = Wire(self.data, providers.get(case.provider).framing)

    # -- laying out -----------------------------------------------------------------------------------------------

    def rows(self) -> list[_Row]:
        """The rows, with as much left out as is needed to get by with those that the page has."""
        if self.page.rows is None:
            return self._laid(self.spelling.tokens(self.data, 0, len(self.data)))
        keep = sorted({0, len(self.data), *self.marks, *(() if self.crowd else self.cuts)})
        room = self.page.rows * self.room
        context = room if len(self.data) <= room else max(room // len(keep), CONTEXT)
        whole = list(self._near(keep, context))
        rows = self._laid(whole)
        while len(rows) > self.page.rows and context > CONTEXT:
            context = max(context // 2, CONTEXT)
            rows = self._laid(without_stretches(whole, keep, context, self.gap))
        return rows

    def _near(self, keep: Sequence[int], context: int) -> Iterator[Token]:
        """The tokens that may be shown; no time is spent on a megabyte of others."""
        spans = [(boundary(self.data, a), boundary(self.data, b)) for a, b in stretches(len(self.data), keep, context)]
        for (_, before), (start, stop) in pairwise([(0, 0), *spans]):
            if start > before:
                ends = self.data[start - 1 : start] in (b"\n", b"\r")
                yield gap(before, start, self.gap, ends=ends)
            yield from self.spelling.tokens(self.data, start, stop)

    def _laid(self, tokens: Iterable[Token]) -> list[_Row]:
        """Lay tokens out: a new row after each line end, after each cut unless they crowd, and when one is full."""
        rows: list[_Row] = []
        row: _Row | None = None
        following = len(self.chunks) if self.crowd else 0  # the next chunk to begin a row
        column = 0
        for token in tokens:
            if row is None:
                row, column = _Row([], offset=token.start), 0
                while following < len(self.chunks) and self.starts[following] <= token.start:
                    if self.chunks[following]:
                        row.chunk = following
                    else:
                        rows.append(_Row([], following, self.starts[following]))
                    following += 1
                rows.append(row)
            size = cells(self._spelled(token))
            if column + size >= self.room and row.tokens:
                carried = _carried(row.tokens)
                column = sum(cells(self._spelled(one)) for one in carried)
                if column + size >= self.room:  # what is left out is long for a token
                    row.tokens += carried
                    carried, column = [], 0
                row = _Row(carried)
                rows.append(row)
            row.tokens.append(token)
            column += size
            if token.stop in self.cuts and not self.crowd:
                row.cut, row = token.stop, None
            elif token.ends:
                row = None
        return rows + [_Row([], number, self.starts[number]) for number in range(following, len(self.chunks))]

    # -- writing --------------------------------------------------------------------------------------------------

    def written(self, rows: Sequence[_Row]) -> Iterator[Line]:
        page = self.page
        if not page.stacked:
            yield page.line((f"{'chunk':>{self.number}}  {'byte':>{self.offset}}", "number"))
        if self.crowd:
            yield from page.fold(self._crowd(), "note", self.gutter)
        if not self.chunks:
            yield page.line((" " * self.gutter + "(no bytes)", "note"))
        yield from self.doings.gave(0, 0)
        last = 0
        for row in rows:
            if row.chunk:
                yield from self.doings.gave(last + 1, row.chunk)
                last = row.chunk
            yield from self._row(row)
            yield from self._under(row)
        if self.crowd:
            yield from self.doings.among(len(self.chunks))
        else:
            yield from self.doings.gave(last + 1, len(self.chunks))
        length = len(self.data)
        number = f"end, byte {length}" if page.stacked else f"{'end':>{self.number}}  {length:>{self.offset}}  "
        yield from page.numbered(number, ENDS[self.case.end], "note", self.gutter)
        if length in self.marks:
            yield page.line((" " * self.gutter + "^ here", "pointer"))
        yield from self.doings.ended()

    def _crowd(self) -> str:
        count = len(self.chunks)
        if self.even:
            size = len(self.chunks[0])
            return f"({count} chunks of {size} {'byte' if size == 1 else 'bytes'} each)"
        empty = sum(1 for chunk in self.chunks if not chunk)
        and_empty = f", {empty} of them empty" if empty else ""
        return f"({count} chunks{and_empty}; {self.page.glyphs.cut} stands where one ends)"

    def _row(self, row: _Row) -> Iterator[Line]:
        number = self._number(row)
        if self.page.stacked:
            if number.strip():
                yield from self.page.fold(number, "number")
            number = " " * self.gutter
        if not row.tokens:
            yield self.page.line((number, "number"), ("(empty chunk)", "note"))
            return
        spans = list(chain.from_iterable(map(self._spans, row.tokens)))
        last = row.tokens[-1]
        if not last.ends and (row.cut is not None or last.stop == len(self.data)):
            spans.append(Span(self.page.glyphs.cut, "cut"))
        yield Line((Span(number, "number"), *_merged(spans)))

    def _number(self, row: _Row) -> str:
        chunk = offset = None
        if self.crowd and row.offset is not None:
            chunk, offset = bisect_right(self.starts, row.offset), row.offset
        elif row.chunk is not None:
            chunk, offset = row.chunk + 1, self.starts[row.chunk]
        if self.page.stacked:
            return f"chunk {chunk}, byte {offset}" if chunk is not None else ""
        return f"{'' if chunk is None else chunk:>{self.number}}  {'' if offset is None else offset:>{self.offset}}  "

    def _spans(self, token: Token) -> Iterator[Span]:
        """The token, with the mark of a cut behind it where cuts do not end their row."""
        yield Span(token.text, token.role)
        if self._crowded(token):
            yield Span(self.page.glyphs.cut, "cut")

    def _crowded(self, token: Token) -> bool:
        return self.crowd and not self.even and token.stop in self.cuts

    def _spelled(self, token: Token) -> str:
        return token.text + self.page.glyphs.cut if self._crowded(token) else token.text

    def _under(self, row: _Row) -> Iterator[Line]:
        """The lines below a row: one points at its marked bytes, one names what the cut at its end cuts."""
        pointer, column = "", 0
        for token in row.tokens:
            size = cells(self._spelled(token))
            if self.marks and not self.marks.isdisjoint(range(token.start, token.stop)):
                pointer = pointer.ljust(column) + "^" * size
            column += size
        labels = [_labelled(pointer, "here", self.room)] if pointer else []
        if row.cut is not None:
            labels.append(_labelled(" " * column + "^", self._cut(row.cut), self.room))
        for line in chain.from_iterable(labels):
            yield self.page.line((" " * self.gutter, "pointer"), (line, "pointer"))

    def _cut(self, offset: int) -> str:
        """What a cut cuts; of a character, which bytes stand on which side."""
        name = f"cut {self.wire.place(offset)}"
        parts = divided(self.data, self.cuts, offset)
        if parts is None:
            return name
        character, sides = parts
        shown = standing(character, self.page.plain)
        return f"{name}: {shown} is {f' {self.page.glyphs.cut} '.join(sides)}"


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Neighbours of one role as one."""
    for role, group in groupby(spans, key=_role):
        yield Span("".join(span.text for span in group), role)


def _role(span: Span) -> Role:
    return span.role


def _carried(tokens: list[Token]) -> list[Token]:
    r"""Take off the end of a full row what reads better on the next: all behind its last comma or colon.

    A row that ends in ``\n`` ends in a line end, so an escape of JSON that looks like one is broken in two.
    """
    back = next(
        (n for places in (", ", ":{[") for n in range(min(TIDY, len(tokens) // 2)) if tokens[-1 - n].text in places), 0
    )
    if not back and len(tokens) > 2 and tokens[-2].text == "\\" and tokens[-1].text in "nr":
        back = 1
    return [tokens.pop() for _ in range(back)][::-1]


def _labelled(pointer: str, label: str, room: int) -> Iterator[str]:
    """Carets with their label: behind them, before them where the page ends, or below them."""
    carets = pointer.lstrip(" ")
    before = len(pointer) - len(carets) - 1
    size = cells(label)
    if len(pointer) + 1 + size <= room:
        yield f"{pointer} {label}"
    elif size <= before:
        yield f"{' ' * (before - size)}{label} {carets}"
    else:
        yield pointer
        yield from (" " * (room - cells(part)) + part for part in broken(label, room))
