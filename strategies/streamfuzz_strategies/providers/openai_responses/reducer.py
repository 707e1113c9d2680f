"""Read the events of a Responses stream into a reply.

The response in the terminal event is authoritative.  Where it has no output (some servers send ``null`` or an
empty list there after streaming every item) the items' own done events stand in, and where those are missing
too, the deltas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...reply import Choice, Json, Part, Reply, ToolCall, usage_of
from ...stream import Event
from .events import (
    DELTAS,
    FINALS,
    OPENINGS,
    PARTS,
    TERMINALS,
    Words,
    error,
    is_index,
    item_index,
    part_index,
    part_text,
    parts_of,
)


@dataclass(slots=True)
class _Held:
    """A text while it grows: the part that will hold it, its pieces, and the full text once it is given."""

    part: dict[str, Json]
    pieces: list[str] = field(default_factory=list)
    final: str | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces) if self.final is None else self.final


@dataclass(slots=True)
class _Item:
    """An output item while it grows."""

    snapshot: dict[str, Json]
    texts: dict[tuple[str, int], _Held] = field(default_factory=dict)
    done: dict[str, Json] | None = None

    def held(self, slot: str, index: int, part: dict[str, Json]) -> _Held:
        """The text at a place, made if there is none yet."""
        found = self.texts.get((slot, index))
        if found is None:
            found = self.texts[slot, index] = _Held(part, [part_text(part) or ""])
        return found

    def count(self, slot: str) -> int:
        """How many parts a slot has."""
        return sum(held == slot for held, _ in self.texts)

    def value(self) -> dict[str, Json]:
        """The item as it stands."""
        if self.done is not None:
            return self.done
        item = dict(self.snapshot)
        parts: dict[str, list[Json]] = {}
        for (slot, _), held in sorted(self.texts.items(), key=lambda entry: entry[0]):
            if "type" in held.part:
                member = "refusal" if held.part["type"] == "refusal" else "text"
                parts.setdefault(slot, []).append({**held.part, member: held.text})
            else:
                item[slot] = held.text
        return {**item, **parts}

    def closed(self) -> bool:
        """Whether a function call is known to be whole."""
        if self.done is not None:
            return self.done.get("status") != "incomplete"
        held = self.texts.get(("arguments", 0))
        return held is not None and held.final is not None


class Reducer:
    """Reads one stream, see :class:`~streamfuzz_strategies.providers.base.Reducer`."""

    __slots__ = ("_ended", "_id", "_ids", "_items", "_last", "_model", "_response", "_terminal")

    def __init__(self) -> None:
        self._items: dict[int, _Item] = {}
        self._ids: dict[str, int] = {}
        self._last = -1
        self._id: str | None = None
        self._model: str | None = None
        self._terminal: str | None = None
        self._response: dict[str, Json] = {}
        self._ended = False

    def apply(self, event: Event) -> None:
        """Take in one event."""
        data = event.data
        if self._ended or not isinstance(data, dict):
            return
        name = data.get("type")
        if not isinstance(name, str) or name == "error":
            self._ended = error(event) is not None
        elif name in DELTAS:
            self._delta(DELTAS[name], data)
        elif name in FINALS:
            self._final(FINALS[name], data)
        elif name == "response.output_item.added":
            self._added(data)
        elif name == "response.output_item.done":
            self._done(data)
        elif name.rpartition(".")[0] in PARTS:
            self._part(name, data)
        elif name in TERMINALS:
            self._terminal = TERMINALS[name]
            self._ended = True
            self._response = self._lifecycle(data)
        elif name == "response.created" or name in OPENINGS:
            self._lifecycle(data)

    def _lifecycle(self, data: dict[str, Json]) -> dict[str, Json]:
        response = data.get("response")
        if not isinstance(response, dict):
            return {}
        self._id = _string(response.get("id")) or self._id
        self._model = _string(response.get("model")) or self._model
        return response

    def _item(self, data: dict[str, Json], kind: str | None) -> _Item:
        index = item_index(data, self._ids.get, self._last)
        found = self._items.get(index)
        if found is None:
            found = self._items[index] = _Item({} if kind is None else {"type": kind})
            self._last = max(self._last, index)
        return found

    def _added(self, data: dict[str, Json]) -> None:
        given, value = data.get("output_index"), data.get("item")
        index = given if is_index(given) else self._last + 1
        self._last = max(self._last, index)
        if not isinstance(value, dict) or index in self._items:
            return
        item = self._items[index] = _Item(value)
        if isinstance(value.get("id"), str):
            self._ids.setdefault(value["id"], index)
        if value.get("type") == "function_call" and isinstance(value.get("arguments"), str):
            item.texts["arguments", 0] = _Held({}, [value["arguments"]])

    def _done(self, data: dict[str, Json]) -> None:
        value = data.get("item")
        if isinstance(value, dict):
            item = self._item(data, None)
            item.done = value if item.done is None else item.done

    def _part(self, name: str, data: dict[str, Json]) -> None:
        prefix, _, step = name.rpartition(".")
        slot, member = PARTS[prefix]
        part = data.get("part")
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            return
        item = self._item(data, "reasoning" if slot == "summary" else "message")
        count = item.count(slot)
        index = part_index(data, member, count + 1 if step == "added" else count)
        held = item.held(slot, index, part if step == "added" else {"type": part["type"]})
        if step == "done":
            held.final = part_text(part) or ""

    def _delta(self, words: Words, data: dict[str, Json]) -> None:
        delta = data.get("delta")
        if isinstance(delta, str):
            held = self._held(words, data)
            if held.final is None:
                held.pieces.append(delta)

    def _final(self, words: Words, data: dict[str, Json]) -> None:
        value = data.get(words.member)
        if isinstance(value, str):
            self._held(words, data).final = value

    def _held(self, words: Words, data: dict[str, Json]) -> _Held:
        item = self._item(data, words.item)
        index = part_index(data, words.index, item.count(words.slot))
        return item.held(words.slot, index, {} if words.part is None else {"type": words.part})

    def _output(self) -> list[Json]:
        final = self._response.get("output")
        if isinstance(final, list) and (final or not self._items):
            return final
        return [self._items[index].value() for index in sorted(self._items)]

    def reply(self) -> Reply:
        """The reply so far: one choice, whose finish is the status and for a cut answer the reason too."""
        parts: tuple[Part, ...] = tuple(part for item in self._output() for part in parts_of(item))
        usage = usage_of(self._response.get("usage"), "input_tokens", "output_tokens")
        return Reply((Choice(parts, self._finish()),), self._id, self._model, usage)

    def _finish(self) -> str | None:
        if self._terminal is None:
            return None
        status = _string(self._response.get("status")) or self._terminal
        details = self._response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        return f"{status}:{reason}" if status == "incomplete" and isinstance(reason, str) else status

    def released(self) -> Sequence[ToolCall]:
        """The calls whose arguments are done or whose item is done and not cut off; all once completed."""
        if self._terminal == "completed":
            return self.reply().tool_calls
        items = (self._items[index] for index in sorted(self._items))
        return [part for i in items if i.closed() for part in parts_of(i.value()) if isinstance(part, ToolCall)]


def _string(value: Json) -> str | None:
    return value if isinstance(value, str) else None
