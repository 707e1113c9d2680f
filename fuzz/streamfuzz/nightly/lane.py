"""A lane: one worker process at a time, and what is done about it when it dies, hangs, or eats all memory.

The parent hands tasks over a pipe, waits, and reads the black box when no answer comes.  So a target that takes
its interpreter down costs one process, and is known by the case that it was at.

Where the platform has no address space limit or no signals (only Linux has both as they are used here), memory is
not bounded, and a process that cannot be interrupted is killed all the same.
"""

from __future__ import annotations

import atexit
import multiprocessing as mp
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import DefaultContext
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakSet

from .. import drive
from ..box import Box, Deadly, Recorder
from ..case import Case
from ..spec import UsageError
from ..trace import Ending

T = TypeVar("T")

TICK = 0.1
"""Seconds between two looks at a process that has not answered yet."""

STARTING = 60.0
"""Seconds that a process may take until it is ready for its first task."""


# A process forked from a clean one that has imported what it needs is there in no time; others begin from nothing.
_METHOD: DefaultContext = mp.get_context("forkserver" if sys.platform == "linux" else "spawn")  # type: ignore[assignment]
_METHOD.set_forkserver_preload([f"{__package__}.guarded", "streamfuzz.cli"])


@dataclass(frozen=True, slots=True)
class Limits:
    """What a worker process may use.

    Attributes:
        memory: bytes on top of what it takes once its target is loaded (``None``: no limit).
        patience: seconds that a single run of a target may take before its process is killed.  Most hangs are cut
            off without that, after the target's own timeout.
    """

    memory: int | None = None
    patience: float = 30.0


class Lost(Exception):
    """A worker process was lost in the middle of a task.

    Attributes:
        how: in words.
        name: as a short name: of a signal, ``exit 3``, ``killed``, ``MemoryError``.
        ending: what that is for the run that it was at.
        case: what it was running, as far as that is known.
    """

    def __init__(self, how: str, name: str, ending: Ending, case: Case | None) -> None:
        super().__init__(how)
        self.how, self.name, self.ending, self.case = how, name, ending, case


class Closed(Exception):
    """The lanes were closed; nobody waits for the answer any more."""


class _Session:
    """The lanes that are stopped and closed together."""

    def __init__(self) -> None:
        self.stopping = False
        self.closed = False
        self.lanes: WeakSet[Lane] = WeakSet()


_session = _Session()
_adding = threading.Lock()
_own = threading.local()


def lane(limits: Limits) -> Lane:
    """The lane of this thread."""
    mine: Lane | None = getattr(_own, "lane", None)
    if mine is None or mine.limits != limits or mine.session is not _session:
        if mine is not None:
            mine.close()
        mine = _own.lane = Lane(limits, _session)
    return mine


def guarded(task: Callable[..., T], *args: Any, limits: Limits) -> T:
    """Do a task in the worker process of this thread: a function of a module, with arguments that can be pickled.

    Raises:
        Lost: the process died, or had to be killed.
        UsageError: the task raised one, or this process may start no others.
        RuntimeError: the task raised something else; the message holds its traceback.
    """
    answer: T = lane(limits).run(task, *args)
    return answer


def ask_to_stop() -> None:
    """Make all running tasks hand in what they have."""
    _session.stopping = True


def close_all() -> None:
    """End all worker processes at once; tasks begun afterwards get new ones."""
    global _session
    before, _session = _session, _Session()
    before.stopping = before.closed = True
    with _adding:
        lanes = list(before.lanes)
    for one in lanes:
        one.kill()


# Before multiprocessing's own handler, which waits for every process that is left; handlers run last in, first out.
atexit.register(close_all)


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    pipe: Connection
    box: Box


