"""Readers of whole messages, made the same way: each planted bug is a subclass that gets one method wrong.

They read only the answer's text, but they hold the whole stream to its protocol, since damage anywhere in it
means that the text cannot be trusted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from .blocks import LineSplitter, Parser, SSEDecoder, StreamError, load, over_iterable
from .pair import Pair


class Reader(Parser):
    """A message out of frames.  Subclasses say what an event does and what the end of the stream is worth."""

    decoder: ClassVar[type[SSEDecoder] | type[LineSplitter]] = SSEDecoder

    def __init__(self) -> None:
        self.frames = self.decoder()
        self.text: list[str] = []
        self.id: str | None = None
        self.model: str | None = None

    def feed(self, chunk: bytes) -> Iterator[str]:
        return self.take(self.frames.feed(chunk))

    def rest(self) -> Iterator[str]:
        return self.take(self.frames.rest())

    def close(self) -> Any:
        for _ in self.rest():
            pass
        return self.result()

    def take(self, frames: Iterable[dict[str, str]]) -> Iterator[str]:
        """Read frames up to the end of the message; what follows it is not even decoded."""
        if self.done:
            return
        for frame in frames:
            yield from self.frame(frame.get("event", "message"), frame["data"])
            if self.done:
                return

    def frame(self, name: str, data: str) -> Iterator[str]:
        """Empty data is no event: some servers keep a connection alive with it."""
        if data.strip():
            yield from self.event(name, load(data))

    def event(self, name: str, value: Any) -> Iterator[str]:
        raise NotImplementedError

    def say(self, text: Any) -> Iterator[str]:
        """Add a piece of text; null, absent and empty ones are nothing."""
        if text is not None and not isinstance(text, str):
            raise StreamError("a piece of text is not a string")
        if text:
            self.text.append(text)
            yield text

    def view(self, finish: str | None) -> dict[str, Any]:
        return {"text": "".join(self.text), "finish": finish, "id": self.id, "model": self.model}


class ChatReader(Reader):
    """OpenAI chat completions: the text of the first choice, once every choice has said why it ended."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()
        self.finish: dict[int, str] = {}
        self.calls: dict[tuple[int, int], dict[str, str]] = {}

    def frame(self, name: str, data: str) -> Iterator[str]:
        if self.is_end(data):
            self.done = True
            return iter(())
        return super().frame(name, data)

    def is_end(self, data: str) -> bool:
        return data == "[DONE]"

    def event(self, name: str, value: Any) -> Iterator[str]:
        if not isinstance(value, dict):
            raise StreamError("a chunk is not an object")
        self.check_error(value)
        self.identify(value.get("id"), value.get("model"))
        choices = value.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            yield from self.choice(choice)

    def check_error(self, value: dict[str, Any]) -> None:
        if value.get("error"):
            raise StreamError(message_of(value["error"]))

    def identify(self, name: Any, model: Any) -> None:
        """A stream has one id; Azure's first chunk has an empty one, which does not count."""
        if isinstance(name, str) and name:
            if self.id not in (None, name):
                raise StreamError(f"a chunk of {name} in the stream of {self.id}")
            self.id = name
        if isinstance(model, str) and model:
            self.model = self.model or model

    def choice(self, choice: Any) -> Iterator[str]:
        choice = an_object(choice, "a choice")
        index = a_number(choice.get("index"), "a choice")
        delta = an_object(choice.get("delta") or {}, "a delta")
        self.seen.add(index)
        # No part of the sum may be skipped: every fragment of a call has to be taken in.
        adds = sum([self.fragment(index, fragment) for fragment in fragments(delta)])
        if index in self.finish and (adds or any(delta.get(member) for member in SPOKEN)):
            raise StreamError("a choice went on after its finish")
        if index == 0:
            yield from self.say(delta.get("content"))
        self.end_choice(index, choice.get("finish_reason"))

    def fragment(self, index: int, fragment: tuple[int, dict[str, Any]]) -> bool:
        """Take in a piece of a tool call; says whether it brought anything new.

        The calls themselves are none of this reader's business, but each must be known in the end.
        """
        number, piece = fragment
        function = an_object(piece.get("function") or {}, "a function")
        new = (index, number) not in self.calls or bool(function.get("arguments"))
        known = self.calls.setdefault((index, number), {})
        for member, value in (("id", piece.get("id")), ("name", function.get("name"))):
            if value and not isinstance(value, str):
                raise StreamError(f"the {member} of a tool call is not a string")
            if value and member not in known:
                known[member] = value
                new = True
            elif value and member == "id" and known["id"] != value:
                raise StreamError("two tool calls have the same index")
        return new

    def end_choice(self, index: int, finish: Any) -> None:
        if finish and (not isinstance(finish, str) or self.finish.setdefault(index, finish) != finish):
            raise StreamError("a choice ended in two ways")

    def result(self) -> dict[str, Any]:
        if not self.seen or self.seen - self.finish.keys():
            raise StreamError("the stream was cut before its answer was finished")
        if len(self.seen) <= max(self.seen):
            raise StreamError("the stream lost a choice")
        for (_, number), call in self.calls.items():
            if "name" not in call or (number >= 0 and "id" not in call):
                raise StreamError("the stream lost the name or the id of a tool call")
        return self.view(self.finish[0])


