"""Messages streams: what is drawn says what it should, and the vendor's own SDK reads it the same way."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any, get_args

import jsonschema
import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import (
    ContentBlock,
    Message,
    RawContentBlockDelta,
    RawMessageStreamEvent,
    StopReason,
    TextCitation,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from streamfuzz_strategies.providers import Drawing, get
from streamfuzz_strategies.providers.anthropic import read_body
from streamfuzz_strategies.providers.anthropic.protocol import TAKES, compact, json_object
from streamfuzz_strategies.providers.base import reduce
from streamfuzz_strategies.reply import Choice, Opaque, Reasoning, Refusal, Reply, Text, ToolCall, Usage
from streamfuzz_strategies.stream import Event, Raw, Stream

from .walking import breaches, streams

ANTHROPIC = get("anthropic")
EVENT = TypeAdapter(RawMessageStreamEvent)

drawn = given(streams("anthropic"))
some = settings(max_examples=100, deadline=None)


def say(name: str, **members: Any) -> Event:
    return Event({"type": name, **members}, name)


def start(**members: Any) -> Event:
    message = {"id": "msg_1", "model": "m", "content": [], "stop_reason": None, "usage": {"input_tokens": 3}}
    return say("message_start", message=message | members)


def opened(index: int, **block: Any) -> Event:
    return say("content_block_start", index=index, content_block=block)


def delta(index: int, **members: Any) -> Event:
    return say("content_block_delta", index=index, delta=members)


def words(index: int, text: str) -> Event:
    return delta(index, type="text_delta", text=text)


def piece(index: int, text: str) -> Event:
    return delta(index, type="input_json_delta", partial_json=text)


def stopped(index: int) -> Event:
    return say("content_block_stop", index=index)


def told(reason: str | None = "end_turn", **usage: int) -> Event:
    return say("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 5} | usage)


STOP = say("message_stop")
TOOL = {"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}


def parts(*events: Event) -> tuple[Any, ...]:
    return reduce(ANTHROPIC, [start(), *events]).choices[0].parts


def compacted(reply: Reply) -> Reply:
    """The reply with its calls' arguments as they read once they have been decoded."""
    (choice,) = reply.choices
    spelled = tuple(
        replace(p, arguments=compact(json_object(p.arguments))) if isinstance(p, ToolCall) else p for p in choice.parts
    )
    return replace(reply, choices=(replace(choice, parts=spelled),))


def torn(reply: Reply) -> bool:
    return any(json_object(call.arguments) is None for call in reply.tool_calls)


FOREIGN_PARTS = (
    (Text("a"),),
    (Text(""), Opaque("citation", '{"type":"x"}')),
    (Reasoning("b"),),
    (Reasoning("", "s"),),
    (ToolCall(None, "f", '{"a'),),
    (ToolCall("1", "f", "{}"),),
    (Opaque("future", '{"type":"future"}'),),
    (Opaque("server_tool_use", '{"input":"{\\"a","type":"server_tool_use"}'),),
    (Opaque("server_tool_use", '{"input":{"a":1},"type":"server_tool_use"}'),),
)
"""Parts that no drawn reply has, but that a capture may."""


