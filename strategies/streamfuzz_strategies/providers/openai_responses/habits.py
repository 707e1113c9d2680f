"""What is in Responses streams beside the answer: what may be left out, put in, or taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count

from ...reply import Json
from ...stream import Event
from .events import OPENINGS, PROGRESS, is_index

IGNORABLE = frozenset({"unknown", *OPENINGS, *PROGRESS})
"""Kinds that add nothing to the answer."""

NOISE = (Event({"type": "keepalive"}, "keepalive"),)
"""An event of a type that the reference does not list.  It takes no sequence number from the others."""

_CAUSE = {"type": "server_error", "code": "server_error", "message": "the server had an error", "param": None}

FAILURES = (
    Event({"type": "error", "code": "server_error", "message": "the server had an error", "param": None}, "error"),
    Event({"type": "error", "error": _CAUSE}, "error"),
    Event(
        {
            "type": "response.failed",
            "response": {
                "id": "resp_1",
                "object": "response",
                "created_at": 1,
                "model": "gpt-5",
                "status": "failed",
                "error": {"code": "server_error", "message": "the server had an error"},
                "output": [],
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
            },
        },
        "response.failed",
    ),
)
"""An error after the stream has begun: flat as documented, nested as captured, and as a failed response."""


def _without(member: str, value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without(member, inner) for key, inner in value.items() if key != member}
    return [_without(member, inner) for inner in value] if isinstance(value, list) else value


def _event_without(member: str, event: Event) -> Event | None:
    return Event(_without(member, event.data), event.name)


# Whole events are not taken out one by one: their numbers would be missing, which is damage of its own.
FEATURES: Mapping[str, Callable[[Event], Event | None]] = {
    "padding in obfuscation": partial(_event_without, "obfuscation"),
    "log probabilities": partial(_event_without, "logprobs"),
    "encrypted reasoning": partial(_event_without, "encrypted_content"),
    "the usage": partial(_event_without, "usage"),
}
"""What a reader may stumble over, and how a stream reads without it."""


def told_whole(events: Sequence[Event]) -> frozenset[str]:
    """The texts whose ``*.done`` event came without a delta before it."""
    begun: set[tuple[str, ...]] = set()
    whole: set[str] = set()
    for event in events:
        if not isinstance(event.data, dict) or not isinstance(event.data.get("type"), str):
            continue
        prefix, _, last = event.data["type"].rpartition(".")
        of = (prefix, *(str(event.data.get(name)) for name in _PLACE))
        if last == "delta":
            begun.add(of)
        elif last == "done" and of not in begun:
            whole.update(text for text in map(event.data.get, ("text", "refusal")) if isinstance(text, str) and text)
    return frozenset(whole)


_PLACE = ("output_index", "content_index", "summary_index")
"""What says which text an event is about."""


def renumber(events: Sequence[Event]) -> tuple[Event, ...]:
    """Count the events that have a sequence number, from 0 and without a gap."""
    numbers = count()
    return tuple(_numbered(event, numbers) for event in events)


def _numbered(event: Event, numbers: Iterator[int]) -> Event:
    if not isinstance(event.data, dict) or not is_index(event.data.get("sequence_number")):
        return event
    return Event({**event.data, "sequence_number": next(numbers)}, event.name)
