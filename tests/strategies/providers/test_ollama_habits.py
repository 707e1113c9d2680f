"""What is beside the answer in Ollama's streams: what may be ignored or taken out, and how they fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import ollama
import pytest
from hypothesis import HealthCheck, given, settings

from streamfuzz_strategies.providers import get
from streamfuzz_strategies.providers.base import reduce
from streamfuzz_strategies.reply import Part, Reasoning, Reply, ToolCall, Usage, merge_text
from streamfuzz_strategies.stream import Event, Stream

from .test_ollama import call, last, record
from .walking import breaches, streams

OLLAMA = get("ollama")
quick = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])


def left(events: tuple[Event, ...], feature: str) -> tuple[Event, ...]:
    """The events without a feature."""
    return tuple(event for event in map(OLLAMA.features[feature], events) if event is not None)


def in_parts(change: Callable[[Part], Part | None]) -> Callable[[Reply], Reply]:
    """Change every part of a reply (``None``: it goes)."""

    def changed(reply: Reply) -> Reply:
        (choice,) = reply.choices
        kept = (part for part in map(change, choice.parts) if part is not None)
        return replace(reply, choices=(replace(choice, parts=merge_text(tuple(kept))),))

    return changed


SAME = {"an empty delta", "log probabilities", "an index in a tool call"}
"""Features that are no part of the message."""

CHANGED: dict[str, Callable[[Reply], Reply]] = {
    "token counts": lambda reply: replace(reply, usage=None),
    "an id in a tool call": in_parts(lambda part: replace(part, id=None) if isinstance(part, ToolCall) else part),
    "thinking": in_parts(lambda part: None if isinstance(part, Reasoning) else part),
}
"""What is left of the message without a feature that is part of it wherever it stands."""

SHORTENED = {
    "more than one tool call in a record",
    "text in the last record",
    "a tool call in the last record",
}
"""Features that take a piece of the message along; which one depends on how it was cut."""


def test_every_feature_is_one_of_these() -> None:
    assert SAME | set(CHANGED) | SHORTENED == set(OLLAMA.features)


@quick
@given(streams("ollama"))
def test_without_a_feature_the_message_is_the_same_or_lacks_only_that(stream: Stream) -> None:
    assert stream.reply is not None
    for feature in SAME:
        assert reduce(OLLAMA, left(stream.events, feature)) == stream.reply, feature
    for feature, changed in CHANGED.items():
        assert reduce(OLLAMA, left(stream.events, feature)) == changed(stream.reply), feature


@quick
@given(streams("ollama"))
def test_a_stream_without_a_feature_is_lawful_and_without_it(stream: Stream) -> None:
    for feature in OLLAMA.features:
        events = left(stream.events, feature)
        assert breaches(OLLAMA, events) == []
        assert left(events, feature) == events
        for event in events:
            ollama.ChatResponse.model_validate(event.data, strict=True)


@cache
def found() -> frozenset[str]:
    """The features that a fixed run of the strategy comes by."""
    seen: set[str] = set()

    @settings(quick, max_examples=300, derandomize=True, database=None)
    @given(streams("ollama"))
    def run(stream: Stream) -> None:
        seen.update(feature for feature in OLLAMA.features if left(stream.events, feature) != stream.events)

    run()
    return frozenset(seen)


@pytest.mark.parametrize("feature", OLLAMA.features)
def test_each_feature_is_drawn(feature: str) -> None:
    assert feature in found()


F, G = call("f"), call("g")
EXAMPLES: list[tuple[str, list[Event], list[Event]]] = [
    ("an empty delta", [record(), record(content="a"), last()], [record(content="a"), last()]),
    ("more than one tool call in a record", [record(tool_calls=[F, G]), last()], [record(tool_calls=[F]), last()]),
    ("token counts", [last(eval_count=1, prompt_eval_count=2)], [last()]),
    ("thinking", [record(thinking="t", content="a"), last()], [record(content="a"), last()]),
    ("text in the last record", [record(content="a"), record(True, content="b")], [record(content="a"), record(True)]),
    (
        "a tool call in the last record",
        [record(tool_calls=[F]), record(True, tool_calls=[G])],
        [record(tool_calls=[F]), record(True)],
    ),
    ("an id in a tool call", [record(tool_calls=[call("f", id="i")])], [record(tool_calls=[F])]),
    (
        "an index in a tool call",
        [record(tool_calls=[{"function": {"index": 0, "name": "f", "arguments": {}}}])],
        [record(tool_calls=[F])],
    ),
    ("log probabilities", [Event(record(content="a").data | {"logprobs": []})], [record(content="a")]),
]
"""A feature, events that have it, and the same without it."""


@pytest.mark.parametrize(("feature", "events", "expected"), EXAMPLES)
def test_a_feature_is_taken_out(feature: str, events: list[Event], expected: list[Event]) -> None:
    assert list(left(tuple(events), feature)) == expected


@quick
@given(streams("ollama"))
def test_a_reader_may_leave_out_what_is_ignorable(stream: Stream) -> None:
    kept = [event for event in stream.events if OLLAMA.kind(event) not in OLLAMA.ignorable]
    assert reduce(OLLAMA, kept) == stream.reply
    assert breaches(OLLAMA, kept) == []


def test_the_protocol_has_nothing_that_means_nothing() -> None:
    # Every line is a record of the answer: there are no pings, and readers need not know other lines.
    assert OLLAMA.noise == ()


def test_only_a_true_done_ends_a_stream_for_good() -> None:
    assert OLLAMA.over == {"done", "failed"} < set(OLLAMA.machines["stream"].rows)
    assert reduce(OLLAMA, [last(), record(content="a")]).choices[0].parts == ()


def test_a_failure_is_a_line_with_an_error() -> None:
    (failure,) = OLLAMA.failures
    assert OLLAMA.error(failure) == "the model runner stopped"
    assert breaches(OLLAMA, [record(content="a"), failure]) == []
    assert reduce(OLLAMA, [record(content="a"), last(eval_count=1)]).usage == Usage(None, 1)
    assert reduce(OLLAMA, [record(content="a"), failure, last(eval_count=1)]).usage is None
