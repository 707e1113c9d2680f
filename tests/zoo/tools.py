"""Planted bugs in how tool calls are put together, and in what is done with torn ones."""

from __future__ import annotations

import json
from typing import Any

from streamfuzz import Release

from .pair import Pair
from .reader_anthropic import Anthropic, Block
from .reader_chat import Chat, ChatChoice, EveryChoice
from .reader_responses import Item, Responses
from .readers import Call, Event, Message, Ollama, StreamError, awaiting, reading, showing, strict_json, thing, words
from .triggers import (
    block,
    call_item,
    chat,
    choice,
    message_end,
    message_start,
    ndjson,
    ollama_call,
    piece,
    record,
    responses,
    sse,
)


class IgnoresIndex(Chat):
    """There is one tool call: whatever comes is a part of it."""

    def piece(self, choice: ChatChoice, index: int, piece: Event) -> bool:
        call = choice.calls.setdefault(0, Call())
        function = thing(piece, "function")
        call.id = call.id or words(piece, "id")
        call.name = call.name or words(function, "name")
        call.arguments.append(words(function, "arguments"))
        return True


class FollowsLatest(Chat):
    """A fragment without an id belongs to the call that was begun last."""

    def piece(self, choice: ChatChoice, index: int, piece: Event) -> bool:
        latest = index if piece.get("id") or not choice.calls else list(choice.calls)[-1]
        return super().piece(choice, latest, piece)


