"""The job: what is new is told, what was known is not told again, and nothing that was found is lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamfuzz.engines import menu
from streamfuzz.happenings import Began, Ended, Happening, Mended, NewFinding, Progress, Searched, Settled, Trouble
from streamfuzz.nightly import job as module
from streamfuzz.nightly import keeper as keeping
from streamfuzz.nightly.history import History
from streamfuzz.nightly.job import Job, fields
from streamfuzz.nightly.keeper import Keeper
from streamfuzz.nightly.settings import settings
from streamfuzz.nightly.store import Store
from streamfuzz.nightly.tasks import Shard, search
from streamfuzz.result import Night
from streamfuzz.spec import UsageError
from streamfuzz.stopping import Stop

from .hands import Hands

SIGNATURE = "faithful.altered"
WRONG = """
[nightly]
engines = ["sweep"]
[targets.mine]
call = "readers:wrong_finish"
errors = ["streamfuzz.demo:StreamError"]
"""
KNOWN = """
[[targets.mine.known]]
signature = "faithful.altered"
reason = "waits"
expires = {}
"""
RIGHT = WRONG.replace("wrong_finish", "described").replace("errors", "#")


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARD", 0.4)
    monkeypatch.setattr(module, "SHORTEST", 0.4)


class Tonight:
    """Runs jobs one after the other on one corpus."""

    def __init__(self, project: Path) -> None:
        self.store = Path("corpus")
        self.told: list[Happening] = []
        self.hands = Hands()
        self.stop = Stop()

    def __call__(
        self, text: str = WRONG, mode: Any = "batch", time: str = "2s", hands: Hands | None = None, **more: Any
    ) -> Night:
        Path("streamfuzz.toml").write_text(text)
        self.told = []
        self.hands = hands or Hands()
        asked = settings(mode, corpus=str(self.store), time=time, seed=1, **more)
        store = Store.open(asked.corpus)
        self.keeper = Keeper(store, Path("found") if mode == "change" else None)
        job = Job(asked, self.keeper, History(store.nights()), self.hands, self.told.append, self.stop)  # type: ignore[arg-type]
        return job.run()

    def of(self, kind: type[Any]) -> list[Any]:
        return [happening for happening in self.told if isinstance(happening, kind)]


@pytest.fixture
def tonight(project: Path) -> Tonight:
    return Tonight(project)


def statuses(night: Night) -> dict[str, str]:
    return {found.finding.signature: found.status for result in night.results for found in result.findings}


def test_what_is_found_is_settled_kept_told_once_and_recorded(tonight: Tonight) -> None:
    night = tonight()
    (result,) = night.results
    (reported,) = result.findings
    assert (reported.finding.signature, reported.status, reported.failed, reported.runs) == (SIGNATURE, "new", 10, 10)
    assert (reported.first, reported.last) == (date.today(), date.today())
    assert [path.name for path in Path("corpus/mine").iterdir()] == [Path(str(reported.path)).name]
    assert len(tonight.of(NewFinding)) == len(tonight.of(Settled)) == len(tonight.of(Began)) == 1
    assert tonight.of(Ended) == [Ended(night)]
    assert tonight.of(Progress)
    assert night.exit_code == 1
    (record,) = Store.open("corpus").nights()
    assert record.finished
    assert result.engines["sweep"].findings == 1
    assert result.source is not None
    assert result.source.startswith("readers.py:")


def test_the_next_night_tells_it_as_seen_before_and_does_not_fail(tonight: Tonight) -> None:
    tonight()
    night = tonight()
    assert statuses(night) == {SIGNATURE: "again"}
    assert night.results[0].unreached
    assert night.exit_code == 4
    assert tonight.of(NewFinding) == []
    assert len(list(Path("corpus/mine").iterdir())) == 1


def test_what_passes_now_is_told_as_fixed_once_and_as_back_if_it_returns(tonight: Tonight) -> None:
    tonight()
    mended = tonight(RIGHT)
    assert [fixed.signature for fixed in mended.results[0].fixed] == [SIGNATURE]
    assert [told.fixed.signature for told in tonight.of(Mended)] == [SIGNATURE]
    assert statuses(mended) == {}
    assert tonight(RIGHT).results[0].fixed == []
    returned = tonight()
    assert statuses(returned) == {SIGNATURE: "back"}
    assert returned.exit_code == 1


@pytest.mark.untraced
def test_a_known_deviation_is_excused_until_it_expires(tonight: Tonight) -> None:
    assert statuses(tonight(WRONG + KNOWN.format(date.today() + timedelta(1)))) == {SIGNATURE: "known"}
    expired = tonight(WRONG + KNOWN.format(date.today() - timedelta(1)))
    assert statuses(expired) == {SIGNATURE: "expired"}
    assert expired.exit_code == 1


def test_a_known_deviation_that_is_gone_fails_the_job(tonight: Tonight) -> None:
    night = tonight(RIGHT + KNOWN.format(date.today() + timedelta(1)))
    assert [known.signature for known in night.results[0].gone] == [SIGNATURE]
    assert night.exit_code == 4


def test_a_goal_that_no_job_ever_reached_fails_the_job_of_the_night_only(tonight: Tonight) -> None:
    short = tonight(RIGHT)
    assert short.results[0].unreached
    assert short.exit_code == 4
    assert tonight(RIGHT, "change").exit_code == 0


@pytest.mark.untraced
def test_goals_reached_in_earlier_jobs_count(tonight: Tonight) -> None:
    first = set(tonight(RIGHT).results[0].unreached)
    assert first
    assert set(tonight(RIGHT).results[0].unreached) <= first


@pytest.mark.untraced
def test_a_change_is_blamed_only_for_what_the_corpus_does_not_have(tonight: Tonight) -> None:
    fresh = tonight(WRONG, "change")
    assert (statuses(fresh), fresh.exit_code) == ({SIGNATURE: "new"}, 1)
    assert [path.parent.name for path in Path("found").rglob("*.json")] == ["mine"]
    assert Store.open("corpus").nights() == []
    tonight()
    known = tonight(WRONG, "change")
    assert (statuses(known), known.exit_code) == ({SIGNATURE: "again"}, 0)


def test_replaying_fails_for_everything_that_fails(tonight: Tonight) -> None:
    tonight()
    night = tonight(WRONG, "replay")
    assert (statuses(night), night.exit_code) == ({SIGNATURE: "again"}, 1)
    assert tonight.of(Searched) == []
    mended = tonight(RIGHT, "replay")
    assert (mended.results[0].findings, [fixed.signature for fixed in mended.results[0].fixed]) == ([], [SIGNATURE])


@pytest.mark.untraced
def test_a_shard_that_was_told_judges_the_same_cases_again(tonight: Tonight) -> None:
    tonight(time="4s")
    told = [searched for searched in tonight.of(Searched) if '"revisit":false' in searched.shard]
    shard = msgspec.json.decode(told[0].shard, type=Shard)
    one, other = search(shard, 60), search(shard, 60)
    assert (one.cases, one.goals) == (other.cases, other.goals)
    assert one.cases == told[0].cases == shard.cases


def test_the_coverage_engine_begins_with_what_is_kept(tonight: Tonight, monkeypatch: pytest.MonkeyPatch) -> None:
    tonight()
    monkeypatch.setattr(menu, "_coverage", menu._sweep)
    both = WRONG.replace('["sweep"]', '["sweep", "coverage"]')
    monkeypatch.setattr("streamfuzz.engines.coverage.require_atheris", lambda: None)
    night = tonight(both, time="6s")
    begun = dict(zip((shard.field.engine for shard in tonight.hands.shards), tonight.hands.begun_with, strict=True))
    assert [len(begun["sweep"]), len(begun["coverage"])] == [0, 1]
    assert set(night.results[0].engines) == {"sweep", "coverage"}


def test_every_engine_has_its_turn_before_any_family_of_text(project: Path) -> None:
    Path("streamfuzz.toml").write_text(WRONG)
    (subject,) = settings("batch", seed=1).subjects
    kinds = [(field.engine, field.family) for field in fields(subject, ("sweep", "coverage"))]
    assert kinds[:2] == [("sweep", ""), ("coverage", "")]
    assert {engine for engine, _ in kinds[2:]} == {"sweep"}
    takes_events = replace(subject, target=replace(subject.target, takes="events"))
    assert fields(takes_events, ("coverage",)) == []


def test_an_interrupted_job_keeps_what_it_has(tonight: Tonight) -> None:
    class Interrupting(Hands):
        def search(self, *arguments: Any) -> Any:
            tonight.stop.ask()
            return super().search(*arguments)

    night = tonight(hands=Interrupting(), time="60s")
    assert night.interrupted
    assert statuses(night) == {SIGNATURE: "new"}
    assert tonight.hands.asked == 1
    assert list(Path("corpus/mine").iterdir())
    assert night.exit_code == 1


def test_a_task_that_is_lost_is_told_and_the_job_goes_on(tonight: Tonight) -> None:
    night = tonight(hands=Hands(losing=[ConnectionError("the worker left")]))
    assert night.troubles == ("a task came to nothing: the worker left",)
    assert statuses(night) == {SIGNATURE: "new"}


def test_a_scheduler_that_is_gone_ends_the_job_with_what_it_has(tonight: Tonight) -> None:
    night = tonight(RIGHT, hands=Hands(losing=[ConnectionError("closed")], is_gone=True), time="60s")
    assert night.failed
    assert night.exit_code == 2
    assert "the scheduler cannot be reached any more" in tonight.of(Trouble)[-1].message


def test_an_error_of_a_task_stops_the_job(tonight: Tonight) -> None:
    with pytest.raises(UsageError, match="no such thing"):
        tonight(hands=Hands(losing=[UsageError("no such thing")]))


def test_a_target_that_is_described_wrongly_is_told_before_anything_is_searched(tonight: Tonight) -> None:
    with pytest.raises(UsageError, match="gave nothing on a plain, complete stream"):
        tonight(WRONG.replace("wrong_finish", "nothing"))
    assert tonight.hands.shards == []


def test_a_store_that_fails_loses_nothing(
    tonight: Tonight, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def full(*arguments: Any, **more: Any) -> Any:
        raise UsageError("cannot write to corpus: No space left on device; choose another folder")

    spare = tmp_path_factory.mktemp("spare")
    monkeypatch.setattr(keeping, "FALLBACK", spare)
    monkeypatch.setattr(Store, "save", full)
    monkeypatch.setattr(Store, "record", full)
    night = tonight()
    (reported,) = night.results[0].findings
    assert reported.path is not None
    assert Path(reported.path).is_relative_to(spare)
    full_disk = "cannot write to corpus: No space left on device; choose another folder"
    assert night.troubles == (f"{full_disk}; until then case files go to {spare}", full_disk)
    assert (night.failed, night.exit_code) == (True, 1)


def test_what_can_be_written_nowhere_is_told_as_text(tonight: Tonight, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any, **more: Any) -> Any:
        raise UsageError("cannot write to corpus: No space left on device; choose another folder")

    monkeypatch.setattr(keeping.corpus, "save", full)
    monkeypatch.setattr(Store, "record", full)
    night = tonight()
    assert [reported.path for reported in night.results[0].findings] == [None]
    assert '"signature": "faithful.altered"' in tonight.keeper.last_words()


@pytest.mark.untraced
def test_a_clock_that_jumps_changes_neither_length_nor_dates(tonight: Tonight, monkeypatch: pytest.MonkeyPatch) -> None:
    tonight()
    (path,) = Path("corpus/nights").iterdir()
    path.write_text(path.read_text().replace(f"{date.today().year}-", "2199-"))
    night = tonight()
    (reported,) = night.results[0].findings
    assert reported.status == "again"
    assert reported.first == date.today()
    assert night.seconds < 30


def test_a_case_of_a_future_format_is_skipped_with_a_message_and_kept(tonight: Tonight) -> None:
    future = Path("corpus/mine/0123456789abcdef.json")
    future.parent.mkdir(parents=True)
    future.write_text('{"format": 99}')
    night = tonight(RIGHT)
    (message,) = night.troubles
    assert "has format 99" in message
    assert future.exists()
