"""What a target gave out and how it ended, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..case import Case
from ..legible import compact
from ..spec import Delta, Final, Release, Snapshot
from ..trace import Trace
from .page import Line, Page

GIVEN = 8
"""Items shown of what a target gave out after one chunk."""

MOMENTS = 12
"""Moments told at which something came out, where chunks have no rows of their own."""

ENDS = {"eof": "end of stream", "reset": "connection reset"}
"""How a stream ends."""


def by_chunk(trace: Trace | None) -> Mapping[int, list[Any]]:
    """What the target gave out after so many chunks, with neighbouring pieces of one field joined."""
    given: dict[int, list[Any]] = {}
    if trace is not None:
        for item, after in zip(trace.items, trace.after, strict=True):
            given.setdefault(after, []).append(item)
    return {after: joined(items) for after, items in given.items()}


def joined(items: Iterable[Any]) -> list[Any]:
    """The items with neighbouring pieces of one field joined."""
    made: list[Any] = []
    for item in items:
        last = made[-1] if made else None
        if isinstance(item, Delta) and isinstance(last, Delta) and item.field == last.field:
            made[-1] = Delta(last.text + item.text, item.field)
        else:
            made.append(item)
    return made


def given(item: Any, plain: bool) -> str:
    """One thing that a target gave out."""
    if isinstance(item, Delta):
        return f"{item.field} {item.text!r}"
    if isinstance(item, Snapshot):
        return f"the whole so far: {compact(item.view, plain)}"
    if isinstance(item, Release):
        return f"a tool call to act on: {compact(item.call, plain)}"
    if isinstance(item, Final):
        return f"the final message: {compact(item.view, plain)}"
    return compact(item, plain)


def ended(trace: Trace, case: Case, plain: bool) -> str:
    """How the target ended, and after how many chunks if it did not wait for all of them."""
    chunks = len(case.chunks)
    early = f", after {trace.taken} of {chunks} chunks" if trace.taken < chunks else ""
    if trace.ending == "hang":
        return f"did not end{early}"
    if trace.failure is not None:
        message = f": {trace.failure.message}" if trace.failure.message else ""
        return f"ended with {trace.failure.type}{early}{message}"
    result = f": {compact(trace.result, plain)}" if trace.result is not None else ""
    return f"ended as {trace.ending}{early}{result}"


class Doings:
    """What a target did, told on a page behind an indent; nothing if there is no trace."""

    def __init__(self, page: Page, case: Case, trace: Trace | None, indent: int) -> None:
        self.page, self.case, self.trace, self.indent = page, case, trace, indent
        self.given = by_chunk(trace)
        self.moments = sorted(self.given)

    def gave(self, first: int, last: int, when: str = "") -> Iterator[Line]:
        """What it gave out after the chunks ``first`` to ``last``, counted from one."""
        if self.trace is None:
            return
        told = joined(item for after in range(first, last + 1) for item in self.given.get(after, ()))
        shown = told if self.page.rows is None else told[:GIVEN]
        for item in shown:
            yield from self.page.told(f"{when}gave {given(item, self.page.plain)}", self.indent)
        if len(told) > len(shown):
            yield from self.page.told(f"{when}gave {len(told) - len(shown)} more", self.indent)

    def among(self, chunks: int) -> Iterator[Line]:
        """The same for chunks that have no rows of their own: the first few after which something came out."""
        moments = [after for after in self.moments if 0 < after <= chunks]
        for after in moments[:MOMENTS]:
            yield from self.gave(after, after, f"after chunk {after}: ")
        if len(moments) > MOMENTS:
            yield from self.page.told(f"and so on, up to chunk {moments[-1]}", self.indent)

    def ended(self) -> Iterator[Line]:
        """What it gave out at the end of the stream, and how it ended itself."""
        if self.trace is not None:
            chunks = len(self.case.chunks)
            yield from self.gave(chunks + 1, chunks + 1)
            yield from self.page.told(ended(self.trace, self.case, self.page.plain), self.indent)
