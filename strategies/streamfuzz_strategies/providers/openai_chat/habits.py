"""What is in chat completion streams beside the answer: what may be left out, put in, or taken away."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...reply import Json
from ...stream import Event
from .shape import kind

IGNORABLE = frozenset({"chunk", "chunk:empty", "prompt_filter", "content_filter"})
"""Kinds that add nothing to the answer."""

NOISE = (
    Event(
        {
            "id": "",
            "object": "",
            "created": 0,
            "model": "",
            "choices": [],
            "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}],
        }
    ),
)
"""A chunk without choices: Azure's verdict on the prompt, which says nothing of whose completion it is."""

FAILURES = (
    Event({"error": {"message": "rate limit reached", "type": "rate_limit", "param": None, "code": "429"}}, "error"),
    Event({"error": {"message": "the engine is overloaded", "type": "server_error", "param": None, "code": None}}),
)
"""An error after the stream has begun: the object that an HTTP error would carry, as a payload; gateways name it."""


def _without(*kinds: str) -> Callable[[Event], Event | None]:
    return lambda event: None if kind(event) in kinds else event


def _edited(edit: Callable[[dict[str, Json]], dict[str, Json]]) -> Callable[[Event], Event | None]:
    return lambda event: Event(edit(event.data), event.name) if isinstance(event.data, dict) else event


def _no_padding(chunk: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in chunk.items() if key != "obfuscation"}


def _no_logprobs(chunk: dict[str, Json]) -> dict[str, Json]:
    return _each_choice(chunk, lambda choice: {k: v for k, v in choice.items() if k != "logprobs"})


def _no_nulls(chunk: dict[str, Json]) -> dict[str, Json]:
    shorter = {key: value for key, value in chunk.items() if value is not None}
    return _each_choice(shorter, _no_nulls_in_delta)


def _no_nulls_in_delta(choice: dict[str, Json]) -> dict[str, Json]:
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return choice
    return {**choice, "delta": {key: value for key, value in delta.items() if value is not None}}


def _each_choice(chunk: dict[str, Json], edit: Callable[[dict[str, Json]], dict[str, Json]]) -> dict[str, Json]:
    choices = chunk.get("choices")
    if not isinstance(choices, list):
        return chunk
    return {**chunk, "choices": [edit(choice) if isinstance(choice, dict) else choice for choice in choices]}


def _first_choice(event: Event) -> Event | None:
    chunk = event.data
    if not isinstance(chunk, dict) or not isinstance(chunk.get("choices"), list):
        return event
    kept = [choice for choice in chunk["choices"] if not isinstance(choice, dict) or not choice.get("index")]
    # A chunk is not left behind without choices: that would be another thing to stumble over.
    return None if chunk["choices"] and not kept else Event({**chunk, "choices": kept}, event.name)


def _first_call(event: Event) -> Event | None:
    chunk = event.data
    if not isinstance(chunk, dict) or not isinstance(chunk.get("choices"), list):
        return event
    kept = [choice for choice in map(_with_first_call, chunk["choices"]) if choice is not None]
    return None if chunk["choices"] and not kept else Event({**chunk, "choices": kept}, event.name)


def _with_first_call(choice: Json) -> Json:
    """The choice with no other tool call than the first; ``None`` if there is nothing else in it."""
    delta = choice.get("delta") if isinstance(choice, dict) else None
    if not isinstance(delta, dict) or not isinstance(calls := delta.get("tool_calls"), list):
        return choice
    kept = [call for call in calls if not isinstance(call, dict) or not call.get("index")]
    if kept == calls:
        return choice
    rest = {key: value for key, value in delta.items() if key != "tool_calls"}
    if kept:
        return {**choice, "delta": {**rest, "tool_calls": kept}}
    return {**choice, "delta": rest} if choice.get("finish_reason") or any(rest.values()) else None


def _in_one_piece(choice: dict[str, Json]) -> dict[str, Json]:
    """The choice with neighbouring pieces of the same tool call put together."""
    delta = choice.get("delta")
    if not isinstance(delta, dict) or not isinstance(calls := delta.get("tool_calls"), list):
        return choice
    joined: list[Json] = []
    for call in calls:
        if joined and _continues(joined[-1], call):
            before, after = joined[-1]["function"], call["function"]
            words = (before.get("arguments") or "") + (after.get("arguments") or "")
            joined[-1] = {**joined[-1], "function": {**before, "arguments": words}}
        else:
            joined.append(call)
    return {**choice, "delta": {**delta, "tool_calls": joined}}


def _continues(call: Json, piece: Json) -> bool:
    """Whether a piece has nothing but more arguments of the call before it."""
    if not isinstance(call, dict) or not isinstance(piece, dict) or set(piece) != {"index", "function"}:
        return False
    function = piece["function"]
    return (
        call.get("index") == piece["index"]
        and isinstance(call.get("function"), dict)
        and isinstance(function, dict)
        and set(function) <= {"arguments"}
    )


FEATURES: Mapping[str, Callable[[Event], Event | None]] = {
    "a chunk without choices": _without("chunk", "prompt_filter"),
    "a content filter's verdict in a chunk of its own": _without("content_filter"),
    "more than one choice": _first_choice,
    "more than one tool call": _first_call,
    "several pieces of a tool call in one chunk": _edited(lambda chunk: _each_choice(chunk, _in_one_piece)),
    "an empty delta": _without("chunk:empty"),
    "the usage chunk": _without("usage"),
    "padding in obfuscation": _edited(_no_padding),
    "log probabilities": _edited(_no_logprobs),
    "null where a member could be missing": _edited(_no_nulls),
}
"""What a reader may stumble over, and how a stream reads without it."""
