"""What is in Messages streams beside the plainest answer: what may be left out, put in, or taken away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ...reply import Json
from ...stream import Event
from .protocol import is_index, kind

Object: TypeAlias = dict[str, Json]

IGNORABLE = frozenset({"ping", "unknown", "content_block_delta:unknown"})
"""Kinds that add nothing to the answer."""

NOISE = (
    Event({"type": "ping"}, "ping"),
    Event({"type": "progress", "index": 0, "delta": {"text": "x"}}, "progress"),
)
"""A ping, and an event of a type that the API does not have yet; readers are told to expect both anywhere."""

FAILURES = (
    Event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error"),
    Event(
        {"type": "error", "error": {"type": "api_error", "message": "Internal server error"}, "request_id": "req_1"},
        "error",
    ),
)
"""Errors after the stream has begun, under the status 200 that was sent already."""


Change: TypeAlias = Callable[[str, Object], Object | None]
"""What is left of an event of a kind; ``None``: nothing."""


def _each(change: Change) -> Callable[[Event], Event | None]:
    def take(event: Event) -> Event | None:
        if not isinstance(event.data, dict):
            return event
        left = change(kind(event), event.data)
        return None if left is None else Event(left, event.name)

    return take


def _without(*kinds: str) -> Callable[[Event], Event | None]:
    return lambda event: None if kind(event) in kinds else event


def _member(member: str, *path: str) -> Callable[[Event], Event | None]:
    """Take a member out of the object that the path leads to."""

    def edit(holder: Object, path: tuple[str, ...] = path) -> Object:
        if not path:
            return {name: value for name, value in holder.items() if name != member}
        inner = holder.get(path[0])
        return {**holder, path[0]: edit(inner, path[1:])} if isinstance(inner, dict) else holder

    return _each(lambda of, data: edit(data))


_SLICED = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def _no_empty_delta(of: str, data: Object) -> Object | None:
    prefix, _, delta = of.partition(":")
    empty = prefix == "content_block_delta" and delta in _SLICED and data["delta"].get(_SLICED[delta]) == ""
    return None if empty else data


def _no_delta_without_reason(of: str, data: Object) -> Object | None:
    delta = data.get("delta") if of == "message_delta" else None
    return None if isinstance(delta, dict) and delta.get("stop_reason") is None else data


def _in_blocks(of: str, data: Object, edit: Callable[[Object], Object]) -> Object:
    """Edit the block that an event starts, or those that stand in ``message_start``."""
    if of.startswith("content_block_start:") and isinstance(data.get("content_block"), dict):
        return {**data, "content_block": edit(data["content_block"])}
    return _in_content(of, data, lambda content: [edit(b) if isinstance(b, dict) else b for b in content])


def _in_content(of: str, data: Object, edit: Callable[[list[Json]], list[Json]]) -> Object:
    message = data.get("message") if of == "message_start" else None
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        return data
    return {**data, "message": {**message, "content": edit(message["content"])}}


# A block cannot go without leaving a gap in the indices, so one that is to be taken out becomes a text block.
_NOTHING: Object = {"type": "text", "text": ""}


def _no_citations(of: str, data: Object) -> Object | None:
    def edit(block: Object) -> Object:
        return {name: value for name, value in block.items() if name != "citations"}

    return None if of == "content_block_delta:citations_delta" else _in_blocks(of, data, edit)


def _no_thinking(of: str, data: Object) -> Object | None:
    def edit(block: Object) -> Object:
        return {"type": "text", "text": block.get("thinking", "")} if block.get("type") == "thinking" else block

    match of:
        case "content_block_delta:signature_delta":
            return None
        case "content_block_delta:thinking_delta":
            return {**data, "delta": {"type": "text_delta", "text": data["delta"].get("thinking", "")}}
        case _:
            return _in_blocks(of, data, edit)


def _no_redacted_thinking(of: str, data: Object) -> Object | None:
    return _in_blocks(of, data, lambda block: _NOTHING if block.get("type") == "redacted_thinking" else block)


def _no_server_tools(of: str, data: Object) -> Object | None:
    """Make a server's call one for the client, since its deltas look the same, and its result an empty text."""

    def edit(block: Object) -> Object:
        if block.get("type") == "server_tool_use":
            return {**block, "type": "tool_use"}
        return _NOTHING if str(block.get("type")).endswith("_tool_result") else block

    return _in_blocks(of, data, edit)


def _first_block(of: str, data: Object) -> Object | None:
    if of.startswith("content_block_") and is_index(data.get("index")) and data["index"] > 0:
        return None
    return _in_content(of, data, lambda content: content[:1])


FEATURES: Mapping[str, Callable[[Event], Event | None]] = {
    "a ping": _without("ping"),
    "an event of an unknown type": _without("unknown"),
    "an empty delta": _each(_no_empty_delta),
    "a message_delta without a stop reason": _each(_no_delta_without_reason),
    "input tokens in message_delta": _member("input_tokens", "usage"),
    "details of a refusal": _member("stop_details", "delta"),
    "the caller of a tool": _member("caller", "content_block"),
    "citations": _each(_no_citations),
    "thinking": _each(_no_thinking),
    "redacted thinking": _each(_no_redacted_thinking),
    "server tools": _each(_no_server_tools),
    "more than one block": _each(_first_block),
}
"""What a reader may stumble over, and how a stream reads without it."""
