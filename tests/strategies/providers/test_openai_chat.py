"""Chat completion streams: the round trip, the tables, and what OpenAI's own package makes of them."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDelta

from streamfuzz_strategies.providers import Drawing, get
from streamfuzz_strategies.providers.base import reduce
from streamfuzz_strategies.providers.openai_chat import read_body
from streamfuzz_strategies.reply import Choice, Opaque, Reply, Text, ToolCall
from streamfuzz_strategies.stream import Event, Raw

from .walking import breaches, streams

CHAT = get("openai-chat")
LEVELS = {rule.id: rule.level for rule in CHAT.rules}
AZURE_KINDS = {"prompt_filter", "content_filter"}
"""Chunks that only Azure sends; OpenAI's types do not describe them, and its reader skips them by ``object``."""

quick = settings(max_examples=60, deadline=None)
chats = streams("openai-chat")


def opening_order(events):
    """The indices of the choices, in the order in which they first appear."""
    return list(dict.fromkeys(c["index"] for e in events if isinstance(e.data, dict) for c in e.data["choices"]))


@quick
@given(chats)
def test_reducing_a_drawn_stream_gives_the_reply(stream):
    assert reduce(CHAT, stream.events) == stream.reply


@quick
@given(chats)
def test_reducing_the_plain_stream_gives_the_reply(stream):
    assert reduce(CHAT, CHAT.plain_events(stream.reply)) == stream.reply


@quick
@given(st.data())
def test_what_the_protocol_cannot_say_is_left_out_and_an_unfinished_choice_stays_so(data):
    reply = Reply((Choice((Opaque("image", "{}"), Text("a"))),), "c", "m")
    sayable = Reply((Choice((Text("a"),)),), "c", "m")
    assert reduce(CHAT, CHAT.plain_events(reply)) == sayable
    assert reduce(CHAT, CHAT.draw_events(data.draw, reply, Drawing())) == sayable


@quick
@given(chats)
def test_lawful_streams_break_nothing(stream):
    assert breaches(CHAT, stream.events) == []
    assert breaches(CHAT, CHAT.plain_events(stream.reply)) == []


@quick
@given(chats)
def test_a_stream_cut_between_events_is_visibly_damaged_unless_every_choice_seen_has_finished(stream):
    for length in range(len(stream.events)):
        cut = stream.events[:length]
        choices = reduce(CHAT, cut).choices
        found = {rule for rule, _ in breaches(CHAT, cut)}
        if choices and all(choice.finish for choice in choices):
            assert found == {"openai-chat.stream.no-done"}
        else:
            assert "must" in {LEVELS[rule] for rule in found}


@quick
@given(chats)
def test_calls_are_released_once_their_choice_has_finished_uncut(stream):
    reducer = CHAT.reducer()
    for event in stream.events:
        reducer.apply(event)
        finished = [c for c in reducer.reply().choices if c.finish not in (None, "length", "content_filter")]
        calls = [part for choice in finished for part in choice.parts if isinstance(part, ToolCall)]
        assert list(reducer.released()) == calls


@quick
@given(chats)
def test_asking_for_the_reply_early_changes_nothing(stream):
    reducer = CHAT.reducer()
    for event in stream.events:
        reducer.apply(event)
        reducer.reply()
    assert reducer.reply() == stream.reply


@quick
@given(chats)
def test_openai_accepts_every_chunk(stream):
    for event in stream.events[:-1]:
        if CHAT.kind(event) not in AZURE_KINDS:
            ChatCompletionChunk.model_validate(event.data, strict=True)


@quick
@given(chats)
def test_openai_accumulates_the_same_message(stream):
    # OpenAI's accumulator puts a choice where it first appears, so it reads only streams that open them in order;
    # and it forgets the usage if another chunk follows.
    order = opening_order(stream.events)
    assume(order == sorted(order))
    state = ChatCompletionStreamState()
    for event in stream.events[:-1]:
        if event.data["object"] == "chat.completion.chunk" and CHAT.kind(event) != "chunk":
            state.handle_chunk(ChatCompletionChunk.model_validate(event.data))
    assert read_body(state.current_completion_snapshot.to_dict()) == stream.reply


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.lists(chats, min_size=1, max_size=1))
def _collect(drawn):
    SEEN.extend(drawn)


SEEN = []


@pytest.fixture(scope="module")
def seen():
    """A few hundred drawn streams, always the same."""
    if not SEEN:
        _collect()
    return list(SEEN)


def test_every_kind_of_chunk_is_drawn(seen):
    kinds = {CHAT.kind(event) for stream in seen for event in stream.events}
    assert kinds == set(CHAT.schemas) - {"error", "chunk:function_call"}


