"""What all readers of the message zoo are made of: right in every respect, the repaired half of a pair.

A reader takes chunks of bytes (``feed``) and gives the message at the end (``close``).  Each step is a small
method of its own, so that a planted bug is a subclass that overrides one of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]
Message = dict[str, Any]
Frame = tuple[str, str]

BOM = b"\xef\xbb\xbf"
LINE_END = re.compile(rb"\r\n|\r|\n")


class StreamError(Exception):
    """The stream failed: the provider said so, it was cut, or it makes no sense."""


class Sse:
    """Incremental decoder of an event stream; gives the name and the data of each dispatched event."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[str] = []
        self._name = ""
        self._after_cr = False
        self._first = True

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        if self._after_cr and chunk:
            # The LF of a CRLF whose CR ended the chunk before; that line has been taken already.
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = self._after_cr or chunk.endswith(b"\r")
        *ends, rest = LINE_END.split(chunk)
        for end in ends:
            self._line.append(end)
            line = b"".join(self._line)
            self._line.clear()
            yield from self._take(line)
        self._line.append(rest)

    def close(self) -> Iterator[Frame]:
        # An event without its blank line is discarded.
        return iter(())

    def _take(self, line: bytes) -> Iterator[Frame]:
        if self._first:
            self._first = False
            line = line.removeprefix(BOM)
        if not line:
            if self._data:
                yield self._name, "\n".join(self._data)
            self._name, self._data = "", []
            return
        # A character never spans a line end, so a whole line can be decoded by itself.
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value


class Lines:
    """Incremental splitter of newline-delimited JSON; gives each line that is not blank."""

    def __init__(self) -> None:
        self._line: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._line.append(end)
            yield from self.close()
        self._line.append(rest)

    def close(self) -> Iterator[Frame]:
        line = b"".join(self._line)
        self._line.clear()
        if not line.strip(b" \t\r"):
            return
        try:
            yield "", line.decode().removesuffix("\r")
        except UnicodeDecodeError as error:
            raise StreamError(f"not UTF-8: {error}") from error


def strict_json(text: str) -> Any:
    """Decode one JSON text, without the extensions that :func:`json.loads` allows itself."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise StreamError(f"not JSON: {error}") from error


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def words(holder: Event, name: str) -> str:
    """A string member; absent and null are the empty string."""
    value = holder.get(name)
    if value is not None and not isinstance(value, str):
        raise StreamError(f"{name} is not a string: {value!r}")
    return value or ""


def number(holder: Event, name: str) -> int:
    """A member that counts or points, such as an index."""
    value = holder.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise StreamError(f"{name} is not an index: {value!r}")
    return value


def thing(holder: Event, name: str) -> Event:
    """An object member; absent and null are the empty object."""
    value = holder.get(name)
    if value is not None and not isinstance(value, dict):
        raise StreamError(f"{name} is not an object: {value!r}")
    return value or {}


def things(holder: Event, name: str) -> list[Event]:
    """An array of objects; absent and null are the empty array."""
    value = holder.get(name) or []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise StreamError(f"{name} is not a list of objects")
    return value


def count(holder: Event, name: str) -> int | None:
    """A member that says how many; ``None`` if it does not."""
    value = holder.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def compact(value: Any) -> str:
    """JSON text without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def reason(error: Any) -> str:
    """What a provider's error says."""
    if isinstance(error, dict):
        said = (error[name] for name in ("message", "type", "code") if error.get(name))
        return str(next(said, "unspecified error"))
    return str(error)


