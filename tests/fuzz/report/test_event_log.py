"""The event log is one valid JSON object a line, whatever a target says, and is there while the job runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import get_args

import pytest
from jsonschema import Draft202012Validator, ValidationError

from streamfuzz.happenings import Happening, NewFinding, Settled, Trouble
from streamfuzz.report.event_log import SCHEMA, EventLog, line
from streamfuzz.spec import UsageError

from .samples import HOSTILE, big_night, finding, findings, happenings

VALID = Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)
NOW = datetime(2026, 11, 30, 1, 2, 3, 456789, tzinfo=UTC)


def told(path):
    return [json.loads(text) for text in path.read_text(encoding="ascii").splitlines()]


def test_the_schema_is_a_schema_with_a_name_that_stays():
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == "urn:streamfuzz:event:1"


def test_each_happening_is_a_line_that_the_schema_accepts(tmp_path):
    log = EventLog(tmp_path / "events.ndjson")
    seen = happenings()
    for count, happening in enumerate(seen, 1):
        log(happening)
        assert len(told(tmp_path / "events.ndjson")) == count
    lines = told(tmp_path / "events.ndjson")
    for each in lines:
        VALID.validate(each)
    assert {type(happening) for happening in seen} == set(get_args(Happening))
    assert len({each["event"] for each in lines}) == len(get_args(Happening))


@pytest.mark.parametrize("happening", happenings()[:6], ids=lambda happening: type(happening).__name__)
def test_the_schema_refuses_a_line_that_lacks_a_member(happening):
    made = json.loads(line(happening, NOW))
    for name in made:
        with pytest.raises(ValidationError):
            VALID.validate({key: value for key, value in made.items() if key != name})


def test_members_are_sorted_and_the_time_is_utc():
    made = line(Trouble("x"), NOW)
    assert made == '{"event": "trouble", "message": "x", "time": "2026-11-30T01:02:03.456+00:00"}\n'


def test_a_finding_carries_its_history():
    made = json.loads(line(Settled(findings()[5]), NOW))
    finding = made["finding"]
    assert (finding["status"], finding["failed"], finding["runs"]) == ("new", 3, 10)
    assert (finding["first"], finding["last"], finding["verdict"]) == ("2026-11-30", "2026-11-30", "flaky")


def test_hostile_text_stays_in_its_line():
    made = line(NewFinding(finding(HOSTILE, target=HOSTILE)), NOW)
    assert made.count("\n") == 1
    assert made.isascii()
    made.encode("ascii").decode("utf-8")
    assert "\\\\ud83d" in made  # half a pair: no reader could take it as it is
    assert json.loads(made)["target"] == HOSTILE.replace("\ud83d", "\\ud83d")


def test_the_end_of_a_big_night_is_one_line():
    made = line(happenings(big_night(1000))[-1], NOW)
    assert len(json.loads(made)["night"]["targets"][0]["findings"]) == 1000


def test_a_log_begins_empty_and_a_place_that_cannot_be_written_to_is_told(tmp_path):
    path = tmp_path / "events.ndjson"
    path.write_text("old\n")
    EventLog(path)
    assert path.read_text() == ""
    with pytest.raises(UsageError, match="cannot write"):
        EventLog(path / "below")
    log = EventLog(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageError, match="cannot write"):
        log(Trouble("x"))


def test_a_start_in_another_time_zone_keeps_it():
    began = happenings()[0]
    assert began.started.tzinfo == timezone(timedelta(hours=1))
    assert json.loads(line(began, NOW))["started"] == "2026-11-30T01:02:03+01:00"
