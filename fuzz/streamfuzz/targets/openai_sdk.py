"""The OpenAI SDK for Python: its event decoder, its raw streams, its accumulators and its stream helpers.

https://github.com/openai/openai-python, "Streaming responses" and ``helpers.md``.  A helper's user is handed
the accumulated object, so that is what a view is made of.  The events of the accumulators are built as the
SDK's client builds them, without validation; an error event never reaches an accumulator, because the client
has raised it before.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import httpx2
import openai
from openai._models import construct_type
from openai._streaming import ServerSentEvent, SSEDecoder
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

from streamfuzz_strategies.stream import Event

from ..spec import Delta
from .in_process import EVENT_STREAM, JSON, URL, Server
from .made import Made

with suppress(ImportError):
    # The SDK looks httpx up in sys.modules whenever one of its streams ends, be it by the garbage collector in
    # the middle of the import that another target has begun; so that import is done here.
    import httpx  # noqa: F401

ERRORS = (openai.OpenAIError,)
"""The base class of everything that the SDK documents itself to raise."""

RESPONSES_ERRORS = (*ERRORS, RuntimeError)
"""The Responses helper has no error type of its own: it refuses a stream with ``RuntimeError``, on purpose."""


@cache
def _client() -> tuple[Server, openai.OpenAI]:
    server = Server(httpx2, EVENT_STREAM)
    http = httpx2.Client(transport=server)  # type: ignore[arg-type]
    return server, openai.OpenAI(api_key="none", base_url=URL, http_client=http, max_retries=0)


def _serve(source: Iterable[bytes], content_type: str = EVENT_STREAM) -> openai.OpenAI:
    server, client = _client()
    server.serve(source, content_type)
    return client


def frames(source: Iterable[bytes]) -> Iterator[ServerSentEvent]:
    """Decode events; the class is private, but every stream of the SDK goes through it."""
    return SSEDecoder().iter_bytes(iter(source))


def chat_create(source: Iterable[bytes]) -> Iterator[Any]:
    """Iterate over ``chat.completions.create(stream=True)``."""
    with _serve(source).chat.completions.create(model="m", messages=[], stream=True) as stream:
        yield from map(_plain, stream)


def responses_create(source: Iterable[bytes]) -> Iterator[Any]:
    """Iterate over ``responses.create(stream=True)``."""
    with _serve(source).responses.create(model="m", input="", stream=True) as stream:
        yield from map(_plain, stream)


def chat_stream(source: Iterable[bytes]) -> Generator[Delta, None, dict[str, Any]]:
    """Read ``chat.completions.stream()`` to its end and take the final completion."""
    with _serve(source).chat.completions.stream(model="m", messages=[]) as stream:
        for event in stream:
            if event.type == "chunk":
                # The event content.delta does not say which choice it belongs to; the chunk does.
                yield from _first_choice_text(event.chunk)
        return chat_view(stream.get_final_completion())


def _first_choice_text(chunk: ChatCompletionChunk) -> Iterator[Delta]:
    for choice in chunk.choices or ():
        if choice.index == 0 and isinstance(choice.delta.content, str):
            yield Delta(choice.delta.content)


def responses_stream(source: Iterable[bytes]) -> Generator[Delta, None, dict[str, Any]]:
    """Read ``responses.stream()`` to its end and take the final response."""
    with _serve(source).responses.stream(model="m", input="") as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                yield Delta(event.delta)
        return responses_view(stream.get_final_response())


def chat_state(events: Iterable[Event]) -> dict[str, Any]:
    """Feed every chunk to ``ChatCompletionStreamState`` and take the final completion."""
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for event in events:
        _raise_reported(event.data)
        state.handle_chunk(construct_type(type_=ChatCompletionChunk, value=event.data))  # type: ignore[arg-type]
    return chat_view(state.get_final_completion())


def responses_state(events: Iterable[Event]) -> dict[str, Any]:
    """Feed every event to ``ResponseStreamState`` and take the response of the event that completes it.

    Raises:
        RuntimeError: none did; the helper that owns the accumulator raises the same.
    """
    state: ResponseStreamState[None] = ResponseStreamState(input_tools=openai.omit, text_format=openai.omit)
    final: Any = None
    for event in events:
        _raise_reported(event.data)
        made: Any = construct_type(type_=ResponseStreamEvent, value=event.data)
        for given in state.handle_event(made):
            if given.type == "response.completed":
                final = given.response
    if final is None:
        raise RuntimeError("Didn't receive a `response.completed` event.")
    return responses_view(final)


def _raise_reported(data: Any) -> None:
    """Raise what the SDK's stream raises for a payload with an ``error`` member."""
    error = data.get("error") if isinstance(data, Mapping) else None
    if error:
        message = error.get("message") if isinstance(error, Mapping) else None
        raise openai.APIError(
            message if isinstance(message, str) and message else "An error occurred during streaming",
            request=httpx2.Request("POST", URL),
            body=error,
        )


