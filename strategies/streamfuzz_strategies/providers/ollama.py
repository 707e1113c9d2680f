"""Ollama's native chat API: one JSON record a line, the last of them with ``done`` true.

Every record repeats the model and carries a message of which ``content`` and ``thinking`` are appended and
whose tool calls are whole.  Only the record with ``done`` true has a reason and counts; it may carry a last
piece of the message as well.  A failure after the first byte is a line ``{"error": "..."}`` in place of the
rest.

A record can hold thinking, content and tool calls together; they are read in that order.  Where the last
record gives no ``done_reason`` the reply's ``finish`` stays ``None``: the stream never said, and nothing is
invented.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from ..arguments import tool_values
from ..framing.ndjson import NDJSON
from ..reply import Choice, Json, Part, Reasoning, Reply, Text, ToolCall, Usage, merge_text, usage_of
from ..rules import END, Break, Machine, Rule, Step, Walk
from ..stream import Event, Raw
from ..text import slice_text, texts
from .base import Draw, Drawing, Provider

CHAT = "https://docs.ollama.com/api/chat"
STREAMING = "https://docs.ollama.com/api/streaming"

UNFINISHED = Rule("ollama.stream.unfinished", "the stream ended before a record with done true", STREAMING)
AFTER_DONE = Rule(
    "ollama.stream.after-done", "a record followed the one that said done true", STREAMING, "may"
)
NOT_OBJECT = Rule("ollama.record.not-object", "a line held a JSON value that was not an object", CHAT)
FOREIGN = Rule("ollama.record.foreign", "a line held none of the members of a chat record", CHAT, "may")
DONE = Rule("ollama.record.done", "a record's done was missing or not a boolean", CHAT, "may")
MODEL = Rule("ollama.record.model", "a record named another model than the records before it", CHAT)
MESSAGE = Rule(
    "ollama.message.shape", "a record's message was missing or a member of it had the wrong type", CHAT, "may"
)
CALL = Rule("ollama.call.shape", "a tool call lacked a name or an object of arguments", CHAT, "may")

MACHINES = {
    "stream": Machine(
        "stream",
        "open",
        {
            "open": {
                "record": "open",
                "last": "done",
                "error": "failed",
                "value": Break(NOT_OBJECT, "open", "skip"),
                "foreign": Break(FOREIGN, "open", "skip"),
                "undone": Break(DONE, "open"),
                "unclear": Break(DONE, "unsure", "either"),
                END: Break(UNFINISHED, "open"),
            },
            # A reader that asks whether done is truthy has its end here, one that asks for true has not.
            "unsure": {
                "last": Break(AFTER_DONE, "done", "either"),
                "error": "failed",
                "*": Break(AFTER_DONE, "unsure", "either"),
                END: "unsure",
            },
            "done": {"*": Break(AFTER_DONE, "done", "skip"), END: "done"},
            "failed": {},
        },
        always=True,
    ),
    "model": Machine(
        "model",
        "unnamed",
        {"unnamed": {"named": "named"}, "named": {"another": Break(MODEL, "named")}},
    ),
}

_MARKS = frozenset(("model", "created_at", "message", "done"))
_BAD_MESSAGE = Step("stream", "message", breaks=Break(MESSAGE, "", "either"))
_BAD_CALL = Step("stream", "call", breaks=Break(CALL, "", "either"))


def steps(event: Event, walk: Walk) -> Iterable[Step]:
    """What a line does; nothing once the stream has failed."""
    record = event.data
    state = walk.state("stream")
    if isinstance(record, Raw) or state == "failed":
        return ()
    symbol = _symbol(event)
    if state == "done" or symbol in ("error", "value", "foreign"):
        return (Step("stream", symbol),)
    return (Step("stream", symbol), *_model_steps(record, walk), *_message_steps(record.get("message")))


def _symbol(event: Event) -> str:
    record = event.data
    if record is None:  # the official Go client decodes null into an empty record and goes on
        return "foreign"
    if not isinstance(record, dict):
        return "value"
    if error(event) is not None:
        return "error"
    if _MARKS.isdisjoint(record):
        return "foreign"
    done = record.get("done")
    if done is None:
        return "undone"
    return "unclear" if not isinstance(done, bool) else "last" if done else "record"


def _model_steps(record: dict[str, Json], walk: Walk) -> Iterable[Step]:
    model = record.get("model")
    if not isinstance(model, str) or not model:
        return
    known = next((key for machine, key in walk.states if machine == "model"), None)
    if known is None:
        yield Step("model", "named", model)
    elif known != model:
        yield Step("model", "another", known)


def _message_steps(message: Json) -> Iterable[Step]:
    if not isinstance(message, dict):
        yield _BAD_MESSAGE
        return
    calls = message.get("tool_calls")
    if not isinstance(calls, list | None) or not all(
        isinstance(message.get(member), str | None) for member in ("content", "thinking")
    ):
        yield _BAD_MESSAGE
    elif not all(map(_is_call, calls or ())):
        yield _BAD_CALL


def _is_call(call: Json) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return (
        isinstance(function, dict)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), dict)
    )


def error(event: Event) -> str | None:
    """The message of an error line."""
    found = event.data.get("error") if isinstance(event.data, dict) else None
    if not found:
        return None
    return found if isinstance(found, str) else canonical(found)


def kind(event: Event) -> str:
    """``chunk``, ``done``, ``error``, or ``unknown``."""
    return _KINDS[_symbol(event)]


_KINDS = {
    "record": "chunk",
    "undone": "chunk",
    "unclear": "chunk",
    "last": "done",
    "error": "error",
    "foreign": "unknown",
    "value": "unknown",
}


def canonical(value: Json) -> str:
    """Compact JSON text of a value, its members in the order in which they stand."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits, to be written
        return "null"


