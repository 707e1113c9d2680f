"""Decoders as a careful developer would write them.  A planted bug is a subclass that gets one method wrong.

A parser is fed chunks and gives what they complete; ``rest`` is what the end of the stream completes, and
``result`` what it all came to.  Any parser is a push target as it stands; ``over_iterable`` and its neighbours
make the other shapes of it, which close their source however the reading ends.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator
from typing import Any

from .pair import Pair

EOL = re.compile(r"\r\n|\r|\n")
MARK = "\ufeff"

Parse = Callable[[Iterable[bytes]], Any]


class StreamError(Exception):
    """The stream is damaged, was cut, or reports an error of the provider."""


class Parser:
    """What every parser has; ``done`` says that nothing more is expected."""

    done = False

    def feed(self, chunk: bytes) -> Iterator[Any]:
        raise NotImplementedError

    def rest(self) -> Iterable[Any]:
        return ()

    def result(self) -> Any:
        return None

    def close(self) -> Any:
        return self.rest()


class SSEDecoder(Parser):
    """Server-sent events by the letter of the WHATWG specification, fed in chunks of any size.

    An event whose blank line never comes is not dispatched.
    """

    def __init__(self) -> None:
        self.utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self.at_start = True
        self.after_cr = False
        self.partial: list[str] = []
        self.event = ""
        self.data: list[str] = []
        self.last_id = ""

    def feed(self, chunk: bytes) -> Iterator[dict[str, str]]:
        text = self.unmark(self.decode(chunk))
        for line in self.lines(text):
            frame = self.line(line)
            if frame is not None:
                yield frame

    def decode(self, chunk: bytes) -> str:
        return self.utf8.decode(chunk)

    def unmark(self, text: str) -> str:
        """One byte order mark at the very start is no part of the first line."""
        if not self.at_start or not text:
            return text
        self.at_start = False
        return text.removeprefix(MARK)

    def lines(self, text: str) -> Iterable[str]:
        """The lines that this text ends.  A CR ends one at once; an LF right after it belongs to it."""
        if not text:
            return []
        if self.after_cr and text[0] == "\n":
            text = text[1:]
        self.after_cr = text.endswith("\r")
        return self.carry(self.pieces(text))

    def pieces(self, text: str) -> list[str]:
        """The text cut at line ends; the last piece is the beginning of a line that has no end yet."""
        return EOL.split(text)

    def carry(self, pieces: list[str]) -> Iterable[str]:
        """Finish the line that was begun before, and keep the one that is begun now."""
        *ended, rest = pieces
        if ended:
            ended[0] = "".join(self.partial) + ended[0]
            self.partial.clear()
        if rest:
            self.partial.append(rest)
        return ended

    def line(self, line: str) -> dict[str, str] | None:
        if not line:
            return self.dispatch()
        if line.startswith(":"):
            self.comment(line)
        else:
            self.field(*self.split(line))
        return None

    def comment(self, line: str) -> None:
        """Comments keep a connection alive and say nothing."""

    def split(self, line: str) -> tuple[str, str]:
        name, _, value = line.partition(":")
        return name, self.trim(value)

    def trim(self, value: str) -> str:
        return value.removeprefix(" ")

    def field(self, name: str, value: str) -> None:
        if name == "data":
            self.add_data(value)
        elif name == "event":
            self.event = value
        elif name == "id" and "\0" not in value:
            self.last_id = value

    def add_data(self, value: str) -> None:
        self.data.append(value)

    def join(self) -> str:
        return "\n".join(self.data)

    def has_event(self) -> bool:
        """Only a block that had a data line, be it empty, makes an event."""
        return bool(self.data)

    def dispatch(self) -> dict[str, str] | None:
        frame = None
        if self.has_event():
            frame = {"event": self.event or "message", "data": self.join(), "id": self.last_id}
        self.reset()
        return frame

    def reset(self) -> None:
        self.event = ""
        self.data = []


class LineSplitter(Parser):
    """NDJSON: one value a line, lines ended by LF (a CR before it is tolerated), blank lines skipped."""

    def __init__(self) -> None:
        self.partial: list[bytes] = []
        self.at_start = True

    def feed(self, chunk: bytes) -> Iterator[dict[str, str]]:
        for line in self.lines(chunk):
            yield from self.frame(line)

    def rest(self) -> Iterable[dict[str, str]]:
        """The last line may lack its LF."""
        line = b"".join(self.partial)
        self.partial.clear()
        return self.frame(line)

    def lines(self, chunk: bytes) -> Iterable[bytes]:
        *ended, rest = chunk.split(b"\n")
        if ended:
            ended[0] = b"".join(self.partial) + ended[0]
            self.partial.clear()
        if rest:
            self.partial.append(rest)
        return ended

    def frame(self, line: bytes) -> Iterator[dict[str, str]]:
        if self.at_start:
            line = line.removeprefix(codecs.BOM_UTF8)
            self.at_start = False
        line = line.removesuffix(b"\r")
        if not line.strip(b" \t\r"):
            return
        try:
            yield {"data": line.decode()}
        except UnicodeDecodeError as error:
            raise StreamError(f"a line is not UTF-8: {error}") from error


class ValueReader(LineSplitter):
    """The JSON value of each line."""

    def frame(self, line: bytes) -> Iterator[Any]:
        for frame in super().frame(line):
            yield load(frame["data"])


def over_iterable(make: Callable[[], Parser]) -> Parse:
    """Read an iterable of chunks: give items as they come and return the result."""

    def parse(chunks: Iterable[bytes]) -> Generator[Any, None, Any]:
        reader = make()
        source = iter(chunks)
        try:
            for chunk in source:
                yield from reader.feed(chunk)
                if reader.done:
                    break
            yield from reader.rest()
            return reader.result()
        finally:
            release(source)

    return parse


def over_async(make: Callable[[], Parser]) -> Callable[[AsyncIterable[bytes]], AsyncIterator[Any]]:
    """Give the frames of an asynchronous source as they come."""

    async def parse(chunks: AsyncIterable[bytes]) -> AsyncIterator[Any]:
        decoder = make()
        source = aiter(chunks)
        try:
            async for chunk in source:
                for frame in decoder.feed(chunk):
                    yield frame
            for frame in decoder.rest():
                yield frame
        finally:
            await release_async(source)

    return parse


def message_async(make: Callable[[], Parser]) -> Callable[[AsyncIterable[bytes]], Any]:
    """Return the message of an asynchronous source."""

    async def parse(chunks: AsyncIterable[bytes]) -> Any:
        reader = make()
        source = aiter(chunks)
        try:
            async for chunk in source:
                for _ in reader.feed(chunk):
                    pass
                if reader.done:
                    break
            return reader.close()
        finally:
            await release_async(source)

    return parse


def release(source: Any) -> None:
    close = getattr(source, "close", None)
    if close is not None:
        close()


def whole_text(take: Callable[[Iterable[str]], Any]) -> Callable[[Iterable[str]], Any]:
    """Hand text chunks to a function and close their source."""

    def parse(chunks: Iterable[str]) -> Any:
        source = iter(chunks)
        try:
            return take(source)
        finally:
            release(source)

    return parse


async def release_async(source: Any) -> None:
    aclose = getattr(source, "aclose", None)
    if aclose is not None:
        await aclose()


def load(data: str) -> Any:
    """One JSON text by the letter of RFC 8259, which has no NaN."""
    try:
        return json.loads(data, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise StreamError(f"not JSON: {error}") from error


def refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def frames_pair(
    name: str, url: str, bug: str, faulty: type[SSEDecoder], *trigger: bytes, oracle: str = "faithful"
) -> Pair:
    """A decoder of server-sent events over an iterable of chunks."""
    return Pair(
        name=name,
        url=url,
        bug=bug,
        provider="sse",
        gives="frames",
        oracle=oracle,
        faulty=over_iterable(faulty),
        repaired=over_iterable(SSEDecoder),
        trigger=trigger,
        errors=(StreamError,),
    )