SPOKEN = ("content", "refusal", "reasoning_content", "reasoning")


def fragments(delta: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The pieces of tool calls in a delta by index; the old-style function call has none and counts as -1."""
    if delta.get("function_call") is not None:
        yield -1, {"function": delta["function_call"]}
    calls = delta.get("tool_calls") or []
    if not isinstance(calls, list):
        raise StreamError("the tool calls are not a list")
    for call in calls:
        yield a_number(an_object(call, "a tool call").get("index"), "a tool call"), call


class MessagesReader(Reader):
    """Anthropic messages: the text of all text blocks, once ``message_stop`` has come."""

    def __init__(self) -> None:
        super().__init__()
        self.started = False
        self.open: str | None = None
        self.index = -1
        self.finish: str | None = None
        self.told = False

    def event(self, name: str, value: Any) -> Iterator[str]:
        kind = kind_of(name, value)
        if kind == "error":
            self.fail(value)
        elif kind == "ping":
            self.ping()
        elif kind in EVENTS or kind is None:
            value = an_object(value, "an event")
            if kind is None or value.get("type") != kind or name not in ("message", kind):
                raise StreamError(f"an event named {name} says that it is something else")
            if self.started != (kind != "message_start"):
                raise StreamError("message_start is missing, or there are two")
            yield from getattr(self, EVENTS[kind])(value)

    def fail(self, value: Any) -> None:
        raise StreamError(message_of(value.get("error") if isinstance(value, dict) else value))

    def ping(self) -> None:
        """Pings come anywhere and say nothing."""

    def start(self, value: dict[str, Any]) -> Iterator[str]:
        message = an_object(value.get("message"), "a message")
        self.started = True
        self.id, self.model = words(message.get("id")), words(message.get("model"))
        self.finish = words(message.get("stop_reason"))
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        self.index = len(blocks) - 1
        self.told = bool(blocks) and self.finish is not None
        for block in blocks:
            yield from self.say(given_text(block))

    def open_block(self, value: dict[str, Any]) -> Iterator[str]:
        block = an_object(value.get("content_block"), "a block")
        kind = words(block.get("type"))
        number = a_number(value.get("index"), "a block")
        if kind is None or self.open is not None or self.told or number != self.index + 1:
            raise StreamError("a block began out of turn")
        self.index += 1
        self.open = kind
        yield from self.say(given_text(block))

    def delta(self, value: dict[str, Any]) -> Iterator[str]:
        delta = an_object(value.get("delta"), "a delta")
        kind = words(delta.get("type"))
        self.check_open(value)
        if kind is None or self.told or (kind in DELTAS and self.open in TAKES and kind not in TAKES[self.open]):
            raise StreamError(f"a {kind} does not belong in a {self.open} block")
        if kind == "text_delta" and self.open == "text":
            yield from self.say(delta.get("text"))

    def close_block(self, value: dict[str, Any]) -> Iterator[str]:
        self.check_open(value)
        self.open = None
        return iter(())

    def check_open(self, value: dict[str, Any]) -> None:
        if self.open is None or a_number(value.get("index"), "a block") != self.index:
            raise StreamError("an event for a block that is not open")

    def progress(self, value: dict[str, Any]) -> Iterator[str]:
        reason = an_object(value.get("delta"), "a delta").get("stop_reason")
        if reason is not None:
            if not isinstance(reason, str):
                raise StreamError("a stop reason is not a string")
            self.finish = reason
            self.told = True
        return iter(())

    def stop(self, value: dict[str, Any]) -> Iterator[str]:
        if self.open is not None or self.finish is None:
            raise StreamError("the message stopped in the middle")
        self.done = True
        return iter(())

    def result(self) -> dict[str, Any]:
        if not self.done:
            raise StreamError("the stream ended before message_stop")
        return self.view(self.finish)


EVENTS = {
    "message_start": "start",
    "content_block_start": "open_block",
    "content_block_delta": "delta",
    "content_block_stop": "close_block",
    "message_delta": "progress",
    "message_stop": "stop",
}
NAMES = frozenset((*EVENTS, "ping", "error"))

TAKES: dict[str, tuple[str, ...]] = {
    "text": ("text_delta", "citations_delta"),
    "thinking": ("thinking_delta", "signature_delta"),
    "tool_use": ("input_json_delta",),
    "server_tool_use": ("input_json_delta",),
    "mcp_tool_use": ("input_json_delta",),
    "compaction": ("compaction_delta",),
    "redacted_thinking": (),
    "web_search_tool_result": (),
    "web_fetch_tool_result": (),
    "code_execution_tool_result": (),
    "bash_code_execution_tool_result": (),
    "text_editor_code_execution_tool_result": (),
    "tool_search_tool_result": (),
    "mcp_tool_result": (),
    "advisor_tool_result": (),
    "container_upload": (),
    "fallback": (),
}
"""Known block types with the known deltas that they take; what is unknown is passed over."""

DELTAS = frozenset(kind for kinds in TAKES.values() for kind in kinds)


def kind_of(name: str, value: Any) -> str | None:
    """What an event is: its own type, or its SSE name where that alone is known."""
    kind = words(value.get("type")) if isinstance(value, dict) else None
    if kind in NAMES or name not in NAMES:
        return kind or (None if name == "message" else name)
    return name


def given_text(block: Any) -> str | None:
    """The text that a text block starts with."""
    if not isinstance(block, dict) or block.get("type") != "text":
        return None
    return words(block.get("text"))


class OllamaReader(Reader):
    """Ollama's chat records: the text, once a record says ``done``."""

    decoder = LineSplitter

    def __init__(self) -> None:
        super().__init__()
        self.finish: str | None = None

    def event(self, name: str, value: Any) -> Iterator[str]:
        record = an_object(value, "a record")
        if record.get("error"):
            self.fail(record)
            return
        if not isinstance(record.get("done"), bool):
            raise StreamError("a record does not say whether it is the last")
        self.identify(words(record.get("model")))
        yield from self.say(an_object(record.get("message") or {}, "a message").get("content"))
        if record["done"]:
            self.done = True
            self.finish = words(record.get("done_reason")) or None

    def fail(self, record: dict[str, Any]) -> None:
        error = record["error"]
        raise StreamError(error if isinstance(error, str) else compact(error))

    def identify(self, model: str | None) -> None:
        if model and self.model not in (None, model):
            raise StreamError(f"a record of {model} in the stream of {self.model}")
        self.model = model or self.model

    def result(self) -> dict[str, Any]:
        if not self.done:
            raise StreamError("the stream ended before its last record")
        return self.view(self.finish)


def an_object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise StreamError(f"{what} is not an object")
    return value


def a_number(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise StreamError(f"{what} has no index")
    return value


def words(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def message_of(error: Any) -> str:
    """What a provider says went wrong."""
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) and message else compact(error)


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


READERS: dict[str, type[Reader]] = {
    "openai-chat": ChatReader,
    "anthropic": MessagesReader,
    "ollama": OllamaReader,
}


def reply_pair(
    name: str,
    url: str,
    bug: str,
    faulty: type[Reader],
    *trigger: bytes,
    oracle: str = "faithful",
    rule: str = "",
) -> Pair:
    """A reader of a provider's message over an iterable of chunks."""
    provider, repaired = next(found for found in READERS.items() if issubclass(faulty, found[1]))
    return Pair(
        name=name,
        url=url,
        bug=bug,
        provider=provider,
        gives="reply",
        oracle=oracle,
        faulty=over_iterable(faulty),
        repaired=over_iterable(repaired),
        trigger=trigger,
        rule=rule,
        errors=(StreamError,),
    )


# -- the shortest lawful streams, for triggers ----------------------------------------------------------------


def chat_chunk(content: str = "", finish: str | None = "stop") -> bytes:
    """A chunk of a chat completion, not framed."""
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return json.dumps({"object": "chat.completion.chunk", "choices": [choice]}, ensure_ascii=False).encode()


def chat_event(content: str = "", finish: str | None = "stop") -> bytes:
    """The same as an event."""
    return b"data: " + chat_chunk(content, finish) + b"\n\n"


DONE = b"data: [DONE]\n\n"


def message_event(kind: str, **members: Any) -> bytes:
    """An event of the Messages API."""
    data = json.dumps({"type": kind, **members}, ensure_ascii=False)
    return f"event: {kind}\ndata: {data}\n\n".encode()


STARTED = message_event("message_start", message={"id": "m"})
STOPPED = message_event("message_delta", delta={"stop_reason": "end_turn"}) + message_event("message_stop")


def message(text: str) -> bytes:
    """A whole message of one text block."""
    return (
        STARTED
        + message_event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        + message_event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
        + message_event("content_block_stop", index=0)
        + STOPPED
    )


def record(content: str, *, done: bool) -> bytes:
    """A record of Ollama's chat."""
    reason = {"done_reason": "stop"} if done else {}
    data = {"message": {"role": "assistant", "content": content}, "done": done, **reason}
    return json.dumps(data, ensure_ascii=False).encode() + b"\n"


def cut(data: bytes, after: bytes) -> tuple[bytes, bytes]:
    """The bytes in two chunks, the first of which ends with ``after``."""
    head, found, tail = data.partition(after)
    return head + found, tail
