"""What is beside the answer in Messages streams: what may be ignored, put in, or taken out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import jsonschema
import pytest
from anthropic.types import ErrorResponse, RawMessageStreamEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from streamfuzz_strategies.providers import get
from streamfuzz_strategies.providers.anthropic.protocol import canonical, compact, json_object
from streamfuzz_strategies.providers.anthropic.reducer import CITATION, grouped
from streamfuzz_strategies.providers.base import reduce
from streamfuzz_strategies.reply import Opaque, Part, Reasoning, Reply, Text, ToolCall, Usage
from streamfuzz_strategies.stream import Event, Raw, Stream

from .test_anthropic import STOP, TOOL, delta, opened, piece, say, start, stopped, told, words
from .test_anthropic_rules import ANY_EVENT
from .walking import breaches, streams

ANTHROPIC = get("anthropic")
VALIDATORS = {kind: jsonschema.Draft202012Validator(schema) for kind, schema in ANTHROPIC.schemas.items()}
EVENT = TypeAdapter(RawMessageStreamEvent)

some = settings(max_examples=100, deadline=None)
drawn = given(streams("anthropic"))


def left(stream: Stream, feature: str) -> list[Event]:
    """The stream's events without a feature."""
    return [event for event in map(ANTHROPIC.features[feature], stream.events) if event is not None]


def in_parts(change: Callable[[Part], Part | None]) -> Callable[[Reply], Reply]:
    """Change every part of a reply (``None``: it goes)."""

    def changed(reply: Reply) -> Reply:
        (choice,) = reply.choices
        kept = (part for part in map(change, choice.parts) if part is not None)
        return replace(reply, choices=(replace(choice, parts=tuple(kept)),))

    return changed


def opaque_as_text(*kinds: str) -> Callable[[Part], Part | None]:
    return lambda part: Text("") if isinstance(part, Opaque) and part.kind.endswith(kinds) else part


def uncited(part: Part) -> Part | None:
    return None if isinstance(part, Opaque) and part.kind == CITATION else part


def unserved(part: Part) -> Part | None:
    if isinstance(part, Opaque) and part.kind == "server_tool_use":
        block = json_object(part.data)
        assert block is not None
        return ToolCall(block["id"], block["name"], compact(block["input"]))
    return opaque_as_text("_tool_result")(part)


def first_block(reply: Reply) -> Reply:
    (choice,) = reply.choices
    first = [(part, *(Opaque(CITATION, canonical(c)) for c in cited)) for part, cited in grouped(choice.parts)[:1]]
    return replace(reply, choices=(replace(choice, parts=sum(first, ())),))


CHANGED: dict[str, Callable[[Reply], Reply]] = {
    "citations": in_parts(uncited),
    "thinking": in_parts(lambda part: Text(part.text) if isinstance(part, Reasoning) else part),
    "redacted thinking": in_parts(opaque_as_text("redacted_thinking")),
    "server tools": in_parts(unserved),
    "more than one block": first_block,
}
"""What is left of the message without a feature that is part of it; every other feature is none of it."""


@drawn
@some
def test_without_a_feature_the_message_is_the_same_or_lacks_only_that(stream: Stream) -> None:
    assert stream.reply is not None
    for feature in ANTHROPIC.features:
        expected = CHANGED.get(feature, lambda reply: reply)(stream.reply)
        read = reduce(ANTHROPIC, left(stream, feature))
        if feature == "input tokens in message_delta":  # message_start may have counted fewer
            assert read.usage is not None
            assert expected.usage is not None
            assert read.usage.input in (expected.usage.input, (expected.usage.input or 0) - 1)
            expected = replace(expected, usage=Usage(read.usage.input, expected.usage.output))
        assert read == expected, feature


@drawn
@some
def test_a_stream_without_a_feature_is_lawful_and_without_it(stream: Stream) -> None:
    for feature, take in ANTHROPIC.features.items():
        events = left(stream, feature)
        assert breaches(ANTHROPIC, events) == []
        assert list(map(take, events)) == events
        for event in events:
            VALIDATORS[ANTHROPIC.kind(event)].validate(event.data)
            if event.name != "ping":
                EVENT.validate_python(event.data, strict=True)


@cache
def found() -> frozenset[str]:
    """The features that a fixed run of the strategy comes by."""
    seen: set[str] = set()

    @given(streams("anthropic"))
    @settings(max_examples=500, deadline=None, derandomize=True, database=None)
    def run(stream: Stream) -> None:
        seen.update(feature for feature in ANTHROPIC.features if left(stream, feature) != list(stream.events))

    run()
    return frozenset(seen)


