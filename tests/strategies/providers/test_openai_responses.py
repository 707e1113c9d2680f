from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from openai._types import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response, ResponseStreamEvent

from streamfuzz_strategies.judge import Reading
from streamfuzz_strategies.providers import get
from streamfuzz_strategies.providers.base import Drawing, reduce
from streamfuzz_strategies.providers.openai_responses import read_body
from streamfuzz_strategies.providers.openai_responses.events import TYPES
from streamfuzz_strategies.reply import Choice, Opaque, Reasoning, Refusal, Reply, Text, ToolCall, Usage
from streamfuzz_strategies.rules import Walk
from streamfuzz_strategies.stream import Event, Raw, Stream

from .walking import breaches, streams

PROVIDER = get("openai-responses")
MUST = {rule.id for rule in PROVIDER.rules if rule.level == "must"}
OFFICIAL = {
    model.model_fields["type"].annotation.__args__[0]: model for model in get_args(get_args(ResponseStreamEvent)[0])
}

NOT_DRAWN = {"error", "response.failed"} | {
    name for name in TYPES if name.startswith(("response.file_", "response.code_", "response.image_", "response.mcp_"))
}

some = settings(deadline=None, max_examples=40)
many = settings(deadline=None, max_examples=100)


def musts(events: Any) -> list[tuple[str, int]]:
    return [breach for breach in breaches(PROVIDER, events) if breach[0] in MUST]


@many
@given(streams("openai-responses"))
def test_a_drawn_stream_says_its_reply_and_breaks_nothing(stream: Stream) -> None:
    assert reduce(PROVIDER, stream.events) == stream.reply
    assert breaches(PROVIDER, stream.events) == []


@many
@given(streams("openai-responses"))
def test_the_plain_stream_says_the_reply_and_breaks_nothing(stream: Stream) -> None:
    assert stream.reply is not None
    plain = PROVIDER.plain_events(stream.reply)
    assert reduce(PROVIDER, plain) == stream.reply
    assert breaches(PROVIDER, plain) == []
    assert plain == PROVIDER.plain_events(stream.reply)


@some
@given(streams("openai-responses", Drawing(alphabet="xy", max_parts=1, tools={"t": {"const": {"k": 1}}})))
def test_a_stream_keeps_to_what_the_user_asked_for(stream: Stream) -> None:
    assert stream.reply is not None
    (choice,) = stream.reply.choices
    assert len(choice.parts) <= 1
    for part in choice.parts:
        if isinstance(part, (Text, Refusal)):
            assert set(part.text) <= set("xy")
        if isinstance(part, ToolCall):
            assert part.name == "t"


@some
@given(streams("openai-responses"))
def test_the_end_before_the_terminal_event_is_visible(stream: Stream) -> None:
    for length in range(len(stream.events)):
        assert musts(stream.events[:length]) == [("openai-responses.stream.terminal-missing", -1)]


@some
@given(streams("openai-responses"), st.data())
def test_a_lost_doubled_or_moved_event_is_visible(stream: Stream, data: st.DataObject) -> None:
    events = list(stream.events)
    at = data.draw(st.integers(0, len(events) - 2))
    assert musts(events[:at] + events[at + 1 :])
    assert breaches(PROVIDER, events[: at + 1] + events[at:]) == [("openai-responses.sequence.duplicate", at + 1)]
    assert musts([*events[:at], events[at + 1], events[at], *events[at + 2 :]])


@some
@given(streams("openai-responses"), st.data())
def test_the_terminal_response_is_authoritative(stream: Stream, data: st.DataObject) -> None:
    kept = [e for e in stream.events[:-1] if data.draw(st.booleans())]
    assert reduce(PROVIDER, [*kept, stream.events[-1]]) == stream.reply


@some
@given(streams("openai-responses"))
def test_without_an_output_in_the_terminal_response_the_items_stand_in(stream: Stream) -> None:
    last = stream.events[-1].data
    for output in ([], None):
        final = Event({**last, "response": {**last["response"], "output": output}})
        assert reduce(PROVIDER, [*stream.events[:-1], final]) == stream.reply
        rules = [rule for rule, _ in breaches(PROVIDER, [*stream.events[:-1], final])]
        assert rules == ["openai-responses.terminal.output-empty"] * bool(last["response"]["output"])


