"""What a target gave out and how it ended, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..case import Case
from ..legible import compact
from ..spec import Delta, Final, Release, Snapshot
from ..trace import Trace

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
    if trace.failure is not None:
        message = f": {trace.failure.message}" if trace.failure.message else ""
        return f"ended with {trace.failure.type}{early}{message}"
    if trace.ending == "hang":
        return f"did not end{early}"
    result = f": {compact(trace.result, plain)}" if trace.result is not None else ""
    return f"ended as {trace.ending}{early}{result}"
