"""Run a target on chunks and write down what it did."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
import sysconfig
import threading
import traceback
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, TypeVar

from streamfuzz_strategies.judge import End

from .spec import Final, Incomplete, Target
from .trace import Ending, Failure, Trace, WrongForm, normal_event, normal_frame, normal_item, normal_view

T = TypeVar("T")

PROGRAMMING_MISTAKES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    SystemError,
    TypeError,
    UnicodeEncodeError,
)
"""Error types that no parser raises on purpose, for targets that declare none."""


class SourceResetError(ConnectionResetError):
    """The source broke off, as a socket does when the peer resets the connection."""


class Hang(BaseException):
    """Raised inside a target that has run for too long."""


class Source:
    """The chunks of one case, as an iterator that knows how many were taken and whether it was closed."""

    __slots__ = ("chunks", "closed", "dry", "end", "on_take", "taken")

    def __init__(self, chunks: Sequence[Any], end: End = "eof", on_take: Callable[[int], None] | None = None):
        self.chunks = chunks
        self.end = end
        self.taken = 0
        self.dry = 0
        self.closed = False
        self.on_take = on_take

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        taken = self.taken
        if taken < len(self.chunks):
            if self.on_take is not None:
                self.on_take(taken)
            self.taken = taken + 1
            return self.chunks[taken]
        self.dry = 1
        if self.end == "reset":
            raise SourceResetError("the connection was reset by the peer")
        raise StopIteration

    def close(self) -> None:
        """Release the source."""
        self.closed = True


class AsyncSource:
    """The same for async targets."""

    __slots__ = ("source",)

    def __init__(self, source: Source) -> None:
        self.source = source

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            return next(self.source)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Release the source."""
        self.source.close()


class Recorder(Protocol):
    """Is told what is run before it is run, so that a process that dies leaves word of what it was at."""

    def begin(
        self, target: Target, chunks: Sequence[Any], end: End, probe: str = "", other: Sequence[Any] = ()
    ) -> Trace | None:
        """Take down what is about to be run; what must not be run is answered with the trace that it would leave."""
        ...

    def end(self) -> None:
        """Take down that the run is over."""
        ...


recorder: Recorder | None = None
"""Is told of the runs of every driver made from now on; a supervised process sets it before it does anything."""


