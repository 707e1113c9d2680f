"""Ways to make interesting bytes from a stream.  What the bytes are worth is the judge's business, not ours.

A mutation is a small value: a name from the tables below and its arguments.  :func:`apply` is the one place
where mutations are carried out; the menus yield those that make sense for a stream.

* *Rewritings* leave the message as it is: another style, events that mean nothing, unknown members.
* *Damage* is what networks, proxies and bugs do: truncation, loss, doubling, disorder, corruption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from .providers import Provider, get
from .reply import Json
from .stream import Event, Raw, Stream, payloads
from .styles import SINGLE_STYLES


@dataclass(frozen=True, slots=True)
class Mutation:
    """One edit: its name, in words, and its arguments (all JSON values)."""

    name: str
    args: tuple[Any, ...] = ()


Edit = Callable[..., Stream]
ByteEdit = Callable[..., bytes]


def encode(provider: Provider, stream: Stream) -> bytes:
    """The bytes of a stream in its own style."""
    return provider.framing.encode(payloads(stream.events, stream.style), stream.style)


def edit(provider: Provider, stream: Stream, mutations: Sequence[Mutation]) -> Stream:
    """Carry out those mutations that are edits of events or of the style, in turn."""
    for mutation in mutations:
        if mutation.name in EVENT_EDITS:
            stream = EVENT_EDITS[mutation.name](provider, stream, *mutation.args)
    return stream


def apply(provider: Provider, stream: Stream, mutations: Sequence[Mutation]) -> bytes:
    """Carry out mutations: first those of events, then, on the encoded stream, those of bytes.

    Raises:
        LookupError: a mutation has a name that is in no table.
    """
    data = encode(provider, edit(provider, stream, mutations))
    for mutation in mutations:
        if mutation.name in BYTE_EDITS:
            data = BYTE_EDITS[mutation.name](data, *mutation.args)
        elif mutation.name not in EVENT_EDITS:
            raise LookupError(f"unknown mutation {mutation.name!r}")
    return data


# -- edits of events ------------------------------------------------------------------------------------------


def _edit(stream: Stream, start: int, stop: int, *events: Event) -> Stream:
    return replace(stream, events=(*stream.events[:start], *events, *stream.events[stop:]))


def _restyle(provider: Provider, stream: Stream, name: str) -> Stream:
    return replace(stream, style=dict(SINGLE_STYLES[provider.framing.name])[name])


def _add_member(provider: Provider, stream: Stream, index: int) -> Stream:
    event = stream.events[index]
    if not isinstance(event.data, dict):
        return stream
    return _edit(stream, index, index + 1, Event({**event.data, "x_unknown": {"text": "[DONE]"}}, event.name))


def _insert_noise(provider: Provider, stream: Stream, index: int, which: int) -> Stream:
    return _edit(stream, index, index, provider.noise[which])


def _insert_failure(provider: Provider, stream: Stream, index: int, which: int) -> Stream:
    return _edit(stream, index, index, provider.failures[which])


def _drop(provider: Provider, stream: Stream, index: int) -> Stream:
    return _edit(stream, index, index + 1)


def _repeat(provider: Provider, stream: Stream, index: int) -> Stream:
    return _edit(stream, index, index, stream.events[index])


def _swap(provider: Provider, stream: Stream, index: int) -> Stream:
    return _edit(stream, index, index + 2, stream.events[index + 1], stream.events[index])


def _move(provider: Provider, stream: Stream, index: int, to: int) -> Stream:
    rest = (*stream.events[:index], *stream.events[index + 1 :])
    return replace(stream, events=(*rest[:to], stream.events[index], *rest[to:]))


def _cut_payload(provider: Provider, stream: Stream, index: int) -> Stream:
    event = stream.events[index]
    text = event.data.text if isinstance(event.data, Raw) else stream.style.spell(event.data)
    return _edit(stream, index, index + 1, Event(Raw(text[:-1]), event.name))


def _replace_payload(provider: Provider, stream: Stream, index: int, text: str) -> Stream:
    return _edit(stream, index, index + 1, Event(Raw(text), stream.events[index].name))


def _insert_payload(provider: Provider, stream: Stream, index: int, text: str) -> Stream:
    return _edit(stream, index, index, Event(Raw(text)))


EVENT_EDITS: Mapping[str, Edit] = {
    "write it in another style": _restyle,
    "add an unknown member": _add_member,
    "insert an event that means nothing": _insert_noise,
    "insert an error": _insert_failure,
    "drop an event": _drop,
    "repeat an event": _repeat,
    "swap two events": _swap,
    "move an event": _move,
    "cut a payload short": _cut_payload,
    "replace a payload": _replace_payload,
    "insert a payload": _insert_payload,
}

# -- edits of bytes -------------------------------------------------------------------------------------------


def _truncate(data: bytes, length: int) -> bytes:
    return data[:length]


def _flip(data: bytes, offset: int, bit: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ (1 << bit)]) + data[offset + 1 :]


def _overwrite(data: bytes, offset: int, hex_bytes: str) -> bytes:
    new = bytes.fromhex(hex_bytes)
    return data[:offset] + new + data[offset + len(new) :]


def _append(data: bytes, text: str) -> bytes:
    return data + text.encode()


def _become(data: bytes, text: str) -> bytes:
    return text.encode()


BYTE_EDITS: Mapping[str, ByteEdit] = {
    "truncate": _truncate,
    "flip a bit": _flip,
    "overwrite bytes": _overwrite,
    "append bytes": _append,
    "send something else": _become,
}

ODD_PAYLOADS = ("null", "[]", "1", '"x"', "{}", "{", "", " ", "NaN", "[DONE]", "undefined")
"""Payloads that are no event: other JSON, no JSON, nothing, and a sentinel where none belongs."""

OTHER_BODIES = (
    "",
    "<html><body>502 Bad Gateway</body></html>",
    '{"error": {"message": "quota exceeded", "type": "insufficient_quota", "code": 429}}',
    "upstream connect error",
)
"""What servers and proxies answer in place of a stream."""

# -- menus ----------------------------------------------------------------------------------------------------


def rewritings(provider: Provider, stream: Stream) -> Iterator[Mutation]:
    """Mutations after which the stream still carries the same message."""
    for name, _ in SINGLE_STYLES[provider.framing.name]:
        yield Mutation("write it in another style", (name,))
    for index, event in enumerate(stream.events):
        if isinstance(event.data, dict) and provider.body is not None:  # in a plain profile it would be content
            yield Mutation("add an unknown member", (index,))
            break
    for which in range(len(provider.noise)):
        for index in range(len(stream.events)):
            yield Mutation("insert an event that means nothing", (index, which))


def damage(provider: Provider, stream: Stream) -> Iterator[Mutation]:
    """Mutations that do to a stream what networks, proxies and bugs do; each event is touched in turn.

    Truncation is not in the menu: it is worth doing at every byte, which the caller enumerates.
    """
    count = len(stream.events)
    for index in range(count):
        yield Mutation("drop an event", (index,))
        yield Mutation("repeat an event", (index,))
        if index + 1 < count:
            yield Mutation("swap two events", (index,))
        yield Mutation("cut a payload short", (index,))
        for which in range(len(provider.failures)):
            yield Mutation("insert an error", (index, which))
        yield Mutation("insert a payload", (index, ODD_PAYLOADS[index % len(ODD_PAYLOADS)]))
        yield Mutation("replace a payload", (index, ODD_PAYLOADS[(index * 7 + 3) % len(ODD_PAYLOADS)]))
    if count > 2:
        yield Mutation("move an event", (count - 1, 0))
        yield Mutation("move an event", (0, count - 1))
    for text in OTHER_BODIES:
        yield Mutation("send something else", (text,))
    yield Mutation("append bytes", ("data: {\n\n" if provider.framing.name == "sse" else "{\n",))


_BITS = st.integers(0, 7)


@st.composite
def mutations(draw: st.DrawFn, stream: Stream) -> Mutation:
    """One mutation of any menu, or a truncation or bit flip anywhere in the bytes."""
    provider = get(stream.provider)
    menu = [*rewritings(provider, stream), *damage(provider, stream)]
    index = draw(st.integers(0, len(menu) + 1))
    if index < len(menu):
        return menu[index]
    length = len(encode(provider, stream))
    if index == len(menu) or not length:
        return Mutation("truncate", (draw(st.integers(0, length)),))
    return Mutation("flip a bit", (draw(st.integers(0, length - 1)), draw(_BITS)))


def lift(value: Json) -> Mutation:
    """Read a mutation back from its JSON form ``[name, [args]]``.

    Raises:
        ValueError: it is not of that form, or names no known mutation.
    """
    if not (isinstance(value, list) and len(value) == 2 and isinstance(value[1], list)):
        raise ValueError("a mutation is [name, [arguments]]")
    name, args = value
    if name not in EVENT_EDITS and name not in BYTE_EDITS:
        raise ValueError(f"unknown mutation {name!r}")
    return Mutation(name, tuple(args))
