"""Planted bugs of the lowest layer: bytes to characters, characters to lines."""

from __future__ import annotations

from collections.abc import Iterable

from .blocks import SSEDecoder, StreamError, over_async, over_iterable
from .message_blocks import DONE, ChatReader, MessagesReader, chat_chunk, chat_event, cut, message
from .pair import Pair


class LossyChunks(SSEDecoder):
    def decode(self, chunk: bytes) -> str:
        return chunk.decode("utf-8", "replace")


class StrictChunks(SSEDecoder):
    def decode(self, chunk: bytes) -> str:
        try:
            return chunk.decode()
        except UnicodeDecodeError as error:
            raise StreamError("invalid UTF-8 in the stream") from error


class LossyChat(ChatReader):
    decoder = LossyChunks


class BareChunks(SSEDecoder):
    def decode(self, chunk: bytes) -> str:
        return str(chunk, "utf-8")


class BareMessages(MessagesReader):
    decoder = BareChunks


class Latin1(SSEDecoder):
    def decode(self, chunk: bytes) -> str:
        return chunk.decode("iso-8859-1")


class SplitLines(SSEDecoder):
    def pieces(self, text: str) -> list[str]:
        *ended, rest = (text + "-").splitlines()  # the dash stands for the line that has no end yet
        return [*ended, rest[:-1]]


class SplitLinesChat(ChatReader):
    decoder = SplitLines


class ForgetsCr(SSEDecoder):
    def lines(self, text: str) -> Iterable[str]:
        self.after_cr = False
        return super().lines(text)


class NormalisesChunks(SSEDecoder):
    def decode(self, chunk: bytes) -> str:
        return super().decode(chunk).replace("\r\n", "\n").replace("\r", "\n")


class NormalisesChunksChat(ChatReader):
    decoder = NormalisesChunks


class OnlyLf(SSEDecoder):
    def lines(self, text: str) -> Iterable[str]:
        return self.carry(text.split("\n"))


class TrimsChunks(SSEDecoder):
    def decode(self, chunk: bytes) -> str:
        return super().decode(chunk).lstrip("\r\n")


class NoCarry(SSEDecoder):
    def carry(self, pieces: list[str]) -> Iterable[str]:
        return pieces if pieces[-1] else pieces[:-1]


