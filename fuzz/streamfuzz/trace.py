"""What a target did with one stream: what it showed, after which chunk, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from streamfuzz_strategies.reply import CHOICE_FIELDS, REPLY_FIELDS, Json, Reply, view

from .spec import Delta, Final, Form, Release, Snapshot

Ending: TypeAlias = Literal["complete", "incomplete", "error", "hang", "memory", "died"]

UNENDED: frozenset[Ending] = frozenset({"hang", "memory", "died"})
"""Endings that are no answer: the target took too long, ran out of memory, or took its process with it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that ended a run: its type, its words and where it was raised.

    Where the whole process was ``lost``, the type says how, as a short name, and the message in words.
    """

    type: str
    message: str
    where: str
    declared: bool
    transport: bool
    lost: bool = False


@dataclass(slots=True)
class Trace:
    """What a target did, chunk by chunk, and how it ended.

    Attributes:
        items: what it gave out, in normal form: frames and events as JSON, progress of a reply as the values
            :class:`Delta`, :class:`Snapshot`, :class:`Release` and :class:`Final`.
        after: for each item, how many chunks had been taken; one more than there are once the source is dry.
        ending: how it ended.
        result: the final view or JSON value in normal form, if it ended with one.
        failure: the error that ended it, if any.
        taken: chunks taken in all.
        streaming: whether it gave items one at a time rather than all at once.
        seconds: time spent inside the target.
    """

    items: tuple[Any, ...]
    after: tuple[int, ...]
    ending: Ending
    result: Json
    failure: Failure | None
    taken: int
    streaming: bool
    seconds: float

    def shown(self, field: str = "text") -> str:
        """All deltas of a view field, joined."""
        return "".join(item.text for item in self.items if isinstance(item, Delta) and item.field == field)

    def outcome(self) -> tuple[Any, ...]:
        """What must not depend on how the bytes were cut: everything but the moments."""
        if not self.items or isinstance(self.items[0], dict):  # frames and most events: the way that must be quick
            return (self.ending, self.items, self.result)
        if any(isinstance(item, Delta) for item in self.items):
            fields = {item.field for item in self.items if isinstance(item, Delta)}
            items: tuple[Any, ...] = (
                *((f, self.shown(f)) for f in sorted(fields)),
                *(i for i in self.items if isinstance(i, (Release, Final))),
            )
        else:
            items = tuple(item for item in self.items if not isinstance(item, Snapshot))
        return (self.ending, items, self.result)


class WrongForm(Exception):
    """The target gave something that is not of the form that it declared."""


FRAME_FIELDS = ("event", "data", "id", "retry")


def normal_frame(item: Any) -> dict[str, Json]:
    """Read one frame as a target gives it: text, a mapping, or an object with the fields as attributes.

    Only the fields that the target has are kept, so a decoder that knows no ids is not asked for them.

    Raises:
        WrongForm: the item has no ``data``.
    """
    read = _READERS.get(item.__class__) or _reader(item.__class__)
    if read is not None:
        values = read(item)
        return (
            _whole_frame(values) if isinstance(values[1], str) else _frame(dict(zip(FRAME_FIELDS, values, strict=True)))
        )
    if isinstance(item, str):
        return {"data": item}
    if isinstance(item, dict):
        return _frame({name: item[name] for name in FRAME_FIELDS if name in item})
    return _frame({name: getattr(item, name) for name in FRAME_FIELDS if hasattr(item, name)})


def _frame(fields: dict[str, Json]) -> dict[str, Json]:
    if not isinstance(fields.get("data"), str):
        raise WrongForm(
            f"a frame must be text, a mapping, or an object with 'data' as text (perhaps event, id, retry), "
            f"not one with {fields!r:.80}"
        )
    if "event" in fields:
        fields["event"] = fields["event"] or "message"
    if "id" in fields:
        fields["id"] = fields["id"] or ""
    return fields


@lru_cache(maxsize=4096)
def _whole_frame(values: tuple[Any, ...]) -> dict[str, Json]:
    """The frame with these values; a search meets the same frames over and over."""
    return _frame(dict(zip(FRAME_FIELDS, values, strict=True)))


_READ_ALL = attrgetter(*FRAME_FIELDS)
_READERS: dict[type, Callable[[Any], tuple[Any, ...]] | None] = {}


def _reader(kind: type) -> Callable[[Any], tuple[Any, ...]] | None:
    """What reads all frame fields at once from objects of a type that declares them all: the way that is quick."""
    if kind not in _READERS:
        _READERS[kind] = _READ_ALL if all(hasattr(kind, name) for name in FRAME_FIELDS) else None
    return _READERS[kind]


def normal_event(item: Any) -> Json:
    """Read one event as a target gives it: JSON, or an object that can turn itself into JSON.

    Raises:
        WrongForm: it is neither.
    """
    if item is None or isinstance(item, (dict, list, str, int, float, bool)):
        return item
    for method in ("to_dict", "model_dump"):
        if hasattr(item, method):
            return getattr(item, method)(exclude_unset=True) if method == "model_dump" else item.to_dict()
    if isinstance(item, Mapping):
        return dict(item)
    raise WrongForm(f"an event must be a JSON value, not {type(item).__name__}")


def normal_view(value: Any) -> dict[str, Json]:
    """Read a view of a reply: a mapping of view fields, flat for the first choice or with ``choices``.

    Returns:
        The mapping with plain JSON values; tool calls as dicts of ``id``, ``name``, ``arguments``.

    Raises:
        WrongForm: it is no mapping, or a field has a value of the wrong type.
    """
    if isinstance(value, Reply):
        return view(value)
    if isinstance(value, str):
        return {"text": value}
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if not isinstance(value, Mapping):
        raise WrongForm(
            f"a reply must be a mapping with any of {', '.join((*CHOICE_FIELDS, *REPLY_FIELDS))}, "
            f"not {type(value).__name__}"
        )
    normal = dict(value)
    if "choices" in normal:
        if not isinstance(normal["choices"], (list, tuple)):
            raise WrongForm("'choices' of a reply must be a list of mappings")
        normal["choices"] = [_normal_choice(choice) for choice in normal["choices"]]
    return _normal_choice(normal)


def _normal_choice(choice: Any) -> dict[str, Json]:
    if not isinstance(choice, Mapping):
        raise WrongForm(f"a choice of a reply must be a mapping, not {type(choice).__name__}")
    normal = dict(choice)
    for field in ("text", "reasoning", "refusal"):
        if field in normal:
            if normal[field] is not None and not isinstance(normal[field], str):
                raise WrongForm(f"{field!r} of a reply must be text, not {type(normal[field]).__name__}")
            normal[field] = normal[field] or ""
    if "tool_calls" in normal:
        normal["tool_calls"] = [normal_call(call) for call in normal["tool_calls"] or ()]
    return normal


def normal_call(call: Any) -> dict[str, Json]:
    """Read one tool call: a mapping or object with ``id``, ``name`` and ``arguments``.

    Raises:
        WrongForm: it has no name.
    """
    names = ("id", "name", "arguments")
    if isinstance(call, Mapping):
        found = {name: call[name] for name in names if name in call}
    else:
        found = {name: getattr(call, name) for name in names if hasattr(call, name)}
    if "name" not in found and "arguments" not in found:
        raise WrongForm("a tool call must have 'name' and 'arguments' (and perhaps 'id')")
    return found


def normal_item(item: Any, gives: Form) -> Any:
    """Read whatever a target shows on the way, by the form that it gives."""
    if gives == "frames":
        return normal_frame(item)
    if gives == "events":
        return normal_event(item)
    if isinstance(item, str):
        return Delta(item)
    if isinstance(item, Delta):
        return item
    if isinstance(item, (Snapshot, Final)):
        return type(item)(normal_view(item.view) if gives == "reply" else item.view)
    if isinstance(item, Release):
        return Release(normal_call(item.call))
    if isinstance(item, (Mapping, Reply)):
        return Snapshot(normal_view(item))
    raise WrongForm(f"progress of a reply must be text, Delta, Snapshot, Release or Final, not {type(item).__name__}")
