"""The provider-neutral message: its views tell all of it, and joining neighbours changes no text."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfuzz_strategies.reply import (
    CHOICE_FIELDS,
    REPLY_FIELDS,
    Choice,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Reply,
    Text,
    ToolCall,
    Usage,
    choice_view,
    merge_text,
    part_view,
    usage_of,
    view,
)

words = st.sampled_from(("", "a", "b"))
parts: st.SearchStrategy[Part] = st.one_of(
    words.map(Text),
    words.map(Refusal),
    st.builds(Reasoning, words, st.sampled_from((None, "sig"))),
    st.builds(ToolCall, st.just("t"), words, words),
    st.builds(Opaque, st.just("image"), words),
)
part_lists = st.lists(parts, max_size=8).map(tuple)

FULL = Choice(
    (
        Reasoning("th", "s1"),
        Text("Hel"),
        ToolCall("t1", "f", "{}"),
        Text("lo"),
        Refusal("no"),
        ToolCall(None, "g", '{"a":1}'),
        Opaque("image", "[1]"),
    ),
    "stop",
)


def test_a_view_has_every_field_of_every_choice() -> None:
    seen = view(Reply((FULL, Choice()), "id", "m", Usage(1, 2)))
    assert [set(choice) for choice in seen["choices"]] == [set(CHOICE_FIELDS)] * 2
    assert {name for name in seen if name != "choices"} == set(REPLY_FIELDS)
    assert (seen["id"], seen["model"], seen["usage"]) == ("id", "m", {"input": 1, "output": 2})
    assert view(Reply())["usage"] is None


def test_text_of_a_view_is_joined_over_the_parts_between() -> None:
    seen = choice_view(FULL)
    assert (seen["text"], seen["reasoning"], seen["refusal"]) == ("Hello", "th", "no")
    assert seen["finish"] == "stop"
    assert seen["tool_calls"] == [
        {"id": "t1", "name": "f", "arguments": "{}"},
        {"id": None, "name": "g", "arguments": '{"a":1}'},
    ]
    kinds = ["reasoning", "text", "toolcall", "text", "refusal", "toolcall", "opaque"]
    assert [part["kind"] for part in seen["parts"]] == kinds


def test_an_opaque_part_keeps_both_its_kinds() -> None:
    assert part_view(Opaque("image", "[1]")) == {"of": "image", "data": "[1]"}
    assert choice_view(Choice((Opaque("image", "[1]"),)))["parts"] == [{"kind": "opaque", "of": "image", "data": "[1]"}]


@given(part_lists)
def test_a_view_is_json(made: tuple[Part, ...]) -> None:
    seen = view(Reply((Choice(made),)))
    assert json.loads(json.dumps(seen)) == seen


@given(part_lists, part_lists)
def test_replies_with_different_parts_have_different_views(one: tuple[Part, ...], other: tuple[Part, ...]) -> None:
    assert (choice_view(Choice(one)) == choice_view(Choice(other))) == (one == other)


def test_the_calls_of_a_reply_are_those_of_all_choices_in_order() -> None:
    calls = (ToolCall("1", "f", ""), ToolCall("2", "f", ""), ToolCall("3", "f", ""))
    reply = Reply((Choice((calls[0], Text("x"), calls[1])), Choice((calls[2],))))
    assert reply.tool_calls == calls


# --- joining neighbours


@given(part_lists)
def test_joining_changes_no_text_and_no_call(made: tuple[Part, ...]) -> None:
    before, after = choice_view(Choice(made)), choice_view(Choice(merge_text(made)))
    assert {name: after[name] for name in CHOICE_FIELDS if name != "parts"} == {
        name: before[name] for name in CHOICE_FIELDS if name != "parts"
    }


@given(part_lists)
def test_joining_twice_is_joining_once(made: tuple[Part, ...]) -> None:
    assert merge_text(merge_text(made)) == merge_text(made)


@given(part_lists)
def test_what_is_joined_has_no_empty_text_and_no_equal_neighbours(made: tuple[Part, ...]) -> None:
    joined = merge_text(made)
    assert Text("") not in joined
    assert Refusal("") not in joined
    assert Reasoning("") not in joined
    for one, other in pairwise(joined):
        assert not (isinstance(one, Text | Refusal) and type(one) is type(other))


def test_signed_reasoning_is_left_alone() -> None:
    signed = (Reasoning("a", "s"), Reasoning("b", "s"), Reasoning("", "s"))
    assert merge_text(signed) == signed
    assert merge_text((Reasoning("a"), Reasoning("b"))) == (Reasoning("ab"),)
    assert merge_text((Reasoning("a", "s"), Reasoning("b"))) == (Reasoning("a", "s"), Reasoning("b"))


def test_a_call_keeps_the_texts_around_it_apart() -> None:
    call = ToolCall("t", "f", "")
    assert merge_text((Text("a"), Text("b"), call, Text("c"))) == (Text("ab"), call, Text("c"))


# --- usage


@pytest.mark.parametrize(
    ("data", "usage"),
    [
        (None, None),
        ([], None),
        ({}, None),
        ({"in": 1, "out": 2}, Usage(1, 2)),
        ({"in": 0, "out": None}, Usage(0, None)),
        ({"in": "1", "out": 1.5}, None),
        ({"in": True}, None),
    ],
)
def test_usage_is_read_by_the_providers_own_names(data: Any, usage: Usage | None) -> None:
    assert usage_of(data, "in", "out") == usage