class SharesCalls(EveryChoice):
    """Calls are known by their index alone, whichever choice they belong to."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[int, Call] = {}

    def piece(self, choice: ChatChoice, index: int, piece: Event) -> bool:
        call = choice.calls[index] = self.calls.setdefault(index, Call())
        function = thing(piece, "function")
        call.id = call.id or words(piece, "id")
        call.name = call.name or words(function, "name")
        call.arguments.append(words(function, "arguments"))
        return True


class OnePerChunk(Chat):
    """A delta brings one fragment of one call."""

    def delta(self, index: int, choice: ChatChoice, delta: Event) -> bool:
        pieces = delta.get("tool_calls")
        return super().delta(index, choice, {**delta, "tool_calls": pieces[:1]} if pieces else delta)


class NamesOnly(Chat):
    """Fragments are told apart by their id; one that has none brings nothing."""

    def piece(self, choice: ChatChoice, index: int, piece: Event) -> bool:
        return bool(piece.get("id") or index < 0) and super().piece(choice, index, piece)


class SkipsEmptyArguments(Chat):
    """A call whose arguments are an empty object has, it seems, no arguments yet and is not ready."""

    def message(self) -> Message:
        message = super().message()
        calls = [call for call in message["tool_calls"] if call["arguments"] and strict_json(call["arguments"])]
        return message | {"tool_calls": calls}


class CollidingCalls(Ollama):
    """Calls go on as chat deltas with index 0, and whoever merges those makes one call of them all."""

    def call(self, function: Event, id: str) -> None:  # noqa: A002
        super().call(function, id)
        arguments = json.dumps(self.calls.pop()["arguments"])
        if not self.calls:
            self.calls.append({"id": id or None, "name": words(function, "name"), "arguments": ""})
        self.calls[0]["arguments"] += arguments


class DropsCallsWithoutInput(Anthropic):
    """A call is there once its input has been streamed; one without input never is."""

    def calls(self) -> list[Message]:
        blocks = [block for block in self.blocks if "".join(block.call.arguments)]
        return [self.call(block) for block in blocks]


class RefusesEmptyInput(Anthropic):
    """The input of a call is JSON, and the empty text is none."""

    def block_stop(self, event: Event) -> None:
        block = self.current(event)
        if block.kind == "tool_use" and not "".join(block.call.arguments):
            raise StreamError("the input of a tool call is not JSON")
        super().block_stop(event)


class RepairsTornInput(Anthropic):
    """Input that was cut off is closed, and goes for what the model wanted."""

    def call(self, block: Block) -> Message:
        view = super().call(block)
        return view | {"arguments": closed(view["arguments"])}


class DeltasOnly(Responses):
    """Arguments are the deltas joined; a call that came without deltas has none."""

    def calls(self) -> list[Message]:
        return [self.call(item.start, self.streamed(item)) for item in self.items if item.kind == "function_call"]

    def streamed(self, item: Item) -> str:
        said = item.said.get(("arguments", 0))
        return "".join(said.pieces) if said else ""


class FirstTakesAll(Responses):
    """Every delta of arguments goes on with index 0, so the first call gets what belongs to the others."""

    def calls(self) -> list[Message]:
        calls = super().calls()
        everything = "".join(call["arguments"] for call in calls)
        return [call | {"arguments": "" if number else everything} for number, call in enumerate(calls)]


class Acting(Anthropic):
    """Runs the calls of a message once the message is whole and says that they are to be run."""

    def message_stop(self, event: Event) -> None:
        super().message_stop(event)
        if self.finish == "tool_use":
            self.shown += [Release(call) for call in self.calls()]


class ActsOnOpenBlock(Anthropic):
    """Runs a call as soon as its input can be decoded, while its block is still open."""

    def grow(self, block: Block, kind: str, delta: Event) -> None:
        super().grow(block, kind, delta)
        if kind == "input_json_delta" and block.kind == "tool_use" and self.decodes(block):
            self.shown.append(Release(self.call(block)))

    def decodes(self, block: Block) -> bool:
        try:
            return isinstance(strict_json("".join(block.call.arguments)), dict)
        except StreamError:
            return False


class ChatActing(Chat):
    """Runs the calls of an answer that ended because of them, once the stream is over."""

    def payload(self, name: str, text: str) -> None:
        super().payload(name, text)
        if self.done:
            self.check()
            self.act(self.choices[0])

    def act(self, choice: ChatChoice) -> None:
        if choice.finish == "tool_calls":
            self.shown += [Release(call) for call in choice.view()["tool_calls"]]


class RepairsAndActs(ChatActing):
    """Runs the calls however the answer ended; arguments that were cut off are closed first."""

    def act(self, choice: ChatChoice) -> None:
        for call in choice.view()["tool_calls"]:
            self.shown.append(Release(call | {"arguments": closed(call["arguments"])}))


def closed(text: str) -> str:
    """JSON text that was cut off, with its open string, arrays and objects closed."""
    closers: list[str] = []
    quoted = escaped = False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "{[":
            closers.append("}" if character == "{" else "]")
        elif character in "}]" and closers:
            closers.pop()
    return text.rstrip(", ") + '"' * quoted + "".join(reversed(closers))


def _pair(name: str, url: str, bug: str, provider: str, **rest: Any) -> Pair:
    return Pair(name, url, bug, provider, "reply", errors=(StreamError,), **{"oracle": "faithful", **rest})


PAIRS = (
    _pair(
        "call-index-ignored",
        "https://github.com/microsoft/semantic-kernel/issues/6106",
        "adds the arguments of a second tool call to those of the first",
        "openai-chat",
        faulty=reading(IgnoresIndex),
        repaired=reading(Chat),
        trigger=chat(
            choice(tool_calls=[piece(0, "{}", "a", "f")]),
            choice(tool_calls=[piece(1, "{}", "b", "g")]),
            choice(finish="tool_calls"),
        ),
    ),
    _pair(
        "call-follows-latest",
        "https://github.com/QwenLM/Qwen-Agent/pull/943",
        "gives a fragment without an id to the call that was begun last",
        "openai-chat",
        faulty=showing(FollowsLatest),
        repaired=showing(Chat),
        trigger=chat(
            choice(tool_calls=[piece(0, "{", "a", "f")]),
            choice(tool_calls=[piece(1, "{", "b", "g")]),
            choice(tool_calls=[piece(0, "}")]),
            choice(tool_calls=[piece(1, "}")]),
            choice(finish="tool_calls"),
        ),
    ),
    _pair(
        "calls-shared-by-choices",
        "https://github.com/langfuse/langfuse/issues/16998",
        "mixes the tool calls of several choices, because it knows them by their index alone",
        "openai-chat",
        faulty=reading(SharesCalls),
        repaired=reading(EveryChoice),
        trigger=chat(
            choice(0, tool_calls=[piece(0, "{}", "a", "f")]),
            choice(1, tool_calls=[piece(0, "{}", "b", "g")]),
            choice(0, finish="tool_calls"),
            choice(1, finish="tool_calls"),
        ),
    ),
    _pair(
        "one-call-per-chunk",
        "https://github.com/BerriAI/litellm/pull/27638",
        "reads only the first of several tool call fragments in a chunk",
        "openai-chat",
        faulty=awaiting(OnePerChunk),
        repaired=awaiting(Chat),
        trigger=chat(
            choice(tool_calls=[piece(0, "{}", "a", "f"), piece(1, "{}", "b", "g")]),
            choice(finish="tool_calls"),
        ),
    ),
    _pair(
        "call-arguments-lost",
        "https://github.com/spring-projects/spring-ai/issues/5806",
        "keeps of a tool call only the fragment that has the id",
        "openai-chat",
        faulty=NamesOnly,
        repaired=Chat,
        trigger=chat(
            choice(tool_calls=[piece(0, "", "a", "f")]),
            choice(tool_calls=[piece(0, '{"x":1}')]),
            choice(finish="tool_calls"),
        ),
    ),
    _pair(
        "empty-object-skipped",
        "https://github.com/vllm-project/vllm/issues/28806",
        "takes the arguments {} for missing and leaves the call out",
        "openai-chat",
        faulty=reading(SkipsEmptyArguments),
        repaired=reading(Chat),
        trigger=chat(choice(tool_calls=[piece(0, "{}", "a", "f")]), choice(finish="tool_calls")),
    ),
    _pair(
        "ollama-calls-collide",
        "https://github.com/BerriAI/litellm/issues/33678",
        "gives every tool call the same index, so that two become one with the arguments of both",
        "ollama",
        faulty=reading(CollidingCalls),
        repaired=reading(Ollama),
        trigger=ndjson(
            record(tool_calls=[ollama_call("f", x=1)]),
            record(tool_calls=[ollama_call("g", y=2)]),
            record(done=True),
        ),
    ),
    _pair(
        "call-without-input-dropped",
        "https://github.com/JohnnyZ93/oai-compatible-copilot/pull/151",
        "drops a tool call for which no input was streamed",
        "anthropic",
        faulty=reading(DropsCallsWithoutInput),
        repaired=reading(Anthropic),
        trigger=sse(message_start(), *block(0, "tool_use", id="t", name="f"), *message_end("tool_use")),
    ),
    _pair(
        "empty-input-refused",
        "https://github.com/yologdev/yoagent/pull/153",
        "fails on a tool call whose only input delta is empty",
        "anthropic",
        faulty=RefusesEmptyInput,
        repaired=Anthropic,
        trigger=sse(message_start(), *block(0, "tool_use", "", id="t", name="f"), *message_end("tool_use")),
    ),
    _pair(
        "torn-input-repaired",
        "https://github.com/can1357/oh-my-pi/issues/11104",
        "closes the brackets of arguments that were cut off",
        "anthropic",
        faulty=reading(RepairsTornInput),
        repaired=reading(Anthropic),
        trigger=sse(message_start(), *block(0, "tool_use", '{"x":"ab', id="t", name="f"), *message_end("max_tokens")),
    ),
    _pair(
        "arguments-only-when-done",
        "https://github.com/moltis-org/moltis/pull/1088",
        "loses arguments that come without deltas, in the event that says that they are done",
        "openai-responses",
        faulty=reading(DeltasOnly),
        repaired=reading(Responses),
        trigger=responses(*call_item(0, "a", "f", whole='{"x":1}')),
    ),
    _pair(
        "first-call-takes-all",
        "https://github.com/BerriAI/litellm/issues/21331",
        "gives the arguments of all calls of a response to the first",
        "openai-responses",
        faulty=awaiting(FirstTakesAll),
        repaired=awaiting(Responses),
        trigger=responses(
            *call_item(0, "a", "f", '{"x":1}', whole='{"x":1}'),
            *call_item(1, "b", "g", '{"y":2}', whole='{"y":2}'),
        ),
    ),
    _pair(
        "acts-on-open-block",
        "https://github.com/brightwave-inc/tidebreak/issues/1124",
        "runs a tool call before its block is closed",
        "anthropic",
        oracle="no_early_action",
        faulty=showing(ActsOnOpenBlock),
        repaired=showing(Acting),
        trigger=sse(message_start(), *block(0, "tool_use", "{}", id="t", name="f"), *message_end("tool_use")),
    ),
    _pair(
        "repairs-and-acts",
        "https://github.com/mindsdb/anton/pull/342",
        "closes the brackets of arguments that the output limit cut off, and runs the call",
        "openai-chat",
        oracle="no_early_action",
        faulty=showing(RepairsAndActs),
        repaired=showing(ChatActing),
        trigger=chat(choice(tool_calls=[piece(0, '{"x":[1,', "a", "f")]), choice(finish="length")),
    ),
)
