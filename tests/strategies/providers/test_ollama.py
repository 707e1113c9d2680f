"""Ollama chat: the law, the lifecycle table, the official client's own types and its own reading."""

from __future__ import annotations

import json
from typing import Any

import httpx
import ollama
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError

from streamfuzz_strategies.judge import Reading
from streamfuzz_strategies.providers import Drawing, get
from streamfuzz_strategies.providers.base import reduce
from streamfuzz_strategies.reply import Choice, Reasoning, Refusal, Reply, Text, ToolCall, Usage, merge_text, view
from streamfuzz_strategies.stream import Event, Raw, Stream, payloads
from streamfuzz_strategies.style import Style

from .walking import breaches, streams

OLLAMA = get("ollama")
quick = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def record(done: Any = False, model: Any = "m", **message: Any) -> Event:
    return Event({"model": model, "message": {"role": "assistant", "content": "", **message}, "done": done})


def last(**members: Any) -> Event:
    return Event(record(True).data | {"done_reason": "stop"} | members)


def call(name: Any = "f", arguments: Any = None, **members: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": {} if arguments is None else arguments}, **members}


def without(event: Event, member: str) -> Event:
    return Event({name: value for name, value in event.data.items() if name != member})


def parts(*events: Event) -> tuple[Any, ...]:
    return reduce(OLLAMA, events).choices[0].parts


# --- the law ------------------------------------------------------------------------------------------------


@quick
@given(streams("ollama"))
def test_drawn_events_reduce_to_the_reply(stream: Stream) -> None:
    assert reduce(OLLAMA, stream.events) == stream.reply


@quick
@given(streams("ollama"))
def test_plain_events_reduce_to_the_reply(stream: Stream) -> None:
    assert reduce(OLLAMA, OLLAMA.plain_events(stream.reply)) == stream.reply


@quick
@given(streams("ollama"))
def test_lawful_events_break_no_rule(stream: Stream) -> None:
    assert breaches(OLLAMA, stream.events) == []
    assert breaches(OLLAMA, OLLAMA.plain_events(stream.reply)) == []


@quick
@given(streams("ollama"))
def test_an_end_short_of_done_is_a_must_breach(stream: Stream) -> None:
    for count in range(len(stream.events)):
        assert breaches(OLLAMA, stream.events[:count]) == [("ollama.stream.unfinished", -1)]


@quick
@given(streams("ollama"))
def test_a_prefix_reduces_to_a_beginning_of_the_reply(stream: Stream) -> None:
    whole = view(stream.reply)["choices"][0]
    reducer = OLLAMA.reducer()
    for event in stream.events:
        reducer.apply(event)
        so_far = view(reducer.reply())["choices"][0]
        assert whole["text"].startswith(so_far["text"])
        assert whole["reasoning"].startswith(so_far["reasoning"])
        assert whole["tool_calls"][: len(so_far["tool_calls"])] == so_far["tool_calls"]
        assert list(reducer.released()) == list(reducer.reply().tool_calls)


@quick
@given(streams("ollama", Drawing(alphabet="xy", max_parts=2)))
def test_the_user_says_what_text_is_made_of_and_how_many_parts_there_are(stream: Stream) -> None:
    choice = stream.reply.choices[0]
    assert len(choice.parts) <= 2
    assert all(set(part.text) <= set("xy") for part in choice.parts if isinstance(part, Text | Reasoning))


def test_every_shape_is_drawn() -> None:
    wanted = {
        "thinking",
        "content",
        "call",
        "call with an id",
        "call with an index",
        "two calls in a record",
        "content beside a call",
        "text in the last record",
        "call in the last record",
        "log probabilities",
        "no usage",
        "an empty delta",
        "equal neighbours",
        "an empty answer",
    }
    seen: set[str] = set()

    @settings(deadline=None, max_examples=600, database=None, derandomize=True)
    @given(streams("ollama"))
    def look(stream: Stream) -> None:
        contents = []
        for event in stream.events:
            message, done = event.data["message"], event.data["done"]
            calls = message.get("tool_calls", [])
            contents.append(message["content"])
            facts = {
                "thinking": "thinking" in message,
                "content": message["content"],
                "call": calls,
                "call with an id": any("id" in c for c in calls),
                "call with an index": any("index" in c["function"] for c in calls),
                "two calls in a record": len(calls) > 1,
                "content beside a call": message["content"] and calls,
                "text in the last record": done and message["content"],
                "call in the last record": done and calls,
                "log probabilities": "logprobs" in event.data,
                "no usage": done and stream.reply.usage is None,
                "an empty delta": not done and message == {"role": "assistant", "content": ""},
                "equal neighbours": len(contents) > 1 and contents[-1] and contents[-1] == contents[-2],
                "an empty answer": done and not stream.reply.choices[0].parts,
            }
            seen.update(name for name, found in facts.items() if found)

    look()
    assert seen == wanted


# --- the official client ------------------------------------------------------------------------------------


@quick
@given(streams("ollama"))
def test_the_client_types_accept_every_event(stream: Stream) -> None:
    for event in stream.events:
        parsed = ollama.ChatResponse.model_validate(event.data, strict=True)
        assert parsed.done == event.data["done"]


def read_with_the_client(data: bytes) -> list[ollama.ChatResponse]:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=data))
    return list(ollama.Client("http://ollama.test", transport=transport).chat("m", [], stream=True))


