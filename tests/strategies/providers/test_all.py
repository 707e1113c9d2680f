"""What holds for every provider: how its rules are written, and what the judge makes of its streams."""

from __future__ import annotations

import pkgutil
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from streamfuzz_strategies import providers
from streamfuzz_strategies.draw import encode, streams
from streamfuzz_strategies.framing import json_text, ndjson
from streamfuzz_strategies.judge import ERROR, GENERIC_RULES, Judgement, Reading, judge
from streamfuzz_strategies.mutations import apply, mutations
from streamfuzz_strategies.providers import NAMES, Provider, get
from streamfuzz_strategies.providers.base import reduce
from streamfuzz_strategies.reply import Json, Reply, view
from streamfuzz_strategies.rules import END, Break, Rule
from streamfuzz_strategies.stream import Event, MalformedJson, Raw, Stream, parse_json

PLAIN_PROFILES = {"json", "ndjson", "sse"}
SPEAKING = sorted(set(NAMES) - PLAIN_PROFILES)
"""Providers whose streams carry a model's answer."""

FRAMING_RULES = {"sse": (), "ndjson": ndjson.RULES, "json": json_text.RULES}

quick = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
every_provider = pytest.mark.parametrize("name", NAMES)
every_speaking = pytest.mark.parametrize("name", SPEAKING)


def rules() -> list[tuple[str, Rule]]:
    return [(name, rule) for name in NAMES for rule in get(name).rules]


every_rule = pytest.mark.parametrize(("name", "rule"), rules(), ids=[rule.id for _, rule in rules()])


def judged(stream: Stream, *events: Event) -> Judgement:
    """What the bytes of a stream are worth; ``events`` stand in the place of its own."""
    given_events = events or stream.events
    return judge(get(stream.provider), encode(Stream(stream.provider, given_events, None, stream.style)))


def inserted(stream: Stream, event: Event, at: int) -> tuple[Event, ...]:
    return (*stream.events[:at], event, *stream.events[at:])


@cache
def validators_of(name: str) -> dict[str, Draft202012Validator]:
    return {kind: Draft202012Validator(schema) for kind, schema in get(name).schemas.items()}


def is_cut(provider: Provider, reply: Reply) -> bool:
    return any(choice.finish in provider.cut_finishes for choice in reply.choices)


# --- the providers themselves


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(LookupError) as caught:
        get("openai")
    assert str(caught.value) == f"unknown provider 'openai'; known: {', '.join(NAMES)}"


def test_names_are_sorted_and_are_those_of_the_providers() -> None:
    assert list(NAMES) == sorted(NAMES)
    assert [get(name).name for name in NAMES] == list(NAMES)


@every_provider
def test_a_machine_goes_by_its_name_and_only_to_states_that_it_has(name: str) -> None:
    machines = get(name).machines
    assert machines["stream"].always
    for key, machine in machines.items():
        assert machine.name == key
        assert machine.start in machine.rows
        for row in machine.rows.values():
            for cell in row.values():
                assert (cell.then if isinstance(cell, Break) else cell) in machine.rows


@every_speaking
def test_once_the_stream_is_over_nothing_can_spoil_it(name: str) -> None:
    provider = get(name)
    rows = provider.machines["stream"].rows
    assert provider.over <= set(rows)
    for state in provider.over:
        assert not isinstance(rows[state].get(END), Break)
        for cell in rows[state].values():
            assert (cell.then if isinstance(cell, Break) else cell) in provider.over
            assert not isinstance(cell, Break) or cell.rule.level == "may"


@every_speaking
def test_what_is_beside_the_answer_is_known_by_its_kind(name: str) -> None:
    provider = get(name)
    unknown = {kind for kind in provider.ignorable if kind.rpartition(":")[2] == "unknown"}
    assert provider.ignorable - unknown <= set(provider.schemas)
    assert {provider.kind(event) for event in provider.noise} <= provider.ignorable
    assert provider.failures
    for event in provider.failures:
        assert provider.error(event)
        assert provider.kind(event) in set(provider.schemas) - provider.ignorable


