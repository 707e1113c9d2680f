"""How what was given differs from what it should have been: lost, repeated, reordered, altered or invented."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from streamfuzz_strategies.reply import CHOICE_FIELDS, REPLY_FIELDS, Choice, Json, Reply, choice_view, view
from streamfuzz_strategies.stream import MalformedJson, parse_json

Change: TypeAlias = Literal["lost", "repeated", "reordered", "altered", "invented"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which something given is not what it should have been.

    ``what`` names the thing in words ("the text", "frame 2"); ``expected`` and ``got`` are the parts at which
    the two part ways.
    """

    change: Change
    what: str
    expected: Json
    got: Json


def sequences(expected: Sequence[Json], got: Sequence[Json], what: str) -> Difference | None:
    """Compare two sequences of items; ``None`` if they are equal."""
    if expected == got:
        return None
    start = 0
    while start < len(expected) and start < len(got) and expected[start] == got[start]:
        start += 1
    stop = 0
    while stop < len(expected) - start and stop < len(got) - start and expected[-1 - stop] == got[-1 - stop]:
        stop += 1
    gone = expected[start : len(expected) - stop]
    come = got[start : len(got) - stop]
    name = f"{what} {start + 1}"
    if not come:
        return Difference("lost", name, gone[0], None)
    if not gone:
        again = come[0] in expected
        return Difference("repeated" if again else "invented", name, None, come[0])
    if len(gone) == len(come) > 1 and _same_items(gone, come):
        return Difference("reordered", name, gone[0], come[0])
    if len(gone) > len(come) and _is_subsequence(come, gone):
        lost = next(item for item in gone if item not in come)
        return Difference("lost", name, lost, None)
    if len(come) > len(gone) and _is_subsequence(gone, come):
        extra = next((item for item in come if item not in gone), come[0])
        return Difference("repeated" if extra in expected else "invented", name, None, extra)
    return Difference("altered", name, gone[0], come[0])


def texts(expected: str, got: str, what: str) -> Difference | None:
    """Compare two texts; ``None`` if they are equal."""
    if expected == got:
        return None
    start = 0
    limit = min(len(expected), len(got))
    while start < limit and expected[start] == got[start]:
        start += 1
    stop = 0
    while stop < limit - start and expected[-1 - stop] == got[-1 - stop]:
        stop += 1
    gone = expected[start : len(expected) - stop]
    come = got[start : len(got) - stop]
    if not come:
        return Difference("lost", what, gone, "")
    if not gone:
        return Difference("repeated" if come in expected else "invented", what, "", come)
    if len(gone) == len(come) and Counter(gone) == Counter(come):
        return Difference("reordered", what, gone, come)
    if _is_subsequence(come, gone):
        return Difference("lost", what, gone, come)
    return Difference("altered", what, gone, come)


def views(given: Mapping[str, Json], reply: Reply) -> Difference | None:
    """Compare a view as a target reports it with the reply, field by field of those that the target has.

    A flat view speaks of the first choice; one with ``choices`` of all of them.
    """
    return next(_view_differences(given, reply), None)


def _view_differences(given: Mapping[str, Json], reply: Reply) -> Iterator[Difference]:
    choices = view(reply)["choices"]
    if "choices" in given:
        if len(given["choices"]) != len(choices):
            change: Change = "lost" if len(given["choices"]) < len(choices) else "invented"
            yield Difference(change, "the choices", len(choices), len(given["choices"]))
            return
        for index, (mine, theirs) in enumerate(zip(given["choices"], choices, strict=True)):
            where = f" of choice {index}" if len(choices) > 1 else ""
            yield from _choice_differences(mine, theirs, where)
    else:
        yield from _choice_differences(given, choices[0] if choices else choice_view(Choice()), "")
    whole = view(reply)
    for field in REPLY_FIELDS:
        if field in given and not _same_scalar(whole[field], given[field]):
            yield _scalar(whole[field], given[field], f"the {field}")


def _choice_differences(given: Mapping[str, Json], wanted: Mapping[str, Json], where: str) -> Iterator[Difference]:
    for field in CHOICE_FIELDS:
        if field not in given:
            continue
        if field in ("text", "reasoning", "refusal"):
            difference = texts(wanted[field], given[field], f"the {field}{where}")
        elif field == "tool_calls":
            difference = _calls(wanted[field], given[field], where)
        elif field == "parts":
            difference = sequences(wanted[field], [_plain(part) for part in given[field]], f"part{where}")
        elif (given[field] or None) == (wanted[field] or None):
            difference = None
        else:
            difference = _scalar(wanted[field], given[field], f"the finish reason{where}")
        if difference is not None:
            yield difference


def _calls(wanted: Sequence[Mapping[str, Json]], given: Sequence[Mapping[str, Json]], where: str) -> Difference | None:
    fields = {name for call in given for name in call} or {"id", "name", "arguments"}
    mine = [_call_form(call, fields) for call in given]
    theirs = [_call_form(call, fields) for call in wanted]
    if mine == theirs:
        return None
    if len(mine) == len(theirs) and not (len(mine) > 1 and _same_items(mine, theirs)):
        for index, (one, other) in enumerate(zip(theirs, mine, strict=True)):
            for name in ("name", "id", "arguments"):
                if one.get(name) != other.get(name):
                    what = f"the {name} of tool call {index + 1}{where}"
                    words, mine_words = wanted[index].get(name), given[index].get(name)
                    if isinstance(words, str) and isinstance(mine_words, str):
                        return texts(words, mine_words, what)
                    return _scalar(one.get(name), other.get(name), what)
    return sequences(theirs, mine, f"tool call{where}")


def _call_form(call: Mapping[str, Json], fields: set[str]) -> dict[str, Json]:
    """Return the call with the fields that the target has, its arguments decoded where they are JSON.

    A call without arguments may be told as ``""`` or as ``{}``: the wire has both for the same thing.
    """
    form = {name: call.get(name) for name in sorted(fields, key=lambda name: (name == "arguments", name))}
    if isinstance(form.get("arguments"), str):
        with suppress(MalformedJson):
            form["arguments"] = parse_json(form["arguments"] or "{}")
    elif "arguments" in form:
        form["arguments"] = form["arguments"] or {}
    return form


def same_call(given: Mapping[str, Json], call: Mapping[str, Json]) -> bool:
    """Whether a tool call as a target reports it is this one, in the fields that the target has."""
    return _call_form(given, set(given)) == _call_form(call, set(given))


def _scalar(expected: Json, got: Json, what: str) -> Difference:
    change: Change = "lost" if got is None else "invented" if expected is None else "altered"
    return Difference(change, what, expected, got)


def _same_scalar(expected: Json, got: Json) -> bool:
    if isinstance(got, Mapping) and isinstance(expected, Mapping):
        return all(expected.get(name) == got[name] for name in got if name in expected)
    if not isinstance(expected, Mapping) and not isinstance(got, Mapping):
        return (expected or None) == (got or None)
    return expected is None and not any(got.values()) if isinstance(got, Mapping) else False


def _plain(value: Any) -> Json:
    return dict(value) if isinstance(value, Mapping) else value


def _same_items(one: Sequence[Json], other: Sequence[Json]) -> bool:
    return Counter(map(_key, one)) == Counter(map(_key, other))


def _is_subsequence(small: Sequence[Json], large: Sequence[Json]) -> bool:
    rest = iter(large)
    return all(item in rest for item in small)


def _key(value: Json) -> str:
    return json.dumps(value, sort_keys=True, default=str)
