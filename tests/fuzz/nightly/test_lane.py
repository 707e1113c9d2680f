"""A worker process may end in any way; the lane says how, and goes on with another one."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamfuzz import drive
from streamfuzz.drive import Driver
from streamfuzz.nightly import lane as lanes
from streamfuzz.nightly.lane import Closed, Lane, Limits, Lost, guarded
from streamfuzz.spec import UsageError, target

from .dying import SOURCE

LIMITS = Limits(memory=3 * 10**8, patience=1.0)
CHUNKS = (b"a", b"b")
linux = pytest.mark.skipif(sys.platform != "linux", reason="only the Linux kernel does this")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    lanes.close_all()


@pytest.fixture
def own() -> Iterator[Lane]:
    made = Lane(LIMITS)
    yield made
    made.close()


def ends(how: Callable[[], Any]) -> Any:
    """Run a target that does this, as a task."""
    with Driver(target(lambda chunks: how())) as driver:
        return driver.run(CHUNKS).ending


def die(code: int) -> None:
    os._exit(code)


def kill(number: int) -> None:
    os.kill(os.getpid(), number)


def spin() -> None:
    """Runs in C, where no signal of Python's is heard."""
    import collections
    import itertools

    collections.deque(itertools.repeat(0), maxlen=0)


def hide() -> None:
    os.closerange(3, 1000)
    time.sleep(60)


def raise_(error: BaseException) -> None:
    raise error


def eat(size: int) -> int:
    return len(bytearray(size))


KEPT: list[Any] = []


def keep(size: int) -> int:
    ends(lambda: None)
    KEPT.append(bytearray(size))
    return os.getpid()


def until_stopped() -> bool:
    here = lanes.here
    assert here is not None
    while not here.recorder.stopped():
        here.tell("going on")
        time.sleep(0.01)
    return True


def unsendable() -> Any:
    return lambda: None


def lost(own: Lane, task: Callable[..., Any], *args: Any) -> Lost:
    with pytest.raises(Lost) as caught:
        own.run(task, *args)
    return caught.value


# --- what works


def test_tasks_are_done_in_one_process_that_is_not_this_one(own: Lane) -> None:
    pids = {own.run(os.getpid) for _ in range(3)}
    assert len(pids) == 1
    assert os.getpid() not in pids


def test_each_thread_has_a_process_of_its_own() -> None:
    both = threading.Barrier(2)

    def twice() -> set[int]:
        found = {guarded(os.getpid, limits=LIMITS)}
        both.wait()
        return found | {guarded(os.getpid, limits=LIMITS)}

    with ThreadPoolExecutor(2) as pool:
        one, other = [future.result() for future in [pool.submit(twice), pool.submit(twice)]]
    assert len(one) == len(other) == 1
    assert one != other


def test_other_limits_are_another_process() -> None:
    assert guarded(os.getpid, limits=LIMITS) != guarded(os.getpid, limits=Limits())


def test_modules_of_the_project_are_found_there(own: Lane, project: Path) -> None:
    from streamfuzz.config import recipe

    (project / "dying.py").write_text(SOURCE)
    made, _ = recipe("dying:sound")
    assert own.run(_name_of, made) == "sound"


def _name_of(made: Any) -> str:
    name: str = made.target().name
    return name


def test_errors_of_tasks_come_back(own: Lane) -> None:
    pid = own.run(os.getpid)
    with pytest.raises(UsageError, match="say so"):
        own.run(raise_, UsageError("say so"))
    with pytest.raises(RuntimeError, match=r"(?s)failed at its task:.*in raise_.*ValueError: no"):
        own.run(raise_, ValueError("no"))
    with pytest.raises(RuntimeError, match="failed at its task"):
        own.run(unsendable)
    assert own.run(os.getpid) == pid


def test_nothing_that_is_printed_is_seen(own: Lane, capfd: pytest.CaptureFixture[str]) -> None:
    own.run(print, "printed")
    own.run(os.write, 1, b"written")
    own.run(os.write, 2, b"warned")
    assert capfd.readouterr() == ("", "")


# --- what dies


@pytest.mark.parametrize(
    ("end", "how", "name"),
    [
        (partial(die, 3), "exited with code 3", "exit 3"),
        (partial(die, 0), "exited with code 0", "exit 0"),
        (partial(kill, signal.SIGSEGV), "killed by signal 11 (SIGSEGV)", "SIGSEGV"),
        (partial(kill, signal.SIGKILL), "killed by signal 9 (SIGKILL), as the system does when memory", "SIGKILL"),
        (hide, "broke the connection to its parent process", "cut off"),
    ],
)
def test_a_death_is_told_with_what_was_running(own: Lane, end: Any, how: str, name: str) -> None:
    found = lost(own, ends, end)
    assert found.how.startswith(how)
    assert (found.name, found.ending) == (name, "died")
    assert found.case is not None
    assert found.case.chunks == CHUNKS
    assert own.run(ends, dict) == "complete"


