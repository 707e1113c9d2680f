"""JSON Schemas of chat completion chunks, by kind.  Members that they do not name are lawful.

Source: https://platform.openai.com/docs/api-reference/chat-streaming
"""

from __future__ import annotations

from collections.abc import Mapping

from ...reply import Json
from .shape import FINISHES, OBJECT, SENTINEL

_STRING_OR_NULL: Json = {"type": ["string", "null"]}
_INDEX: Json = {"type": "integer", "minimum": 0}


def _object(required: Mapping[str, Json], optional: Mapping[str, Json]) -> Json:
    return {"type": "object", "required": sorted(required), "properties": {**required, **optional}}


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


_FUNCTION = _object({}, {"name": _STRING_OR_NULL, "arguments": _STRING_OR_NULL})
_FRAGMENT = _object(
    {"index": _INDEX},
    {"id": _STRING_OR_NULL, "type": {"enum": ["function", None]}, "function": _or_null(_FUNCTION)},
)
_TOKEN = _object(
    {"token": {"type": "string"}, "logprob": {"type": "number"}, "top_logprobs": {"type": "array"}},
    {"bytes": _or_null({"type": "array", "items": {"type": "integer"}})},
)
_TOKENS = _or_null({"type": "array", "items": _TOKEN})
_DELTA = _object(
    {},
    {
        "role": {"enum": ["developer", "system", "user", "assistant", "tool", None]},
        "content": _STRING_OR_NULL,
        "refusal": _STRING_OR_NULL,
        "reasoning_content": _STRING_OR_NULL,
        "reasoning": _STRING_OR_NULL,
        "tool_calls": _or_null({"type": "array", "items": _FRAGMENT}),
        "function_call": _or_null(_FUNCTION),
    },
)
_CHOICE = _object(
    {"index": _INDEX, "delta": _DELTA, "finish_reason": {"enum": [*sorted(FINISHES), None]}},
    {"logprobs": _or_null(_object({}, {"content": _TOKENS, "refusal": _TOKENS}))},
)
_COUNT: Json = {"type": "integer", "minimum": 0}
_USAGE = _object({"prompt_tokens": _COUNT, "completion_tokens": _COUNT, "total_tokens": _COUNT}, {})


def _chunk(required: Mapping[str, Json], *, of: str = OBJECT) -> Json:
    named = {key: {"type": "string"} for key in ("id", "model")}
    head = {**named, "object": {"const": of}, "created": {"type": "integer"}}
    choices = {"choices": {"type": "array", "items": _CHOICE}}
    optional = {
        "usage": _or_null(_USAGE),
        "service_tier": _STRING_OR_NULL,
        "system_fingerprint": _STRING_OR_NULL,
        "obfuscation": {"type": "string"},
    }
    return _object({**head, **choices, **required}, optional)


def _some(choice: Json) -> Json:
    """Some choice of the chunk is like this."""
    return {"choices": {"type": "array", "items": _CHOICE, "contains": choice}}


def _carrying(member: str, value: Json) -> Json:
    delta = {"type": "object", "required": [member], "properties": {member: value}}
    return _chunk(_some({"required": ["delta"], "properties": {"delta": delta}}))


_WORDS: Json = {"type": "string", "minLength": 1}
_NO_CHOICE: Json = {"type": "array", "maxItems": 0}
_VERDICTS: Json = {
    "type": "array",
    "minItems": 1,
    "items": _object({"prompt_index": _INDEX, "content_filter_results": {"type": "object"}}, {}),
}
_REASONING: Json = {"anyOf": [_carrying(key, _WORDS) for key in ("reasoning_content", "reasoning")]}

SCHEMAS: Mapping[str, Json] = {
    "chunk": _chunk({"choices": _NO_CHOICE}),
    "chunk:role": _carrying("role", {"type": "string"}),
    "chunk:content": _carrying("content", _WORDS),
    "chunk:refusal": _carrying("refusal", _WORDS),
    "chunk:reasoning": _REASONING,
    "chunk:tool_calls": _carrying("tool_calls", {"type": "array", "minItems": 1}),
    "chunk:function_call": _carrying("function_call", {"type": "object"}),
    "chunk:finish": _chunk(_some({"properties": {"finish_reason": {"enum": sorted(FINISHES)}}})),
    "chunk:empty": _chunk({"choices": {"type": "array", "items": _CHOICE, "minItems": 1}}),
    "usage": _chunk({"choices": _NO_CHOICE, "usage": _USAGE}),
    "prompt_filter": _chunk({"choices": _NO_CHOICE, "prompt_filter_results": _VERDICTS}, of=""),
    "content_filter": _chunk(
        {"choices": {"type": "array", "items": _object({"index": _INDEX}, {}), "minItems": 1}}, of=""
    ),
    "error": _object({"error": {"type": ["object", "string"]}}, {}),
    "done": {"const": SENTINEL},
}
"""By kind.  ``done`` is not JSON on the wire: its schema is of the payload's text."""
