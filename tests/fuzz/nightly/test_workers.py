"""Workers: the same tasks on processes of this machine and on a Dask cluster."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from streamfuzz.config import Recipe
from streamfuzz.happenings import Happening, Settled
from streamfuzz.nightly import tasks
from streamfuzz.nightly.history import History
from streamfuzz.nightly.job import Job
from streamfuzz.nightly.keeper import Keeper
from streamfuzz.nightly.lane import Limits
from streamfuzz.nightly.settings import settings
from streamfuzz.nightly.store import Store
from streamfuzz.nightly.tasks import Field, Outcome, Shard
from streamfuzz.nightly.workers import Workers, cluster, local
from streamfuzz.result import Night
from streamfuzz.spec import UsageError
from streamfuzz.stopping import Stop

LIMITS = Limits(memory=2 * 10**9, patience=20.0)
SHARD = Shard(Field(Recipe("openai-sse"), "sse"), 7, 500, 1e-4)


def started(command: list[str], stack: ExitStack, says: str, folder: Path | None = None) -> str:
    """Start a process that serves until the stack is closed, and wait for what it says on stderr."""
    process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder))
    stack.callback(process.kill)
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(says, line)
        if found:
            return found[1]
    raise AssertionError(f"{command} ended without saying {says}")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Dask scheduler on loopback, with one worker process of two threads in a folder of its own."""
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    work = [sys.executable, "-m", "distributed.cli.dask_worker"]
    folder = tmp_path_factory.mktemp("dask")
    with ExitStack() as stack:
        address = started(
            [*dask, "--host", "127.0.0.1", "--port", "0", "--no-dashboard"], stack, r"Scheduler at: +(tcp://\S+)"
        )
        started(
            [*work, "--no-nanny", "--nthreads", "2", "--no-dashboard", "--local-directory", ".", address],
            stack,
            r"(Registered to): ",
            folder,
        )
        yield address
        assert not (folder / "corpus").exists()  # nothing but the job writes to the corpus


def outcome(workers: Workers) -> Outcome:
    answer, lost = workers.search(SHARD, 60.0, {}, None).result(timeout=90)
    assert lost == []
    assert isinstance(answer, Outcome)
    return answer


def test_a_shard_brings_the_same_here_in_a_process_and_on_a_cluster(scheduler: str) -> None:
    here = tasks.search(SHARD, 60.0)
    with local(1, LIMITS) as workers:
        near = outcome(workers)
    with cluster(scheduler, LIMITS) as workers:
        far = outcome(workers)
    for other in (near, far):
        assert (other.cases, other.goals) == (here.cases, here.goals)
        assert {f.signature for f in other.findings} & {f.signature for f in here.findings}


def test_a_whole_job_runs_on_a_cluster(scheduler: str, project: Path) -> None:
    (project / "streamfuzz.toml").write_text('[nightly]\nengines = ["sweep"]\n')
    asked = settings("batch", targets=["sseclient-py"], corpus="corpus", time="12s", seed=1, scheduler=scheduler)
    store, stop = Store.open("corpus"), Stop()
    settled: list[Settled] = []

    def tell(happening: Happening) -> None:
        if isinstance(happening, Settled):
            settled.append(happening)
        if len(settled) == 2:
            stop.ask()

    with cluster(scheduler, LIMITS) as workers:
        assert workers.count == 2
        night: Night = Job(asked, Keeper(store), History(store.nights()), workers, tell, stop).run()
    assert night.workers == 2
    assert len(list(Path("corpus/sseclient-py").iterdir())) >= len(settled) >= 2


def test_a_scheduler_that_cannot_be_reached_is_told_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamfuzz.nightly.workers.CONNECTING", 0.5)
    begun = time.monotonic()
    says = r"no Dask scheduler at tcp://127.0.0.1:1 .*start one with `dask scheduler`"
    with pytest.raises(UsageError, match=says), cluster("tcp://127.0.0.1:1", LIMITS):
        pass
    assert time.monotonic() - begun < 10


def test_an_address_that_is_none_is_told() -> None:
    with pytest.raises(UsageError, match="no Dask scheduler at nonsense://x"), cluster("nonsense://x", LIMITS):
        pass


def test_a_scheduler_without_workers_is_told() -> None:
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    with ExitStack() as stack:
        command = [*dask, "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        address = started(command, stack, r"Scheduler at: +(tcp://\S+)")
        with pytest.raises(UsageError, match="has no workers: start some with `dask"), cluster(address, LIMITS):
            pass


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    says = r"pip install 'streamfuzz\[cluster\]'"
    with pytest.raises(UsageError, match=says), cluster("tcp://127.0.0.1:1", LIMITS):
        pass
