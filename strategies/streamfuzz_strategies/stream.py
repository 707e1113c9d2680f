"""A stream before it is bytes: the provider's events in order, and how they are to be framed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from .reply import Json, Reply
from .style import PLAIN, Style


@dataclass(frozen=True, slots=True)
class Raw:
    """A payload that is not JSON, such as the sentinel ``[DONE]`` or damaged text."""

    text: str


@dataclass(frozen=True, slots=True)
class Event:
    """One provider event: a JSON value (or :class:`Raw` text) and, where the provider names it, its name.

    Events are treated as immutable; edits build new ones.
    """

    data: Json | Raw
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """One decoded unit of the framing: a dispatched SSE event or an NDJSON line.

    ``event`` is the SSE type with the default ``message``; ``id`` is the last event ID in force;
    ``retry`` is the reconnection time in milliseconds set inside this frame, if any.  Framings without
    these notions leave the defaults.
    """

    data: str
    event: str = "message"
    id: str = ""
    retry: int | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """A provider stream as drawn: the intended reply, its events, and the style of its framing."""

    provider: str
    events: tuple[Event, ...]
    reply: Reply | None = None
    style: Style = field(default=PLAIN)


class MalformedJson(ValueError):
    """The text is not one JSON value by RFC 8259."""


def parse_json(text: str) -> Json:
    """Decode one JSON text by the letter of RFC 8259.

    Stricter than :func:`json.loads`: ``NaN`` and ``Infinity`` are refused, and so is nesting deeper than
    the interpreter can follow.  Of duplicate names the last wins (section 4 leaves it open).

    Raises:
        MalformedJson: with the reason and position.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise MalformedJson("nested too deeply") from None
    except ValueError as error:
        raise MalformedJson(str(error)) from None


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def payloads(events: Sequence[Event], style: Style) -> list[tuple[str, str | None]]:
    """Spell each event's payload in the given style: pairs of payload text and event name."""
    return [
        (event.data.text if isinstance(event.data, Raw) else style.spell(event.data), event.name) for event in events
    ]