@dataclass
class Call:
    """A tool call in the making."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def view(self) -> Message:
        return {"id": self.id or None, "name": self.name, "arguments": "".join(self.arguments)}


class Reader:
    """What all readers share: decode the framing and the JSON, hand over each event, stop at the end."""

    decoder: Callable[[], Sse | Lines] = Sse

    def __init__(self) -> None:
        self.frames = self.decoder()
        self.done = False
        self.id = ""
        self.model = ""
        self.usage: Message | None = None
        self.shown: list[Any] = []

    def feed(self, chunk: bytes) -> Iterator[Any]:
        """Take a chunk; yields what there is to show, before anything later in the chunk can fail."""
        for name, payload in self.frames.feed(chunk):
            if self.done:
                return
            self.payload(name, payload)
            yield from self.shown
            self.shown.clear()

    def close(self) -> Message:
        """The end of the stream: the message, or an error if it is not whole."""
        for name, payload in self.frames.close():
            if not self.done:
                self.payload(name, payload)
        self.check()
        return self.message()

    def payload(self, name: str, text: str) -> None:
        event = strict_json(text)
        if isinstance(event, dict):
            self.raise_error(event)
            self.event(event)
        else:
            self.stray(name, text)

    def stray(self, name: str, text: str) -> None:
        raise StreamError(f"not an object: {text}")

    def raise_error(self, event: Event) -> None:
        if event.get("error"):
            raise StreamError(reason(event["error"]))

    def event(self, event: Event) -> None:
        raise NotImplementedError

    def check(self) -> None:
        if not self.done:
            raise StreamError("the stream was cut")

    def message(self) -> Message:
        raise NotImplementedError

    def show(self, text: str) -> None:
        if text:
            self.shown.append(text)

    def name_itself(self, holder: Event) -> None:
        self.id = self.same(self.id, words(holder, "id"))
        self.model = self.model or words(holder, "model")

    def same(self, known: str, named: str) -> str:
        # Some streams begin with a chunk that leaves it empty.
        if known and named and known != named:
            raise StreamError(f"{named} in the stream of {known}")
        return known or named

    def count(self, usage: Any, input_key: str, output_key: str) -> None:
        # Every count that a provider sends is a running total, so the last one stands.
        if isinstance(usage, dict):
            self.usage = {"input": count(usage, input_key), "output": count(usage, output_key)}


class Ollama(Reader):
    """Ollama's own API: one JSON object a line, the last one says that it is done."""

    decoder = Lines

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[Message] = []
        self.finish: str | None = None

    def raise_error(self, event: Event) -> None:
        error = event.get("error")
        if error:
            raise StreamError(error if isinstance(error, str) else compact(error))

    def event(self, event: Event) -> None:
        done = event.get("done")
        if not isinstance(done, bool) or not isinstance(event.get("message"), dict):
            raise StreamError(f"not a chat record: {event}")
        self.model = self.same(self.model, words(event, "model"))
        self.part(event["message"])
        if done:
            self.last(event)

    def last(self, event: Event) -> None:
        self.count(event, "prompt_eval_count", "eval_count")
        self.finish = words(event, "done_reason") or None
        self.done = True

    def part(self, message: Event) -> None:
        self.text.append(words(message, "content"))
        self.reasoning.append(words(message, "thinking"))
        self.show(self.text[-1])
        for call in things(message, "tool_calls"):
            self.call(thing(call, "function"), words(call, "id"))

    def call(self, function: Event, id: str) -> None:  # noqa: A002
        arguments = function.get("arguments")
        if not isinstance(function.get("name"), str) or not isinstance(arguments, dict):
            raise StreamError("a tool call without name or arguments")
        self.calls.append({"id": id or None, "name": function["name"], "arguments": arguments})

    def message(self) -> Message:
        return {
            "text": "".join(self.text),
            "reasoning": "".join(self.reasoning),
            "tool_calls": self.calls,
            "finish": self.finish,
            "usage": self.usage,
            "model": self.model,
        }


def reading(reader: Callable[[], Reader]) -> Callable[[Iterable[bytes]], Message]:
    """Read to the end and return the message."""

    def parse(chunks: Iterable[bytes]) -> Message:
        stream = reader()
        for chunk in chunks:
            for _ in stream.feed(chunk):
                pass
            if stream.done:
                break
        return stream.close()

    return parse


def showing(reader: Callable[[], Reader]) -> Callable[[Iterable[bytes]], Iterator[Any]]:
    """Yield what there is to show as it comes, and return the message."""

    def parse(chunks: Iterable[bytes]) -> Iterator[Any]:
        stream = reader()
        for chunk in chunks:
            yield from stream.feed(chunk)
            if stream.done:
                break
        return stream.close()

    return parse


def awaiting(reader: Callable[[], Reader]) -> Callable[[AsyncIterable[bytes]], Any]:
    """Read to the end of an asynchronous source and return the message."""

    async def parse(chunks: AsyncIterable[bytes]) -> Message:
        stream = reader()
        async for chunk in chunks:
            for _ in stream.feed(chunk):
                pass
            if stream.done:
                break
        return stream.close()

    return parse
