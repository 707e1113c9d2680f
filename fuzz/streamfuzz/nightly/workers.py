"""Who does the tasks: processes on this machine, or the workers of a Dask cluster.

Either way an executor of :mod:`concurrent.futures` hands out the same functions, each of which guards a process of
its own, so that a target that dies takes only that one with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..case import Case, CaseFile
from ..config import Recipe
from ..finding import Finding
from ..spec import UsageError
from . import guarded, lane
from .lane import Limits
from .tasks import Shard, Sort

CONNECTING = 10.0
"""Seconds to wait for a scheduler before it counts as unreachable."""


@dataclass(frozen=True, slots=True)
class Workers:
    """An executor, and how many tasks it does at once.

    Attributes:
        executor: hands out tasks.
        count: tasks at once.
        limits: of each process.
        ask_to_stop: makes running tasks hand in what they have.
        lost: what ``Future.result`` raises when a task is lost for reasons that are not the target's.
        gone: whether no task can be done any more.
    """

    executor: Executor
    count: int
    limits: Limits
    ask_to_stop: Callable[[], None] = lane.ask_to_stop
    lost: tuple[type[BaseException], ...] = ()
    gone: Callable[[], bool] = lambda: False

    def check(self, recipe: Recipe, provider: str) -> Future[Any]:
        """Make sure that a target can be called as it is described; nothing is answered."""
        return self.executor.submit(guarded.guarded_check, recipe, provider, limits=self.limits)

    def search(
        self,
        shard: Shard,
        seconds: float,
        explained: Mapping[Sort, int],
        examples: str | None,
        kept: Sequence[Case] = (),
    ) -> Future[Any]:
        """Do a shard: its outcome, and how each process that was lost on the way was lost."""
        task = guarded.guarded_search
        return self.executor.submit(task, shard, seconds, explained, examples, kept, limits=self.limits)

    def settle(self, recipe: Recipe, finding: Finding, seconds: float, times: int) -> Future[Any]:
        """Shrink a finding and run it again: the finding, how often it failed in how many runs, and the lost."""
        return self.executor.submit(guarded.guarded_settle, recipe, finding, seconds, times, limits=self.limits)

    def rerun(self, recipe: Recipe, files: Sequence[tuple[str, CaseFile]]) -> Future[Any]:
        """Run kept cases again: what each does, and the lost."""
        return self.executor.submit(guarded.guarded_rerun, recipe, files, limits=self.limits)


@contextmanager
def local(count: int, limits: Limits) -> Iterator[Workers]:
    """So many processes on this machine, each guarded by a thread of this one."""
    executor = ThreadPoolExecutor(count, thread_name_prefix="lane")
    try:
        yield Workers(executor, count, limits)
    finally:
        lane.close_all()
        executor.shutdown(wait=False, cancel_futures=True)


@contextmanager
def cluster(address: str, limits: Limits) -> Iterator[Workers]:
    """The workers of a Dask cluster, by the address of its scheduler.

    Raises:
        UsageError: Dask is not installed, there is no scheduler at the address, or it has no workers.
    """
    try:
        dask: Any = import_module("distributed")  # it has no types
    except ImportError:
        raise UsageError("--scheduler needs Dask: pip install 'streamfuzz[cluster]'") from None
    try:
        client = dask.Client(address, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(
            f"no Dask scheduler at {address} ({error}): start one with `dask scheduler`, and workers with "
            f"`dask worker --no-nanny {address}`"
        ) from None
    try:
        threads = client.nthreads()
        if not threads:
            raise UsageError(
                f"the scheduler at {address} has no workers: start some with `dask worker --no-nanny {address}`"
            )
        lost = (CancelledError, dask.comm.core.CommClosedError, dask.scheduler.KilledWorker, OSError)
        executor = client.get_executor(pure=False)
        yield Workers(executor, sum(threads.values()), limits, lambda: None, lost, lambda: client.status != "running")
    finally:
        client.close(timeout=CONNECTING)
