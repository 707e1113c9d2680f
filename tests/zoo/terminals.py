"""Planted bugs in how the end of a message is told, found, reported, or made up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from streamfuzz import Final

from .pair import Pair
from .reader_anthropic import Anthropic
from .reader_chat import Chat, EveryChoice
from .reader_responses import Responses
from .readers import Event, Message, Ollama, StreamError, awaiting, reading, showing
from .triggers import (
    block,
    chat,
    choice,
    chunk,
    message_start,
    ndjson,
    ollama_call,
    record,
    response,
    responses,
    sse,
    text_item,
)


class FinishFirst(Chat):
    """A chunk with a finish reason is the end; nothing else is looked for in it."""

    def entry(self, index: int, entry: Event) -> None:
        super().entry(index, {**entry, "delta": {}} if entry.get("finish_reason") else entry)


class StopsByDefault(Chat):
    """Where no finish reason came the answer has simply stopped."""

    def check(self) -> None:
        for answer in self.choices.values():
            answer.finish = answer.finish or "stop"
        super().check()


class OneFinishIsEnough(EveryChoice):
    """The stream has a finish reason, whichever choice it came with."""

    def check(self) -> None:
        reasons = [answer.finish for answer in self.choices.values() if answer.finish]
        for answer in self.choices.values():
            answer.finish = answer.finish or "".join(reasons[:1])
        super().check()


class UnknownIsStop(Chat):
    """Finish reasons are looked up; one that is not in the table is a stop."""

    KNOWN = frozenset({"stop", "length", "tool_calls", "function_call"})

    def message(self) -> Message:
        message = super().message()
        return message | {"finish": message["finish"] if message["finish"] in self.KNOWN else "stop"}


class SkipsWhatIsNotJson(Chat):
    """A payload that cannot be decoded is passed over."""

    def payload(self, name: str, text: str) -> None:
        try:
            super().payload(name, text)
        except StreamError as error:
            if not str(error).startswith("not JSON"):
                raise


class IgnoresErrors(Anthropic):
    """Knows no error events: the answer goes as far as it went."""

    def raise_error(self, event: Event) -> None:
        if "error" in event:
            self.done = True


class ExpectsStart(Anthropic):
    """Whatever comes before message_start is out of order, and that is all it says."""

    def raise_error(self, event: Event) -> None:
        if not self.started and event.get("type") == "error":
            raise StreamError("unexpected event order: error before message_start")
        super().raise_error(event)


class EndsAtEof(Anthropic):
    """The end of the source is the end of the message."""

    def check(self) -> None:
        self.finish = self.finish or "end_turn"


class StrayIndexError(Anthropic):
    """Looks up the block of a delta without asking whether it was ever started."""

    def block_delta(self, event: Event) -> None:
        self.blocks[event["index"]]
        super().block_delta(event)


class SwallowsErrors(Ollama):
    """An error in mid-stream ends the loop that reads it, and no more."""

    def raise_error(self, event: Event) -> None:
        self.done = self.done or bool(event.get("error"))

    def event(self, event: Event) -> None:
        if not event.get("error"):
            super().event(event)


class LastIsOnlyCounts(Ollama):
    """The record that is done has the counts; its message is not looked at."""

    def event(self, event: Event) -> None:
        done = event.get("done") and isinstance(event.get("message"), dict)
        super().event({**event, "message": {}} if done else event)


class CountsOnlyCompleted(Responses):
    """Reads the usage of a response that was completed, not of one that was cut short."""

    def end(self, status: str, details: Event) -> None:
        super().end(status, details)
        if status != "completed":
            self.usage = None


class FinishOnlyCompleted(Responses):
    """Knows why a response ended only if it was completed."""

    def end(self, status: str, details: Event) -> None:
        super().end(status, details)
        if status != "completed":
            self.finish = ""


class FailsQuietly(Responses):
    """A response that failed ends as one that has nothing more to say."""

    def raise_error(self, event: Event) -> None:
        if event.get("type") != "response.failed":
            super().raise_error(event)
        elif self.response is not None:
            self.output = self.close_items([])
            self.end("completed", {})


class EndsWithoutTerminal(Responses):
    """Gives what came when the events run out, as though that had been all."""

    def check(self) -> None:
        if not self.done:
            self.output = self.close_items([])
            self.end("completed", {})


def once(chunks: Iterable[bytes]) -> Iterator[Any]:
    """Report the message when the stream has ended."""
    answer = Chat()
    for data in chunks:
        yield from answer.feed(data)
        if answer.done:
            break
    yield Final(answer.close())


def twice(chunks: Iterable[bytes]) -> Iterator[Any]:
    """Report the message when its finish reason comes, and when the stream has ended, once more."""
    answer = Chat()
    reported = False
    for data in chunks:
        yield from answer.feed(data)
        if not reported and answer.choices and all(one.finish for one in answer.choices.values()):
            reported = True
            yield Final(answer.message())
        if answer.done:
            break
    yield Final(answer.close())


def _pair(name: str, url: str, bug: str, provider: str, **rest: Any) -> Pair:
    return Pair(name, url, bug, provider, "reply", errors=(StreamError,), **{"oracle": "faithful", **rest})


def _cut(pair: Pair) -> Pair:
    return replace(pair, oracle="fail_closed")


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
FAILED = {
    "type": "response.failed",
    "sequence_number": 1,
    "response": response("failed", error={"code": "server_error", "message": "it broke"}),
}
CREATED = {"type": "response.created", "sequence_number": 0, "response": response("in_progress")}

PAIRS = (
    _pair(
        "finish-chunk-text-lost",
        "https://github.com/jeremychone/rust-genai/pull/164",
        "drops the text of the chunk that has the finish reason",
        "openai-chat",
        faulty=showing(FinishFirst),
        repaired=showing(Chat),
        trigger=chat(choice(finish="stop", content="a")),
    ),
    _cut(
        _pair(
            "eof-is-stop",
            "https://github.com/NVIDIA/TensorRT-LLM/pull/18289",
            "makes up a stop when the stream ends without one",
            "openai-chat",
            rule="openai-chat.choice.unfinished",
            faulty=showing(StopsByDefault),
            repaired=showing(Chat),
            trigger=sse(chunk(choice(content="a"))),
        )
    ),
    _cut(
        _pair(
            "one-finish-is-enough",
            "https://github.com/trpc-group/trpc-agent-go/pull/1657",
            "takes the stream for whole when one of two choices has ended",
            "openai-chat",
            rule="openai-chat.choice.unfinished",
            faulty=reading(OneFinishIsEnough),
            repaired=reading(EveryChoice),
            trigger=sse(chunk(choice(0, "stop")), chunk(choice(1, content="a"))),
        )
    ),
    _pair(
        "unknown-finish-is-stop",
        "https://github.com/pydantic/pydantic-ai/issues/6812",
        "takes a finish reason that it does not know for a stop",
        "openai-chat",
        faulty=reading(UnknownIsStop),
        repaired=reading(Chat),
        trigger=chat(choice(finish="content_filter")),
    ),
    _cut(
        _pair(
            "undecodable-skipped",
            "https://github.com/castari/castari-proxy/issues/1",
            "passes over a payload that is not JSON, and what it held is missing",
            "openai-chat",
            rule="stream.payload.not-json",
            faulty=SkipsWhatIsNotJson,
            repaired=Chat,
            trigger=(b"data: {\n\n", *chat(choice(finish="stop"))),
        )
    ),
    _pair(
        "finished-twice",
        "https://github.com/BerriAI/litellm/pull/27580",
        "reports the message when its finish reason comes, and again at the end of the stream",
        "openai-chat",
        oracle="once_terminal",
        faulty=twice,
        repaired=once,
        trigger=chat(choice(finish="stop")),
    ),
    _pair(
        "error-ends-answer",
        "https://github.com/farzaa/clicky/issues/132",
        "returns what came before an error event as the answer",
        "anthropic",
        rule="stream.error",
        oracle="surfaced_error",
        faulty=showing(IgnoresErrors),
        repaired=showing(Anthropic),
        trigger=sse(message_start(), OVERLOADED),
    ),
    _pair(
        "early-error-masked",
        "https://github.com/NousResearch/hermes-agent/pull/14737",
        "hides an error that comes first behind one about the order of events",
        "anthropic",
        rule="stream.error",
        oracle="surfaced_error",
        faulty=awaiting(ExpectsStart),
        repaired=awaiting(Anthropic),
        trigger=sse(OVERLOADED),
    ),
    _cut(
        _pair(
            "eof-is-end-turn",
            "https://github.com/tingly-dev/tingly-box/pull/1418",
            "takes the end of the source for the end of the message",
            "anthropic",
            rule="anthropic.stream.unfinished",
            faulty=EndsAtEof,
            repaired=Anthropic,
            trigger=sse(message_start()),
        )
    ),
    _pair(
        "stray-index-error",
        "https://github.com/anthropics/anthropic-sdk-python/issues/1192",
        "lets an IndexError out when a delta names a block that was never started",
        "anthropic",
        rule="anthropic.block.unopened",
        oracle="typed_error",
        faulty=reading(StrayIndexError),
        repaired=reading(Anthropic),
        trigger=sse(message_start(), block(0, "text", "a")[1]),
    ),
    _pair(
        "ollama-error-swallowed",
        "https://github.com/BerriAI/litellm/pull/1750",
        "gives an empty answer where the server reports an error",
        "ollama",
        rule="stream.error",
        oracle="surfaced_error",
        faulty=reading(SwallowsErrors),
        repaired=reading(Ollama),
        trigger=ndjson({"error": "model failed to load"}),
    ),
    _pair(
        "done-record-unread",
        "https://github.com/jagreehal/ai-sdk-ollama/pull/391",
        "loses tool calls that come in the record that is done",
        "ollama",
        faulty=showing(LastIsOnlyCounts),
        repaired=showing(Ollama),
        trigger=ndjson(record(done=True, tool_calls=[ollama_call("f")])),
    ),
    _pair(
        "usage-of-completed-only",
        "https://github.com/QuantumNous/new-api/issues/7241",
        "counts nothing for a response that was cut short",
        "openai-responses",
        faulty=reading(CountsOnlyCompleted),
        repaired=reading(Responses),
        trigger=responses(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    ),
    _pair(
        "finish-of-completed-only",
        "https://github.com/pydantic/pydantic-ai/issues/7911",
        "does not say why a response was cut short",
        "openai-responses",
        faulty=showing(FinishOnlyCompleted),
        repaired=showing(Responses),
        trigger=responses(status="incomplete", incomplete_details={"reason": "content_filter"}),
    ),
    _pair(
        "failed-is-completed",
        "https://github.com/BerriAI/litellm/pull/32475",
        "turns a response that failed into an answer that has nothing to say",
        "openai-responses",
        rule="stream.error",
        oracle="surfaced_error",
        faulty=FailsQuietly,
        repaired=Responses,
        trigger=sse(CREATED, FAILED),
    ),
    _cut(
        _pair(
            "eof-is-completed",
            "https://github.com/Soju06/codex-lb/pull/1833",
            "takes the end of the source for the end of the response",
            "openai-responses",
            rule="openai-responses.stream.terminal-missing",
            faulty=reading(EndsWithoutTerminal),
            repaired=reading(Responses),
            trigger=responses(*text_item(0, "a"), status=""),
        )
    ),
)