def test_every_field_that_openai_types_is_drawn_except_audio_moderation_and_the_deprecated_call(seen):
    chunks = [event.data for stream in seen for event in stream.events[:-1]]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert set(ChatCompletionChunk.model_fields) - {key for chunk in chunks for key in chunk} == {"moderation"}
    assert set(ChoiceDelta.model_fields) - {key for delta in deltas for key in delta} == {"audio", "function_call"}


def test_every_finish_reason_is_drawn(seen):
    finishes = {choice.finish for stream in seen for choice in stream.reply.choices}
    assert finishes == {"stop", "length", "tool_calls", "content_filter"}


@quick
@given(chats, st.data())
def test_a_deprecated_function_call_is_not_drawn_but_can_be_streamed(stream, data):
    assert None not in {call.id for call in stream.reply.tool_calls}
    reply = Reply((Choice((Text("a"), ToolCall(None, "f", '{"x":1}')), "function_call"),), "c", "m")
    for events in (CHAT.plain_events(reply), CHAT.draw_events(data.draw, reply, Drawing())):
        assert any("function_call" in choice["delta"] for event in events[:-1] for choice in event.data["choices"])
        assert reduce(CHAT, events) == reply
        assert breaches(CHAT, events) == []
        for event in events[:-1]:
            VALIDATORS[CHAT.kind(event)].validate(event.data)
            assert CHAT.kind(event) in AZURE_KINDS or ChatCompletionChunk.model_validate(event.data, strict=True)


def test_the_hard_shapes_are_drawn(seen):
    def indices(event):
        return [c["index"] for c in event.data["choices"]]

    def slots(event):
        return [[f["index"] for f in c["delta"].get("tool_calls") or ()] for c in event.data["choices"]]

    events = [event for stream in seen for event in stream.events[:-1]]
    assert any(len(set(indices(e))) > 1 for e in events), "two choices in one chunk"
    assert any(len(s) > len(set(s)) for e in events for s in slots(e)), "two fragments of one call in one chunk"
    assert any(len(set(s)) > 1 for e in events for s in slots(e)), "fragments of two calls in one chunk"
    orders = [[i for e in s.events[:-1] for i in indices(e)] for s in seen]
    assert any(order != sorted(order) for order in orders), "interleaved choices"
    assert any(opening_order(s.events) != sorted(opening_order(s.events)) for s in seen), "choice 1 first"
    texts = [p.text for s in seen for c in s.reply.choices for p in c.parts if isinstance(p, Text)]
    assert any(text.startswith("t0 t1") for text in texts), "a token of its own in each delta"
    assert any(text.startswith("haha") for text in texts), "equal neighbours"


@quick
@given(chats)
def test_streams_stay_small(stream):
    assert len(stream.events) <= 80


@given(st.data())
@quick
def test_drawing_is_obeyed(data):
    drawing = Drawing(tools={"f": {"const": {"x": 1}}}, alphabet="q", max_parts=2)
    reply = CHAT.draw_reply(data.draw, drawing)
    for choice in reply.choices:
        assert len(choice.parts) <= 2
        for part in choice.parts:
            if isinstance(part, ToolCall):
                assert part.name == "f"
            else:
                assert set(part.text) == {"q"}
    assert CHAT.draw_reply(data.draw, Drawing(tools={})).tool_calls == ()


# --- the answer without streaming


@quick
@given(chats)
def test_the_body_is_a_chat_completion_that_reads_back(stream):
    body = CHAT.body(stream.reply)
    ChatCompletion.model_validate(body, strict=True)
    assert read_body(body) == stream.reply


# --- schemas

VALIDATORS = {kind: Draft202012Validator(schema) for kind, schema in CHAT.schemas.items()}


@pytest.mark.parametrize("kind", sorted(CHAT.schemas))
def test_schemas_are_schemas(kind):
    Draft202012Validator.check_schema(CHAT.schemas[kind])


@quick
@given(chats)
def test_drawn_events_obey_the_schema_of_their_kind(stream):
    for event in stream.events:
        payload = event.data.text if isinstance(event.data, Raw) else event.data
        VALIDATORS[CHAT.kind(event)].validate(payload)


def test_a_chunk_without_a_required_member_or_with_a_wrong_type_is_refused(seen):
    for event in (event for stream in seen[:60] for event in stream.events[:-1]):
        valid = VALIDATORS[CHAT.kind(event)].is_valid
        for key in CHAT.schemas[CHAT.kind(event)].get("required", ()):
            assert not valid({k: v for k, v in event.data.items() if k != key}), key
            assert not valid({**event.data, key: {"other": "type"}}), key
        for choice in event.data["choices"]:
            for key in {"index", "delta", "finish_reason"} & set(choice):
                broken = {**event.data, "choices": [{**choice, key: ["other type"]}]}
                assert (CHAT.kind(event) == "content_filter" and key != "index") or not valid(broken), key


