"""Every planted bug is found, by the invariant that it breaks; nothing is reported on a repaired twin."""

from __future__ import annotations

import pytest

from .hunt import PAIRS, false_alarms, hunt
from .pair import Pair

each_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)


@each_pair
def test_a_planted_bug_is_found(pair: Pair) -> None:
    hunted = hunt(pair, seconds=30.0)
    assert hunted.found is not None, (
        f"not found in {hunted.cases} cases; seen: {', '.join(sorted(hunted.others)) or 'nothing'}"
    )


@each_pair
def test_a_repaired_twin_is_clean(pair: Pair) -> None:
    assert false_alarms(pair, cases=600) == []


def test_the_zoo_is_large_and_its_names_are_distinct() -> None:
    names = [pair.name for pair in PAIRS]
    assert len(names) == len(set(names)) >= 100
    assert all(pair.url.startswith("https://github.com/") for pair in PAIRS)
