"""A case that kills its process becomes a finding, and nothing else of the search is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamfuzz import drive
from streamfuzz.box import Box, Recorder
from streamfuzz.case import Case, CaseFile
from streamfuzz.config import Recipe, recipe
from streamfuzz.deviation import Deviation
from streamfuzz.finding import Finding
from streamfuzz.nightly import guarded as guards
from streamfuzz.nightly import lane as lanes
from streamfuzz.nightly.guarded import DEATHS, LaneBench, guarded_rerun, guarded_search, guarded_settle, plain
from streamfuzz.nightly.lane import Here, Lane, Limits
from streamfuzz.nightly.tasks import Field, Shard
from streamfuzz.spec import UsageError

from .dying import SOURCE

LIMITS = Limits(memory=10**9, patience=1.0)
HELLO = b'data: {"id":"i","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
SOUND = HELLO + b'{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
AT = SOUND.index(b"\n")
CUT = Case("openai-chat", (SOUND[:AT], SOUND[AT:]))
WHOLE = Case("openai-chat", (SOUND,))
KINDS = [("exits", "crashed", "exited with code 3"), ("segfaults", "crashed", "killed by signal 11 (SIGSEGV)")]


@pytest.fixture
def dying(project: Path) -> Iterator[Path]:
    (project / "dying.py").write_text(SOURCE)
    yield project
    lanes.close_all()


def of(name: str) -> Recipe:
    return recipe(f"dying:{name}")[0]


def shard(name: str, cases: int = 800) -> Shard:
    return Shard(Field(of(name), "openai-chat"), seed=1, cases=cases, cost=0.0001)


def crash(name: str = "exits", got: str = "exited with code 3", error: str = "exit 3", case: Case = CUT) -> Finding:
    return Finding(name, case, Deviation("bounded", "crashed", "the target", None, got, error=error), ())


# --- searching


def test_a_sound_target_loses_no_worker(dying: Path) -> None:
    outcome, lost = guarded_search(shard("sound"), 20.0, limits=LIMITS)
    assert (lost, outcome.findings, outcome.deadly) == ([], (), ())
    assert outcome.cases >= 800


@pytest.mark.parametrize(("name", "kind", "how"), KINDS)
def test_deaths_are_findings_with_causes(dying: Path, name: str, kind: str, how: str) -> None:
    outcome, lost = guarded_search(shard(name), 20.0, limits=LIMITS)
    assert set(lost) == {how}
    assert 1 <= len(lost) <= DEATHS
    causes = {finding.causes for finding in outcome.findings}
    assert ("a cut before a line end",) in causes
    assert {(f.deviation.kind, f.deviation.got, f.flaky) for f in outcome.findings} == {(kind, how, False)}
    assert {f.sentence for f in outcome.findings} >= {
        f"mine takes its process down on the stream: {how} because of a cut before a line end."
    }
    assert outcome.deadly == ()
    assert outcome.goals
    assert outcome.in_all


def test_what_else_was_found_is_not_lost(dying: Path) -> None:
    outcome, lost = guarded_search(shard("loses_text_and_dies"), 20.0, limits=LIMITS)
    assert lost == ["exited with code 3"] * DEATHS
    assert {"bounded", "faithful"} <= {finding.deviation.oracle for finding in outcome.findings}


def test_a_shard_that_is_done_again_leaves_out_what_was_deadly(dying: Path) -> None:
    outcome, lost = guarded_search(shard("exits_at_the_last", cases=420), 20.0, limits=LIMITS)
    assert 1 <= len(lost) < DEATHS
    assert outcome.cases >= 420
    assert [finding.deviation.kind for finding in outcome.findings] == ["crashed"]


def test_a_target_that_always_dies_is_one_finding(dying: Path) -> None:
    outcome, lost = guarded_search(shard("always_dies"), 20.0, limits=LIMITS)
    assert lost == ["exited with code 4"] * DEATHS
    assert {finding.deviation.kind for finding in outcome.findings} == {"crashed"}


def test_a_death_that_does_not_recur_is_flaky(dying: Path) -> None:
    outcome, lost = guarded_search(shard("dies_after_a_while"), 20.0, limits=LIMITS)
    assert lost == ["exited with code 5"] * DEATHS
    assert outcome.findings
    assert all(finding.flaky for finding in outcome.findings)
    small, failed, runs, _ = guarded_settle(of("dies_after_a_while"), outcome.findings[0], 1.0, 3, limits=LIMITS)
    assert (small.flaky, failed, runs) == (True, 0, 3)


def test_a_run_that_has_to_be_killed_is_a_hang(dying: Path) -> None:
    limits = Limits(memory=10**9, patience=0.3)
    outcome, lost = guarded_search(shard("spins", cases=420), 20.0, limits=limits)
    assert set(lost) == {"still running after 0.3 s, and had to be killed"}
    assert [finding.signature for finding in outcome.findings] == [
        "bounded.hung killed: a cut between the two line ends of a blank line"
    ]


def test_memory_is_a_finding_that_costs_no_worker(dying: Path) -> None:
    outcome, lost = guarded_search(shard("eats"), 20.0, limits=LIMITS)
    assert lost == []
    assert {finding.deviation.kind for finding in outcome.findings} == {"memory"}


def test_a_target_that_keeps_everything_ends_its_shard_early_and_is_found(dying: Path) -> None:
    limits = Limits(memory=3 * 10**8, patience=10.0)
    outcome, lost = guarded_search(shard("keeps_everything", cases=10**6), 30.0, limits=limits)
    assert lost == []
    assert 0 < outcome.cases < 10**6
    assert "leaked" in {finding.deviation.kind for finding in outcome.findings}


def test_what_the_target_shows_need_not_pickle(dying: Path) -> None:
    outcome, lost = guarded_search(shard("odd", cases=200), 20.0, limits=LIMITS)
    assert lost == []
    assert outcome.findings


def test_a_stopped_search_hands_in_what_it_has(dying: Path) -> None:
    lanes.lane(LIMITS)
    threading.Timer(1.5, lanes.ask_to_stop).start()
    started = time.monotonic()
    outcome, _ = guarded_search(shard("loses_text_and_dies", cases=10**7), 60.0, limits=LIMITS)
    assert time.monotonic() - started < 15
    assert "faithful" in {finding.deviation.oracle for finding in outcome.findings}


def test_a_target_that_cannot_be_made_is_told(dying: Path) -> None:
    with pytest.raises(UsageError, match="no attribute 'missing'"):
        guarded_search(Shard(Field(Recipe("dying:missing"), "openai-chat"), 1, 10, 0.001), 5.0, limits=LIMITS)


# --- settling


def test_a_crash_is_made_small(dying: Path) -> None:
    bench = LaneBench(of("exits"), "openai-chat", lanes.lane(LIMITS))
    found = guards.causes(bench, [guards.Sighting(CUT, crash().deviation, "")], 5.0, {}, lambda: False)[0][0]
    small, failed, runs, lost = guarded_settle(of("exits"), found, 3.0, 3, limits=LIMITS)
    assert small.signature == "bounded.crashed exit 3: a cut before a line end"
    assert small.case.size < CUT.size
    assert (failed, runs, small.flaky, lost) == (3, 3, False, [])


def test_a_worker_lost_while_another_finding_is_made_small_costs_nothing(dying: Path) -> None:
    lossy = of("loses_text_and_dies")
    bench = LaneBench(lossy, "openai-chat", lanes.lane(LIMITS))
    deviation = next(d for d in bench.deviations(WHOLE) if d.oracle == "faithful")
    finding = Finding("loses_text_and_dies", WHOLE, deviation, ())
    small, failed, runs, _ = guarded_settle(lossy, finding, 3.0, 3, limits=LIMITS)
    assert small.case.size <= WHOLE.size
    assert (failed, runs, small.flaky) == (3, 3, False)


# --- running again


def test_kept_cases_that_kill_fail(dying: Path) -> None:
    files = [("sound", CaseFile(WHOLE)), ("deadly", CaseFile(CUT)), ("again", CaseFile(WHOLE))]
    done, lost = guarded_rerun(of("exits"), files, limits=LIMITS)
    assert [(one.name, one.status) for one in done] == [("sound", "pass"), ("deadly", "fail"), ("again", "pass")]
    assert [finding.signature for finding in done[1].findings] == ["bounded.crashed exit 3: a cut before a line end"]
    assert lost == ["exited with code 3"]
    assert guarded_rerun(of("sound"), files, limits=LIMITS)[1] == []


# --- one case in a lane


def test_the_whole_run_that_kills_is_not_taken_for_the_cut_one(dying: Path) -> None:
    (dying / "whole.py").write_text(
        "import os\nfrom streamfuzz.demo import repaired\n"
        "def dies_whole(chunks):\n    chunks = list(chunks)\n    len(chunks) > 1 or os._exit(6)\n"
        "    return repaired(chunks)\n"
    )
    bench = LaneBench(recipe("whole:dies_whole")[0], "openai-chat", Lane(LIMITS))
    assert bench.deviations(CUT) == []
    assert [deviation.error for deviation in bench.deviations(WHOLE)] == ["exit 6"]
    bench.own.close()


def test_a_probe_that_kills_is_a_crash(dying: Path) -> None:
    bench = LaneBench(of("exits"), "openai-chat", Lane(LIMITS))
    probe = Case("openai-chat", CUT.chunks, probe="isolated", other=WHOLE.chunks)
    assert [(deviation.kind, deviation.error) for deviation in bench.deviations(probe)] == [("crashed", "exit 3")]
    bench.own.close()


# --- the tasks as the worker does them, in this process


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, dying: Path) -> Iterator[list[Any]]:
    told: list[Any] = []

    class Pipe:
        def send(self, news: Any) -> None:
            told.append(news)

    box = Box.make()
    made = Recorder(box, None)
    monkeypatch.setattr(lanes, "here", Here(made, Pipe()))  # type: ignore[arg-type]
    monkeypatch.setattr(drive, "recorder", made)
    yield told
    box.close()


def test_a_search_tells_each_stretch_of_work(here: list[Any]) -> None:
    outcome = guards._search(shard("odd", cases=100), 10.0, {}, None, ())
    batches = [content for kind, content, _ in here if kind == "told"]
    assert sum(batch.cases for batch in batches) == outcome.cases
    assert outcome.findings


def test_the_other_tasks_are_those_of_any_process(here: list[Any]) -> None:
    made = of("sound")
    assert guards._rerun(made, [("one", CaseFile(WHOLE))])[0].status == "pass"
    assert guards._deviations(made, "openai-chat", ("faithful",), WHOLE) == []
    finding = Finding("sound", WHOLE, Deviation("faithful", "lost", "the text"), ())
    assert guards._settle(made, finding, 1.0, 2) == (Finding("sound", WHOLE, finding.deviation, (), flaky=True), 0)


def test_an_answer_is_always_one_that_can_be_read(here: list[Any]) -> None:
    import pickle

    recorder = lanes.here.recorder  # type: ignore[union-attr]

    def answer(task: Any, *args: Any) -> Any:
        return pickle.loads(lanes._answer(pickle.dumps((task, args, ())), recorder))

    assert answer(len, "abc") == ("done", 3, False)
    assert answer(memory_runs_out) == ("spent", None, True)
    assert answer(says_no) == ("usage", "no", False)
    assert answer(makes_no_sense)[0] == "failed"


def memory_runs_out() -> None:
    raise MemoryError


def says_no() -> None:
    raise UsageError("no")


def makes_no_sense() -> Any:
    return lambda: None


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError


def test_a_deviation_is_sent_without_the_targets_own_classes() -> None:
    got = {"a": [1, 2.5, None, True, "x"], "b": (object, Unshowable()), 3: {"c": set()}}
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    made = plain(Deviation("faithful", "altered", "the value", got, None))
    assert made.expected == {
        "a": [1, 2.5, None, True, "x"],
        "b": ["<class 'object'>", "a Unshowable"],
        "3": {"c": "set()"},
    }
    assert plain(Deviation("faithful", "altered", "the value", deep)).expected is not None
