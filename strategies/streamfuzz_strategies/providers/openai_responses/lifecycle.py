"""What each event of a Responses stream does to the lifecycle tables.

The protocol says everything three times or four: as deltas, as the done event of the text, as the done event of
its part and its item, and once more in the terminal response.  What was said is kept in the notes of the walk
as frozen values, so that each retelling can be compared.  Ciphertext (``encrypted_content``) is encrypted anew
each time and is left out of the comparison.  Where two tellings differ, readers may have shown either, so the
later one is read both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ...reply import Json, Opaque, Part, Reasoning
from ...rules import Break, Reading, Rule, Step, Walk
from ...stream import Event, Raw
from . import rules as r
from .events import (
    ANNOTATION,
    DELTAS,
    FINALS,
    OPENINGS,
    PARTS,
    PROGRESS,
    TERMINALS,
    TYPES,
    WHOLE_TEXTS,
    WORDS,
    Words,
    error,
    is_index,
    item_index,
    part_index,
    part_text,
    parts_of,
    text_at,
)

Pieces: TypeAlias = "tuple[Pieces, str] | None"
"""Deltas, the last one outermost: a list that grows in constant time and whose copies share everything."""

PartKey: TypeAlias = tuple[int, str, int]
"""Output index, slot of the item, index in the slot."""


@dataclass(frozen=True, slots=True)
class _Stream:
    """What is known of the stream: last event, its number, unnumbered ones since, response id, last index."""

    number: int | None = None
    numbered: Json = None
    slack: int = 0
    unnumbered: bool = False
    response: str | None = None
    last: int = -1


@dataclass(frozen=True, slots=True)
class _Item:
    """What is known of an item: how it was added, its parts in the order of their opening, what it said."""

    added: Mapping[str, Json] | None = None
    parts: tuple[PartKey, ...] = ()
    said: tuple[Part, ...] | None = None

    def count(self, slot: str) -> int:
        return sum(key[1] == slot for key in self.parts)


@dataclass(frozen=True, slots=True)
class _Text:
    """What is known of a text: the type of its part, what it was added with, its deltas, the full text."""

    part: str | None = None
    initial: str = ""
    pieces: Pieces = None
    said: str | None = None


Handler: TypeAlias = "Callable[[_Reading, dict[str, Json]], None]"


class _Reading:
    """The reading of one event: the walk so far and the steps found."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.found: list[Step] = []

    def take(self, machine: str, symbol: str, key: object = None) -> None:
        """Add a step to be looked up in a table."""
        self.found.append(Step(machine, symbol, key))

    def breaks(self, rule: Rule, key: object = None, *, reading: Reading = "apply") -> None:
        """Add a rule that the event breaks by itself."""
        self.found.append(Step("stream", "", key, Break(rule, "", reading)))

    @property
    def stream(self) -> _Stream:
        found = self.walk.notes.get(("stream", None))
        return found if isinstance(found, _Stream) else _Stream()

    @stream.setter
    def stream(self, value: _Stream) -> None:
        self.walk.notes["stream", None] = value

    def item(self, index: int) -> _Item:
        """What is known of the item at an output index."""
        found = self.walk.notes.get(("item", index))
        return found if isinstance(found, _Item) else _Item()

    def text(self, key: PartKey) -> _Text:
        """What is known of the text of a part or call."""
        found = self.walk.notes.get(("text", key))
        return found if isinstance(found, _Text) else _Text()

    def keep(self, key: PartKey, text: _Text) -> None:
        """Note a text, and its part as one of its item's."""
        self.walk.notes["text", key] = text
        item = self.item(key[0])
        if key not in item.parts:
            self.walk.notes["item", key[0]] = replace(item, parts=(*item.parts, key))

    def index(self, data: dict[str, Json]) -> int:
        """The output index that an event means; says where it does not give one, or another item's id."""
        index = item_index(data, self._known, self.stream.last)
        if not is_index(data.get("output_index")):
            self.breaks(r.INDEX_MISSING)
        added = self.item(index).added
        item = data.get("item")
        name = data.get("item_id", item.get("id") if isinstance(item, dict) else None)
        if added is not None and isinstance(name, str) and name != added.get("id", name):
            self.breaks(r.ITEM_ID, index)
        return index

    def _known(self, name: str) -> int | None:
        found = self.walk.notes.get(("id", name))
        return found if isinstance(found, int) else None

    def part(self, data: dict[str, Json], index: int, slot: str, member: str | None, *, new: bool = False) -> PartKey:
        """The key of the part that an event means; says where it does not give an index."""
        if member is not None and not is_index(data.get(member)):
            self.breaks(r.INDEX_MISSING)
        return index, slot, part_index(data, member, self.item(index).count(slot) + new)


