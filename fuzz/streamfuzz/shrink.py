"""Make a failing case small without turning it into another failure.

Every step is an edit that the target and the judge are asked about again: it is kept if the same invariant
breaks in the same way under the same rule, and the causes are still the same.  Since the judge reads bytes, a
step may do anything at all to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from time import perf_counter

from streamfuzz_strategies import cuts, providers
from streamfuzz_strategies.framing import Line
from streamfuzz_strategies.providers import Provider
from streamfuzz_strategies.reply import Json
from streamfuzz_strategies.rules import Level
from streamfuzz_strategies.stream import Event, Frame, MalformedJson, Raw, parse_json
from streamfuzz_strategies.style import PLAIN
from streamfuzz_strategies.wire import Wire

from . import edits
from .bench import Bench, read
from .case import Case, digest
from .explain import explain
from .features import renumbered, replacing
from .finding import Finding

PICKED = 64
"""Length up to which a text is picked apart character by character."""

SEARCHED = 24
"""Length up to which every part of a text is left out, wherever it begins."""

SECONDS = 10.0
"""How long the shrinking of one finding may take."""


def shrink(
    bench: Bench, finding: Finding, seconds: float = SECONDS, stopped: Callable[[], bool] = lambda: False
) -> Finding:
    """The smallest case found for a finding; the finding itself if it is flaky or cannot be made smaller."""
    if finding.flaky or finding.case.probe.startswith("growth"):
        return finding
    return _Shrinker(bench, finding, seconds, stopped).run()


class _Shrinker:
    def __init__(self, bench: Bench, finding: Finding, seconds: float, stopped: Callable[[], bool]) -> None:
        self.bench = bench
        self.best = finding
        self.deadline = perf_counter() + seconds
        self.stopped = stopped
        self.tried: set[str] = set()
        self.broken = _broken(finding.case)

    @property
    def case(self) -> Case:
        return self.best.case

    def run(self) -> Finding:
        before = None
        while before != self.case and not self._spent():
            before = self.case
            for step in _STEPS:
                self._pass(step)
        return self.best

    def _spent(self) -> bool:
        return perf_counter() > self.deadline or self.stopped()

    def _pass(self, step: Callable[[Case], Iterator[Case | None]]) -> None:
        """Take candidates of a step until none is accepted.

        After a success the step goes on where it was: what could not be left out before will hardly be now.  Once
        it is through it starts over, until a whole round brings nothing.
        """
        resume, progress = 0, True
        while progress:
            progress = resume > 0
            start, resume = resume, 0
            for number, candidate in enumerate(step(self.case)):
                if self._spent():
                    return
                if number >= start and candidate is not None and self._accept(candidate):
                    resume, progress = number, True
                    break

    def _accept(self, case: Case) -> bool:
        name = digest(case)
        if name in self.tried or _weight(case) >= _weight(self.case):
            return False
        self.tried.add(name)
        if not case.probe and not self._no_odder(case):
            return False
        wanted = self.best.deviation
        for found in self.bench.deviations(case):
            if found.same_as(wanted):
                explained = explain(self.bench, case, found, self.best.how)
                if (
                    not explained.flaky
                    and explained.signature == self.best.signature
                    and set(explained.causes) <= set(self.best.causes)
                    and _weight(explained.case) < _weight(self.case)
                ):
                    self.best = replace(explained, count=self.best.count, also=self.best.also)
                    return True
        return False

    def _no_odder(self, case: Case) -> bool:
        """Whether a stream is odd in no new way: one that is makes a worse witness, however short.

        In a stream that is broken anyway, what else is broken does not matter to which error is raised.
        """
        new = {name: level for name, level in _broken(case).items() if name not in self.broken}
        anyhow = self.best.deviation.oracle == "typed_error" and "must" in self.broken.values()
        return not new or (anyhow and set(new.values()) == {"must"})


def _broken(case: Case) -> dict[str, Level]:
    """What is wrong with a stream: the rules that it breaks, and whether an event lacks its documented shape."""
    reading = read(case)
    judgement = reading.judge(case.end)
    shape: dict[str, Level] = {} if reading.conforms(len(judgement.events)) else {"shape": "may"}
    return {breach.rule.id: breach.level for breach in judgement.breaches} | shape


def _weight(case: Case) -> tuple[int, bool, int]:
    """How simple a case is to read: its size, and of two equally long the one with plainer end and line ends."""
    return case.size, case.end != "eof", case.data.count(b"\r") if edits.is_wire(case) else 0


def _plain_end(case: Case) -> Iterator[Case | None]:
    yield replace(case, end="eof")


def _fewer_chunks(case: Case) -> Iterator[Case | None]:
    if not edits.is_wire(case):
        for part in _ranges(len(case.chunks)):
            kept = (*case.chunks[: part.start], *case.chunks[part.stop :])
            yield from _closed_up(case, replace(case, chunks=kept))
        return
    data, at = case.data, edits.offsets(case)
    yield edits.recut(case, data, cuts.WHOLE)
    if len(at) > 64:
        return
    yield from (edits.recut(case, data, (offset,)) for offset in at)
    yield from (edits.recut(case, data, (*at[:i], *at[i + 1 :])) for i in range(len(at)))


def _ranges(count: int) -> Iterator[slice]:
    """Parts of a sequence to leave out: halves, quarters, ..., and all of a few items or one."""
    width = max(1, count // 2)
    while width:
        few = width <= 4
        yield from (slice(start, start + width) for start in range(0, count, 1 if few else width))
        width = width - 1 if few else width // 2


def _fewer_frames(case: Case) -> Iterator[Case | None]:
    if not edits.is_wire(case):
        return
    spans = [(lines[0].start, lines[-1].stop) for lines, _ in edits.frames(case)]
    for part in _ranges(len(spans)):
        gone = spans[part]
        yield from _closed_up(case, edits.apply(case, [(gone[0][0], gone[-1][1], b"")]))


def _closed_up(case: Case, fewer: Case | None) -> Iterator[Case | None]:
    """A case from which events were taken, with its running numbers and indexes closed up, and as it is."""
    yield renumbered(case, fewer)
    if fewer is not None and (gone := _indexes(case) - _indexes(fewer)):

        def lower(holder: dict[str, Json], name: str) -> Json:
            index = holder[name]
            below = sum(1 for other, at in gone if other == name and type(index) is int and at < index)
            return {**holder, name: index - below} if below else holder

        closed: Case | None = fewer
        for name in sorted({name for name, _ in gone}):
            closed = closed and (edits.rewrite(closed, partial(_changed, name=name, change=lower)) or closed)
        yield renumbered(case, closed)
    yield fewer


def _indexes(case: Case) -> set[tuple[str, int]]:
    """The indexes that the events of a case speak of, each with the name of its member."""
    found: set[tuple[str, int]] = set()
    for event in read(case).events:
        found.update(_numbers(event.data))
    return found


def _numbers(value: Json) -> Iterator[tuple[str, int]]:
    if isinstance(value, dict):
        yield from ((n, m) for n, m in value.items() if n.endswith("index") and type(m) is int)
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        yield from _numbers(member)


def _joined_events(case: Case) -> Iterator[Case | None]:
    """Make one event of two neighbours, where that is an event: a text and its end, a call and its arguments."""
    provider = providers.get(case.provider)
    if not edits.is_wire(case):
        for number, (one, two) in enumerate(pairwise(case.chunks)):
            if isinstance(one, Event) and (both := _joined(one.data, two.data)) is not None:
                yield replace(case, chunks=(*case.chunks[:number], replace(one, data=both), *case.chunks[number + 2 :]))
        return
    for (lines, payload), (after, other) in pairwise(edits.frames(case)):
        both = _joined(edits.parse(provider, payload, None).data, edits.parse(provider, other, None).data)
        if both is not None:
            # A cut stays where it is only in the event that is kept.
            yield edits.apply(case, [edits.respell(lines, Event(both)), (after[0].start, after[-1].stop, b"")])
            yield edits.apply(case, [(lines[0].start, lines[-1].stop, b""), edits.respell(after, Event(both))])


def _joined(one: Json, two: Json) -> Json:
    """Two objects as one: what only one has or says; of two things that differ the later; ``None``: no objects."""
    if not (isinstance(one, dict) and isinstance(two, dict)):
        return None
    both = {**one, **{name: member for name, member in two.items() if member not in (None, "") or name not in one}}
    for name in one.keys() & two.keys():
        mine, theirs = one[name], two[name]
        if isinstance(mine, dict) and isinstance(theirs, dict):
            both[name] = _joined(mine, theirs)
        elif isinstance(mine, list) and isinstance(theirs, list):
            fit = len(mine) == len(theirs) == 1 and _joined(mine[0], theirs[0])
            both[name] = [fit] if fit else [*mine, *theirs]
    return both


def _fewer_lines(case: Case) -> Iterator[Case | None]:
    if not edits.is_wire(case):
        return
    for line in Wire(case.data, providers.get(case.provider).framing).lines:
        yield edits.apply(case, [(line.start, line.stop, b"")])
    yield edits.apply(case, [(len(case.data) - 1, len(case.data), b"")])


def _plain_style(case: Case) -> Iterator[Case | None]:
    if not edits.is_wire(case):
        return
    yield edits.respelled(case)
    data = case.data
    for line in Wire(data, providers.get(case.provider).framing).lines:
        if line.stop > line.end and data[line.end : line.stop] != b"\n":
            yield edits.apply(case, [(line.end, line.stop, b"\n")])


def _fewer_members(case: Case) -> Iterator[Case | None]:
    """Leave a member out of all events at once, or empty it, or shorten a text wherever it is told."""
    events = [event.data for event in read(case).events if not isinstance(event.data, Raw)]
    names = dict.fromkeys(name for data in events for name in _names(data))
    for name in names:
        for change in (_without, _emptied):
            yield edits.rewrite(case, partial(_changed, name=name, change=change))
    for words, times in Counter(words for data in events for words in _texts(data)).items():
        if times > 1 and len(words) > 1:
            yield edits.rewrite(case, replacing(words, "a"))


def _names(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        yield from _names(member)


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        yield from _texts(member)


def _changed(event: Event, name: str, change: Callable[[dict[str, Json], str], Json]) -> Event:
    return event if isinstance(event.data, Raw) else replace(event, data=_everywhere(event.data, name, change))


def _everywhere(value: Json, name: str, change: Callable[[dict[str, Json], str], Json]) -> Json:
    if isinstance(value, dict):
        held = {key: _everywhere(member, name, change) for key, member in value.items()}
        return change(held, name) if name in held else held
    return [_everywhere(item, name, change) for item in value] if isinstance(value, list) else value


def _without(holder: dict[str, Json], name: str) -> Json:
    return {key: member for key, member in holder.items() if key != name}


def _emptied(holder: dict[str, Json], name: str) -> Json:
    member = holder[name]
    return {**holder, name: type(member)() if isinstance(member, (str, list, dict)) else member}


def _smaller_json(case: Case) -> Iterator[Case | None]:
    provider = providers.get(case.provider)
    if not edits.is_wire(case):
        for index, item in enumerate(case.chunks):
            event = item if isinstance(item, Event) else edits.parse(provider, item.data, item.event)
            if isinstance(event.data, Raw):
                continue
            for value in _simpler(event.data):
                text = PLAIN.spell(value)
                made = Event(value, event.name) if isinstance(item, Event) else Frame(text, item.event, item.id)
                yield replace(case, chunks=(*case.chunks[:index], made, *case.chunks[index + 1 :]))
        return
    for lines, payload in edits.frames(case):
        event = edits.parse(provider, payload, None)
        if not isinstance(event.data, Raw):
            for value in (event.data, *_simpler(event.data)):
                yield edits.apply(case, [_respell(case, lines, Event(value))])


def _respell(case: Case, lines: Sequence[Line], event: Event) -> edits.Edit:
    """The edit that writes an event plainly; if it was written over several lines, over two."""
    start, stop, text = edits.respell(lines, event)
    carrying = [line for line in lines if line.kind == "data"]
    if len(carrying) > 1:
        first, second = carrying[0], carrying[1]
        text = text[:1] + case.data[first.end : first.stop] + case.data[second.start : second.value] + text[1:]
    return start, stop, text


def _simpler(value: Json) -> Iterator[Json]:
    """Values a little simpler than this one, the biggest steps first."""
    if isinstance(value, dict):
        yield from ({other: member for other, member in value.items() if other != name} for name in value)
        for name, member in value.items():
            yield from ({**value, name: simpler} for simpler in _simpler(member))
    elif isinstance(value, list):
        yield from ([*value[:index], *value[index + 1 :]] for index in range(len(value)))
        for index, item in enumerate(value):
            yield from ([*value[:index], simpler, *value[index + 1 :]] for simpler in _simpler(item))
    elif isinstance(value, str):
        yield from _shorter(value)
        if value[:1] in ("{", "["):
            with suppress(MalformedJson):
                yield from (PLAIN.spell(simpler) for simpler in _simpler(parse_json(value)))
    elif isinstance(value, (int, float)) and value not in (0, 1):  # True and False are 1 and 0
        yield from (0, 1)


def _shorter(text: str) -> Iterator[str]:
    if not text:
        return
    yield ""
    if len(text) > 1:
        yield "a"
        yield text[: len(text) // 2]
        yield text[len(text) // 2 :]
        width = max(1, len(text) // 4)
        while width and (width > len(text) // 16 or len(text) <= PICKED):
            yield from (text[:start] + text[start + width :] for start in range(0, len(text), width))
            width //= 2
    if len(text) <= SEARCHED:
        for width in range(len(text) - 1, 1, -1):
            yield from (text[:start] + text[start + width :] for start in range(len(text) - width + 1))


def _fewer_bytes(case: Case) -> Iterator[Case | None]:
    """Truncate, and leave out pieces of what is no JSON."""
    if not edits.is_wire(case):
        return
    data, size = case.data, len(case.data)
    for length in _lengths(size):
        yield edits.apply(case, [(length, size, b"")])
    provider = providers.get(case.provider)
    spoken = [lines for lines, payload in edits.frames(case) if _is_json(provider, payload)]
    kept = {line.start for lines in spoken for line in lines if line.kind in ("data", "json")}
    for line in Wire(data, provider.framing).lines:
        if line.start not in kept:
            yield edits.apply(case, [(line.start, line.value, b"")])
            yield from (
                edits.apply(case, [(line.value + start, line.value + stop, b"")])
                for start, stop in _pieces(line.end - line.value)
            )


def _is_json(provider: Provider, payload: str) -> bool:
    return payload == provider.sentinel or not isinstance(edits.parse(provider, payload, None).data, Raw)


def _pieces(length: int) -> Iterator[tuple[int, int]]:
    """Ranges to leave out, the longest first; single bytes of short values only."""
    width = length
    while width and (width > length // 16 or length <= PICKED):
        yield from ((start, min(start + width, length)) for start in range(0, length, width))
        width //= 2


def _lengths(size: int) -> Sequence[int]:
    steps, step = [], size // 2
    while step:
        steps.append(size - step)
        step //= 2
    return steps


_STEPS: tuple[Callable[[Case], Iterator[Case | None]], ...] = (
    _plain_end,
    _fewer_chunks,
    _fewer_frames,
    _joined_events,
    _fewer_lines,
    _fewer_members,
    _smaller_json,
    _plain_style,
    _fewer_bytes,
)
"""What is tried, in this order, until nothing helps."""
