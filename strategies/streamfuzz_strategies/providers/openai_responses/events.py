"""The vocabulary of the Responses stream: its event types, what they address, and what items say.

Everything is keyed by ``output_index`` and, inside an item, by slot and part index.  Item ids are not used as
keys where an index is given: one gateway sends another id with every event of the same item.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

from ...reply import Json, Opaque, Part, Reasoning, Refusal, Text, ToolCall
from ...stream import Event

EVENTS = "https://platform.openai.com/docs/api-reference/responses-streaming"
"""The reference of the stream's events."""

OBJECT = "https://platform.openai.com/docs/api-reference/responses/object"
"""The reference of the response object and its output items."""


@dataclass(frozen=True, slots=True)
class Words:
    """A text that is streamed as ``<prefix>.delta`` events and closed by ``<prefix>.done``.

    Attributes:
        item: the type of the item that holds it.
        slot: the member of the item where it ends up: a list of parts, or the text itself.
        part: the type of the part that holds it; ``None`` if it is a member of the item itself.
        index: the event member that counts the parts; ``None`` as above.
        member: the member of the done event, and of the part or item, that holds the full text.
    """

    item: str
    slot: str
    part: str | None
    index: str | None
    member: str


WORDS = {
    "response.output_text": Words("message", "content", "output_text", "content_index", "text"),
    "response.refusal": Words("message", "content", "refusal", "content_index", "refusal"),
    "response.reasoning_text": Words("reasoning", "content", "reasoning_text", "content_index", "text"),
    "response.reasoning_summary_text": Words("reasoning", "summary", "summary_text", "summary_index", "text"),
    "response.function_call_arguments": Words("function_call", "arguments", None, None, "arguments"),
    "response.custom_tool_call_input": Words("custom_tool_call", "input", None, None, "input"),
    "response.mcp_call_arguments": Words("mcp_call", "arguments", None, None, "arguments"),
    "response.code_interpreter_call_code": Words("code_interpreter_call", "code", None, None, "code"),
}

DELTAS = {f"{prefix}.delta": words for prefix, words in WORDS.items()}
FINALS = {f"{prefix}.done": words for prefix, words in WORDS.items()}
WHOLE_TEXTS = {words.item: words.slot for words in WORDS.values() if words.part is None}
"""Items whose streamed text is a member of their own: item type -> that member."""

PARTS = {
    "response.content_part": ("content", "content_index"),
    "response.reasoning_summary_part": ("summary", "summary_index"),
}
"""Events that open and close a part: prefix -> slot of the item and event member that counts the parts."""

ANNOTATION = "response.output_text.annotation.added"

PROGRESS = {
    f"response.{item}.{step}": item
    for item, steps in {
        "web_search_call": ("in_progress", "searching", "completed"),
        "file_search_call": ("in_progress", "searching", "completed"),
        "code_interpreter_call": ("in_progress", "interpreting", "completed"),
        "image_generation_call": ("in_progress", "generating", "partial_image", "completed"),
        "mcp_call": ("in_progress", "completed", "failed"),
        "mcp_list_tools": ("in_progress", "completed", "failed"),
    }.items()
    for step in steps
}
"""Events that tell how a tool of the provider's own is getting on, and the type of its item."""

OPENINGS = ("response.queued", "response.in_progress")
TERMINALS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}
"""Terminal event types and the status that the response in them has."""

TYPES = frozenset(
    (
        "error",
        "response.created",
        *OPENINGS,
        *TERMINALS,
        "response.output_item.added",
        "response.output_item.done",
        *(f"{prefix}.{step}" for prefix in PARTS for step in ("added", "done")),
        *DELTAS,
        *FINALS,
        ANNOTATION,
        *PROGRESS,
    )
)
"""Every event type that means something here.  All others are to be ignored: the API may add some any day."""


def kind(event: Event) -> str:
    """The event's type as on the wire; ``error`` for every error object, ``unknown`` for the rest."""
    data = event.data
    if not isinstance(data, dict):
        return "unknown"
    name = data.get("type")
    if isinstance(name, str) and name in TYPES:
        return name
    return "error" if error(event) is not None else "unknown"


