"""The ledger: what each outcome brought that is new, and the result that is read off in the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from streamfuzz.case import Case, CaseFile, Found
from streamfuzz.config import Recipe
from streamfuzz.demo import demo
from streamfuzz.deviation import Deviation
from streamfuzz.finding import Finding
from streamfuzz.nightly.history import Past
from streamfuzz.nightly.ledger import FIRST_COST, Ledger
from streamfuzz.nightly.settings import Subject
from streamfuzz.nightly.tasks import Field, Outcome, Rerun, Shard
from streamfuzz.result import Point, Result
from streamfuzz.spec import Known

TODAY = date(2026, 5, 5)
FIELD = Field(Recipe("demo"), "openai-chat")


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(Subject("demo", "demo", Recipe("demo"), demo()), seed=1)


def finding(kind: str = "lost", *causes: str, size: int = 5, count: int = 1) -> Finding:
    case = Case("openai-chat", (b"x" * size,))
    return Finding("demo", case, Deviation("faithful", kind, "the text"), causes, count=count)


def outcome(
    *findings: Finding, goals: str = "", cases: int = 100, seconds: float = 1.0, engine: str = "sweep"
) -> Outcome:
    shard = Shard(Field(Recipe("demo"), "openai-chat", engine=engine), 1, cases, 1e-4)
    return Outcome(shard, cases, seconds, seconds / 2, Counter(goals.split()), ("a", "b", "c"), findings, 3)


def result(ledger: Ledger, past: Past | None = None, *, gone: bool = True) -> Result:
    return ledger.result(past or Past(), TODAY, interrupted=False, gone=gone)


def test_news_are_what_no_outcome_before_had(ledger: Ledger) -> None:
    news, found = ledger.enter(outcome(finding(), goals="a b"), 1.0)
    assert (news, [f.signature for f in found]) == (["a", "b", "faithful.lost"], ["faithful.lost"])
    assert ledger.enter(outcome(finding(), goals="b c"), 2.0) == (["c"], [])


def test_counts_add_up(ledger: Ledger) -> None:
    ledger.enter(outcome(finding(count=2), goals="a rule: x"), 1.0)
    ledger.enter(outcome(finding(count=3, size=3), goals="a", engine="coverage"), 2.0)
    made = result(ledger)
    assert (made.cases, made.seconds, made.inside, made.more) == (200, 2.0, 1.0, 6)
    assert made.goals == {"a": 2, "rule:": 1, "x": 1}
    (reported,) = made.findings
    assert (reported.finding.count, reported.finding.case.size) == (5, 4)
    assert {name: (s.cases, s.findings) for name, s in made.engines.items()} == {
        "sweep": (100, 1),
        "coverage": (100, 0),
    }
    assert reported.engine == "sweep"


def test_a_finding_that_is_kept_keeps_its_case(ledger: Ledger) -> None:
    ledger.enter(outcome(finding(size=9)), 1.0)
    ledger.entries["faithful.lost"].path = "kept.json"
    ledger.enter(outcome(finding(size=2)), 2.0)
    (reported,) = result(ledger).findings
    assert (reported.finding.case.size, reported.finding.count) == (10, 2)


def test_what_only_follows_is_left_out_and_not_worth_settling(ledger: Ledger) -> None:
    base, more = finding("lost", "a comment"), finding("lost", "a comment", "CR")
    ledger.enter(outcome(base, more), 1.0)
    assert [ledger.worth_settling(one) for one in (base, more)] == [True, False]
    assert [reported.finding.causes for reported in result(ledger).findings] == [("a comment",)]


def test_of_changes_with_one_cause_the_first_is_told_and_worth_settling(ledger: Ledger) -> None:
    lost, altered = finding("lost", "CR"), finding("altered", "CR")
    ledger.enter(outcome(lost, altered), 1.0)
    assert [ledger.worth_settling(one) for one in (lost, altered)] == [True, False]
    (reported,) = result(ledger).findings
    assert (reported.finding.signature, reported.finding.also) == ("faithful.lost: CR", ("altered",))


def test_what_is_excused_takes_no_other_change_in(ledger: Ledger) -> None:
    known = Known("faithful.lost: CR", "being mended", TODAY + timedelta(days=1))
    ledger.subject = replace(ledger.subject, target=replace(ledger.subject.target, known=(known,)))
    lost, altered = finding("lost", "CR"), finding("altered", "CR")
    ledger.enter(outcome(lost, altered), 1.0)
    assert ledger.worth_settling(altered)
    made = result(ledger)
    assert [(r.finding.signature, r.status) for r in made.findings] == [("faithful.altered: CR", "new")]
    assert made.gone == ()


def test_a_kept_case_that_fails_is_a_finding_with_its_file(ledger: Ledger) -> None:
    found = finding()
    file = CaseFile(found.case, found=Found("demo", "faithful", "faithful.lost", "lost"))
    ledger.rerun("c/1.json", file, Rerun("c/1.json", "fail", (found,), ""))
    made = result(ledger)
    assert [(r.path, r.failed, r.runs, r.engine) for r in made.findings] == [("c/1.json", 1, 1, "kept cases")]
    assert made.fixed == []


def test_a_kept_case_that_passes_is_fixed_unless_its_failure_shows_elsewhere(ledger: Ledger) -> None:
    found = finding()
    file = CaseFile(found.case, found=Found("demo", "faithful", "faithful.lost", "demo loses"))
    ledger.rerun("c/1.json", file, Rerun("c/1.json", "pass", (), ""))
    assert [(f.signature, f.sentence, f.path) for f in result(ledger).fixed] == [
        ("faithful.lost", "demo loses", "c/1.json")
    ]
    ledger.enter(outcome(found), 1.0)
    assert result(ledger).fixed == []


def test_a_kept_case_that_nobody_found_is_not_fixed_by_passing(ledger: Ledger) -> None:
    ledger.rerun("c/1.json", CaseFile(finding().case), Rerun("c/1.json", "pass", (), ""))
    assert result(ledger).fixed == []


def test_days_are_those_on_which_it_was_seen(ledger: Ledger) -> None:
    ledger.enter(outcome(finding()), 1.0)
    past = Past({"faithful.lost": _trail(TODAY - timedelta(9), TODAY - timedelta(2))})
    (reported,) = result(ledger, past).findings
    assert (reported.first, reported.last, reported.status) == (TODAY - timedelta(9), TODAY, "again")


def test_what_the_base_has_too_is_no_news(ledger: Ledger) -> None:
    ledger.enter(outcome(finding()), 1.0)
    ledger.base.add("faithful.lost")
    assert [reported.status for reported in result(ledger).findings] == ["again"]


def test_goals_that_earlier_jobs_reached_are_not_unmet(ledger: Ledger) -> None:
    ledger.enter(outcome(goals="a"), 1.0)
    assert result(ledger).unreached == ("b", "c")
    assert result(ledger, Past(reached={"b"})).unreached == ("c",)


def test_the_curve_grows_with_what_is_found(ledger: Ledger) -> None:
    ledger.enter(outcome(finding(), goals="a"), 1.0)
    ledger.enter(outcome(goals="a"), 1.1)
    ledger.enter(outcome(goals="b"), 1.2)
    assert ledger.curve == [Point(1.0, 100, 1, 0, 1), Point(1.2, 300, 2, 0, 1)]


def test_the_cost_of_a_run_is_guessed_until_it_is_known(ledger: Ledger) -> None:
    assert ledger.cost == FIRST_COST
    ledger.enter(outcome(cases=300, seconds=2.0), 1.0)
    assert ledger.cost == pytest.approx(0.0033)


def _trail(first: date, last: date):  # type: ignore[no-untyped-def]
    from streamfuzz.nightly.history import _Trail

    return _Trail(first, last, reported=True)


def test_the_definition_of_the_target_is_told(ledger: Ledger) -> None:
    source = result(ledger).source
    assert source is not None
    path, _, line = source.rpartition(":")
    assert Path(path).name == "demo.py"
    assert int(line) > 1
