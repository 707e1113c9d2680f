"""The bench: one place where an experiment becomes deviations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from streamfuzz.bench import ALL_ORACLES, Bench, read
from streamfuzz.case import Case
from streamfuzz.demo import StreamError, repaired
from streamfuzz.oracles import ORACLES
from streamfuzz.probes import ORACLES as PROBES
from streamfuzz.spec import target
from streamfuzz_strategies.framing.sse import SSEDecoder
from streamfuzz_strategies.stream import Event, Frame


def decode(chunks: Iterable[bytes]) -> Any:
    decoder = SSEDecoder()
    for chunk in chunks:
        yield from decoder.feed(chunk)


def forgets_names(chunks: Iterable[bytes]) -> Any:
    for frame in decode(chunks):
        yield {"data": frame.data, "event": "message"}


def breaks_when_cut(chunks: Iterable[bytes]) -> Any:
    for chunk in chunks:
        yield from decode([chunk])


CASE = Case("sse", (b"event: x\nda", b"ta: a\n\n"))


def test_every_oracle_has_its_name() -> None:
    assert {*ORACLES, *PROBES, "fragmentation"} == set(ALL_ORACLES)
    assert len(ALL_ORACLES) == len(set(ALL_ORACLES))


def test_a_right_target_has_no_deviations() -> None:
    with Bench(target(decode, provider="sse")) as bench:
        assert bench.deviations(CASE) == []
        assert bench.cases == 1


def test_only_the_oracles_asked_for_answer() -> None:
    made = target(forgets_names, provider="sse")
    with Bench(made) as bench:
        assert [deviation.oracle for deviation in bench.deviations(CASE)] == ["faithful"]
    with Bench(made, ("bounded", "typed_error")) as bench:
        assert bench.deviations(CASE) == []


def test_a_cut_run_is_held_against_its_whole_run() -> None:
    with Bench(target(breaks_when_cut, provider="sse")) as bench:
        run = bench.run(CASE)
        assert run.baseline is not None
        assert run.baseline_deviations == []
        assert [deviation.oracle for deviation in bench.deviations(CASE)] == ["fragmentation"]
        assert bench.run(Case("sse", (CASE.data,))).baseline is None


def test_what_the_whole_run_gets_wrong_too_is_not_the_cuts_doing() -> None:
    with Bench(target(forgets_names, provider="sse")) as bench:
        assert [d.oracle for d in bench.deviations(CASE)] == ["faithful"]


@pytest.mark.parametrize("probe", ["isolated", "released"])
def test_a_probe_runs_its_own_experiment(probe: str) -> None:
    with Bench(target(decode, provider="sse")) as bench:
        assert bench.deviations(Case("sse", CASE.chunks, probe=probe, other=(CASE.data,))) == []
        assert bench.driver.runs > (1 if probe == "isolated" else -1)
    with Bench(target(decode, provider="sse", closes_source=True), ("faithful",)) as bench:
        assert bench.deviations(Case("sse", CASE.chunks, probe="released")) == []


def test_a_case_is_read_by_its_form() -> None:
    frame = Frame('{"choices": []}')
    by_bytes = read(Case("openai-chat", (b'data: {"choices": []}\n', b"\n")))
    by_text = read(Case("openai-chat", ('data: {"choices": []}\n\n',), "text"))
    by_frames = read(Case("openai-chat", (frame,), "frames"))
    by_events = read(Case("openai-chat", (Event({"choices": []}),), "events"))
    assert by_bytes.events == by_text.events == by_frames.events == (Event({"choices": []}),)
    assert by_events.events[0] == Event({"choices": []})
    assert by_bytes.frames == by_text.frames == by_frames.frames == (frame,)
    assert by_events.frames == ()


def test_the_same_bytes_are_read_once_however_they_are_cut() -> None:
    assert read(CASE) is read(Case("sse", (CASE.data,)))


def test_events_have_no_whole_run() -> None:
    def count(events: Iterable[Any]) -> Any:
        list(events)
        raise StreamError("no")

    case = Case("openai-chat", (Event({"choices": []}), Event({"choices": []})), "events")
    with Bench(target(count, takes="events", errors=(StreamError,))) as bench:
        assert bench.run(case).baseline is None


def test_a_chat_target_is_judged_by_its_provider() -> None:
    with Bench(target(repaired, errors=(StreamError,))) as bench:
        assert bench.provider.name == "openai-chat"
        assert bench.deviations(Case("openai-chat", (b"data: [DONE]\n\n",))) == []
        assert bench.deviations(Case("openai-chat", ())) == []
