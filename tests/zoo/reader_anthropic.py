"""A reader of Anthropic message streams that is right in every respect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .message_blocks import DELTAS, TAKES
from .readers import Call, Event, Message, Reader, StreamError, compact, number, reason, thing, things, words


@dataclass
class Block:
    """A content block of a message in the making."""

    kind: str
    pieces: list[str]
    call: Call = field(default_factory=Call)
    input: Any = None


class Anthropic(Reader):
    """Anthropic messages: blocks one after the other, each opened and closed."""

    def __init__(self) -> None:
        super().__init__()
        self.started = False
        self.open = False
        self.blocks: list[Block] = []
        self.totals: Event = {}
        self.finish = ""
        self.steps: dict[str, Callable[[Event], None]] = {
            "message_start": self.message_start,
            "content_block_start": self.block_start,
            "content_block_delta": self.block_delta,
            "content_block_stop": self.block_stop,
            "message_delta": self.message_delta,
            "message_stop": self.message_stop,
        }

    def raise_error(self, event: Event) -> None:
        if event.get("type") == "error":
            raise StreamError(reason(event.get("error") or ""))
        if "type" not in event:
            super().raise_error(event)

    def stray(self, name: str, text: str) -> None:
        if name in self.steps or name in ("", "message", "error"):
            super().stray(name, text)

    def event(self, event: Event) -> None:
        step = self.steps.get(words(event, "type"))
        if step is None:
            return
        if self.started == (step == self.message_start):
            raise StreamError(f"{event['type']} is out of place")
        step(event)

    def message_start(self, event: Event) -> None:
        self.started = True
        message = thing(event, "message")
        self.name_itself(message)
        self.finish = words(message, "stop_reason")
        self.blocks = [self.new_block(start) for start in things(message, "content")]
        self.tally(message.get("usage"))

    def tally(self, usage: Any) -> None:
        # Totals so far: what a later event repeats replaces what an earlier one said, the rest stands.
        if isinstance(usage, dict):
            self.totals |= {name: value for name, value in usage.items() if value is not None}
            self.count(self.totals, "input_tokens", "output_tokens")

    def block_start(self, event: Event) -> None:
        if self.open or self.finish or number(event, "index") != len(self.blocks):
            raise StreamError(f"block {event['index']} is out of order")
        self.open = True
        self.blocks.append(self.new_block(thing(event, "content_block")))

    def new_block(self, start: Event) -> Block:
        kind = words(start, "type")
        if not kind:
            raise StreamError("a block does not say what it is")
        block = Block(kind, [words(start, kind) if kind in ("text", "thinking") else ""])
        if kind == "tool_use":
            block.call = Call(words(start, "id"), words(start, "name"))
            block.input = start.get("input")
        if kind == "text":
            self.show(block.pieces[0])
        return block

    def block_delta(self, event: Event) -> None:
        block = self.current(event)
        delta = thing(event, "delta")
        self.grow(block, words(delta, "type"), delta)

    def grow(self, block: Block, kind: str, delta: Event) -> None:
        if kind in DELTAS and kind not in TAKES.get(block.kind, DELTAS):
            raise StreamError(f"a {kind} in a block of {block.kind}")
        if kind == "text_delta" and block.kind == "text":
            block.pieces.append(words(delta, "text"))
            self.show(block.pieces[-1])
        elif kind == "thinking_delta" and block.kind == "thinking":
            block.pieces.append(words(delta, "thinking"))
        elif kind == "input_json_delta" and block.kind == "tool_use":
            block.call.arguments.append(words(delta, "partial_json"))

    def current(self, event: Event) -> Block:
        if not self.open or number(event, "index") != len(self.blocks) - 1:
            raise StreamError(f"block {event.get('index')} is not open")
        return self.blocks[-1]

    def block_stop(self, event: Event) -> None:
        self.current(event)
        self.open = False

    def message_delta(self, event: Event) -> None:
        reason = words(thing(event, "delta"), "stop_reason")
        if self.open and reason:
            raise StreamError("the message ends inside a block")
        self.finish = reason or self.finish
        self.tally(event.get("usage"))

    def message_stop(self, event: Event) -> None:
        if self.open or not self.finish:
            raise StreamError("the message stops before its end")
        self.done = True

    def text(self) -> str:
        return "".join(piece for block in self.blocks if block.kind == "text" for piece in block.pieces)

    def reasoning(self) -> str:
        return "".join(piece for block in self.blocks if block.kind == "thinking" for piece in block.pieces)

    def calls(self) -> list[Message]:
        return [self.call(block) for block in self.blocks if block.kind == "tool_use"]

    def call(self, block: Block) -> Message:
        view = block.call.view()
        # A call without a single argument is never spelled out; its input stands at the start of the block.
        return view if view["arguments"] else view | {"arguments": compact({} if block.input is None else block.input)}

    def message(self) -> Message:
        return {
            "text": self.text(),
            "reasoning": self.reasoning(),
            "tool_calls": self.calls(),
            "finish": self.finish,
            "usage": self.usage,
            "id": self.id,
            "model": self.model,
        }