@some
@given(streams("openai-responses"))
def test_without_item_done_events_the_deltas_and_done_texts_stand_in(stream: Stream) -> None:
    assert stream.reply is not None
    kept = [e for e in stream.events[:-1] if e.data["type"] != "response.output_item.done"]
    (read,) = reduce(PROVIDER, kept).choices
    assert [told(part) for part in read.parts] == [told(part) for part in stream.reply.choices[0].parts]


def told(part: Any) -> Any:
    """A part without what only the finished item holds: its ciphertext and its status."""
    return Reasoning(part.text) if isinstance(part, Reasoning) else part.kind if isinstance(part, Opaque) else part


@some
@given(streams("openai-responses"))
def test_every_reader_state_on_the_way_says_a_prefix(stream: Stream) -> None:
    assert stream.reply is not None
    text = "".join(p.text for p in stream.reply.choices[0].parts if isinstance(p, Text))
    reducer = PROVIDER.reducer()
    for event in stream.events:
        reducer.apply(event)
        so_far = "".join(p.text for p in reducer.reply().choices[0].parts if isinstance(p, Text))
        assert text.startswith(so_far)
    assert so_far == text


@some
@given(streams("openai-responses"))
def test_a_call_is_released_once_its_arguments_are_done(stream: Stream) -> None:
    assert stream.reply is not None
    calls = [part for part in stream.reply.choices[0].parts if isinstance(part, ToolCall)]
    done = {"response.function_call_arguments.done", "response.output_item.done"}
    reducer, closed = PROVIDER.reducer(), set()
    for event in stream.events[:-1]:
        reducer.apply(event)
        if event.data["type"] in done and event.data.get("item", {}).get("status") != "incomplete":
            closed.add(event.data["output_index"])
        assert len(reducer.released()) <= len(closed)
        assert set(reducer.released()) <= set(calls)
    reducer.apply(stream.events[-1])
    whole = stream.reply.choices[0].finish == "completed"
    assert list(reducer.released()) == (calls if whole else [c for c in calls if c in reducer.released()])


def test_a_call_that_was_cut_off_is_not_released() -> None:
    cut = Reply((Choice((ToolCall("c", "f", '{"a'),), "incomplete:max_output_tokens"),), "resp", "gpt-5")
    reducer = PROVIDER.reducer()
    for event in PROVIDER.plain_events(cut):
        reducer.apply(event)
    assert reducer.reply() == cut
    assert reducer.released() == []


# The official SDK


def official(event: Event) -> Any:
    return OFFICIAL[event.data["type"]].model_validate_json(json.dumps(event.data), strict=True)


def test_the_strategy_reaches_every_event_that_it_has_a_word_for() -> None:
    seen: set[str] = set()

    @settings(deadline=None, max_examples=200, database=None, derandomize=True)
    @given(streams("openai-responses"))
    def collect(stream: Stream) -> None:
        seen.update(PROVIDER.kind(event) for event in stream.events)

    collect()
    assert seen == TYPES - NOT_DRAWN
    assert len(seen) == 27


def test_every_event_type_with_a_meaning_is_an_official_one() -> None:
    assert set(OFFICIAL) >= TYPES
    assert set(PROVIDER.schemas) == TYPES


@many
@given(streams("openai-responses"))
def test_every_event_is_one_that_the_official_types_accept(stream: Stream) -> None:
    for event in stream.events:
        assert official(event).to_dict(mode="json") == event.data
        assert event.name == event.data["type"]


@some
@given(streams("openai-responses"), st.booleans())
def test_the_official_accumulator_reads_the_same_reply(stream: Stream, without_output: bool) -> None:
    assert stream.reply is not None
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=omit, text_format=omit)
    for event in stream.events[:-1]:
        state.handle_event(official(event))
    final = official(stream.events[-1])
    if without_output:
        final.response.output = None
    (last,) = state.handle_event(final)
    if not without_output or stream.reply.choices[0].finish == "completed":
        assert read_body(last.response.to_dict(mode="json")) == stream.reply


