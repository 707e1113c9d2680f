"""What a target made of a stream, beside what it should have made of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from streamfuzz_strategies.reply import CHOICE_FIELDS, REPLY_FIELDS, Json, Reply, view
from streamfuzz_strategies.stream import Event

from ..compare import views
from ..deviation import Run
from ..legible import broken, cells, compact, exact
from ..oracles import expected_events, frame_view
from .page import Line, Page

NOTHING = "nothing"
SPELLED = ("text", "reasoning", "refusal", "tool_calls", "finish")
"""The fields of a message that are shown where the target has none of its own."""

CALLED = {"tool_calls": "tool calls"}


@dataclass(frozen=True, slots=True)
class Row:
    """One thing: what was given, what should have been, and whether that is a difference."""

    name: str
    gave: str
    expected: str
    differs: bool = False


def beside(run: Run, page: Page) -> list[Line]:
    """A table of what the target ended with and what it should have.

    Args:
        run: of the target.
        page: to write on; where it is narrow, the two stand below each other.
    """
    rows = list(rows_of(run, page.plain))
    draw = _stacked if page.stacked else _columns
    return list(draw(page, rows))


def rows_of(run: Run, plain: bool) -> Iterator[Row]:
    """The rows of the table: how it ended, then each field, value or item that it gave or should have given."""
    yield Row("outcome", exact(_ending(run), plain), exact(_wanted_ending(run), plain))
    if run.target.gives == "reply":
        yield from _reply(run, plain)
    elif run.target.gives == "json":
        wanted = [event.data for event in run.judgement.events[:1] if run.judgement.accepted]
        gave, expected = _told(run.trace.result, plain), _told(wanted[0], plain) if wanted else NOTHING
        gave = gave if run.trace.ending == "complete" else NOTHING
        yield Row("value", gave, expected, gave != expected)
    else:
        yield from _items(run, plain)


def _ending(run: Run) -> str:
    failure = run.trace.failure
    return failure.type if failure is not None and run.trace.ending != "hang" else run.trace.ending


def _wanted_ending(run: Run) -> str:
    judgement = run.judgement
    if run.target.gives == "frames":
        return "complete" if run.end == "eof" else "complete or an error"
    if judgement.error is not None:
        return f"an error that says {judgement.error!r}"
    return {"none": "complete", "may": "complete, or an error", "must": "an error or incomplete"}[judgement.level]


def _told(value: Json, plain: bool) -> str:
    return exact(compact(value, plain), plain)


def _reply(run: Run, plain: bool) -> Iterator[Row]:
    accepted, result = run.judgement.accepted, run.trace.result
    if not isinstance(result, Mapping):
        for name, value in view(accepted[0])["choices"][0].items() if accepted and accepted[0].choices else ():
            if name in SPELLED and value:
                yield Row(CALLED.get(name, name), NOTHING, _told(value, plain), not run.judgement.may_refuse)
        return
    reply = next((one for one in accepted if views(result, one) is None), accepted[0] if accepted else None)
    mine: Sequence[Mapping[str, Json]] = result.get("choices", [result])
    theirs = view(reply)["choices"][: None if "choices" in result else 1] if reply is not None else []
    several = max(len(mine), len(theirs)) > 1
    for index, (gave, wanted) in enumerate(zip_longest(mine, theirs)):
        only = None if reply is None or wanted is None else Reply((reply.choices[index],))
        where = f" of choice {index}" if several else ""
        if gave is None:
            yield Row(f"choice {index}", NOTHING, _told(wanted, plain), True)
        else:
            yield from _fields(gave, wanted, only, CHOICE_FIELDS, where, plain)
    yield from _fields(result, None if reply is None else view(reply), reply, REPLY_FIELDS, "", plain)


def _fields(
    gave: Mapping[str, Json],
    wanted: Mapping[str, Json] | None,
    reply: Reply | None,
    names: Sequence[str],
    where: str,
    plain: bool,
) -> Iterator[Row]:
    for name in (name for name in names if name in gave):
        expected = _told(wanted[name], plain) if wanted is not None else ""
        differs = reply is not None and views({name: gave[name]}, reply) is not None
        yield Row(CALLED.get(name, name) + where, _told(gave[name], plain), expected, differs)


def _items(run: Run, plain: bool) -> Iterator[Row]:
    one = run.target.gives[:-1]
    if run.target.gives == "frames":
        fields = tuple(run.trace.items[0]) if run.trace.items else ("data",)
        wanted: list[Json] = [frame_view(frame, fields) for frame in run.judgement.frames]
        got = list(run.trace.items)
    else:
        wanted, _ = expected_events(run)
        ignorable = run.provider.ignorable
        got = [item for item in run.trace.items if run.provider.kind(Event(item)) not in ignorable]
    mine, theirs = ([json.dumps(item, sort_keys=True, default=str) for item in items] for items in (got, wanted))
    for tag, i, j, k, m in SequenceMatcher(None, theirs, mine, autojunk=False).get_opcodes():
        if tag == "equal":
            yield Row(f"{one} {i + 1}" if j == i + 1 else f"{one}s {i + 1}-{j}", "as expected", "")
            continue
        for index, (expected, gave) in enumerate(zip_longest(wanted[i:j], got[k:m], fillvalue=_MISSING)):
            told = [NOTHING if value is _MISSING else _told(value, plain) for value in (gave, expected)]
            yield Row(f"{one} {i + index + 1}", told[0], told[1], True)


_MISSING = object()


def _columns(page: Page, rows: Sequence[Row]) -> Iterator[Line]:
    name = max(cells(row.name) for row in rows) + 2
    room = page.width - name - 2 - len("  differs")
    gave, expected = (max(map(cells, column)) for column in zip(*((r.gave, r.expected) for r in rows), strict=True))
    gave = max(min(gave, max(room // 2, room - expected)), len("given"))
    expected = min(expected, room - gave)
    yield page.line((" " * name + f"{'given':<{gave}}  expected", "head"))
    for row in rows:
        texts = (_cropped(page, row.gave, gave), _cropped(page, row.expected, expected))
        for number, (one, other) in enumerate(zip_longest(*texts, fillvalue="")):
            first = number == 0
            differs = "  differs" if first and row.differs else ""
            one += " " * (gave - cells(one)) if other or differs else ""
            other = f"  {other}{' ' * (expected - cells(other)) if differs else ''}" if other or differs else ""
            yield page.line(
                (f"{row.name if first else '':<{name}}", "note"),
                (one, "bad" if row.differs else "bytes"),
                (other, "good" if row.differs else "bytes"),
                (differs, "bad"),
            )


def _cropped(page: Page, text: str, room: int) -> Iterator[str]:
    return broken(text if page.rows is None else page.shortened_text(text, room * 6), room)


def _stacked(page: Page, rows: Sequence[Row]) -> Iterator[Line]:
    for row in rows:
        yield from page.fold(
            f"{row.name} differs:" if row.differs else f"{row.name}:", "bad" if row.differs else "note"
        )
        for name, text in (("given", row.gave), ("expected", row.expected)):
            if text:
                yield from page.fold(f"{name} {page.shortened_text(text, page.width * 6)}", "bytes", 2)
