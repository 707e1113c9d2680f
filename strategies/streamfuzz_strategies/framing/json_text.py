"""A stream that is one JSON text: structured output, tool arguments, or an answer without streaming.

Source: RFC 8259.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..rules import Rule
from ..stream import Frame
from ..style import Style
from . import BOM, Decoded, Framing, Line

NOT_UTF8 = Rule("json.utf8", "the text was not valid UTF-8", "RFC 8259 section 8.1")
WITH_BOM = Rule("json.bom", "the text began with a byte order mark", "RFC 8259 section 8.1", "may")
RULES = (NOT_UTF8, WITH_BOM)


@dataclass(frozen=True, slots=True)
class JsonTextFraming:
    """The framing ``application/json``: all bytes are one frame, decided by the end of the stream."""

    name: ClassVar[str] = "json"
    keeps_pending: ClassVar[bool] = True

    def encode(self, payloads: Sequence[tuple[str, str | None]], style: Style) -> bytes:
        """Write the payloads one after the other; one payload makes a lawful stream.

        The style has done its work in their spelling.

        Raises:
            ValueError: a payload with a lone surrogate.
        """
        return "".join(text for text, _ in payloads).encode()

    def decode(self, data: bytes) -> Decoded:
        """Read everything as one ``pending`` frame; there is none in bytes that are blank."""
        text = data.removeprefix(BOM)
        broken = [(WITH_BOM, 0)] if len(text) < len(data) else []
        if not text.strip(b" \t\r\n"):
            return Decoded((), (), None, tuple(broken))
        try:
            frame = Frame(text.decode())
        except UnicodeDecodeError:
            frame = Frame(text.decode("utf-8", "replace"))
            broken.append((NOT_UTF8, 0))
        return Decoded((), (), frame, tuple(broken))

    def resume(self, frame: Frame) -> bytes:
        """There is only one frame, so nothing stands after it."""
        return b""

    def lines(self, data: bytes) -> tuple[Line, ...]:
        """Lay out the bytes: a byte order mark if there is one, then one text."""
        start = len(BOM) if data.startswith(BOM) else 0
        found: list[Line] = [Line("bom", 0, 0, 0, start, start, 0)] if start else []
        if start < len(data):
            found.append(Line("json", start, start, start, len(data), len(data), 0))
        return tuple(found)


JSON_TEXT: Framing = JsonTextFraming()
"""One JSON text."""
