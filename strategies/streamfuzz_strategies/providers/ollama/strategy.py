"""Replies that Ollama can give, and the many ways to stream them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from ...arguments import tool_values
from ...reply import Choice, Json, Part, Reasoning, Reply, Text, ToolCall, Usage, merge_text
from ...stream import Event
from ...text import slice_text, texts
from ..base import Draw, Drawing
from .reducer import canonical

_PARTS = st.sampled_from(("text", "text", "reasoning", "call"))
_MODELS = st.sampled_from(("m", "llama3.2", "hf.co/\u00e9/x:Q4_K_M"))
_FINISHES = st.sampled_from(("stop", "length"))
_EMPTY_FINISHES = st.sampled_from(("stop", "length", "load", "unload"))
_USAGES = st.sampled_from((None, Usage(26, 259), Usage(1, 1), Usage(None, 7), Usage(2**31, None)))
_IDS = st.sampled_from((None, "call_{}", "{}"))
# Echoes and numbered tokens: cut by their own length they give equal deltas, or deltas that name themselves.
_TEXTS = st.one_of(texts(), st.sampled_from(("hahahaha", "aaaaaa", "<0><1><2><3><4>")))
_STRIDES = st.sampled_from((0, 0, 0, 1, 2, 3))
_MOST_PIECES = 5
_JOINS = st.integers(0, 2**10 - 1)
_INDEXED = st.sampled_from((None, "counted", "zero"))
_LOGPROBS = st.sampled_from((False, False, False, True))


def draw_reply(draw: Draw, drawing: Drawing) -> Reply:
    """Draw thinking, text and calls in any order, with neighbours of a kind already joined."""
    kinds = draw(st.lists(_PARTS, max_size=drawing.max_parts))
    id_format = draw(_IDS) if "call" in kinds else None
    parts: list[Part] = []
    for number, part in enumerate(kinds):
        if part == "call":
            name, arguments = tool_values(draw, drawing)
            id_ = None if id_format is None else id_format.format(number)
            parts.append(ToolCall(id_, name, canonical(arguments)))
        else:
            text = draw(_TEXTS if drawing.alphabet is None else texts(drawing))
            parts.append(Text(text) if part == "text" else Reasoning(text))
    finish = draw(_FINISHES if parts else _EMPTY_FINISHES)
    return Reply((Choice(merge_text(tuple(parts)), finish),), None, draw(_MODELS), draw(_USAGES))


def draw_events(draw: Draw, reply: Reply, drawing: Drawing) -> tuple[Event, ...]:
    """Draw how the parts are cut, which pieces share a record, and what the last record carries."""
    indexed = draw(_INDEXED) if reply.tool_calls else None
    pieces: list[tuple[str, Json]] = []
    for part in reply.choices[0].parts:
        if isinstance(part, ToolCall):
            index = None if indexed is None else 0 if indexed == "zero" else _calls_in(pieces)
            pieces.append(("tool_calls", _call_json(part, index)))
        elif isinstance(part, Text | Reasoning):
            member = "content" if isinstance(part, Text) else "thinking"
            pieces.extend((member, piece) for piece in _cut(draw, part.text))
    joins = draw(_JOINS)
    messages = _pack(pieces, joins)
    # The first piece has nothing to join, so its bit says whether the last record is also the end.
    last = messages.pop() if messages and joins & 1 else {}
    return _records(reply, messages, last, timed=True, logprobs=draw(_LOGPROBS))


def plain_events(reply: Reply) -> tuple[Event, ...]:
    """One record for each part, then an empty last one."""
    messages = [message for part in reply.choices[0].parts for message in _pack(_pieces(part), 0)]
    return _records(reply, messages, {})


def body(reply: Reply) -> Json:
    """The answer with ``stream`` false: the last record with the whole message.

    The order of parts of different kinds is lost in it, as it is in the API.
    """
    message: dict[str, Json] = {}
    for part in reply.choices[0].parts:
        for member, piece in _pieces(part):
            if member == "tool_calls":
                message.setdefault(member, []).append(piece)
            else:
                message[member] = message.get(member, "") + piece
    return _records(reply, (), message)[0].data


def _pieces(part: Part) -> list[tuple[str, Json]]:
    match part:
        case Text(text):
            return [("content", text)]
        case Reasoning(text):
            return [("thinking", text)]
        case ToolCall():
            return [("tool_calls", _call_json(part, None))]
    return []


def _cut(draw: Draw, text: str) -> list[str]:
    stride = draw(_STRIDES)
    if stride and len(text) <= _MOST_PIECES * stride:
        return [text[at : at + stride] for at in range(0, len(text), stride)]
    return slice_text(draw, text, max_pieces=_MOST_PIECES)


def _calls_in(pieces: Sequence[tuple[str, Json]]) -> int:
    return sum(member == "tool_calls" for member, _ in pieces)


def _call_json(call: ToolCall, index: int | None) -> Json:
    function: dict[str, Json] = {} if index is None else {"index": index}
    function |= {"name": call.name, "arguments": json.loads(call.arguments)}
    return {"function": function} if call.id is None else {"id": call.id, "function": function}


def _pack(pieces: Sequence[tuple[str, Json]], joins: int) -> list[dict[str, Json]]:
    """Put pieces into messages, piece ``n`` with the one before if bit ``n`` is set and order allows."""
    messages: list[dict[str, Json]] = []
    for number, (member, piece) in enumerate(pieces):
        if not messages or not joins >> number & 1 or not _fits(messages[-1], member):
            messages.append({})
        if member == "tool_calls":
            messages[-1].setdefault(member, []).append(piece)
        else:
            messages[-1][member] = piece
    return messages


def _fits(message: dict[str, Json], member: str) -> bool:
    return member == "tool_calls" or (member == "content" and message.keys() == {"thinking"})


def _records(
    reply: Reply,
    messages: Sequence[dict[str, Json]],
    last: dict[str, Json],
    *,
    timed: bool = False,
    logprobs: bool = False,
) -> tuple[Event, ...]:
    records = [_record(reply, number, message, False) for number, message in enumerate(messages)]
    final = _record(reply, len(messages), last, True)
    if (finish := reply.choices[0].finish) is not None:
        final["done_reason"] = finish
    usage = reply.usage or Usage()
    counts = {"prompt_eval_count": usage.input, "eval_count": usage.output}
    final |= {member: count for member, count in counts.items() if count is not None}
    if timed:
        final |= {"total_duration": 4648158584, "eval_duration": 4071}
    records.append(final)
    if logprobs:
        for record in records:
            if content := record["message"]["content"]:
                record["logprobs"] = [{"token": content, "logprob": -0.5}]
    return tuple(map(Event, records))


def _record(reply: Reply, number: int, message: dict[str, Json], done: bool) -> dict[str, Json]:
    head = {} if reply.model is None else {"model": reply.model}
    return {
        **head,
        "created_at": f"2025-01-01T00:00:{number % 60:02d}Z",
        "message": {"role": "assistant", "content": "", **message},
        "done": done,
    }
