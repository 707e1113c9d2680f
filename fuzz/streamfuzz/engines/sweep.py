"""The default engine: draw once, enumerate many.

Drawing a stream costs milliseconds, running a target on it microseconds.  So for each drawn stream the sweep
tries every cut, every lawful rewriting, every truncation and each damage of the menu, and holds each run
against the judgement of its bytes.  It does not stop at the first failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from time import perf_counter
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis import target as scored
from hypothesis.database import ExampleDatabase
from hypothesis.errors import InvalidArgument

from streamfuzz_strategies import cuts
from streamfuzz_strategies.dialects import speak
from streamfuzz_strategies.draw import drawing
from streamfuzz_strategies.judge import End, Reading
from streamfuzz_strategies.mutations import EVENT_EDITS, apply, damage, edit, encode, rewritings
from streamfuzz_strategies.providers import Drawing, Provider
from streamfuzz_strategies.reply import Json
from streamfuzz_strategies.stream import Frame, Raw, Stream, payloads
from streamfuzz_strategies.style import PLAIN
from streamfuzz_strategies.styles import styles
from streamfuzz_strategies.text import FAMILIES
from streamfuzz_strategies.wire import Wire

from ..bench import Bench
from ..case import PROBES, Case
from ..deviation import Deviation, Run
from ..oracles import check
from ..spec import UsageError
from . import Batch, Budget, Sighting
from .examples import examples
from .goals import dialects_of, fits

T = TypeVar("T")

PER_STREAM = 0.5
"""Seconds that the cuts of one stream may take; a slow target gets a spread of them instead of all."""

LAWFUL = "a lawful stream"
"""How a case came about that nothing was done to but cutting."""

DRAWN = 96
"""How many streams are drawn at a time; the target gets a first look at all of them."""

DEEP = 24
"""How many streams of a draw are swept."""

KEPT = 2
"""How many sightings of one kind are passed on; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A stream, and a second way to stream the same reply."""

    stream: Stream
    again: Stream


@st.composite
def _drawn(draw: st.DrawFn, provider: Provider, drawing: Drawing) -> Drawn:
    reply = provider.draw_reply(draw, drawing)
    style = draw(st.one_of(st.just(PLAIN), styles(provider.framing.name)))
    stream = Stream(provider.name, provider.draw_events(draw, reply, drawing), reply, style)
    return Drawn(stream, replace(stream, events=provider.draw_events(draw, reply, drawing), style=PLAIN))


def draw_batch(
    strategy: st.SearchStrategy[T],
    count: int,
    number: int,
    kept: ExampleDatabase | None = None,
    richness: Callable[[T], int] | None = None,
) -> list[T]:
    """Draw values outside of a test, reproducibly by seed.

    With ``kept``, Hypothesis' example database, and ``richness``, the richest draws are kept there, and those of
    earlier runs come first; what is drawn then depends on them as well.
    """
    drawn: list[T] = []

    @settings(
        max_examples=count,
        database=kept,
        deadline=None,
        phases=[Phase.reuse, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @seed(number)  # inside of the settings, whose database it would take away
    @given(strategy)
    def collect(value: T) -> None:
        drawn.append(value)
        if kept is not None and richness is not None:
            scored(richness(value), label="richness")

    collect()
    return drawn


def _members(value: Json, path: str = "", depth: int = 4) -> Iterator[str]:
    """The paths of the members of a JSON value, so that events of another shape can be told apart."""
    if isinstance(value, dict) and depth:
        for name, member in value.items():
            yield f"{path}.{name}"
            yield from _members(member, f"{path}.{name}", depth - 1)
    elif isinstance(value, list) and depth:
        for item in value:
            yield from _members(item, f"{path}[]", depth - 1)


def sweep(bench: Bench, budget: Budget) -> Iterator[Batch]:
    """Search until the budget is spent; yields a batch after every stretch of work."""
    yield from _Sweep(bench, budget).batches()


class _Sweep:
    def __init__(self, bench: Bench, budget: Budget) -> None:
        self.bench = bench
        self.budget = budget
        self.provider = bench.provider
        self.takes = bench.target.takes
        try:
            asked = drawing(budget.tools, budget.alphabet)
        except InvalidArgument as error:
            raise UsageError(str(error)) from None
        # Left alone, Hypothesis draws much of the same; so each family of hostile text gets its turn.
        turns: dict[str, Any] = {"any": None, **FAMILIES} if asked.alphabet is None else {"asked": asked.alphabet}
        if budget.family is not None:
            turns = {budget.family: FAMILIES[budget.family]}
        self.strategies = [_drawn(self.provider, replace(asked, alphabet=alphabet)) for alphabet in turns.values()]
        # A stream is kept as the choices that led to it, which mean something else to another strategy.
        self.kept = [examples(budget.database, self.provider.name, turn) for turn in turns]
        self.cases = 0
        self.batch = Batch()
        self.seen: dict[tuple[str, ...], int] = {}
        self.started = perf_counter()
        self.streams = 0
        self.marks: set[str] = set()
        self.previous: Sequence[Any] = ()
        self.met: set[bytes] = set()

    def batches(self) -> Iterator[Batch]:
        number = self.budget.seed
        while True:
            for _ in self._round(number):
                if self.batch.cases >= 2000 or self.batch.sightings or self._spent():
                    yield self._flush()
                    if self._spent():
                        return
            number += 1_000_003
            self.kept = [None] * len(self.strategies)  # what earlier searches left has had its turn

    def _round(self, number: int) -> Iterator[None]:
        """Draw streams, look at each, and sweep the best of them."""
        drawn: list[Drawn] = []
        for turn, (strategy, kept) in enumerate(zip(self.strategies, self.kept, strict=True)):
            some = [one for one in self._draw(strategy, number + turn, kept) if self._is_new(one.stream)]
            yield from chain(*map(self._glance, some))
            drawn += some
        yield from chain(*map(self._stream, self._by_novelty(drawn)))

    def _draw(self, strategy: st.SearchStrategy[Drawn], number: int, kept: ExampleDatabase | None) -> list[Drawn]:
        count = -(-DRAWN // len(self.strategies))
        return draw_batch(strategy, count, number, kept, lambda drawn: len(self._marks(drawn.stream)))

    def _is_new(self, stream: Stream) -> bool:
        data = encode(self.provider, stream)
        new = data not in self.met
        self.met.add(data)
        return new

    def _by_novelty(self, batch: list[Drawn]) -> Iterator[Drawn]:
        """The few streams that have most of what no stream before had, for their size."""
        left = [(drawn, self._marks(drawn.stream)) for drawn in batch]
        for _ in range(min(DEEP, len(left))):
            best = max(left, key=lambda one: len(one[1] - self.marks) / len(one[0].stream.events))
            left.remove(best)
            self.marks |= best[1]
            yield best[0]

    def _marks(self, stream: Stream) -> set[str]:
        data = encode(self.provider, stream)
        shapes = {" ".join(sorted(_members(event.data))) for event in stream.events}
        return {*map(self.provider.kind, stream.events), *shapes, *Wire(data, self.provider.framing).places()}

    def _spent(self) -> bool:
        budget = self.budget
        if budget.stopped():
            return True
        if budget.cases is not None and self.cases >= budget.cases:
            return True
        return budget.seconds is not None and perf_counter() - self.started >= budget.seconds

    def _flush(self) -> Batch:
        batch, self.batch = self.batch, Batch()
        return batch

    def _count(self, cases: int = 1) -> None:
        self.cases += cases
        self.batch.cases += cases

    def _goal(self, *names: str) -> None:
        for name in names:
            self.batch.goals[name] += 1

    def _report(self, deviations: Iterable[Deviation], make: Callable[[], Case], how: str) -> None:
        for deviation in deviations:
            rule = deviation.rule.id if deviation.rule else ""
            key = (deviation.oracle, deviation.kind, rule, how)
            self.seen[key] = self.seen.get(key, 0) + 1
            if self.seen[key] <= KEPT:
                self.batch.sightings.append(Sighting(make(), deviation, how))
            else:
                self.batch.repeats[f"{deviation.oracle}.{deviation.kind}"] += 1

    def _glance(self, drawn: Drawn) -> Iterator[None]:
        """A first look at a drawn stream: is the target right about it at all, and byte by byte?"""
        if self.takes not in ("bytes", "text"):
            return
        for stream in (drawn.stream, drawn.again):
            data = encode(self.provider, stream)
            wire = Wire(data, self.provider.framing)
            if self._spellable(data):
                yield from self._cut(Reading(self.provider, data), wire, "eof", (cuts.every_byte(len(data)),), LAWFUL)
                self._goal("one byte a chunk")

    # -- one stream ---------------------------------------------------------------------------------------------

    def _stream(self, drawn: Drawn) -> Iterator[None]:
        """Everything that is tried on one drawn stream; yields now and then so that the caller can stop."""
        self.streams += 1
        if self.takes in ("bytes", "text"):
            yield from self._of_bytes(drawn)
        else:
            yield from self._of_items(drawn)

    def _of_bytes(self, drawn: Drawn) -> Iterator[None]:
        stream, provider = drawn.stream, self.provider
        data = encode(provider, stream)
        reading = Reading(provider, data)
        wire = Wire(data, provider.framing)
        stride = self._stride(data)
        yield from self._cut(reading, wire, "eof", self._all_cuts(wire, stride), LAWFUL)
        if self.streams == 1:
            yield from self._probes(drawn, data)
        for mutation in rewritings(provider, stream):
            restyled = mutation.name == "write it in another style"
            self._goal(f"style: {mutation.args[0]}" if restyled else f"rewriting: {mutation.name}")
            how = str(mutation.args[0]) if restyled else mutation.name
            yield from self._variant(apply(provider, stream, (mutation,)), how, stride)
        for name, spoken in self._in_dialects(stream):
            yield from self._variant(encode(provider, spoken), name, stride)
        yield from self._truncated(reading, wire, stride)
        for number, mutation in enumerate(damage(provider, stream)):
            self._goal(f"damage: {mutation.name}")
            yield from self._variant(apply(provider, stream, (mutation,)), mutation.name, stride, number)
        if self.streams > 1:
            yield from self._probes(drawn, data)

    def _in_dialects(self, stream: Stream) -> Iterator[tuple[str, Stream]]:
        """The stream in the dialects that the target reads, those in which it is another."""
        for name, dialects in dialects_of(self.bench.target).items():
            spoken = speak(stream, dialects)
            if spoken != stream:
                self._goal(f"dialect: {name}")
                yield name, spoken

    def _stride(self, data: bytes) -> int:
        seconds = self.budget.cost
        if seconds is None:
            seconds = min(self.bench.driver.run(self._chunks(data, cuts.WHOLE)).seconds for _ in range(2))
        return max(1, int(seconds * 3 * len(data) / PER_STREAM))

    def _chunks(self, data: bytes, offsets: cuts.Cuts) -> Sequence[Any]:
        if self.takes == "text":
            return cuts.chunks(data.decode("utf-8", "replace"), cuts.in_text(data, offsets))
        return cuts.chunks(data, offsets)

    def _all_cuts(self, wire: Wire, stride: int) -> Iterator[cuts.Cuts]:
        size = len(wire.data)
        aligned = cuts.frame_aligned(wire)
        self._goal("empty chunks", "one byte a chunk")
        yield cuts.every_byte(size)
        yield aligned
        yield from cuts.coalesced(wire)
        yield cuts.with_empties(cuts.WHOLE, size)
        yield cuts.with_empties(aligned, size)
        yield from ((offset,) for offset in cuts.hostile(wire))
        yield from islice(cuts.singles(size), self.streams % stride, None, stride)
        yield from cuts.hostile_pairs(wire, max(4, size // (4 * stride)))

    def _some_cuts(self, wire: Wire, stride: int) -> Iterator[cuts.Cuts]:
        yield cuts.every_byte(len(wire.data))
        hostile = cuts.hostile(wire)
        yield from ((offset,) for offset in hostile[self.streams % max(1, stride) :: max(1, len(hostile) // 40)])

    def _variant(self, data: bytes, how: str, stride: int, few: int | None = None) -> Iterator[None]:
        """Run a changed stream whole and cut; ``few`` numbers those for which one cut must do."""
        if not self._spellable(data):
            return
        reading, wire = Reading(self.provider, data), Wire(data, self.provider.framing)
        if few is None:
            cut = self._some_cuts(wire, stride)
        elif few % 8:
            cut = iter(((len(data) * (few % 8) // 8,),)) if len(data) > 8 else iter(())
        else:
            cut = iter((cuts.every_byte(len(data)),))
        yield from self._cut(reading, wire, "eof", cut, how, quick=few is not None)

    def _spellable(self, data: bytes) -> bool:
        if self.takes == "bytes":
            return True
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
        return True

    def _cut(
        self,
        reading: Reading,
        wire: Wire,
        end: End,
        fragmentations: Iterable[cuts.Cuts],
        how: str,
        *,
        quick: bool = False,
    ) -> Iterator[None]:
        """Run one byte string whole and then in every given fragmentation; ``quick``: count no places."""
        bench, target, data = self.bench, self.bench.target, wire.data
        judgement = reading.judge(end)
        if not self._spellable(data):
            return
        whole = self._chunks(data, cuts.WHOLE)
        baseline = bench.driver.run(whole, end)
        deviations = check(Run(target, reading, judgement, whole, end, baseline), bench.oracles)
        self._count()
        self._report(deviations, partial(self._case, whole, end), how)
        self._note_rules(judgement.breaches)
        outcome = baseline.outcome()
        yield
        for number, offsets in enumerate(fragmentations):
            if self.takes == "text" and len(offsets) == 1 and 0x80 <= data[offsets[0]] < 0xC0:
                continue  # text has no such cut
            chunks = self._chunks(data, offsets)
            trace = bench.driver.run(chunks, end)
            self._count()
            if len(offsets) == 1 and not quick:
                self.batch.goals["cut " + wire.place(offsets[0])] += 1
            watched = baseline.streaming and number < 4
            if not watched and trace.outcome() == outcome:
                if number % 64 == 63:
                    yield
                continue
            run = Run(target, reading, judgement, chunks, end, trace, baseline, deviations)
            where = f"{how}, cut {wire.place(offsets[0])}" if len(offsets) == 1 else how
            self._report(check(run, bench.oracles), partial(self._case, chunks, end), where)
            yield

    def _truncated(self, reading: Reading, wire: Wire, stride: int) -> Iterator[None]:
        bench, data = self.bench, wire.data
        self._goal("truncated", "connection reset")
        ends = {0, *reading.ends}
        offsets = sorted({*range(self.streams % stride, len(data), stride), *(e for e in ends if e < len(data))})
        for offset in offsets:
            part = data[:offset]
            if not self._spellable(part):
                continue
            for end in ("eof", "reset") if offset in ends else ("eof",):
                if end == "reset" and bench.target.shape == "push":
                    continue
                judgement = reading.upto(offset, end)
                chunks = self._chunks(part, cuts.WHOLE) if part else ()
                trace = bench.driver.run(chunks, end)
                self._count()
                self._note_rules(judgement.breaches)
                run = Run(bench.target, reading, judgement, chunks, end, trace)
                how = "truncated" if end == "eof" else "connection reset"
                self._report(check(run, bench.oracles), partial(self._case, chunks, end), how)
            yield

    def _note_rules(self, breaches: Iterable[Any]) -> None:
        for breach in breaches:
            self.batch.goals[f"rule: {breach.rule.id}"] += 1

    def _probes(self, drawn: Drawn, data: bytes) -> Iterator[None]:
        if not self._spellable(data):
            return
        again = self._chunks(encode(self.provider, drawn.again), cuts.WHOLE)
        # State that two streams share shows best when they say different things.
        other, self.previous = self.previous or again, self._chunks(data, cuts.WHOLE)
        wire = Wire(data, self.provider.framing)
        aligned = self._chunks(data, cuts.frame_aligned(wire))
        for probe in PROBES:
            if not probe or not fits(self.bench, probe):
                continue
            if probe.startswith("growth") or probe == "leak":
                if self.streams == 1:
                    yield from self._probe(self._case(aligned if probe == "leak" else (), "eof", probe))
            elif probe == "isolated":
                yield from self._probe(self._case(aligned, "eof", probe, other))
                # State that leaks is the state in the middle of something: of a character, a line, a line end.
                for offset in cuts.hostile(wire)[self.streams % 7 :: 7]:
                    yield from self._probe(self._case(self._chunks(data, (offset,)), "eof", probe, other))
            else:
                yield from self._probe(self._case(aligned, "eof", probe, again if probe == "resliced" else ()))

    def _probe(self, case: Case) -> Iterator[None]:
        self._goal(f"probe: {case.probe}")
        self._count()
        self._report(self.bench.deviations(case), lambda: case, f"probe {case.probe}")
        yield

    def _case(self, chunks: Sequence[Any], end: End, probe: str = "", other: Sequence[Any] = ()) -> Case:
        return Case(self.provider.name, tuple(chunks), self.takes, end, probe, tuple(other))

    # -- targets that take frames or events -----------------------------------------------------------------------

    def _of_items(self, drawn: Drawn) -> Iterator[None]:
        stream, provider = drawn.stream, self.provider
        self._items(stream, LAWFUL)
        self._items(drawn.again, LAWFUL)
        for name, spoken in self._in_dialects(stream):
            self._items(spoken, name)
            yield
        for mutation in chain(rewritings(provider, stream), damage(provider, stream)):
            if mutation.name in EVENT_EDITS and mutation.name != "write it in another style":
                self._goal(f"damage: {mutation.name}")
                self._items(edit(provider, stream, (mutation,)), mutation.name)
                yield
        for length in range(len(stream.events)):
            self._items(replace(stream, events=stream.events[:length]), "truncated")
        yield

    def _items(self, stream: Stream, how: str) -> None:
        case = self._case(as_items(stream, self.takes), "eof")
        run = self.bench.run(case)
        self._count()
        self._note_rules(run.judgement.breaches)
        self._report(check(run, self.bench.oracles), lambda: case, how)


def plain_case(bench: Bench) -> Case:
    """The plainest stream of the target's provider, in the form that the target takes."""
    provider, takes = bench.provider, bench.target.takes
    drawn = draw_batch(_drawn(provider, Drawing(alphabet="a")), 1, 0)[0]
    if takes in ("bytes", "text"):
        data = encode(provider, drawn.again)
        return Case(provider.name, (data if takes == "bytes" else data.decode(),), takes)
    return Case(provider.name, as_items(drawn.again, takes), takes)


def as_items(stream: Stream, takes: str) -> tuple[Any, ...]:
    """The stream as a tuple of events (without those that are no JSON) or of frames."""
    if takes == "events":
        return tuple(event for event in stream.events if not isinstance(event.data, Raw))
    return tuple(Frame(text, name or "message") for text, name in payloads(stream.events, PLAIN))
