"""How a chat completion payload is read, whatever it holds: shared by the lifecycle and the reducer.

Everything here is total: a member of a wrong type is read as if it were absent, and ``mistyped`` says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from ...reply import Json
from ...stream import Event, Raw

SENTINEL = "[DONE]"
OBJECT = "chat.completion.chunk"
CUT_FINISHES = frozenset({"length", "content_filter"})
FINISHES = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})
"""The finish reasons of the API reference; compatible servers have others."""

MAX_CHOICES = 128
"""The largest ``n`` that the API takes.  Up to it, an index that was left out is a choice that is missing."""

MARKS = frozenset({"choices", "usage", "object", "id", "model", "created", "error", "prompt_filter_results"})
"""Members by at least one of which an object shows itself to be a payload of this protocol."""

REASONING_KEYS = ("reasoning_content", "reasoning")
"""What compatible servers call thinking; a delta with both says the same twice."""

LEGACY_SLOT = -1
"""Where ``function_call``, which has no index, stands among the tool calls of its choice."""

Chain: TypeAlias = "tuple[Chain, str] | None"
"""Text pieces as a linked list, last piece outermost: appending is constant and shares what was there."""


def joined(chain: Chain) -> str:
    """The text whose pieces a chain holds."""
    pieces = []
    while chain is not None:
        chain, piece = chain
        pieces.append(piece)
    return "".join(reversed(pieces))


class Fragment(NamedTuple):
    """One piece of a tool call: its ``index`` (``None``: not sent), and what it adds."""

    slot: int | None
    id: str
    name: str
    arguments: str


class Call(NamedTuple):
    """A tool call as far as it has been streamed."""

    slot: int
    id: str = ""
    name: str = ""
    arguments: Chain = None


class Entry(NamedTuple):
    """One element of ``choices``: the choice it belongs to, what it adds, and its finish reason ("": none)."""

    number: int
    indexed: bool
    reasoning: str
    text: str
    refusal: str
    fragments: tuple[Fragment, ...]
    finish: str
    choice: dict[str, Json]

    @property
    def adds(self) -> bool:
        """Whether text or a piece of a call is in it that a reader must not lose."""
        return bool(self.reasoning or self.text or self.refusal) or any(
            f.arguments or f.name or f.id for f in self.fragments
        )


def is_done(event: Event) -> bool:
    """Whether the event is the sentinel ``[DONE]``."""
    return isinstance(event.data, Raw) and event.data.text == SENTINEL


def error(event: Event) -> str | None:
    """The message of an error event: an object with a truthy ``error``, whatever else it holds.

    The API sends an object with a ``message``; text-generation-inference sends the text itself.  An error
    that says nothing has the empty message.
    """
    found = event.data.get("error") if isinstance(event.data, dict) else None
    if not found:
        return None
    if isinstance(found, dict):
        return next((text for key in ("message", "type", "code") if (text := string(found.get(key)))), "")
    return string(found)


def entries(data: Json) -> Iterator[Entry]:
    """Read the ``choices`` of a payload, in their order."""
    choices = data.get("choices") if isinstance(data, dict) else None
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            yield _entry(choice)


def _entry(choice: dict[str, Json]) -> Entry:
    index = natural(choice.get("index"))
    found = choice.get("delta")
    delta: dict[str, Json] = found if isinstance(found, dict) else {}
    text, thinking = _content(delta.get("content"))
    return Entry(
        0 if index is None else index,
        index is not None,
        thinking + next((value for key in REASONING_KEYS if (value := string(delta.get(key)))), ""),
        text,
        string(delta.get("refusal")),
        tuple(_fragments(delta)),
        string(choice.get("finish_reason")),
        choice,
    )


def _content(content: Json) -> tuple[str, str]:
    """Text and thinking of a ``content``; Mistral streams a list of typed parts while its model thinks."""
    if not isinstance(content, list):
        return string(content), ""
    parts = [part for part in content if isinstance(part, dict)]
    thoughts = [_content(part.get("thinking"))[0] for part in parts if part.get("type") == "thinking"]
    words = [string(part.get("text")) for part in parts if part.get("type") == "text"]
    return "".join(words), "".join(thoughts)


def _fragments(delta: dict[str, Json]) -> Iterator[Fragment]:
    legacy = delta.get("function_call")
    if isinstance(legacy, dict):
        yield Fragment(LEGACY_SLOT, "", string(legacy.get("name")), string(legacy.get("arguments")))
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            function = call.get("function")
            function = function if isinstance(function, dict) else {}
            yield Fragment(
                natural(call.get("index")),
                string(call.get("id")),
                string(function.get("name")),
                string(function.get("arguments")),
            )


def place(calls: Sequence[Call], slot: int | None, call_id: str) -> int:
    """The position in ``calls`` of the call that a fragment belongs to; ``len(calls)`` if it opens one.

    A call is known by its index.  Where servers send none, or the same for all, the id decides: one that has
    not been seen opens a call, and a fragment without one continues the newest.
    """
    candidates = [p for p, call in enumerate(calls) if (call.slot >= 0 if slot is None else call.slot == slot)]
    if not candidates:
        return len(calls)
    if not call_id:
        return candidates[-1]
    known = next((p for p in candidates if calls[p].id == call_id), None)
    if known is not None:
        return known
    return candidates[-1] if slot is not None and not calls[candidates[-1]].id else len(calls)


def absorb(calls: list[Call], fragment: Fragment) -> int:
    """Add a fragment to the calls of its choice and return the position of the call that it went to.

    Id and name are set once, since servers repeat them; arguments are appended.
    """
    position = place(calls, fragment.slot, fragment.id)
    if position == len(calls):
        slot = fragment.slot
        calls.append(Call(max((c.slot for c in calls), default=-1) + 1 if slot is None else slot))
    call = calls[position]
    arguments = (call.arguments, fragment.arguments) if fragment.arguments else call.arguments
    calls[position] = Call(call.slot, call.id or fragment.id, call.name or fragment.name, arguments)
    return position


_DELTA_TYPES: dict[str, tuple[type, ...]] = {
    "content": (str,),
    "refusal": (str,),
    "reasoning_content": (str,),
    "reasoning": (str,),
    "tool_calls": (list,),
    "function_call": (dict,),
}
_CALL_TYPES: dict[str, tuple[type, ...]] = {"id": (str,), "function": (dict,)}
_FUNCTION_TYPES: dict[str, tuple[type, ...]] = {"name": (str,), "arguments": (str,)}


def mistyped(data: dict[str, Json]) -> bool:
    """Whether a member that carries the answer has another type than the protocol gives it; null is absent."""
    if _differs(data, {"choices": (list,), "usage": (dict,)}):
        return True
    return any(_mistyped_choice(choice) for choice in data.get("choices") or ())


def _mistyped_choice(choice: Json) -> bool:
    if _differs(choice, {"delta": (dict,), "finish_reason": (str,)}):
        return True
    delta = choice.get("delta") or {}
    if _differs(delta, _DELTA_TYPES) or _differs(delta.get("function_call") or {}, _FUNCTION_TYPES):
        return True
    return any(
        _differs(call, _CALL_TYPES) or _differs(call.get("function") or {}, _FUNCTION_TYPES)
        for call in delta.get("tool_calls") or ()
    )


def _differs(value: Json, types: dict[str, tuple[type, ...]]) -> bool:
    if not isinstance(value, dict):
        return True
    return any(value.get(key) is not None and not isinstance(value[key], types[key]) for key in types)


def string(value: Json) -> str:
    """The value if it is a string, else the empty string."""
    return value if isinstance(value, str) else ""


def natural(value: Json) -> int | None:
    """The value if it is a whole number from 0 up, else ``None``."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


