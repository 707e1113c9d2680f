"""The shape of each kind of line, as the chat API documents it."""

from __future__ import annotations

from ...reply import Json

_COUNT = {"type": "integer", "minimum": 0}
_MESSAGE_SCHEMA = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"const": "assistant"},
        "content": {"type": "string"},
        "thinking": {"type": "string"},
        "tool_calls": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["function"],
                "properties": {
                    "id": {"type": "string"},
                    "function": {
                        "type": "object",
                        "required": ["name", "arguments"],
                        "properties": {
                            "index": _COUNT,
                            "name": {"type": "string"},
                            "arguments": {"type": "object"},
                        },
                    },
                },
            },
        },
    },
}
_RECORD_MEMBERS = {
    "model": {"type": "string"},
    "created_at": {"type": "string"},
    "message": _MESSAGE_SCHEMA,
    "logprobs": {"type": "array"},
}
_STATISTICS = (
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
)
_CHUNK = {
    "type": "object",
    "required": ["model", "created_at", "message", "done"],
    "properties": {**_RECORD_MEMBERS, "done": {"const": False}},
}
SCHEMAS: dict[str, Json] = {
    "chunk": _CHUNK,
    "chunk:empty": _CHUNK,
    "done": {
        "type": "object",
        "required": ["model", "created_at", "message", "done"],
        "properties": {
            **_RECORD_MEMBERS,
            "done": {"const": True},
            "done_reason": {"type": "string"},
            **dict.fromkeys(_STATISTICS, _COUNT),
        },
    },
    "error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}},
}
