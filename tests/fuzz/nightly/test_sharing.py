"""Sharing: time goes where something new turns up, and never only there."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from streamfuzz.config import Recipe
from streamfuzz.nightly.sharing import Yield, choose
from streamfuzz.nightly.tasks import Field

SHARD = 10.0
ONE, TWO, THREE = (Field(Recipe(name), "openai-chat") for name in ("one", "two", "three"))
NOBODY: Counter[Field] = Counter()


def fields(**yields: Yield) -> dict[Field, Yield]:
    return {Field(Recipe(name), "openai-chat"): made for name, made in yields.items()}


def spent(news: int, *, shards: int = 1) -> Yield:
    made = Yield()
    for _ in range(shards):
        made.add(news, SHARD)
    return made


def shares(fields: dict[Field, Yield], news: dict[Field, int], rounds: int) -> Counter[Field]:
    """How many shards each gets if each of its shards brings so many news."""
    given: Counter[Field] = Counter()
    for number in range(rounds):
        chosen = choose(fields, NOBODY, SHARD, number)
        fields[chosen].add(news.get(chosen, 0), SHARD)
        given[chosen] += 1
    return given


def test_a_target_that_was_never_looked_at_comes_first() -> None:
    assert choose(fields(one=spent(100), two=Yield()), NOBODY, SHARD, 0) == TWO


def test_other_text_for_the_same_target_has_to_promise_more() -> None:
    other = replace(ONE, family="unicode")
    assert choose({ONE: spent(100), other: Yield()}, NOBODY, SHARD, 0) == ONE
    assert choose({ONE: spent(0), other: Yield()}, NOBODY, SHARD, 0) == other


def test_of_equals_the_target_with_least_time_comes_first() -> None:
    other = replace(ONE, family="unicode")
    assert choose({ONE: spent(0), other: Yield(), TWO: spent(0)}, NOBODY, SHARD, 0) == other
    assert choose({ONE: spent(0, shards=3), other: spent(0), TWO: spent(0)}, NOBODY, SHARD, 0) == TWO


def test_more_news_a_second_get_more_time() -> None:
    assert choose(fields(one=spent(3), two=spent(7), three=spent(0)), NOBODY, SHARD, 0) == TWO


def test_a_field_is_not_crowded_while_others_are_as_promising() -> None:
    assert choose(fields(one=Yield(), two=Yield()), Counter({ONE: 1}), SHARD, 0) == TWO


def test_a_dry_job_goes_round() -> None:
    given = shares(fields(one=Yield(), two=Yield(), three=Yield()), {}, 30)
    assert given == {ONE: 10, TWO: 10, THREE: 10}


def test_a_rich_field_gets_most_of_the_time_and_a_dry_one_still_some() -> None:
    given = shares(fields(one=spent(0), two=spent(0)), {ONE: 5}, 100)
    assert given == {ONE: 80, TWO: 20}


def test_what_once_was_rich_is_forgotten() -> None:
    made = fields(one=spent(50), two=Yield())
    for _ in range(12):
        made[ONE].add(0, SHARD)
    given = shares(made, {}, 20)
    assert given[TWO] >= given[ONE]