def steps(event: Event, walk: Walk) -> Iterable[Step]:
    """What an event does.  Nothing after an error; after the terminal event all is to be ignored."""
    data, state = event.data, walk.state("stream")
    if state == "failed" or isinstance(data, Raw):
        return ()
    name = data.get("type") if isinstance(data, dict) else None
    if state == "done":
        return (Step("stream", "terminal" if isinstance(name, str) and name in TERMINALS else "late"),)
    if error(event) is not None:
        return (Step("stream", "error"),)
    if not isinstance(name, str):
        return (Step("stream", "foreign"),)
    reading = _Reading(walk)
    if reading.stream.numbered == data:
        reading.breaks(r.SEQUENCE_DUPLICATE, reading="skip")
        return reading.found
    known = name in TYPES
    _number(reading, data, known=known)
    if known:
        handler = _HANDLERS.get(name)
        if handler is not None:
            handler(reading, data)
        else:
            reading.take("stream", "event")
    return reading.found


def _number(reading: _Reading, data: dict[str, Json], *, known: bool) -> None:
    stream, number = reading.stream, data.get("sequence_number")
    if not is_index(number):
        if known and not stream.unnumbered:
            reading.breaks(r.SEQUENCE_MISSING)
        # A gateway that adds an event of its own may or may not leave a number for it.
        reading.stream = replace(stream, slack=stream.slack + 1, unnumbered=stream.unnumbered or known)
        return
    last = stream.number
    if last is None:
        if number > stream.slack:
            reading.breaks(r.SEQUENCE_START)
    elif number == last:
        reading.breaks(r.SEQUENCE_REPEATED, reading="either")
    elif number < last:
        reading.breaks(r.SEQUENCE_BACKWARDS, reading="either")
    elif number > last + 1 + stream.slack:
        reading.breaks(r.SEQUENCE_GAP)
    highest = number if last is None else max(last, number)
    reading.stream = replace(stream, number=highest, numbered=data, slack=0)


def _created(reading: _Reading, data: dict[str, Json]) -> None:
    reading.take("stream", "created")
    _response(reading, data)


def _opening(reading: _Reading, data: dict[str, Json]) -> None:
    reading.take("stream", "event")
    _response(reading, data)


def _response(reading: _Reading, data: dict[str, Json]) -> dict[str, Json]:
    response = data.get("response")
    if not isinstance(response, dict):
        reading.breaks(r.MALFORMED)
        return {}
    name, known = response.get("id"), reading.stream.response
    if isinstance(name, str):
        if known is None:
            reading.stream = replace(reading.stream, response=name)
        elif known != name:
            reading.breaks(r.RESPONSE_CHANGED)
    return response


def _terminal(reading: _Reading, data: dict[str, Json]) -> None:
    status = TERMINALS[data["type"]]
    response = _response(reading, data)
    if isinstance(response.get("status"), str) and response["status"] != status:
        reading.breaks(r.STATUS_DIFFERS)
    items = sorted(
        (key, state)
        for (machine, key), state in reading.walk.states.items()
        if machine == "item" and isinstance(key, int) and state != "absent"
    )
    _compare_output(reading, response.get("output"), items)
    for index, _ in items:
        reading.take("item", status, index)
    reading.take("stream", "terminal")


def _compare_output(reading: _Reading, output: Json, items: list[tuple[int, str]]) -> None:
    if not isinstance(output, list) or not output:
        if items:
            reading.breaks(r.OUTPUT_EMPTY)
    elif not items:
        reading.breaks(r.OUTPUT_UNSTREAMED)
    elif len(output) != len(items):
        # An item that was cut off may or may not be told of, and the others cannot be matched then.
        if all(state == "done" for _, state in items):
            reading.breaks(r.OUTPUT_DIFFERS, reading="either")
    else:
        for (index, _), final in zip(items, output, strict=True):
            said = reading.item(index).said
            if said is not None and said != _gist(final):
                reading.breaks(r.OUTPUT_DIFFERS, index, reading="either")


def _gist(item: Json) -> tuple[Part, ...]:
    """What must be the same each time an item is told."""
    return tuple(_without_ciphertext(part) for part in parts_of(item))


