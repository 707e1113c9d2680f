"""The public strategies: what they draw follows the user's wishes, and wrong wishes are refused at once."""

from __future__ import annotations

import doctest
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument
from jsonschema import Draft202012Validator

from streamfuzz_strategies import draw as draw_module
from streamfuzz_strategies.draw import encode, fragmented, mutated, replies, streams, wires
from streamfuzz_strategies.judge import judge
from streamfuzz_strategies.providers import NAMES, get
from streamfuzz_strategies.providers.base import reduce
from streamfuzz_strategies.reply import Reply, Text, ToolCall
from streamfuzz_strategies.stream import Event, Raw, Stream

quick = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
search = settings(deadline=None, database=None, max_examples=1000, phases=[Phase.generate])
every_provider = pytest.mark.parametrize("name", NAMES)

TOOLS: dict[str, Any] = {
    "weather": {
        "type": "object",
        "properties": {"city": {"enum": ["Köln", "Oslo"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["city", "days"],
    },
    "stop": {"type": "object", "maxProperties": 0},
}


# --- what is drawn


@every_provider
@quick
@given(st.data())
def test_a_stream_says_its_reply(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name))
    assert stream.provider == name
    assert reduce(get(name), stream.events) == stream.reply


@every_provider
@quick
@given(st.data())
def test_a_styled_stream_is_judged_complete(name: str, data: st.DataObject) -> None:
    assert judge(get(name), encode(data.draw(streams(name, styled=True)))).complete


@every_provider
@quick
@given(st.data())
def test_an_unstyled_stream_reads_back_as_its_reply(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name))
    judgement = judge(get(name), encode(stream))
    assert judgement.breaches == ()
    assert stream.reply in judgement.accepted


@every_provider
@quick
@given(st.data())
def test_wires_are_bytes_of_complete_streams(name: str, data: st.DataObject) -> None:
    assert judge(get(name), data.draw(wires(name))).complete


@every_provider
@quick
@given(st.data())
def test_chunks_join_to_the_bytes_of_a_complete_stream(name: str, data: st.DataObject) -> None:
    chunks = data.draw(fragmented(name, styled=data.draw(st.booleans())))
    assert all(type(chunk) is bytes for chunk in chunks)
    assert judge(get(name), b"".join(chunks)).complete


def test_chunks_may_be_many_or_empty() -> None:
    assert len(find(fragmented("sse"), lambda chunks: len(chunks) > 3, settings=search)) > 3
    assert b"" in find(fragmented("sse"), lambda chunks: b"" in chunks, settings=search)


def test_styles_are_drawn_only_where_asked_for() -> None:
    def is_styled(stream: Stream) -> bool:
        return stream.style != Stream("sse", ()).style

    find(streams("sse", styled=True), is_styled, settings=search)

    @quick
    @given(streams("sse"))
    def check(stream: Stream) -> None:
        assert not is_styled(stream)

    check()


# --- the user's wishes


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("sse", "ndjson", "json")])
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_calls_are_of_the_given_tools_and_follow_their_schemas(name: str, data: st.DataObject) -> None:
    reply = data.draw(replies(name, tools=TOOLS))
    finishes = {choice.finish for choice in reply.choices}
    for call in reply.tool_calls:
        assert call.name in TOOLS
        if finishes & get(name).cut_finishes:  # the last arguments may be cut short
            continue
        Draft202012Validator(TOOLS[call.name]).validate(json.loads(call.arguments))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("sse", "ndjson", "json")])
@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_every_given_tool_is_called(name: str, tool: str) -> None:
    def calls_it(reply: Reply) -> bool:
        return any(isinstance(call, ToolCall) and call.name == tool for call in reply.tool_calls)

    find(replies(name, tools=TOOLS), calls_it, settings=search)


@quick
@given(streams("json", tools=TOOLS))
def test_a_json_value_follows_one_of_the_schemas(stream: Stream) -> None:
    (event,) = stream.events
    assert any(Draft202012Validator(schema).is_valid(event.data) for schema in TOOLS.values())


@quick
@given(replies("ollama", tools={"f": TOOLS["weather"]}))
def test_members_that_a_schema_does_not_name_are_not_drawn(reply: Reply) -> None:
    assert all(json.loads(call.arguments).keys() == {"city", "days"} for call in reply.tool_calls)