def test_a_death_between_two_runs_has_no_case(own: Lane) -> None:
    assert lost(own, die, 3).case is None


def test_a_run_that_cannot_be_interrupted_is_killed(own: Lane) -> None:
    started = time.monotonic()
    found = lost(own, ends, spin)
    assert time.monotonic() - started < 10
    assert (found.how, found.ending) == ("still running after 1 s, and had to be killed", "hang")
    assert found.case is not None


def test_a_task_may_take_longer_than_any_run(own: Lane) -> None:
    own.run(time.sleep, 1.3)


def test_a_process_that_died_while_it_had_nothing_to_do_is_replaced(own: Lane) -> None:
    pid = own.run(os.getpid)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid))
    assert own.run(os.getpid) != pid


@linux
def test_memory_is_bounded_from_the_first_run_on(own: Lane) -> None:
    assert own.run(eat, 5 * 10**8) == 5 * 10**8
    assert own.run(ends, partial(eat, 10**10)) == "memory"
    assert own.run(ends, partial(eat, 10**7)) == "error"
    found = lost(own, eat, 10**10)
    assert (found.how, found.ending) == ("needed more than 300 MB", "memory")


@linux
def test_a_process_with_little_memory_left_is_replaced(own: Lane) -> None:
    pids = [own.run(keep, 9 * 10**7) for _ in range(4)]
    assert pids[0] == pids[1] == pids[2]
    assert pids[3] != pids[2]


# --- stopping


def test_running_tasks_are_asked_to_stop() -> None:
    news: list[str] = []

    def told(one: str) -> None:
        news.append(one)
        lanes.ask_to_stop()

    assert lanes.lane(LIMITS).run(until_stopped, told=told) is True
    assert set(news) == {"going on"}


def test_signals_to_the_whole_group_do_not_reach_a_worker(own: Lane) -> None:
    pid = own.run(os.getpid)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(pid, number)
    assert own.run(os.getpid) == pid


def test_closing_ends_a_task_under_way_and_later_tasks_have_new_processes() -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(guarded, time.sleep, 60, limits=LIMITS)
        wait_until(lambda: any(one._worker for one in lanes._session.lanes))
        lanes.close_all()
        with pytest.raises(Closed):
            running.result(timeout=10)
        assert pool.submit(guarded, len, "abc", limits=LIMITS).result(timeout=20) == 3


def test_a_process_ends_with_its_thread() -> None:
    pids: list[int] = []
    thread = threading.Thread(target=lambda: pids.append(guarded(os.getpid, limits=LIMITS)))
    thread.start()
    thread.join()
    gc.collect()
    wait_until(lambda: not is_alive(pids[0]))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(said: Callable[[], bool], seconds: float = 10.0) -> None:
    ends_at = time.monotonic() + seconds
    while not said():
        assert time.monotonic() < ends_at
        time.sleep(0.02)


@linux
@pytest.mark.parametrize("task", ["time.sleep, 600", "spin"])
def test_no_orphan_is_left_when_the_parent_is_killed(project: Path, task: str) -> None:
    (project / "dying.py").write_text(SOURCE)
    script = f"""
import os, time
from dying import spin
from streamfuzz.nightly.lane import Lane, Limits
if __name__ == "__main__":
    own = Lane(Limits())
    print(own.run(os.getpid), flush=True)
    own.run({task})
"""
    (project / "parent.py").write_text(script)
    with subprocess.Popen([sys.executable, "parent.py"], stdout=subprocess.PIPE, text=True, cwd=project) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        time.sleep(0.3)
        parent.kill()
        wait_until(lambda: not is_alive(pid))


def _in_a_daemon(pipe: Any) -> None:
    try:
        guarded(os.getpid, limits=LIMITS)
    except UsageError as error:
        pipe.send(str(error))


def test_a_process_that_may_start_no_others_says_what_to_do() -> None:
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_in_a_daemon, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    assert mine.poll(30)
    assert "dask worker --no-nanny" in mine.recv()
    process.join()
    mine.close()


def test_a_process_that_does_not_start_says_what_to_do(project: Path) -> None:
    script = "import os\nfrom streamfuzz.nightly.lane import Lane, Limits\nLane(Limits()).run(os.getpid)\n"
    (project / "unguarded.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "unguarded.py"], capture_output=True, text=True, cwd=project, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "call it below `if __name__ == '__main__':`" in done.stderr


def test_no_recorder_is_set_in_the_parent() -> None:
    guarded(os.getpid, limits=LIMITS)
    assert drive.recorder is None
    assert lanes.here is None