class Driver:
    """Runs one target, again and again.

    On the main thread a timer watches over every run: one that takes longer than the target's timeout is cut
    off with :class:`Hang`, and the trace says where it stood.  Use as a context manager.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.runs = 0
        self.seconds = 0.0
        self._started = 0.0
        self._recorder = recorder
        self._open = ExitStack()
        self._runner: asyncio.Runner | None = None
        # Frames and events are read after the run, so that the time spent on that is not taken for the target's.
        # Progress of a reply is read at once: a target may go on changing the mapping that it showed.
        self._late = target.gives in ("frames", "events")
        self._drive = {"iterable": self._iterate, "async": self._iterate_async, "push": self._push}[target.shape]

    def __enter__(self) -> Driver:
        self._open.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # a warning of the target is no error of the target
        self._open.enter_context(watchdog(self._overdue))
        if self.target.shape == "async":
            self._runner = self._open.enter_context(asyncio.Runner())
        return self

    def __exit__(self, *exc: object) -> None:
        self._runner = None
        self._open.close()

    def _overdue(self) -> bool:
        return bool(self._started) and perf_counter() - self._started > self.target.timeout

    def run(self, chunks: Sequence[Any], end: End = "eof", on_take: Callable[[int], None] | None = None) -> Trace:
        """Run the target once and return what it did.  Only KeyboardInterrupt passes through."""
        if self._recorder is None:
            return self._run(chunks, end, on_take)
        return self.experiment(lambda: self._run(chunks, end, on_take), chunks, end)

    def experiment(
        self, do: Callable[[], T], chunks: Sequence[Any], end: End, probe: str = "", other: Sequence[Any] = ()
    ) -> T | Trace:
        """Do something that runs the target, and have it taken down as one; a trace says that it must not be done."""
        if self._recorder is None:
            return do()
        refused = self._recorder.begin(self.target, chunks, end, probe, other)
        if refused is not None:
            return refused
        try:
            return do()
        finally:
            self._recorder.end()

    def _run(self, chunks: Sequence[Any], end: End, on_take: Callable[[int], None] | None) -> Trace:
        source = Source(chunks, end, on_take)
        items: list[Any] = []
        after: list[int] = []
        ending: Ending = "complete"
        result: Any = None
        failure: Failure | None = None
        streaming = False
        nested = self._started
        self._started = start = perf_counter()
        try:
            streaming, result = self._drive(source, items, after)
        except Hang as hang:
            ending, failure = "hang", describe(hang, self.target)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever the target raises is what we want to know
            failure = describe(error, self.target)
            meant = not isinstance(error, MemoryError) or isinstance(error, self.target.errors)
            ending = "error" if meant else "memory"
        finally:
            seconds = perf_counter() - start
            self._started = nested
            self.runs += 1
            self.seconds += seconds
        try:
            if self._late:
                items = list(map(normal_frame if self.target.gives == "frames" else normal_event, items))
            if failure is None:
                ending, result = self._result(result, items)
            else:
                result = None
        except WrongForm as error:
            items, after = [], []
            ending, result, failure = "error", None, describe(error, self.target)
        return Trace(tuple(items), tuple(after), ending, result, failure, source.taken, streaming, seconds)

    def _result(self, result: Any, items: list[Any]) -> tuple[Ending, Any]:
        ending: Ending = "complete"
        if isinstance(result, Incomplete):
            ending, result = "incomplete", result.view
        if self._late:
            return ending, None
        if self.target.gives == "json":
            return ending, result
        if result is None:
            finals = [item for item in items if isinstance(item, Final)]
            if finals:
                return ending, finals[-1].view
            text = "".join(getattr(item, "text", "") for item in items)
            # A target that returns nothing claims nothing, unless its deltas were all it had to say.
            return (ending, {"text": text}) if items and ending == "complete" else ("incomplete", {"text": text})
        return ending, normal_view(result)

    def _iterate(self, source: Source, items: list[Any], after: list[int]) -> tuple[bool, Any]:
        made = self.target.call(source)
        if isinstance(made, (list, tuple)) and self._late:
            items.extend(made)
            after.extend([source.taken + source.dry] * len(made))
            return False, None
        if not _is_stream(made):
            return False, made
        iterator = iter(made)
        while True:
            try:
                item = next(iterator)
            except StopIteration as stop:
                return True, stop.value
            items.append(item if self._late else normal_item(item, self.target.gives))
            after.append(source.taken + source.dry)

    def _iterate_async(self, source: Source, items: list[Any], after: list[int]) -> tuple[bool, Any]:
        async def consume() -> tuple[bool, Any]:
            made = self.target.call(AsyncSource(source))
            if inspect.isawaitable(made):
                made = await made
            if not hasattr(made, "__aiter__"):
                if isinstance(made, (list, tuple)) and self._late:
                    items.extend(made)
                    after.extend([source.taken + source.dry] * len(made))
                    return False, None
                return False, made
            result = None
            async for item in made:
                if isinstance(item, Incomplete):
                    result = item
                    continue
                items.append(item if self._late else normal_item(item, self.target.gives))
                after.append(source.taken + source.dry)
            return True, result

        if self._runner is None:
            raise RuntimeError("use the driver as a context manager")
        return self._runner.run(consume())

    def _push(self, source: Source, items: list[Any], after: list[int]) -> tuple[bool, Any]:
        parser = self.target.call()

        def note(made: Iterable[Any] | None) -> None:
            for item in made or ():
                items.append(item if self._late else normal_item(item, self.target.gives))
                after.append(source.taken + source.dry)

        for chunk in source:
            note(parser.feed(chunk))
        closed = parser.close()
        if self._late:
            note(closed)
            return True, None
        return True, closed


def _is_stream(made: Any) -> bool:
    if hasattr(made, "__next__"):
        return True
    if isinstance(made, (dict, list, tuple, str, bytes, Incomplete)) or made is None:
        return False
    return hasattr(made, "__iter__")


def _short(filename: str) -> str:
    """A file's name below the folder from which it is imported, so that it is the same on every machine."""
    roots = [root for entry in sys.path if entry and filename.startswith(root := f"{entry.rstrip(os.sep)}{os.sep}")]
    return filename.removeprefix(max(roots, key=len, default=""))


def describe(error: BaseException, target: Target) -> Failure:
    """Say what was raised, where, and whether the target meant to raise it."""
    if isinstance(error, WrongForm):
        declared = False
    elif target.errors:
        declared = isinstance(error, target.errors)
    else:
        declared = isinstance(error, Exception) and not isinstance(error, PROGRAMMING_MISTAKES)
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if not frame.filename.startswith(_HERE)] or frames
    inside = [frame for frame in inside if not _is_stdlib(frame.filename)] or inside
    where = f"{_short(inside[-1].filename)}:{inside[-1].lineno} in {inside[-1].name}" if inside else ""
    return Failure(
        type=type(error).__name__,
        message=_all_words(error),
        where=where,
        declared=declared,
        transport=_chain_has(error, SourceResetError),
    )


_HERE = str(Path(__file__).parent)
_STDLIB = sysconfig.get_path("stdlib")


def _is_stdlib(path: str) -> bool:
    return path.startswith((_STDLIB, "<frozen")) and "site-packages" not in path


def _all_words(error: BaseException) -> str:
    """Return the words of the error, of its attribute ``body`` and of what caused it."""
    words = []
    for link in _chain(error):
        if isinstance(link, (StopIteration, StopAsyncIteration)):
            continue  # the end of some iteration says nothing to anyone
        words.append(str(link))
        if getattr(link, "body", None) is not None:
            words.append(str(link.body))  # type: ignore[attr-defined]
    return " | ".join(dict.fromkeys(word for word in words if word))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _chain_has(error: BaseException, kind: type[BaseException]) -> bool:
    return any(isinstance(link, kind) for link in _chain(error))


@contextmanager
def watchdog(overdue: Callable[[], bool], interval: float = 0.1) -> Iterator[None]:
    """Interrupt the main thread with :class:`Hang` whenever ``overdue`` says so.

    Elsewhere than on the main thread, and where the platform has no interval timer, nothing is watched.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def check(signum: int, frame: object) -> None:
        if overdue():
            raise Hang("the run took too long")

    before = signal.signal(signal.SIGALRM, check)
    rest = signal.setitimer(signal.ITIMER_REAL, interval, interval)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *rest)
        signal.signal(signal.SIGALRM, before)
