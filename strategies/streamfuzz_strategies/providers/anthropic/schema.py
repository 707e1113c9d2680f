"""JSON Schemas (draft 2020-12) of the events, keyed by their kind.  Members beyond these are lawful."""

from __future__ import annotations

from collections.abc import Mapping

from ...reply import Json
from .protocol import REASONS, TAKES

_STRING: Json = {"type": "string"}
_MAYBE_STRING: Json = {"type": ["string", "null"]}
_COUNT: Json = {"type": "integer", "minimum": 0}
_OBJECT: Json = {"type": "object"}
_REASON: Json = {"enum": [None, *REASONS]}


def _object(required: Mapping[str, Json], optional: Mapping[str, Json] | None = None) -> Json:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def _typed(name: str, required: Mapping[str, Json], optional: Mapping[str, Json] | None = None) -> Json:
    return _object({"type": {"const": name}, **required}, optional)


_MESSAGE = _typed(
    "message",
    {
        "id": _STRING,
        "role": {"const": "assistant"},
        "model": _STRING,
        "content": {"type": "array", "items": _object({"type": _STRING})},
        "stop_reason": _REASON,
        "stop_sequence": _MAYBE_STRING,
        "usage": _object({"input_tokens": _COUNT, "output_tokens": _COUNT}),
    },
)

_CALL = {"id": _STRING, "name": _STRING, "input": _OBJECT}
_RESULT = {"tool_use_id": _STRING, "content": {"type": ["array", "object"]}}

_BLOCKS: Mapping[str, Mapping[str, Json]] = {
    "text": {"text": _STRING},
    "thinking": {"thinking": _STRING},
    "redacted_thinking": {"data": _STRING},
    "tool_use": _CALL,
    "server_tool_use": _CALL,
    "mcp_tool_use": {**_CALL, "server_name": _STRING},
    "mcp_tool_result": {**_RESULT, "content": {"type": ["array", "string"]}},
    "container_upload": {"file_id": _STRING},
    "compaction": {"content": _MAYBE_STRING},
    "fallback": {},
    **{block: _RESULT for block in TAKES if block.endswith("_tool_result") and block != "mcp_tool_result"},
}
"""What each block type requires at its start."""

_DELTAS: Mapping[str, Mapping[str, Json]] = {
    "text_delta": {"text": _STRING},
    "citations_delta": {"citation": _object({"type": _STRING, "cited_text": _STRING})},
    "thinking_delta": {"thinking": _STRING},
    "signature_delta": {"signature": _STRING},
    "input_json_delta": {"partial_json": _STRING},
    "compaction_delta": {},
}
"""What each delta type requires."""

SCHEMAS: Mapping[str, Json] = {
    "message_start": _typed("message_start", {"message": _MESSAGE}),
    **{
        f"content_block_start:{block}": _typed(
            "content_block_start", {"index": _COUNT, "content_block": _typed(block, required)}
        )
        for block, required in _BLOCKS.items()
    },
    **{
        f"content_block_delta:{delta}": _typed(
            "content_block_delta", {"index": _COUNT, "delta": _typed(delta, required)}
        )
        for delta, required in _DELTAS.items()
    },
    "content_block_stop": _typed("content_block_stop", {"index": _COUNT}),
    "message_delta": _typed(
        "message_delta",
        {
            "delta": _object({"stop_reason": _REASON}, {"stop_sequence": _MAYBE_STRING}),
            "usage": _object({"output_tokens": _COUNT}, {"input_tokens": {"type": ["integer", "null"]}}),
        },
    ),
    "message_stop": _typed("message_stop", {}),
    "ping": _typed("ping", {}),
    "error": _typed("error", {"error": _object({"type": _STRING, "message": _STRING})}),
}
