"""The judge: bytes alone decide, and every prefix is judged as if it were all there is."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from streamfuzz_strategies.draw import encode, streams
from streamfuzz_strategies.judge import (
    EMPTY_PAYLOAD,
    ERROR,
    GENERIC_RULES,
    NOT_JSON,
    RESET,
    Judgement,
    Reading,
    judge,
    whole_value,
)
from streamfuzz_strategies.mutations import apply, mutations
from streamfuzz_strategies.providers import NAMES, get
from streamfuzz_strategies.reply import Choice, Reply, Text, ToolCall, view
from streamfuzz_strategies.stream import Event, Frame, Raw, payloads
from streamfuzz_strategies.style import PLAIN
from streamfuzz_strategies.styles import SINGLE_STYLES

quick = settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
every_provider = pytest.mark.parametrize("name", NAMES)
ends = st.sampled_from(("eof", "reset"))

PIECES = (
    b"data: ",
    b"data:",
    b"event: error\n",
    b"id: 7\n",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"{",
    b"}",
    b'"',
    b"[DONE]",
)
PIECES += (b'{"type":"message_stop"}', b'{"choices":[]}', b'{"done":true}', b'{"error":{"message":"m"}}', b"1", b":")
PIECES += (b"\xef\xbb\xbf", b"\xff", b"\xf0\x9f\x98", "é".encode(), b"\x00", b" ")
junk = st.one_of(st.binary(max_size=40), st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join))


@st.composite
def damaged(draw: st.DrawFn, name: str) -> bytes:
    """The bytes of a stream after one lawful or unlawful change."""
    stream = draw(streams(name, styled=draw(st.booleans()), max_parts=2))
    return apply(get(name), stream, (draw(mutations(stream)),))


def sse(*texts: str) -> bytes:
    return "".join(f"data: {text}\n\n" for text in texts).encode()


CHUNK = '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]}'
HELLO = CHUNK % '{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}'
STOP = CHUNK % '{"index":0,"delta":{},"finish_reason":"stop"}'
CHAT = get("openai-chat")


def texts_of(replies: tuple[Reply, ...]) -> list[str]:
    return [view(reply)["choices"][0]["text"] for reply in replies]


def plain(replies: tuple[Reply, ...]) -> list[Any]:
    """The replies as views with decoded arguments: where they are objects on the wire their spelling is free."""
    views = [view(reply) for reply in replies]
    for choice in (choice for made in views for choice in made["choices"]):
        for part in (*choice["tool_calls"], *choice["parts"]):
            if part.get("arguments"):
                try:
                    part["arguments"] = json.loads(part["arguments"])
                except ValueError:
                    continue
    return views


def levels(judgement: Judgement) -> dict[str, str]:
    return {breach.rule.id: breach.level for breach in judgement.breaches}


# --- prefixes


@every_provider
@quick
@given(st.data())
def test_every_prefix_of_a_damaged_stream_is_judged_as_if_it_were_all(name: str, data: st.DataObject) -> None:
    content = data.draw(damaged(name))
    reading = Reading(get(name), content)
    somewhere = data.draw(st.lists(st.integers(0, len(content)), min_size=8, max_size=8))
    for length in {*somewhere, len(content), *reading.ends[-3:]}:
        assert reading.upto(length) == judge(get(name), content[:length]), content[:length]


@every_provider
@settings(deadline=None, max_examples=60)
@given(content=junk, end=ends)
@example(b"id: 7\ndata: a\n\ndata: b\n", "eof")
@example(b"data: a\r\n\r\ndata: b\r\n\r\n", "eof")
@example(b"data: a\n\n\xef\xbb\xbfdata: b\n\n", "eof")
@example(b"\xef\xbb\xbfdata: a\n\ndata: b\n\n", "eof")
@example(b'{"a":1}\xff\n', "eof")
@example('{"a":"é"}\n'.encode(), "eof")
@example(b'{"a":1}\n\xef\xbb\xbf1\n', "reset")
def test_every_prefix_of_any_bytes_is_judged_as_if_it_were_all(name: str, content: bytes, end: Any) -> None:
    reading = Reading(get(name), content)
    for length in range(len(content) + 1):
        assert reading.upto(length, end) == judge(get(name), content[:length], end), content[:length]


@every_provider
@quick
@given(st.data())
def test_a_reading_may_be_asked_in_any_order(name: str, data: st.DataObject) -> None:
    content = data.draw(damaged(name))
    offsets = data.draw(st.lists(st.integers(0, len(content)), max_size=8))
    one = Reading(get(name), content)
    backwards = [one.upto(offset) for offset in sorted(offsets, reverse=True)]
    other = Reading(get(name), content)
    assert [other.upto(offset) for offset in sorted(offsets)] == backwards[::-1]


@every_provider
@quick
@given(st.data())
def test_more_bytes_never_decide_fewer_frames(name: str, data: st.DataObject) -> None:
    content = data.draw(damaged(name))
    reading = Reading(get(name), content)
    counts = [reading.count(offset) for offset in range(len(content) + 1)]
    assert counts == sorted(counts)
    assert counts[-1] == len(reading.frames)
    assert [counts[stop] - counts[stop - 1] for stop in reading.ends] == [1] * len(reading.ends)


# --- any bytes


@every_provider
@settings(deadline=None, max_examples=80)
@given(content=junk, end=ends)
def test_the_judge_is_total_and_its_judgement_is_sound(name: str, content: bytes, end: Any) -> None:
    judgement = judge(get(name), content, end)
    assert judgement.complete == bool(judgement.accepted)
    assert (judgement.level == "must") == (not judgement.accepted)
    assert (judgement.level == "none") == (bool(judgement.accepted) and not judgement.may_refuse)
    assert len(judgement.events) == len(judgement.frames)
    assert judgement.truths
    if judgement.error is not None:
        assert judgement.accepted == ()
        assert ERROR in [breach.rule for breach in judgement.breaches]
    if judgement.breaches:
        rank = ("must", "may", "none").index
        assert judgement.worst is not None
        assert rank(judgement.worst.level) == min(rank(breach.level) for breach in judgement.breaches)
    else:
        assert judgement.worst is None


@every_provider
@settings(deadline=None, max_examples=40)
@given(content=junk)
def test_a_break_of_the_connection_never_makes_a_stream_better(name: str, content: bytes) -> None:
    clean, broken = judge(get(name), content, "eof"), judge(get(name), content, "reset")
    assert set(broken.accepted) <= set(clean.accepted)
    assert broken.may_refuse
    assert broken.level != "none"
    assert broken.truths == clean.truths


# --- lawful streams


@every_provider
@quick
@given(st.data())
def test_a_drawn_stream_is_worth_exactly_its_reply(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name, styled=True))
    judgement = judge(get(name), encode(stream))
    assert stream.reply is not None
    assert judgement.error is None
    assert plain((stream.reply,)) == plain(judgement.accepted[:1]) == plain(judgement.truths)
    if not any(choice.finish in get(name).cut_finishes for choice in stream.reply.choices):
        assert len(judgement.accepted) == 1
        assert judgement.level == "none", levels(judgement)


@every_provider
@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_single_style_changes_the_reply(name: str, data: st.DataObject) -> None:
    provider = get(name)
    stream = data.draw(streams(name))
    unstyled = judge(provider, encode(stream))
    for _, style in SINGLE_STYLES[provider.framing.name]:
        styled = judge(provider, encode(replace(stream, style=style)))
        assert plain(styled.accepted) == plain(unstyled.accepted)
        assert styled.level == unstyled.level


# --- frames and events that never were bytes


@every_provider
@quick
@given(st.data())
def test_frames_are_worth_what_their_bytes_are(name: str, data: st.DataObject) -> None:
    content = encode(data.draw(streams(name)))
    by_bytes = judge(get(name), content)
    by_frames = Reading.of_frames(get(name), by_bytes.frames).judgement
    assert by_frames.accepted == by_bytes.accepted
    assert by_frames.breaches == by_bytes.breaches


@pytest.mark.parametrize("name", ["anthropic", "ollama", "openai-chat", "openai-responses"])
@quick
@given(st.data())
def test_events_count_as_offsets_of_their_own(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name))
    reading = Reading.of_events(get(name), stream.events)
    assert stream.reply in reading.judgement.accepted
    for count in range(len(stream.events) + 1):
        part = Reading.of_events(get(name), stream.events[:count])
        assert reading.count(count) == count
        assert reading.upto(count).truths == part.judgement.truths
        assert reading.upto(count).accepted == part.judgement.accepted


@pytest.mark.parametrize("name", ["anthropic", "ollama", "openai-chat", "openai-responses"])
@quick
@given(st.data())
def test_calls_are_released_one_after_the_other_and_all_by_the_end(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name))
    assert stream.reply is not None
    reading = Reading.of_events(get(name), stream.events)
    released = [reading.released(count) for count in range(len(stream.events) + 1)]
    assert released[0] == ()
    assert all(set(before) <= set(after) for before, after in pairwise(released))
    assert set(released[-1]) <= set(stream.reply.tool_calls)
    if not any(choice.finish in get(name).cut_finishes for choice in stream.reply.choices):
        assert set(released[-1]) == set(stream.reply.tool_calls)


# --- the end of the stream


def test_an_event_stream_that_ends_inside_its_last_frame_may_be_read_either_way() -> None:
    judgement = judge(CHAT, sse(HELLO, STOP) + b"data: [DONE]\n")
    assert judgement.pending == Frame("[DONE]")
    assert judgement.level == "may"  # discarded, the sentinel is missing; delivered, all is well
    assert texts_of(judgement.accepted) == ["hi"]


def test_a_pending_frame_that_completes_the_message_is_accepted_beside_the_reading_that_discards_it() -> None:
    more = CHUNK % '{"index":0,"delta":{"content":"!"},"finish_reason":null}'
    judgement = judge(CHAT, sse(HELLO, more, STOP).removesuffix(b"\n"))
    assert judgement.pending == Frame(STOP)
    assert judgement.level == "may"
    assert texts_of(judgement.accepted) == ["hi!"]
    assert [reply.choices[0].finish for reply in judgement.truths] == [None, "stop"]


def test_a_pending_frame_that_completes_nothing_is_damage() -> None:
    judgement = judge(CHAT, sse(HELLO).removesuffix(b"\n"))
    assert judgement.pending == Frame(HELLO)
    assert judgement.level == "must"
    assert judgement.truths[0] == Reply()
    assert texts_of(judgement.truths[1:]) == ["hi"]


def test_the_last_line_of_ndjson_needs_no_line_end() -> None:
    judgement = judge(get("ndjson"), b'{"a":1}\n{"b":2}')
    assert [event.data for event in judgement.events] == [{"a": 1}, {"b": 2}]
    assert judgement.pending is None
    assert judgement.level == "none"


def test_half_a_last_line_of_ndjson_is_damage() -> None:
    judgement = judge(get("ndjson"), b'{"a":1}\n{"b":')
    assert levels(judgement) == {NOT_JSON.id: "must"}
    assert judgement.level == "must"


def test_a_json_text_is_read_at_its_end() -> None:
    assert whole_value(judge(get("json"), b' {"a":[1]} ')) == {"a": [1]}
    for content in (b"", b'{"a":', b"1 2", b"nul", b"NaN"):
        with pytest.raises(ValueError, match="not one JSON value"):
            whole_value(judge(get("json"), content))


def test_a_byte_order_mark_that_may_be_tolerated_costs_nothing() -> None:
    lines = b'{"model":"m","message":{"content":"hi"},"done":true,"done_reason":"stop"}\n'
    judgement = judge(get("ollama"), b"\xef\xbb\xbf" + lines)
    assert judgement.level == "may"
    assert judgement.accepted == judge(get("ollama"), lines).accepted
    assert whole_value(judge(get("json"), b"\xef\xbb\xbf[1]")) == [1]


# --- rules that hold for every provider


def test_a_finished_chat_without_its_sentinel_may_be_refused() -> None:
    judgement = judge(CHAT, sse(HELLO, STOP))
    assert judgement.level == "may"
    assert texts_of(judgement.accepted) == ["hi"]


def test_a_chat_without_a_finish_must_be_refused() -> None:
    judgement = judge(CHAT, sse(HELLO, "[DONE]"))
    assert judgement.level == "must"
    assert texts_of(judgement.truths) == ["hi"]


def test_a_repeated_delta_is_what_arrived() -> None:
    judgement = judge(CHAT, sse(HELLO, HELLO, STOP, "[DONE]"))
    assert judgement.level == "none"
    assert texts_of(judgement.accepted) == ["hihi"]


def test_a_payload_that_is_no_json_is_damage_and_an_empty_one_is_odd() -> None:
    bad = judge(CHAT, sse(HELLO, "{", STOP, "[DONE]"))
    assert (bad.level, levels(bad)) == ("must", {NOT_JSON.id: "must"})
    odd = judge(CHAT, sse(HELLO, "", STOP, "[DONE]"))
    assert (odd.level, levels(odd)) == ("may", {EMPTY_PAYLOAD.id: "may"})
    assert texts_of(odd.accepted) == ["hi"]


def test_what_follows_the_end_is_not_read() -> None:
    judgement = judge(CHAT, sse(HELLO, STOP, "[DONE]") + b"data: {\n\n")
    assert NOT_JSON.id not in levels(judgement)
    assert texts_of(judgement.accepted) == ["hi"]


def test_a_reported_error_ends_the_message_and_carries_its_cause() -> None:
    judgement = judge(CHAT, sse(HELLO, '{"error":{"message":"overloaded"}}', STOP, "[DONE]"))
    assert judgement.error == "overloaded"
    assert judgement.level == "must"
    assert texts_of(judgement.truths) == ["hi"]


def test_a_broken_connection_is_damage_until_the_end_is_proved() -> None:
    early = judge(CHAT, sse(HELLO), "reset")
    assert early.level == "must"
    assert RESET.id in levels(early)
    late = judge(CHAT, sse(HELLO, STOP, "[DONE]"), "reset")
    assert late.level == "may"
    assert RESET.id not in levels(late)


def test_a_call_that_the_length_limit_cut_off_may_be_left_out() -> None:
    call = '{"index":0,"id":"t","type":"function","function":{"name":"f","arguments":"{\\"a"}}'
    cut = CHUNK % f'{{"index":0,"delta":{{"tool_calls":[{call}]}},"finish_reason":"length"}}'
    judgement = judge(CHAT, sse(cut, "[DONE]"))
    assert judgement.may_refuse
    assert [reply.tool_calls for reply in judgement.accepted] == [(ToolCall("t", "f", '{"a'),), ()]


def test_the_generic_rules_are_told_apart_by_their_ids() -> None:
    assert len({rule.id for rule in GENERIC_RULES}) == len(GENERIC_RULES)
    assert {rule.id for rule in GENERIC_RULES}.isdisjoint({r.id for name in NAMES for r in get(name).rules})


def test_the_reply_of_a_prefix_grows_to_the_reply() -> None:
    reply = Reply((Choice((Text("abc"),), "stop"),), "id", "m")
    content = CHAT.framing.encode(payloads(CHAT.plain_events(reply), PLAIN), PLAIN)
    reading = Reading(CHAT, content)
    replies = [reading.reply(count) for count in range(len(reading.events) + 1)]
    assert replies[0] == Reply()
    assert texts_of((replies[-1],)) == ["abc"]
    assert Event(Raw("[DONE]")) in reading.events
