"""What targets give is brought into one form, or refused with what was wanted."""

from __future__ import annotations

from collections import UserDict
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from streamfuzz.spec import Delta, Final, Release, Snapshot
from streamfuzz.trace import Trace, WrongForm, normal_call, normal_event, normal_frame, normal_item, normal_view
from streamfuzz_strategies.reply import Choice, Reply, Text, ToolCall, view
from streamfuzz_strategies.stream import Frame


def trace(*items: Any, ending: Any = "complete", result: Any = None, after: tuple[int, ...] = ()) -> Trace:
    return Trace(items, after or (1,) * len(items), ending, result, None, 1, True, 0.0)


# --- frames


@pytest.mark.parametrize(
    ("item", "frame"),
    [
        ("a", {"data": "a"}),
        ({"data": "a"}, {"data": "a"}),
        ({"data": "a", "event": None, "id": None, "other": 1}, {"data": "a", "event": "message", "id": ""}),
        (SimpleNamespace(data="a", event="x", retry=None), {"data": "a", "event": "x", "retry": None}),
        (Frame("a"), {"data": "a", "event": "message", "id": "", "retry": None}),
    ],
)
def test_a_frame_has_the_fields_that_the_target_has(item: Any, frame: dict[str, Any]) -> None:
    assert normal_frame(item) == frame


@pytest.mark.parametrize("item", [None, 7, {}, {"data": None}, {"data": b"a"}, object()])
def test_what_has_no_data_is_no_frame(item: Any) -> None:
    with pytest.raises(WrongForm, match="a frame must be text, a mapping, or an object with 'data'"):
        normal_frame(item)


def test_objects_of_one_type_need_not_have_the_same_fields() -> None:
    class Sparse:
        def __init__(self, **fields: str) -> None:
            self.__dict__.update(fields)

    assert normal_frame(Sparse(data="a")) == {"data": "a"}
    assert normal_frame(Sparse(data="a", event="x")) == {"data": "a", "event": "x"}
    with pytest.raises(WrongForm):
        normal_frame(Sparse(event="x"))


# --- events


class Modelled:
    def model_dump(self, *, exclude_unset: bool) -> dict[str, Any]:
        return {"exclude_unset": exclude_unset}


def test_an_event_is_json_or_can_become_it() -> None:
    for value in (None, {"a": 1}, [1], "a", 1, 1.5, True):
        assert normal_event(value) == value
    assert normal_event(SimpleNamespace(to_dict=lambda: {"a": 1})) == {"a": 1}
    assert normal_event(Modelled()) == {"exclude_unset": True}
    assert normal_event(UserDict(a=1)) == {"a": 1}


def test_what_cannot_become_json_is_no_event() -> None:
    with pytest.raises(WrongForm, match="an event must be a JSON value, not object"):
        normal_event(object())


# --- views


@dataclass
class Answer:
    text: str
    finish: str


def test_a_view_may_be_given_in_many_ways() -> None:
    reply = Reply((Choice((Text("a"),), "stop"),))
    assert normal_view(reply) == view(reply)
    assert normal_view("a") == {"text": "a"}
    assert normal_view(Answer("a", "stop")) == {"text": "a", "finish": "stop"}
    assert normal_view({"text": None, "other": 1}) == {"text": "", "other": 1}
    assert normal_view({"choices": ({"reasoning": None},)}) == {"choices": [{"reasoning": ""}]}
    assert normal_view({"tool_calls": None}) == {"tool_calls": []}
    assert normal_view({"tool_calls": [ToolCall("1", "f", "{}")]}) == {
        "tool_calls": [{"id": "1", "name": "f", "arguments": "{}"}]
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "a reply must be a mapping with any of text, reasoning"),
        (Answer, "not type"),
        ({"choices": {}}, "'choices' of a reply must be a list"),
        ({"choices": ["a"]}, "a choice of a reply must be a mapping, not str"),
        ({"text": 7}, "'text' of a reply must be text, not int"),
        ({"tool_calls": [{"id": "1"}]}, "a tool call must have 'name' and 'arguments'"),
    ],
)
def test_what_is_no_view_is_refused(value: Any, message: str) -> None:
    with pytest.raises(WrongForm) as refusal:
        normal_view(value)
    assert message in str(refusal.value)


def test_a_view_leaves_what_it_was_made_of_alone() -> None:
    given = {"text": None, "choices": [{"text": None}]}
    normal_view(given)
    assert given == {"text": None, "choices": [{"text": None}]}


def test_a_call_has_the_fields_that_the_target_has() -> None:
    assert normal_call({"name": "f", "type": "function"}) == {"name": "f"}
    assert normal_call(SimpleNamespace(name="f", arguments={})) == {"name": "f", "arguments": {}}


# --- progress


def test_progress_of_a_reply_is_read_by_its_type() -> None:
    assert normal_item("a", "reply") == Delta("a")
    assert normal_item(Delta("a", "reasoning"), "reply") == Delta("a", "reasoning")
    assert normal_item(Snapshot({"text": None}), "reply") == Snapshot({"text": ""})
    assert normal_item({"text": "a"}, "reply") == Snapshot({"text": "a"})
    assert normal_item(Final("a"), "reply") == Final({"text": "a"})
    assert normal_item(Release({"name": "f", "x": 1}), "reply") == Release({"name": "f"})
    assert normal_item(Final([1]), "json") == Final([1])
    with pytest.raises(WrongForm, match="progress of a reply must be text, Delta"):
        normal_item(b"a", "reply")


def test_items_of_frames_and_events_are_read_as_such() -> None:
    assert normal_item("a", "frames") == {"data": "a"}
    assert normal_item("a", "events") == "a"


# --- traces


def test_what_was_shown_is_joined_by_field() -> None:
    made = trace(Delta("a"), Delta("x", "reasoning"), Snapshot({"text": "z"}), Delta("b"))
    assert (made.shown(), made.shown("reasoning"), made.shown("refusal")) == ("ab", "x", "")


def test_the_outcome_does_not_depend_on_moments_or_on_how_text_was_sliced() -> None:
    one = trace(Delta("ab"), Final({"text": "ab"}), after=(1, 2))
    other = trace(Delta("a"), Delta("b"), Final({"text": "ab"}), after=(1, 5, 6))
    assert one.outcome() == other.outcome()
    assert trace(Snapshot({"text": "a"})).outcome() == trace().outcome()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (trace(Delta("ab")), trace(Delta("a"))),
        (trace(Delta("a")), trace(Delta("a", "reasoning"))),
        (trace(Delta("a"), Release({"name": "f"})), trace(Delta("a"))),
        (trace({"data": "a"}), trace({"data": "b"})),
        (trace({"data": "a"}, {"data": "b"}), trace({"data": "b"}, {"data": "a"})),
        (trace(), trace(ending="incomplete")),
        (trace(result={"text": "a"}), trace(result={"text": "b"})),
    ],
)
def test_the_outcome_tells_apart_what_matters(one: Trace, other: Trace) -> None:
    assert one.outcome() != other.outcome()