_KINDS = ("finish", "tool_calls", "function_call", "content", "refusal", "reasoning", "role")


def kind(event: Event) -> str:
    """A short name for an event; ``chunk:`` ones are named after the weightiest thing that they carry."""
    data = event.data
    if is_done(event):
        return "done"
    if not isinstance(data, dict) or not MARKS.intersection(data):
        return "unknown"
    if error(event) is not None:
        return "error"
    found = list(entries(data))
    if not found:
        return _bare_kind(data)
    if data.get("object") == "" and not any(e.adds or e.finish for e in found):
        return "content_filter"
    carried = {what for e in found for what in _carried(e)}
    return next((f"chunk:{what}" for what in _KINDS if what in carried), "chunk:empty")


def _bare_kind(data: dict[str, Json]) -> str:
    for key, name in (("prompt_filter_results", "prompt_filter"), ("usage", "usage")):
        if data.get(key):
            return name
    return "chunk"


def _carried(entry: Entry) -> Iterator[str]:
    if entry.finish:
        yield "finish"
    if entry.fragments:
        yield "function_call" if entry.fragments[0].slot == LEGACY_SLOT else "tool_calls"
    for what, value in (("content", entry.text), ("refusal", entry.refusal), ("reasoning", entry.reasoning)):
        if value:
            yield what
    delta = entry.choice.get("delta")
    if isinstance(delta, dict) and delta.get("role"):
        yield "role"
