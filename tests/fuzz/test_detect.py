"""The detectability table is counted from drawn streams, and says what the protocols make decidable."""

from __future__ import annotations

import pytest

from streamfuzz.detect import STREAMS, detectability, summary

COUNTED = detectability(("ollama", "ndjson"))


def test_each_damage_is_counted_for_each_provider_asked_for() -> None:
    assert {name for row in COUNTED.values() for name in row} == {"ollama", "ndjson"}
    assert all(set(counts) == {"must", "may", "none"} for row in COUNTED.values() for counts in row.values())
    assert all(sum(counts.values()) > 0 for row in COUNTED.values() for counts in row.values())
    assert COUNTED["cut off between events"]["ollama"]["must"] >= STREAMS


def test_a_protocol_with_an_end_shows_that_it_is_missing_and_one_without_does_not() -> None:
    between = COUNTED["cut off between events"]
    assert summary(between["ollama"]) == "must"
    assert summary(between["ndjson"]) == "none"
    assert summary(COUNTED["drop an event"]["ndjson"]) == "none"


def test_a_line_that_is_cut_in_the_middle_shows_everywhere() -> None:
    inside = COUNTED["cut off inside an event"]
    assert summary(inside["ollama"]) == "must"
    assert inside["ndjson"]["must"] > 0


def test_the_table_is_the_same_each_time() -> None:
    assert detectability.__wrapped__(("ndjson",))["drop an event"]["ndjson"] == COUNTED["drop an event"]["ndjson"]


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"must": 3, "may": 0, "none": 0}, "must"),
        ({"must": 0, "may": 0, "none": 9}, "none"),
        ({"must": 3, "may": 1, "none": 0}, "must 75%, may 25%"),
        ({"must": 1, "may": 1, "none": 2}, "must 25%, may 25%, none 50%"),
        ({"must": 999, "may": 1, "none": 0}, "must 99%, may 1%"),
    ],
)
def test_a_summary_names_the_levels_that_occur(counts: dict[str, int], text: str) -> None:
    assert summary(counts) == text