@settings(deadline=None, max_examples=25)
@given(streams("ollama"))
def test_the_client_reads_the_same_reply(stream: Stream) -> None:
    # Escaped, because the client splits lines at U+0085 and its like, too.
    style = Style(ascii=True)
    answers = read_with_the_client(OLLAMA.framing.encode(payloads(stream.events, style), style))
    message = [answer.message for answer in answers]
    expected = view(stream.reply)["choices"][0]
    assert "".join(m.content or "" for m in message) == expected["text"]
    assert "".join(m.thinking or "" for m in message) == expected["reasoning"]
    # The client keeps no ids of calls.
    assert [(c.function.name, c.function.arguments) for m in message for c in m.tool_calls or ()] == [
        (c["name"], json.loads(c["arguments"])) for c in expected["tool_calls"]
    ]
    assert [answer.done_reason for answer in answers if answer.done] == [expected["finish"]]
    counts = Usage(answers[-1].prompt_eval_count, answers[-1].eval_count)
    assert counts == (stream.reply.usage or Usage())


def test_an_error_line_is_an_error_to_the_client_and_to_us() -> None:
    failure = Event({"error": "out of memory"})
    assert OLLAMA.error(failure) == "out of memory"
    with pytest.raises(ollama.ResponseError, match="out of memory"):
        read_with_the_client(b'{"error":"out of memory"}\n')


@quick
@given(streams("ollama"))
def test_the_whole_body_says_what_the_stream_says(stream: Stream) -> None:
    body = OLLAMA.body(stream.reply)
    ollama.ChatResponse.model_validate(body, strict=True)
    whole, streamed = view(reduce(OLLAMA, [Event(body)])), view(stream.reply)
    del whole["choices"][0]["parts"], streamed["choices"][0]["parts"]
    assert whole == streamed


# --- the schema ---------------------------------------------------------------------------------------------


VALIDATORS = {kind: Draft202012Validator(schema) for kind, schema in OLLAMA.schemas.items()}


def test_the_schemas_are_schemas() -> None:
    for schema in OLLAMA.schemas.values():
        Draft202012Validator.check_schema(schema)


@quick
@given(streams("ollama"))
def test_drawn_events_fit_the_schema_of_their_kind(stream: Stream) -> None:
    for event in stream.events:
        VALIDATORS[OLLAMA.kind(event)].validate(event.data)
    assert {OLLAMA.kind(event) for event in stream.events[:-1]} <= {"chunk", "chunk:empty"}
    assert OLLAMA.kind(stream.events[-1]) == "done"


FULL = {"created_at": "2025-01-01T00:00:00Z"}


@pytest.mark.parametrize("member", ["model", "created_at", "message", "done"])
@pytest.mark.parametrize("value", [None, [], "absent"])
def test_a_mutilated_record_does_not_fit(member: str, value: Any) -> None:
    for event in (record(content="a"), last()):
        sound = event.data | FULL
        VALIDATORS[OLLAMA.kind(event)].validate(sound)
        damaged = sound | {member: value}
        if value == "absent":
            del damaged[member]
        with pytest.raises(ValidationError):
            VALIDATORS[OLLAMA.kind(event)].validate(damaged)


@pytest.mark.parametrize(
    "message",
    [
        {"content": "a"},
        {"role": "assistant"},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": "", "thinking": 1},
        {"role": "assistant", "content": "", "tool_calls": {}},
        {"role": "assistant", "content": "", "tool_calls": [{}]},
        {"role": "assistant", "content": "", "tool_calls": [call(arguments="{}")]},
        {"role": "assistant", "content": "", "tool_calls": [call(name=None)]},
    ],
)
def test_a_mutilated_message_does_not_fit(message: Any) -> None:
    with pytest.raises(ValidationError):
        VALIDATORS["chunk"].validate(record().data | FULL | {"message": message})


def test_an_error_line_fits_its_schema_and_needs_a_message() -> None:
    VALIDATORS["error"].validate({"error": "x"})
    for damaged in ({"error": {"message": "x"}}, {}, []):
        with pytest.raises(ValidationError):
            VALIDATORS["error"].validate(damaged)


# --- the rules ----------------------------------------------------------------------------------------------