def _without_ciphertext(part: Part) -> Part:
    if isinstance(part, Reasoning):
        return Reasoning(part.text)
    return Opaque(part.kind, "") if isinstance(part, Opaque) else part


def _item_added(reading: _Reading, data: dict[str, Json]) -> None:
    reading.take("stream", "event")
    stream, index, item = reading.stream, data.get("output_index"), data.get("item")
    if not is_index(index):
        reading.breaks(r.INDEX_MISSING)
        index = stream.last + 1
    elif index > stream.last + 1:
        reading.breaks(r.ITEM_GAP, index)
    reading.stream = replace(stream, last=max(stream.last, index))
    if not isinstance(item, dict):  # some providers send such, and never speak of that index again
        reading.breaks(r.MALFORMED, index, reading="skip")
        return
    if reading.walk.state("item", index) == "absent":
        reading.walk.notes["item", index] = _Item(item)
        if isinstance(item.get("id"), str):
            reading.walk.notes["id", item["id"]] = index
        _whole_text(reading, index, item)
        if item.get("content") or item.get("summary"):
            reading.breaks(r.NOT_EMPTY, index, reading="either")
    reading.take("item", "added", index)


def _whole_text(reading: _Reading, index: int, item: dict[str, Json]) -> None:
    slot = _slot(item)
    if slot is not None:
        initial = item.get(slot)
        if initial:
            reading.breaks(r.NOT_EMPTY, index, reading="either")
        reading.keep((index, slot, 0), _Text(None, initial if isinstance(initial, str) else ""))


def _slot(item: Mapping[str, Json] | None) -> str | None:
    kind = item.get("type") if item is not None else None
    return WHOLE_TEXTS.get(kind) if isinstance(kind, str) else None


def _item_done(reading: _Reading, data: dict[str, Json]) -> None:
    reading.take("stream", "event")
    index, item = reading.index(data), data.get("item")
    known = reading.item(index)
    if not isinstance(item, dict):
        reading.breaks(r.MALFORMED)
        item = {}
    if known.said is not None:
        differs = known.said != _gist(item)
    else:
        differs = _differs_from_added(known.added, item) or any(
            not _same(reading.text(key), text_at(item, key[1], key[2])) for key in known.parts
        )
        reading.walk.notes["item", index] = replace(known, said=_gist(item))
        if known.added is not None:
            _compare_counts(reading, index, known, item)
    reading.stream = replace(reading.stream, last=max(reading.stream.last, index))
    if differs:
        reading.breaks(r.ITEM_DIFFERS, index, reading="either")
    for key in () if item.get("status") == "incomplete" else known.parts:
        machine = "call" if key[1] == _slot(known.added) else "part"
        if reading.walk.state(machine, key) != "done" and (machine == "part" or _must_be_said(reading, key)):
            reading.take(machine, "item done", key)
    reading.take("item", "done", index)


def _differs_from_added(added: Mapping[str, Json] | None, item: dict[str, Json]) -> bool:
    told = added or {}
    return any(told.get(member) and told[member] != item.get(member) for member in ("type", "call_id", "name"))


def _compare_counts(reading: _Reading, index: int, known: _Item, item: dict[str, Json]) -> None:
    for slot in ("content", "summary"):
        held = item.get(slot)
        streamed = max((key[2] + 1 for key in known.parts if key[1] == slot), default=0)
        if isinstance(held, list) and len(held) > streamed:
            reading.breaks(r.ITEM_UNSTREAMED, index)


def _must_be_said(reading: _Reading, key: PartKey) -> bool:
    """Whether a call's text needs a done event: a function call always, another tool's only after deltas."""
    added = reading.item(key[0]).added or {}
    return added.get("type") == "function_call" or reading.text(key).pieces is not None


def _part_added(reading: _Reading, data: dict[str, Json]) -> None:
    found = _open_item(reading, data)
    if found is None:
        return
    slot, member = PARTS[data["type"].rpartition(".")[0]]
    key, part = reading.part(data, found, slot, member, new=True), data.get("part")
    if key[2] > reading.item(found).count(slot):
        reading.breaks(r.PART_GAP, key)
    if reading.walk.state("part", key) == "absent":
        initial = part_text(part) or ""
        if initial:
            reading.breaks(r.NOT_EMPTY, key, reading="either")
        reading.keep(key, _Text(_part_type(reading, part), initial))
    reading.take("part", "added", key)


