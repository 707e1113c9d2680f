"""What a dialect is, and the habits of framing that servers of every protocol share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..rules import Rule
from ..stream import Stream
from ..style import Insert

Rewrite: TypeAlias = Callable[[Stream], Stream]
"""The same message as another server sends it."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """A way in which servers that speak a protocol differ from it, while the message stays the same.

    Attributes:
        name: after who sends it, unique among the dialects of its provider.
        provider: the protocol that it is a dialect of.
        title: what is different, in one sentence.
        source: where it was read or seen, as a URL.
        rewrite: turns a stream of the protocol into this dialect.
        breaks: the rules of the protocol that it breaks; a target may refuse a stream in which it does.
    """

    name: str
    provider: str
    title: str
    source: str
    rewrite: Rewrite
    breaks: tuple[Rule, ...] = ()


def in_turn(*rewrites: Rewrite) -> Rewrite:
    """Several rewrites as one."""

    def rewrite(stream: Stream) -> Stream:
        for one in rewrites:
            stream = one(stream)
        return stream

    return rewrite


def keep_alive(comment: str) -> Rewrite:
    """An SSE comment in a block of its own before the first event, and where frames are two lines before the second."""

    def rewrite(stream: Stream) -> Stream:
        style = stream.style
        unfolded = not style.fold and stream.events[:1] and stream.events[0].name is None
        lines = (0, 2) if unfolded else (0,)
        block: tuple[Insert, ...] = tuple((line, text) for line in lines for text in (comment, ""))
        return replace(stream, style=replace(style, inserts=(*style.inserts, *block)))

    return rewrite


def crlf(stream: Stream) -> Stream:
    """Every line ends in CRLF."""
    return replace(stream, style=replace(stream.style, eols=("\r\n",)))


def no_space(stream: Stream) -> Stream:
    """No space after the colon of an SSE field."""
    return replace(stream, style=replace(stream.style, space=False))


def captured(path: str) -> str:
    """The source of what was seen in a recorded stream: its address in the collection of those."""
    return f"https://github.com/vercel/ai/blob/main/packages/{path}.chunks.txt"


def sse_starlette(provider: str) -> Dialect:
    """The framing of the library behind most Python servers, whatever it carries."""
    return Dialect(
        "sse-starlette",
        provider,
        "lines end in CRLF, and comments with the time keep the connection alive",
        "https://github.com/sysid/sse-starlette",
        in_turn(crlf, keep_alive(": ping - 2026-01-01 00:00:00.000000+00:00")),
    )