def test_every_feature_is_drawn_or_is_noise() -> None:
    noise = {name for name, take in ANTHROPIC.features.items() if any(take(event) is None for event in ANTHROPIC.noise)}
    assert noise == {"a ping", "an event of an unknown type"}
    assert found() == set(ANTHROPIC.features) - {"an event of an unknown type"}


A_BLOCK = (opened(0, type="text", text=""), words(0, "a"), stopped(0))
EXAMPLES: list[tuple[str, list[Event], list[Event]]] = [
    ("a ping", [start(), say("ping"), STOP], [start(), STOP]),
    ("an event of an unknown type", [start(), say("future", index=0), STOP], [start(), STOP]),
    ("an empty delta", [words(0, ""), piece(0, ""), words(0, "a")], [words(0, "a")]),
    (
        "an empty delta",
        [delta(0, type="signature_delta", signature="")] * 2,
        [delta(0, type="signature_delta", signature="")] * 2,
    ),
    ("a message_delta without a stop reason", [told(None), told()], [told()]),
    ("input tokens in message_delta", [told(input_tokens=3)], [told()]),
    ("the caller of a tool", [opened(0, **TOOL, caller={"type": "direct"})], [opened(0, **TOOL)]),
    (
        "citations",
        [opened(0, type="text", text="", citations=[]), delta(0, type="citations_delta", citation={}), words(0, "a")],
        [opened(0, type="text", text=""), words(0, "a")],
    ),
    (
        "thinking",
        [
            opened(0, type="thinking", thinking="", signature=""),
            delta(0, type="thinking_delta", thinking="a"),
            delta(0, type="signature_delta", signature="s"),
            stopped(0),
        ],
        list(A_BLOCK),
    ),
    (
        "thinking",
        [start(content=[{"type": "thinking", "thinking": "t"}, TOOL])],
        [start(content=[{"type": "text", "text": "t"}, TOOL])],
    ),
    ("redacted thinking", [opened(0, type="redacted_thinking", data="x")], [opened(0, type="text", text="")]),
    (
        "server tools",
        [opened(0, **TOOL | {"type": "server_tool_use"}), piece(0, "{}"), opened(1, type="web_search_tool_result")],
        [opened(0, **TOOL), piece(0, "{}"), opened(1, type="text", text="")],
    ),
    ("more than one block", [*A_BLOCK, opened(1, **TOOL), piece(1, "{}"), stopped(1), told()], [*A_BLOCK, told()]),
    ("more than one block", [start(content=[TOOL, TOOL])], [start(content=[TOOL])]),
]
"""A feature, events that have it, and the same without it."""


@pytest.mark.parametrize(("feature", "events", "expected"), EXAMPLES)
def test_a_feature_is_taken_out(feature: str, events: list[Event], expected: list[Event]) -> None:
    assert left(Stream("anthropic", tuple(events)), feature) == expected


@given(st.lists(ANY_EVENT, max_size=6))
@settings(max_examples=200, deadline=None)
def test_features_can_be_taken_from_anything(events: list[Event]) -> None:
    for take in ANTHROPIC.features.values():
        for event in events:
            assert isinstance(take(event), Event | None)


@drawn
@some
def test_a_reader_may_leave_out_what_is_ignorable(stream: Stream) -> None:
    kept = [event for event in stream.events if ANTHROPIC.kind(event) not in ANTHROPIC.ignorable]
    assert reduce(ANTHROPIC, kept) == stream.reply
    assert breaches(ANTHROPIC, kept) == []
    assert {ANTHROPIC.kind(event) for event in ANTHROPIC.noise} <= ANTHROPIC.ignorable


@drawn
@some
def test_noise_may_stand_anywhere(stream: Stream) -> None:
    for at in range(len(stream.events) + 1):
        noisy = [*stream.events[:at], *ANTHROPIC.noise, *stream.events[at:]]
        assert breaches(ANTHROPIC, noisy) == [] or at == len(stream.events)
        assert reduce(ANTHROPIC, noisy) == stream.reply


def test_failures_are_errors_of_the_api() -> None:
    messages = []
    for failure in ANTHROPIC.failures:
        VALIDATORS["error"].validate(failure.data)
        assert ANTHROPIC.kind(failure) == failure.name == "error"
        assert ErrorResponse.model_validate({"request_id": None, **failure.data}, strict=True).type == "error"
        assert breaches(ANTHROPIC, [start(), failure]) == []
        messages.append(ANTHROPIC.error(failure))
    assert messages == ["Overloaded", "Internal server error"]


@pytest.mark.parametrize("data", ["down", Raw("<html>"), {"error": "broken"}, {"type": "error"}, []])
def test_an_error_is_never_ignorable(data: Any) -> None:
    assert ANTHROPIC.kind(Event(data, "error")) == "error"
