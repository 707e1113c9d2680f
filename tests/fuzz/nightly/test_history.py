"""History: what is new, back, again, since when; a record is readable, and a clock that jumps breaks nothing."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfuzz.case import Case
from streamfuzz.deviation import Deviation
from streamfuzz.finding import Finding
from streamfuzz.nightly import history
from streamfuzz.nightly.history import Entry, History, Record, Seen
from streamfuzz.result import Fixed, Night, Point, Reported, Result
from streamfuzz.spec import Known, UsageError

NOW = datetime(2026, 11, 30, 6, tzinfo=UTC)
SEEN = Seen("it loses the text", "new")


def job(days_ago: float, *findings: str, fixed: tuple[str, ...] = (), finished: bool = True, **more: Any) -> Record:
    entry = Entry("t", "sse", 5, 1.0, findings=dict.fromkeys(findings, SEEN), fixed=fixed, **more)
    started = NOW - timedelta(days_ago)
    return Record(f"job-{days_ago}", "batch", started, finished, 2.0, "0.1.0", (entry,))


def past(*records: Record) -> history.Past:
    return History(records, NOW).of("t")


# --- status


@pytest.mark.parametrize(
    ("records", "status"),
    [
        ([], "new"),
        ([job(1)], "new"),
        ([job(1, "other")], "new"),
        ([job(1, "lost")], "again"),
        ([job(1, "lost", finished=False)], "new"),
        ([job(3, "lost"), job(2, fixed=("lost",))], "back"),
        ([job(2, fixed=("lost",)), job(3, "lost")], "back"),
        ([job(3, "lost"), job(2, fixed=("lost",)), job(1)], "back"),
        ([job(3, "lost"), job(2, fixed=("lost",)), job(1, "lost")], "again"),
        ([job(3, "lost"), job(2, fixed=("lost",), finished=False)], "again"),
        ([job(3, "lost"), job(2, fixed=("lost",)), job(1, "lost", finished=False)], "back"),
        ([job(1, fixed=("lost",))], "back"),
        ([job(1, "lost", fixed=("lost",))], "again"),
    ],
)
def test_a_signature_is_to_others_what_finished_jobs_made_of_it(records: list[Record], status: str) -> None:
    assert past(*records).status("lost") == status
    assert past(*records).fixed("lost") == (status == "back")


def test_the_configuration_excuses_until_the_day_that_it_names() -> None:
    known = (Known("lost", "waits for upstream", date(2026, 11, 30)),)
    before = past(job(1, "lost"))
    assert before.status("lost", known, date(2026, 11, 30)) == "known"
    assert before.status("lost", known, date(2026, 12, 1)) == "expired"
    assert before.status("other", known, date(2026, 11, 30)) == "new"


def test_targets_have_histories_of_their_own() -> None:
    told = History([job(1, "lost")], NOW)
    assert told.of("t").status("lost") == "again"
    assert told.of("another").status("lost") == "new"


# --- dates and goals


def test_first_and_last_are_the_days_on_which_it_was_seen() -> None:
    seen = past(job(5, "lost"), job(9, "lost", finished=False), job(2, fixed=("lost",)))
    assert seen.first("lost") == date(2026, 11, 21)
    assert seen.last("lost") == date(2026, 11, 25)
    assert (seen.first("other"), seen.last("other")) == (None, None)


def test_goals_once_reached_are_reached() -> None:
    seen = past(job(2, goals=("a", "b"), finished=False), job(1, goals=("b", "c")))
    assert seen.reached == {"a", "b", "c"}


def test_a_record_from_the_future_does_not_have_the_last_word_for_ever() -> None:
    jumped = job(-9000, fixed=("lost",))
    assert past(job(3, "lost"), jumped).status("lost") == "again"
    assert past(jumped).status("lost") == "back"


@given(st.lists(st.tuples(st.floats(-400, 400), st.booleans(), st.booleans(), st.booleans()), max_size=8))
@settings(max_examples=200, deadline=None, database=None)
def test_no_order_of_records_breaks_it(jobs: list[tuple[float, bool, bool, bool]]) -> None:
    records = [job(ago, *["lost"] * sees, fixed=("lost",) * mends, finished=done) for ago, sees, mends, done in jobs]
    seen = past(*records)
    first, last = seen.first("lost"), seen.last("lost")
    days = [record.started.date() for record, (_, sees, _, _) in zip(records, jobs, strict=True) if sees]
    mentioned = bool(days) or any(mends and done for _, _, mends, done in jobs)
    assert (first is None) == (not mentioned)
    if days and first is not None and last is not None:
        assert first <= min(days) <= max(days) <= last
    reported = any(done and (sees or mends) for _, sees, mends, done in jobs)
    assert (seen.status("lost") == "new") == (not reported)


# --- trends


def test_trends_count_the_finished_jobs_that_searched_in_order_of_time() -> None:
    statuses = {name: Seen("s", name) for name in ("new", "back", "expired", "again", "known")}
    full = Record("a", "batch", NOW, True, 9.0, "0", (Entry("t", "sse", 7, findings=statuses, fixed=("x",)),))
    early, unfinished = job(3, "lost"), job(2, "lost", finished=False)
    idle = Record("b", "replay", NOW, True, 1.0, "0", (Entry("t", "sse"),))
    one, two = History([full, unfinished, early, idle], NOW).trends()
    assert (one.started, one.new) == (early.started, 1)
    assert (two.started, two.cases, two.seconds) == (NOW, 7, 9.0)
    assert (two.new, two.again, two.known, two.fixed) == (3, 1, 1, 1)


# --- records as files


def night() -> Night:
    case = Case("sse", (b"data: a\n\n",))
    finding = Finding("t", case, Deviation("faithful", "lost", "the text \ud800\u202e", "a", None), ("a comment",))
    result = Result("t", "sse", 1, 10, 2.5, 1.5)
    result.findings = [Reported(finding, "s3://bucket/t/0123.json", "back", failed=3, runs=10)]
    result.fixed = [Fixed("old", "it was lost", "t/1.json")]
    result.goals = Counter({"rule: sse.x": 2, "empty chunks": 1})
    result.unreached = ("truncated",)
    result.curve = [Point(1.0, 5, 1, 1, 1)]
    return Night("batch", datetime(2026, 11, 30, 1, tzinfo=UTC), 60.0, [result])


def test_a_record_holds_what_the_job_brought_and_reads_back() -> None:
    made = history.record(night(), "id", finished=True)
    assert history.load(history.dump(made), "r") == made
    (entry,) = made.entries
    assert (entry.goals, entry.unreached, entry.rules, entry.fixed) == (
        ("empty chunks",),
        ("truncated",),
        ("sse.x",),
        ("old",),
    )
    (seen,) = entry.findings.values()
    assert (seen.status, seen.case, seen.failed, seen.runs, seen.count) == ("back", "0123.json", 3, 10, 1)
    assert "\ud800" in seen.sentence or "\\" in seen.sentence


def test_a_record_is_lines_of_json_in_ascii() -> None:
    head, *entries = history.dump(history.record(night(), "id", finished=False)).decode("ascii").splitlines()
    assert json.loads(head)["format"] == 1
    assert json.loads(head)["finished"] is False
    assert [json.loads(entry)["target"] for entry in entries] == ["t"]


def test_what_a_later_version_adds_is_passed_over() -> None:
    head, entry = map(json.loads, history.dump(history.record(night(), "id", finished=True)).splitlines())
    head["mood"] = entry["mood"] = next(iter(entry["findings"].values()))["mood"] = "good"
    content = f"{json.dumps(head)}\n{json.dumps(entry)}\n".encode()
    assert history.load(content, "r") == history.record(night(), "id", finished=True)


def test_a_time_without_zone_is_taken_for_utc() -> None:
    content = history.dump(history.record(night(), "id", finished=True)).replace(b"T01:00:00Z", b"T01:00:00")
    assert history.load(content, "r").started == datetime(2026, 11, 30, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "r is not the record of a job"),
        (b"\xff", "r is not the record of a job"),
        (b"{", "r is not the record of a job"),
        (b"[]", "r is not the record of a job"),
        (b'{"format": 1}', "r is not the record of a job: .*required field"),
        (b'{"format": 2, "entries": {}}', "r has format 2, this version reads 1: update streamfuzz"),
        (
            b'{"format":1,"id":"","mode":"","started":"0001-01-01T00:00:00+09:00","finished":true,"seconds":1,"streamfuzz":""}',
            "r is not the record of a job",
        ),
    ],
)
def test_what_is_no_record_is_told_by_name(content: bytes, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        history.load(content, "r")