def _part_done(reading: _Reading, data: dict[str, Json]) -> None:
    found = _open_item(reading, data)
    if found is None:
        return
    slot, member = PARTS[data["type"].rpartition(".")[0]]
    key, part = reading.part(data, found, slot, member), data.get("part")
    text, told = reading.text(key), part_text(part)
    kind = _part_type(reading, part)
    if kind is not None and text.part not in (None, kind):
        reading.breaks(r.KIND, key, reading="either")
    elif not _same(text, told):
        reading.breaks(r.PART_DIFFERS, key, reading="either")
    reading.keep(key, replace(text, part=text.part or kind, said=told if text.said is None else text.said))
    reading.take("part", "done", key)


def _part_type(reading: _Reading, part: Json) -> str | None:
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(kind, str):
        return kind
    reading.breaks(r.MALFORMED)
    return None


def _delta(reading: _Reading, data: dict[str, Json]) -> None:
    words = DELTAS[data["type"]]
    key = _text_key(reading, data, words)
    if key is None:
        return
    delta, text = data.get("delta"), reading.text(key)
    if not isinstance(delta, str):
        reading.breaks(r.MALFORMED, reading="skip")
    elif text.said is None:
        reading.keep(key, replace(text, part=text.part or words.part, pieces=(text.pieces, delta)))
    reading.take(_machine(words), "reasoning delta" if words.part == "reasoning_text" else "delta", key)


def _final(reading: _Reading, data: dict[str, Json]) -> None:
    words = FINALS[data["type"]]
    key = _text_key(reading, data, words)
    if key is None:
        return
    told, text = data.get(words.member), reading.text(key)
    if not isinstance(told, str):
        reading.breaks(r.MALFORMED)
    else:
        if not _same(text, told):
            reading.breaks(r.TEXT_DIFFERS, key, reading="either")
        said = told if text.said is None else text.said
        reading.keep(key, replace(text, part=text.part or words.part, said=said))
    reading.take(_machine(words), "text done", key)


def _machine(words: Words) -> str:
    return "call" if words.part is None else "part"


def _text_key(reading: _Reading, data: dict[str, Json], words: Words) -> PartKey | None:
    """The key of the text that an event is for, if it can be for it."""
    index = _open_item(reading, data, words.item)
    if index is None:
        return None
    key = reading.part(data, index, words.slot, words.index)
    if reading.text(key).part not in (None, words.part):
        reading.breaks(r.KIND, key, reading="either")
        return None
    return key


def _open_item(reading: _Reading, data: dict[str, Json], kind: str | None = None) -> int | None:
    """The index of the item that an event is inside of, if that one is open and of the right kind."""
    reading.take("stream", "event")
    index = reading.index(data)
    reading.take("item", "inner", index)
    if reading.walk.state("item", index) != "open":
        return None
    added = reading.item(index).added or {}
    if kind is not None and added.get("type", kind) != kind:
        reading.breaks(r.KIND, index, reading="either")
        return None
    return index


def _progress(reading: _Reading, data: dict[str, Json]) -> None:
    _open_item(reading, data, PROGRESS[data["type"]])


def _annotation(reading: _Reading, data: dict[str, Json]) -> None:
    _open_item(reading, data, "message")


def _same(text: _Text, told: str | None) -> bool:
    """Whether a retelling agrees with what was said, or with the deltas joined if there were any."""
    if text.said is not None:
        return text.said == (told or "")
    if text.pieces is None:
        return True
    joined: list[str] = []
    rest: Pieces = text.pieces
    while rest is not None:
        joined.append(rest[1])
        rest = rest[0]
    streamed = "".join(reversed(joined))
    # An item that was added with content may have been streamed again from its start, or from there on.
    return (told or "") in (streamed, text.initial + streamed)


_HANDLERS: Mapping[str, Handler] = {
    "response.created": _created,
    **dict.fromkeys(OPENINGS, _opening),
    **dict.fromkeys(TERMINALS, _terminal),
    "response.output_item.added": _item_added,
    "response.output_item.done": _item_done,
    **{f"{prefix}.added": _part_added for prefix in PARTS},
    **{f"{prefix}.done": _part_done for prefix in PARTS},
    **dict.fromkeys((f"{prefix}.delta" for prefix in WORDS), _delta),
    **dict.fromkeys((f"{prefix}.done" for prefix in WORDS), _final),
    **dict.fromkeys(PROGRESS, _progress),
    ANNOTATION: _annotation,
}
