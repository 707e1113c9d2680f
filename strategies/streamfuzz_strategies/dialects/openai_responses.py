"""How servers that speak the Responses protocol differ from OpenAI's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..providers.openai_responses.habits import renumber
from ..providers.openai_responses.rules import INDEX_MISSING, ITEM_ID, SEQUENCE_MISSING
from ..reply import Json
from ..stream import Event, Stream
from .base import Dialect, Rewrite, captured, sse_starlette

Object = dict[str, Json]


def _each(edit: Callable[[int, Object], Object]) -> Rewrite:
    """Edit every event, given its number in the stream."""

    def rewrite(stream: Stream) -> Stream:
        events = (
            Event(edit(number, event.data), event.name) if isinstance(event.data, dict) else event
            for number, event in enumerate(stream.events)
        )
        return replace(stream, events=tuple(events))

    return rewrite


def _unnumbered(number: int, data: Object) -> Object:
    """No sequence number; what is done is known by the item's id or is the item opened last."""
    gone = {"sequence_number"}
    if str(data.get("type")).endswith(".done"):
        gone |= {"output_index", "content_index"}
    return {key: value for key, value in data.items() if key not in gone}


def _rotating_ids(number: int, data: Object) -> Object:
    """Another item id in each event; an event without an index keeps the one that it is known by."""
    if "item_id" not in data or "output_index" not in data:
        return data
    return {**data, "item_id": f"{data['item_id']}-{number}"}


def _whole_arguments(stream: Stream) -> Stream:
    kept = (event for event in stream.events if event.name != "response.function_call_arguments.delta")
    return replace(stream, events=renumber(tuple(kept)))


DIALECTS = (
    Dialect(
        "github-copilot",
        "openai-responses",
        "every event gives its item another id, so only output_index tells them apart",
        captured("openai/src/responses/__fixtures__/github-copilot-id-rotation.1"),
        _each(_rotating_ids),
        (ITEM_ID,),
    ),
    Dialect(
        "llama-cpp",
        "openai-responses",
        "there are no sequence numbers, and events that say done have no indexes",
        "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/server-task.cpp",
        _each(_unnumbered),
        (INDEX_MISSING, SEQUENCE_MISSING),
    ),
    Dialect(
        "lm-studio",
        "openai-responses",
        "the arguments of a function call come whole when they are done, without deltas",
        captured("open-responses/src/responses/__fixtures__/lmstudio-tool-call.1"),
        _whole_arguments,
    ),
    sse_starlette("openai-responses"),
)
"""All of them."""
