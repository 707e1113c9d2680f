"""Newline-delimited JSON: one JSON text a line.

Sources: https://github.com/ndjson/ndjson-spec (lines end in LF, CRLF is tolerated, the last end may be
missing) and RFC 8259 section 8.1 (UTF-8, no byte order mark).  Only the byte LF ends a line: what
``str.splitlines`` splits at may stand unescaped inside JSON strings (RFC 8259 section 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..rules import Rule
from ..stream import Frame
from ..style import Style
from . import BOM, Decoded, Framing, Line

_SPACE = b" \t\r"
"""JSON whitespace that can stand inside a line: a line of nothing else is blank."""

NOT_UTF8 = Rule("ndjson.utf8", "a line was not valid UTF-8", "RFC 8259 section 8.1")
WITH_BOM = Rule("ndjson.bom", "the stream began with a byte order mark", "RFC 8259 section 8.1", "may")
RULES = (NOT_UTF8, WITH_BOM)


@dataclass(frozen=True, slots=True)
class NdjsonFraming:
    """The framing ``application/x-ndjson``."""

    name: ClassVar[str] = "ndjson"
    keeps_pending: ClassVar[bool] = True

    def encode(self, payloads: Sequence[tuple[str, str | None]], style: Style) -> bytes:
        """Write one line per payload; the framing has no names for events.

        A blank payload reads back as nothing, for readers skip blank lines.

        Raises:
            ValueError: a payload with a line feed, or with a lone surrogate.
        """
        lines: list[str] = []
        for number, (text, _) in enumerate(payloads):
            if "\n" in text:
                raise ValueError("an NDJSON payload cannot hold a line feed: write it without indent")
            lines += [line for position, line in style.inserts if position == number]
            lines.append(text)
        lines += [line for position, line in style.inserts if position >= len(payloads)]
        ended = [line + style.eols[number % len(style.eols)] for number, line in enumerate(lines)]
        if ended and not style.final_eol:
            ended[-1] = lines[-1]
        return "".join(ended).encode()

    def decode(self, data: bytes) -> Decoded:
        """Read one frame from each line that is not blank; an unended last line is ``pending``."""
        frames: list[Frame] = []
        ends: list[int] = []
        broken: list[tuple[Rule, int]] = []
        pending = None
        offset = _after_bom(data)
        if offset:
            broken.append((WITH_BOM, 0))
        for raw in _split(data[offset:]):
            offset += len(raw)
            text, valid = _line(raw)
            if text is None:
                continue
            if not valid:
                broken.append((NOT_UTF8, len(frames)))
            if raw.endswith(b"\n"):
                frames.append(Frame(text))
                ends.append(offset)
            else:
                pending = Frame(text)
        return Decoded(tuple(frames), tuple(ends), pending, tuple(broken))

    def resume(self, frame: Frame) -> bytes:
        """A line end, after which a byte order mark is no longer at the start."""
        return b"\n"

    def lines(self, data: bytes) -> tuple[Line, ...]:
        """Lay out the bytes as lines; a byte order mark is a line of its own kind."""
        start = _after_bom(data)
        found: list[Line] = [Line("bom", 0, 0, 0, start, start, 0)] if start else []
        frame = 0
        for raw in _split(data[start:]):
            stop = start + len(raw)
            end = start + len(raw.removesuffix(b"\n").removesuffix(b"\r")) if raw.endswith(b"\n") else stop
            blank = not raw.strip(_SPACE + b"\n")
            found.append(Line("blank" if blank else "json", start, start, start, end, stop, frame))
            frame += not blank
            start = stop
        return tuple(found)


def _after_bom(data: bytes) -> int:
    return len(BOM) if data.startswith(BOM) else 0


def _split(data: bytes) -> Iterator[bytes]:
    """The lines with their LF; the last may lack it."""
    *ended, last = data.split(b"\n")
    yield from (line + b"\n" for line in ended)
    if last:
        yield last


def _line(raw: bytes) -> tuple[str | None, bool]:
    """A line's text (``None``: it is blank) and whether its bytes are UTF-8."""
    line = raw.removesuffix(b"\n").removesuffix(b"\r")
    if not line.strip(_SPACE):
        return None, True
    try:
        return line.decode(), True
    except UnicodeDecodeError:
        return line.decode("utf-8", "replace"), False


NDJSON: Framing = NdjsonFraming()
"""Newline-delimited JSON."""


class NDJSONDecoder:
    """The same reading as :meth:`NdjsonFraming.decode`, chunk by chunk, in linear time however they are cut.

    It is the tolerant reader: a byte order mark is skipped and invalid UTF-8 is replaced.
    """

    def __init__(self) -> None:
        # Pieces of a line that has no end yet; joined once, so that a long line fed in bytes stays linear.
        self._pieces: list[bytes] = []
        self._first = True

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take in some bytes and return the frames that they complete."""
        *ended, last = chunk.split(b"\n")
        frames: list[Frame] = []
        for line in ended:
            self._pieces.append(line)
            frames += self._line()
        if last:
            self._pieces.append(last)
        return frames

    def close(self) -> list[Frame]:
        """End the stream and return its last line if that had no line end."""
        return self._line()

    def _line(self) -> list[Frame]:
        raw = b"".join(self._pieces)
        self._pieces.clear()
        if self._first:
            raw = raw.removeprefix(BOM)
            self._first = False
        text, _ = _line(raw)
        return [] if text is None else [Frame(text)]