class TestLaws:
    @drawn
    @some
    def test_reading_a_stream_gives_the_reply_that_was_streamed(self, stream: Stream) -> None:
        assert reduce(ANTHROPIC, stream.events) == stream.reply

    @drawn
    @some
    def test_a_lawful_stream_breaks_no_rule(self, stream: Stream) -> None:
        assert breaches(ANTHROPIC, stream.events) == []

    @drawn
    @some
    def test_the_plain_way_to_stream_a_reply_obeys_the_same_laws(self, stream: Stream) -> None:
        events = ANTHROPIC.plain_events(stream.reply)
        assert reduce(ANTHROPIC, events) == stream.reply
        assert breaches(ANTHROPIC, events) == []
        assert events == ANTHROPIC.plain_events(stream.reply)

    @given(
        st.lists(st.sampled_from(FOREIGN_PARTS), max_size=3),
        st.sampled_from((None, "end_turn", "another")),
        st.sampled_from((None, Usage(1, 2), Usage(None, 2), Usage(1, None))),
        st.sampled_from((None, "name")),
        st.data(),
    )
    @some
    def test_replies_that_others_made_can_be_streamed_too(
        self,
        groups: list[tuple[Any, ...]],
        finish: str | None,
        usage: Usage | None,
        name: str | None,
        data: st.DataObject,
    ) -> None:
        reply = Reply((Choice(sum(groups, ()), finish),), name, name, usage)
        assert reduce(ANTHROPIC, ANTHROPIC.plain_events(reply)) == reply
        assert reduce(ANTHROPIC, ANTHROPIC.draw_events(data.draw, reply, Drawing())) == reply

    def test_a_refusal_in_another_protocols_words_becomes_text(self) -> None:
        reply = Reply((Choice((Refusal("no"),), "refusal"),))
        assert reduce(ANTHROPIC, ANTHROPIC.plain_events(reply)).choices[0].parts == (Text("no"),)
        assert ANTHROPIC.body(reply)["content"] == [{"type": "text", "text": "no"}]

    @given(st.data())
    @settings(max_examples=1)
    def test_an_empty_reply_is_an_empty_stream(self, data: st.DataObject) -> None:
        assert ANTHROPIC.plain_events(Reply()) == ANTHROPIC.draw_events(data.draw, Reply(), Drawing()) == ()
        assert reduce(ANTHROPIC, ()) == Reply()

    @given(streams("anthropic", Drawing(alphabet="xy", max_parts=2, tools={"t": {"const": {"k": [1]}}})))
    @some
    def test_the_user_decides_alphabet_tools_and_number_of_parts(self, stream: Stream) -> None:
        made = stream.reply.choices[0].parts
        assert len(made) <= 2
        assert all(set(p.text) <= {"x", "y"} for p in made if isinstance(p, Text | Reasoning))
        assert {call.name for call in stream.reply.tool_calls} <= {"t"}

    @drawn
    @some
    def test_calls_are_released_when_their_block_stops_and_torn_ones_never(self, stream: Stream) -> None:
        reducer, whole = ANTHROPIC.reducer(), []
        for event in stream.events:
            before = len(reducer.released())
            reducer.apply(event)
            whole = list(reducer.released())
            if len(whole) > before:
                assert event.name in ("content_block_stop", "message_start")
        assert whole == [call for call in stream.reply.tool_calls if json_object(call.arguments) is not None]

    @drawn
    @some
    def test_the_body_reads_back_as_the_reply(self, stream: Stream) -> None:
        body = ANTHROPIC.body(stream.reply)
        if torn(stream.reply):
            assert body is None
        else:
            assert read_body(json.loads(json.dumps(body))) == compacted(stream.reply)


class TestSdk:
    @drawn
    @some
    def test_it_accepts_every_event(self, stream: Stream) -> None:
        for event in stream.events:
            assert event.name == event.data["type"]
            if event.name != "ping":
                EVENT.validate_python(event.data, strict=True)

    @drawn
    @some
    def test_it_accepts_every_body(self, stream: Stream) -> None:
        body = ANTHROPIC.body(stream.reply)
        if body is not None:
            Message.model_validate(body, strict=True)

    @drawn
    @some
    def test_its_accumulator_reads_the_same_message(self, stream: Stream) -> None:
        # It keeps arguments decoded, and completes those of a torn call by guessing, so of that one it says
        # something else.
        message = accumulated(stream)
        if not torn(stream.reply):
            assert read_body(message.to_dict()) == compacted(stream.reply)
        else:
            *rest, call = stream.reply.choices[0].parts
            *read, guessed = read_body(message.to_dict()).choices[0].parts
            assert read == list(compacted(Reply((Choice(tuple(rest)),))).choices[0].parts)
            assert (guessed.id, guessed.name) == (call.id, call.name)
            assert guessed.arguments != call.arguments

    def test_every_member_of_its_unions_is_drawn(self) -> None:
        seen = reached()
        assert seen["event"] == types_in(RawMessageStreamEvent) | {"ping"}
        assert seen["block"] == types_in(ContentBlock)
        assert seen["delta"] == types_in(RawContentBlockDelta)
        assert seen["citation"] == types_in(TextCitation)
        assert seen["reason"] == set(get_args(StopReason))

    def test_every_block_that_it_knows_has_its_deltas_listed(self) -> None:
        assert types_in(ContentBlock) <= set(TAKES)


