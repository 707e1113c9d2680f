"""The habits that servers of chat completions have, each a rewrite; a dialect is made of some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TypeAlias

from ..providers.openai_chat.shape import REASONING_KEYS, Call, Fragment, absorb, joined, natural, string
from ..reply import Json
from ..stream import Event, Raw, Stream
from .base import Rewrite

Object: TypeAlias = dict[str, Json]

SPOKEN = ("content", "refusal", "tool_calls", "function_call", *REASONING_KEYS)
"""Members of a delta that say a part of the answer."""


def _edited(edit: Callable[[Object], Object | None], stream: Stream) -> Stream:
    """Edit every chunk that has a list of choices; ``None``: the chunk goes."""
    events: list[Event] = []
    for event in stream.events:
        chunk = _chunk(event)
        if chunk is None:
            events.append(event)
        elif (edited := edit(chunk)) is not None:
            events.append(Event(edited, event.name))
    return replace(stream, events=tuple(events))


def _chunk(event: Event) -> Object | None:
    """The payload of a chunk with a list of choices, be it empty; ``None`` for any other event."""
    data = event.data
    return data if isinstance(data, dict) and isinstance(data.get("choices"), list) else None


def _choices_of(event: Event) -> list[Object]:
    chunk = _chunk(event)
    return [] if chunk is None else chunk["choices"]


def chunks(edit: Callable[[Object], Object]) -> Rewrite:
    """Edit every chunk that has choices."""
    return partial(_edited, lambda chunk: edit(chunk) if chunk["choices"] else chunk)


def choices(edit: Callable[[Object], Object]) -> Rewrite:
    """Edit every choice of every chunk."""
    return partial(_edited, lambda chunk: {**chunk, "choices": [edit(choice) for choice in chunk["choices"]]})


def deltas(edit: Callable[[Object], Object]) -> Rewrite:
    """Edit every delta that there is."""

    def edited(choice: Object) -> Object:
        delta = choice.get("delta")
        return {**choice, "delta": edit(delta)} if isinstance(delta, dict) else choice

    return choices(edited)


def adding(members: Mapping[str, Json]) -> Callable[[Object], Object]:
    """Put in members where they are missing."""
    return lambda value: {**members, **value}


# -- members of chunks ---------------------------------------------------------------------------------------------


def drifting(stream: Stream) -> Stream:
    """The time of creation is that of the chunk: it grows while the stream goes on."""
    halves = count()

    def edited(chunk: Object) -> Object:
        return {**chunk, "created": chunk["created"] + next(halves) // 2} if chunk.get("created") else chunk

    return _edited(edited, stream)


def on_last(edit: Callable[[Object], Object]) -> Rewrite:
    """Edit the last chunk that has choices."""
    return lambda stream: _at(stream, _speaking(stream)[-1:], edit)


def on_first(edit: Callable[[Object], Object]) -> Rewrite:
    """Edit the first chunk that has choices."""
    return lambda stream: _at(stream, _speaking(stream)[:1], edit)


def _speaking(stream: Stream) -> list[int]:
    return _places(stream, lambda chunk: bool(chunk["choices"]))


def _places(stream: Stream, fits: Callable[[Object], bool]) -> list[int]:
    chunks = map(_chunk, stream.events)
    return [index for index, chunk in enumerate(chunks) if chunk is not None and fits(chunk)]


def _at(stream: Stream, places: Sequence[int], edit: Callable[[Object], Object]) -> Stream:
    """Edit the chunks at these places."""
    events = list(stream.events)
    for index in places:
        chunk: Json = events[index].data
        events[index] = Event(edit(chunk), events[index].name)
    return replace(stream, events=tuple(events))


def _without(stream: Stream, index: int) -> Stream:
    return replace(stream, events=(*stream.events[:index], *stream.events[index + 1 :]))


# -- roles and finish reasons --------------------------------------------------------------------------------------


def with_role(delta: Object) -> Object:
    """The role stands in every delta."""
    return {**delta, "role": delta.get("role") or "assistant"}


def no_role(delta: Object) -> Object:
    """The role is never said."""
    return {key: value for key, value in delta.items() if key != "role"}


def finish_absent(choice: Object) -> Object:
    """There is no finish reason until there is one."""
    return {key: value for key, value in choice.items() if key != "finish_reason" or value}


def finish_empty(choice: Object) -> Object:
    """The finish reason is the empty string until there is one."""
    return {**choice, "finish_reason": choice.get("finish_reason") or ""}


def finish_on_last(stream: Stream) -> Stream:
    """The finish reason stands on the last delta that says something, not on a chunk of its own."""
    for index in reversed(range(len(stream.events))):
        finish = _bare_finish(stream.events[index])
        before = None if finish is None else _before(stream, index, finish)
        if finish is not None and before is not None:
            stream = _without(_at(stream, [before], partial(_finished, finish)), index)
    return stream


def _bare_finish(event: Event) -> Object | None:
    """The choice of a chunk that does nothing but finish it."""
    chunk, choices = _chunk(event), _choices_of(event)
    if chunk is None or chunk.get("usage") or len(choices) != 1 or says(choices[0]):
        return None
    return choices[0] if choices[0].get("finish_reason") else None


def _before(stream: Stream, index: int, finish: Object) -> int | None:
    """The chunk in which a choice came last before it was finished, if it says something there."""
    for before in reversed(range(index)):
        for choice in _choices_of(stream.events[before]):
            if _same_choice(choice, finish):
                return before if says(choice) else None
    return None


def _finished(finish: Object, chunk: Object) -> Object:
    moved = {"finish_reason": finish["finish_reason"]}
    return {**chunk, "choices": [{**c, **moved} if _same_choice(c, finish) else c for c in chunk["choices"]]}


def _same_choice(one: Object, other: Object) -> bool:
    return bool(one.get("index") == other.get("index"))


def says(choice: Object) -> bool:
    """Whether a choice carries a part of the answer."""
    delta = choice.get("delta")
    return isinstance(delta, dict) and any(map(delta.get, SPOKEN))


# -- usage ---------------------------------------------------------------------------------------------------------


def usage_on_finish(stream: Stream) -> Stream:
    """The usage stands on the last chunk that finishes a choice, not on a chunk of its own."""
    told = _places(stream, _is_usage)[-1:]
    finish = _places(stream, lambda chunk: any(choice.get("finish_reason") for choice in chunk["choices"]))[-1:]
    if not told or not finish or told < finish:
        return stream
    usage: Json = stream.events[told[0]].data
    return _without(_at(stream, finish, lambda chunk: {**usage, **chunk, "usage": usage["usage"]}), told[0])


def usage_everywhere(stream: Stream) -> Stream:
    """Every chunk that has choices carries the usage so far; the last one that of the whole."""
    told = _places(stream, lambda chunk: bool(chunk.get("usage")))
    if not told:
        return stream
    whole: Json = stream.events[told[-1]].data
    places = _speaking(stream)
    numbers = count(1)
    return _at(stream, places, lambda chunk: {**chunk, "usage": _share(whole["usage"], next(numbers), len(places))})


def _share(usage: Object, number: int, of: int) -> Object:
    """What a usage is after so many of all chunks: tokens are written bit by bit and read at once."""
    written = usage.get("completion_tokens")
    if not isinstance(written, int) or not isinstance(usage.get("total_tokens"), int):
        return usage
    so_far = written * number // of
    return {**usage, "completion_tokens": so_far, "total_tokens": usage["total_tokens"] - written + so_far}


def usage_with_a_choice(stream: Stream) -> Stream:
    """The chunk with the usage has a choice that says nothing."""
    hollow: Object = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    return _edited(lambda chunk: {**chunk, "choices": [hollow]} if _is_usage(chunk) else chunk, stream)


def usage_without_choices(stream: Stream) -> Stream:
    """The chunk with the usage has null for its choices."""
    return _edited(lambda chunk: {**chunk, "choices": None} if _is_usage(chunk) else chunk, stream)


def _is_usage(chunk: Object) -> bool:
    return not chunk["choices"] and bool(chunk.get("usage"))


def on_usage(edit: Callable[[Object], Object]) -> Rewrite:
    """Edit every usage that is told."""

    def edited(chunk: Object) -> Object:
        usage = chunk.get("usage")
        return {**chunk, "usage": edit(usage)} if isinstance(usage, dict) else chunk

    return partial(_edited, edited)


# -- thinking ------------------------------------------------------------------------------------------------------


def thinking_as(key: str) -> Rewrite:
    """Thinking stands in a member of this name, and nowhere else."""

    def edited(delta: Object) -> Object:
        found = [delta[name] for name in REASONING_KEYS if name in delta]
        rest = _unthinking(delta)
        return {**rest, key: next(filter(None, found), found[0])} if found else rest

    return deltas(edited)


def _unthinking(delta: Object) -> Object:
    return {name: value for name, value in delta.items() if name not in (*REASONING_KEYS, "reasoning_details")}


def thinking_in_detail(delta: Object) -> Object:
    """Thinking is told a second time as a list of typed details."""
    thought = delta.get("reasoning")
    detail = {"type": "reasoning.text", "text": thought, "format": "unknown", "index": 0}
    return {**delta, "reasoning_details": [detail]} if thought else delta


def thinking_in_content(delta: Object) -> Object:
    """The content is a list of typed parts while the model thinks."""
    thought = next((delta[key] for key in REASONING_KEYS if delta.get(key)), None)
    if thought is None or isinstance(delta.get("content"), list):
        return delta
    parts: list[Json] = [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}]
    if delta.get("content"):
        parts.append({"type": "text", "text": delta["content"]})
    return {**_unthinking(delta), "content": parts}


# -- tool calls ----------------------------------------------------------------------------------------------------

PieceEdit: TypeAlias = Callable[[Object, Call, bool], Object | None]
"""Edits one piece of a call, given the whole call and whether the piece opens it; ``None``: the piece goes."""


def pieces(edit: PieceEdit) -> Rewrite:
    """Edit every piece of a tool call; a chunk that loses all that it said goes as well."""

    def rewrite(stream: Stream) -> Stream:
        placed = iter(list(_placed(stream)))
        return _edited(lambda chunk: _with_pieces(chunk, placed, edit), stream)

    return rewrite


def _placed(stream: Stream) -> Iterator[tuple[list[Call], int, bool]]:
    """For each piece in turn: the calls of its choice, which will be whole, its place there, whether it opens it."""
    known: dict[Json, list[Call]] = {}
    for event in stream.events:
        for choice in _choices_of(event):
            calls = known.setdefault(choice.get("index"), [])
            for piece in _pieces_of(choice):
                function = piece.get("function") or {}
                words = (string(function.get("name")), string(function.get("arguments")))
                before = len(calls)
                position = absorb(calls, Fragment(natural(piece.get("index")), string(piece.get("id")), *words))
                yield calls, position, position == before


def _pieces_of(choice: Object) -> list[Json]:
    delta = choice.get("delta")
    return delta.get("tool_calls") or [] if isinstance(delta, dict) else []


def _with_pieces(chunk: Object, placed: Iterator[tuple[list[Call], int, bool]], edit: PieceEdit) -> Object | None:
    found: list[Object] = []
    emptied = False
    for choice in chunk["choices"]:
        if _pieces_of(choice):
            edited = [
                edit(piece, calls[position], opens)
                for piece, (calls, position, opens) in zip(_pieces_of(choice), placed, strict=False)
            ]
            kept = [piece for piece in edited if piece is not None]
            delta = {key: value for key, value in choice["delta"].items() if key != "tool_calls"}
            choice = {**choice, "delta": {**delta, "tool_calls": kept} if kept else delta}
            emptied = emptied or not kept
        found.append(choice)
    needed = bool(chunk.get("usage")) or any(map(_matters, found))
    return None if emptied and not needed else {**chunk, "choices": found}


def _matters(choice: Object) -> bool:
    delta = choice.get("delta")
    return says(choice) or bool(choice.get("finish_reason") or not isinstance(delta, dict) or delta.get("role"))


def whole(piece: Object, call: Call, opens: bool) -> Object | None:
    """A call comes in one piece."""
    return {**piece, "function": {"name": call.name, "arguments": joined(call.arguments)}} if opens else None


def without_index(piece: Object, call: Call, opens: bool) -> Object:
    """A call has no index; its id tells it from others."""
    return {key: value for key, value in piece.items() if key != "index"}


def at_zero(piece: Object, call: Call, opens: bool) -> Object:
    """Every call has the index 0; its id tells it from others."""
    return {**piece, "index": 0}


def with_id(piece: Object, call: Call, opens: bool) -> Object:
    """Every piece says the id of its call."""
    return {**piece, "id": call.id}


def with_type(piece: Object, call: Call, opens: bool) -> Object:
    """Pieces that continue a call say its type, and have an empty name."""
    function = piece.get("function") or {}
    return piece if opens else {**piece, "type": "function", "function": {"name": "", **function}}


def with_empty_id(piece: Object, call: Call, opens: bool) -> Object:
    """Pieces that continue a call have an empty id."""
    return {"id": "", **piece}


# -- what else is in the stream ------------------------------------------------------------------------------------


def before_finish(chunk: Callable[[Object], Object]) -> Rewrite:
    """Put a chunk, made of the choice, before each chunk that finishes one."""

    def rewrite(stream: Stream) -> Stream:
        events: list[Event] = []
        for event in stream.events:
            for choice in _choices_of(event):
                if choice.get("finish_reason"):
                    events.append(Event(chunk(choice)))
            events.append(event)
        return replace(stream, events=tuple(events))

    return rewrite


def first(event: Event) -> Rewrite:
    """Begin with an event; a stream that begins with it already stays as it is."""
    return lambda stream: stream if stream.events[:1] == (event,) else replace(stream, events=(event, *stream.events))


def around(event: Event) -> Rewrite:
    """Put an event after the first and before the last chunk."""

    def rewrite(stream: Stream) -> Stream:
        at = max(1, len(stream.events) - 2)
        return replace(stream, events=(*stream.events[:1], event, *stream.events[1:at], event, *stream.events[at:]))

    return rewrite


def without_sentinel(stream: Stream) -> Stream:
    """The stream ends without ``[DONE]``."""
    return replace(stream, events=tuple(event for event in stream.events if not isinstance(event.data, Raw)))
