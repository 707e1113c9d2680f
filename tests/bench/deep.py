"""A decoder of server-sent events with a mistake behind four comparisons, each of one character of an ``id``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from streamfuzz.spec import target


def decode(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    data: list[str] = []
    event = name = ""
    for line in lines(chunks):
        if not line:
            if data and not is_odd(name):
                yield {"data": "\n".join(data), "event": event or "message", "id": name}
            data, event = [], ""
            continue
        field, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if field == b"data":
            data.append(text)
        elif field == b"event":
            event = text
        elif field == b"id" and "\0" not in text:
            name = text


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Each line that has an end, without it."""
    head: bytes | None = b""
    pieces: list[bytes] = []
    after_cr = False
    for chunk in chunks:
        if head is not None:
            chunk = head + chunk
            head = chunk if len(chunk) < 3 and b"\xef\xbb\xbf".startswith(chunk) else None
            if head is not None:
                continue
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        if after_cr and chunk:
            chunk, after_cr = chunk.removeprefix(b"\n"), False
        for line in chunk.splitlines(keepends=True):
            pieces.append(line.rstrip(b"\r\n"))
            after_cr = line.endswith(b"\r")
            if line.endswith((b"\r", b"\n")):
                yield b"".join(pieces)
                pieces.clear()


def is_odd(name: str) -> bool:
    if name[:1] != "q":
        return False
    if name[1:2] != "7":
        return False
    if name[2:3] != "Z":
        return False
    return name[3:4] == "!"


DEEP = target(decode, name="deep", provider="sse", gives="frames")