def accumulated(stream: Stream) -> Any:
    snapshot, buffers = None, {}
    for event in stream.events:
        if event.name != "ping":
            snapshot = accumulate_event(
                event=EVENT.validate_python(event.data), current_snapshot=snapshot, json_bufs=buffers
            )
    return snapshot


def types_in(union: Any) -> set[str]:
    members = get_args(get_args(union)[0])
    return {get_args(member.model_fields["type"].annotation)[0] for member in members}


@cache
def reached() -> dict[str, Any]:
    """Everything that a fixed run of the strategy comes by."""
    seen: dict[str, Any] = {k: set() for k in ("event", "block", "delta", "citation", "reason", "shape")}
    seen["kinds"] = {}

    @given(streams("anthropic"))
    @settings(max_examples=1000, deadline=None, derandomize=True, database=None)
    def run(stream: Stream) -> None:
        seen["reason"].add(stream.reply.choices[0].finish)
        seen["shape"] |= shapes(stream)
        for event in stream.events:
            seen["event"].add(event.data["type"])
            seen["kinds"].setdefault(ANTHROPIC.kind(event), event.data)
            if "content_block" in event.data:
                seen["block"].add(event.data["content_block"]["type"])
            elif "index" in event.data and "delta" in event.data:
                seen["delta"].add(event.data["delta"]["type"])
                if event.data["delta"]["type"] == "citations_delta":
                    seen["citation"].add(event.data["delta"]["citation"]["type"])

    run()
    return seen


def shapes(stream: Stream) -> set[str]:
    """Which of the placements worth having a stream shows."""
    events, (choice,) = stream.events, stream.reply.choices
    names = [event.name for event in events]
    deltas = [json.dumps(event.data) for event in events if event.name == "content_block_delta"]
    found = {
        "no blocks at all": not choice.parts,
        "refusal without blocks": choice.finish == "refusal" and not choice.parts,
        "prefilled": bool(events[names.index("message_start")].data["message"]["content"]),
        "two message_deltas": names.count("message_delta") == 2,
        "ping before message_start": names[0] == "ping",
        "ping before message_stop": names[-2] == "ping",
        "ping inside a block": any(
            names[at - 1 : at + 2] == ["content_block_delta", "ping", "content_block_delta"] for at in range(len(names))
        ),
        "equal neighbouring deltas": any(a == b for a, b in pairwise(deltas)),
        "a token in each delta": any('"<a0>"' in text for text in deltas),
        "empty delta": any('""' in text for text in deltas),
        "torn call": torn(stream.reply),
        "empty text block": Text("") in choice.parts,
        "omitted thinking": any(isinstance(p, Reasoning) and not p.text for p in choice.parts),
        "two calls": len(stream.reply.tool_calls) > 1,
        "call without deltas": any(
            a.data.get("content_block", {}).get("type") == "tool_use" and b.name == "content_block_stop"
            for a, b in pairwise(events)
        ),
        "stop sequence": any('"stop_sequence": "\\n' in json.dumps(event.data) for event in events),
        "input recounted": any("input_tokens" in event.data.get("usage", ()) for event in events),
    }
    return {name for name, true in found.items() if true} | {f"not {n}" for n, true in found.items() if not true}


def test_every_placement_is_drawn_and_none_always() -> None:
    seen = reached()["shape"]
    for name in sorted(name.removeprefix("not ") for name in seen):
        assert {name, f"not {name}"} <= seen


