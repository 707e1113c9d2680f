"""A case as text: the stream chunk by chunk, its bytes made readable, and where it is cut.

A line of the stream is a row of the ruler and ends in the line end that it has, so frames look like frames.
Nothing is said by colour alone, so the lines read the same in a terminal, in a log, and aloud.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..case import Case
from ..legible import printable
from ..trace import Trace
from .items import items
from .page import ASCII, NARROWEST, UNICODE, Line, Page, Role, Span
from .wire import CROWD, wire

__all__ = ["CROWD", "ROWS", "Line", "Role", "Span", "draw", "lay", "printable"]

ROWS = 24
"""Rows that the bytes of a case may take before stretches without a cut or mark are left out."""

PROBES = {
    "isolated": "Two streams: the second is read once the first was cut off half way, and again while it is open.",
    "released": "The target is closed after its first, second and third item.",
    "resliced": "Two encodings of one message are read one after the other; they must give one result.",
    "parity": "The stream is read, and so is the same answer as the API gives it without streaming.",
    "growth-long": "One long event in small pieces is read at growing sizes, made when the case is run.",
    "growth-many": "Many small events in one chunk are read at growing sizes, made when the case is run.",
    "leak": "The stream is read some hundred times over; the memory that is kept must not grow.",
}
"""What is done with a case that is a probe."""


def draw(
    case: Case,
    *,
    width: int = 100,
    trace: Trace | None = None,
    marks: Sequence[int] = (),
    ascii: bool = False,  # noqa: A002 - the word for it
    rows: int | None = ROWS,
) -> list[str]:
    """Draw a case.

    Args:
        case: what to draw; a probe is drawn with a sentence that says what is done, and with both streams.
        width: columns of the page, at least 20.
        trace: what the target did with it; what it gave out is then told after each chunk.
        marks: what to point at: offsets of bytes, or for cases of frames and events their indexes.  The
            length of the stream points at its end.
        ascii: use nothing but ASCII.
        rows: how many the stream may take before stretches of it are left out; ``None``: as many as it needs.

    Returns:
        Lines without line ends, free of control characters, none longer than the page is wide.  Long stretches
        far from any cut or mark are left out, and a line says how many bytes they have.
    """
    return [line.text for line in lay(case, width=width, trace=trace, marks=marks, ascii=ascii, rows=rows)]


def lay(
    case: Case,
    *,
    width: int = 100,
    trace: Trace | None = None,
    marks: Sequence[int] = (),
    ascii: bool = False,  # noqa: A002 - the word for it
    rows: int | None = ROWS,
) -> list[Line]:
    """Draw a case like :func:`draw`, and say of each part of a line what it is, for those who can colour it."""
    page = Page(max(width, NARROWEST), ASCII if ascii else UNICODE, ascii, rows)
    if not case.probe:
        return list(_stream(page, case, case.chunks, marks, trace))
    lines = list(page.fold(PROBES[case.probe], "note"))
    if case.other:
        half = page.shortened(2)
        lines += [page.line(("first stream:", "note")), *_stream(half, case, case.chunks, marks, trace)]
        return [*lines, page.line(("second stream:", "note")), *_stream(half, case, case.other)]
    return [*lines, *(_stream(page, case, case.chunks, marks, trace) if case.chunks else ())]


def _stream(
    page: Page, case: Case, chunks: Sequence[object], marks: Sequence[int] = (), trace: Trace | None = None
) -> list[Line]:
    draw_stream = wire if case.takes in ("bytes", "text") else items
    return draw_stream(page, case, chunks, marks, trace)