class OllamaReducer:
    """Appends what the records bring until one of them is the last."""

    __slots__ = ("_closed", "_finish", "_model", "_parts", "_usage")

    def __init__(self) -> None:
        self._parts: list[ToolCall | tuple[type[Text] | type[Reasoning], list[str]]] = []
        self._model: str | None = None
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._closed = False

    def apply(self, event: Event) -> None:
        """Take in one line."""
        record = event.data
        if self._closed or not isinstance(record, dict):
            return
        if error(event) is not None:
            self._closed = True
            return
        if self._model is None and isinstance(model := record.get("model"), str):
            self._model = model or None
        if isinstance(message := record.get("message"), dict):
            self._append(Reasoning, message.get("thinking"))
            self._append(Text, message.get("content"))
            calls = message.get("tool_calls")
            for call in calls if isinstance(calls, list) else ():
                self._call(call)
        if record.get("done"):
            self._closed = True
            reason = record.get("done_reason")
            self._finish = reason if isinstance(reason, str) and reason else None
            usage = usage_of(record, "prompt_eval_count", "eval_count")
            self._usage = usage if usage != Usage() else None

    def reply(self) -> Reply:
        """The reply so far: always one choice."""
        parts = tuple(
            part if isinstance(part, ToolCall) else part[0]("".join(part[1])) for part in self._parts
        )
        return Reply((Choice(parts, self._finish),), None, self._model, self._usage)

    def released(self) -> Sequence[ToolCall]:
        """Every call so far: each arrives whole."""
        return [part for part in self._parts if isinstance(part, ToolCall)]

    def _append(self, of: type[Text] | type[Reasoning], text: Json) -> None:
        if not isinstance(text, str) or not text:
            return
        last = self._parts[-1] if self._parts else None
        if isinstance(last, tuple) and last[0] is of:
            last[1].append(text)
        else:
            self._parts.append((of, [text]))

    def _call(self, call: Json) -> None:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(name := function.get("name"), str):
            return
        id_, arguments = call.get("id"), function.get("arguments")
        if not isinstance(arguments, str):
            arguments = canonical({} if arguments is None else arguments)
        self._parts.append(ToolCall(id_ if isinstance(id_, str) and id_ else None, name, arguments))


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
SCHEMAS: dict[str, Json] = {
    "chunk": {
        "type": "object",
        "required": ["model", "created_at", "message", "done"],
        "properties": {**_RECORD_MEMBERS, "done": {"const": False}},
    },
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

PROVIDERS = {
    "ollama": Provider(
        name="ollama",
        title="Ollama chat",
        source=CHAT,
        framing=NDJSON,
        machines=MACHINES,
        steps=steps,
        reducer=OllamaReducer,
        draw_reply=draw_reply,
        draw_events=draw_events,
        plain_events=plain_events,
        error=error,
        kind=kind,
        schemas=SCHEMAS,
        cut_finishes=frozenset(("length",)),
        body=body,
        extra_rules=(MESSAGE, CALL),
    )
}
