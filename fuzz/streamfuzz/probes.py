"""Experiments that take more than one run of a target: two streams at once, an early close, growth.

Each oracle is one function; its docstring opens with the invariant.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from time import perf_counter, process_time
from typing import Any, TypeAlias

from streamfuzz_strategies import providers
from streamfuzz_strategies.judge import Reading
from streamfuzz_strategies.providers import Provider
from streamfuzz_strategies.reply import Choice, Json, Reply, Text
from streamfuzz_strategies.stream import Event, Raw, payloads
from streamfuzz_strategies.style import PLAIN

from .case import Case
from .compare import views
from .deviation import Deviation, Run
from .drive import Driver, Hang, Source
from .oracles import faithful, unended
from .trace import UNENDED, Trace, WrongForm, normal_view

Probe: TypeAlias = Callable[[Driver, Provider, Case], Iterator[Deviation]]


def isolated(driver: Driver, provider: Provider, case: Case) -> Iterator[Deviation]:
    """Two streams interleaved, or one after a failure, each equal their solo run."""
    alone, other_alone = driver.run(case.chunks), driver.run(case.other)
    if not UNENDED.isdisjoint((alone.ending, other_alone.ending)):
        return
    if driver.run(case.other).outcome() != other_alone.outcome():
        return  # not even two solo runs agree: no statement about interleaving can be made
    driver.run(case.chunks[: len(case.chunks) // 2])
    after = driver.run(case.other)
    if after.outcome() != other_alone.outcome():
        yield _mixed("a stream read after one that was cut off", other_alone, after)
        return
    if driver.target.shape == "async":
        return
    inner: list[Trace] = []

    def between(taken: int) -> None:
        if taken == (len(case.chunks) + 1) // 2:
            inner.append(driver.run(case.other))

    outer = driver.run(case.chunks, on_take=between)
    if inner and inner[0].outcome() != other_alone.outcome():
        yield _mixed("a stream read while another one is open", other_alone, inner[0])
    elif outer.outcome() != alone.outcome():
        yield _mixed("a stream during which another one is read", alone, outer)


def _mixed(what: str, alone: Trace, together: Trace) -> Deviation:
    return Deviation("isolated", "mixed", what, _end(alone), _end(together))


def _end(trace: Trace) -> Json:
    if trace.failure is not None:
        return f"{trace.failure.type}: {trace.failure.message}"
    return trace.result if trace.result is not None else list(map(str, trace.items))


def released(driver: Driver, provider: Provider, case: Case) -> Iterator[Deviation]:
    """Closing or cancelling closes the source; nothing is delivered afterwards."""
    target = driver.target
    if target.shape != "iterable":
        return
    for stop in (1, 2, 3):
        source = Source(case.chunks)
        try:
            made = target.call(source)
            if not hasattr(made, "close") or not hasattr(made, "__next__"):
                return
            for _ in range(stop):
                next(made)
        except Exception:  # noqa: BLE001 - a stream that ends or fails this early has nothing left to close
            return
        taken = source.taken
        try:
            made.close()
        except Exception as error:  # noqa: BLE001 - whatever closing raises is the finding
            yield Deviation("released", "leaked", "closing", None, f"{type(error).__name__}: {error}")
            return
        rest = next(iter(made), _NOTHING)
        if rest is not _NOTHING:
            yield Deviation("released", "leaked", "an item delivered after closing", None, str(rest))
            return
        if source.taken != taken:
            yield Deviation("released", "leaked", "the source, read on after closing", taken, source.taken)
            return
        del made
        gc.collect(0)
        if target.closes_source and not source.closed:
            yield Deviation("released", "leaked", "the source, left open after closing", "closed", "open")
            return


_NOTHING = object()


def resliced(driver: Driver, provider: Provider, case: Case) -> Iterator[Deviation]:
    """Two encodings of one message give one result."""
    if driver.target.gives != "reply":
        return
    one, other = driver.run(case.chunks), driver.run(case.other)
    if not (_right(provider, case.chunks, one) and _right(provider, case.other, other)):
        return  # then faithful has it
    if _accepted(provider, case.chunks) != _accepted(provider, case.other):
        return  # these are two messages
    if one.ending == other.ending == "complete" and one.result != other.result:
        for name in one.result:
            if one.result[name] != other.result.get(name):
                yield Deviation("resliced", "differs", f"the {name}", one.result[name], other.result.get(name))
                return


def parity(driver: Driver, provider: Provider, case: Case) -> Iterator[Deviation]:
    """The streamed result equals the non-streamed one."""
    whole = driver.target.whole
    accepted = Reading(provider, case.data).judgement.accepted
    if whole is None or provider.body is None or not accepted or driver.target.gives != "reply":
        return
    body = provider.body(accepted[0])
    if body is None:
        return  # the API has no such answer without streaming
    streamed = driver.run(case.chunks)
    if not _right(provider, case.chunks, streamed):
        return  # then faithful has it
    try:
        buffered = normal_view(whole(body))
    except WrongForm as error:
        yield Deviation("parity", "differs", "the answer that was not streamed", streamed.result, str(error))
        return
    except Exception as error:  # noqa: BLE001 - the target's own failure is the finding
        got = f"{type(error).__name__}: {error}"
        yield Deviation("parity", "differs", "the answer that was not streamed", streamed.result, got)
        return
    for name in streamed.result:
        if name in buffered and streamed.result[name] != buffered[name]:
            yield Deviation("parity", "differs", f"the {name}", buffered[name], streamed.result[name])
            return


def _right(provider: Provider, chunks: Sequence[Any], trace: Trace) -> bool:
    if trace.ending != "complete" or trace.result is None:
        return False
    return any(views(trace.result, reply) is None for reply in _accepted(provider, chunks))


def _accepted(provider: Provider, chunks: Sequence[Any]) -> tuple[Reply, ...]:
    data = b"".join(chunk if isinstance(chunk, bytes) else chunk.encode() for chunk in chunks)
    return Reading(provider, data).judgement.accepted


SIZES = (5_000, 80_000)
"""Sizes in bytes for the growth probe; the large one is beyond the limits that line readers ship with."""

TOO_STEEP = 4.0
"""Growth of the time per byte from the small size to the large that counts as more than linear."""

NOTICEABLE = 0.05
"""Seconds below which the large size is too quick for a statement about growth."""


def growth(driver: Driver, provider: Provider, case: Case) -> Iterator[Deviation]:
    """Time grows linearly with the stream, a limit on size is an error, and nothing hangs."""
    make = _long_event if case.probe == "growth-long" else _many_events
    what = "one long event in small pieces" if case.probe == "growth-long" else "many small events in one chunk"
    first, last = make(provider, SIZES[0]), make(provider, SIZES[-1])
    reading = Reading(provider, b"".join(last))
    if driver.target.takes == "text":
        first, last = [c.decode() for c in first], [c.decode() for c in last]
    trace = driver.run(last)
    if trace.ending == "hang":
        yield Deviation("bounded", "hung", what, None, f"still running after {driver.target.timeout:g} s")
        return
    if trace.ending in UNENDED:
        yield unended(trace, driver.target)
        return
    wrong = list(faithful(Run(driver.target, reading, reading.judgement, last, "eof", trace)))
    if wrong and not _short_is_wrong(driver, provider, make):
        got = wrong[0].got if wrong[0].kind == "refused" else None
        yield Deviation("bounded", "refused" if got else "lost", what, None, got)
        return
    if _cost(driver, last) < NOTICEABLE:
        return
    # A busy machine slows single rounds; only what every round shows is the target's doing.
    steep = min(_cost(driver, last) * SIZES[0] / (_cost(driver, first) * SIZES[-1]) for _ in range(3))
    if steep > TOO_STEEP:
        times = SIZES[-1] // SIZES[0]
        got = f"{times} times the bytes took {steep * times:.0f} times as long"
        yield Deviation("bounded", "slow", what, "time in proportion", got)


def _short_is_wrong(driver: Driver, provider: Provider, make: Callable[[Provider, int], list[Any]]) -> bool:
    """Whether the target is wrong about a stream of this make even if it is short; then size is not why."""
    chunks = make(provider, 400)
    reading = Reading(provider, b"".join(chunks))
    if driver.target.takes == "text":
        chunks = [chunk.decode() for chunk in chunks]
    trace = driver.run(chunks)
    return bool(list(faithful(Run(driver.target, reading, reading.judgement, chunks, "eof", trace))))


def _cost(driver: Driver, chunks: Sequence[Any]) -> float:
    """Processor seconds of a run, the best of three."""

    def once() -> float:
        start = process_time()
        driver.run(chunks)
        return process_time() - start

    return min(once() for _ in range(3))


TOO_SLOW = 0.02
"""Seconds of a run above which a target is not asked for leaks."""

WARMING = 0.015
"""Seconds of runs that come before what is measured, and as many are measured first."""

BELIEVED = 1000
"""Runs until which memory that grows may be a cache that fills."""

DOUBTING = 6.0
"""Seconds that it may take to make sure of a leak; of a target that needs more, nothing is said."""

LEAKED = 0.05
"""Bytes kept of each byte of a stream that count as a leak; a count or a flag for each stream is less."""

LITTLE = 60.0
"""Bytes kept of a stream that are no leak however short it is: less than an empty list takes in another."""


def leak(driver: Driver, provider: Provider, case: Case) -> Iterator[Deviation]:
    """The memory that is kept does not grow with the number of streams that were read."""
    trace = driver.run(case.chunks, case.end)
    if trace.ending in UNENDED or trace.seconds > TOO_SLOW:
        return
    runs = min(100, max(10, int(WARMING / trace.seconds)))
    limit = max(LITTLE, LEAKED * case.size)
    with _traced():
        _run_often(driver, case, runs)
        before, started, done = _kept(), perf_counter(), 0
        while done < BELIEVED:
            _run_often(driver, case, runs)
            now, done = _kept(), done + runs
            each = (now - before) / runs
            if each < limit or BELIEVED * (perf_counter() - started) / done > DOUBTING:
                return
            before, runs = now, done  # a cache that was full half way no longer shows
    yield Deviation("bounded", "leaked", "memory, in bytes kept of every stream that was read:", 0, round(each))


def _run_often(driver: Driver, case: Case, runs: int) -> None:
    for _ in range(runs):
        driver.run(case.chunks, case.end)


@contextmanager
def _traced() -> Iterator[None]:
    """Trace allocations; what is there already is kept out of the garbage collector's way, which makes it quick."""
    tracing = tracemalloc.is_tracing()
    gc.freeze()
    if not tracing:
        tracemalloc.start()
    try:
        yield
    finally:
        if not tracing:
            tracemalloc.stop()
        gc.unfreeze()


