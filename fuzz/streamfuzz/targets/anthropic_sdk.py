"""The Anthropic SDK for Python: its event decoder, its raw stream, its accumulator and its stream helper.

https://github.com/anthropics/anthropic-sdk-python, "Streaming responses" and ``helpers.md``.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import anthropic
import httpx2
from anthropic._streaming import ServerSentEvent, SSEDecoder
from anthropic.lib.streaming._messages import accumulate_event

from streamfuzz_strategies.stream import Event

from ..spec import Delta, Incomplete
from .in_process import EVENT_STREAM, JSON, URL, Server, response
from .made import Made

ERRORS = (anthropic.AnthropicError, httpx2.HTTPError)
"""The base class of what the SDK raises; what breaks off the body reaches the user as an error of the HTTP client."""


@cache
def _client() -> tuple[Server, anthropic.Anthropic]:
    server = Server(httpx2, EVENT_STREAM)
    http = httpx2.Client(transport=server)  # type: ignore[arg-type]
    return server, anthropic.Anthropic(api_key="none", base_url=URL, http_client=http, max_retries=0)


def _serve(source: Iterable[bytes], content_type: str = EVENT_STREAM) -> anthropic.Anthropic:
    server, client = _client()
    server.serve(source, content_type)
    return client


def frames(source: Iterable[bytes]) -> Iterator[ServerSentEvent]:
    """Decode events; the class is private, but every stream of the SDK goes through it."""
    return SSEDecoder().iter_bytes(iter(source))


def create(source: Iterable[bytes]) -> Iterator[Any]:
    """Iterate over ``messages.create(stream=True)``."""
    with _serve(source).messages.create(model="m", max_tokens=1, messages=[], stream=True) as events:
        yield from map(_plain, events)


def stream(source: Iterable[bytes]) -> Generator[Delta, None, dict[str, Any]]:
    """Read ``messages.stream()`` to its end and take the final message."""
    with _serve(source).messages.stream(model="m", max_tokens=1, messages=[]) as events:
        for event in events:
            if event.type == "text":
                yield Delta(event.text)
            elif event.type == "thinking":
                yield Delta(event.thinking, "reasoning")
        return view(events.get_final_message())


def state(events: Iterable[Event]) -> dict[str, Any] | Incomplete:
    """Feed events to the function that accumulates a message, as the helper that owns it does.

    Pings, errors, and what comes before the start of the message never get that far in the SDK.
    """
    message: Any = None
    buffers: dict[int, bytes] = {}
    for event in events:
        data: Any = event.data
        kind = data.get("type") if isinstance(data, Mapping) else None
        if kind == "ping":
            continue
        if kind == "error":
            raise anthropic.APIStatusError(str(data), response=_ok(), body=data)
        if message is not None or kind == "message_start":
            message = accumulate_event(event=data, current_snapshot=message, json_bufs=buffers)
    return Incomplete({}) if message is None else view(message)


def _ok() -> Any:
    return response(httpx2, (), EVENT_STREAM)


def whole(body: Any) -> dict[str, Any]:
    """Read a message that was not streamed."""
    client = _serve((json.dumps(body).encode(),), JSON)
    return view(client.messages.create(model="m", max_tokens=1, messages=[]))


def view(message: Any) -> dict[str, Any]:
    """What a message says.  The input of a call is the object that the SDK made of its JSON."""
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in _attribute(message, "content") or ():
        match _attribute(block, "type"):
            case "text":
                texts.append(_attribute(block, "text") or "")
            case "thinking":
                reasoning.append(_attribute(block, "thinking") or "")
            case "tool_use":
                call = {"id": "id", "name": "name", "arguments": "input"}
                calls.append({name: _attribute(block, member) for name, member in call.items()})
    usage = _attribute(message, "usage")
    counts = {"input": _attribute(usage, "input_tokens"), "output": _attribute(usage, "output_tokens")}
    return {
        "text": "".join(texts),
        "reasoning": "".join(reasoning),
        "tool_calls": calls,
        "finish": _attribute(message, "stop_reason"),
        "id": _attribute(message, "id"),
        "model": _attribute(message, "model"),
        "usage": None if usage is None else counts,
    }


def _plain(event: Any) -> Any:
    """The JSON of an event; the SDK's own way, which otherwise warns of every value that it did not expect."""
    return event.to_dict(warnings=False) if hasattr(event, "to_dict") else event


def _attribute(holder: Any, name: str) -> Any:
    # Objects are built without validation, so a member that the server left out is no attribute at all.
    return getattr(holder, name, None)


MADE = {
    "anthropic-sse": Made(frames, errors=ERRORS),
    "anthropic-create": Made(create, errors=ERRORS, closes_source=True),
    "anthropic-stream": Made(stream, errors=ERRORS, whole=whole, closes_source=True),
    "anthropic-state": Made(state, errors=ERRORS),
}
