"""Findings put together: what is the same, and what only follows."""

from __future__ import annotations

from dataclasses import replace

from streamfuzz.case import Case
from streamfuzz.deviation import Deviation
from streamfuzz.finding import Finding
from streamfuzz.grouping import alike, fold, follows, merged
from streamfuzz_strategies.judge import NOT_JSON

ALWAYS = Finding("t", Case("sse", (b"data: a\n\n",)), Deviation("faithful", "altered", "the finish"), ())
ODD = replace(ALWAYS, deviation=replace(ALWAYS.deviation, rule=NOT_JSON), count=3)


def test_of_a_target_that_fails_on_everything_the_same_failure_on_odd_streams_is_no_news() -> None:
    (kept,) = fold([ALWAYS, ODD])
    assert (kept.deviation.rule, kept.count) == (None, 4)


def test_another_failure_on_odd_streams_stays() -> None:
    for other in (replace(ODD.deviation, kind="lost"), replace(ODD.deviation, oracle="fail_closed")):
        assert fold([ALWAYS, replace(ODD, deviation=other)]) == [ALWAYS, replace(ODD, deviation=other)]


def test_of_several_changes_that_one_thing_makes_the_first_stands_for_all() -> None:
    lost = replace(ALWAYS, causes=("CR line ends",), deviation=replace(ALWAYS.deviation, kind="lost"))
    altered = replace(lost, deviation=ALWAYS.deviation)
    repeated = replace(lost, deviation=replace(ALWAYS.deviation, kind="repeated"), count=2)
    assert fold([lost, altered, repeated]) == [replace(lost, count=4, also=("altered", "repeated"))]
    assert [found.deviation.kind for found in fold([altered, lost])] == ["altered"]


def test_a_cut_inside_one_character_stands_for_cuts_inside_others() -> None:
    two, three = (replace(ALWAYS, causes=(f"a cut inside a {width}-byte character",)) for width in (2, 3))
    assert fold([two, three]) == [
        replace(two, count=2, also=("altered because of a cut inside a 3-byte character",)),
    ]


def test_changes_of_other_causes_of_other_oracles_or_of_none_stay_apart() -> None:
    lost = replace(ALWAYS, causes=("CR line ends",), deviation=replace(ALWAYS.deviation, kind="lost"))
    altered = replace(lost, deviation=ALWAYS.deviation)
    for other in (
        replace(altered, causes=("CRLF line ends",)),
        replace(altered, deviation=replace(altered.deviation, oracle="isolated")),
        replace(altered, deviation=replace(altered.deviation, kind="refused")),
        replace(altered, deviation=replace(altered.deviation, rule=NOT_JSON)),
        replace(altered, flaky=True),
        replace(altered, case=replace(altered.case, probe="growth-long")),
    ):
        assert not alike(other, lost)
    assert not alike(replace(altered, causes=()), replace(lost, causes=()))


def test_what_shows_only_sometimes_or_has_a_cause_of_its_own_takes_nothing_in() -> None:
    assert not follows(ODD, replace(ALWAYS, flaky=True))
    assert not follows(ODD, replace(ALWAYS, causes=("a comment",)))


def test_the_simpler_of_two_is_kept_and_both_are_counted() -> None:
    longer = replace(ALWAYS, case=Case("sse", (b"data: abc\n\n",)), count=5)
    assert merged(longer, ALWAYS) == replace(ALWAYS, count=6)
    assert merged(replace(ALWAYS, flaky=True), longer) == replace(longer, count=6)
