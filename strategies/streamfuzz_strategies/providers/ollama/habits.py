"""What is in a stream of records beside the bare answer, and how a stream reads without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...reply import Json
from ...stream import Event
from .lifecycle import kind

Edit = Callable[[dict[str, Json]], dict[str, Json]]

FAILURES = (Event({"error": "the model runner stopped"}),)
"""A failure after the first record: a line of its own, under the status 200 that was sent already."""

IGNORABLE = frozenset({"chunk:empty"})
"""Kinds that add nothing to the answer."""


def _in_message(edit: Edit, *, last: bool | None = None) -> Callable[[Event], Event | None]:
    """Edit the message of every record, or only of records whose ``done`` is as given."""

    def change(event: Event) -> Event | None:
        record = event.data
        if not isinstance(record, dict) or not isinstance(record.get("message"), dict):
            return event
        if last is not None and record.get("done") is not last:
            return event
        return Event({**record, "message": edit(record["message"])}, event.name)

    return change


def _without(member: str) -> Edit:
    return lambda data: {name: value for name, value in data.items() if name != member}


def _no_words(message: dict[str, Json]) -> dict[str, Json]:
    return {**message, "content": ""}


def _in_calls(edit: Edit) -> Edit:
    def change(message: dict[str, Json]) -> dict[str, Json]:
        calls = message.get("tool_calls")
        if not isinstance(calls, list):
            return message
        return {**message, "tool_calls": [edit(call) if isinstance(call, dict) else call for call in calls]}

    return change


def _first_call(message: dict[str, Json]) -> dict[str, Json]:
    calls = message.get("tool_calls")
    return {**message, "tool_calls": calls[:1]} if isinstance(calls, list) else message


def _no_index(call: dict[str, Json]) -> dict[str, Json]:
    function = call.get("function")
    return {**call, "function": _without("index")(function)} if isinstance(function, dict) else call


def _of_record(*members: str) -> Callable[[Event], Event | None]:
    """Take members out of every record."""

    def change(event: Event) -> Event | None:
        if not isinstance(event.data, dict):
            return event
        return Event({name: value for name, value in event.data.items() if name not in members}, event.name)

    return change


def _no_empty_record(event: Event) -> Event | None:
    return None if kind(event) == "chunk:empty" else event


FEATURES: Mapping[str, Callable[[Event], Event | None]] = {
    "an empty delta": _no_empty_record,
    "log probabilities": _of_record("logprobs"),
    "token counts": _of_record("prompt_eval_count", "eval_count"),
    "more than one tool call in a record": _in_message(_first_call),
    "an index in a tool call": _in_message(_in_calls(_no_index)),
    "an id in a tool call": _in_message(_in_calls(_without("id"))),
    "text in the last record": _in_message(_no_words, last=True),
    "a tool call in the last record": _in_message(_without("tool_calls"), last=True),
    "thinking": _in_message(_without("thinking")),
}
"""What a reader may stumble over, and how a stream reads without it."""
