"""A reader of OpenAI Responses streams that is right in every respect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from .readers import Event, Message, Reader, StreamError, number, thing, things, words


class Words(NamedTuple):
    """Where a text that comes in deltas ends up: its item, the slot there, and its part if it has one."""

    item: str
    slot: str
    part: str
    index: str
    member: str


WORDS = {
    "response.output_text": Words("message", "content", "output_text", "content_index", "text"),
    "response.refusal": Words("message", "content", "refusal", "content_index", "refusal"),
    "response.reasoning_text": Words("reasoning", "content", "reasoning_text", "content_index", "text"),
    "response.reasoning_summary_text": Words("reasoning", "summary", "summary_text", "summary_index", "text"),
    "response.function_call_arguments": Words("function_call", "arguments", "", "", "arguments"),
    "response.custom_tool_call_input": Words("custom_tool_call", "input", "", "", "input"),
    "response.mcp_call_arguments": Words("mcp_call", "arguments", "", "", "arguments"),
    "response.code_interpreter_call_code": Words("code_interpreter_call", "code", "", "", "code"),
}
PARTS = {
    "response.content_part": ("content", "content_index"),
    "response.reasoning_summary_part": ("summary", "summary_index"),
}
TOOLS = (
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
)
SLOTS = {
    "message": ("content",),
    "reasoning": ("content", "summary"),
    **{words.item: (words.slot,) for words in WORDS.values() if not words.part},
}
STEPS = ("in_progress", "searching", "interpreting", "generating", "partial_image", "completed", "failed")


@dataclass
class Said:
    """A text that comes in deltas and is then said whole once more, perhaps several times."""

    kind: str = ""
    pieces: list[str] = field(default_factory=list)
    whole: str | None = None
    open: bool = True

    def grow(self, delta: str) -> None:
        if self.whole is not None:
            raise StreamError("a delta after the end of its text")
        self.pieces.append(delta)

    def settle(self, whole: str) -> str:
        """Compare with the whole text; returns what of it no delta had brought."""
        had = "".join(self.pieces) if self.whole is None else self.whole
        if (self.pieces or self.whole is not None) and had != whole:
            raise StreamError(f"{had!r} was said, {whole!r} in the end")
        self.whole = whole
        return "" if had else whole


@dataclass
class Item:
    """An output item in the making."""

    kind: str
    start: Event
    said: dict[tuple[str, int], Said] = field(default_factory=dict)
    done: Event | None = None

    def parts(self, slot: str) -> list[Said]:
        return [said for (name, _), said in sorted(self.said.items(), key=lambda at: at[0]) if name == slot]


class Responses(Reader):
    """OpenAI responses: numbered events, items by output index, everything said again and compared."""

    def __init__(self) -> None:
        super().__init__()
        self.next = 0
        self.slack = 0
        self.response: Event | None = None
        self.items: list[Item] = []
        self.output: list[Event] = []
        self.finish = ""
        self.steps: dict[str, Callable[[Event], None]] = {
            "response.created": self.created,
            "response.queued": self.tell,
            "response.in_progress": self.tell,
            "response.output_item.added": self.item_added,
            "response.output_item.done": self.item_done,
            "response.output_text.annotation.added": partial(self.progress, "message"),
            "response.completed": self.terminal,
            "response.incomplete": self.terminal,
        }
        for prefix, at in WORDS.items():
            self.steps[f"{prefix}.delta"] = partial(self.delta, at)
            self.steps[f"{prefix}.done"] = partial(self.text_done, at)
        for prefix, place in PARTS.items():
            self.steps[f"{prefix}.added"] = partial(self.part_added, *place)
            self.steps[f"{prefix}.done"] = partial(self.part_done, *place)
        for tool in TOOLS:
            for step in STEPS:
                self.steps[f"response.{tool}.{step}"] = partial(self.progress, tool)

    def raise_error(self, event: Event) -> None:
        if event.get("type") == "error" or (event.get("type") is None and event.get("error")):
            raise StreamError(cause(event.get("error")) or cause(event) or "unspecified error")
        if event.get("type") == "response.failed":
            raise StreamError(cause(thing(event, "response").get("error")) or "the response failed")

    def event(self, event: Event) -> None:
        kind = words(event, "type")
        step = self.steps.get(kind)
        self.in_sequence(event, known=step is not None)
        if step is None and kind:
            return
        if step is None or (self.response is None) != (step == self.created):
            raise StreamError(f"{kind or event} is out of place")
        step(event)

    def in_sequence(self, event: Event, *, known: bool) -> None:
        if event.get("sequence_number") is None and not known:
            # A gateway that slips in an event of its own may or may not have left a number for it.
            self.slack += 1
            return
        found = number(event, "sequence_number")
        if not self.next <= found <= self.next + self.slack:
            raise StreamError(f"event {found} where {self.next} was expected")
        self.next, self.slack = found + 1, 0

    def created(self, event: Event) -> None:
        self.response = {}
        self.tell(event)

    def tell(self, event: Event) -> None:
        """Take in what an event says of the response as a whole; the newest word counts."""
        response = event.get("response")
        if not isinstance(response, dict) or self.response is None:
            raise StreamError("an event says nothing of its response")
        self.id = self.same(self.id, words(response, "id"))
        self.response |= response

    def item_added(self, event: Event) -> None:
        if number(event, "output_index") != len(self.items):
            raise StreamError(f"item {event['output_index']} is out of order")
        item = event.get("item")
        if not isinstance(item, dict):
            raise StreamError("an item is added that is none")
        kind = words(item, "type")
        if any(item.get(slot) for slot in SLOTS.get(kind, ())):
            raise StreamError("an item has content before its deltas")
        self.items.append(Item(kind, item))

    def item(self, event: Event, *kinds: str) -> Item:
        index = number(event, "output_index")
        if index >= len(self.items) or self.items[index].done is not None:
            raise StreamError(f"item {index} is not open")
        if kinds and self.items[index].kind not in ("", *kinds):
            raise StreamError(f"{event['type']} for a {self.items[index].kind}")
        return self.items[index]

    def progress(self, kind: str, event: Event) -> None:
        self.item(event, kind)

    def part_added(self, slot: str, member: str, event: Event) -> None:
        item = self.item(event, "message", "reasoning")
        if number(event, member) != len(item.parts(slot)):
            raise StreamError(f"part {event[member]} is out of order")
        item.said[slot, event[member]] = Said(words(thing(event, "part"), "type"))

    def part(self, slot: str, member: str, event: Event) -> Said:
        said = self.item(event).said.get((slot, number(event, member)))
        if said is None or not said.open:
            raise StreamError(f"part {event[member]} is not open")
        return said

    def said(self, at: Words, event: Event) -> Said:
        item = self.item(event, at.item)
        if not at.part:
            return item.said.setdefault((at.slot, 0), Said())
        said = self.part(at.slot, at.index, event)
        if said.kind != at.part:
            raise StreamError(f"{event['type']} for a {said.kind}")
        return said

    def delta(self, at: Words, event: Event) -> None:
        text = words(event, "delta")
        self.said(at, event).grow(text)
        if at.part == "output_text":
            self.show(text)

    def text_done(self, at: Words, event: Event) -> None:
        said = self.said(at, event)
        if said.whole is not None:
            raise StreamError("a text ends twice")
        rest = said.settle(words(event, at.member))
        if at.part == "output_text":
            self.show(rest)

    def part_done(self, slot: str, member: str, event: Event) -> None:
        said = self.part(slot, member, event)
        self.settle(said, thing(event, "part"))
        said.open = False

    def settle(self, said: Said, part: Event) -> None:
        if words(part, "type") != said.kind:
            raise StreamError(f"a {said.kind} ends as a {part.get('type')}")
        rest = said.settle(words(part, "refusal" if said.kind == "refusal" else "text"))
        if said.kind == "output_text":
            self.show(rest)

    def item_done(self, event: Event) -> None:
        item = self.item(event)
        whole = thing(event, "item")
        self.settle_item(item, whole)
        item.done = whole

    def settle_item(self, item: Item, whole: Event) -> None:
        for name in ("type", "call_id", "name"):
            if item.start.get(name) and item.start[name] != whole.get(name):
                raise StreamError(f"an item ends with another {name} than it began")
        for slot in ("content", "summary"):
            self.settle_parts(item.parts(slot), things(whole, slot) if isinstance(whole.get(slot), list) else [])
        for (slot, _), said in item.said.items():
            if slot not in ("content", "summary"):
                said.settle(words(whole, slot))

    def settle_parts(self, said: list[Said], parts: list[Event]) -> None:
        if len(said) != len(parts):
            raise StreamError("an item ends with other parts than it had")
        for mine, theirs in zip(said, parts, strict=True):
            self.settle(mine, theirs)

    def terminal(self, event: Event) -> None:
        self.tell(event)
        status = event["type"].removeprefix("response.")
        whole = self.response or {}
        last: Event = event["response"]
        if any(item.done is None for item in self.items) or words(last, "status") not in ("", status):
            raise StreamError("the response ends before its end")
        self.output = self.close_items(things(last, "output"))
        self.tally(whole.get("usage"))
        self.end(status, thing(whole, "incomplete_details"))

    def close_items(self, output: list[Event]) -> list[Event]:
        # Some servers leave the output out of the last event; the items said it all.
        done = [item.done or {} for item in self.items]
        if output and list(map(gist, output)) != list(map(gist, done)):
            raise StreamError("the response ends with other items than it had")
        return output or done

    def tally(self, usage: Any) -> None:
        self.count(usage, "input_tokens", "output_tokens")

    def end(self, status: str, details: Event) -> None:
        cause = words(details, "reason")
        self.finish = f"{status}:{cause}" if status == "incomplete" and cause else status
        self.done = True

    def parts(self, kind: str) -> Iterator[Event]:
        for item in self.output:
            if item.get("type") == "message":
                yield from (part for part in things(item, "content") if part.get("type") == kind)

    def text(self) -> str:
        return "".join(words(part, "text") for part in self.parts("output_text"))

    def refusal(self) -> str:
        return "".join(words(part, "refusal") for part in self.parts("refusal"))

    def calls(self) -> list[Message]:
        calls = [item for item in self.output if item.get("type") == "function_call"]
        return [self.call(call, words(call, "arguments")) for call in calls]

    def call(self, item: Event, arguments: str) -> Message:
        return {"id": words(item, "call_id") or None, "name": words(item, "name"), "arguments": arguments}

    def message(self) -> Message:
        return {
            "text": self.text(),
            "refusal": self.refusal(),
            "tool_calls": self.calls(),
            "finish": self.finish or None,
            "usage": self.usage,
            "id": words(self.response or {}, "id"),
            "model": words(self.response or {}, "model"),
        }


def cause(error: Any) -> str:
    """What an error says; empty if it says nothing."""
    if isinstance(error, dict):
        error = error.get("message") or error.get("code")
    return error if isinstance(error, str) else ""


def gist(item: Event) -> tuple[Any, ...]:
    """What an item says each time that it is sent; some of the rest is encrypted anew every time."""
    kind = item.get("type")
    if kind == "message":
        said = [(part.get("type"), part.get("text"), part.get("refusal")) for part in things(item, "content")]
        return kind, *said
    if kind == "reasoning":
        parts = things(item, "content") or things(item, "summary")
        return kind, "".join(words(part, "text") for part in parts)
    if kind == "function_call":
        return kind, item.get("call_id"), item.get("name"), item.get("arguments")
    return (kind,)
