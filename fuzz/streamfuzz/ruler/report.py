"""Tells beside a stream what the target did with it."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case
from ..trace import Trace
from .page import Line, Page
from .told import by_chunk, ended, given, joined

GIVEN = 8
"""Items shown of what a target gave out after one chunk."""

MOMENTS = 12
"""Moments told at which something came out, where chunks have no rows of their own."""


class Report:
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
