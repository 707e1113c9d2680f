"""Draws a stream of frames or of events, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from streamfuzz_strategies.stream import Event, Frame, Raw

from ..case import Case
from ..legible import compact, exact
from ..trace import Trace
from .page import Line, Page
from .told import ENDS, Doings


def items(page: Page, case: Case, chunks: Sequence[Any], marks: Sequence[int], trace: Trace | None) -> list[Line]:
    """Draw them; see :func:`.draw`."""
    return list(_lines(page, case, chunks, marks, trace))


def _lines(page: Page, case: Case, chunks: Sequence[Any], marks: Sequence[int], trace: Trace | None) -> Iterator[Line]:
    one = case.takes[:-1]
    numbers = max(len(one), len(str(len(chunks))))
    indent = 2 if page.stacked else numbers + 2
    doings = Doings(page, case, trace, indent)
    kept = list(range(len(chunks))) if page.rows is None else _kept(len(chunks), page.rows, marks)
    if not page.stacked:
        yield page.line((f"{one:>{numbers}}", "number"))
    yield from doings.gave(0, 0)
    before = -1
    for index in kept:
        if index > before + 1:
            yield from page.fold(page.left_out(index - before - 1, case.takes).strip(), "gap", indent)
        text = exact(item(chunks[index], page.plain), page.plain)
        if page.rows is not None:
            text = page.shortened_text(text, (page.width - indent) * max(1, page.rows // max(1, len(kept))))
        number = f"{one} {index + 1}" if page.stacked else f"{index + 1:>{numbers}}  "
        yield from page.numbered(number, text, "bytes", indent)
        if index in marks:
            yield page.line((" " * indent + "^ here", "pointer"))
        yield from doings.gave(before + 2, index + 1)
        before = index
    if not chunks:
        yield page.line((" " * indent + f"(no {case.takes})", "note"))
    yield from page.numbered(f"{'end':>{numbers}}  ", ENDS[case.end], "note", indent)
    if len(chunks) in marks:
        yield page.line((" " * indent + "^ here", "pointer"))
    yield from doings.ended()


def _kept(count: int, rows: int, marks: Sequence[int]) -> list[int]:
    if count <= rows:
        return list(range(count))
    near = {mark + step for mark in marks for step in (-1, 0, 1)}
    return [n for n in range(count) if n < rows // 2 or n >= count - rows // 3 or n in near]


def item(chunk: Frame | Event, plain: bool) -> str:
    """A frame or an event as compact JSON, without what it does not say."""
    if isinstance(chunk, Frame):
        silent = Frame("")
        said = {name: getattr(chunk, name) for name in ("event", "data", "id", "retry")}
        return compact({n: v for n, v in said.items() if n == "data" or v != getattr(silent, n)}, plain)
    name = f"{chunk.name} " if chunk.name is not None else ""
    return name + (chunk.data.text if isinstance(chunk.data, Raw) else compact(chunk.data, plain))
