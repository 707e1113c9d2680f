"""Planted bugs in what chunks may look like, which part of the answer they belong to, and what counts add up to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .pair import Pair
from .reader_anthropic import Anthropic, Block
from .reader_chat import Chat, ChatChoice
from .reader_responses import Responses, Words
from .readers import Event, Message, Ollama, Reader, StreamError, awaiting, reading, showing, words
from .triggers import (
    DONE,
    block,
    chat,
    choice,
    chunk,
    message_end,
    message_start,
    ndjson,
    piece,
    record,
    responses,
    sse,
    text_item,
)


class FirstChoice(Chat):
    """Every chunk has a choice."""

    def event(self, event: Event) -> None:
        event["choices"][0]
        super().event(event)


class NullIsText(Chat):
    """Whatever stands in ``content`` is text."""

    def delta(self, index: int, choice: ChatChoice, delta: Event) -> bool:
        return super().delta(
            index, choice, {**delta, "content": str(delta["content"])} if "content" in delta else delta
        )


class TextOrCalls(Chat):
    """An answer is words or it is tool calls."""

    def message(self) -> Message:
        message = super().message()
        return message | {"tool_calls": [] if message["text"] else message["tool_calls"]}


class OneVoice(Chat):
    """There is one answer: the text of every choice is its."""

    def delta(self, index: int, choice: ChatChoice, delta: Event) -> bool:
        if index == 0:
            return super().delta(index, choice, delta)
        self.choices.setdefault(0, ChatChoice()).text.append(words(delta, "content"))
        return super().delta(index, choice, {**delta, "content": None})


class DropsRepeats(Chat):
    """A delta that begins with all the text so far is taken for that text sent again, and longer."""

    def delta(self, index: int, choice: ChatChoice, delta: Event) -> bool:
        text, so_far = words(delta, "content"), "".join(choice.text)
        if so_far and text.startswith(so_far):
            delta = {**delta, "content": text.removeprefix(so_far)}
        return super().delta(index, choice, delta)


class RefusesNewEvents(Anthropic):
    """Knows all the events that there are."""

    def event(self, event: Event) -> None:
        if event.get("type") not in {*self.steps, "ping"}:
            raise StreamError(f"unknown event {event.get('type')}")
        super().event(event)


class RefusesNewBlocks(Anthropic):
    """Knows all the content blocks that there are."""

    def new_block(self, start: Event) -> Block:
        if start.get("type") not in ("text", "thinking", "tool_use"):
            raise ValueError(f"unknown content block {start.get('type')}")
        return super().new_block(start)


class AppendsBlocks(Anthropic):
    """Every start is a new block at the end, whatever its index says and whatever is still open."""

    def block_start(self, event: Event) -> None:
        self.open = True
        self.blocks.append(self.new_block(event["content_block"]))

    def current(self, event: Event) -> Block:
        if not self.blocks:
            raise StreamError("no block is open")
        return self.blocks[-1]


class AddsTotals(Anthropic):
    """Adds up the counts of all events that have any."""

    def tally(self, usage: Any) -> None:
        before = self.usage["output"] or 0 if self.usage else 0
        super().tally(usage)
        if self.usage and isinstance(usage, dict) and usage.get("output_tokens") is not None:
            self.usage["output"] = before + usage["output_tokens"]


class DetailPerBlock(Anthropic):
    """Shows text and thinking as a list of details as well, one for each block."""

    def details(self) -> list[str]:
        return ["".join(block.pieces) for block in self.spoken()]

    def spoken(self) -> list[Block]:
        return [block for block in self.blocks if block.kind in ("text", "thinking")]

    def message(self) -> Message:
        return super().message() | {"details": self.details()}


class DetailPerDelta(DetailPerBlock):
    """The same list with one entry for each delta, so it tells how the blocks were cut."""

    def details(self) -> list[str]:
        return [piece for block in self.spoken() for piece in block.pieces if piece]


class LosesFirst(Ollama):
    """Takes the first record to see whether there is an answer at all, and forgets that it did."""

    def __init__(self) -> None:
        super().__init__()
        self.peeked = False

    def part(self, message: Event) -> None:
        peeked, self.peeked = self.peeked, True
        if peeked:
            super().part(message)


class ThinkingOrContent(Ollama):
    """A record is thinking or it is content."""

    def part(self, message: Event) -> None:
        super().part({**message, "content": None} if message.get("thinking") else message)


class AppendsWhole(Responses):
    """A text that is said whole in the end is one more piece of it."""

    def text(self) -> str:
        said = [said for item in self.items for said in item.said.values() if said.kind == "output_text"]
        return "".join("".join(one.pieces) + (one.whole or "") for one in said)


class ShowsWholeAgain(Responses):
    """What comes last is shown like any delta, though it is all of the text once more."""

    def text_done(self, at: Words, event: Event) -> None:
        super().text_done(at, event)
        if at.part == "output_text":
            self.show(words(event, at.member))


def both_ways(reader: Callable[[], Reader], whole: Callable[[Event], Message]) -> Callable[[Iterable[bytes]], Message]:
    """A streaming reader with its counterpart for answers that are not streamed."""
    parse = reading(reader)
    parse.whole = whole  # type: ignore[attr-defined]
    return parse


def message_of(body: Event) -> Message:
    """Read an Anthropic message that was not streamed."""
    content = body["content"]
    return {
        "text": "".join(block["text"] for block in content if block["type"] == "text"),
        "reasoning": "".join(block["thinking"] for block in content if block["type"] == "thinking"),
        "finish": body["stop_reason"],
    }


def without_thinking(body: Event) -> Message:
    """The same, for callers that want an answer and not how it was come by."""
    content = [block for block in body["content"] if block["type"] != "thinking"]
    return message_of({**body, "content": content})


def _pair(name: str, url: str, bug: str, provider: str, **rest: Any) -> Pair:
    return Pair(name, url, bug, provider, "reply", errors=(StreamError,), **{"oracle": "faithful", **rest})


USAGE = {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}
FUTURE = {"type": "future_event", "data": 1}

PAIRS = (
    _pair(
        "first-choice-assumed",
        "https://github.com/awslabs/llmeter/pull/34",
        "fails on a chunk without choices, such as the one that has the usage",
        "openai-chat",
        faulty=reading(FirstChoice),
        repaired=reading(Chat),
        trigger=(*sse(chunk(choice(finish="stop")), chunk(usage=USAGE)), DONE),
    ),
    _pair(
        "null-is-text",
        "https://github.com/spring-projects/spring-ai/issues/5568",
        "adds the word None to the text where a delta has none",
        "openai-chat",
        faulty=awaiting(NullIsText),
        repaired=awaiting(Chat),
        trigger=chat(choice(content=None), choice(finish="stop")),
    ),
    _pair(
        "text-or-calls",
        "https://github.com/BerriAI/litellm/issues/2716",
        "loses the tool calls of an answer that has text as well",
        "openai-chat",
        faulty=reading(TextOrCalls),
        repaired=reading(Chat),
        trigger=chat(choice(content="a"), choice(tool_calls=[piece(0, "{}", "a", "f")]), choice(finish="tool_calls")),
    ),
    _pair(
        "choices-mixed",
        "https://github.com/BerriAI/litellm/issues/35793",
        "joins the texts of all choices in one",
        "openai-chat",
        faulty=reading(OneVoice),
        repaired=reading(Chat),
        trigger=chat(choice(0, content="a"), choice(1, content="b"), choice(0, "stop"), choice(1, "stop")),
    ),
    _pair(
        "repeated-text-dropped",
        "https://github.com/QwenLM/qwen-code/pull/3896",
        "drops a delta that happens to begin like the text before it",
        "openai-chat",
        faulty=showing(DropsRepeats),
        repaired=showing(Chat),
        trigger=chat(choice(content="a"), choice(content="a"), choice(finish="stop")),
    ),
    _pair(
        "new-event-refused",
        "https://github.com/sesori-ai/sesori_apps_monorepo/pull/571",
        "fails on an event of a type that it does not know",
        "anthropic",
        faulty=RefusesNewEvents,
        repaired=Anthropic,
        trigger=sse(message_start(), FUTURE, *message_end()),
    ),
    _pair(
        "new-block-refused",
        "https://github.com/headroomlabs-ai/headroom/pull/1825",
        "fails on a content block of a type that it does not know",
        "anthropic",
        faulty=reading(RefusesNewBlocks),
        repaired=reading(Anthropic),
        trigger=sse(message_start(), *block(0, "redacted_thinking", data="eA=="), *message_end()),
    ),
    _pair(
        "block-index-unread",
        "https://github.com/anthropics/anthropic-sdk-python/pull/1690",
        "appends every block that is started, without a look at its index",
        "anthropic",
        rule="anthropic.block.gap",
        oracle="fail_closed",
        faulty=reading(AppendsBlocks),
        repaired=reading(Anthropic),
        trigger=sse(message_start(), *block(1, "text", "a"), *message_end()),
    ),
    _pair(
        "totals-added",
        "https://github.com/tensorzero/tensorzero/issues/5481",
        "adds up token counts that are already totals",
        "anthropic",
        faulty=awaiting(AddsTotals),
        repaired=awaiting(Anthropic),
        trigger=sse(message_start(output=1), *message_end(output=15)),
    ),
    _pair(
        "detail-per-delta",
        "https://github.com/OpenRouterTeam/ai-sdk-provider/pull/520",
        "makes an entry of every delta, so that the result depends on how a block was cut",
        "anthropic",
        oracle="resliced",
        faulty=reading(DetailPerDelta),
        repaired=reading(DetailPerBlock),
        trigger=sse(message_start(), *block(0, "thinking", "a", "b"), *message_end()),
    ),
    _pair(
        "whole-without-thinking",
        "https://github.com/Kuberwastaken/claurst/issues/217",
        "drops the thinking of an answer that was not streamed",
        "anthropic",
        oracle="parity",
        faulty=both_ways(Anthropic, without_thinking),
        repaired=both_ways(Anthropic, message_of),
        trigger=sse(message_start(), *block(0, "thinking", "a"), *message_end()),
    ),
    _pair(
        "first-record-lost",
        "https://github.com/run-llama/llama_index/issues/13684",
        "loses the first record, which it had taken only to see whether there was one",
        "ollama",
        faulty=reading(LosesFirst),
        repaired=reading(Ollama),
        trigger=ndjson(record("a"), record(done=True)),
    ),
    _pair(
        "thinking-or-content",
        "https://github.com/BerriAI/litellm/issues/27492",
        "loses the content of a record that has thinking as well",
        "ollama",
        faulty=ThinkingOrContent,
        repaired=Ollama,
        trigger=ndjson(record("a", thinking="b"), record(done=True)),
    ),
    _pair(
        "whole-text-appended",
        "https://github.com/go-kratos/blades/issues/189",
        "appends the whole text that comes last to its deltas",
        "openai-responses",
        faulty=reading(AppendsWhole),
        repaired=reading(Responses),
        trigger=responses(*text_item(0, "a")),
    ),
    _pair(
        "whole-text-shown-again",
        "https://github.com/openclaw/openclaw/pull/142888",
        "shows the whole text that comes last as though it were new",
        "openai-responses",
        oracle="prefix",
        faulty=showing(ShowsWholeAgain),
        repaired=showing(Responses),
        trigger=responses(*text_item(0, "a")),
    ),
)
