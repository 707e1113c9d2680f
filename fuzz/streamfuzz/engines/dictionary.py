"""Words for libFuzzer's mutations: a dictionary for each provider, read off the tables that there are anyway."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from streamfuzz_strategies.framing import BOM
from streamfuzz_strategies.mutations import ODD_PAYLOADS, encode
from streamfuzz_strategies.providers import Provider, get
from streamfuzz_strategies.reply import Json
from streamfuzz_strategies.stream import Event, Raw, Stream
from streamfuzz_strategies.styles import SINGLE_STYLES

LONGEST = 64
"""Bytes of the longest word that libFuzzer takes."""

MOST = 2000
"""How many texts of a target's code are taken, the shortest first."""


@lru_cache(maxsize=16)
def words(name: str) -> tuple[bytes, ...]:
    """The words of a provider's streams: framing tokens, event and member names, fixed values, sentinels.

    Args:
        name: of the provider.
    """
    provider = get(name)
    found = [BOM, *_framing(provider), *(payload.encode() for payload in ODD_PAYLOADS)]
    if provider.sentinel is not None:
        found.append(provider.sentinel.encode())
    for schema in provider.schemas.values():
        found += _of_schema(schema)
    for event in (*provider.noise, *provider.failures):
        found += [event.name.encode()] if event.name is not None else []
        found += _of_value(event.data) if not isinstance(event.data, Raw) else []
    return tuple(dict.fromkeys(word for word in found if 0 < len(word) <= LONGEST))


def _framing(provider: Provider) -> Iterator[bytes]:
    """Names, openings and ends of lines in every style in which a stream can be written."""
    events = (*provider.noise, *provider.failures) or (Event(Raw("{}"), "message"), Event(Raw("[]")))
    for _, style in SINGLE_STYLES[provider.framing.name]:
        data = encode(provider, Stream(provider.name, events, style=style))
        for line in provider.framing.lines(data):
            if line.value > line.start:
                yield data[line.start : line.name_end]
                yield data[line.start : line.value]
            yield data[line.end : line.stop]
        yield from (text.encode() for _, text in style.inserts)


def _of_schema(schema: Json) -> Iterator[bytes]:
    """The names of members, as they stand before their value, and the values that are fixed."""
    if isinstance(schema, list):
        for each in schema:
            yield from _of_schema(each)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key == "properties":
            yield from (f"{json.dumps(name)}:".encode() for name in value)
            yield from _of_schema(list(value.values()))
        elif key in ("const", "enum"):
            yield from (json.dumps(fixed).encode() for fixed in (value if key == "enum" else [value]))
        else:
            yield from _of_schema(value)


def _of_value(value: Json) -> Iterator[bytes]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield f"{json.dumps(name)}:".encode()
            yield from _of_value(member)
    elif isinstance(value, list):
        for item in value:
            yield from _of_value(item)
    else:
        yield json.dumps(value).encode()


def constants(packages: Sequence[str]) -> tuple[bytes, ...]:
    """The texts that the code of loaded packages holds: what it compares its input to is among them.

    Args:
        packages: top-level packages; of ours only the modules that nothing but a target needs.
    """
    found: dict[bytes, None] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in packages and not name.startswith(_OURS):
            for code in _codes(vars(module), name):
                found.update(dict.fromkeys(_texts(code)))
    return tuple(sorted(found, key=len)[:MOST])


_ATHERIS = b"__ATHERIS"
"""How a text begins that was put into the code only to watch it."""

_OURS = ("streamfuzz_strategies", "streamfuzz.engines", "streamfuzz.nightly")


def _codes(namespace: Mapping[str, Any], module: str) -> Iterator[CodeType]:
    """The code of the functions that are defined in a module, also in its classes."""
    for value in list(namespace.values()):
        kind = type(value)  # asked of the type, because a module may hold objects that import more when touched
        if kind is property or kind is classmethod or kind is staticmethod:
            value = value.fget if kind is property else value.__func__
            kind = type(value)
        if kind is FunctionType and value.__module__ == module:
            yield value.__code__
        elif issubclass(kind, type) and type.__getattribute__(value, "__module__") == module:
            yield from _codes(type.__getattribute__(value, "__dict__"), module)


def _texts(code: CodeType) -> Iterator[bytes]:
    for constant in code.co_consts[1:]:  # the first is the docstring, or None
        if isinstance(constant, CodeType):
            yield from _texts(constant)
        for text in constant if isinstance(constant, (tuple, frozenset)) else (constant,):
            word = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
            if isinstance(word, bytes) and 0 < len(word) <= LONGEST // 2 and not word.startswith(_ATHERIS):
                yield word


def written(found: Sequence[bytes]) -> str:
    """The words as a dictionary file of libFuzzer: one a line, in quotes, what is not plain ASCII in hex."""
    return "".join(f'"{"".join(map(_spelled, word))}"\n' for word in found)


def _spelled(byte: int) -> str:
    plain = 0x20 <= byte < 0x7F and byte not in b'"\\'
    return chr(byte) if plain else f"\\x{byte:02X}"