@pytest.mark.parametrize("payload", [{"error": {"message": "boom"}}, {"error": "boom", "error_type": "overloaded"}])
def test_error_events_obey_their_schema(payload):
    assert CHAT.kind(Event(payload)) == "error"
    assert VALIDATORS["error"].is_valid(payload)
    assert not VALIDATORS["error"].is_valid({"error": 5})


# --- total on anything

scalars = st.sampled_from((None, True, False, 0, 1, -1, 7, 1.5, 10**30, "", "x", "stop", "length", "{}", "[DONE]"))
DELTA_MEMBERS = ("role", "content", "refusal", "reasoning", "tool_calls", "function_call", "function", "index", "id")
MEMBERS = (
    *DELTA_MEMBERS,
    "name",
    "arguments",
    "choices",
    "delta",
    "finish_reason",
    "usage",
    "error",
    "message",
    "type",
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=4),
    max_leaves=12,
)
deltas = st.dictionaries(st.sampled_from(DELTA_MEMBERS), json_values, max_size=3)
likely = st.fixed_dictionaries(
    {
        "choices": st.lists(
            st.fixed_dictionaries({}, optional={"index": scalars, "delta": deltas, "finish_reason": scalars}),
            max_size=2,
        )
    },
    optional={"id": scalars, "object": st.just("chat.completion.chunk") | scalars, "usage": json_values},
)
anything = st.lists(
    st.builds(
        Event,
        json_values | likely | st.builds(Raw, st.sampled_from(("[DONE]", "", "{", "x"))),
        st.sampled_from((None, None, None, "message", "error", "x")),
    ),
    max_size=6,
)


@settings(max_examples=200, deadline=None)
@given(anything)
def test_nothing_makes_the_tables_or_the_reducer_raise(events):
    assert {rule for rule, _ in breaches(CHAT, events)} <= set(LEVELS)
    reducer = CHAT.reducer()
    for event in events:
        reducer.apply(event)
        assert set(reducer.released()) <= set(reducer.reply().tool_calls)
        assert isinstance(CHAT.kind(event), str)
        assert isinstance(CHAT.error(event), str | None)


# --- what is beside the answer


@quick
@given(chats, st.data())
def test_noise_and_what_may_be_ignored_change_nothing(stream, data):
    index = data.draw(st.integers(0, len(stream.events) - 1))
    noisy = (*stream.events[:index], *CHAT.noise, *stream.events[index:])
    assert reduce(CHAT, noisy) == stream.reply
    assert breaches(CHAT, noisy) == []
    assert reduce(CHAT, [e for e in stream.events if CHAT.kind(e) not in CHAT.ignorable]) == stream.reply
    assert {CHAT.kind(event) for event in CHAT.noise} <= CHAT.ignorable


def test_failures_are_errors_that_say_something():
    for event in CHAT.failures:
        assert CHAT.error(event)
        assert VALIDATORS["error"].is_valid(event.data)


def first_calls(choice):
    """The choice with no other call than its first."""
    later = [part for part in choice.parts if isinstance(part, ToolCall)][1:]
    return replace(choice, parts=tuple(part for part in choice.parts if part not in later))


SHORTENED = {
    "more than one choice": lambda reply: replace(reply, choices=reply.choices[:1]),
    "more than one tool call": lambda reply: replace(reply, choices=tuple(map(first_calls, reply.choices))),
    "the usage chunk": lambda reply: replace(reply, usage=None),
}
"""What is left of the message without a feature that is part of it; every other feature is none of it."""


@quick
@given(chats)
def test_without_a_feature_the_message_is_the_same_or_shorter_by_it(stream):
    for feature, take in CHAT.features.items():
        without = [event for event in map(take, stream.events) if event is not None]
        assert reduce(CHAT, without) == SHORTENED.get(feature, lambda reply: reply)(stream.reply), feature
        assert breaches(CHAT, without) == []
        assert list(map(take, without)) == without


@quick
@given(chats)
def test_without_a_feature_openai_still_accepts_every_chunk_and_no_chunk_has_become_bare(stream):
    for take in CHAT.features.values():
        for event in stream.events[:-1]:
            left = take(event)
            if left is not None and CHAT.kind(event) not in AZURE_KINDS:
                VALIDATORS[CHAT.kind(left)].validate(left.data)
                ChatCompletionChunk.model_validate(left.data, strict=True)
                assert bool(left.data["choices"]) == bool(event.data["choices"])


def test_a_shorter_message_is_shorter(seen):
    assert set(SHORTENED) <= set(CHAT.features)
    for shorten in SHORTENED.values():
        assert any(shorten(stream.reply) != stream.reply for stream in seen)


def test_each_feature_is_drawn(seen):
    for feature, take in CHAT.features.items():
        assert any(take(event) != event for stream in seen for event in stream.events), feature


@settings(max_examples=100, deadline=None)
@given(anything)
def test_features_can_be_taken_from_anything(events):
    for take in CHAT.features.values():
        for event in events:
            assert isinstance(take(event), Event | None)