BREAKS: list[tuple[str, str, list[Event], list[int]]] = [
    ("ollama.stream.unfinished", "must", [], [-1]),
    ("ollama.stream.unfinished", "must", [record(content="a")], [-1]),
    ("ollama.stream.after-done", "may", [last(), record(content="a")], [1]),
    ("ollama.stream.after-done", "may", [last(), last()], [1]),
    ("ollama.stream.after-done", "may", [last(), Event({"error": "late"})], [1]),
    ("ollama.stream.after-done", "may", [last(), Event([]), Event({})], [1, 2]),
    ("ollama.stream.after-done", "may", [last(), record(model="other"), Event(Raw("x"))], [1, 2]),
    ("ollama.record.not-object", "must", [Event([]), last()], [0]),
    ("ollama.record.not-object", "must", [Event("x"), last()], [0]),
    ("ollama.record.not-object", "must", [Event(1), Event(True), last()], [0, 1]),
    ("ollama.record.foreign", "may", [Event({}), last()], [0]),
    ("ollama.record.foreign", "may", [Event(None), last()], [0]),
    ("ollama.record.foreign", "may", [Event({"type": "ping"}), last()], [0]),
    ("ollama.record.foreign", "may", [Event({"error": ""}), last()], [0]),
    ("ollama.record.done", "may", [without(record(), "done"), last()], [0]),
    ("ollama.record.done", "may", [record(done=None), last()], [0]),
    ("ollama.record.done", "may", [record(done="true")], [0]),
    ("ollama.record.done", "may", [record(done=1)], [0]),
    ("ollama.record.model", "must", [record(), record(model="other"), last()], [1]),
    ("ollama.record.model", "must", [record(), last(model="other")], [1]),
    ("ollama.message.shape", "may", [without(record(), "message"), last()], [0]),
    ("ollama.message.shape", "may", [last(message=None)], [0]),
    ("ollama.message.shape", "may", [record(content=1), last()], [0]),
    ("ollama.message.shape", "may", [record(thinking=[]), last()], [0]),
    ("ollama.message.shape", "may", [record(tool_calls=call()), last()], [0]),
    ("ollama.call.shape", "may", [record(tool_calls=[call(name=None)]), last()], [0]),
    ("ollama.call.shape", "may", [record(tool_calls=[call(arguments="{}")]), last()], [0]),
    ("ollama.call.shape", "may", [record(tool_calls=[call(), "f"]), last()], [0]),
    ("ollama.call.shape", "may", [record(tool_calls=[{}]), last()], [0]),
]


@pytest.mark.parametrize(("rule", "level", "events", "at"), BREAKS)
def test_each_rule_is_broken_alone_and_has_its_level(rule: str, level: str, events: list[Event], at: list[int]) -> None:
    assert breaches(OLLAMA, events) == [(rule, index) for index in at]
    assert {found.id: found.level for found in OLLAMA.rules}[rule] == level


def test_every_rule_of_the_table_has_a_stream_that_breaks_it() -> None:
    assert {rule.id for rule in OLLAMA.rules} == {rule for rule, *_ in BREAKS}


@pytest.mark.parametrize(
    "events",
    [
        [last()],
        [last(done_reason="load", message={"role": "assistant", "content": ""})],
        [without(last(), "done_reason")],
        [record(content=None, thinking=None, tool_calls=None), last()],
        [without(record(content="a"), "model"), last()],
        [record(unknown={"a": 1}), last(remote_model="x")],
        [Event({"error": "x"})],
        [record(content="a"), Event({"error": "x"}), record(model="other"), Event([])],
        [record(tool_calls=[call(), call()]), last()],
        [Event(Raw("not JSON: another rule's business")), last()],
    ],
)
def test_lawful_and_failed_streams_break_nothing(events: list[Event]) -> None:
    assert breaches(OLLAMA, events) == []


def test_an_unclear_done_leaves_both_readings_of_what_follows_open() -> None:
    assert breaches(OLLAMA, [record(done="true"), record(), last()]) == [
        ("ollama.record.done", 0),
        ("ollama.stream.after-done", 1),
        ("ollama.stream.after-done", 2),
    ]


def test_a_stream_that_ends_on_an_unclear_done_may_be_read_as_ended_or_refused() -> None:
    unclear = Event(last().data | {"done": "true"})
    judgement = Reading.of_events(OLLAMA, [record(content="a"), unclear, record(content="b")]).judgement
    assert judgement.level == "may"
    assert {(reply.choices[0].parts, reply.choices[0].finish) for reply in judgement.accepted} == {
        ((Text("a"),), "stop"),
        ((Text("a"),), None),
    }


def test_a_reply_without_a_finish_or_a_model_can_be_streamed_too() -> None:
    reply = Reply((Choice((Text("a"),)),))
    assert reduce(OLLAMA, OLLAMA.plain_events(reply)) == reply
    assert breaches(OLLAMA, OLLAMA.plain_events(reply)) == []