PAIRS: tuple[Pair, ...] = (
    Pair(
        name="utf8-per-chunk",
        url="https://github.com/api7/aisix/issues/111",
        bug="decodes each chunk by itself, so a character cut in two becomes replacement characters",
        provider="sse",
        gives="frames",
        oracle="fragmentation",
        faulty=LossyChunks,
        repaired=SSEDecoder,
        trigger=(b"data: \xc3", b"\xa9\n\n"),
        errors=(StreamError,),
    ),
    Pair(
        name="utf8-strict-per-chunk",
        url="https://github.com/zeroclaw-labs/zeroclaw/pull/3723",
        bug="decodes each chunk strictly by itself, so a character cut in two is reported as invalid",
        provider="sse",
        gives="frames",
        oracle="fragmentation",
        faulty=over_iterable(StrictChunks),
        repaired=over_iterable(SSEDecoder),
        trigger=(b"data: \xc3", b"\xa9\n\n"),
        errors=(StreamError,),
    ),
    Pair(
        name="utf8-fresh-decoder",
        url="https://github.com/danielmiessler/Fabric/pull/2203",
        bug="makes a new decoder for each chunk, so replacement characters reach the answer",
        provider="openai-chat",
        gives="reply",
        oracle="fragmentation",
        faulty=over_iterable(LossyChat),
        repaired=over_iterable(ChatReader),
        trigger=cut(chat_event("\U0001f30d") + DONE, b"\xf0\x9f"),
        errors=(StreamError,),
    ),
    Pair(
        name="utf8-error-escapes",
        url="https://github.com/Azure/azure-sdk-for-python/pull/39741",
        bug="decodes before lines are whole, so a character cut in two escapes as UnicodeDecodeError",
        provider="anthropic",
        gives="reply",
        oracle="fragmentation",
        faulty=over_iterable(BareMessages),
        repaired=over_iterable(MessagesReader),
        trigger=cut(message("\u4e2d"), b"\xe4\xb8"),
        errors=(StreamError,),
    ),
    Pair(
        name="charset-latin1",
        url="https://github.com/pydantic/httpx2/pull/1046",
        bug="decodes an event stream as Latin-1",
        provider="sse",
        gives="frames",
        oracle="faithful",
        faulty=over_async(Latin1),
        repaired=over_async(SSEDecoder),
        trigger=(b"data: \xc3\xa9\n\n",),
        errors=(StreamError,),
    ),
    Pair(
        name="unicode-line-ends",
        url="https://github.com/florimondmanca/httpx-sse/pull/37",
        bug="splits lines at every Unicode line end, so a vertical tab cuts the data",
        provider="sse",
        gives="frames",
        oracle="faithful",
        faulty=over_iterable(SplitLines),
        repaired=over_iterable(SSEDecoder),
        trigger=(b"data: x\x0by\n\n",),
        errors=(StreamError,),
    ),
    Pair(
        name="unicode-line-ends-in-json",
        url="https://github.com/openai/openai-python/issues/1230",
        bug="splits lines at U+2028, so the JSON of a chunk is cut in the middle of a string",
        provider="openai-chat",
        gives="reply",
        oracle="faithful",
        faulty=over_iterable(SplitLinesChat),
        repaired=over_iterable(ChatReader),
        trigger=(chat_event("a\u2028b") + DONE,),
        errors=(StreamError,),
    ),
    Pair(
        name="crlf-forgotten-between-chunks",
        url="https://github.com/Effect-TS/effect/pull/6954",
        bug="forgets between two chunks that it has seen a CR, so the LF after it is a blank line",
        provider="sse",
        gives="frames",
        oracle="fragmentation",
        faulty=ForgetsCr,
        repaired=SSEDecoder,
        trigger=(b"data: a\r", b"\ndata: b\r\n\r\n"),
        errors=(StreamError,),
    ),
    Pair(
        name="crlf-normalised-per-chunk",
        url="https://github.com/kaitranntt/ccs/pull/1359",
        bug="normalises line ends chunk by chunk, so a CRLF cut in two ends the event",
        provider="openai-chat",
        gives="reply",
        oracle="fragmentation",
        faulty=over_iterable(NormalisesChunksChat),
        repaired=over_iterable(ChatReader),
        trigger=cut(b"data: " + chat_chunk().replace(b", ", b",\r\ndata:", 1) + b"\n\n" + DONE, b"\r"),
        errors=(StreamError,),
    ),
    Pair(
        name="only-lf",
        url="https://github.com/hey-api/hey-api/issues/3054",
        bug="knows no line end but LF, so a stream with CRLF has no events",
        provider="sse",
        gives="frames",
        oracle="faithful",
        faulty=over_iterable(OnlyLf),
        repaired=over_iterable(SSEDecoder),
        trigger=(b"data: a\r\n\r\n",),
        errors=(StreamError,),
    ),
    Pair(
        name="blank-line-split",
        url="https://github.com/mpetazzoni/sse.js/issues/36",
        bug="trims each chunk, so a blank line at the start of one is lost and two events become one",
        provider="sse",
        gives="frames",
        oracle="fragmentation",
        faulty=TrimsChunks,
        repaired=SSEDecoder,
        trigger=(b"data: a\n", b"\n"),
        errors=(StreamError,),
    ),
    Pair(
        name="line-over-two-reads",
        url="https://github.com/brave/brave-browser/issues/52830",
        bug="takes the part of a line that is in one chunk for the whole line",
        provider="sse",
        gives="frames",
        oracle="fragmentation",
        faulty=over_iterable(NoCarry),
        repaired=over_iterable(SSEDecoder),
        trigger=(b"data: a", b"b\n\n"),
        errors=(StreamError,),
    ),
)
