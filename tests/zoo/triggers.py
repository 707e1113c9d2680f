"""The shortest way to write a provider's stream by hand: events as chunks of bytes, one chunk an event."""

from __future__ import annotations

import json
from typing import Any

Chunks = tuple[bytes, ...]
DONE = b"data: [DONE]\n\n"


def sse(*events: dict[str, Any]) -> Chunks:
    """Events as an event stream, named by their ``type`` where they have one."""
    return tuple(_named(event) + b"data: " + _json(event) + b"\n\n" for event in events)


def ndjson(*events: dict[str, Any]) -> Chunks:
    """Events as newline-delimited JSON."""
    return tuple(_json(event) + b"\n" for event in events)


def _named(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\n".encode() if "type" in event else b""


def _json(event: dict[str, Any]) -> bytes:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def chunk(*choices: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A chunk of a chat completion."""
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": list(choices),
        **more,
    }


def choice(index: int = 0, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """One choice of a chunk with a delta."""
    return {"index": index, "delta": delta, "finish_reason": finish}


def piece(index: int, arguments: str, id: str = "", name: str = "") -> dict[str, Any]:  # noqa: A002
    """A fragment of a tool call in a chat delta; the first of a call has its id and name."""
    if not id:
        return {"index": index, "function": {"arguments": arguments}}
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(*choices: dict[str, Any]) -> Chunks:
    """A chat completion, one chunk for each choice given, up to its ``[DONE]``."""
    return (*sse(*map(chunk, choices)), DONE)


def message_start(output: int = 1) -> dict[str, Any]:
    """The start of an Anthropic message."""
    message = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": output},
    }
    return {"type": "message_start", "message": message}


def block(index: int, kind: str, *pieces: str, **start: Any) -> tuple[dict[str, Any], ...]:
    """A content block from its start to its stop; thinking is signed."""
    deltas = {"text": "text", "thinking": "thinking", "tool_use": "partial_json"}
    types = {"text": "text_delta", "thinking": "thinking_delta", "tool_use": "input_json_delta"}
    empty = {"tool_use": {"input": {}}, "text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}
    return (
        {
            "type": "content_block_start",
            "index": index,
            "content_block": {"type": kind, **empty.get(kind, {}), **start},
        },
        *(
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": types[kind], deltas[kind]: text},
            }
            for text in pieces
        ),
        *([_delta(index, {"type": "signature_delta", "signature": "c2ln"})] if kind == "thinking" else []),
        {"type": "content_block_stop", "index": index},
    )


def _delta(index: int, delta: dict[str, str]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def message_end(reason: str = "end_turn", output: int = 9) -> tuple[dict[str, Any], ...]:
    """The two events that end an Anthropic message."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    return (
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": output}},
        {"type": "message_stop"},
    )


def record(content: str = "", done: bool = False, **more: Any) -> dict[str, Any]:
    """A line of Ollama's chat API; ``more`` are members of its message, or of the record once it is done."""
    message = {"role": "assistant", "content": content}
    head = {"model": "m", "created_at": "2025-01-01T00:00:00Z"}
    if done:
        calls = {"tool_calls": more.pop("tool_calls")} if "tool_calls" in more else {}
        return {**head, "message": message | calls, "done": True, "done_reason": "stop", **more}
    return {**head, "message": message | more, "done": False}


def ollama_call(name: str, **arguments: Any) -> dict[str, Any]:
    """A tool call of Ollama's chat API."""
    return {"function": {"name": name, "arguments": arguments}}


def response(status: str, output: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    """The response object inside the first and the last event."""
    return {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": status,
        "output": output or [],
        "usage": None,
        "error": None,
        "incomplete_details": None,
        **more,
    }


def call_item(index: int, call: str, name: str, *pieces: str, whole: str) -> tuple[dict[str, Any], ...]:
    """A function call item of a response from its beginning to its end."""
    item = {"id": f"fc{index}", "type": "function_call", "call_id": call, "name": name}
    at = {"item_id": f"fc{index}", "output_index": index}
    return (
        _item("added", index, item | {"arguments": "", "status": "in_progress"}),
        *({"type": "response.function_call_arguments.delta", **at, "delta": text} for text in pieces),
        {"type": "response.function_call_arguments.done", **at, "arguments": whole},
        _item("done", index, item | {"arguments": whole, "status": "completed"}),
    )


def text_item(index: int, *pieces: str) -> tuple[dict[str, Any], ...]:
    """A message item of a response with one text, from its beginning to its end."""
    item = {"id": f"msg{index}", "type": "message", "role": "assistant"}
    at = {"item_id": f"msg{index}", "output_index": index, "content_index": 0}
    part = {"type": "output_text", "annotations": [], "logprobs": []}
    whole = part | {"text": "".join(pieces)}
    return (
        _item("added", index, item | {"content": [], "status": "in_progress"}),
        {"type": "response.content_part.added", **at, "part": part | {"text": ""}},
        *({"type": "response.output_text.delta", **at, "delta": text, "logprobs": []} for text in pieces),
        {"type": "response.output_text.done", **at, "text": whole["text"], "logprobs": []},
        {"type": "response.content_part.done", **at, "part": whole},
        _item("done", index, item | {"content": [whole], "status": "completed"}),
    )


def _item(step: str, index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": f"response.output_item.{step}", "output_index": index, "item": item}


def responses(*events: dict[str, Any], status: str = "completed", **more: Any) -> Chunks:
    """A response with the given events inside it, numbered, up to its terminal event.

    ``status`` is that of the terminal event, or empty for a stream that has none.
    """
    output = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    steps = [{"type": "response.created", "response": response("in_progress")}, *events]
    if status:
        usage = {"input_tokens": 3, "output_tokens": 9, "total_tokens": 12}
        last = response(status, output, **{"usage": usage, **more})
        steps.append({"type": f"response.{status}", "response": last})
    return sse(*({**step, "sequence_number": number} for number, step in enumerate(steps)))