@some
@given(streams("openai-responses"))
def test_the_body_is_an_official_response_and_says_the_same(stream: Stream) -> None:
    assert stream.reply is not None
    assert PROVIDER.body is not None
    body = PROVIDER.body(stream.reply)
    Response.model_validate_json(json.dumps(body), strict=True)
    assert read_body(body) == stream.reply


# Schemas


@some
@given(streams("openai-responses"))
def test_every_event_fits_the_schema_of_its_kind(stream: Stream) -> None:
    for event in stream.events:
        VALIDATORS[PROVIDER.kind(event)].validate(event.data)


@some
@given(streams("openai-responses"), st.data())
def test_a_maimed_event_does_not_fit(stream: Stream, data: st.DataObject) -> None:
    event = data.draw(st.sampled_from(stream.events)).data
    validator = VALIDATORS[event["type"]]
    member = data.draw(st.sampled_from(sorted(PROVIDER.schemas[event["type"]]["required"])))
    assert not validator.is_valid({name: value for name, value in event.items() if name != member})
    assert not validator.is_valid({**event, member: [1.5]})


VALIDATORS = {name: Draft202012Validator(schema) for name, schema in PROVIDER.schemas.items()}


def test_the_schemas_are_schemas() -> None:
    for schema in PROVIDER.schemas.values():
        Draft202012Validator.check_schema(schema)


@some
@given(streams("openai-responses"))
def test_the_judge_accepts_the_reply_and_no_truncation(stream: Stream) -> None:
    reading = Reading.of_events(PROVIDER, stream.events)
    assert stream.reply in reading.judgement.accepted
    assert reading.judgement.may_refuse == (stream.reply.choices[0].finish != "completed")
    for length in range(len(stream.events)):
        assert not Reading.of_events(PROVIDER, stream.events[:length]).judgement.complete


@pytest.mark.parametrize(("at", "length"), [(3, 5), (5, 6), (6, 7), (7, 8)])
def test_of_two_tellings_that_differ_both_may_have_been_shown(at: int, length: int) -> None:
    plain = list(PROVIDER.plain_events(Reply((Choice((Text("a"),), "completed"),), "r", "m", Usage(1, 1))))
    plain[at] = Event(json.loads(json.dumps(plain[at].data).replace('"a"', '"b"')))
    judgement = Reading.of_events(PROVIDER, plain[:length]).judgement
    shown = {part.text for truth in judgement.truths for part in truth.choices[0].parts}  # type: ignore[union-attr]
    assert judgement.level == "must"
    assert shown == {"a", "b"}


# Errors, and whatever else may come


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"type": "error", "code": "rate", "message": "slow down", "param": None, "sequence_number": 1}, "slow down"),
        ({"type": "error", "error": {"type": "server_error", "message": "oops"}}, "oops"),
        ({"type": "error", "error": {"code": "server_error"}}, "server_error"),
        ({"type": "error"}, ""),
        ({"error": {"message": "gone"}}, "gone"),
        ({"error": "gone"}, "gone"),
        ({"error": 5}, ""),
        ({"type": "response.failed", "response": {"error": {"code": "x", "message": "failed"}}}, "failed"),
        ({"type": "response.failed", "response": {"error": None}}, ""),
        ({"type": "response.created", "error": {"message": "no"}}, None),
        ({"error": None}, None),
        ([], None),
        (Raw("error"), None),
    ],
)
def test_the_message_of_an_error(data: Any, message: str | None) -> None:
    assert PROVIDER.error(Event(data)) == message


@pytest.mark.parametrize("end", ["error", "response.failed"])
def test_an_error_fails_the_stream_and_all_else_is_skipped(end: str) -> None:
    plain = PROVIDER.plain_events(Reply((Choice((Text("a"), Text("b")), "completed"),), "r", "m"))
    events = [*plain[:5], Event({"type": end, "sequence_number": 9, "error": {"message": "x"}}), *plain[3:]]
    assert breaches(PROVIDER, events) == []
    assert reduce(PROVIDER, events).choices[0].finish == ("failed" if end == "response.failed" else None)


