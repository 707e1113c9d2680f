"""The lifecycle of Messages streams: each rule, and the stream that breaks it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfuzz_strategies.providers import get
from streamfuzz_strategies.providers.base import reduce
from streamfuzz_strategies.rules import Walk
from streamfuzz_strategies.stream import Event, Raw, Stream

from .test_anthropic import STOP, TOOL, delta, opened, piece, say, start, stopped, told, words
from .walking import breaches, streams

ANTHROPIC = get("anthropic")

TEXT = opened(0, type="text", text="")
SECOND = opened(1, type="text", text="")
THINKING = opened(0, type="thinking", thinking="", signature="")
THOUGHT = delta(0, type="thinking_delta", thinking="t")
SIGNED = delta(0, type="signature_delta", signature="s")
A, B = words(0, "a"), words(1, "b")
CALL = opened(0, **TOOL)
CITATION = delta(0, type="citations_delta", citation={"type": "x"})


def nameless(event: Event) -> Event:
    return Event(event.data)


BROKEN: list[tuple[str, int, list[Event]]] = [
    ("stream.unfinished", -1, []),
    ("stream.unfinished", -1, [say("ping")]),
    ("stream.unfinished", -1, [start()]),
    ("stream.unfinished", -1, [start(), TEXT, A]),
    ("stream.unfinished", -1, [start(), TEXT, A, stopped(0)]),
    ("stream.unfinished", -1, [start(), TEXT, A, stopped(0), told(None)]),
    ("stream.unfinished", -1, [start(), TEXT, told()]),
    ("stream.unstopped", -1, [start(), TEXT, A, stopped(0), told()]),
    ("stream.unstopped", -1, [start(content=[TOOL], stop_reason="tool_use")]),
    ("stream.before-start", 0, [TEXT, A, stopped(0), told(), STOP]),
    ("stream.before-start", 0, [TEXT, start(), stopped(0), told(), STOP]),
    ("stream.before-start", 0, [told(), start(), STOP]),
    ("stream.before-start", 0, [told(None), told(), STOP]),
    ("stream.before-start", 0, [STOP, start(), TEXT, A, stopped(0), told(), STOP]),
    ("stream.after-stop", 3, [start(), told(), STOP, STOP]),
    ("stream.after-stop", 3, [start(), told(), STOP, start(id="msg_2")]),
    ("stream.after-stop", 3, [start(), told(), STOP, A]),
    ("stream.after-stop", 3, [start(), told(), STOP, Event([])]),
    ("stream.after-stop", 3, [start(), told(), STOP, say("error", error={"message": "m"})]),
    ("message.late-delta", 3, [start(), told(), STOP, told()]),
    ("message.restarted", 1, [start(), start(), told(), STOP]),
    ("message.restarted", 2, [start(), TEXT, start(model="another"), A, stopped(0), told(), STOP]),
    ("message.restarted", 2, [start(), told(), start(), STOP]),
    ("message.spliced", 1, [start(), start(id="msg_2"), told(), STOP]),
    ("message.spliced", 2, [start(), TEXT, start(id=None), stopped(0), told(), STOP]),
    ("message.no-reason", 1, [start(), STOP]),
    ("message.no-reason", 4, [start(), TEXT, A, stopped(0), STOP]),
    ("message.reason-changed", 2, [start(), told(), told("max_tokens"), STOP]),
    ("message.reason-withdrawn", 2, [start(), told(), told(None), STOP]),
    ("message.after-reason", 2, [start(), told(), TEXT, STOP]),
    ("message.after-reason", 4, [start(), TEXT, stopped(0), told(), SECOND, stopped(1), STOP]),
    ("block.overlap", 2, [start(), TEXT, SECOND, stopped(0), stopped(1), told(), STOP]),
    ("block.gap", 1, [start(), SECOND, stopped(1), told(), STOP]),
    ("block.gap", 3, [start(), TEXT, stopped(0), opened(2, type="text"), stopped(2), told(), STOP]),
    ("block.gap", 1, [start(), opened(-1, type="text"), stopped(-1), told(), STOP]),
    ("block.reopened", 2, [start(), TEXT, TEXT, A, stopped(0), told(), STOP]),
    ("block.reopened", 3, [start(), TEXT, stopped(0), THINKING, told(), STOP]),
    ("block.reopened", 1, [start(content=[TOOL]), TEXT, told(), STOP]),
    ("block.unopened", 1, [start(), A, told(), STOP]),
    ("block.unopened", 1, [start(), delta(0, type="future_delta"), told(), STOP]),
    ("block.unopened", 1, [start(), stopped(0), told(), STOP]),
    ("block.unopened", 2, [start(), TEXT, B, stopped(0), told(), STOP]),
    ("block.closed", 3, [start(), TEXT, stopped(0), A, told(), STOP]),
    ("block.closed", 4, [start(), TEXT, stopped(0), SECOND, A, stopped(1), told(), STOP]),
    ("block.stopped-twice", 3, [start(), TEXT, stopped(0), stopped(0), told(), STOP]),
    ("block.left-open", 3, [start(), TEXT, A, STOP]),
    ("block.left-open", 3, [start(), TEXT, told(), STOP]),
    ("block.late-stop", 3, [start(), TEXT, told(), stopped(0), STOP]),
    ("delta.misfit", 2, [start(), TEXT, piece(0, "{}"), stopped(0), told(), STOP]),
    ("delta.misfit", 2, [start(), CALL, A, stopped(0), told(), STOP]),
    ("delta.misfit", 2, [start(), CALL, CITATION, stopped(0), told(), STOP]),
    ("delta.misfit", 2, [start(), opened(0, type="redacted_thinking", data="x"), A, stopped(0), told(), STOP]),
    ("thinking.unsigned", 3, [start(), THINKING, THOUGHT, stopped(0), told(), STOP]),
    ("thinking.after-signature", 3, [start(), THINKING, SIGNED, THOUGHT, stopped(0), told(), STOP]),
    ("thinking.signed-twice", 3, [start(), THINKING, SIGNED, SIGNED, stopped(0), told(), STOP]),
    ("call.torn", 4, [start(), CALL, piece(0, '{"a'), stopped(0), told("tool_use"), STOP]),
    ("call.torn", 4, [start(), CALL, piece(0, "[]"), stopped(0), told(), STOP]),
    ("call.torn", 4, [start(), CALL, piece(0, "{"), stopped(0), SECOND, stopped(1), told("max_tokens"), STOP]),
    ("event.malformed", 0, [say("message_start"), told(), STOP]),
    ("event.malformed", 1, [start(), opened(0), told(), STOP]),
    ("event.malformed", 1, [start(), opened(True, type="text"), told(), STOP]),
    ("event.malformed", 1, [start(), say("content_block_start", index=0), told(), STOP]),
    ("event.malformed", 1, [start(), opened(0, **TOOL | {"input": "x"}), stopped(0), told(), STOP]),
    ("event.malformed", 2, [start(), TEXT, delta(0), stopped(0), told(), STOP]),
    ("event.malformed", 2, [start(), TEXT, delta("0", type="text_delta"), stopped(0), told(), STOP]),
    ("event.malformed", 2, [start(), TEXT, words(0, 7), stopped(0), told(), STOP]),
    ("event.malformed", 2, [start(), TEXT, delta(0, type="citations_delta", citation=""), stopped(0), told(), STOP]),
    ("event.malformed", 2, [start(), TEXT, say("content_block_stop"), stopped(0), told(), STOP]),
    ("event.malformed", 1, [start(), say("message_delta"), told(), STOP]),
    ("event.malformed", 1, [start(), told(7), told(), STOP]),
    ("event.unnamed", 1, [start(), nameless(told()), STOP]),
    ("event.unnamed", 1, [start(), Event(told().data, "message"), STOP]),
    ("event.misnamed", 1, [start(), Event(told().data, "content_block_stop"), STOP]),
    ("event.misnamed", 1, [start(), Event(told().data, "future"), STOP]),
    ("event.misnamed", 1, [start(), Event(told().data | {"type": "future"}, "message_delta"), STOP]),
    ("event.misnamed", 2, [start(), told(), Event({}, "message_stop")]),
    *(("event.foreign", 1, [start(), Event(data), told(), STOP]) for data in (None, [], 1, "x", {}, Raw("x"))),
    ("event.foreign", 1, [start(), Event([], "message_stop"), told(), STOP]),
]
"""Rule, index of the event that breaks it, stream."""

MAY = {
    "stream.unstopped",
    "stream.after-stop",
    "message.late-delta",
    "message.restarted",
    "message.no-reason",
    "message.reason-changed",
    "message.reason-withdrawn",
    "block.stopped-twice",
    "block.late-stop",
    "thinking.unsigned",
    "thinking.after-signature",
    "thinking.signed-twice",
    "call.torn",
    "event.malformed",
    "event.unnamed",
    "event.misnamed",
    "event.foreign",
}
"""Rules whose breach a reader may survive; every other one is damage."""


@pytest.mark.parametrize(("rule", "index", "events"), BROKEN)
def test_each_rule_is_broken_by_its_stream_and_no_other_rule_is(rule: str, index: int, events: list[Event]) -> None:
    assert breaches(ANTHROPIC, events) == [(f"anthropic.{rule}", index)]


def test_every_rule_has_its_stream_and_its_level() -> None:
    assert {rule.id for rule in ANTHROPIC.rules} == {f"anthropic.{rule}" for rule, _, _ in BROKEN}
    assert {rule.id for rule in ANTHROPIC.rules if rule.level != "must"} == {f"anthropic.{rule}" for rule in MAY}
    assert {rule.level for rule in ANTHROPIC.rules} == {"must", "may"}


@pytest.mark.parametrize(("rule", "index", "events"), BROKEN)
def test_leaving_out_what_is_to_be_skipped_changes_nothing(rule: str, index: int, events: list[Event]) -> None:
    walk = Walk(ANTHROPIC.machines)
    found = [b for i, event in enumerate(events) for b in walk.step(i, ANTHROPIC.steps(event, walk))]
    left_out = {breach.index for breach in found if breach.reading == "skip"}
    kept = [event for i, event in enumerate(events) if i not in left_out]
    assert reduce(ANTHROPIC, kept) == reduce(ANTHROPIC, events)


LAWFUL: dict[str, list[Event]] = {
    "plain": [start(), TEXT, A, stopped(0), told(), STOP],
    "refused before the first block": [start(), say("ping"), told("refusal"), STOP],
    "the message stands in its start": [start(content=[TOOL, TOOL], stop_reason="tool_use"), STOP],
    "content in the start is counted": [start(content=[TOOL]), SECOND, B, stopped(1), told(), STOP],
    "totals told twice": [start(), told(None), told(), told(), STOP],
    "torn by the token limit": [start(), CALL, piece(0, "{"), stopped(0), told("max_tokens"), STOP],
    "a future event": [start(), say("future"), Event({"x": [1]}, "future"), told(), STOP],
    "a future block": [start(), opened(0, type="future"), A, SIGNED, stopped(0), told(), STOP],
    "a future delta": [start(), TEXT, delta(0, type="future_delta"), stopped(0), told(), STOP],
    "a future reason": [start(), told("bored"), STOP],
    "pings everywhere": [say("ping"), start(), say("ping"), told(), say("ping"), STOP, say("ping")],
    "unnamed ping": [start(), nameless(say("ping")), told(), STOP],
    "failed": [start(), TEXT, A, say("error", error={"message": "m"})],
    "failed at once": [say("error", error={"message": "m"})],
}


@pytest.mark.parametrize("events", LAWFUL.values(), ids=LAWFUL)
def test_lawful_streams_break_nothing(events: list[Event]) -> None:
    assert breaches(ANTHROPIC, events) == []


@given(streams("anthropic"))
@settings(max_examples=100, deadline=None)
def test_a_stream_that_ends_early_shows_it(stream: Stream) -> None:
    for at in range(len(stream.events)):
        ended = stream.events[:at]
        reason = reduce(ANTHROPIC, ended).choices[0].finish if at and reduce(ANTHROPIC, ended).choices else None
        expected = "anthropic.stream.unstopped" if reason else "anthropic.stream.unfinished"
        assert breaches(ANTHROPIC, ended) == [(expected, -1)]


@given(streams("anthropic"), st.data())
@settings(max_examples=100, deadline=None)
def test_a_lost_start_or_stop_of_a_block_shows(stream: Stream, data: st.DataObject) -> None:
    edges = [i for i, e in enumerate(stream.events) if e.name in ("content_block_start", "content_block_stop")]
    if not edges:
        return
    lost = data.draw(st.sampled_from(edges))
    broken = {rule for rule, _ in breaches(ANTHROPIC, [e for i, e in enumerate(stream.events) if i != lost])}
    levels = {rule.id: rule.level for rule in ANTHROPIC.rules}
    assert "must" in {levels[rule] for rule in broken}


def test_a_stop_reason_after_message_stop_counts_or_not() -> None:
    events = [start(), STOP, told()]
    assert breaches(ANTHROPIC, events) == [("anthropic.message.no-reason", 1), ("anthropic.message.late-delta", 2)]
    assert [reduce(ANTHROPIC, events[:n]).choices[0].finish for n in (2, 3)] == [None, "end_turn"]


WORDS = st.sampled_from(
    (
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"),
        *("message_stop", "ping", "error", "message", "text", "thinking", "tool_use", "server_tool_use"),
        *("text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta", "compaction"),
    )
)
MEMBERS = st.sampled_from(
    (
        *("type", "index", "delta", "content_block", "message", "content", "input", "usage", "stop_reason", "id"),
        *("text", "thinking", "signature", "partial_json", "citation", "citations", "error", "input_tokens"),
    )
)
SCALAR = st.sampled_from((None, True, 0, 1, -1, 1.5, "", "x", "tool_use", [], {}, [[]], [{}], {"type": "text"}))
OBJECT = st.dictionaries(MEMBERS, SCALAR | WORDS, max_size=5)
TYPED = st.tuples(OBJECT, WORDS).map(lambda made: {**made[0], "type": made[1]})
INNER = TYPED | OBJECT | SCALAR
SHAPED = st.tuples(st.integers(0, 1), INNER, INNER, WORDS).map(
    lambda made: {"index": made[0], "delta": made[1], "content_block": made[2], "message": made[2], "type": made[3]}
)
ANY_EVENT = st.builds(
    Event, SHAPED | SHAPED | TYPED | SCALAR | st.builds(Raw, WORDS), st.none() | WORDS | st.just("future")
)


@given(st.lists(ANY_EVENT, max_size=6))
@settings(max_examples=300, deadline=None)
def test_nothing_makes_the_reference_fail(events: list[Event]) -> None:
    walk, reducer = Walk(ANTHROPIC.machines), ANTHROPIC.reducer()
    ids = {rule.id for rule in ANTHROPIC.rules}
    for index, event in enumerate(events):
        found: list[Any] = walk.step(index, ANTHROPIC.steps(event, walk))
        assert {breach.rule.id for breach in found} <= ids
        reducer.apply(event)
        assert len(reducer.reply().choices) <= 1
        reducer.released()
        assert ANTHROPIC.kind(event) in {*ANTHROPIC.schemas, "unknown"} or ANTHROPIC.kind(event).endswith(":unknown")
        assert isinstance(ANTHROPIC.error(event), str | None)
    assert {breach.rule.id for breach in walk.end()} <= ids
    if reducer.reply().choices:
        ANTHROPIC.plain_events(reducer.reply())
        ANTHROPIC.body(reducer.reply())


def test_values_nested_to_the_limit_do_not_make_it_fail() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    events = [start(), opened(0, type="future", x=deep), opened(1, **TOOL | {"input": deep})]
    assert len(reduce(ANTHROPIC, events).choices[0].parts) == 2


@pytest.mark.parametrize("count", [2000])
def test_the_walk_takes_time_linear_in_the_deltas_of_a_call(count: int) -> None:
    walk = Walk(ANTHROPIC.machines)
    for index, event in enumerate([start(), CALL, *(piece(0, "[" * 50) for _ in range(count)), stopped(0)]):
        walk = walk.copy()
        assert walk.step(index, ANTHROPIC.steps(event, walk)) == []
