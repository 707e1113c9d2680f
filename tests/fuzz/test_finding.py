"""A finding is told in one sentence."""

from __future__ import annotations

import re

import pytest

from streamfuzz.deviation import Deviation
from streamfuzz.finding import _VERBS, describe
from streamfuzz_strategies.rules import Rule

KINDS = sorted(_VERBS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_deviation_has_its_sentence(kind: str) -> None:
    rule = Rule("toy.rule", "it was odd", "nowhere")
    sentence = describe("T", Deviation("faithful", kind, "the text", "a\u2028", ["b" * 99], rule), ("a comment",))
    assert sentence.startswith("T ")
    assert sentence.endswith(".")
    assert "{" not in sentence.replace("['b", "")
    assert "the text" in sentence
    assert "because of a comment" in sentence
    assert "it was odd" in sentence
    assert sentence.isprintable()


def test_the_kinds_are_those_that_a_deviation_lists() -> None:
    listed = re.search(r"kind: what went wrong in one word: (.*?)\.", Deviation.__doc__ or "", re.DOTALL)
    assert listed is not None
    assert sorted(re.split(r",\s+", listed[1])) == KINDS


def test_long_values_are_cut_short() -> None:
    sentence = describe("T", Deviation("faithful", "lost", "the text", "x" * 500))
    assert sentence == f"T loses the text '{'x' * 56}...."