def chat_whole(body: Any) -> dict[str, Any]:
    """Read a completion that was not streamed."""
    client = _serve((json.dumps(body).encode(),), JSON)
    return chat_view(client.chat.completions.create(model="m", messages=[]))


def responses_whole(body: Any) -> dict[str, Any]:
    """Read a response that was not streamed."""
    return responses_view(_serve((json.dumps(body).encode(),), JSON).responses.create(model="m", input=""))


def chat_view(completion: ChatCompletion | Any) -> dict[str, Any]:
    """What a completion says: the members that the SDK types, so no reasoning of compatible servers."""
    return {
        "choices": [_choice_view(choice) for choice in _attribute(completion, "choices") or ()],
        "id": _attribute(completion, "id"),
        "model": _attribute(completion, "model"),
        "usage": _usage(completion, "prompt_tokens", "completion_tokens"),
    }


def _choice_view(choice: Any) -> dict[str, Any]:
    message = _attribute(choice, "message")
    legacy = _attribute(message, "function_call")
    calls = [] if legacy is None else [_call(None, legacy)]
    for call in _attribute(message, "tool_calls") or ():
        calls.append(_call(_attribute(call, "id"), _attribute(call, "function")))
    return {
        "text": _words(_attribute(message, "content")),
        "refusal": _words(_attribute(message, "refusal")),
        "tool_calls": calls,
        "finish": _attribute(choice, "finish_reason"),
    }


def responses_view(response: Response | Any) -> dict[str, Any]:
    """What a response says, in the order of its output; the finish is its status and why it is incomplete."""
    texts: list[str] = []
    refusals: list[str] = []
    reasoning: list[str] = []
    calls: list[dict[str, Any]] = []
    for item in _attribute(response, "output") or ():
        match _attribute(item, "type"):
            case "message":
                for part in _attribute(item, "content") or ():
                    refused = _attribute(part, "type") == "refusal"
                    held = refusals if refused else texts
                    held.append(_words(_attribute(part, "refusal" if refused else "text")))
            case "reasoning":
                spoken = _attribute(item, "content") or _attribute(item, "summary") or ()
                reasoning.extend(_words(_attribute(part, "text")) for part in spoken)
            case "function_call":
                calls.append(_call(_attribute(item, "call_id"), item))
    status = _attribute(response, "status")
    reason = _attribute(_attribute(response, "incomplete_details"), "reason")
    return {
        "text": "".join(texts),
        "refusal": "".join(refusals),
        "reasoning": "".join(reasoning),
        "tool_calls": calls,
        "finish": f"{status}:{reason}" if status == "incomplete" and reason else status,
        "id": _attribute(response, "id"),
        "model": _attribute(response, "model"),
        "usage": _usage(response, "input_tokens", "output_tokens"),
    }


def _call(id_: Any, function: Any) -> dict[str, Any]:
    return {"id": id_, "name": _attribute(function, "name"), "arguments": _attribute(function, "arguments")}


def _usage(holder: Any, input_key: str, output_key: str) -> dict[str, Any] | None:
    usage = _attribute(holder, "usage")
    if usage is None:
        return None
    return {"input": _attribute(usage, input_key), "output": _attribute(usage, output_key)}


def _plain(event: Any) -> Any:
    """The JSON of an event; the SDK's own way, which otherwise warns of every value that it did not expect."""
    return event.to_dict(warnings=False) if hasattr(event, "to_dict") else event


def _attribute(holder: Any, name: str) -> Any:
    # Objects are built without validation, so a member that the server left out is no attribute at all.
    return getattr(holder, name, None)


def _words(value: Any) -> str:
    """Text as the SDK hands it out; what is no text, though the SDK types it as such, is shown as it prints."""
    return "" if value is None else value if isinstance(value, str) else str(value)


MADE = {
    "openai-sse": Made(frames, errors=ERRORS),
    "openai-chat-create": Made(chat_create, errors=ERRORS, closes_source=True),
    "openai-responses-create": Made(responses_create, errors=ERRORS, closes_source=True),
    "openai-chat-stream": Made(chat_stream, errors=ERRORS, whole=chat_whole, closes_source=True),
    "openai-responses-stream": Made(
        responses_stream, errors=RESPONSES_ERRORS, whole=responses_whole, closes_source=True
    ),
    "openai-chat-state": Made(chat_state, errors=ERRORS),
    "openai-responses-state": Made(responses_state, errors=RESPONSES_ERRORS),
}
