"""What a stream may have that a failure can hang on, each by name, with the case that lacks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate

from streamfuzz_strategies import providers
from streamfuzz_strategies.framing import Line
from streamfuzz_strategies.providers import Provider
from streamfuzz_strategies.reply import Json
from streamfuzz_strategies.stream import Event, Raw
from streamfuzz_strategies.text import NOT_LINE_ENDS
from streamfuzz_strategies.wire import Wire

from . import edits
from .bench import read
from .case import Case
from .edits import Edit


def framing_features(provider: Provider, case: Case) -> Iterator[tuple[str, Case | None]]:
    """Each feature of the framing by name, with the case that lacks it."""
    if case.end == "reset":
        yield "a connection that breaks", replace(case, end="eof")
    if edits.is_wire(case):
        yield "bytes that are not UTF-8", edits.apply(case, _not_utf8(case.data))
        if provider.framing.name == "sse":
            for name, find in _SSE_FEATURES.items():
                yield name, edits.apply(case, find(case.data, Wire(case.data, provider.framing)))
        elif provider.framing.name == "ndjson":
            wire = Wire(case.data, provider.framing)
            yield "CRLF line ends", edits.apply(case, _line_ends(case.data, wire))
            yield "blank lines", edits.apply(case, _lines(("blank",))(case.data, wire))


def _not_utf8(data: bytes) -> list[Edit]:
    """The edits that write a question mark for every byte that no character is made of."""
    text = data.decode("utf-8", "surrogateescape")
    ends = accumulate(len(character.encode("utf-8", "surrogateescape")) for character in text)
    return [(end - 1, end, b"?") for mark, end in zip(text, ends, strict=True) if "\udc80" <= mark <= "\udcff"]


def _lines(kinds: tuple[str, ...]) -> Callable[[bytes, Wire], list[Edit]]:
    def find(data: bytes, wire: Wire) -> list[Edit]:
        return [(line.start, line.stop, b"") for line in wire.lines if line.kind in kinds]

    return find


def _line_ends(data: bytes, wire: Wire) -> list[Edit]:
    return [(i.end, i.stop, b"\n") for i in wire.lines if i.stop > i.end and data[i.end : i.stop] != b"\n"]


def _only(eol: bytes) -> Callable[[bytes, Wire], list[Edit]]:
    def find(data: bytes, wire: Wire) -> list[Edit]:
        ends = {data[line.end : line.stop] for line in wire.lines} - {b""}
        return _line_ends(data, wire) if ends == {eol} else []

    return find


def _mixed_ends(data: bytes, wire: Wire) -> list[Edit]:
    ends = {data[line.end : line.stop] for line in wire.lines} - {b""}
    return _line_ends(data, wire) if len(ends) > 1 else []


def _spaces(data: bytes, wire: Wire) -> list[Edit]:
    return [
        (line.value, line.value, b" ")
        for line in wire.lines
        if line.kind in ("data", "event") and line.value == line.name_end + 1
    ]


def _dataless(data: bytes, wire: Wire) -> list[Edit]:
    """The edits that leave out the fields of every event that ends without having had a line of data."""
    found: list[Edit] = []
    block: list[Line] = []
    for line in wire.lines:
        block.append(line)
        if line.kind == "blank":
            if not any(i.kind == "data" for i in block):
                found += [(i.start, i.stop, b"") for i in block if i.kind in ("event", "id", "retry")]
            block = []
    return found


def _blank_lines(data: bytes, wire: Wire) -> list[Edit]:
    found, before = [], "blank"
    for line in wire.lines:
        if line.kind == "blank" and before in ("blank", "bom", "comment"):
            found.append((line.start, line.stop, b""))
        before = line.kind
    return found


def _folds(data: bytes, wire: Wire) -> list[Edit]:
    found = []
    for line, after in zip(wire.lines, wire.lines[1:], strict=False):
        if line.kind == after.kind == "data" and line.frame == after.frame:
            found.append((line.end, after.value, b""))
    return found


def _event_first(data: bytes, wire: Wire) -> list[Edit]:
    found: list[Edit] = []
    for line, after in zip(wire.lines, wire.lines[1:], strict=False):
        if line.kind == "data" and after.kind == "event" and line.frame == after.frame:
            found.append((line.start, after.stop, data[after.start : after.stop] + data[line.start : line.stop]))
    return found


_SSE_FEATURES: dict[str, Callable[[bytes, Wire], list[Edit]]] = {
    "a byte order mark": _lines(("bom",)),
    "CR line ends": _only(b"\r"),
    "CRLF line ends": _only(b"\r\n"),
    "mixed line ends": _mixed_ends,
    "an event without data": _dataless,
    "a comment": _lines(("comment",)),
    "an unknown field": _lines(("field",)),
    "an id field": _lines(("id",)),
    "a retry field": _lines(("retry",)),
    "extra blank lines": _blank_lines,
    "no space after the colon": _spaces,
    "data over several lines": _folds,
    "an event name after the data": _event_first,
}


def payload_features(provider: Provider, case: Case) -> Iterator[tuple[str, Case | None]]:
    """Each feature of the events and their text by name, with the case that lacks it."""
    yield "a repeated event", renumbered(case, _without_repeats(case))
    for name, change in provider.features.items():
        yield name, renumbered(case, edits.rewrite(case, change))
    yield "null members", edits.rewrite(case, lambda event: replace(event, data=_without_nulls(event.data)))
    text = "".join(map(_words, _events(case)))
    for character in NOT_LINE_ENDS:
        if character in text:
            yield f"U+{ord(character):04X} in the text", edits.rewrite(case, replacing(character))
    for words in ("[DONE]", "data:", "\n\n", "\r", "event:", "id:"):
        if words in text:
            yield f"{words!r} in the text", edits.rewrite(case, replacing(words))
    if not text.isascii():
        yield "text beyond ASCII", edits.rewrite(case, _ascii)


def kind_features(provider: Provider, case: Case) -> Iterator[tuple[str, Case | None]]:
    """Each kind of event by name, with the case that has none of it."""
    kinds = [provider.kind(event) for event in _events(case)]
    for kind in dict.fromkeys(kinds):
        if kinds.count(kind) < len(kinds):
            yield f"an event of kind {kind}", renumbered(case, edits.rewrite(case, _dropping(provider, kind)))


def _events(case: Case) -> tuple[Event, ...]:
    """The events of a case, with a last one that lacks its end where the framing delivers it."""
    return read(case).judge(case.end).events


def renumbered(before: Case, after: Case | None) -> Case | None:
    """The changed case with its events' running numbers mended, if they were in order before."""
    renumber = providers.get(before.provider).renumber
    if after is None or renumber is None:
        return after
    events = _events(before)
    if renumber(events) != events:
        return after
    mended = iter(renumber(_events(after)))
    return edits.rewrite(after, lambda event: next(mended, event)) or after