class Lane:
    """One worker process at a time.  Belongs to the thread that runs tasks in it."""

    def __init__(self, limits: Limits, session: _Session | None = None) -> None:
        self.limits = limits
        self.session = session or _Session()
        with _adding:
            self.session.lanes.add(self)
        self._worker: _Worker | None = None

    def run(
        self,
        task: Callable[..., Any],
        *args: Any,
        avoid: Sequence[Deadly] = (),
        told: Callable[[Any], None] = lambda news: None,
        patience: float | None = None,
    ) -> Any:
        """Do a task in the worker process.

        Args:
            task: a function of a module.
            args: its arguments, which must pickle.
            avoid: cases that are not run but taken to be deadly.
            told: is given what the task tells on the way.
            patience: instead of the one of the limits.

        Raises:
            Lost, UsageError, RuntimeError: as :func:`guarded`.
            Closed: the lanes were closed.
        """
        if self.session.closed:
            raise Closed
        worker = self._ready()
        try:
            worker.pipe.send((task, args, tuple(avoid)))
            kind, content, spent = self._wait(worker, told, patience or self.limits.patience)
        except (EOFError, OSError):
            raise self._lost(worker, None) from None
        except BaseException:
            self.close()
            raise
        if spent:
            self.close()
        if kind == "usage":
            raise UsageError(content)
        if kind == "failed":
            raise RuntimeError(f"a worker process failed at its task:\n{content}")
        if kind == "spent":
            raise Lost(f"needed more than {_size(self.limits.memory)}", "MemoryError", "memory", content)
        return content

    def _wait(self, worker: _Worker, told: Callable[[Any], None], patience: float) -> tuple[str, Any, bool]:
        """Wait for the answer, with an eye on the clock."""
        number, since = None, monotonic()
        while True:
            wait([worker.pipe, worker.process.sentinel], TICK)
            if self.session.stopping:
                worker.box.stop = True
            if worker.pipe.poll():
                kind, content, spent = worker.pipe.recv()
                if kind != "told":
                    return kind, content, spent
                told(content)
                continue
            if not worker.process.is_alive():
                raise EOFError
            now = worker.box.running
            if now is None or now != number:
                number, since = now, monotonic()
            elif monotonic() - since > patience:
                raise self._lost(worker, patience)

    def _ready(self) -> _Worker:
        """The process, started if there is none; one that died while it had nothing to do is replaced."""
        # Who has nothing to do says nothing, so what can be read is the end.
        if self._worker is not None and not self._worker.pipe.poll():
            return self._worker
        self.close()
        if mp.current_process().daemon:
            raise UsageError(
                "this process may start no other processes, so targets cannot be guarded in it: start Dask workers "
                "with `dask worker --no-nanny`, or set distributed.worker.daemon to false"
            )
        box = Box.make()
        mine, theirs = _METHOD.Pipe()
        process = _METHOD.Process(target=serve, args=(theirs, box.path, self.limits.memory), name="streamfuzz")
        try:
            process.start()
        except BaseException:
            box.close()
            raise
        theirs.close()
        self._worker = worker = _Worker(process, mine, box)
        if not _is_ready(mine):
            self.close()
            if self.session.closed:
                raise Closed
            raise UsageError(
                f"a worker process did not start (exit code {process.exitcode}): if streamfuzz is called from a "
                f"script, call it below `if __name__ == '__main__':`"
            )
        box.unlink()
        return worker

    def _lost(self, worker: _Worker, waited: float | None) -> Lost:
        """Read the box of a process that is lost, and clear up."""
        case = worker.box.case
        process = worker.process
        if waited is None:
            process.join(1.0)
        cut = process.is_alive()
        self.close()
        if self.session.closed:
            raise Closed
        if waited is not None:
            return Lost(f"still running after {waited:g} s, and had to be killed", "killed", "hang", case)
        if cut:
            return Lost("broke the connection to its parent process", "cut off", "died", case)
        code = process.exitcode or 0
        if code >= 0:
            return Lost(f"exited with code {code}", f"exit {code}", "died", case)
        return Lost(*_signal(-code), "died", case)

    def kill(self) -> None:
        """End the process at once; the thread that the lane belongs to finds out and clears up."""
        if self._worker is not None:
            self._worker.process.kill()

    def close(self) -> None:
        """End the process and let go of all that belongs to it."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()
            worker.box.close()

    def __del__(self) -> None:
        # The thread is gone.  Its process ends by itself, once the pipe is closed.
        if self._worker is not None:
            self._worker.pipe.close()
            self._worker.box.close()


def _is_ready(pipe: Connection) -> bool:
    try:
        return pipe.poll(STARTING) and bool(pipe.recv() == READY)
    except (EOFError, OSError):
        return False


def _signal(number: int) -> tuple[str, str]:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    memory = ", as the system does when memory runs out" if name == "SIGKILL" else ""
    return f"killed by signal {number} ({name}){memory}", name


def _size(count: int | None) -> str:
    if count is None:
        return "there is"
    return f"{count / 1e9:.3g} GB" if count >= 1e9 else f"{count / 1e6:.3g} MB"


# -- in the worker ----------------------------------------------------------------------------------------------------

READY = "ready"


@dataclass(slots=True)
class Here:
    """The worker that this process is."""

    recorder: Recorder
    pipe: Connection

    def tell(self, news: Any) -> None:
        """Tell the parent something before the task is done."""
        self.pipe.send(("told", news, False))


here: Here | None = None
"""Set in a worker process."""


def serve(pipe: Connection, path: str, memory: int | None) -> None:
    """Do tasks until the parent closes the pipe, or is gone.  Never returns."""
    global here
    for name in ("SIGINT", "SIGTERM"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)  # the parent decides when to stop
    _end_with_parent()
    _silence()
    recorder = Recorder(Box(path), memory)
    drive.recorder = recorder
    here = Here(recorder, pipe)
    with suppress(EOFError, OSError):
        pipe.send(READY)
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes(), recorder))
    os._exit(0)  # whatever threads the target has left behind


def _answer(request: bytes, recorder: Recorder) -> bytes:
    """Do a task; the answer is its kind, its content, and whether this process had better be replaced."""
    try:
        task, args, recorder.avoid = pickle.loads(request)
        result = task(*args)
        return bytes(ForkingPickler.dumps(("done", result, recorder.box.stop or recorder.is_spent())))
    except MemoryError:
        answer: tuple[str, Any, bool] = ("spent", None, True)
    except UsageError as error:
        answer = "usage", str(error), False
    except BaseException:  # noqa: BLE001 - whatever it is, the parent must hear of it
        answer = "failed", traceback.format_exc(), False
    return bytes(ForkingPickler.dumps(answer))


def _end_with_parent() -> None:
    """End this process when its parent does, whatever the target is at."""
    parent = mp.parent_process()
    assert parent is not None
    if sys.platform == "linux":
        import fcntl

        # The sentinel is a pipe.  The kernel kills when it closes, even while C code holds on to the interpreter.
        fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(parent.sentinel, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, fcntl.fcntl(parent.sentinel, fcntl.F_GETFL) | os.O_ASYNC)

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _silence() -> None:
    """Let nothing that the target prints reach the terminal, or whoever reads our own output."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    os.close(nothing)
