"""Framings: how payloads become bytes, and what any bytes mean as frames, by the letter of the spec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from ..rules import Rule
from ..stream import Frame
from ..style import Style

BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""

LineKind: TypeAlias = Literal["data", "event", "id", "retry", "comment", "field", "blank", "json", "bom"]
"""What a line is: an SSE field by name, ``field`` for an unknown one, or a line of NDJSON or JSON text."""


@dataclass(frozen=True, slots=True)
class Line:
    """Where one line stands in the bytes.  All offsets are byte offsets.

    ``start <= name_end <= value <= end <= stop``: the field name ends at ``name_end``, the value is
    ``[value, end)`` and the line end ``[end, stop)``; an unterminated last line has ``end == stop``.
    ``frame`` counts the frames *before* this line, so it is the index of the frame that the line belongs to.
    """

    kind: LineKind
    start: int
    name_end: int
    value: int
    end: int
    stop: int
    frame: int


@dataclass(frozen=True, slots=True)
class Decoded:
    """What bytes mean as frames.

    Attributes:
        frames: what is dispatched, in order.
        ends: for each frame, the offset just past the byte that decides it (for SSE the first byte of the
            blank line's end; for NDJSON the LF).
        pending: a frame that was begun and never decided, as it would read if it were (SSE discards it at the
            end of the stream, NDJSON delivers it); ``None`` if the stream ends between frames.
        broken: rules of the framing that the bytes break, each with the index of the frame.
    """

    frames: tuple[Frame, ...]
    ends: tuple[int, ...]
    pending: Frame | None = None
    broken: tuple[tuple[Rule, int], ...] = ()


class Framing(Protocol):
    """One framing: an encoder for every lawful style and a reference decoder."""

    @property
    def name(self) -> str:
        """Short name: ``sse``, ``ndjson`` or ``json``."""
        ...

    @property
    def keeps_pending(self) -> bool:
        """Whether the spec delivers a last frame that lacks its end (NDJSON does, SSE does not)."""
        ...

    def encode(self, payloads: Sequence[tuple[str, str | None]], style: Style) -> bytes:
        """Write payloads with their event names in the given style."""
        ...

    def decode(self, data: bytes) -> Decoded:
        """Read bytes by the letter of the spec, in time linear in their number."""
        ...

    def resume(self, frame: Frame) -> bytes:
        """Bytes that bring a new decoder to where it stands after this frame, without giving a frame."""
        ...

    def lines(self, data: bytes) -> tuple[Line, ...]:
        """Lay out the bytes as lines; together they cover every byte once."""
        ...