def _dropping(provider: Provider, kind: str) -> Callable[[Event], Event | None]:
    return lambda event: None if provider.kind(event) == kind else event


def _without_repeats(case: Case) -> Case | None:
    before: list[Event] = []

    def change(event: Event) -> Event | None:
        repeated = bool(before) and before[-1] == event
        before.append(event)
        return None if repeated else event

    return edits.rewrite(case, change)


def _without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _words(event: Event) -> str:
    return event.data.text if isinstance(event.data, Raw) else "".join(_strings(event.data))


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from _strings(member)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _map_strings(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(name): _map_strings(member, change) for name, member in value.items()}
    return [_map_strings(item, change) for item in value] if isinstance(value, list) else value


def replacing(words: str, new: str = "x") -> Callable[[Event], Event]:
    """An edit of an event: other words for some words, wherever they stand."""

    def change(event: Event) -> Event:
        if isinstance(event.data, Raw):
            return event
        return Event(_map_strings(event.data, lambda text: text.replace(words, new)), event.name)

    return change


def _ascii(event: Event) -> Event:
    if isinstance(event.data, Raw):
        return event
    # What is no line end is a feature of its own.
    plain = str.maketrans({c: "x" for c in set(_words(event)) if not c.isascii() and c not in NOT_LINE_ENDS})
    return Event(_map_strings(event.data, lambda text: text.translate(plain)), event.name)
