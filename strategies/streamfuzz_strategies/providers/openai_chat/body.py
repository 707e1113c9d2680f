"""The same answer without streaming: the ``chat.completion`` object."""

from __future__ import annotations

from ...reply import Choice, Json, Reasoning, Refusal, Reply, Text, ToolCall, Usage
from ...stream import Event
from .reducer import Reducer


def body(reply: Reply) -> Json:
    """Write a reply as the API answers when ``stream`` is not set.

    Source: https://platform.openai.com/docs/api-reference/chat/object
    """
    whole: dict[str, Json] = {
        "id": reply.id or "",
        "object": "chat.completion",
        "created": 1,
        "model": reply.model or "",
        "choices": [
            {
                "index": index,
                "message": _message(choice),
                "logprobs": None,
                "finish_reason": choice.finish,
            }
            for index, choice in enumerate(reply.choices)
        ],
    }
    if reply.usage is not None:
        whole["usage"] = usage_object(reply.usage)
    return whole


def read_body(body: Json) -> Reply:
    """Read such an object: each message is one delta that says everything at once.

    Raises:
        KeyError: a choice has no ``message``.
    """
    choices = [{**choice, "delta": _delta(choice["message"])} for choice in body["choices"]]
    reducer = Reducer()
    reducer.apply(Event({**body, "choices": choices}))
    return reducer.reply()


def _message(choice: Choice) -> dict[str, Json]:
    text = "".join(part.text for part in choice.parts if isinstance(part, Text))
    reasoning = "".join(part.text for part in choice.parts if isinstance(part, Reasoning))
    refusal = "".join(part.text for part in choice.parts if isinstance(part, Refusal))
    calls = [part for part in choice.parts if isinstance(part, ToolCall)]
    message: dict[str, Json] = {"role": "assistant", "content": text or None, "refusal": refusal or None}
    if reasoning:
        message["reasoning_content"] = reasoning
    listed = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
        if call.id is not None
    ]
    if listed:
        message["tool_calls"] = listed
    for call in calls:
        if call.id is None:
            message["function_call"] = {"name": call.name, "arguments": call.arguments}
    return message


def _delta(message: dict[str, Json]) -> dict[str, Json]:
    """A message as a delta: the calls, which have no index here, get their place as one."""
    calls = message.get("tool_calls") or ()
    return {**message, "tool_calls": [{**call, "index": index} for index, call in enumerate(calls)]}


def usage_object(usage: Usage) -> dict[str, Json]:
    """The ``usage`` member, with the total that the API adds."""
    counts = {"prompt_tokens": usage.input, "completion_tokens": usage.output}
    known = {key: count for key, count in counts.items() if count is not None}
    return {**known, "total_tokens": sum(known.values())}
