"""The sweep: reproducible by seed, within its budget, and it counts what it reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from time import perf_counter, sleep
from typing import Any

import pytest
from hypothesis import strategies as st

from streamfuzz.bench import Bench
from streamfuzz.case import Case
from streamfuzz.demo import StreamError, repaired
from streamfuzz.engines import Batch, Budget, Sighting
from streamfuzz.engines.goals import goals
from streamfuzz.engines.sweep import as_items, draw_batch, plain_case, sweep
from streamfuzz.spec import Target, target
from streamfuzz_strategies.framing.ndjson import NDJSONDecoder
from streamfuzz_strategies.framing.sse import SSEDecoder
from streamfuzz_strategies.judge import judge
from streamfuzz_strategies.providers import NAMES, get
from streamfuzz_strategies.stream import Event, Frame, Raw, Stream, parse_json


def decode(chunks: Iterable[bytes]) -> Any:
    decoder = SSEDecoder()
    for chunk in chunks:
        yield from decoder.feed(chunk)


def decode_lines(chunks: Iterable[bytes]) -> Any:
    decoder = NDJSONDecoder()
    for chunk in chunks:
        yield from decoder.feed(chunk)
    yield from decoder.close()


def decode_text(chunks: Iterable[str]) -> Any:
    return decode(chunk.encode() for chunk in chunks)


def value(chunks: Iterable[bytes]) -> Any:
    return parse_json(b"".join(chunks).decode())


def of_events(events: Iterable[Any]) -> Any:
    list(events)
    raise StreamError("reads nothing")


def trusting(chunks: Iterable[bytes]) -> Any:
    try:
        return repaired(chunk.decode("utf-8", "replace").encode() for chunk in chunks)
    except StreamError:
        return {"text": "", "finish": "stop"}


FAULTY = target(trusting, errors=(StreamError,))
REPAIRED = target(repaired, errors=(StreamError,))
SSE = target(decode, provider="sse")


def swept(made: Target, **budget: Any) -> Batch:
    """Everything that a sweep came to, in one batch."""
    whole = Batch()
    with Bench(made) as bench:
        for batch in sweep(bench, Budget(**{"seconds": None, "cases": 1500, **budget})):
            whole.cases += batch.cases
            whole.sightings += batch.sightings
            whole.repeats += batch.repeats
            whole.goals += batch.goals
    return whole


# --- reproducible


def timeless(batch: Batch) -> tuple[int, list[Sighting], Counter[str]]:
    """What must come out the same: not what depends on how long runs took."""
    sightings = [s for s in batch.sightings if not s.case.probe]
    return batch.cases, sightings, Counter({n: c for n, c in batch.goals.items() if not n.startswith("probe: growth")})


@pytest.mark.untraced
@pytest.mark.parametrize("made", [FAULTY, SSE], ids=["faulty", "sse"])
def test_one_seed_is_one_search(made: Target) -> None:
    assert timeless(swept(made, seed=5)) == timeless(swept(made, seed=5))


@pytest.mark.untraced
def test_another_seed_is_another_search() -> None:
    assert timeless(swept(FAULTY, seed=5)) != timeless(swept(FAULTY, seed=6))


def test_a_strategy_is_drawn_from_the_same_way_every_time() -> None:
    drawn = draw_batch(st.integers(0, 10**6), 20, 7)
    assert draw_batch(st.integers(0, 10**6), 20, 7) == drawn
    assert draw_batch(st.integers(0, 10**6), 20, 8) != drawn
    assert len(set(drawn)) > 10


# --- within its budget


@pytest.mark.parametrize("cases", [1, 100, 700])
def test_the_budget_of_cases_is_kept(cases: int) -> None:
    whole = swept(REPAIRED, cases=cases)
    assert cases <= whole.cases <= cases + 64


def test_the_budget_of_time_is_kept() -> None:
    started = perf_counter()
    assert swept(REPAIRED, cases=None, seconds=0.5).cases > 0
    assert perf_counter() - started < 5


def test_a_slow_target_does_not_overdraw_the_time() -> None:
    def slow(chunks: Iterable[bytes]) -> Any:
        sleep(0.005)
        return repaired(chunks)

    started = perf_counter()
    swept(target(slow, errors=(StreamError,)), cases=None, seconds=0.5)
    assert perf_counter() - started < 6


# --- what it finds and counts


@pytest.mark.untraced
def test_several_faults_are_all_found() -> None:
    whole = swept(FAULTY, cases=4000)
    assert {sighting.deviation.oracle for sighting in whole.sightings} >= {"fail_closed", "fragmentation"}
    assert all(isinstance(sighting.case, Case) and sighting.how for sighting in whole.sightings)


@pytest.mark.untraced
def test_what_is_seen_shows_again() -> None:
    whole = swept(FAULTY, cases=1500)
    assert whole.sightings
    with Bench(FAULTY) as bench:
        for sighting in whole.sightings:
            assert sighting.deviation.oracle in {d.oracle for d in bench.deviations(sighting.case)}


def test_a_kind_of_failure_is_passed_on_twice_and_then_counted() -> None:
    whole = swept(target(lambda chunks: {"text": "never", "finish": "never"}), cases=1500)
    seen = Counter(
        (s.deviation.oracle, s.deviation.kind, s.deviation.rule.id if s.deviation.rule else "", s.how)
        for s in whole.sightings
    )
    assert max(seen.values()) <= 2
    assert sum(whole.repeats.values()) > 20
    assert {name.split(".")[0] for name in whole.repeats} == {"faithful"}


@pytest.mark.untraced
@pytest.mark.parametrize(
    "made",
    [
        SSE,
        target(decode_text, provider="sse", takes="text"),
        target(decode_lines, provider="ndjson"),
        target(value, provider="json", errors=(ValueError,)),
        REPAIRED,
        target(of_events, takes="events", errors=(StreamError,)),
    ],
    ids=["sse", "text", "ndjson", "json", "chat", "events"],
)
def test_only_goals_that_are_named_are_counted(made: Target) -> None:
    with Bench(made) as bench:
        named = goals(bench)
    reached = swept(made, cases=1500).goals
    unnamed = {name for name in reached if not name.startswith("rule: ")} - {*named}
    assert {name for name in unnamed if name.startswith(("probe", "style", "cut"))} == set()
    assert len({*reached} & {*named}) > len(named) / 4


def test_a_sweep_reaches_nearly_all_of_its_goals() -> None:
    with Bench(SSE) as bench:
        named = set(goals(bench))
    missed = named - set(swept(SSE, cases=12_000).goals)
    assert len(missed) < len(named) / 10, sorted(missed)


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (SSE, {"probe: isolated": True, "probe: released": True, "probe: resliced": False, "probe: parity": False}),
        (REPAIRED, {"probe: resliced": True, "probe: parity": False}),
        (target(repaired, whole=lambda body: {}), {"probe: parity": True}),
        (target(of_events, takes="events"), {"probe: isolated": False, "truncated": False}),
        (target(decode_text, provider="sse", takes="text"), {"cut inside a 4-byte character": False, "truncated": 1}),
    ],
)
def test_the_goals_are_those_that_the_target_can_reach(made: Target, wanted: dict[str, int]) -> None:
    with Bench(made) as bench:
        named = goals(bench)
    assert {name: name in named for name in wanted} == wanted
    assert len(named) == len(set(named))


@pytest.mark.untraced
def test_nothing_is_found_on_reference_decoders() -> None:
    assert swept(SSE, cases=4000).sightings == []
    assert swept(target(decode_text, provider="sse", takes="text"), cases=2000).sightings == []
    assert swept(target(decode_lines, provider="ndjson"), cases=4000).sightings == []
    assert swept(target(value, provider="json", errors=(ValueError,)), cases=4000).sightings == []


@pytest.mark.untraced
def test_the_users_alphabet_and_tools_are_used() -> None:
    texts: set[str] = set()

    def spy(chunks: Iterable[bytes]) -> Any:
        view = repaired(chunks)
        texts.update({view["text"]} | {call["name"] for call in view["tool_calls"]})
        return view

    tools = {"weather": {"type": "object", "properties": {}, "additionalProperties": False}}
    swept(target(spy, errors=(StreamError,)), alphabet="xy", tools=tools, cases=6000)
    texts -= {text for text in texts if len(text) > 1000 or "\x00" in text}  # the probe of growth has its own
    assert set("".join(texts)) <= set("xyweather")
    assert "weather" in texts


# --- plain cases


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("takes", ["bytes", "text", "frames", "events"])
def test_the_plain_case_is_a_complete_stream_in_the_form_asked_for(name: str, takes: Any) -> None:
    made = target(of_events, provider=name, takes=takes, gives="events")
    with Bench(made) as bench:
        case = plain_case(bench)
        assert (case.provider, case.takes) == (name, takes)
        assert bench.run(case).judgement.level == "none"
    if takes == "bytes":
        assert judge(get(name), case.data).level == "none"


def test_streams_are_taken_apart_into_items() -> None:
    stream = Stream("openai-chat", (Event({"a": 1}, "x"), Event(Raw("[DONE]"))))
    assert as_items(stream, "frames") == (Frame('{"a":1}', "x"), Frame("[DONE]"))
    assert as_items(stream, "events") == (Event({"a": 1}, "x"),)
