"""Planted bugs at the ends: cut streams, errors, NDJSON records, shared state, sources left open, cost."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .blocks import (
    EOL,
    LineSplitter,
    Parse,
    SSEDecoder,
    StreamError,
    ValueReader,
    frames_pair,
    load,
    message_async,
    over_iterable,
    refuse_constant,
    release,
    whole_text,
)
from .message_blocks import (
    DONE,
    STARTED,
    STOPPED,
    ChatReader,
    MessagesReader,
    OllamaReader,
    chat_event,
    cut,
    message_event,
    record,
    reply_pair,
)
from .pair import Pair

# -- how a stream ends ----------------------------------------------------------------------------------------


class CutIsStop(ChatReader):
    def result(self) -> dict[str, Any]:
        return self.view(self.finish.get(0, "stop"))


class EmptyIsAnswer(ChatReader):
    def result(self) -> dict[str, Any]:
        return super().result() if self.seen else self.view("stop")


class CutIsEndTurn(MessagesReader):
    def result(self) -> dict[str, Any]:
        return self.view(self.finish or "end_turn")


class SkipsBadJson(ChatReader):
    def frame(self, name: str, data: str) -> Iterator[str]:
        if not self.is_end(data):
            try:
                load(data)
            except StreamError:
                return
        yield from super().frame(name, data)


# -- errors ---------------------------------------------------------------------------------------------------


class ErrorIsEnd(MessagesReader):
    def fail(self, value: Any) -> None:
        self.finish = self.finish or "end_turn"
        self.done = True


class ErrorIgnored(ChatReader):
    def check_error(self, value: dict[str, Any]) -> None:
        """There is a branch for each thing that a chunk can hold, and none for this one."""


class OnlyUnnamed(ChatReader):
    def frame(self, name: str, data: str) -> Iterator[str]:
        if name == "message":
            yield from super().frame(name, data)


class OrderBeforeError(MessagesReader):
    def fail(self, value: Any) -> None:
        if not self.started:
            raise StreamError("unexpected event order, got error before message_start")
        super().fail(value)


class OllamaErrorIsEnd(OllamaReader):
    def fail(self, record: dict[str, Any]) -> None:
        self.done = True


class JsonErrorEscapes(MessagesReader):
    def frame(self, name: str, data: str) -> Iterator[str]:
        yield from self.event(name, json.loads(data, parse_constant=refuse_constant))


class PingNeedsMessage(MessagesReader):
    def start(self, value: dict[str, Any]) -> Iterator[str]:
        self.pings: list[str] = []
        return super().start(value)

    def ping(self) -> None:
        self.pings.append("ping")


# -- records --------------------------------------------------------------------------------------------------


class RecordPerChunk(LineSplitter):
    def feed(self, chunk: bytes) -> Iterator[dict[str, str]]:
        return self.frame(chunk)


class OllamaPerChunk(OllamaReader):
    decoder = RecordPerChunk


class NoCarry(LineSplitter):
    def lines(self, chunk: bytes) -> Iterable[bytes]:
        return chunk.split(b"\n")


class OllamaNoCarry(OllamaReader):
    decoder = NoCarry


class ValuesNoCarry(ValueReader):
    def lines(self, chunk: bytes) -> Iterable[bytes]:
        return chunk.split(b"\n")


def value_of_text(chunks: Iterable[str]) -> Any:
    return load("".join(chunks))


def value_of_chunks(chunks: Iterable[str]) -> Any:
    for value in map(load, chunks):
        return value
    raise StreamError("the stream has no value")


# -- state, sources and cost ----------------------------------------------------------------------------------

UTF8 = codecs.getincrementaldecoder("utf-8")("replace")


class SharedUtf8(SSEDecoder):
    def decode(self, chunk: bytes) -> str:
        return UTF8.decode(chunk)


PARTIAL: list[bytes] = []


class SharedPartial(LineSplitter):
    def __init__(self) -> None:
        super().__init__()
        self.partial = PARTIAL


def leaves_open(make: Callable[[], SSEDecoder]) -> Parse:
    def parse(chunks: Iterable[bytes]) -> Iterator[Any]:
        decoder = make()
        for chunk in chunks:
            yield from decoder.feed(chunk)

    return parse


def reads_on(make: Callable[[], SSEDecoder]) -> Parse:
    def parse(chunks: Iterable[bytes]) -> Iterator[Any]:
        decoder = make()
        source = iter(chunks)
        try:
            for chunk in source:
                yield from decoder.feed(chunk)
        finally:
            for _ in source:
                pass
            release(source)

    return parse


class FillsBlock(SSEDecoder):
    size = 4096

    def __init__(self) -> None:
        super().__init__()
        self.block = bytearray()

    def feed(self, chunk: bytes) -> Iterator[dict[str, str]]:
        self.block += chunk
        if len(self.block) >= self.size:
            yield from self.flush()

    def rest(self) -> Iterable[dict[str, str]]:
        return self.flush()

    def flush(self) -> Iterator[dict[str, str]]:
        block = bytes(self.block)
        self.block.clear()
        return super().feed(block)


class ScansAgain(SSEDecoder):
    def __init__(self) -> None:
        super().__init__()
        self.tail = ""

    def carry(self, pieces: list[str]) -> Iterable[str]:
        """Nothing is carried: the text that has no line end yet is cut again with the next chunk."""
        return pieces

    def pieces(self, text: str) -> list[str]:
        *ended, self.tail = EOL.split(self.tail + text)
        return ended


class CopiesRest(SSEDecoder):
    def pieces(self, text: str) -> list[str]:
        lines = super().pieces(text)
        found = []
        while lines:
            found.append(lines[0])
            lines = lines[1:]
        return found


class EndsAtLongLine(SSEDecoder):
    limit = 64 * 1024
    over = False

    def lines(self, text: str) -> Iterable[str]:
        for line in super().lines(text):
            self.over = self.over or len(line) > self.limit
            if self.over:
                return
            yield line


OVERLOADED = {"message": "Overloaded"}
ERROR_EVENT = message_event("error", error=OVERLOADED)
ERROR_CHUNK = b"data: " + json.dumps({"error": OVERLOADED}).encode() + b"\n\n"

PAIRS: tuple[Pair, ...] = (
    reply_pair(
        "cut-is-stop",
        "https://github.com/brightwave-inc/tidebreak/issues/1124",
        "makes up a finish reason when the stream ends without one",
        CutIsStop,
        chat_event("a", None),
        rule="openai-chat.choice.unfinished",
        oracle="fail_closed",
    ),
    reply_pair(
        "empty-is-answer",
        "https://github.com/ltmoerdani/opencode-copilot-chat/pull/170",
        "reports a stream with nothing in it as a finished answer without text",
        EmptyIsAnswer,
        rule="openai-chat.stream.empty",
        oracle="fail_closed",
    ),
    reply_pair(
        "cut-is-end-turn",
        "https://github.com/xiaoyu-work/claw-os/issues/11",
        "makes up the end of the message when the stream ends before it",
        CutIsEndTurn,
        STARTED,
        rule="anthropic.stream.unfinished",
        oracle="fail_closed",
    ),
    reply_pair(
        "bad-json-skipped",
        "https://github.com/castari/castari-proxy/issues/1",
        "skips a chunk that is not JSON and goes on as if it had never been there",
        SkipsBadJson,
        b"data: {\n\n" + chat_event() + DONE,
        rule="stream.payload.not-json",
        oracle="fail_closed",
    ),
    reply_pair(
        "error-is-end",
        "https://github.com/farzaa/clicky/issues/132",
        "takes an error event for the end and returns the text so far as the answer",
        ErrorIsEnd,
        ERROR_EVENT,
        oracle="surfaced_error",
    ),
    reply_pair(
        "error-ignored",
        "https://github.com/withceleste/celeste-python/pull/192",
        "drops an error in the middle of the stream",
        ErrorIgnored,
        ERROR_CHUNK + chat_event() + DONE,
        oracle="surfaced_error",
    ),
    reply_pair(
        "named-error-dropped",
        "https://github.com/modelcontextprotocol/python-sdk/pull/1514",
        "reads only events without a name and so never sees an event named error",
        OnlyUnnamed,
        b"event: error\n" + ERROR_CHUNK + chat_event() + DONE,
        oracle="surfaced_error",
    ),
    reply_pair(
        "error-before-start",
        "https://github.com/NousResearch/hermes-agent/pull/14737",
        "complains about the order when an error comes first, and loses what the error said",
        OrderBeforeError,
        ERROR_EVENT,
        oracle="surfaced_error",
    ),
    Pair(
        name="error-record-is-end",
        url="https://github.com/BerriAI/litellm/pull/1750",
        bug="takes an error record for the end and returns an empty answer",
        provider="ollama",
        gives="reply",
        oracle="surfaced_error",
        faulty=message_async(OllamaErrorIsEnd),
        repaired=message_async(OllamaReader),
        trigger=(b'{"error":"model cannot be loaded"}\n',),
        errors=(StreamError,),
    ),
    reply_pair(
        "json-error-escapes",
        "https://github.com/caozhiyuan/copilot-api/pull/88",
        "parses empty data too, and lets the parser's own error escape",
        JsonErrorEscapes,
        b"event: ping\ndata: \n\n",
        oracle="typed_error",
    ),
    reply_pair(
        "ping-before-start",
        "https://github.com/spring-projects/spring-ai/issues/1870",
        "looks for the message at every ping, also before there is one",
        PingNeedsMessage,
        message_event("ping") + STARTED + STOPPED,
    ),
    reply_pair(
        "record-per-chunk",
        "https://github.com/sourcegraph/cody/pull/3481",
        "takes each chunk for one record",
        OllamaPerChunk,
        record("a", done=False) + record("b", done=True),
    ),
    Pair(
        name="record-split",
        url="https://github.com/0xPlaygrounds/rig/issues/1758",
        bug="takes the part of a record that is in one chunk for the whole record",
        provider="ollama",
        gives="reply",
        oracle="fragmentation",
        faulty=over_iterable(OllamaNoCarry),
        repaired=over_iterable(OllamaReader),
        trigger=cut(record("a", done=True), b"{"),
        errors=(StreamError,),
    ),
    Pair(
        name="values-without-carry",
        url="https://github.com/zya/litellmjs/pull/3",
        bug="splits each chunk into lines and carries no part of a line over to the next",
        provider="ndjson",
        gives="events",
        oracle="fragmentation",
        faulty=over_iterable(ValuesNoCarry),
        repaired=over_iterable(ValueReader),
        trigger=(b"[", b"]\n"),
        errors=(StreamError,),
    ),
    Pair(
        name="value-per-chunk",
        url="https://github.com/BerriAI/litellm/issues/5479",
        bug="takes the first chunk for the whole JSON value",
        provider="json",
        gives="json",
        takes="text",
        oracle="fragmentation",
        faulty=whole_text(value_of_chunks),
        repaired=whole_text(value_of_text),
        trigger=("[", "]"),
        errors=(StreamError,),
    ),
    frames_pair(
        "shared-text-decoder",
        "https://github.com/theopenco/llmgateway/pull/1698",
        "decodes all streams with one text decoder, which keeps the half character of a stream for the next",
        SharedUtf8,
        b"data: a\n\n\xc3",
        oracle="isolated",
    ),
    Pair(
        name="shared-line-buffer",
        url="https://github.com/CherryHQ/cherry-studio/pull/15678",
        bug="keeps the unfinished line of every stream in one place",
        provider="ndjson",
        gives="frames",
        oracle="isolated",
        faulty=SharedPartial,
        repaired=LineSplitter,
        trigger=(b"1", b"\n"),
        errors=(StreamError,),
    ),
    Pair(
        name="source-left-open",
        url="https://github.com/BerriAI/litellm/pull/30245",
        bug="leaves the source open when the caller stops reading",
        provider="sse",
        gives="frames",
        oracle="released",
        faulty=leaves_open(SSEDecoder),
        repaired=over_iterable(SSEDecoder),
        trigger=(b"data: a\n\n", b"data: b\n\n"),
        errors=(StreamError,),
    ),
    Pair(
        name="source-read-on",
        url="https://github.com/brockamer/findajob/issues/743",
        bug="reads the source to its end when the caller stops reading",
        provider="sse",
        gives="frames",
        oracle="released",
        faulty=reads_on(SSEDecoder),
        repaired=over_iterable(SSEDecoder),
        trigger=(b"data: a\n\n", b"data: b\n\n"),
        errors=(StreamError,),
    ),
    frames_pair(
        "events-held-in-block",
        "https://github.com/tower-rs/tower-http/issues/420",
        "holds events back until a block is full or the stream ends",
        FillsBlock,
        b"data: a\n\n",
        b"data: b\n\n",
        oracle="incremental",
    ),
    frames_pair(
        "line-scanned-again",
        "https://github.com/rexxars/eventsource-parser/pull/28",
        "scans and copies the whole unfinished line again with every chunk",
        ScansAgain,
        b"data: ",
        *[b"a"] * 10_000,
        b"\n\n",
        oracle="bounded",
    ),
    frames_pair(
        "rest-copied-per-line",
        "https://github.com/anthropics/anthropic-sdk-typescript/pull/1096",
        "copies the rest of a chunk once for each line in it",
        CopiesRest,
        b"data: a\n\n" * 6_000,
        oracle="bounded",
    ),
    frames_pair(
        "long-line-is-end",
        "https://github.com/a2aproject/a2a-go/pull/149",
        "takes a line longer than 64 KiB for the end of the stream",
        EndsAtLongLine,
        b"data: " + b"a" * 65_536 + b"\n\n",
        oracle="bounded",
    ),
)
