"""The zoo for engines that make their targets in other processes."""

from __future__ import annotations

import pytest

from streamfuzz.config import Recipe
from streamfuzz.spec import UsageError

from .engines import shown, soon
from .hunt import PAIRS
from .named import name_of


@pytest.mark.parametrize("which", ["faulty", "repaired"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_every_twin_can_be_made_by_its_name(pair, which):
    made = Recipe(f"tests.zoo.named:{name_of(pair.name, which)}").target()
    assert (made.name, made.provider, made.call) == (f"{pair.name}-{which}", pair.provider, getattr(pair, which))


def test_there_are_no_others():
    with pytest.raises(UsageError, match="has no attribute 'faulty_nothing'"):
        Recipe("tests.zoo.named:faulty_nothing").target()


def test_the_sweep_finds_a_planted_bug_soon():
    pair = next(pair for pair in PAIRS if pair.name == "utf8-per-chunk")
    found = soon(pair, "sweep", 20.0)
    assert found is not None
    assert 0 < found < 20


def test_what_is_not_found_has_a_dash():
    assert (shown(None), shown(1.26)) == ("-", "1.3")
