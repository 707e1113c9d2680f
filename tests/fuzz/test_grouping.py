"""Findings put together: what is the same, and what only follows."""

from __future__ import annotations

from dataclasses import replace

from streamfuzz.case import Case
from streamfuzz.deviation import Deviation
from streamfuzz.explain import Finding
from streamfuzz.grouping import fold, follows, merged
from streamfuzz_strategies.judge import NOT_JSON

ALWAYS = Finding("t", Case("sse", (b"data: a\n\n",)), Deviation("faithful", "altered", "the finish"), ())
ODD = replace(ALWAYS, deviation=replace(ALWAYS.deviation, rule=NOT_JSON), count=3)


def test_of_a_target_that_fails_on_everything_the_same_failure_on_odd_streams_is_no_news() -> None:
    (kept,) = fold([ALWAYS, ODD])
    assert (kept.deviation.rule, kept.count) == (None, 4)


def test_another_failure_on_odd_streams_stays() -> None:
    for other in (replace(ODD.deviation, kind="lost"), replace(ODD.deviation, oracle="fail_closed")):
        assert fold([ALWAYS, replace(ODD, deviation=other)]) == [ALWAYS, replace(ODD, deviation=other)]


def test_what_shows_only_sometimes_or_has_a_cause_of_its_own_takes_nothing_in() -> None:
    assert not follows(ODD, replace(ALWAYS, flaky=True))
    assert not follows(ODD, replace(ALWAYS, causes=("a comment",)))


def test_the_simpler_of_two_is_kept_and_both_are_counted() -> None:
    longer = replace(ALWAYS, case=Case("sse", (b"data: abc\n\n",)), count=5)
    assert merged(longer, ALWAYS) == replace(ALWAYS, count=6)
    assert merged(replace(ALWAYS, flaky=True), longer) == replace(longer, count=6)
