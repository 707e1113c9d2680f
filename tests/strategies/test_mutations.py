"""Mutations: every one of a menu can be carried out, lawful ones change nothing, and all are plain JSON values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from streamfuzz_strategies.draw import streams
from streamfuzz_strategies.judge import judge
from streamfuzz_strategies.mutations import (
    BYTE_EDITS,
    EVENT_EDITS,
    ODD_PAYLOADS,
    OTHER_BODIES,
    Mutation,
    apply,
    damage,
    edit,
    encode,
    lift,
    mutations,
    rewritings,
)
from streamfuzz_strategies.providers import NAMES, get
from streamfuzz_strategies.reply import Json, view
from streamfuzz_strategies.stream import Event, Raw, Stream
from streamfuzz_strategies.styles import SINGLE_STYLES

quick = settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
search = settings(deadline=None, database=None, max_examples=1000, phases=[Phase.generate])
every_provider = pytest.mark.parametrize("name", NAMES)

SSE = get("sse")
ABC = Stream("sse", (Event(Raw("a")), Event(Raw("b")), Event(Raw("c"))))


def texts_after(*edits: Mutation) -> list[str]:
    return [event.data.text for event in edit(SSE, ABC, edits).events if isinstance(event.data, Raw)]


def decoded(value: Json) -> Json:
    """A view with the arguments of its calls decoded: some protocols have them as objects, spelled freely."""
    if isinstance(value, dict):
        return {name: _loaded(member) if name == "arguments" else decoded(member) for name, member in value.items()}
    return [decoded(item) for item in value] if isinstance(value, list) else value


def _loaded(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        return text


# --- the menus


@every_provider
@quick
@given(st.data())
def test_everything_on_the_menus_can_be_carried_out(name: str, data: st.DataObject) -> None:
    provider = get(name)
    stream = data.draw(streams(name, max_parts=2, styled=data.draw(st.booleans())))
    menu = [*rewritings(provider, stream), *damage(provider, stream)]
    for mutation in menu[:: max(1, len(menu) // 40)]:
        made = apply(provider, stream, (mutation,))
        assert isinstance(made, bytes)
        assert made == apply(provider, stream, (mutation,))


@every_provider
@quick
@given(st.data())
def test_a_mutation_survives_json(name: str, data: st.DataObject) -> None:
    provider = get(name)
    stream = data.draw(streams(name, max_parts=2))
    for mutation in (*rewritings(provider, stream), *damage(provider, stream)):
        assert lift(json.loads(json.dumps([mutation.name, list(mutation.args)]))) == mutation


@every_provider
@quick
@given(st.data())
def test_rewritings_keep_the_reply(name: str, data: st.DataObject) -> None:
    provider = get(name)
    stream = data.draw(streams(name, max_parts=2, styled=data.draw(st.booleans())))
    before = judge(provider, encode(provider, stream))
    menu = list(rewritings(provider, stream))
    for mutation in menu[:: max(1, len(menu) // 40)]:
        after = judge(provider, apply(provider, stream, (mutation,)))
        wanted, got = map(list, (map(view, before.accepted), map(view, after.accepted)))
        assert decoded(got) == decoded(wanted), mutation
        assert (after.level, after.error) == (before.level, before.error), mutation


@pytest.mark.parametrize("name", ["ndjson", "json"])
def test_members_of_plain_values_are_not_added_to(name: str) -> None:
    stream = Stream(name, (Event({"a": 1}),))
    assert "add an unknown member" not in {mutation.name for mutation in rewritings(get(name), stream)}


@every_provider
@quick
@given(st.data())
def test_the_damage_touches_every_event(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name, max_parts=2))
    for edit_name in ("drop an event", "repeat an event", "cut a payload short"):
        touched = {m.args[0] for m in damage(get(name), stream) if m.name == edit_name}
        assert touched == set(range(len(stream.events)))


@every_provider
def test_both_menus_name_only_known_mutations_and_every_style(name: str) -> None:
    provider = get(name)
    stream = find(streams(name), lambda stream: bool(stream.events), settings=search)
    lawful, unlawful = list(rewritings(provider, stream)), list(damage(provider, stream))
    assert {m.name for m in (*lawful, *unlawful)} <= {*EVENT_EDITS, *BYTE_EDITS}
    styled = [m.args[0] for m in lawful if m.name == "write it in another style"]
    assert styled == [style for style, _ in SINGLE_STYLES[provider.framing.name]]
    assert {m.args[0] for m in unlawful if m.name == "send something else"} == set(OTHER_BODIES)


@every_provider
@quick
@given(st.data())
def test_a_drawn_mutation_can_be_carried_out(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name, max_parts=2))
    mutation = data.draw(mutations(stream))
    assert isinstance(apply(get(name), stream, (mutation,)), bytes)
    assert lift([mutation.name, list(mutation.args)]) == mutation


@pytest.mark.parametrize("wanted", ["truncate", "flip a bit", "drop an event", "insert a payload"])
def test_mutations_of_every_menu_are_drawn(wanted: str) -> None:
    assert find(mutations(ABC), lambda m: m.name == wanted, settings=search).name == wanted


# --- each edit


def test_edits_of_events_do_what_they_say() -> None:
    assert texts_after(Mutation("drop an event", (1,))) == ["a", "c"]
    assert texts_after(Mutation("repeat an event", (1,))) == ["a", "b", "b", "c"]
    assert texts_after(Mutation("swap two events", (0,))) == ["b", "a", "c"]
    assert texts_after(Mutation("move an event", (2, 0))) == ["c", "a", "b"]
    assert texts_after(Mutation("move an event", (0, 2))) == ["b", "c", "a"]
    assert texts_after(Mutation("cut a payload short", (0,))) == ["", "b", "c"]
    assert texts_after(Mutation("replace a payload", (0, "x"))) == ["x", "b", "c"]
    assert texts_after(Mutation("insert a payload", (0, "x"))) == ["x", "a", "b", "c"]


def test_edits_are_carried_out_in_turn() -> None:
    assert texts_after(Mutation("drop an event", (0,)), Mutation("repeat an event", (0,))) == ["b", "b", "c"]


def test_an_edit_leaves_the_stream_it_was_given_alone() -> None:
    edit(SSE, ABC, [Mutation("drop an event", (0,))])
    assert [event.data for event in ABC.events] == [Raw("a"), Raw("b"), Raw("c")]


def test_a_cut_payload_loses_its_last_character_as_the_stream_spells_it() -> None:
    chat = get("openai-chat")
    stream = Stream("openai-chat", (Event({"a": [1, 2]}),))
    (event,) = edit(chat, stream, [Mutation("cut a payload short", (0,))]).events
    assert event.data == Raw('{"a":[1,2]')


@pytest.mark.parametrize("name", ["anthropic", "openai-chat", "openai-responses"])
def test_noise_and_failures_are_the_providers_own(name: str) -> None:
    provider = get(name)
    stream = Stream(name, (Event({}),))
    noisy = edit(provider, stream, [Mutation("insert an event that means nothing", (0, 0))])
    failing = edit(provider, stream, [Mutation("insert an error", (0, 0))])
    assert noisy.events == (provider.noise[0], Event({}))
    assert failing.events == (provider.failures[0], Event({}))
    assert provider.error(provider.failures[0])


def test_edits_of_bytes_come_after_those_of_events() -> None:
    def made(*edits: Mutation) -> bytes:
        return apply(SSE, ABC, edits)

    assert made() == b"data: a\n\ndata: b\n\ndata: c\n\n"
    assert made(Mutation("truncate", (7,)), Mutation("drop an event", (0,))) == b"data: b"
    assert made(Mutation("flip a bit", (0, 0)), Mutation("truncate", (4,))) == b"eata"
    assert made(Mutation("overwrite bytes", (6, "ff")), Mutation("truncate", (9,))) == b"data: \xff\n\n"
    assert made(Mutation("append bytes", ("x",))).endswith(b"c\n\nx")
    assert made(Mutation("send something else", ("<html>",))) == b"<html>"


@given(st.binary(min_size=1, max_size=20), st.data())
def test_a_bit_flipped_twice_is_as_it_was(content: bytes, data: st.DataObject) -> None:
    flip = BYTE_EDITS["flip a bit"]
    offset, bit = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(0, 7))
    assert flip(content, offset, bit) != content
    assert flip(flip(content, offset, bit), offset, bit) == content


def test_odd_payloads_are_odd_everywhere() -> None:
    hello = Event({"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]})
    for payload in ODD_PAYLOADS:
        stream = Stream("openai-chat", (hello, Event(Raw(payload)), Event(Raw("[DONE]"))))
        judgement = judge(get("openai-chat"), encode(get("openai-chat"), stream))
        assert judgement.breaches, payload


# --- names and forms


def test_an_unknown_mutation_is_refused() -> None:
    with pytest.raises(LookupError, match="unknown mutation 'explode'"):
        apply(SSE, ABC, [Mutation("explode")])


@pytest.mark.parametrize("value", [None, [], "truncate", ["truncate"], ["truncate", 1], ["truncate", [1], 2]])
def test_what_is_no_mutation_is_not_lifted(value: Any) -> None:
    with pytest.raises(ValueError, match=r"a mutation is \[name, \[arguments\]\]"):
        lift(value)


def test_a_mutation_of_an_unknown_name_is_not_lifted() -> None:
    with pytest.raises(ValueError, match="unknown mutation 'explode'"):
        lift(["explode", []])


def test_no_name_is_in_both_tables() -> None:
    assert set(EVENT_EDITS).isdisjoint(BYTE_EDITS)
