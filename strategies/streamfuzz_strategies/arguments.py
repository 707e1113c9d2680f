"""Tool calls whose arguments follow a JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema

from .providers.base import Draw, Drawing
from .reply import Json
from .text import HOSTILE

_HOSTILE_STRING = {"type": "string", "enum": list(HOSTILE)}

TOOLS: Mapping[str, Json] = {
    "now": {"type": "object", "properties": {}, "additionalProperties": False},
    "search": {
        "type": "object",
        "properties": {
            "q": _HOSTILE_STRING,
            "limit": {"type": "integer", "minimum": -(2**53), "maximum": 2**53},
        },
        "required": ["q"],
        "additionalProperties": False,
    },
    "edit": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "enum": ["a/b.py", "\u00e9/\U0001f600", "x\\y"]},
            "lines": {
                "type": "array",
                "items": {"type": "number", "minimum": -1000, "maximum": 1000},
                "maxItems": 3,
            },
            "force": {"enum": [True, False, None]},
            "\u952e": _HOSTILE_STRING,
        },
        "required": ["path"],
        "additionalProperties": False,
    },
}
"""The built-in tools: no arguments, flat arguments with hostile strings, nested ones with odd keys."""


@lru_cache(maxsize=64)
def _values(schema_text: str) -> st.SearchStrategy[Json]:
    return from_schema(json.loads(schema_text))


def tool_values(draw: Draw, drawing: Drawing) -> tuple[str, dict[str, Json]]:
    """Draw a tool's name and its arguments as an object that its schema accepts."""
    tools = drawing.tools if drawing.tools is not None else TOOLS
    name = draw(st.sampled_from(sorted(tools)))
    return name, draw(_values(json.dumps(tools[name])))


_SPACING = st.sampled_from(((",", ":"), (", ", ": ")))


def tool_texts(draw: Draw, drawing: Drawing) -> tuple[str, str]:
    """Draw a tool's name and its arguments as JSON text, spelled in one of several lawful ways."""
    name, value = tool_values(draw, drawing)
    return name, json.dumps(value, ensure_ascii=draw(st.booleans()), separators=draw(_SPACING))
