"""Running a target: every shape tells the same story, and whatever it does, the run ends and is written down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import pytest

from streamfuzz.drive import Driver, Source, SourceResetError
from streamfuzz.spec import Delta, Final, Incomplete, Snapshot, Target, target
from streamfuzz.trace import Trace

CHUNKS = (b"a", b"", b"bc")


def run(call: Any, chunks: tuple[Any, ...] = CHUNKS, end: Any = "eof", **more: Any) -> Trace:
    return run_target(target(call, **more), chunks, end)


def run_target(made: Target, chunks: tuple[Any, ...] = CHUNKS, end: Any = "eof") -> Trace:
    with Driver(made) as driver:
        return driver.run(chunks, end)


# --- shapes


def function(chunks: Iterable[bytes]) -> Any:
    return {"text": b"".join(chunks).decode()}


def generator(chunks: Iterable[bytes]) -> Any:
    whole = ""
    for chunk in chunks:
        whole += chunk.decode()
        yield chunk.decode()
    return {"text": whole}


async def async_function(chunks: AsyncIterator[bytes]) -> Any:
    return {"text": b"".join([chunk async for chunk in chunks]).decode()}


async def async_generator(chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    whole = ""
    async for chunk in chunks:
        await asyncio.sleep(0)
        whole += chunk.decode()
        yield chunk.decode()
    yield Final({"text": whole})


class Push:
    def __init__(self) -> None:
        self.whole = ""

    def feed(self, chunk: bytes) -> list[str]:
        self.whole += chunk.decode()
        return [chunk.decode()]

    def close(self) -> Any:
        return {"text": self.whole}


@pytest.mark.parametrize("call", [function, generator, async_function, async_generator, Push])
def test_every_shape_comes_to_the_same_result(call: Any) -> None:
    trace = run(call)
    assert (trace.ending, trace.result) == ("complete", {"text": "abc"})
    assert trace.failure is None
    assert trace.taken == 3


@pytest.mark.parametrize("call", [generator, async_generator, Push])
def test_progress_is_kept_with_the_chunks_that_had_been_taken(call: Any) -> None:
    trace = run(call)
    assert trace.streaming
    assert trace.items[:3] == (Delta("a"), Delta(""), Delta("bc"))
    assert trace.after[:3] == (1, 2, 3)


def test_what_comes_once_the_source_is_dry_comes_after_more_chunks_than_there_are() -> None:
    assert run(async_generator).after == (1, 2, 3, 4)

    def late(chunks: Iterable[bytes]) -> Iterator[str]:
        yield b"".join(chunks).decode()

    assert run(late).after == (4,)
    assert run(late).result == {"text": "abc"}


@pytest.mark.parametrize("call", [function, async_function])
def test_a_function_shows_nothing_on_the_way(call: Any) -> None:
    trace = run(call)
    assert (trace.items, trace.streaming) == ((), False)


# --- frames and events


def lines(chunks: Iterable[bytes]) -> list[str]:
    return b"".join(chunks).decode().split()


def test_frames_may_come_as_a_list_or_one_by_one() -> None:
    def one_by_one(chunks: Iterable[bytes]) -> Iterator[str]:
        for chunk in chunks:
            yield from chunk.decode().split()

    class Frames(Push):
        def feed(self, chunk: bytes) -> list[str]:
            return chunk.decode().split()

        def close(self) -> Any:
            return ["end"]

    async def later(chunks: AsyncIterator[bytes]) -> list[str]:
        return [word async for chunk in chunks for word in chunk.decode().split()]

    chunks = (b"a b", b"c")
    items = tuple({"data": word} for word in "abc")
    at_once = run(lines, (b"a b ", b"c"), provider="sse")
    assert (at_once.items, at_once.after, at_once.streaming) == (items, (3, 3, 3), False)
    streamed = run(one_by_one, chunks, provider="sse")
    assert (streamed.items, streamed.after, streamed.streaming) == (items, (1, 1, 2), True)
    pushed = run(Frames, chunks, provider="sse")
    assert (pushed.items, pushed.after) == ((*items, {"data": "end"}), (1, 1, 2, 3))
    awaited = run(later, chunks, provider="sse")
    assert (awaited.items, awaited.streaming) == (items, False)


def test_events_are_kept_as_json() -> None:
    assert run(lambda chunks: [{"n": len(c)} for c in chunks], gives="events").items == ({"n": 1}, {"n": 0}, {"n": 2})


def test_a_json_value_is_kept_as_it_is() -> None:
    assert run(lambda chunks: [1, 2], provider="json").result == [1, 2]
    assert run(lambda chunks: None, provider="json").ending == "complete"


# --- endings


def test_incomplete_is_said_by_returning_or_yielding_it() -> None:
    assert run(lambda chunks: Incomplete({"text": "a"})).ending == "incomplete"
    assert run(lambda chunks: Incomplete({"text": "a"})).result == {"text": "a"}

    async def later(chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        yield "a"
        yield Incomplete()

    assert run(later).ending == "incomplete"
    assert run(later).result == {"text": "a"}


def test_returning_nothing_claims_nothing() -> None:
    assert run(lambda chunks: None).ending == "incomplete"


def test_the_last_final_is_the_result_of_what_returns_nothing() -> None:
    def reports(chunks: Iterable[bytes]) -> Iterator[Any]:
        yield Final({"text": "a"})
        yield Final({"text": "b"})

    assert run(reports).result == {"text": "b"}


def test_a_broken_connection_reaches_the_target_as_one() -> None:
    trace = run(function, end="reset")
    assert trace.ending == "error"
    assert trace.failure is not None
    assert (trace.failure.type, trace.failure.transport) == ("SourceResetError", True)
    assert issubclass(SourceResetError, ConnectionError)

    def wraps(chunks: Iterable[bytes]) -> Any:
        try:
            return function(chunks)
        except ConnectionError as error:
            raise ValueError("broke off") from error

    wrapped = run(wraps, end="reset").failure
    assert wrapped is not None
    assert (wrapped.type, wrapped.transport) == ("ValueError", True)
    assert wrapped.message == "broke off | the connection was reset by the peer"


# --- errors


class Meant(Exception):
    pass


def raising(error: BaseException) -> Any:
    def parser(chunks: Iterable[bytes]) -> Any:
        next(iter(chunks))
        raise error

    return parser


@pytest.mark.parametrize(
    ("error", "errors", "declared"),
    [
        (Meant("m"), (Meant,), True),
        (ValueError("m"), (Meant,), False),
        (ValueError("m"), (), True),
        (IndexError("m"), (), False),
        (IndexError("m"), (LookupError,), True),
        (RecursionError("m"), (), False),
        (SystemExit(3), (), False),
        (GeneratorExit(), (), False),
    ],
)
def test_an_error_is_meant_if_it_is_declared(error: BaseException, errors: Any, declared: bool) -> None:
    trace = run(raising(error), errors=errors)
    assert trace.ending == "error"
    assert trace.failure is not None
    assert (trace.failure.type, trace.failure.declared) == (type(error).__name__, declared)
    assert (trace.result, trace.taken) == (None, 1)


def test_an_error_says_where_it_was_raised_and_all_its_words() -> None:
    error = Meant("outer")
    error.__cause__ = ValueError("inner")
    error.body = {"why": "quota"}  # type: ignore[attr-defined]
    failure = run(raising(error)).failure
    assert failure is not None
    assert failure.message == "outer | {'why': 'quota'} | inner"
    where, _, line = failure.where.partition(":")
    assert __file__.endswith(where)
    assert where.endswith("test_drive.py")
    assert not where.startswith("/")
    assert line.partition(" ")[0].isdigit()
    assert failure.where.endswith(" in parser")


def test_an_error_that_causes_itself_is_told_once() -> None:
    error = Meant("round")
    other = Meant("and round")
    error.__cause__, other.__cause__ = other, error
    failure = run(raising(error)).failure
    assert failure is not None
    assert failure.message == "round | and round"


@pytest.mark.parametrize("call", [generator, async_generator, Push])
def test_what_was_shown_before_an_error_is_kept(call: Any) -> None:
    trace = run(call, (b"a", b"\xff", b"b"))
    assert (trace.ending, trace.items, trace.taken) == ("error", (Delta("a"),), 2)


def test_only_the_users_interrupt_passes_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(raising(KeyboardInterrupt()))


@pytest.mark.parametrize(
    ("call", "more"),
    [
        (lambda chunks: 7, {}),
        (lambda chunks: iter([b"a"]), {}),
        (lambda chunks: [7], {"provider": "sse"}),
        (lambda chunks: [object()], {"gives": "events"}),
    ],
)
def test_another_form_than_declared_is_an_error(call: Any, more: dict[str, Any]) -> None:
    trace = run(call, **more)
    assert trace.ending == "error"
    assert trace.failure is not None
    assert (trace.failure.type, trace.failure.declared) == ("WrongForm", False)


# --- hangs


def spins(chunks: Iterable[bytes]) -> Any:
    while True:
        pass


async def waits(chunks: AsyncIterator[bytes]) -> Any:
    await asyncio.sleep(60)


class PushSpins(Push):
    def close(self) -> Any:
        return spins(())


@pytest.mark.parametrize(("call", "where"), [(spins, "spins"), (PushSpins, "spins"), (waits, "")])
def test_a_hang_is_cut_off_and_the_place_is_told(call: Any, where: str) -> None:
    started = time.perf_counter()
    trace = run(call, timeout=0.1)
    assert time.perf_counter() - started < 2
    assert trace.ending == "hang"
    assert trace.failure is not None
    assert trace.failure.where.endswith(where)


@pytest.mark.parametrize(("errors", "ending"), [((), "memory"), ((Meant,), "memory"), ((MemoryError,), "error")])
def test_running_out_of_memory_is_an_ending_of_its_own(errors: Any, ending: str) -> None:
    trace = run(lambda chunks: bytearray(10**18), errors=errors)
    assert trace.ending == ending
    assert trace.failure is not None
    assert (trace.failure.type, trace.failure.lost) == ("MemoryError", False)


def test_a_driver_goes_on_after_a_hang() -> None:
    def hangs_on_nothing(chunks: Iterable[bytes]) -> Any:
        return function(chunks) if list(chunks) else spins(())

    with Driver(target(hangs_on_nothing, timeout=0.1)) as driver:
        assert [driver.run(chunks).ending for chunks in ((), CHUNKS, (), CHUNKS)] == ["hang", "complete"] * 2


# --- the driver and its source


def test_runs_and_seconds_are_counted() -> None:
    with Driver(target(lambda chunks: time.sleep(0.01))) as driver:
        assert driver.run(CHUNKS).seconds >= 0.01
        driver.run(CHUNKS)
        assert driver.runs == 2
        assert driver.seconds >= 0.02


def test_a_run_may_stand_inside_another() -> None:
    inner: list[Trace] = []
    with Driver(target(function)) as driver:
        outer = driver.run(CHUNKS, on_take=lambda taken: inner.append(driver.run((b"x",))) if taken == 1 else None)
    assert outer.result == {"text": "abc"}
    assert [trace.result for trace in inner] == [{"text": "x"}]


def test_progress_is_kept_as_it_was_when_it_was_shown() -> None:
    def grows(chunks: Iterable[bytes]) -> Any:
        shown = {"text": ""}
        for chunk in chunks:
            shown["text"] += chunk.decode()
            yield Snapshot(shown)

    assert [item.view["text"] for item in run(grows).items] == ["a", "a", "abc"]


def test_an_async_target_needs_the_driver_opened() -> None:
    trace = Driver(target(async_function)).run(CHUNKS)
    assert trace.failure is not None
    assert "context manager" in trace.failure.message


def test_the_timer_is_given_back() -> None:
    import signal

    before = signal.getsignal(signal.SIGALRM)
    with Driver(target(function)):
        assert signal.getsignal(signal.SIGALRM) is not before
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_source_counts_what_is_taken_and_knows_when_it_is_closed() -> None:
    source = Source(CHUNKS)
    assert (source.taken, source.dry, source.closed) == (0, 0, False)
    assert list(source) == list(CHUNKS)
    assert (source.taken, source.dry) == (3, 1)
    source.close()
    assert source.closed
