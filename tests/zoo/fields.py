"""Planted bugs of the SSE grammar: fields, comments, byte order marks, and what a blank line dispatches."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from itertools import takewhile

from .blocks import SSEDecoder, StreamError, frames_pair, over_async
from .message_blocks import DONE, ChatReader, chat_chunk, chat_event, reply_pair
from .pair import Pair


class WantsSpace(SSEDecoder):
    def split(self, line: str) -> tuple[str, str]:
        name, _, value = line.partition(": ")
        return name, value


class WantsSpaceChat(ChatReader):
    decoder = WantsSpace


class CutsSix(SSEDecoder):
    def split(self, line: str) -> tuple[str, str]:
        return ("data", line[6:]) if line.startswith("data:") else super().split(line)


class KeepsSpace(SSEDecoder):
    def trim(self, value: str) -> str:
        return value


class KeepsSpaceChat(ChatReader):
    decoder = KeepsSpace


class Strips(SSEDecoder):
    def trim(self, value: str) -> str:
        return value.strip()


class StripsTabs(SSEDecoder):
    def trim(self, value: str) -> str:
        return value.lstrip(" \t")


class NeedsColon(SSEDecoder):
    def split(self, line: str) -> tuple[str, str]:
        return super().split(line) if ":" in line else ("", "")


class KeepsLastData(SSEDecoder):
    def add_data(self, value: str) -> None:
        self.data = [value]


class GluesData(SSEDecoder):
    def join(self) -> str:
        return "".join(self.data)


class KeepsMark(SSEDecoder):
    def unmark(self, text: str) -> str:
        return text


class MarkInFirstChunk(SSEDecoder):
    def decode(self, chunk: bytes) -> str:
        if self.at_start:
            chunk = chunk.removeprefix(codecs.BOM_UTF8)
            self.at_start = False
        return super().decode(chunk)


class KeepsEventName(SSEDecoder):
    def reset(self) -> None:
        if self.data:
            super().reset()


class AnyCase(SSEDecoder):
    def field(self, name: str, value: str) -> None:
        super().field(name.lower(), value)


class EndAnywhere(ChatReader):
    def is_end(self, data: str) -> bool:
        return "[DONE]" in data


class SplitsAtData(SSEDecoder):
    def split(self, line: str) -> tuple[str, str]:
        return ("data", self.trim(line.split("data:")[1])) if line.startswith("data:") else super().split(line)


class StopsAtComment(SSEDecoder):
    def lines(self, text: str) -> Iterable[str]:
        return takewhile(lambda line: not line.startswith(":"), super().lines(text))


class RefusesBareColon(SSEDecoder):
    def comment(self, line: str) -> None:
        if line == ":":
            raise StreamError("the stream is not formatted properly")


class CommentIsData(SSEDecoder):
    def comment(self, line: str) -> None:
        self.add_data(line)


class AnyBlock(SSEDecoder):
    def __init__(self) -> None:
        super().__init__()
        self.touched = False

    def line(self, line: str) -> dict[str, str] | None:
        self.touched = self.touched or bool(line)
        return super().line(line)

    def has_event(self) -> bool:
        return self.touched

    def reset(self) -> None:
        super().reset()
        self.touched = False


class IdIsEvent(SSEDecoder):
    def has_event(self) -> bool:
        return bool(self.data or self.last_id)


class CountsEmptyLines(SSEDecoder):
    limit = 10

    def __init__(self) -> None:
        super().__init__()
        self.empty = 0

    def line(self, line: str) -> dict[str, str] | None:
        self.empty = 0 if line.startswith("data") else self.empty + 1
        if self.empty > self.limit:
            raise StreamError("the stream has sent too many empty messages")
        return super().line(line)


class CountsEmptyLinesChat(ChatReader):
    decoder = CountsEmptyLines


class ForgetsId(SSEDecoder):
    def reset(self) -> None:
        super().reset()
        self.last_id = ""


PAIRS: tuple[Pair, ...] = (
    reply_pair(
        "data-without-space",
        "https://github.com/openai/openai-python/issues/498",
        "ignores data lines that have no space after the colon",
        WantsSpaceChat,
        b"data:" + chat_chunk() + b"\n\n" + DONE,
    ),
    frames_pair(
        "six-characters-cut",
        "https://github.com/genkit-ai/genkit/issues/3728",
        "cuts six characters off a data line, the last of which may be the first of the payload",
        CutsSix,
        b"data:1\n\n",
    ),
    reply_pair(
        "space-before-sentinel",
        "https://github.com/xoai/sage-wiki/pull/78",
        "leaves the space after the colon in the value, so it never knows the sentinel",
        KeepsSpaceChat,
        chat_event() + DONE,
    ),
    frames_pair(
        "value-stripped",
        "https://github.com/langchain4j/langchain4j/issues/5531",
        "strips all white space from both ends of a value",
        Strips,
        b"data: a \n\n",
    ),
    frames_pair(
        "leading-tab-stripped",
        "https://github.com/spring-projects/spring-framework/issues/27473",
        "strips every leading space and tab from a value and not just one space",
        StripsTabs,
        b"data:\ta\n\n",
    ),
    frames_pair(
        "field-without-colon",
        "https://github.com/mpetazzoni/sse.js/pull/30",
        "ignores a line without a colon, which is a field with an empty value",
        NeedsColon,
        b"data\n\n",
    ),
    Pair(
        name="last-data-line-only",
        url="https://github.com/milady-ai/milady/pull/1653",
        bug="keeps only the last of several data lines",
        provider="sse",
        gives="frames",
        oracle="faithful",
        faulty=KeepsLastData,
        repaired=SSEDecoder,
        trigger=(b"data: a\ndata: b\n\n",),
        errors=(StreamError,),
    ),
    Pair(
        name="data-lines-glued",
        url="https://github.com/stalwartlabs/jmap-client/issues/19",
        bug="joins several data lines without a line feed",
        provider="sse",
        gives="frames",
        oracle="faithful",
        faulty=over_async(GluesData),
        repaired=over_async(SSEDecoder),
        trigger=(b"data: a\ndata: b\n\n",),
        errors=(StreamError,),
    ),
    frames_pair(
        "byte-order-mark-kept",
        "https://github.com/vm0-ai/vm0/issues/24687",
        "takes a byte order mark for a part of the first field name and loses the first event",
        KeepsMark,
        b"\xef\xbb\xbfdata: a\n\n",
    ),
    frames_pair(
        "byte-order-mark-split",
        "https://github.com/openai/openai-python/pull/3819",
        "looks for the byte order mark in the first chunk only, so one cut in two stays",
        MarkInFirstChunk,
        b"\xef\xbb",
        b"\xbfdata: a\n\n",
        oracle="fragmentation",
    ),
    frames_pair(
        "event-name-outlives-block",
        "https://github.com/Ahoo-Wang/fetcher/pull/1404",
        "keeps the event name of a block without data for the next event",
        KeepsEventName,
        b"event: a\n\ndata: b\n\n",
    ),
    frames_pair(
        "field-names-any-case",
        "https://github.com/Ahoo-Wang/fetcher/pull/1404",
        "takes field names in any case",
        AnyCase,
        b"Data: a\n\n",
    ),
    reply_pair(
        "sentinel-inside-text",
        "https://github.com/rahilp/second-brain-cloudflare/issues/353",
        "takes any chunk whose text mentions the sentinel for the end of the stream",
        EndAnywhere,
        chat_event("[DONE]") + DONE,
    ),
    frames_pair(
        "prefix-inside-text",
        "https://github.com/langchain4j/langchain4j/issues/3697",
        "splits a line at every 'data:' and keeps one part",
        SplitsAtData,
        b"data: a data: b\n\n",
    ),
    frames_pair(
        "comment-ends-read",
        "https://github.com/continuedev/continue/pull/13144",
        "drops whatever follows a comment in the same chunk",
        StopsAtComment,
        b":\ndata: a\n\n",
    ),
    Pair(
        name="bare-colon-refused",
        url="https://github.com/mistralai/mistral-vibe/pull/774",
        bug="fails on a heartbeat that is a colon and nothing else",
        provider="sse",
        gives="frames",
        oracle="faithful",
        faulty=RefusesBareColon,
        repaired=SSEDecoder,
        trigger=(b":\n",),
        errors=(StreamError,),
    ),
    frames_pair(
        "comment-as-data",
        "https://github.com/mnfst/llm-gateway/issues/2053",
        "passes comments on as data",
        CommentIsData,
        b":\n\n",
    ),
    frames_pair(
        "block-without-data",
        "https://github.com/openai/openai-go/pull/621",
        "makes an event of a block that has a comment or a retry and no data",
        AnyBlock,
        b":\n\n",
    ),
    frames_pair(
        "event-from-old-id",
        "https://github.com/florimondmanca/httpx-sse/pull/46",
        "makes an event of every blank line once it has seen an id",
        IdIsEvent,
        b"id: 1\ndata: a\n\n\n",
    ),
    reply_pair(
        "too-many-empty-lines",
        "https://github.com/sashabaranov/go-openai/issues/71",
        "gives up after a fixed number of lines that carry no data",
        CountsEmptyLinesChat,
        b"\n" * 11 + chat_event() + DONE,
    ),
    frames_pair(
        "id-forgotten",
        "https://github.com/Effect-TS/effect/pull/6978",
        "forgets the last event id with the event that set it",
        ForgetsId,
        b"id: 1\ndata: a\n\ndata: b\n\n",
    ),
)