def error(event: Event) -> str | None:
    """The message of an error event.

    Errors come flat (``type`` and ``message``, as documented), nested (the same with an ``error`` object, as
    seen on the wire), as a bare ``{"error": ...}`` from gateways, and as ``response.failed``.
    """
    data = event.data
    if not isinstance(data, dict):
        return None
    name = data.get("type")
    if name == "response.failed":
        response = data.get("response")
        cause = response.get("error") if isinstance(response, dict) else None
        return _message(cause) or ""
    if name == "error":
        return _message(data.get("error")) or _message(data) or ""
    if name is None and data.get("error"):
        return _message(data["error"]) or ""
    return None


def _message(cause: Json) -> str | None:
    if isinstance(cause, str):
        return cause or None
    if isinstance(cause, dict):
        found = cause.get("message") or cause.get("code")
        return found if isinstance(found, str) else None
    return None


def is_index(value: Json) -> TypeGuard[int]:
    """Whether a JSON value counts something: an integer from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def item_index(data: dict[str, Json], known: Callable[[str], int | None], last: int) -> int:
    """The output index of the item that an event is about.

    Some servers leave ``output_index`` out; then the item's id decides, and failing that the item opened last.
    """
    given = data.get("output_index")
    if is_index(given):
        return given
    item = data.get("item")
    name = data.get("item_id") or (item.get("id") if isinstance(item, dict) else None)
    found = known(name) if isinstance(name, str) else None
    return max(last, 0) if found is None else found


def part_index(data: dict[str, Json], member: str | None, count: int) -> int:
    """The index of the part that an event is about; of ``count`` parts the last one if it does not say."""
    given = data.get(member) if member is not None else 0
    return given if is_index(given) else max(count - 1, 0)


def part_text(part: Json) -> str | None:
    """The text of a content or summary part; ``None`` if it has none."""
    if not isinstance(part, dict):
        return None
    found = part.get("refusal") if part.get("type") == "refusal" else part.get("text")
    return found if isinstance(found, str) else None


def text_at(item: Json, slot: str, index: int) -> str | None:
    """The text that an item holds in a slot, for lists of parts at an index; ``None`` if there is none."""
    held = item.get(slot) if isinstance(item, dict) else None
    if isinstance(held, list):
        return part_text(held[index]) if index < len(held) else None
    return held if isinstance(held, str) else None


def canonical(value: Json) -> str:
    """JSON text that is the same for equal values."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except RecursionError:  # deeper than the encoder follows, which is not quite as deep as the decoder
        return "null"


def parts_of(item: Json) -> list[Part]:
    """What an output item says.

    A message gives one part for each text and refusal; a reasoning item one part, whose text is its
    ``reasoning_text`` parts joined, or where it has none its summary parts joined, and whose signature is its
    ``encrypted_content``; a function call one call, known by its ``call_id``.  Any other item is opaque.  Parts
    that say nothing (no text and no signature) are left out.
    """
    if not isinstance(item, dict):
        return []
    match item.get("type"):
        case "message":
            return [part for held in _list(item.get("content")) for part in _content(held)]
        case "reasoning":
            content = [part_text(held) or "" for held in _list(item.get("content"))]
            summary = [part_text(held) or "" for held in _list(item.get("summary"))]
            text, signature = "".join(content or summary), _string(item.get("encrypted_content"))
            return [Reasoning(text, signature)] if text or signature else []
        case "function_call":
            name, arguments = _string(item.get("name")), _string(item.get("arguments"))
            return [ToolCall(_string(item.get("call_id")), name or "", arguments or "")]
        case str() as other:
            return [Opaque(other, canonical(item))]
        case _:
            return []


def _content(held: Json) -> list[Part]:
    if not isinstance(held, dict):
        return []
    match held.get("type"):
        case "output_text":
            text = part_text(held)
            return [Text(text)] if text else []
        case "refusal":
            text = part_text(held)
            return [Refusal(text)] if text else []
        case str() as other:
            return [Opaque(other, canonical(held))]
        case _:
            return []


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _string(value: Json) -> str | None:
    return value if isinstance(value, str) else None