def test_a_schema_that_speaks_of_other_members_is_taken_at_its_word() -> None:
    tools = {"f": {"type": "object", "properties": {}, "additionalProperties": {"const": 7}, "minProperties": 1}}

    def has_others(reply: Reply) -> bool:
        return any(7 in json.loads(call.arguments).values() for call in reply.tool_calls)

    find(replies("ollama", tools=tools), has_others, settings=search)


def test_tools_that_change_later_do_not_change_the_strategy() -> None:
    tools = {"f": {"type": "object", "properties": {"n": {"const": 1}}, "required": ["n"]}}
    strategy = wires("json", tools=tools)
    tools["f"]["properties"]["n"] = {"const": 2}
    assert find(strategy, lambda _: True, settings=search) == b'{"n":1}'


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("sse", "ndjson", "json")])
@quick
@given(st.data())
def test_text_is_made_of_the_alphabet_and_parts_are_few(name: str, data: st.DataObject) -> None:
    reply = data.draw(replies(name, alphabet="xy", max_parts=1))
    for choice in reply.choices:
        assert len(choice.parts) <= 1
        assert set("".join(part.text for part in choice.parts if isinstance(part, Text))) <= set("xy")


# --- wishes refused

NOT_AN_OBJECT = "must be a JSON Schema"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"provider": "gpt"}, "unknown provider 'gpt'; known: anthropic, json"),
    ({"provider": None}, "unknown provider None"),
    ({"max_parts": 0}, "max_parts=0 must be an int of at least 1"),
    ({"max_parts": 1.5}, "max_parts=1.5 must be"),
    ({"alphabet": ""}, "alphabet='' must be a string of at least one character"),
    ({"alphabet": 7}, "alphabet=7 must be a string"),
    ({"alphabet": "a\ud800"}, "lone surrogate"),
    ({"tools": ["f"]}, "must map tool names to the JSON Schemas"),
    ({"tools": {}}, "tools is empty"),
    ({"tools": {"": TOOLS["stop"]}}, "tool name ''"),
    ({"tools": {7: TOOLS["stop"]}}, "tool name 7"),
    ({"tools": {"f": None}}, NOT_AN_OBJECT),
    ({"tools": {"f": {"type": "string"}}}, NOT_AN_OBJECT),
    ({"tools": {"f": {"properties": {}}}}, NOT_AN_OBJECT),
    ({"tools": {"f": {"type": "object", "default": {1, 2}}}}, "tool 'f': its schema is not JSON"),
    ({"tools": {"f": {"type": "object", "default": float("nan")}}}, "tool 'f': its schema is not JSON"),
    ({"tools": {"f": {"type": "object", "properties": 7}}}, "tool 'f': its schema is not a JSON Schema"),
    (
        {"tools": {"f": {"type": "object", "minProperties": 2, "maxProperties": 1}}},
        "tool 'f': no arguments can satisfy its schema",
    ),
]


@pytest.mark.parametrize("make", [replies, streams, wires, fragmented, mutated])
@pytest.mark.parametrize(("wish", "message"), REFUSED)
def test_a_wrong_wish_is_refused_before_anything_is_drawn(
    make: Callable[..., st.SearchStrategy[Any]], wish: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        make(**wish)
    assert message in str(refusal.value)


# --- mutated


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(deadline=None, max_examples=20)
def test_mutated_streams_are_judged_one_way_or_the_other(name: str, data: st.DataObject) -> None:
    judgement = judge(get(name), data.draw(mutated(name)))
    assert judgement.accepted or judgement.may_refuse


def test_some_mutations_are_harmless_and_some_are_not() -> None:
    levels = {
        find(mutated("openai-chat"), lambda data, level=level: _level(data) == level, settings=search)
        for level in ("none", "must")
    }
    assert len(levels) == 2


def _level(data: bytes) -> str:
    return judge(get("openai-chat"), data).level


# --- encode


def test_encode_writes_the_stream_in_its_own_style() -> None:
    assert encode(Stream("sse", (Event(Raw("a"), "x"),))) == b"event: x\ndata: a\n\n"
    assert encode(Stream("ndjson", (Event({"a": 1}), Event([])))) == b'{"a":1}\n[]\n'


def test_encode_needs_a_known_provider() -> None:
    with pytest.raises(LookupError, match="unknown provider 'gpt'"):
        encode(Stream("gpt", ()))


def test_the_examples_in_the_docs_run() -> None:
    assert doctest.testmod(draw_module).failed == 0
    assert doctest.testmod(draw_module).attempted > 0
