"""Pruning: what is kept shows all that was shown, nothing kept is needless, and doing it twice changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfuzz.case import Case, CaseFile, Found
from streamfuzz.nightly.prune import Dropped, features, plan
from streamfuzz_strategies import cuts
from streamfuzz_strategies.stream import Frame

DATA = "data: é\r\n\r\n: x\ndata: [DONE]\n\n".encode()


def found(signature: str, chunks: tuple[Any, ...] = (b"data: a\n\n",), **more: Any) -> CaseFile:
    return CaseFile(Case("sse", chunks, **more), "why", found=Found("t", "faithful", signature, "it loses"))


def cut(signature: str, *offsets: int) -> CaseFile:
    return found(signature, tuple(cuts.chunks(DATA, offsets)))


# --- features


def test_a_case_shows_its_signatures_its_places_and_its_end() -> None:
    shown = features(cut("lost", 7, 8), ["altered"])
    assert shown == {
        f"sse, bytes: {name}"
        for name in (
            "signature lost",
            "signature altered",
            "cut inside a 2-byte character",
            "cut before a line end",
            "end eof",
            "probe none",
            "judged none",
        )
    }


def test_a_case_shows_the_rules_that_it_breaks_and_what_it_is_worth() -> None:
    shown = features(CaseFile(Case("openai-chat", (b"data: {\n\n",), end="reset")))
    assert {"openai-chat, bytes: rule stream.payload.not-json", "openai-chat, bytes: rule stream.reset"} <= shown
    assert {"openai-chat, bytes: end reset", "openai-chat, bytes: judged must"} <= shown


def test_text_is_cut_between_characters_and_frames_are_not_cut() -> None:
    text = features(CaseFile(Case("sse", ("data: é", "", "\n\n"), takes="text")))
    assert {name for name in text if "cut" in name or "chunk" in name} == {
        "sse, text: cut before a line end",
        "sse, text: an empty chunk",
    }
    frames = features(CaseFile(Case("openai-chat", (Frame("[DONE]"), Frame("x")), takes="frames")))
    assert not [name for name in frames if "cut" in name]


def test_streams_of_different_providers_show_different_things() -> None:
    case = Case("sse", (b"data: a\n\n",))
    assert not features(CaseFile(case)) & features(CaseFile(replace(case, provider="ndjson")))


# --- the plan


def test_a_case_that_shows_nothing_of_its_own_is_dropped_with_the_reason() -> None:
    small, large = cut("lost", 7), cut("lost", 7, 7)
    made = plan(
        [("large", replace(large, case=replace(large.case, probe="isolated"))), ("same", small), ("more", small)]
    )
    assert made.keep == ("large", "more")
    assert made.drop == (Dropped("same", ("more",)),)


def test_what_several_show_together_is_shown_by_them() -> None:
    together = replace(cut("b", 7), case=replace(cut("b", 7).case, probe="isolated"))
    made = plan([("one", cut("a", 7)), ("two", found("b", probe="isolated")), ("both", together)])
    assert made.keep == ("one", "two")
    assert [dropped.name for dropped in made.drop] == ["both"]
    assert set(made.drop[0].covered_by) == {"one", "two"}


def test_a_case_that_nobody_found_stays_and_counts() -> None:
    by_hand = CaseFile(cut("lost", 7).case, "by hand")
    assert plan([("a", by_hand), ("b", by_hand)]).keep == ("a", "b")
    assert plan([("a", by_hand), ("b", cut("lost", 7))]).keep == ("a", "b")
    made = plan([("a", by_hand), ("b", cut("lost", 7)), ("c", cut("lost", 7))])
    assert (made.keep, made.drop) == (("a", "b"), (Dropped("c", ("b",)),))


def test_what_fails_today_counts_as_what_failed_once() -> None:
    one, two = cut("lost", 7), found("lost", tuple(cuts.chunks(DATA, (7,))))
    assert plan([("a", one), ("b", two)]).keep == ("a",)
    today = {id(one): ["altered"], id(two): ["invented"]}
    assert plan([("a", one), ("b", two)], lambda file: today[id(file)]).keep == ("a", "b")


def test_of_nothing_nothing_is_kept() -> None:
    assert plan([]) == plan([])
    assert (plan([]).keep, plan([]).drop) == ((), ())


# --- whatever the cases

FILES = st.builds(
    lambda offsets, signature, end, probe, hand: replace(
        cut(signature, *sorted(offsets)),
        case=Case("sse", tuple(cuts.chunks(DATA, tuple(sorted(offsets)))), end=end, probe=probe),
        **({"found": None} if hand else {}),
    ),
    st.lists(st.integers(0, len(DATA)), max_size=4),
    st.sampled_from("abcdef"),
    st.sampled_from(["eof", "reset"]),
    st.sampled_from(["", "isolated"]),
    st.integers(0, 9).map(lambda number: number == 0),
)


@given(st.lists(FILES, max_size=12))
@settings(max_examples=300, deadline=None, database=None)
def test_nothing_shown_is_lost_nothing_kept_is_needless_and_twice_is_once(files: list[CaseFile]) -> None:
    cases = {f"{number}.json": file for number, file in enumerate(files)}
    made = plan(cases.items())
    shown = {name: features(file) for name, file in cases.items()}

    def together(names: Any) -> frozenset[str]:
        return frozenset().union(*(shown[name] for name in names))

    assert sorted((*made.keep, *(dropped.name for dropped in made.drop))) == sorted(cases)
    assert together(made.keep) == together(cases)
    for name in made.keep:
        others = together(set(made.keep) - {name})
        assert cases[name].found is None or not shown[name] <= others
    for dropped in made.drop:
        assert shown[dropped.name] <= together(dropped.covered_by)
        assert set(dropped.covered_by) <= set(made.keep)
    again = plan([(name, cases[name]) for name in made.keep])
    assert (again.keep, again.drop) == (made.keep, ())


@pytest.mark.parametrize("count", [3000])
def test_a_large_corpus_is_pruned_quickly(count: int) -> None:
    files = [(f"{n}.json", cut(f"signature {n % 40}", n % 20 + 1)) for n in range(count)]
    made = plan(files)
    assert len(made.keep) <= 60
    assert len(made.keep) + len(made.drop) == count