ATOMS = st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.sampled_from(("", "a", "m", "message"))
MEMBERS = sorted(
    {member for schema in PROVIDER.schemas.values() for member in schema.get("properties", ())}
    | {"call_id", "content", "encrypted_content", "error", "id", "name", "output", "status", "summary", "usage"}
)
TYPED = st.sampled_from(sorted(TYPES)) | st.sampled_from(
    ("message", "reasoning", "function_call", "custom_tool_call", "output_text", "refusal", "x")
)
JSON = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=5)
        | st.builds(lambda t, d: {**d, "type": t}, TYPED, st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=5))
    ),
    max_leaves=12,
)
EVENTS = st.builds(Event, JSON | st.builds(Raw, st.text()))


@settings(deadline=None, max_examples=120)
@given(st.lists(EVENTS, max_size=8))
def test_reading_is_total(events: list[Event]) -> None:
    breaches(PROVIDER, events)
    reducer = PROVIDER.reducer()
    for event in events:
        assert PROVIDER.kind(event) in TYPES | {"unknown"}
        PROVIDER.error(event)
        reducer.apply(event)
        assert len(reducer.reply().choices) == 1
        reducer.released()
        read_body(event.data)


@settings(deadline=None, max_examples=80)
@given(streams("openai-responses"), st.data())
def test_reading_a_damaged_stream_is_total(stream: Stream, data: st.DataObject) -> None:
    events = list(stream.events)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(events) - 1))
        member = data.draw(st.sampled_from(sorted(events[at].data)))
        events[at] = Event({**events[at].data, member: data.draw(JSON)})
    breaches(PROVIDER, events)
    reduce(PROVIDER, events)


@some
@given(streams("openai-responses"), st.data())
def test_a_copied_walk_goes_its_own_way(stream: Stream, data: st.DataObject) -> None:
    walk = Walk(PROVIDER.machines)
    at = data.draw(st.integers(0, len(stream.events)))
    for n, event in enumerate(stream.events[:at]):
        walk.step(n, PROVIDER.steps(event, walk))
    other = walk.copy()
    for _ in range(2):
        for n, event in enumerate(stream.events[1:]):
            other.step(n, PROVIDER.steps(event, other))
    for n, event in enumerate(stream.events[at:]):
        assert walk.step(n, PROVIDER.steps(event, walk)) == []
    assert walk.end() == []


def test_what_each_kind_of_item_says() -> None:
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}], "encrypted_content": "s"},
        {"type": "reasoning", "summary": [{"text": "x"}], "content": [{"type": "reasoning_text", "text": "b"}]},
        {"type": "reasoning", "summary": []},
        {
            "type": "message",
            "content": [
                {"type": "output_text", "text": "c"},
                {"type": "output_text", "text": ""},
                {"type": "refusal", "refusal": "d"},
                {"type": "audio"},
            ],
        },
        {"type": "function_call", "id": "fc", "call_id": "call", "name": "f", "arguments": "{}"},
        {"type": "web_search_call", "id": "ws"},
    ]
    usage = {"input_tokens": 1, "output_tokens": 2}
    final = {"id": "r", "model": "m", "status": "completed", "output": output, "usage": usage}
    assert reduce(PROVIDER, [Event({"type": "response.completed", "response": final})]) == Reply(
        (
            Choice(
                (
                    Reasoning("a", "s"),
                    Reasoning("b"),
                    Text("c"),
                    Refusal("d"),
                    Opaque("audio", '{"type":"audio"}'),
                    ToolCall("call", "f", "{}"),
                    Opaque("web_search_call", '{"id":"ws","type":"web_search_call"}'),
                ),
                "completed",
            ),
        ),
        "r",
        "m",
        Usage(1, 2),
    )


@pytest.mark.parametrize("item", [None, [], {}, {"type": 1}, {"type": "message", "content": [1, {}, {"type": None}]}])
def test_what_is_no_item_says_nothing(item: Any) -> None:
    assert read_body({"output": [item]}).choices[0].parts == ()


def test_an_item_too_deep_to_be_written_is_carried_without_its_inside() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert read_body({"output": [{"type": "x", "inside": deep}]}).choices[0].parts == (Opaque("x", "null"),)
