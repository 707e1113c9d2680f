"""What is beside the answer in Responses streams, and the numbers of its events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfuzz_strategies.providers import get
from streamfuzz_strategies.providers.base import reduce
from streamfuzz_strategies.reply import Reply, choice_view
from streamfuzz_strategies.stream import Event, Raw, Stream

from .test_openai_responses import VALIDATORS, musts, official
from .walking import breaches, streams

PROVIDER = get("openai-responses")
some = settings(deadline=None, max_examples=40)


@some
@given(streams("openai-responses"), st.data())
def test_noise_may_stand_anywhere(stream: Stream, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(stream.events)))
    for noise in PROVIDER.noise:
        events = (*stream.events[:at], noise, *stream.events[at:])
        assert PROVIDER.kind(noise) in PROVIDER.ignorable
        assert musts(events) == []
        assert breaches(PROVIDER, events) == [] or at == len(stream.events)
        assert reduce(PROVIDER, events) == stream.reply


@some
@given(streams("openai-responses"), st.data())
def test_what_may_be_left_out_adds_nothing(stream: Stream, data: st.DataObject) -> None:
    before: Reply | None = None
    reducer = PROVIDER.reducer()
    for event in stream.events:
        reducer.apply(event)
        if PROVIDER.kind(event) in PROVIDER.ignorable:
            assert reducer.reply() == before
        before = reducer.reply()


@some
@given(streams("openai-responses"))
def test_a_stream_without_one_of_its_features_is_lawful(stream: Stream) -> None:
    for change in PROVIDER.features.values():
        events = [changed for event in stream.events if (changed := change(event)) is not None]
        assert breaches(PROVIDER, events) == []
        before, after = (choice_view(reduce(PROVIDER, said).choices[0]) for said in (stream.events, events))
        assert {**before, "parts": None} == {**after, "parts": None}


@some
@given(streams("openai-responses"), st.data())
def test_numbers_can_be_mended_after_events_were_taken_out_put_in_or_moved(stream: Stream, data: st.DataObject) -> None:
    assert PROVIDER.renumber is not None
    kept = [event for event in stream.events if data.draw(st.booleans())]
    edited = data.draw(st.permutations([*kept, *kept[:2], *PROVIDER.noise]))
    mended = PROVIDER.renumber(edited)
    assert [rule for rule, _ in breaches(PROVIDER, mended) if ".sequence." in rule] == []
    assert PROVIDER.renumber(mended) == mended
    for before, after in zip(edited, mended, strict=True):
        assert after == Event({**before.data, **after.data}, before.name)
        assert before.data.keys() == after.data.keys()
        assert {**before.data, "sequence_number": None} == {**after.data, "sequence_number": None} or (
            before == after in PROVIDER.noise
        )


@pytest.mark.parametrize("data", [None, [], Raw("x"), {}, {"sequence_number": None}, {"sequence_number": -1}])
def test_what_has_no_number_is_given_none(data: Any) -> None:
    assert PROVIDER.renumber is not None
    numbered = Event({"type": "x", "sequence_number": 9})
    assert PROVIDER.renumber([Event(data), numbered]) == (
        Event(data),
        Event({"type": "x", "sequence_number": 0}),
    )


@pytest.mark.parametrize("kind", ["response.in_progress", "response.output_text.annotation.added"])
def test_without_all_events_of_a_kind_and_numbered_anew_a_stream_is_lawful(kind: str) -> None:
    assert PROVIDER.renumber is not None
    streamed: list[Stream] = []

    @settings(deadline=None, max_examples=100, database=None, derandomize=True)
    @given(streams("openai-responses"))
    def collect(stream: Stream) -> None:
        if kind in map(PROVIDER.kind, stream.events):
            streamed.append(stream)

    collect()
    assert streamed
    for stream in streamed:
        without = [event for event in stream.events if PROVIDER.kind(event) != kind]
        assert musts(without)
        assert breaches(PROVIDER, PROVIDER.renumber(without)) == []


def test_failures_are_errors_that_fit_their_schema() -> None:
    for failure in PROVIDER.failures:
        assert PROVIDER.error(failure) == "the server had an error"
        numbered = {"sequence_number": 0, **failure.data}
        VALIDATORS[PROVIDER.kind(failure)].validate(numbered)
        if "error" not in numbered:  # the SDK has no type for the nested form, which it raises
            assert official(Event(numbered)).type == failure.name
        assert breaches(PROVIDER, [failure]) == []
