"""Reading a Messages stream: events in, reply out; and the same message as the API answers without streaming.

Parts stand in block order, one block after the other, nothing merged: two text blocks are two :class:`Text`,
and a text block that stayed empty is ``Text("")``.  The citations of a text block follow it, each as
``Opaque("citation", ...)``.  Blocks that streamfuzz does not look into (server tools and their results,
redacted thinking, types of the future) are ``Opaque(type, ...)`` with the whole block as canonical JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...reply import Choice, Json, Opaque, Part, Reasoning, Refusal, Reply, Text, ToolCall, Usage, usage_of
from ...stream import Event
from .protocol import DELTA_MEMBERS, STOP_SEQUENCE, canonical, compact, error, is_index, json_object, type_of

CITATION = "citation"
"""The kind of the opaque part that is a citation of the text before it."""


def _string(holder: Mapping[str, Json], key: str) -> str:
    """A string member; absent, null and anything else read as the empty string."""
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def _optional(holder: Mapping[str, Json], key: str) -> str | None:
    value = holder.get(key)
    return value if isinstance(value, str) else None


@dataclass(slots=True)
class _Block:
    """A content block being read: how it started and what its deltas have brought."""

    start: dict[str, Json]
    pieces: list[str] = field(default_factory=list)
    citations: list[Json] = field(default_factory=list)
    signature: str = ""
    stopped: bool = False

    @property
    def kind(self) -> str:
        return _string(self.start, "type")

    def take(self, delta: Mapping[str, Json]) -> None:
        """Take in one delta; one that does not fit the block is passed over."""
        match (self.kind, delta.get("type")):
            case ("text", "text_delta") | ("thinking", "thinking_delta"):
                self.pieces.append(_string(delta, DELTA_MEMBERS[_string(delta, "type")]))
            case ("tool_use" | "server_tool_use" | "mcp_tool_use", "input_json_delta"):
                self.pieces.append(_string(delta, "partial_json"))
            case ("text", "citations_delta") if isinstance(delta.get("citation"), dict):
                self.citations.append(delta["citation"])
            case ("thinking", "signature_delta") if isinstance(delta.get("signature"), str):
                # The vendor's SDKs replace here, where every other string of a block is appended to.
                self.signature = delta["signature"]
            case ("compaction", "compaction_delta"):
                self.start = {**self.start, **{key: delta[key] for key in delta if key != "type"}}

    def parts(self) -> Iterator[Part]:
        """What the block says: one part, and the citations of a text."""
        text = "".join(self.pieces)
        match self.kind:
            case "text":
                yield Text(_string(self.start, "text") + text)
                given = self.start.get("citations")
                for citation in [*(given if isinstance(given, list) else ()), *self.citations]:
                    yield Opaque(CITATION, canonical(citation))
            case "thinking":
                signature = self.signature or _string(self.start, "signature")
                yield Reasoning(_string(self.start, "thinking") + text, signature or None)
            case "tool_use":
                yield self.call()
            case "server_tool_use" | "mcp_tool_use" if text:
                # Torn input has no value, so its text stands for it.
                value = json_object(text)
                yield Opaque(self.kind, canonical({**self.start, "input": text if value is None else value}))
            case _:
                yield Opaque(self.kind, canonical(self.start))

    def call(self) -> ToolCall:
        """The call that a ``tool_use`` block makes.

        Its arguments are the text that was streamed; without any, the input that the block started with.
        """
        given = self.start.get("input")
        arguments = "".join(self.pieces) or compact({} if given is None else given)
        return ToolCall(_optional(self.start, "id"), _string(self.start, "name"), arguments)


class MessageReducer:
    """Reads one stream.

    Blocks are found by their index.  Where the stream is odd the reading is that of a tolerant client: a
    repeated ``message_start`` changes nothing, a delta for a block that was never started starts one, a stop
    reason of ``null`` does not take an earlier one back, a stop before anything else stops nothing.  After
    ``message_stop`` only a ``message_delta`` still counts, after an error nothing does.
    """

    def __init__(self) -> None:
        self._id: str | None = None
        self._model: str | None = None
        self._finish: str | None = None
        self._usage = Usage()
        self._started = False
        self._stopped = False
        self._failed = False
        self._blocks: list[_Block] = []
        self._by_index: dict[int, _Block] = {}

    def apply(self, event: Event) -> None:
        """Take in one event."""
        found = type_of(event)
        if self._failed or (self._stopped and found != "message_delta"):
            return
        if error(event) is not None:
            self._failed = True
        elif isinstance(event.data, dict):
            self._take(found, event.data)

    def _take(self, found: str | None, data: Mapping[str, Json]) -> None:
        index = data.get("index")
        match found:
            case "message_start" if not self._started:
                self._start(data.get("message"))
            case "content_block_start":
                self._open(index, data.get("content_block"))
            case "content_block_delta":
                self._grow(index, data.get("delta"))
            case "content_block_stop" if is_index(index) and index in self._by_index:
                self._by_index[index].stopped = True
            case "message_delta":
                self._tell(data.get("delta"), data.get("usage"))
            case "message_stop" if self._started or self._blocks or self._finish:
                self._stopped = True

    def _start(self, message: Json) -> None:
        self._started = True
        if not isinstance(message, dict):
            return
        self._id = _optional(message, "id")
        self._model = _optional(message, "model")
        self._tell(message, message.get("usage"))
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            self._open(index, block, stopped=True)

    def _tell(self, delta: Json, usage: Json) -> None:
        if isinstance(delta, dict):
            self._finish = _optional(delta, "stop_reason") or self._finish
        self._count(usage)

    def _open(self, index: Json, start: Json, *, stopped: bool = False) -> None:
        if is_index(index) and isinstance(start, dict) and isinstance(start.get("type"), str):
            block = self._by_index[index] = _Block(start, stopped=stopped)
            self._blocks.append(block)

    def _grow(self, index: Json, delta: Json) -> None:
        if not is_index(index) or not isinstance(delta, dict):
            return
        if index not in self._by_index:
            implied = _IMPLIED.get(_string(delta, "type"))
            if implied is None:
                return
            self._open(index, {"type": implied})
        self._by_index[index].take(delta)

    def _count(self, usage: Json) -> None:
        """Counts are totals so far: a newer one takes the place of the older, an absent one leaves it."""
        new = usage_of(usage, "input_tokens", "output_tokens")
        if new is not None:
            self._usage = Usage(
                self._usage.input if new.input is None else new.input,
                self._usage.output if new.output is None else new.output,
            )

    def reply(self) -> Reply:
        """The reply so far."""
        parts = tuple(part for block in self._blocks for part in block.parts())
        begun = self._started or bool(parts) or self._finish is not None
        return Reply(
            choices=(Choice(parts, self._finish),) if begun else (),
            id=self._id,
            model=self._model,
            usage=None if self._usage == Usage() else self._usage,
        )

    def released(self) -> Sequence[ToolCall]:
        """The calls whose block has been stopped and whose arguments are a JSON object.

        ``content_block_stop`` is a call's own terminator.  Whether the turn was cut is known only later, from
        ``message_delta``; a call that the cut has torn is no JSON object and so is never among these.
        """
        calls = (block.call() for block in self._blocks if block.kind == "tool_use" and block.stopped)
        return [call for call in calls if json_object(call.arguments) is not None]


_IMPLIED = {"text_delta": "text", "thinking_delta": "thinking"}
"""What a block must be whose start was lost, where its deltas alone make it worth showing."""


def grouped(parts: Sequence[Part]) -> list[tuple[Part, list[Json]]]:
    """The parts as blocks: each with the citations that follow it."""
    blocks: list[tuple[Part, list[Json]]] = []
    for part in parts:
        if isinstance(part, Opaque) and part.kind == CITATION and blocks and isinstance(blocks[-1][0], Text):
            blocks[-1][1].append(json_object(part.data) or {})
        else:
            blocks.append((part, []))
    return blocks


def whole_block(part: Part, citations: Sequence[Json] = ()) -> dict[str, Json] | None:
    """A part as the content block that it is when nothing is streamed.

    Returns:
        ``None`` for a torn call: its input has no value.
    """
    match part:
        case Text(text) | Refusal(text):  # here a model declines in plain words
            return {"type": "text", "text": text, **({"citations": list(citations)} if citations else {})}
        case Reasoning(text, signature):
            return {"type": "thinking", "thinking": text, "signature": signature or ""}
        case ToolCall(id, name, arguments):
            value = json_object(arguments)
            named = {"type": "tool_use", **({} if id is None else {"id": id}), "name": name}
            return None if value is None else {**named, "input": value}
        case Opaque(kind, data):
            return {"type": kind, **(json_object(data) or {})}


def body(reply: Reply) -> Json:
    """The message as ``POST /v1/messages`` answers without ``stream``.

    Returns:
        A ``message`` object; ``None`` where the reply has no such form, because a call was cut in the middle
        and what the API then answers is not documented.
    """
    choice = reply.choices[0] if reply.choices else Choice()
    content = [whole_block(part, citations) for part, citations in grouped(choice.parts)]
    if None in content:
        return None
    usage = reply.usage or Usage()
    counts = {"input_tokens": usage.input, "output_tokens": usage.output}
    return {
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": choice.finish,
        "stop_sequence": STOP_SEQUENCE if choice.finish == "stop_sequence" else None,
        "usage": {name: count for name, count in counts.items() if count is not None},
    }


def read_body(data: Json) -> Reply:
    """Read a message that was not streamed; the inverse of :func:`body`.

    The arguments of its calls are compact JSON: how the model spelled them is not in the body.
    """
    reducer = MessageReducer()
    reducer.apply(Event({"type": "message_start", "message": data}, "message_start"))
    return reducer.reply()
