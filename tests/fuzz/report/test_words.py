"""What several reports say in the same way."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date

import pytest

from streamfuzz.report.words import (
    duration,
    gone,
    kind,
    meaning,
    notes,
    place,
    plural,
    replay_command,
    tally,
    to_act_on,
)
from streamfuzz.result import Night, Result

from .samples import KNOWN, OVER, STARTED, empty_night, finding, findings, night, reported


def job(*results: Result, **more: object) -> Night:
    return Night(more.pop("mode", "batch"), STARTED, 1.0, results, **more)


def result(*found, **more) -> Result:
    return Result("t", "sse", 1, **{"cases": 1, "goals": Counter({"g": 1}), **more}, findings=list(found))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0 s"), (0, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (181, "3 min 1 s"), (7500, "2 h 5 min")],
)
def test_a_time_is_told_in_its_two_largest_units(seconds, text):
    assert duration(seconds) == text


def test_one_is_singular():
    assert [plural(n, "case") for n in (0, 1, 1200)] == ["0 cases", "1 case", "1,200 cases"]


def test_the_kind_of_a_finding():
    kinds = ["new", "back", "new", "expired", "warning", "flaky", "again", "known", "again"]
    assert [kind(each) for each in findings()] == kinds


def test_the_tally_names_the_most_pressing_first():
    expected = "3 new, 1 back, 1 expired, 1 warning, 2 flaky, 2 again, 2 known, 2 fixed"
    assert tally(night()) == expected
    assert tally(empty_night()) == "nothing found"


def test_notes_tell_what_is_known_from_elsewhere():
    days = {"first": date(2026, 1, 2), "last": date(2026, 3, 4)}
    assert list(notes(reported(finding()))) == []
    assert list(notes(reported(finding(), "again", **days))) == ["seen since 2026-01-02, last 2026-03-04"]
    assert next(notes(reported(finding(), "back"))) == "had been fixed and is back"
    assert next(notes(reported(finding(), "known", known=KNOWN))) == "known until 2030-01-02: waits for upstream"
    assert next(notes(reported(finding(), "expired", known=OVER))).startswith("no longer excused: was known until 2026")
    assert list(notes(reported(finding(flaky=True), failed=3))) == ["failed in 3 of 10 runs"]


def test_a_gone_deviation_says_what_to_do():
    assert gone(KNOWN).endswith("and did not occur: take it off the list")


@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        (job(result()), "Exit code 0: nothing to act on."),
        (job(result(reported(finding()))), "Exit code 1: 1 finding to act on."),
        (job(result(reported(finding(), "again"))), "Exit code 0: nothing to act on."),
        (job(result(reported(finding(), "again")), mode="replay"), "Exit code 1: 1 finding to act on."),
        (job(result(), failed=True), "Exit code 2: the job could not do what was asked, as told above."),
        (job(result(cases=0)), "Exit code 4: nothing was judged for t."),
        (job(), "Exit code 4: nothing was judged for any target."),
        (job(result(unreached=("a", "b")), vacuous=True), "Exit code 4: 2 goals never reached."),
        (job(result(unreached=("a",))), "Exit code 0: nothing to act on."),
        (job(result(gone=(KNOWN,))), "Exit code 4: 1 known deviation gone, to be taken off the list."),
    ],
)
def test_the_exit_code_is_explained(of, sentence):
    assert meaning(of) == sentence


def test_all_that_fails_a_job_is_to_be_acted_on():
    for of in (night(), replace(night(), mode="replay"), empty_night()):
        acted = [each for result in of.results for each in result.findings if to_act_on(of, each)]
        assert bool(acted) == (of.exit_code == 1)
    assert not to_act_on(night(), findings()[6])
    assert to_act_on(replace(night(), mode="replay"), findings()[6])


def test_a_replay_command_can_be_pasted_into_a_shell():
    assert replay_command("my target", "c/it's.json") == "streamfuzz replay 'my target' 'c/it'\"'\"'s.json'"


def test_a_place_is_told_from_the_top_of_the_repository_in_a_workflow(monkeypatch, tmp_path):
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert place("mine/reader.py:42") == ("mine/reader.py", 42)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    assert place("mine/reader.py:42") == ("sub/mine/reader.py", 42)
    assert place("/usr/lib/x.py:1") == ("/usr/lib/x.py", 1)
