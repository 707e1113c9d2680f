"""A JUnit file is well-formed whatever a target says, and fails where the job does."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped

from streamfuzz.happenings import Ended, Trouble
from streamfuzz.legible import printable
from streamfuzz.report.junit import JUnit, xml
from streamfuzz.result import Night, Result
from streamfuzz.spec import UsageError

from .samples import HOSTILE, KNOWN, STARTED, big_night, empty_night, finding, night, reported

NAMES = ("rich", "failed", "empty", "big")
CHILDREN = {
    "testsuites": ["testsuite"],
    "testsuite": ["testcase"],
    "testcase": ["error", "failure", "skipped", "system-out"],
}
REQUIRED = {
    "testsuites": {"tests", "failures", "errors", "skipped", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
    "system-out": set(),
}


def suites(of: Night):
    return {suite.name: {case.name: case for case in suite} for suite in JUnitXml.fromstring(xml(of))}


def outcome(case):
    return [type(each) for each in case.result]


def job(*found, **more):
    made = Result("t", "sse", 1, **{"cases": 1, "goals": Counter({"g": 1}), **more}, findings=list(found))
    return Night("batch", STARTED, 1.0, (made,))


def check(element: ET.Element):
    assert set(element.attrib) >= REQUIRED[element.tag]
    for child in element:
        assert child.tag in CHILDREN.get(element.tag, [])
        check(child)


@pytest.mark.parametrize("of", [night(), night(failed=True), empty_night(), big_night(150)], ids=NAMES)
def test_the_structure_is_the_one_that_all_readers_know(of):
    root = ET.fromstring(xml(of))
    check(root)
    cases = list(root.iter("testcase"))
    assert int(root.get("tests")) == len(cases)
    assert int(root.get("failures")) == len(list(root.iter("failure")))
    assert int(root.get("errors")) == len(list(root.iter("error")))
    assert int(root.get("skipped")) == len(list(root.iter("skipped")))


def test_a_suite_for_each_target_and_a_test_for_each_finding():
    assert list(suites(night())) == ["reader", "clean", printable(HOSTILE), "idle", "streamfuzz"]
    assert list(suites(empty_night())["clean"]) == ["search"]
    assert len(suites(night())["reader"]) == 11


def test_a_finding_that_counts_fails_with_its_bytes():
    case = suites(night())["reader"]["faithful.repeated: a repeated event"]
    (failure,) = case.result
    assert isinstance(failure, Failure)
    assert failure.type == "faithful.repeated"
    assert failure.message.endswith("had been fixed and is back; seen since 2026-11-02, last 2026-11-29")
    assert "^ cut between frames" in failure.text
    assert "replay  streamfuzz replay reader corpus/reader/1f.json" in failure.text
    assert case.classname == "reader"


def test_what_is_no_news_is_skipped_and_what_only_warns_passes():
    cases = suites(night())["reader"]
    assert outcome(cases["faithful.lost: a byte order mark"]) == [Skipped]
    assert "known until 2030-01-02: waits for upstream" in cases["faithful.lost: a byte order mark"].result[0].message
    assert outcome(cases["faithful.lost: null members"]) == [Skipped]
    assert outcome(cases["faithful.lost: an unknown field"]) == []
    assert "an unknown field" in cases["faithful.lost: an unknown field"].system_out
    assert outcome(cases["faithful.lost: CR line ends"]) == [Failure]
    assert outcome(cases["fragmentation.altered: a cut inside a character"]) == [Failure]
    assert "failed in 3 of 10 runs" in cases["fragmentation.altered: a cut inside a character"].result[0].message


def test_a_fixed_case_passes():
    fixed = night().results[0].fixed[0]
    alone = Night("batch", STARTED, 1.0, (Result("t", "sse", 1, 1, goals=Counter({"g": 1}), fixed=[fixed]),))
    case = suites(alone)["t"][fixed.signature]
    assert outcome(case) == []
    assert case.system_out.startswith("passes now: ")


def test_kept_cases_that_fail_again_fail_a_replay_only():
    again = job(reported(finding(), "again"))
    assert outcome(suites(again)["t"]["faithful.lost: a comment"]) == [Skipped]
    assert outcome(suites(replace(again, mode="replay"))["t"]["faithful.lost: a comment"]) == [Failure]


def test_the_search_fails_if_nothing_was_judged_and_errs_if_it_proves_nothing():
    def search(**more):
        of_night = {name: more.pop(name) for name in ("vacuous",) if name in more}
        return suites(replace(job(**more), **of_night))["t"]["search"]

    assert outcome(search()) == []
    assert outcome(search(cases=0)) == [Failure]
    assert outcome(search(goals=Counter())) == [Failure]
    assert outcome(search(unreached=("a",))) == []
    assert outcome(search(unreached=("a",), vacuous=True)) == [Error]
    assert outcome(search(unreached=("a",), vacuous=True, interrupted=True)) == []
    (gone,) = search(gone=(KNOWN,)).result
    assert isinstance(gone, Error)
    assert "take it off the list" in gone.message


def test_the_job_itself_is_told_where_something_is_wrong_with_it():
    assert "streamfuzz" not in suites(empty_night())
    case = suites(night())["streamfuzz"]["job"]
    assert outcome(case) == []
    assert "1 of its workers died" in case.system_out
    assert "corpus/x.json was skipped" in case.system_out
    assert outcome(suites(night(failed=True))["streamfuzz"]["job"]) == [Error]


def test_a_job_fails_here_when_it_does():
    for of in (night(), empty_night(), night(failed=True), job(gone=(KNOWN,)), job(cases=0), job()):
        root = ET.fromstring(xml(of))
        assert (int(root.get("failures")) + int(root.get("errors")) > 0) == (of.exit_code != 0)


def test_hostile_text_is_text():
    root = ET.fromstring(xml(night()))
    assert not {"script", "img"} & {element.tag for element in root.iter()}
    (suite,) = (suite for suite in root if suite.get("name") == printable(HOSTILE))
    assert suite.find("testcase[2]/failure").get("message").count("<script>alert(1)</script>") >= 2
    for element in root.iter():
        texts = [element.text or "", *element.attrib.values()]
        assert all(line.isprintable() for text in texts for line in text.split("\n"))


def test_a_big_night_is_written_quickly():
    started = time.perf_counter()
    made = xml(big_night(3000))
    assert len(JUnitXml.fromstring(made)._elem.findall("testsuite/testcase")) == 3001
    assert time.perf_counter() - started < 10


def test_the_file_is_written_when_the_job_has_ended(tmp_path):
    path = tmp_path / "sub" / "junit.xml"
    report = JUnit(path)
    report(Trouble("x"))
    assert not path.exists()
    report(Ended(night()))
    assert path.read_bytes().startswith(b"<?xml version='1.0' encoding='utf-8'?>")
    with pytest.raises(UsageError):
        JUnit(path / "below")
