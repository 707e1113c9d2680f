"""JSON Schema (draft 2020-12) of every event type, built from one table of members.

Members that are not named may be there: servers add their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...reply import Json
from .events import ANNOTATION, OPENINGS, PARTS, PROGRESS, TERMINALS, WORDS

_STRING: Json = {"type": "string"}
_INDEX: Json = {"type": "integer", "minimum": 0}
_ARRAY: Json = {"type": "array"}


def _object(members: Mapping[str, Json], **more: Json) -> Json:
    return {"type": "object", "required": sorted(members), "properties": dict(members), **more}


def _typed(cases: Mapping[str, Mapping[str, Json]]) -> Json:
    """An object with a type, which decides the other members; types that are not named are open."""
    return _object(
        {"type": _STRING},
        allOf=[
            {"if": {"properties": {"type": {"const": name}}}, "then": _object(members)}
            for name, members in cases.items()
        ],
    )


_PART = _typed(
    {
        "output_text": {"text": _STRING, "annotations": _ARRAY},
        "refusal": {"refusal": _STRING},
        "reasoning_text": {"text": _STRING},
        "summary_text": {"text": _STRING},
    }
)
_PART_LIST: Json = {"type": "array", "items": _PART}
_ITEM = _typed(
    {
        "message": {"id": _STRING, "role": {"const": "assistant"}, "status": _STRING, "content": _PART_LIST},
        "reasoning": {"id": _STRING, "summary": _PART_LIST},
        "function_call": {"call_id": _STRING, "name": _STRING, "arguments": _STRING},
        "custom_tool_call": {"call_id": _STRING, "name": _STRING, "input": _STRING},
        "web_search_call": {"id": _STRING, "status": _STRING},
    }
)
_USAGE = _object({"input_tokens": _INDEX, "output_tokens": _INDEX, "total_tokens": _INDEX})
_RESPONSE = _object(
    {
        "id": _STRING,
        "object": {"const": "response"},
        "created_at": {"type": "number"},
        "model": _STRING,
        "status": _STRING,
        "output": {"type": "array", "items": _ITEM},
    }
)
_ENDED: Json = {
    "allOf": [
        _RESPONSE,
        {"properties": {"usage": {"anyOf": [{"type": "null"}, _USAGE]}}},
    ]
}
_PLACE = {"item_id": _STRING, "output_index": _INDEX}

_MEMBERS: Mapping[str, Mapping[str, Json]] = {
    "response.created": {"response": _RESPONSE},
    **{name: {"response": _RESPONSE} for name in OPENINGS},
    **{name: {"response": _ENDED} for name in TERMINALS},
    "response.output_item.added": {"output_index": _INDEX, "item": _ITEM},
    "response.output_item.done": {"output_index": _INDEX, "item": _ITEM},
    **{
        f"{prefix}.{step}": {**_PLACE, index: _INDEX, "part": _PART}
        for prefix, (_, index) in PARTS.items()
        for step in ("added", "done")
    },
    **{
        f"{prefix}.{step}": {**_PLACE, **({words.index: _INDEX} if words.index else {}), member: _STRING}
        for prefix, words in WORDS.items()
        for step, member in (("delta", "delta"), ("done", words.member))
    },
    ANNOTATION: {**_PLACE, "content_index": _INDEX, "annotation_index": _INDEX},
    **dict.fromkeys(PROGRESS, _PLACE),
}

SCHEMAS: Mapping[str, Json] = {
    **{
        name: _object({"type": {"const": name}, "sequence_number": _INDEX, **members})
        for name, members in _MEMBERS.items()
    },
    "error": {
        "anyOf": [
            _object({"type": {"const": "error"}, "message": _STRING}),
            _object({"error": {"type": ["object", "string"]}}),
        ]
    },
}
"""The schema of each event, by :func:`~.events.kind`."""
