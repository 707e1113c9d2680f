"""Differences are named for what happened: lost, repeated, reordered, altered or invented."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfuzz.compare import Difference, same_call, sequences, texts, views
from streamfuzz_strategies.reply import Choice, Reasoning, Reply, Text, ToolCall, Usage, choice_view, view

CALLS = (ToolCall("1", "f", '{"a": 1}'), ToolCall("2", "g", ""))
REPLY = Reply((Choice((Reasoning("hm"), Text("Hello"), *CALLS), "stop"),), "id", "m", Usage(3, 4))
TWO = Reply((Choice((Text("a"),), "stop"), Choice((Text("b"),), "length")))

items = st.lists(st.sampled_from("abc"), max_size=5)


def change(difference: Difference | None) -> str:
    assert difference is not None
    return difference.change


# --- sequences and texts


@given(items, items)
def test_only_equal_things_are_the_same(one: list[str], other: list[str]) -> None:
    assert (sequences(one, other, "item") is None) == (one == other)
    assert (texts("".join(one), "".join(other), "the text") is None) == (one == other)


@given(items.filter(bool), st.data())
def test_what_was_left_out_is_lost(whole: list[str], data: st.DataObject) -> None:
    gone = data.draw(st.integers(0, len(whole) - 1))
    left = whole[:gone] + whole[gone + 1 :]
    assert change(sequences(whole, left, "item")) == "lost"
    assert change(texts("".join(whole), "".join(left), "the text")) == "lost"


@given(items.filter(bool), st.data())
def test_what_came_twice_is_repeated(whole: list[str], data: st.DataObject) -> None:
    again = data.draw(st.integers(0, len(whole) - 1))
    more = whole[:again] + whole[again : again + 1] + whole[again:]
    assert change(sequences(whole, more, "item")) == "repeated"
    assert change(texts("".join(whole), "".join(more), "the text")) == "repeated"


@given(items, st.data())
def test_what_never_was_is_invented(whole: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(whole)))
    more = [*whole[:at], "z", *whole[at:]]
    assert change(sequences(whole, more, "item")) == "invented"
    assert change(texts("".join(whole), "".join(more), "the text")) == "invented"


@given(st.permutations("abcd"))
def test_the_same_in_another_order_is_reordered(order: list[str]) -> None:
    if order != list("abcd"):
        assert change(sequences(list("abcd"), order, "item")) == "reordered"
        assert change(texts("abcd", "".join(order), "the text")) == "reordered"


@pytest.mark.parametrize(
    ("expected", "got", "difference"),
    [
        (["a", "b", "c"], ["a", "x", "c"], Difference("altered", "item 2", "b", "x")),
        (["a", "b", "c"], ["a", "c"], Difference("lost", "item 2", "b", None)),
        (["a", "b", "c", "d"], ["b", "d"], Difference("lost", "item 1", "a", None)),
        (["a", "b"], ["a", "b", "a"], Difference("repeated", "item 3", None, "a")),
        (["b", "c"], ["x", "b", "y", "c"], Difference("invented", "item 1", None, "x")),
        ([], [{"a": 1}], Difference("invented", "item 1", None, {"a": 1})),
        ([{"a": 1}, {"b": 2}], [{"b": 2}, {"a": 1}], Difference("reordered", "item 1", {"a": 1}, {"b": 2})),
    ],
)
def test_a_difference_names_the_first_item_that_is_wrong(expected: Any, got: Any, difference: Difference) -> None:
    assert sequences(expected, got, "item") == difference


@pytest.mark.parametrize(
    ("expected", "got", "difference"),
    [
        ("Hello", "Hllo", Difference("lost", "the text", "e", "")),
        ("Hello", "", Difference("lost", "the text", "Hello", "")),
        ("Hello", "HelloHello", Difference("repeated", "the text", "", "Hello")),
        ("na\u00efve", "na\ufffdve", Difference("altered", "the text", "\u00ef", "\ufffd")),
        ("abc", "acb", Difference("reordered", "the text", "bc", "cb")),
        ("a.b.c", "abc", Difference("lost", "the text", ".b.", "b")),
    ],
)
def test_a_difference_of_texts_is_no_longer_than_it_must_be(expected: str, got: str, difference: Difference) -> None:
    assert texts(expected, got, "the text") == difference


# --- views


@pytest.mark.parametrize("reply", [REPLY, TWO, Reply()])
def test_the_whole_view_of_a_reply_is_no_different(reply: Reply) -> None:
    assert views(view(reply), reply) is None


def test_a_flat_view_speaks_of_the_first_choice() -> None:
    assert views(choice_view(TWO.choices[0]), TWO) is None
    assert change(views({"text": "b"}, TWO)) == "altered"
    assert views({"text": "", "finish": None}, Reply()) is None


def test_only_the_fields_that_a_target_has_are_compared() -> None:
    assert views({}, REPLY) is None
    assert views({"model": "m", "unheard": 1}, REPLY) is None


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("text", "Hell", Difference("lost", "the text", "o", "")),
        ("reasoning", "", Difference("lost", "the reasoning", "hm", "")),
        ("refusal", "no", Difference("invented", "the refusal", "", "no")),
        ("finish", None, Difference("lost", "the finish reason", "stop", None)),
        ("finish", "length", Difference("altered", "the finish reason", "stop", "length")),
        ("id", "other", Difference("altered", "the id", "id", "other")),
        ("model", None, Difference("lost", "the model", "m", None)),
        ("usage", {"input": 3, "output": 5}, None),
        ("usage", None, Difference("lost", "the usage", {"input": 3, "output": 4}, None)),
        ("tool_calls", [], Difference("lost", "tool call 1", {"arguments": {"a": 1}, "id": "1", "name": "f"}, None)),
    ],
)
def test_a_wrong_field_is_named(field: str, value: Any, expected: Difference | None) -> None:
    found = views({field: value}, REPLY)
    if expected is None:
        assert found is not None
        assert (found.change, found.what) == ("altered", f"the {field}")
    else:
        assert found == expected


def test_a_usage_is_compared_in_the_counts_that_a_target_has() -> None:
    assert views({"usage": {"output": 4}}, REPLY) is None
    assert views({"usage": {"total": 7}}, REPLY) is None
    assert views({"usage": {"input": None}}, Reply()) is None
    assert change(views({"usage": {"input": 1}}, Reply())) == "invented"
    assert change(views({"usage": 7}, REPLY)) == "altered"


def test_choices_are_counted_and_named() -> None:
    both = [{"text": "a"}, {"text": "b"}]
    assert views({"choices": both}, TWO) is None
    assert views({"choices": both[:1]}, TWO) == Difference("lost", "the choices", 2, 1)
    assert views({"choices": [*both, {}]}, TWO) == Difference("invented", "the choices", 2, 3)
    assert views({"choices": [both[0], {"text": "x"}]}, TWO) == Difference("altered", "the text of choice 1", "b", "x")


# --- tool calls


def calls(*given: dict[str, Any]) -> Difference | None:
    return views({"tool_calls": list(given)}, REPLY)


ONE, OTHER = {"id": "1", "name": "f", "arguments": '{"a":1}'}, {"id": "2", "name": "g", "arguments": "{}"}


def test_arguments_are_compared_as_json_and_none_are_an_empty_object() -> None:
    assert calls(ONE, OTHER) is None
    assert calls(ONE | {"arguments": {"a": 1}}, OTHER | {"arguments": None}) is None
    assert calls({"name": "f"}, {"name": "g"}) is None


def test_a_wrong_part_of_a_call_is_named() -> None:
    assert calls(ONE | {"name": "ff"}, OTHER) == Difference("repeated", "the name of tool call 1", "", "f")
    assert calls(ONE, OTHER | {"id": None}) == Difference("lost", "the id of tool call 2", "2", None)
    found = calls(ONE | {"arguments": '{"a": 1'}, OTHER)
    assert found == Difference("lost", "the arguments of tool call 1", "}", "")


def test_calls_may_be_swapped_repeated_or_invented() -> None:
    assert change(calls(OTHER, ONE)) == "reordered"
    assert change(calls(ONE, OTHER, OTHER)) == "repeated"
    assert change(calls(ONE, {"id": "3", "name": "h", "arguments": "{}"}, OTHER)) == "invented"


def test_the_same_call_is_the_same_in_the_fields_given() -> None:
    wanted = {"id": "1", "name": "f", "arguments": '{"a": 1}'}
    assert same_call({"name": "f", "arguments": {"a": 1}}, wanted)
    assert not same_call({"name": "g"}, wanted)
    assert not same_call({"name": "f", "arguments": '{"a": '}, wanted)
