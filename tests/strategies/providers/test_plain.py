"""The plain profiles: what they carry comes back, and only a JSON text has an end to miss."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfuzz_strategies.judge import Reading, judge, whole_value
from streamfuzz_strategies.providers import Drawing, get
from streamfuzz_strategies.providers.base import reduce
from streamfuzz_strategies.reply import Choice, Opaque, Reply
from streamfuzz_strategies.stream import Event, Raw, Stream, payloads
from streamfuzz_strategies.style import PLAIN, Style

from .walking import breaches, streams

PROFILES = ("sse", "ndjson", "json")
quick = settings(deadline=None, max_examples=100)

any_stream = st.sampled_from(PROFILES).flatmap(streams)


def encode(stream: Stream, style: Style = PLAIN) -> bytes:
    return get(stream.provider).framing.encode(payloads(stream.events, style), style)


def listed(*parts: Opaque) -> Reply:
    return Reply((Choice(parts),))


# --- the law


@quick
@given(any_stream)
def test_drawn_and_plain_events_reduce_to_the_reply(stream: Stream) -> None:
    provider = get(stream.provider)
    assert reduce(provider, stream.events) == stream.reply
    assert reduce(provider, provider.plain_events(stream.reply)) == stream.reply


@quick
@given(any_stream)
def test_drawn_events_break_nothing_and_report_no_error(stream: Stream) -> None:
    provider = get(stream.provider)
    assert breaches(provider, stream.events) == []
    assert [provider.error(event) for event in stream.events] == [None] * len(stream.events)


@quick
@given(any_stream, st.sampled_from((PLAIN, Style(space=False), Style(ascii=True), Style(sort_keys=False))))
def test_what_the_judge_reads_from_the_bytes_is_the_reply(stream: Stream, style: Style) -> None:
    judgement = judge(get(stream.provider), encode(stream, style))
    assert judgement.accepted == (stream.reply,)
    assert judgement.level == "none"


@pytest.mark.parametrize("name", PROFILES)
@quick
@given(st.data())
def test_the_user_says_what_text_is_made_of_and_how_much_there_is(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name, Drawing(alphabet="xy", max_parts=2, tools=None)))
    assert 1 <= len(stream.events) <= 2
    if name != "json":  # whose built-in tools name their own strings
        strings = [s for event in stream.events for s in strings_in(event.data)]
        assert set("".join(strings)) <= set("xy")


def strings_in(value: Any) -> list[str]:
    match value:
        case Raw(text):
            return [text]
        case str():
            return [value]
        case list():
            return [s for item in value for s in strings_in(item)]
        case dict():
            return [s for pair in value.items() for item in pair for s in strings_in(item)]
    return []


# --- sse


@quick
@given(streams("sse"))
def test_every_frame_arrives_with_its_name(stream: Stream) -> None:
    frames = judge(get("sse"), encode(stream)).frames
    assert [(f.event, f.data) for f in frames] == [(e.name or "message", e.data.text) for e in stream.events]


@quick
@given(streams("sse", Drawing(alphabet="\r\na")))
def test_no_frame_holds_what_server_sent_events_cannot_carry(stream: Stream) -> None:
    assert all("\r" not in event.data.text and event.name != "" for event in stream.events)


@pytest.mark.parametrize("profile", ["sse", "ndjson"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_end_between_frames_is_never_early(profile: str, count: int) -> None:
    assert breaches(get(profile), [Event({"a": 1})] * count) == []


def test_a_frame_without_a_name_is_a_message() -> None:
    assert reduce(get("sse"), [Event(Raw("a"))]) == reduce(get("sse"), [Event(Raw("a"), "message")])
    assert reduce(get("sse"), [Event(Raw("a"), "x")]) == listed(Opaque("frame", '["x","a"]'))


# --- ndjson and json


@quick
@given(streams("ndjson"))
def test_every_value_arrives_as_it_was(stream: Stream) -> None:
    events = judge(get("ndjson"), encode(stream)).events
    assert [repr(event.data) for event in events] == [repr(event.data) for event in stream.events]


def test_members_in_another_order_are_the_same_value() -> None:
    assert reduce(get("ndjson"), [Event({"a": 1, "b": 2})]) == reduce(get("ndjson"), [Event({"b": 2, "a": 1})])


def test_values_of_another_type_are_other_values() -> None:
    values = (1, 1.0, True, "1", None, [], {}, -0.0, 2**53, 2**53 + 1)
    assert len({reduce(get("ndjson"), [Event(value)]) for value in values}) == len(values)


@quick
@given(streams("json"))
def test_a_json_stream_is_one_value(stream: Stream) -> None:
    (event,) = stream.events
    assert repr(whole_value(judge(get("json"), encode(stream)))) == repr(event.data)


@quick
@given(streams("json", Drawing(tools={"f": {"type": "object", "properties": {"n": {"const": 7}}, "required": ["n"]}})))
def test_the_user_says_of_what_schema_a_json_value_is(stream: Stream) -> None:
    assert stream.events[0].data["n"] == 7


@quick
@given(streams("json"))
def test_a_json_text_cut_short_is_not_complete(stream: Stream) -> None:
    data = encode(stream)
    if isinstance(stream.events[0].data, dict | list | str):  # a number cut short may be a number still
        assert not any(judge(get("json"), data[:size]).complete for size in range(len(data)))


def test_a_text_without_a_value_breaks_the_rule() -> None:
    assert breaches(get("json"), []) == [("json.value.missing", -1)]


def test_a_second_value_breaks_the_rule_and_is_not_read() -> None:
    events = [Event(1), Event(2)]
    assert breaches(get("json"), events) == [("json.value.second", 1)]
    assert reduce(get("json"), events) == listed(Opaque("value", "1"))


def test_garbage_after_the_value_of_a_json_text_is_damage() -> None:
    assert judge(get("json"), b"1").complete
    assert not judge(get("json"), b"1 x").complete
    assert not Reading.of_events(get("json"), [Event(1), Event(Raw("x"))]).judgement.complete


def test_both_rules_of_json_are_musts_and_the_other_profiles_have_none() -> None:
    assert {rule.id: rule.level for rule in get("json").rules} == {
        "json.value.missing": "must",
        "json.value.second": "must",
    }
    assert get("sse").rules == get("ndjson").rules == ()


# --- variety


def test_every_kind_of_value_and_frame_is_drawn() -> None:
    seen: set[str] = set()

    @settings(deadline=None, max_examples=400, database=None, derandomize=True)
    @given(any_stream)
    def look(stream: Stream) -> None:
        for event in stream.events:
            if isinstance(event.data, Raw):
                text = event.data.text
                seen.update(name for name, found in frame_facts(text, event.name).items() if found)
            else:
                for value in every_value(event.data):
                    seen.add(type(value).__name__)
                    seen.update(name for name, found in value_facts(value).items() if found)

    look()
    assert seen == {
        *("dict", "list", "str", "int", "float", "bool", "NoneType"),
        *frame_facts("", None),
        *value_facts(0),
    }


def every_value(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(v for item in inner for v in every_value(item))]


def frame_facts(text: str, name: str | None) -> dict[str, bool]:
    return {
        "no data": text == "",
        "several lines": "\n" in text,
        "framing in the text": "data:" in text,
        "a space first": text.startswith(" "),
        "no name": name is None,
        "the default name spelled": name == "message",
        "a name with a colon": name is not None and ":" in name,
    }


def value_facts(value: Any) -> dict[str, bool]:
    return {
        "beyond a double": type(value) is int and abs(value) > 2**53,
        "minus zero": isinstance(value, float) and value == 0 and math.copysign(1, value) < 0,
        "nested": isinstance(value, dict) and any(isinstance(item, dict) for item in value.values()),
        "a line end of other readers": isinstance(value, str) and "\u2028" in value,
    }


# --- totality

ANY_JSON = st.recursive(
    st.sampled_from((None, True, 0, 1.5, math.inf, "", "\ud800", 10**20)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)


@pytest.mark.parametrize("name", PROFILES)
@quick
@given(st.lists(st.builds(Event, ANY_JSON | st.builds(Raw, st.text(max_size=3)), st.sampled_from((None, "x")))))
def test_no_event_makes_anything_raise(name: str, events: list[Event]) -> None:
    provider = get(name)
    reply = reduce(provider, events)
    assert isinstance(reply, Reply)
    assert all(isinstance(part, Opaque) for part in reply.choices[0].parts)
    assert {rule for rule, _ in breaches(provider, events)} <= {rule.id for rule in provider.rules}
    assert {provider.kind(event) for event in events} <= {"frame", "value", "unknown"}
    assert list(provider.reducer().released()) == []


def test_a_value_too_deep_to_write_does_not_raise() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert reduce(get("ndjson"), [Event(deep)]) == listed(Opaque("value", "null"))
    while deep:  # taken apart by hand: the interpreter would recurse
        deep = deep.pop()


def test_opaque_data_is_json_text() -> None:
    reply = reduce(get("ndjson"), [Event({"b": "é", "a": [1.5]})])
    (part,) = reply.choices[0].parts
    assert isinstance(part, Opaque)
    assert part.data == '{"a":[1.5],"b":"é"}'
    assert json.loads(part.data) == {"b": "é", "a": [1.5]}
