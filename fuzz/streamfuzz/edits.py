"""Edits of a case that keep its cuts where they were.

The search for causes and the shrinker both take things out of a case.  They speak in edits, ``(start, stop,
new bytes)``; the cuts of the case move along, so that a cut inside a character stays inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from typing import Any, TypeAlias

from streamfuzz_strategies import cuts, providers
from streamfuzz_strategies.framing import BOM, Line
from streamfuzz_strategies.providers import Provider
from streamfuzz_strategies.stream import Event, Frame, MalformedJson, Raw, parse_json
from streamfuzz_strategies.style import PLAIN
from streamfuzz_strategies.wire import Wire

from .case import Case

Edit: TypeAlias = tuple[int, int, bytes]


def is_wire(case: Case) -> bool:
    """Whether the case's chunks are pieces of one byte string or text."""
    return case.takes in ("bytes", "text")


def offsets(case: Case) -> cuts.Cuts:
    """The byte offsets at which the case is cut."""
    sizes = (len(chunk if isinstance(chunk, bytes) else chunk.encode()) for chunk in case.chunks[:-1])
    return tuple(accumulate(sizes))


def recut(case: Case, data: bytes, at: cuts.Cuts) -> Case | None:
    """The case with other bytes, cut at the given byte offsets; ``None`` if they are no text and it takes text."""
    if case.takes == "bytes":
        return replace(case, chunks=cuts.chunks(data, at))
    try:
        return replace(case, chunks=cuts.chunks(data.decode(), cuts.in_text(data, at)))
    except UnicodeDecodeError:
        return None


def apply(case: Case, edits: Iterable[Edit]) -> Case | None:
    """Carry out edits that do not overlap; ``None`` if nothing changes or the result cannot be spelled."""
    data, at = case.data, offsets(case)
    made: list[bytes] = []
    moved: list[int] = list(at)
    position = shift = 0
    for start, stop, new in sorted(_narrowed(data, edit) for edit in edits):
        made += [data[position:start], new]
        for number, offset in enumerate(at):
            if start < offset < stop:
                moved[number] = start + shift + _same_place(data[start:stop], new, offset - start)
            elif offset >= stop and not (offset == start == stop):
                moved[number] = offset + shift + len(new) - (stop - start)
        position = stop
        shift += len(new) - (stop - start)
    edited = b"".join([*made, data[position:]])
    return None if edited == data else recut(case, edited, tuple(moved))


def _same_place(old: bytes, new: bytes, offset: int) -> int:
    """Where in the new bytes a cut at an offset in the old ones belongs: between the same bytes, if they are there."""
    for around in (8, 4, 2, 1):
        before, after = old[max(0, offset - around) : offset], old[offset : offset + around]
        found = new.find(before + after)
        if found >= 0:
            return found + len(before)
    return min(offset, len(new))


def _narrowed(data: bytes, edit: Edit) -> Edit:
    """The edit without what it leaves as it is at its two ends, so that cuts there stay where they are."""
    start, stop, new = edit
    old = data[start:stop]
    same = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start, new = start + same, new[same:]
    old = old[same:]
    same = next(
        (n for n, (a, b) in enumerate(zip(old[::-1], new[::-1], strict=False)) if a != b), min(len(old), len(new))
    )
    return start, stop - same, new[: len(new) - same]


def frames(case: Case) -> Iterator[tuple[tuple[Line, ...], str]]:
    """The lines of each frame of a byte or text case, with the payload that they carry."""
    provider = providers.get(case.provider)
    data = case.data
    first = len(BOM) if data.startswith(BOM) and provider.framing.name == "sse" else 0
    for _, group in groupby(Wire(data, provider.framing).lines, key=lambda line: line.frame):
        # The byte order mark belongs to the stream, and stays when its first frame goes.
        lines = tuple(replace(line, start=max(first, line.start)) for line in group)
        payload = [data[line.value : line.end] for line in lines if line.kind in ("data", "json")]
        if payload:
            yield lines, b"\n".join(payload).decode("utf-8", "replace")


def rewrite(case: Case, change: Callable[[Event], Event | None]) -> Case | None:
    """Change every event of a case (``None``: take it out); payloads that stay are left byte for byte."""
    if not is_wire(case):
        return _rewrite_items(case, change)
    provider = providers.get(case.provider)
    edits: list[Edit] = []
    for lines, payload in frames(case):
        name = next((case.data[i.value : i.end].decode("utf-8", "replace") for i in lines if i.kind == "event"), None)
        event = parse(provider, payload, name)
        changed = change(event)
        if changed is event or changed == event:
            continue
        if changed is None:
            edits.append((lines[0].start, lines[-1].stop, b""))
        else:
            edits.append(respell(lines, changed))
    return apply(case, edits) if edits else None


def without_frames(case: Case, indexes: Collection[int]) -> Case:
    """The case without the frames, or the items, of these indexes."""
    if not is_wire(case):
        return replace(case, chunks=tuple(item for n, item in enumerate(case.chunks) if n not in indexes))
    gone = [(lines[0].start, lines[-1].stop, b"") for n, (lines, _) in enumerate(frames(case)) if n in indexes]
    return apply(case, gone) or case


def with_sentinel(case: Case) -> Case:
    """The case with its provider's sentinel at the end."""
    provider = providers.get(case.provider)
    last = provider.framing.encode([(provider.sentinel or "", None)], PLAIN)
    data = case.data
    while not data.endswith((b"\n\n", b"\r\r", b"\n\r", b"\r\n\r\n")) and data:
        data += b"\n"
    return recut(case, data + last, offsets(case)) or case


def respelled(case: Case) -> Case | None:
    """The case with every JSON payload spelled plainly: compact, in UTF-8, members as they are."""
    if not is_wire(case):
        return None
    provider = providers.get(case.provider)
    events = ((lines, parse(provider, payload, None)) for lines, payload in frames(case))
    return apply(case, [respell(lines, event) for lines, event in events if not isinstance(event.data, Raw)])


def respell(lines: Sequence[Line], event: Event) -> Edit:
    """The edit that writes an event's payload plainly over the payload lines of a frame."""
    carrying = [line for line in lines if line.kind in ("data", "json")]
    text = event.data.text if isinstance(event.data, Raw) else PLAIN.spell(event.data)
    return carrying[0].value, carrying[-1].end, text.replace("\n", " ").encode("utf-8", "replace")


def _rewrite_items(case: Case, change: Callable[[Event], Event | None]) -> Case | None:
    provider = providers.get(case.provider)
    made: list[Any] = []
    for item in case.chunks:
        event = item if isinstance(item, Event) else parse(provider, item.data, item.event)
        changed = change(event)
        if changed is None:
            continue
        if isinstance(item, Event):
            made.append(changed)
        elif changed == event:
            made.append(item)
        else:
            text = changed.data.text if isinstance(changed.data, Raw) else PLAIN.spell(changed.data)
            made.append(Frame(text, item.event, item.id))
    return None if tuple(made) == case.chunks else replace(case, chunks=tuple(made))


def parse(provider: Provider, payload: str, name: str | None) -> Event:
    """The event in a payload; raw where it is no JSON."""
    if provider.text_payloads or payload == provider.sentinel:
        return Event(Raw(payload), name)
    try:
        return Event(parse_json(payload), name)
    except MalformedJson:
        return Event(Raw(payload), name)
