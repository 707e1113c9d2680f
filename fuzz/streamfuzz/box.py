"""The black box of a worker process: what it was running when it died, in memory that outlives it.

A worker writes down each run before it begins.  The box is a small file that both processes map, so the notes are
there for the parent however the worker ends, and writing one costs about a microsecond.
"""

from __future__ import annotations

import mmap
import os
import pickle
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any

from streamfuzz_strategies.judge import End

from .case import Case
from .spec import Target, UsageError
from .trace import Ending, Failure, Trace

SIZE = 4 * 2**20
"""Bytes of a box; a stream that does not fit is not taken down, and a death on it is one without a case."""

_HEAD = Struct("=?xxxIQ")
"""Whether something runs, bytes of its note, and the number of the run."""

_STOP = _HEAD.size
_NOTE = _HEAD.size + 1


class Box:
    """One mapped file.  The worker notes, the parent reads."""

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), SIZE)
        self.path = path
        self._length = 0

    @classmethod
    def make(cls) -> Box:
        """Make the file and map it.

        Raises:
            UsageError: there is no room for temporary files.
        """
        try:
            handle, path = tempfile.mkstemp(prefix="streamfuzz-")
            try:
                os.ftruncate(handle, SIZE)
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(handle, 0, SIZE)  # else a full disk would kill whoever writes to the map
                return cls(path)
            except OSError:
                os.unlink(path)
                raise
            finally:
                os.close(handle)
        except OSError as error:
            place = tempfile.gettempdir()
            raise UsageError(f"cannot write to {place}: {error.strerror or error}; make room or set TMPDIR") from None

    def unlink(self) -> None:
        """Remove the file's name; what is mapped stays.  Where a mapped file has to keep its name, it does."""
        with suppress(OSError):
            os.unlink(self.path)

    def close(self) -> None:
        """Let go of the memory, and of the file."""
        self._memory.close()
        self.unlink()

    # -- in the worker ------------------------------------------------------------------------------------------------

    def note(self, content: bytes, number: int) -> None:
        """Take down what is about to run."""
        self._length = length = len(content) if len(content) <= SIZE - _NOTE else 0
        if length:
            self._memory[_NOTE : _NOTE + length] = content
        _HEAD.pack_into(self._memory, 0, True, length, number)

    def go_on(self, number: int) -> None:
        """Take down that the same thing runs on, with another run."""
        _HEAD.pack_into(self._memory, 0, True, self._length, number)

    def rest(self) -> None:
        """Take down that nothing runs."""
        self._memory[0] = 0

    @property
    def stop(self) -> bool:
        """Whether the worker is asked to hand in what it has."""
        return self._memory[_STOP] != 0

    # -- in the parent ------------------------------------------------------------------------------------------------

    @stop.setter
    def stop(self, asked: bool) -> None:
        self._memory[_STOP] = asked

    @property
    def running(self) -> int | None:
        """The number of the run under way, if there is one."""
        runs, _, number = _HEAD.unpack_from(self._memory, 0)
        return number if runs else None

    @property
    def case(self) -> Case | None:
        """What was running, if something was and it can be read."""
        runs, length, _ = _HEAD.unpack_from(self._memory, 0)
        if not runs or not 0 < length <= SIZE - _NOTE:
            return None
        try:
            provider, chunks, takes, end, probe, other = pickle.loads(self._memory[_NOTE : _NOTE + length])
            return Case(provider, tuple(chunks), takes, end, probe, tuple(other))
        except Exception:  # noqa: BLE001 - a dying process may have written anywhere; then there is no note
            return None


@dataclass(frozen=True, slots=True)
class Deadly:
    """A case that cost a worker its life.

    Attributes:
        case: which.
        ending: what that is for a run: ``died``, ``hang`` or ``memory``.
        name: how it was lost as a short name that findings are grouped by, like ``SIGSEGV``.
        how: the same in words.
        however_cut: a stream that kills in one chunk is taken to kill in any chunks.
    """

    case: Case
    ending: Ending
    name: str
    how: str
    however_cut: bool = False

    @property
    def trace(self) -> Trace:
        """What a run of the case leaves."""
        failure = Failure(self.name, self.how, "", declared=False, transport=False, lost=True)
        return Trace((), (), self.ending, None, failure, 0, False, 0.0)

    def is_met_by(self, target: Target, chunks: Sequence[Any], end: End, probe: str, other: Sequence[Any]) -> bool:
        """Whether a run would be this case again."""
        case = self.case
        if (case.provider, case.takes, case.end, case.probe) != (target.provider, target.takes, end, probe):
            return False
        if tuple(chunks) == case.chunks and tuple(other) == case.other:
            return True
        alike = self.however_cut and not probe and len(case.chunks) == 1 and case.takes in ("bytes", "text")
        return alike and case.chunks[0][:0].join(chunks) == case.chunks[0]


class Recorder:
    """Takes down in a box what a worker runs, refuses what is known to be deadly, and bounds its memory.

    Attributes:
        avoid: cases that are not to be run again.
    """

    def __init__(self, box: Box, memory: int | None) -> None:
        self.box = box
        self.memory = memory
        self.avoid: Sequence[Deadly] = ()
        self._number = 0
        self._depth = 0
        self._begun = False
        self._enough: int | None = None
        self._asked = 0

    def begin(
        self, target: Target, chunks: Sequence[Any], end: End, probe: str = "", other: Sequence[Any] = ()
    ) -> Trace | None:
        """Take down a run; one that stands inside another belongs to that one."""
        for deadly in self.avoid:
            if deadly.is_met_by(target, chunks, end, probe, other):
                return deadly.trace
        self._number += 1
        if self._depth:
            self.box.go_on(self._number)
        else:
            if not self._begun:
                self._begun = True
                self._bound_memory()
            try:
                content = pickle.dumps((target.provider, chunks, target.takes, end, probe, other), 5)
            except RecursionError:
                content = b""
            self.box.note(content, self._number)
        self._depth += 1
        return None

    def end(self) -> None:
        """Take down that the run is over."""
        self._depth -= 1
        if self._depth:
            self._number += 1
            self.box.go_on(self._number)
        else:
            self.box.rest()

    def _bound_memory(self) -> None:
        """Allow so much memory on top of what the process has taken when its target is loaded."""
        loaded = taken()
        if self.memory is None or loaded is None:
            return
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = loaded + self.memory
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        self._enough = loaded + int(SPENT * self.memory)

    def stopped(self) -> bool:
        """Whether the worker is asked to hand in what it has, or has little memory left to go on with."""
        self._asked += 1
        if self._asked % 64 == 0 and self.is_spent():
            self.box.stop = True
        return self.box.stop

    def is_spent(self) -> bool:
        """Whether most of the memory is gone, so that another process had better do the next task."""
        return self._enough is not None and (taken() or 0) > self._enough


SPENT = 0.8
"""The share of its memory after which a worker is replaced."""

_PAGES = Path("/proc/self/statm")


def taken() -> int | None:
    """Bytes of address space that this process has, where that can be told: on Linux."""
    if sys.platform != "linux":
        return None
    return int(_PAGES.read_bytes().split()[0]) * mmap.PAGESIZE
