"""The black box: what was running is known to whoever reads it, and what is deadly is not run."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamfuzz import box as boxes
from streamfuzz import drive
from streamfuzz.box import SIZE, Box, Deadly, Recorder
from streamfuzz.case import Case
from streamfuzz.demo import demo_repaired
from streamfuzz.drive import Driver
from streamfuzz.spec import UsageError, target
from streamfuzz_strategies.stream import Event

CASE = Case("openai-chat", (b"data: a\n", b"\n"))
PROBE = Case("openai-chat", (b"a", b"b"), probe="isolated", other=(b"c",))


@pytest.fixture
def box() -> Iterator[Box]:
    made = Box.make()
    yield made
    made.close()


def reader(box: Box) -> Box:
    """Another look at the same box, as the parent has it."""
    return Box(box.path)


def seen(box: Box, made: Any, chunks: Any) -> list[Any]:
    """What stood in the box while the target ran."""
    found: list[Any] = []

    def call(source: Any) -> Any:
        found.append((reader(box).case, reader(box).running is not None))
        return made(source)

    with Driver(target(call)) as driver:
        driver.run(chunks)
    return found


@pytest.fixture
def recorder(box: Box, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    made = Recorder(box, None)
    monkeypatch.setattr(drive, "recorder", made)
    return made


def test_a_run_is_in_the_box_while_it_lasts(box: Box, recorder: Recorder) -> None:
    assert seen(box, list, CASE.chunks) == [(CASE, True)]
    assert (box.case, box.running) == (None, None)


def test_every_form_of_chunks_can_be_read_back(box: Box, recorder: Recorder) -> None:
    events = (Event({"choices": [1]}), Event({}, "name"))
    with Driver(target(lambda chunks: None, takes="events")) as driver:
        recorder.begin(driver.target, events, "reset")
    assert reader(box).case == Case("openai-chat", events, "events", "reset")


def test_runs_inside_an_experiment_belong_to_it(box: Box, recorder: Recorder) -> None:
    numbers: list[Any] = []

    def call(chunks: Any) -> Any:
        numbers.append((box.case, box.running))

    with Driver(target(call)) as driver:

        def do() -> str:
            driver.run((b"x",))
            numbers.append((box.case, box.running))
            driver.run((b"y",))
            return "done"

        assert driver.experiment(do, PROBE.chunks, "eof", "isolated", PROBE.other) == "done"
    assert {case for case, _ in numbers} == {PROBE}
    assert len({number for _, number in numbers}) == 3
    assert box.running is None


def test_without_a_recorder_nothing_is_taken_down() -> None:
    with Driver(demo_repaired()) as driver:
        assert driver.experiment(lambda: 7, (), "eof") == 7
        assert driver.run(CASE.chunks).ending == "error"


def test_what_does_not_fit_is_a_run_without_a_case(box: Box, recorder: Recorder) -> None:
    assert seen(box, list, (b"x" * SIZE,)) == [(None, True)]
    assert seen(box, list, CASE.chunks) == [(CASE, True)]


def test_a_garbled_note_is_no_note(box: Box) -> None:
    box.note(b"no pickle at all", 1)
    assert (box.case, box.running) == (None, 1)
    box.note(b"\x80\x05K\x01.", 2)
    assert box.case is None


def test_asking_to_stop_reaches_the_worker_and_stays(box: Box, recorder: Recorder) -> None:
    assert not recorder.stopped()
    reader(box).stop = True
    assert recorder.stopped()
    seen(box, list, CASE.chunks)
    assert recorder.stopped()


def test_what_is_deadly_is_not_run(box: Box, recorder: Recorder) -> None:
    recorder.avoid = (Deadly(CASE, "died", "SIGSEGV", "killed by signal 11 (SIGSEGV)"),)
    assert seen(box, list, CASE.chunks) == []
    assert len(seen(box, list, (b"data: a\n\n",))) == 1
    assert len(seen(box, list, CASE.chunks[:1])) == 1
    with Driver(demo_repaired()) as driver:
        trace = driver.run(CASE.chunks)
        assert driver.run(CASE.chunks, "reset").ending == "error"
    assert trace.failure is not None
    assert (trace.ending, trace.failure.type, trace.failure.lost) == ("died", "SIGSEGV", True)


def test_a_whole_stream_that_is_deadly_is_not_run_in_pieces_either(box: Box, recorder: Recorder) -> None:
    whole = Case("openai-chat", (b"data: a\n\n",))
    recorder.avoid = (Deadly(whole, "died", "exit 3", "exited with code 3", however_cut=True),)
    assert seen(box, list, CASE.chunks) == []
    assert len(seen(box, list, (b"data: b\n\n",))) == 1
    recorder.avoid = (Deadly(CASE, "died", "exit 3", "exited with code 3", however_cut=True),)
    assert len(seen(box, list, whole.chunks)) == 1


def test_a_deadly_experiment_is_not_done(recorder: Recorder) -> None:
    recorder.avoid = (Deadly(PROBE, "hang", "killed", "still running"),)
    with Driver(demo_repaired()) as driver:
        refused: Any = driver.experiment(lambda: 7, PROBE.chunks, "eof", "isolated", PROBE.other)
        assert refused.ending == "hang"
        assert driver.experiment(lambda: 7, PROBE.chunks, "eof", "isolated", (b"d",)) == 7
        assert driver.run(PROBE.chunks).ending == "error"


def test_no_room_for_a_box_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(boxes.os, "ftruncate", full)
    monkeypatch.setattr(boxes.tempfile, "tempdir", str(tmp_path))
    with pytest.raises(UsageError, match="No space left on device; make room or set TMPDIR"):
        Box.make()
    assert list(tmp_path.iterdir()) == []