# --- rules


@every_rule
def test_an_id_is_the_provider_the_entity_and_what_it_is(name: str, rule: Rule) -> None:
    part = "[a-z0-9]+(-[a-z0-9]+)*"
    assert re.fullmatch(rf"{name}\.{part}\.{part}", rule.id)


PAST = re.compile(
    r"\b(\w+ed|was|were|had|came|went|did|gave|began|got|said|left|sent|held|took|made|broke|lost|put|told)\b"
)
PRESENT = re.compile(r"\b(is|are|has|does|must|should|will|comes|ends)\b")


@every_rule
def test_a_sentence_is_one_clause_about_what_the_stream_did(name: str, rule: Rule) -> None:
    assert not rule.sentence[0].isupper()
    assert rule.sentence == rule.sentence.strip()
    assert not re.search(r"[.;:!?]( |$)", rule.sentence)
    assert PAST.search(rule.sentence)
    assert not PRESENT.search(rule.sentence)


@every_rule
def test_a_rule_says_where_it_is_written_and_how_visible_its_breach_is(name: str, rule: Rule) -> None:
    assert re.fullmatch(r"https://\S+|RFC \d+ section \d+(\.\d+)*", rule.source)
    assert rule.level in ("must", "may", "none")


def constants() -> Iterator[Rule]:
    """Every rule that a module of providers has by a name of its own."""
    for module in pkgutil.walk_packages(providers.__path__, f"{providers.__name__}."):
        yield from (value for value in vars(import_module(module.name)).values() if isinstance(value, Rule))


def test_every_rule_is_listed_once_and_under_its_own_provider() -> None:
    listed = [rule for _, rule in rules()]
    assert len({rule.id for rule in listed}) == len(listed)
    assert set(constants()) == set(listed)


@every_provider
@quick
@given(data=st.data())
def test_the_judge_reports_no_rule_that_is_not_listed(name: str, data: st.DataObject) -> None:
    provider = get(name)
    known = {*provider.rules, *GENERIC_RULES, *FRAMING_RULES[provider.framing.name]}
    stream = data.draw(streams(name, styled=True))
    damaged = apply(provider, stream, (data.draw(mutations(stream)),))
    for end in ("eof", "reset"):
        assert {breach.rule for breach in judge(provider, damaged, end).breaches} <= known


# --- lawful streams


def decoded(reply: Reply) -> dict[str, Json]:
    """The reply with the arguments of its calls as values: where they travel as objects, they have no order."""
    seen = view(reply)
    for choice in seen["choices"]:
        for call in (*choice["tool_calls"], *choice["parts"]):
            with suppress(MalformedJson):
                call["arguments"] = parse_json(call.get("arguments", "null"))
    return seen


@every_provider
@quick
@given(data=st.data())
def test_a_lawful_stream_is_accepted_in_every_style(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name, styled=True))
    judgement = judged(stream)
    assert stream.reply is not None
    assert decoded(judgement.accepted[0]) == decoded(stream.reply)
    if stream.style.sort_keys is None:
        assert judgement.accepted[0] == stream.reply
    assert judgement.breaches == ()
    assert judgement.error is None
    assert judgement.level == ("may" if is_cut(get(name), stream.reply) else "none")


WEAK_PROOF = {
    "anthropic": "anthropic.stream.unstopped",
    "openai-chat": "openai-chat.stream.no-done",
}
"""Protocols in which an answer that has said why it ended may lack its last word, and the rule about that."""


@every_speaking
@quick
@given(data=st.data())
def test_a_stream_that_ends_between_events_before_its_proof_is_damaged(name: str, data: st.DataObject) -> None:
    provider = get(name)
    stream = data.draw(streams(name, styled=True))
    reading = Reading(provider, encode(stream))
    for count, offset in enumerate((0, *reading.ends)[: len(stream.events)]):
        choices = reduce(provider, stream.events[:count]).choices
        told = bool(choices) and all(choice.finish is not None for choice in choices)
        judgement = reading.upto(offset)
        if told and name in WEAK_PROOF:
            assert [breach.rule.id for breach in judgement.breaches] == [WEAK_PROOF[name]]
            assert judgement.level == "may"
        else:
            assert judgement.level == "must"
            assert {breach.index for breach in judgement.breaches} == {-1}


