"""What the words of the Messages stream mean: its event, block and delta types, and how an event is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeGuard

from ...reply import Json
from ...stream import Event, MalformedJson, Raw, parse_json

STREAMING = "https://docs.claude.com/en/docs/build-with-claude/streaming"
"""The vendor's description of the event flow."""

THINKING = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
TOOL_USE = "https://docs.claude.com/en/docs/agents-and-tools/tool-use/fine-grained-tool-streaming"
STOP_REASONS = "https://docs.claude.com/en/api/handling-stop-reasons"

EVENT_TYPES = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
        "error",
    }
)
"""Event types with a meaning; by the documentation a reader ignores any other."""

DELTA_MEMBERS: Mapping[str, str] = MappingProxyType(
    {
        "text_delta": "text",
        "citations_delta": "citation",
        "thinking_delta": "thinking",
        "signature_delta": "signature",
        "input_json_delta": "partial_json",
        "compaction_delta": "content",
    }
)
"""Delta types, each with the member that carries what it adds."""

TAKES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "text": frozenset({"text_delta", "citations_delta"}),
        "thinking": frozenset({"thinking_delta", "signature_delta"}),
        "tool_use": frozenset({"input_json_delta"}),
        "server_tool_use": frozenset({"input_json_delta"}),
        "mcp_tool_use": frozenset({"input_json_delta"}),
        "compaction": frozenset({"compaction_delta"}),
        **dict.fromkeys(
            (
                "redacted_thinking",
                "web_search_tool_result",
                "web_fetch_tool_result",
                "code_execution_tool_result",
                "bash_code_execution_tool_result",
                "text_editor_code_execution_tool_result",
                "tool_search_tool_result",
                "mcp_tool_result",
                "advisor_tool_result",
                "container_upload",
                "fallback",
            ),
            frozenset[str](),
        ),
    }
)
"""Block types, each with the deltas that may build it; the last ones arrive whole in their start."""

CUT_REASONS = frozenset({"max_tokens", "model_context_window_exceeded"})
"""Stop reasons that say the answer ran out of room, so its last block may be torn."""

REASONS = ("end_turn", "tool_use", "stop_sequence", "refusal", "pause_turn", *sorted(CUT_REASONS))
"""Every stop reason of the stable API."""

STOP_SEQUENCE = "\n\nHuman:"
"""The sequence that stops an answer whose stop reason is ``stop_sequence``; replies do not keep it."""


def type_of(event: Event) -> str | None:
    """What the event is: the ``type`` inside its data, else the SSE event name, else ``None``.

    The two agree in every lawful stream.  A type that nobody knows gives way to a name that is known, as for
    readers that dispatch on the name.
    """
    data = event.data
    inner = data.get("type") if isinstance(data, dict) else None
    inner = inner if isinstance(inner, str) else None
    name = None if event.name == "message" else event.name
    if inner in EVENT_TYPES or name not in EVENT_TYPES:
        return inner or name
    return name


def kind(event: Event) -> str:
    """A short name for what the event is: its type, with the block or delta type after a colon."""
    found = type_of(event)
    if error(event) is not None:
        return "error"
    if found not in EVENT_TYPES or not isinstance(event.data, dict):
        return "unknown"
    if found == "content_block_start":
        return f"{found}:{_inner_type(event.data.get('content_block'), TAKES)}"
    if found == "content_block_delta":
        return f"{found}:{_inner_type(event.data.get('delta'), DELTA_MEMBERS)}"
    return str(found)


def _inner_type(holder: Json, known: Mapping[str, object]) -> str:
    found = holder.get("type") if isinstance(holder, dict) else None
    return found if isinstance(found, str) and found in known else "unknown"


def error(event: Event) -> str | None:
    """What an ``error`` event says went wrong: its message, else its error type, else nothing (``""``).

    ``None`` for every other event.
    """
    data = event.data
    if type_of(event) != "error":
        return None
    if isinstance(data, Raw):
        return data.text
    about = data.get("error") if isinstance(data, dict) else data
    if isinstance(about, dict):
        about = next((about[key] for key in ("message", "type") if isinstance(about.get(key), str)), "")
    return about if isinstance(about, str) else ""


def is_index(value: Json) -> TypeGuard[int]:
    """Whether the value can number a block."""
    return isinstance(value, int) and not isinstance(value, bool)


def compact(value: Json) -> str:
    """JSON text without spaces, members in their own order, characters unescaped where JSON allows it."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:  # decoding may just have fitted where encoding does not
        return '"nested too deeply"'


def canonical(value: Json) -> str:
    """Like :func:`compact`, with members sorted, so that equal values are equal texts."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    except RecursionError:
        return '"nested too deeply"'


def json_object(text: str) -> dict[str, Json] | None:
    """The object that the text spells, ``None`` if it spells anything else."""
    try:
        value = parse_json(text)
    except MalformedJson:
        return None
    return value if isinstance(value, dict) else None