class TestSchemas:
    @drawn
    @some
    def test_every_drawn_event_fits_the_schema_of_its_kind(self, stream: Stream) -> None:
        for event in stream.events:
            VALIDATORS[ANTHROPIC.kind(event)].validate(event.data)

    @pytest.mark.parametrize("kind", sorted(ANTHROPIC.schemas))
    def test_each_is_itself_a_schema(self, kind: str) -> None:
        jsonschema.Draft202012Validator.check_schema(ANTHROPIC.schemas[kind])

    @pytest.mark.parametrize("kind", sorted(ANTHROPIC.schemas))
    def test_a_mutilated_event_does_not_fit(self, kind: str) -> None:
        data = EXAMPLES.get(kind) or reached()["kinds"][kind]
        assert ANTHROPIC.kind(Event(data, data["type"])) == kind
        VALIDATORS[kind].validate(data)
        for path in required(ANTHROPIC.schemas[kind]):
            assert not VALIDATORS[kind].is_valid(mutilated(data, path)), path
            assert not VALIDATORS[kind].is_valid(mutilated(data, path, 1.5)), path

    def test_kinds_of_what_nobody_knows(self) -> None:
        assert ANTHROPIC.kind(say("future")) == "unknown"
        assert ANTHROPIC.kind(Event([], "ping")) == "unknown"
        assert ANTHROPIC.kind(Event(Raw("x"))) == "unknown"
        assert ANTHROPIC.kind(opened(0, type="future")) == "content_block_start:unknown"
        assert ANTHROPIC.kind(say("content_block_delta", delta=[])) == "content_block_delta:unknown"


VALIDATORS = {kind: jsonschema.Draft202012Validator(schema) for kind, schema in ANTHROPIC.schemas.items()}

EXAMPLES = {
    "error": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    "content_block_delta:compaction_delta": delta(0, type="compaction_delta", content="x").data,
    "content_block_start:compaction": opened(0, type="compaction", content=None).data,
    "content_block_start:fallback": opened(0, type="fallback").data,
    "content_block_start:mcp_tool_use": opened(0, **TOOL | {"type": "mcp_tool_use", "server_name": "s"}).data,
    "content_block_start:mcp_tool_result": opened(0, type="mcp_tool_result", tool_use_id="i", content="x").data,
    "content_block_start:advisor_tool_result": opened(0, type="advisor_tool_result", tool_use_id="i", content={}).data,
}
"""Events that are not drawn: errors, and what needs a beta header."""