def test_parts_that_the_api_cannot_say_are_left_out() -> None:
    assert parts(*OLLAMA.plain_events(Reply((Choice((Refusal("no"), Text("a"))),)))) == (Text("a"),)


# --- the reducer --------------------------------------------------------------------------------------------


def test_tool_calls_in_the_last_record_are_kept() -> None:
    final = last(message={"role": "assistant", "content": "", "tool_calls": [call(arguments={"q": "é"})]})
    assert parts(final) == (ToolCall(None, "f", '{"q":"é"}'),)


def test_calls_in_several_records_stay_apart() -> None:
    events = [
        record(tool_calls=[call("f", id="a")]),
        record(tool_calls=[call("f", id="b"), call("g")]),
        last(),
    ]
    assert parts(*events) == (ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}"), ToolCall(None, "g", "{}"))


def test_one_record_is_read_thinking_first_and_calls_last() -> None:
    event = record(tool_calls=[call()], content="b", thinking="a")
    assert parts(event) == (Reasoning("a"), Text("b"), ToolCall(None, "f", "{}"))


def test_equal_neighbours_are_both_kept() -> None:
    assert parts(record(content="ha"), record(content="ha"), last()) == (Text("haha"),)


def test_without_a_reason_the_finish_stays_unsaid() -> None:
    assert reduce(OLLAMA, [without(last(), "done_reason")]).choices[0].finish is None


def test_counts_come_from_the_last_record() -> None:
    assert reduce(OLLAMA, [last(prompt_eval_count=3, eval_count=5)]).usage == Usage(3, 5)
    assert reduce(OLLAMA, [last(eval_count=5)]).usage == Usage(None, 5)
    assert reduce(OLLAMA, [Event(record().data | {"eval_count": 5}), last()]).usage is None


def test_nothing_counts_after_the_end_or_an_error() -> None:
    assert parts(record(content="a"), last(), record(content="b")) == (Text("a"),)
    assert parts(record(content="a"), Event({"error": "x"}), record(content="b")) == (Text("a"),)


def test_malformed_calls_are_passed_over_and_odd_arguments_kept_as_text() -> None:
    calls = ["f", {}, call(name=1), call(arguments="{"), call(arguments=[1]), {"function": {"name": "g"}}]
    assert parts(record(tool_calls=calls)) == (
        ToolCall(None, "f", "{"),
        ToolCall(None, "f", "[1]"),
        ToolCall(None, "g", "{}"),
    )


def test_arguments_too_deep_to_write_do_not_raise() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert parts(record(tool_calls=[call(arguments=deep)])) == (ToolCall(None, "f", "null"),)
    while deep:  # taken apart by hand: the interpreter would recurse
        deep = deep.pop("a")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"error": "x"}, "x"),
        ({"error": {"message": "x"}}, "x"),
        ({"error": {"code": 1}}, '{"code":1}'),
        ({"error": ""}, None),
        ({"error": None, "done": False}, None),
        ({"message": {}}, None),
        ([], None),
        (Raw("error"), None),
    ],
)
def test_an_error_has_a_message(data: Any, message: str | None) -> None:
    assert OLLAMA.error(Event(data)) == message


# --- totality -----------------------------------------------------------------------------------------------

_leaf = st.sampled_from((None, True, False, 0, 1, 2.5, "", "a", "é"))
_members = st.sampled_from(
    (
        "model",
        "message",
        "done",
        "error",
        "content",
        "thinking",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
    )
)
ANY_JSON = st.recursive(
    _leaf,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_members, inner, max_size=5),
    max_leaves=12,
)
ANY_EVENT = st.one_of(
    ANY_JSON.map(Event),
    ANY_JSON.map(lambda message: Event({"message": message, "done": False})),
    st.lists(ANY_JSON, max_size=3).map(lambda calls: record(tool_calls=calls)),
    ANY_JSON.map(lambda function: record(tool_calls=[{"function": function}])),
    st.just(Event(Raw("x"))),
)


@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ANY_EVENT, max_size=4))
def test_no_json_value_makes_anything_raise(events: list[Event]) -> None:
    reply = reduce(OLLAMA, events)
    assert isinstance(reply, Reply)
    assert len(reply.choices) == 1
    assert merge_text(reply.choices[0].parts) == reply.choices[0].parts
    known = {rule.id for rule in OLLAMA.rules}
    assert {rule for rule, _ in breaches(OLLAMA, events)} <= known
    for event in events:
        assert OLLAMA.kind(event) in {*OLLAMA.schemas, "unknown"}
        for change in OLLAMA.features.values():
            assert isinstance(change(event), Event | None)


def test_an_empty_stream_is_one_empty_choice() -> None:
    assert reduce(OLLAMA, []) == Reply((Choice(),))
