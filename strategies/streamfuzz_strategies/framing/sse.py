"""Server-sent events, read by the letter of the HTML standard and written in any lawful style.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html, "Parsing an event stream" and
"Interpreting an event stream".  Every byte string means something there and nothing is an error, so
``Decoded.broken`` is always empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..stream import Frame
from ..style import Eol, Insert, Style
from . import BOM, Decoded, Framing, Line, LineKind

_KINDS: dict[bytes, LineKind] = {b"data": "data", b"event": "event", b"id": "id", b"retry": "retry"}

_MOST_DIGITS = 4300
"""The longest decimal that Python converts; a longer reconnection time is no time that anyone waits."""


class _Block:
    """The lines between two blank lines, and the last event ID, which outlives them."""

    __slots__ = ("data", "event", "id", "retry")

    def __init__(self) -> None:
        self.data: list[str] = []
        self.event = ""
        self.id = ""
        self.retry: int | None = None

    def take(self, line: bytes) -> None:
        """Take in one line that is not blank, without its line end."""
        name, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            self.data.append(_text(value))
        elif name == b"event":
            self.event = _text(value)
        elif name == b"id":
            if b"\0" not in value:
                self.id = _text(value)
        elif name == b"retry" and value.isdigit() and len(value) <= _MOST_DIGITS:
            self.retry = int(value)

    def dispatch(self) -> Frame | None:
        """What a blank line makes of the block, which is empty afterwards: a frame if it had data lines.

        Without data nothing is dispatched, however many other fields there were, but their event name and
        retry are gone all the same.
        """
        frame = None
        if self.data:
            frame = Frame("\n".join(self.data), self.event or "message", self.id, self.retry)
            self.data.clear()
        self.event = ""
        self.retry = None
        return frame


def _text(value: bytes) -> str:
    # Line ends, colons and spaces are ASCII, and an invalid sequence never swallows an ASCII byte, so
    # decoding the pieces gives the same text as decoding the stream.
    return value.decode("utf-8", "replace")


def _lines(data: bytes, start: int) -> Iterator[tuple[int, bytes, int]]:
    """Every line from ``start`` on: where it starts, its bytes, and where its line end stops."""
    # bytes.splitlines, unlike str.splitlines, knows only CR, LF and CRLF: the line ends of the standard.
    for raw in data[start:].splitlines(keepends=True):
        stop = start + len(raw)
        yield start, raw.rstrip(b"\r\n"), stop
        start = stop


@dataclass(frozen=True, slots=True)
class SseFraming:
    """The framing ``text/event-stream``."""

    name: ClassVar[str] = "sse"
    keeps_pending: ClassVar[bool] = False

    def encode(self, payloads: Sequence[tuple[str, str | None]], style: Style) -> bytes:
        """Write one event per payload.

        A payload with line feeds becomes several ``data`` lines, which a reader joins again.  A group of
        inserts for the same line that has a blank line in it would cut a frame in two: inside a frame it is
        written before that frame instead.

        Raises:
            ValueError: a payload or a name that no event can carry: a carriage return in either, a line feed
                in a name, or a lone surrogate.
        """
        written: list[str] = []
        inserts = _by_line(style.inserts)
        number = 0
        for text, name in payloads:
            block = _block(text, name, style)
            if inserts:
                written += _with_inserts(block, number, inserts)
            else:
                written += block
            number += len(block)
        for position in sorted(inserts):
            if position >= number:
                written += inserts[position]
        ended = "".join(_ended(written, style.eols)).encode()
        return BOM + ended if style.bom else ended

    def decode(self, data: bytes) -> Decoded:
        """Read bytes as the standard says.  ``pending`` is what a decoder that flushes at the end adds."""
        frames: list[Frame] = []
        ends: list[int] = []
        block = _Block()
        for start, line, _ in _lines(data, _after_bom(data)):
            if line:
                block.take(line)
            elif frame := block.dispatch():
                frames.append(frame)
                ends.append(start + 1)
        return Decoded(tuple(frames), tuple(ends), block.dispatch())

    def resume(self, frame: Frame) -> bytes:
        """The id outlives its frame; nothing else does."""
        return f"id: {frame.id}\n\n".encode()

    def lines(self, data: bytes) -> tuple[Line, ...]:
        """Lay out the bytes as lines; a byte order mark is a line of its own kind."""
        first = _after_bom(data)
        found: list[Line] = [Line("bom", 0, 0, 0, first, first, 0)] if first else []
        frame = 0
        has_data = False
        for start, line, stop in _lines(data, first):
            end = start + len(line)
            if not line:
                found.append(Line("blank", start, start, start, start, stop, frame))
                frame += has_data
                has_data = False
                continue
            colon = line.find(b":")
            if colon < 0:
                kind, name_end, value = _KINDS.get(line, "field"), end, end
            else:
                kind = _KINDS.get(line[:colon], "field") if colon else "comment"
                name_end = start + colon
                value = name_end + (2 if line.startswith(b" ", colon + 1) else 1)
            has_data = has_data or kind == "data"
            found.append(Line(kind, start, name_end, value, end, stop, frame))
        return tuple(found)


def _after_bom(data: bytes) -> int:
    return len(BOM) if data.startswith(BOM) else 0


def _by_line(inserts: Sequence[Insert]) -> dict[int, list[str]]:
    """The inserted lines by the number of the line before which they stand."""
    found: dict[int, list[str]] = {}
    for position, line in inserts:
        found.setdefault(position, []).append(line)
    return found


def _block(text: str, name: str | None, style: Style) -> list[str]:
    """The lines of one event with the blank line that dispatches it."""
    if "\r" in text:
        raise ValueError("an SSE payload cannot hold a carriage return: readers take it for a line end")
    lines = [_field("data", part, style) for part in text.split("\n")]
    if name is not None:
        if "\r" in name or "\n" in name:
            raise ValueError(f"an SSE event name cannot hold a line end: {name!r}")
        lines.insert(len(lines) if style.event_last else 0, _field("event", name, style))
    lines.append("")
    return lines


def _field(name: str, value: str, style: Style) -> str:
    if not value and style.bare_names:
        return name
    # A value that itself begins with a space needs the optional one, for a reader takes the first away.
    return f"{name}: {value}" if style.space or value.startswith(" ") else f"{name}:{value}"


def _with_inserts(block: Sequence[str], number: int, inserts: dict[int, list[str]]) -> list[str]:
    """The block, whose first line has this number in the plain stream, with its inserts."""
    ahead = list(inserts.get(number, ()))
    body = [block[0]]
    for position, line in enumerate(block[1:], number + 1):
        group = inserts.get(position, ())
        (ahead if "" in group else body).extend(group)
        body.append(line)
    return ahead + body


def _ended(lines: Sequence[str], eols: Sequence[Eol]) -> Iterator[str]:
    """Each line with its line end."""
    if len(eols) == 1:
        yield from (line + eols[0] for line in lines)
        return
    previous = ""
    for number, line in enumerate(lines):
        eol = eols[number % len(eols)]
        # A blank line after a CR cannot be ended by LF alone: the two would read as one line end.
        if not line and previous == "\r" and eol == "\n":
            eol = "\r"
        yield line + eol
        previous = eol


SSE: Framing = SseFraming()
"""Server-sent events."""


class SSEDecoder:
    """The same reading as :meth:`SseFraming.decode`, chunk by chunk and in linear time however they are cut.

    Each frame is out with the byte that decides it.
    """

    def __init__(self) -> None:
        self._block = _Block()
        # Pieces of a line that has no end yet; joined once, so that a long line fed in bytes stays linear.
        self._pieces: list[bytes] = []
        # A CR ends its line at once; an LF that comes next, perhaps in another chunk, belongs to it.
        self._after_cr = False
        # The first bytes while they may still become a byte order mark; None from then on.
        self._head: bytes | None = b""

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take in some bytes and return the frames that they complete."""
        if self._head is not None:
            chunk = self._head + chunk
            if len(chunk) < len(BOM) and BOM.startswith(chunk):
                self._head = chunk
                return []
            self._head = None
            chunk = chunk.removeprefix(BOM)
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        return list(self._take(chunk))

    def _take(self, chunk: bytes) -> Iterator[Frame]:
        for raw in chunk.splitlines(keepends=True):
            line = raw.rstrip(b"\r\n")
            if len(line) == len(raw):
                self._pieces.append(raw)
                return
            if self._pieces:
                line = b"".join((*self._pieces, line))
                self._pieces.clear()
            if line:
                self._block.take(line)
            elif frame := self._block.dispatch():
                yield frame

    def close(self) -> list[Frame]:
        """End the stream.  What is pending is discarded, so there is never a frame to return."""
        return []