def required(schema: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name in schema.get("required", ()):
        found += [(*path, name), *required(schema["properties"][name], (*path, name))]
    return found


def mutilated(data: Any, path: tuple[str, ...], *instead: Any) -> Any:
    copy = json.loads(json.dumps(data))
    holder = copy
    for name in path[:-1]:
        holder = holder[name]
    del holder[path[-1]]
    if instead:
        holder[path[-1]] = instead[0]
    return copy


class TestReduction:
    def test_counts_are_totals_and_replace_what_was_counted_before(self) -> None:
        events = [start(usage={"input_tokens": 3, "output_tokens": 1}), told(output_tokens=2), told(output_tokens=25)]
        assert reduce(ANTHROPIC, events).usage == Usage(3, 25)
        assert reduce(ANTHROPIC, [*events, told(input_tokens=9)]).usage == Usage(9, 5)

    @pytest.mark.parametrize("pieces", [(), ("",), ("", "{}"), ("{", "}")])
    def test_a_call_without_arguments_has_empty_ones(self, pieces: tuple[str, ...]) -> None:
        events = opened(0, **TOOL), *(piece(0, text) for text in pieces), stopped(0)
        assert parts(*events) == (ToolCall("toolu_1", "now", "{}"),)

    def test_input_that_stood_at_the_start_counts_when_nothing_is_streamed(self) -> None:
        given = opened(0, **TOOL | {"input": {"b": 1, "a": "é"}})
        assert parts(given, stopped(0))[0].arguments == '{"b":1,"a":"é"}'

    def test_arguments_keep_the_spelling_that_was_streamed(self) -> None:
        assert parts(opened(0, **TOOL), piece(0, '{ "a"'), piece(0, ":1.0}"))[0].arguments == '{ "a":1.0}'

    def test_blocks_stay_in_order_and_unmerged(self) -> None:
        blocks = [opened(i, type="text", text="") for i in range(3)]
        assert parts(blocks[0], words(0, "a"), stopped(0), blocks[1], stopped(1), blocks[2], words(2, "b")) == (
            Text("a"),
            Text(""),
            Text("b"),
        )

    def test_citations_follow_their_text_wherever_they_stood(self) -> None:
        cited = delta(0, type="citations_delta", citation={"type": "x", "cited_text": "y"})
        block = opened(0, type="text", text="", citations=[])
        expected = (Text("ab"), Opaque("citation", '{"cited_text":"y","type":"x"}'))
        assert parts(block, cited, words(0, "a"), words(0, "b")) == expected
        assert parts(block, words(0, "a"), cited, words(0, "b")) == expected

    def test_a_signature_replaces_and_thinking_appends(self) -> None:
        block = opened(0, type="thinking", thinking="", signature="")
        said = [delta(0, type="thinking_delta", thinking=text) for text in ("ha", "ha")]
        signed = [delta(0, type="signature_delta", signature=text) for text in ("AB", "CD")]
        assert parts(block, *said) == (Reasoning("haha", None),)
        assert parts(block, *said, *signed) == (Reasoning("haha", "CD"),)

    def test_a_server_tool_is_kept_whole_with_the_input_that_was_streamed(self) -> None:
        block = opened(0, **TOOL | {"type": "server_tool_use"})
        (part,) = parts(block, piece(0, '{"a": '), piece(0, "1}"))
        assert part.kind == "server_tool_use"
        assert json.loads(part.data) == {**block.data["content_block"], "input": {"a": 1}}

    def test_compaction_is_replaced_by_its_delta(self) -> None:
        changed = delta(0, type="compaction_delta", content="new", encrypted_content="e")
        (part,) = parts(opened(0, type="compaction", content=None), changed)
        assert json.loads(part.data) == {"type": "compaction", "content": "new", "encrypted_content": "e"}

    def test_a_block_of_the_future_is_kept_word_for_word(self) -> None:
        block = {"type": "future", "b": [1, {"d": None, "c": "é"}], "a": 1}
        assert parts(opened(0, **block), words(0, "?"), stopped(0)) == (
            Opaque("future", '{"a":1,"b":[1,{"c":"é","d":null}],"type":"future"}'),
        )

    def test_what_nobody_knows_is_ignored(self) -> None:
        known = opened(0, type="text", text=""), words(0, "a"), stopped(0)
        unknown = say("future", index=0), delta(0, type="future_delta", text="x"), say("ping")
        assert parts(known[0], *unknown, *known[1:], *unknown) == parts(*known)

    @pytest.mark.parametrize("nothing", [{}, {"text": None}, {"text": ""}])
    def test_a_delta_that_adds_nothing_is_lawful(self, nothing: dict[str, Any]) -> None:
        events = [start(), opened(0, type="text", text=""), delta(0, type="text_delta", **nothing), stopped(0)]
        assert breaches(ANTHROPIC, [*events, told(), STOP]) == []
        assert reduce(ANTHROPIC, events).choices[0].parts == (Text(""),)


class TestErrors:
    @pytest.mark.parametrize(
        ("event", "message"),
        [
            (say("error", error={"type": "overloaded_error", "message": "Overloaded"}), "Overloaded"),
            (say("error", error={"type": "api_error"}), "api_error"),
            (say("error", error={"message": 7}), ""),
            (say("error", error="broken"), "broken"),
            (say("error"), ""),
            (Event({"type": "error", "error": {"message": "m"}}), "m"),
            (Event({"error": {"message": "m"}}, "error"), "m"),
            (Event("down", "error"), "down"),
            (Event(Raw("<html>"), "error"), "<html>"),
            (Event({"type": "future", "error": {"message": "m"}}, "error"), "m"),
            (Event({"type": "ping"}, "error"), None),
            (say("ping"), None),
            (Event({"error": {"message": "m"}}), None),
        ],
    )
    def test_the_message_is_found(self, event: Event, message: str | None) -> None:
        assert ANTHROPIC.error(event) == message

    @drawn
    @some
    def test_after_one_nothing_counts(self, stream: Stream) -> None:
        error = say("error", error={"type": "api_error", "message": "m"})
        for at in range(len(stream.events)):
            before, after = stream.events[:at], stream.events[at:]
            assert breaches(ANTHROPIC, [*before, error, *after]) == []
            assert reduce(ANTHROPIC, [*before, error, *after]) == reduce(ANTHROPIC, before)