def _kept() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _long_event(provider: Provider, size: int) -> list[Any]:
    data = _stream(provider, [("x" * size)])
    return [data[i : i + 16] for i in range(0, len(data), 16)]


def _many_events(provider: Provider, size: int) -> list[Any]:
    unit = len(_stream(provider, ["ab"] * 200)) / 200
    return [_stream(provider, ["ab"] * max(2, int(size / unit)))]


def _stream(provider: Provider, texts: Sequence[str]) -> bytes:
    """Encode a message whose text comes in these deltas (for plain profiles: frames or lines with these texts)."""
    if provider.text_payloads:
        events: list[Event] = [Event(Raw(text)) for text in texts]
    elif provider.name == "ndjson":
        events = [Event({"text": text}) for text in texts]
    elif provider.name == "json":
        events = [Event({"texts": list(texts)})]
    else:
        events = _with_texts(provider, texts)
    return provider.framing.encode(payloads(events, PLAIN), PLAIN)


def _with_texts(provider: Provider, texts: Sequence[str]) -> list[Event]:
    """A text message in these deltas; events that tell the whole text tell all of it."""
    plain = _plain_text(provider.name)
    holding = [not isinstance(event.data, Raw) and _MARK in str(event.data) for event in plain]
    events: list[Event] = []
    for event, holds in zip(plain, holding, strict=True):
        if holds and (sum(holding) == 1 or "delta" in provider.kind(event)):
            events.extend(_filled(event, text) for text in texts)
        else:
            events.append(_filled(event, "".join(texts)) if holds else event)
    return list(provider.renumber(events)) if provider.renumber is not None else events


