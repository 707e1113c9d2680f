"""What is printed for machines obeys its published schemas."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, ValidationError

from streamfuzz.case import Case, CaseFile
from streamfuzz.deviation import Deviation
from streamfuzz.finding import Finding
from streamfuzz.replay import Replayed
from streamfuzz.report.json_report import (
    NIGHT_SCHEMA,
    REPLAY_SCHEMA,
    SCHEMA,
    night_json,
    replay_json,
    result_json,
    verdict,
)
from streamfuzz.result import Fixed, Night, Reported, Result, Share
from streamfuzz.spec import Known
from streamfuzz_strategies.judge import NOT_JSON

CASE = Case("openai-chat", (b"data: x\n\n",))
KNOWN = Known("faithful.lost: a comment", "upstream", date(2030, 1, 2))


def finding(verdict="fail", *, flaky=False, rule=None, causes=("a comment",), what="the text"):
    return Finding("t", CASE, Deviation("faithful", "lost", what, "a", "", rule, verdict), causes, "", 3, flaky)


def result(*findings, **more):
    return Result("t", "openai-chat", 7, 10, 1.23456, 0.5, list(findings), **more)


def valid(value, schema):
    """The value as another program reads it, checked against the schema."""
    read = json.loads(json.dumps(value, ensure_ascii=False).encode())
    Draft202012Validator(schema).validate(read)
    return read


@pytest.mark.parametrize("schema", [SCHEMA, REPLAY_SCHEMA])
def test_the_schemas_are_schemas_with_a_name_that_stays(schema):
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] in ("urn:streamfuzz:run:1", "urn:streamfuzz:replay:1")


@pytest.mark.parametrize(("schema", "row"), [(SCHEMA, None), (REPLAY_SCHEMA, None), (REPLAY_SCHEMA, 0)])
def test_the_schemas_refuse_what_lacks_a_member(schema, row):
    made = (
        result_json(result(Reported(finding())))
        if schema is SCHEMA
        else replay_json([Replayed("a", CaseFile(CASE), "pass")])
    )
    members = made if row is None else made["cases"][row]
    for name in list(members):
        value = members.pop(name)
        with pytest.raises(ValidationError):
            valid(made, schema)
        members[name] = value


def test_a_finding_is_told_in_full():
    read = valid(result_json(result(Reported(finding(rule=NOT_JSON), "c/1.json"))), SCHEMA)
    assert read["findings"] == [
        {
            "rule": "stream.payload.not-json",
            "oracle": "faithful",
            "kind": "lost",
            "signature": "faithful.lost@stream.payload.not-json: a comment",
            "verdict": "fail",
            "sentence": "t loses the text 'a' because of a comment (in the stream, a payload was not JSON).",
            "count": 3,
            "case": "c/1.json",
            "causes": ["a comment"],
            "also": [],
            "status": "new",
            "first": None,
            "last": None,
            "runs": 0,
            "failed": 0,
            "engine": "sweep",
        }
    ]


def test_a_night_is_told():
    known = Reported(finding(), "k.json", "known", KNOWN, date(2026, 1, 2), date(2026, 1, 3), 3, 10, "coverage")
    made = result(known)
    made.fixed.append(Fixed("s", "t loses", "f.json"))
    made.engines["coverage"] = Share(5, 1.0, 1)
    night = Night("batch", datetime(2026, 1, 3, tzinfo=UTC), 9.0, [made], 2, 1, ("a file was skipped",))
    read = valid(night_json(night), NIGHT_SCHEMA)
    (told,) = read["targets"]
    assert (read["workers"], read["lost"], read["troubles"]) == (2, 1, ["a file was skipped"])
    assert told["fixed"] == [{"signature": "s", "sentence": "t loses", "case": "f.json"}]
    assert told["engines"] == {"coverage": {"cases": 5, "seconds": 1.0, "findings": 1}}
    (row,) = told["findings"]
    assert (row["status"], row["first"], row["last"]) == ("known", "2026-01-02", "2026-01-03")
    assert (row["failed"], row["runs"], row["engine"]) == (3, 10, "coverage")


def test_a_finding_without_rule_or_file_has_nulls():
    read = valid(result_json(result(Reported(finding()))), SCHEMA)
    assert (read["findings"][0]["rule"], read["findings"][0]["case"]) == (None, None)


def test_the_search_is_told():
    made = result(goals=Counter({"b": 2}), unreached=("a",), gone=(KNOWN,), interrupted=True)
    read = valid(result_json(made), SCHEMA)
    read.pop("findings")
    assert read == {
        "target": "t",
        "provider": "openai-chat",
        "seed": 7,
        "cases": 10,
        "seconds": 1.235,
        "goals": {"a": 0, "b": 2},
        "known_gone": [{"signature": KNOWN.signature, "reason": "upstream", "expires": "2030-01-02"}],
        "interrupted": True,
        "exit_code": 4,
    }


@pytest.mark.parametrize(
    ("reported", "word"),
    [
        (Reported(finding()), "fail"),
        (Reported(finding("warn")), "warn"),
        (Reported(finding(flaky=True)), "flaky"),
        (Reported(finding("warn", flaky=True)), "flaky"),
        (Reported(finding(), None, "known", KNOWN), "known"),
        (Reported(finding(flaky=True), None, "known", KNOWN), "known"),
    ],
)
def test_the_verdict_is_one_word(reported, word):
    assert verdict(reported) == word
    assert valid(result_json(result(reported)), SCHEMA)["findings"][0]["verdict"] == word


def test_half_a_surrogate_pair_can_be_written():
    read = valid(result_json(result(Reported(finding(what="\ud83d"), "\udc80.json"))), SCHEMA)
    assert "loses \\ud83d" in read["findings"][0]["sentence"]
    assert read["findings"][0]["case"] == "\\udc80.json"


def test_a_replayed_case_is_told_by_its_worst_finding():
    findings = (finding("warn"), finding(flaky=True), finding(causes=("a byte order mark",)))
    read = valid(replay_json([Replayed("a", CaseFile(CASE), "fail", findings, "it differs")]), REPLAY_SCHEMA)
    assert read["exit_code"] == 1
    assert read["cases"] == [
        {
            "file": "a",
            "status": "fail",
            "sentence": "t loses the text 'a' because of a byte order mark.",
            "signature": "faithful.lost: a byte order mark",
            "signatures": [one.signature for one in findings],
            "judge_differs": "it differs",
        }
    ]


def test_a_passing_and_an_unreadable_case_are_told():
    read = valid(replay_json([Replayed("a", CaseFile(CASE), "pass")], {Path("b"): "b is empty"}), REPLAY_SCHEMA)
    assert read["exit_code"] == 2
    nothing = {"signature": None, "signatures": [], "judge_differs": None}
    assert read["cases"] == [
        {"file": "a", "status": "pass", "sentence": None, **nothing},
        {"file": "b", "status": "error", "sentence": "b is empty", **nothing},
    ]
