"""The demo target: a chat client written the way such clients are written, and the same one repaired.

``streamfuzz run`` without a target fuzzes :func:`parse`.  Its code looks reasonable and passes a happy-path test.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable
from typing import Any

from .spec import Target, target


class StreamError(Exception):
    """The stream did not carry a complete answer."""


def parse(chunks: Iterable[bytes]) -> dict[str, Any]:
    """Read a chat completion stream the way people do it at first."""
    text, finish, buffer = "", None, ""
    calls: list[dict[str, Any]] = []
    for chunk in chunks:
        buffer += chunk.decode("utf-8", errors="replace")
        while "\n\n" in buffer:
            block, buffer = buffer.split("\n\n", 1)
            for line in block.split("\n"):
                if not line.startswith("data: "):
                    continue
                try:
                    event = json.loads(line[6:])
                except ValueError:
                    continue
                choice = event["choices"][0]
                delta = choice["delta"]
                text += delta.get("content") or ""
                for position, call in enumerate(delta.get("tool_calls") or []):
                    if position == len(calls):
                        calls.append({"id": call.get("id"), "name": "", "arguments": ""})
                    calls[position]["name"] += call["function"].get("name") or ""
                    calls[position]["arguments"] += call["function"].get("arguments") or ""
                finish = choice.get("finish_reason") or finish
    return {"text": text, "tool_calls": calls, "finish": finish or "stop"}


def repaired(chunks: Iterable[bytes]) -> dict[str, Any]:
    """Read the same stream with every lesson learned.

    Raises:
        StreamError: the stream broke off, was damaged, or the provider reported an error.
    """
    reader = _Reader()
    for payload in _payloads(chunks):
        if payload == "[DONE]":
            break
        reader.read(payload)
    return reader.result()


def _payloads(chunks: Iterable[bytes]) -> Iterable[str]:
    """Decode server-sent events and give the data of each."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces: list[str] = []
    data: list[str] | None = None
    first, after_cr = True, False
    for chunk in chunks:
        text = decoder.decode(chunk)
        if not text:
            continue
        if first:
            text, first = text.removeprefix("\ufeff"), False
        if after_cr and text.startswith("\n"):
            text = text[1:]
        if not text:
            after_cr = False
            continue
        after_cr = text.endswith("\r")
        *ended, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in ended:
            line, pieces = "".join([*pieces, line]), []
            if not line:
                if data is not None and data != [""]:
                    yield "\n".join(data)
                data = None
                continue
            name, _, value = line.partition(":")
            if name == "data":
                data = [*(data or []), value.removeprefix(" ")]
        pieces.append(rest)


class _Answer:
    """One of the answers that a stream carries side by side."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: dict[int, dict[str, Any]] = {}
        self.finish: str | None = None

    def read(self, choice: dict[str, Any]) -> None:
        delta, finish = choice.get("delta") or {}, choice.get("finish_reason")
        fragments, content = delta.get("tool_calls") or [], delta.get("content") or ""
        if not isinstance(content, str):
            raise StreamError("the content is no text")
        if self.finish and (content or delta.get("refusal") or fragments):
            raise StreamError("the answer went on after its end")
        self.texts.append(content)
        for fragment in fragments:
            self._fragment(fragment)
        if finish and self.finish and finish != self.finish:
            raise StreamError("the answer ended twice")
        self.finish = finish or self.finish

    def _fragment(self, fragment: dict[str, Any]) -> None:
        index = fragment.get("index")
        if not isinstance(index, int):
            raise StreamError("a tool call fragment has no index")
        call = self.calls.setdefault(index, {"id": None, "name": "", "arguments": ""})
        if call["id"] and fragment.get("id") and fragment["id"] != call["id"]:
            raise StreamError("two tool calls share an index")
        function = fragment.get("function") or {}
        call["id"] = call["id"] or fragment.get("id")
        call["name"] = call["name"] or function.get("name") or ""
        call["arguments"] += function.get("arguments") or ""

    def result(self) -> dict[str, Any]:
        if not self.finish:
            raise StreamError("the stream ended before the answer did")
        calls = [self.calls[index] for index in sorted(self.calls)]
        if not all(call["name"] for call in calls):
            raise StreamError("a tool call has no name")
        return {"text": "".join(self.texts), "tool_calls": calls, "finish": self.finish}


class _Reader:
    """All of the stream; the demo hands out its first answer, once every answer is whole."""

    def __init__(self) -> None:
        self.id = ""
        self.answers: dict[int, _Answer] = {}

    def read(self, payload: str) -> None:
        try:
            event = json.loads(payload)
        except ValueError:
            raise StreamError(f"a payload is not JSON: {payload[:40]!r}") from None
        if not isinstance(event, dict):
            raise StreamError(f"a payload is no chunk: {payload[:40]!r}")
        if event.get("error"):
            error = event["error"]
            raise StreamError(str(error.get("message", error) if isinstance(error, dict) else error))
        name = event.get("id") or ""
        if self.id and name and name != self.id:
            raise StreamError("chunks of another answer arrived")
        self.id = self.id or name
        for choice in event.get("choices") or []:
            self.answers.setdefault(choice.get("index") or 0, _Answer()).read(choice)

    def result(self) -> dict[str, Any]:
        if not self.answers or sorted(self.answers) != list(range(len(self.answers))):
            raise StreamError("an answer is missing")
        first, *_ = [self.answers[index].result() for index in sorted(self.answers)]
        return first


def demo() -> Target:
    """The demo parser as a target."""
    return target(parse, name="demo", provider="openai-chat")


def demo_repaired() -> Target:
    """The repaired demo parser as a target."""
    return target(repaired, name="demo-repaired", provider="openai-chat", errors=(StreamError,))