@every_speaking
@quick
@given(data=st.data())
def test_a_stream_that_breaks_off_before_its_proof_is_damaged_too(name: str, data: st.DataObject) -> None:
    provider = get(name)
    stream = data.draw(streams(name))
    reading = Reading(provider, encode(stream))
    count = data.draw(st.integers(0, len(stream.events) - 1))
    offset = (0, *reading.ends)[count]
    assert reading.upto(offset, "reset").level in (reading.upto(offset).level, "must")
    assert reading.upto(offset, "reset").level != "none"


@every_speaking
@quick
@given(data=st.data())
def test_noise_may_stand_anywhere_before_the_end(name: str, data: st.DataObject) -> None:
    provider = get(name)
    stream = data.draw(streams(name, styled=True))
    whole = judged(stream)
    for noise in provider.noise:
        for at in range(len(stream.events)):
            noisy = judged(stream, *inserted(stream, noise, at))
            assert (noisy.accepted, noisy.level, noisy.breaches) == (whole.accepted, whole.level, ())
        late = judged(stream, *inserted(stream, noise, len(stream.events)))
        assert late.accepted == whole.accepted
        assert late.level in (whole.level, "may")


@every_speaking
@quick
@given(data=st.data())
def test_a_failure_before_the_end_is_an_error_with_its_cause(name: str, data: st.DataObject) -> None:
    provider = get(name)
    stream = data.draw(streams(name))
    for failure in provider.failures:
        for at in range(len(stream.events)):
            judgement = judged(stream, *inserted(stream, failure, at))
            assert judgement.error == provider.error(failure)
            assert judgement.accepted == ()
            assert [breach.rule for breach in judgement.breaches] == [ERROR]


@every_speaking
@quick
@given(data=st.data())
def test_a_stream_without_one_of_its_features_is_still_a_lawful_stream(name: str, data: st.DataObject) -> None:
    provider = get(name)
    stream = data.draw(streams(name))
    validators = validators_of(name)
    for feature, take in provider.features.items():
        events = tuple(event for event in map(take, stream.events) if event is not None)
        judgement = judged(stream, *events)
        assert judgement.complete, feature
        assert judgement.breaches == (), feature
        for event in events:
            if not isinstance(event.data, Raw):
                assert validators[provider.kind(event)].is_valid(event.data), feature


@every_provider
@quick
@given(data=st.data())
def test_a_lawful_stream_is_numbered_already(name: str, data: st.DataObject) -> None:
    provider = get(name)
    stream = data.draw(streams(name))
    if provider.renumber is not None:
        assert provider.renumber(stream.events) == stream.events


def test_only_one_protocol_numbers_its_events() -> None:
    assert [name for name in NAMES if get(name).renumber is not None] == ["openai-responses"]


@every_provider
def test_what_drawing_and_judging_cost(name: str) -> None:
    """Printed, not asserted: run with ``-s`` to see it."""
    provider = get(name)
    drawn: list[Stream] = []

    @settings(deadline=None, max_examples=60, phases=[Phase.generate], database=None)
    @given(streams(name))
    def draw(stream: Stream) -> None:
        drawn.append(stream)

    began = time.perf_counter()
    draw()
    drawing = (time.perf_counter() - began) / len(drawn)
    wires = [encode(stream) for stream in drawn]
    began = time.perf_counter()
    complete = [judge(provider, wire).complete for wire in wires]
    judging = (time.perf_counter() - began) / sum(len(stream.events) for stream in drawn)
    size = sum(map(len, wires)) / len(wires)
    print(f"{name}: {drawing * 1e3:.1f} ms to draw, {judging * 1e6:.0f} us to judge an event, {size:.0f} bytes")
    assert all(complete)
