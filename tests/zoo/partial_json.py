"""Planted bugs in putting together one JSON value from pieces of text, such as structured output."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterable, Iterable
from typing import Any

from .pair import Pair
from .readers import StreamError, strict_json
from .tools import closed


class JsonText:
    """Builds a JSON value while its text comes in, one character after the other."""

    def __init__(self) -> None:
        self.nested: list[Any] = []
        self.names: list[str] = []
        self.due = "value"
        self.kind = ""
        self.token: list[str] = []
        self.escaped = False
        self.value: Any = None

    def feed(self, text: str) -> None:
        for character in text:
            self.take(character)
        self.chunk_end()

    def chunk_end(self) -> None:
        # A chunk may end anywhere, so its end says nothing.
        pass

    def close(self) -> Any:
        if self.kind == "scalar":
            self.end_scalar()
        if self.due != "nothing" or self.kind:
            raise StreamError("the text ended inside its value")
        return self.value

    def take(self, character: str) -> None:
        if self.kind == "string":
            self.take_in_string(character)
        elif self.kind == "scalar" and (character.isalnum() or character in "+-."):
            self.token.append(character)
        elif self.kind == "scalar":
            self.end_scalar()
            self.take(character)
        elif character not in " \t\r\n":
            self.take_between(character)

    def take_in_string(self, character: str) -> None:
        self.token.append(character)
        if self.escaped:
            self.escaped = False
        elif character == "\\":
            self.escaped = True
        elif character == '"':
            self.kind = ""
            self.end_string(self.text_of("".join(self.token)))

    def text_of(self, literal: str) -> str:
        return str(strict_json(literal))

    def end_string(self, text: str) -> None:
        if self.due in ("name", "name or end"):
            self.names[-1] = text
            self.due = "colon"
        else:
            self.complete(text)

    def end_scalar(self) -> None:
        self.kind = ""
        self.complete(strict_json("".join(self.token)))

    def take_between(self, character: str) -> None:
        if character == '"' and self.due in ("value", "value or end", "name", "name or end"):
            self.kind, self.token = "string", ['"']
        elif character in "{[" and self.due in ("value", "value or end"):
            self.nested.append({} if character == "{" else [])
            self.names.append("")
            self.due = "name or end" if character == "{" else "value or end"
        elif character in "}]" and self.ends(character):
            self.names.pop()
            self.complete(self.nested.pop())
        elif character == ":" and self.due == "colon":
            self.due = "value"
        elif character == "," and self.due == "comma or end":
            self.due = "name" if isinstance(self.nested[-1], dict) else "value"
        elif self.due in ("value", "value or end") and (character.isalnum() or character == "-"):
            self.kind, self.token = "scalar", [character]
        else:
            raise StreamError(f"{character!r} where a {self.due} was due")

    def ends(self, character: str) -> bool:
        due = ("comma or end", "name or end") if character == "}" else ("comma or end", "value or end")
        return bool(self.nested) and self.due in due and isinstance(self.nested[-1], dict) == (character == "}")

    def complete(self, value: Any) -> None:
        if not self.nested:
            self.value, self.due = value, "nothing"
            return
        self.add(self.nested[-1], value)
        self.due = "comma or end"

    def add(self, holder: Any, value: Any) -> None:
        if isinstance(holder, dict):
            holder[self.names[-1]] = value
        else:
            holder.append(value)


class NumberEndsWithChunk(JsonText):
    """A number at the end of a chunk is whole."""

    def chunk_end(self) -> None:
        if self.kind == "scalar" and self.token[-1].isdigit():
            self.end_scalar()


class CutsEscapes(JsonText):
    """A chunk that ends inside an escape has that part of it cut off."""

    def chunk_end(self) -> None:
        if self.escaped:
            self.escaped = False
            self.token.pop()


class DecodesPieces(JsonText):
    """The escapes in each chunk are decoded when the chunk has been read."""

    def __init__(self) -> None:
        super().__init__()
        self.decoded: list[str] = []

    def chunk_end(self) -> None:
        if self.kind == "string" and not self.escaped:
            self.decoded.append(self.text_of("".join(self.token) + '"'))
            self.token = ['"']

    def end_string(self, text: str) -> None:
        super().end_string("".join([*self.decoded, text]))
        self.decoded.clear()


class HalvesPairs(JsonText):
    """Every escape is a character of its own."""

    def text_of(self, literal: str) -> str:
        characters = re.sub(r"\\u([dD][89a-fA-F][0-9a-fA-F]{2})", lambda at: chr(int(at[1], 16)), literal)
        return super().text_of(characters)


class LastNumberLost(JsonText):
    """A number counts once there is a comma behind it."""

    def take_between(self, character: str) -> None:
        if character == "]" and self.nested and isinstance(self.nested[-1], list) and self.after_number():
            self.nested[-1].pop()
        super().take_between(character)

    def after_number(self) -> bool:
        last = self.nested[-1][-1:]
        return self.due == "comma or end" and bool(last) and type(last[0]) in (int, float)


def value_of(chunks: Iterable[str]) -> Any:
    """Decode the whole text."""
    return strict_json("".join(chunks))


def value_or_nothing(chunks: Iterable[str]) -> Any:
    """Decode the whole text; what cannot be decoded is an empty object."""
    try:
        return value_of(chunks)
    except StreamError:
        return {}


def closed_value(chunks: Iterable[str]) -> Any:
    """Decode the whole text, with whatever it left open closed."""
    return strict_json(closed("".join(chunks)))


async def value_from(chunks: AsyncIterable[str]) -> Any:
    """Decode the whole text of an asynchronous source."""
    return strict_json("".join([chunk async for chunk in chunks]))


async def first_value_from(chunks: AsyncIterable[str]) -> Any:
    """Decode the first value of the text and leave the rest of it."""
    text = "".join([chunk async for chunk in chunks]).lstrip(" \t\r\n")
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError) as error:
        raise StreamError(f"not JSON: {error}") from error


def _pair(name: str, url: str, bug: str, oracle: str, faulty: Any, repaired: Any, *trigger: str) -> Pair:
    return Pair(name, url, bug, "json", "json", oracle, faulty, repaired, trigger, takes="text", errors=(StreamError,))


PAIRS = (
    _pair(
        "cut-json-closed",
        "https://github.com/cline/cline/issues/13001",
        "closes the brackets of a value that was cut off and takes it for the whole",
        "fail_closed",
        closed_value,
        value_of,
        "[1,2",
    ),
    _pair(
        "not-json-is-empty",
        "https://github.com/NousResearch/hermes-agent/issues/35151",
        "returns an empty object for text that cannot be decoded",
        "fail_closed",
        value_or_nothing,
        value_of,
        "{",
    ),
    _pair(
        "second-value-unread",
        "https://github.com/open-webui/open-webui/pull/22235",
        "takes the first of two values and does not look at what follows",
        "fail_closed",
        first_value_from,
        value_from,
        "{}",
        "{}",
    ),
    _pair(
        "number-ends-with-chunk",
        "https://github.com/pydantic/jiter/issues/146",
        "takes a number for whole where a chunk ends in it",
        "fragmentation",
        NumberEndsWithChunk,
        JsonText,
        "1",
        "2",
    ),
    _pair(
        "escape-cut-off",
        "https://github.com/pydantic/jiter/issues/207",
        "drops the backslash at the end of a chunk",
        "fragmentation",
        CutsEscapes,
        JsonText,
        '"\\',
        'n"',
    ),
    _pair(
        "escape-decoded-by-chunk",
        "https://github.com/json-c/json-c/issues/616",
        "fails when a chunk ends inside a surrogate pair that is escaped",
        "fragmentation",
        DecodesPieces,
        JsonText,
        '"\\ud83d\\ud',
        'e00"',
    ),
    _pair(
        "surrogates-halved",
        "https://github.com/agent0ai/agent-zero/issues/1773",
        "decodes an escaped surrogate pair as two characters",
        "faithful",
        HalvesPairs,
        JsonText,
        '"\\ud83c\\udf78"',
    ),
    _pair(
        "last-number-lost",
        "https://github.com/anthropics/anthropic-sdk-typescript/pull/1059",
        "loses a number at the end of an array",
        "faithful",
        LastNumberLost,
        JsonText,
        "[7,8]",
    ),
)