_MARK = "<text>"
"""Where the text goes in the plainest stream of a provider."""


@cache
def _plain_text(name: str) -> tuple[Event, ...]:
    """The plainest stream of a text with one of the finish reasons that providers have."""
    provider = providers.get(name)
    for finish in ("stop", "end_turn", "completed"):
        events = provider.plain_events(Reply((Choice((Text(_MARK),), finish),), "id", "model"))
        data = provider.framing.encode(payloads(events, PLAIN), PLAIN)
        if Reading(provider, data).judgement.level == "none":
            return events
    raise LookupError(f"no plain stream of {name} is lawful")


def _filled(event: Event, text: str) -> Event:
    return Event(_replace(event.data, text), event.name)


def _replace(value: Json, text: str) -> Json:
    if isinstance(value, str):
        return value.replace(_MARK, text)
    if isinstance(value, dict):
        return {name: _replace(member, text) for name, member in value.items()}
    return [_replace(member, text) for member in value] if isinstance(value, list) else value


ORACLES: Mapping[str, Probe] = {
    "isolated": isolated,
    "released": released,
    "resliced": resliced,
    "parity": parity,
}
"""The oracles that need experiments of their own."""

_OF_BOUNDED: Mapping[str, Probe] = {"growth-long": growth, "growth-many": growth, "leak": leak}


def run(driver: Driver, provider: Provider, case: Case) -> list[Deviation]:
    """Run the experiment that the case names."""
    probe = {**ORACLES, **_OF_BOUNDED}[case.probe]

    def do() -> list[Deviation]:
        try:
            return list(probe(driver, provider, case))
        except Hang:
            return [Deviation("bounded", "hung", "the target")]

    found = driver.experiment(do, case.chunks, case.end, case.probe, case.other)
    return [unended(found, driver.target)] if isinstance(found, Trace) else found
