"""Every oracle has a planted fault that it alone catches, and a repaired twin on which nothing is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from streamfuzz.bench import ALL_ORACLES, Bench
from streamfuzz.case import Case, End
from streamfuzz.demo import StreamError, _payloads, _Reader, repaired
from streamfuzz.deviation import Run
from streamfuzz.engines import Budget
from streamfuzz.engines.sweep import sweep
from streamfuzz.finding import describe
from streamfuzz.oracles import ORACLES, check, fragmentation
from streamfuzz.probes import ORACLES as PROBES
from streamfuzz.spec import Delta, Final, Incomplete, Release, Snapshot, Target, target
from streamfuzz.trace import Ending, Failure, Trace
from streamfuzz_strategies.judge import Reading
from streamfuzz_strategies.providers import get

CUT = get("openai-chat").cut_finishes
ENOUGH, MOST = 1000, 40_000
"""Cases after which a sweep stops: when it has seen what it is to see, and in any case."""


def seen(made: Target, wanted: str = "") -> set[str]:
    """The oracles that a small sweep finds broken."""
    found, cases = set(), 0
    with Bench(made) as bench:
        for batch in sweep(bench, Budget(seconds=None, cases=MOST, seed=2)):
            cases += batch.cases
            found |= {sighting.deviation.oracle for sighting in batch.sightings}
            if cases >= ENOUGH and (not wanted or wanted in found):
                break
    return found


def chat(call: Callable[..., Any], **more: Any) -> Target:
    return target(call, provider="openai-chat", errors=(StreamError,), **more)


# --- one fault each


def hangs_on_nothing(chunks: Iterable[bytes]) -> Any:
    kept = list(chunks)
    while not kept:
        pass
    return repaired(kept)


def reports_no_error(chunks: Iterable[bytes]) -> Any:
    reader = _Reader()
    for payload in _payloads(chunks):
        if payload == "[DONE]":
            break
        with suppress(ValueError, AttributeError):
            if json.loads(payload).get("error"):
                return Incomplete({})
        reader.read(payload)
    return reader.result()


def trusts_a_stump(chunks: Iterable[bytes]) -> Any:
    try:
        return repaired(chunks)
    except StreamError as error:
        if "ended before" not in str(error):
            raise
        return {"text": "", "finish": "stop"}


def loses_the_last_character(chunks: Iterable[bytes]) -> Any:
    view = repaired(chunks)
    return {**view, "text": view["text"][:-1]}


def indexes_blindly(chunks: Iterable[bytes]) -> Any:
    try:
        return repaired(chunks)
    except StreamError as error:
        if "ended before" not in str(error):
            raise
        raise IndexError("list index out of range") from None


def completes_twice(chunks: Iterable[bytes]) -> Any:
    view = repaired(chunks)
    yield Final(view)
    yield Final(view)
    return view


def completes(chunks: Iterable[bytes]) -> Any:
    view = repaired(chunks)
    yield Final(view)
    return view


def texts(reader: _Reader, chunks: Iterable[bytes]) -> Iterator[str]:
    """Read a stream and say after each event what the text is so far."""
    for payload in _payloads(chunks):
        if payload == "[DONE]":
            return
        reader.read(payload)
        yield "".join(reader.answers[0].texts) if 0 in reader.answers else ""


def acts_on_whole_json(chunks: Iterable[bytes]) -> Any:
    reader, done = _Reader(), set()
    for _ in texts(reader, chunks):
        for index, call in reader.answers[0].calls.items() if 0 in reader.answers else ():
            with suppress(ValueError):
                json.loads(call["arguments"])
                if index not in done and call["name"]:
                    yield Release(dict(call))
                done.add(index)
    return reader.result()


def acts_at_the_end(chunks: Iterable[bytes]) -> Any:
    view = repaired(chunks)
    for call in view["tool_calls"] if view["finish"] not in CUT else ():
        yield Release(call)
    return view


def shows_a_cursor(chunks: Iterable[bytes]) -> Any:
    reader = _Reader()
    for text in texts(reader, chunks):
        yield Snapshot({"text": text + "_"})
    return reader.result()


def shows_snapshots(chunks: Iterable[bytes]) -> Any:
    reader = _Reader()
    for text in texts(reader, chunks):
        yield Snapshot({"text": text})
    return reader.result()


def buffers(chunks: Iterable[bytes]) -> Any:
    view = repaired(chunks)
    yield from view["text"]
    return view


def shows_deltas(chunks: Iterable[bytes]) -> Any:
    reader, before = _Reader(), 0
    for text in texts(reader, chunks):
        yield Delta(text[before:])
        before = len(text)
    return reader.result()


def decodes_each_chunk(chunks: Iterable[bytes]) -> Any:
    return repaired(chunk.decode("utf-8", "replace").encode() for chunk in chunks)


class Shared:
    """A parser that keeps what it reads in one place for all streams."""

    reader = _Reader()

    @classmethod
    def read(cls, chunks: Iterable[bytes]) -> Any:
        cls.reader = _Reader()
        for payload in _payloads(chunks):
            if payload == "[DONE]":
                break
            cls.reader.read(payload)
        return cls.reader.result()


def closes(chunks: Any) -> Any:
    try:
        result = yield from shows_deltas(chunks)
    finally:
        chunks.close()
    return result


def counts_events(chunks: Iterable[bytes]) -> Any:
    reader = _Reader()
    count = len(list(texts(reader, chunks)))
    return {**reader.result(), "events": count}


def whole(body: Any) -> Any:
    message = body["choices"][0]["message"]
    calls = [{"id": call["id"], **call["function"]} for call in message.get("tool_calls") or ()]
    return {"text": message["content"], "tool_calls": calls, "finish": body["choices"][0]["finish_reason"]}


def whole_without_finish(body: Any) -> Any:
    return {**whole(body), "finish": "stop?"}


REPAIRED = chat(repaired)
PLANTED: list[tuple[str, Target, Target]] = [
    ("bounded", chat(hangs_on_nothing, timeout=0.2), chat(lambda chunks: repaired(list(chunks)), timeout=0.2)),
    ("surfaced_error", chat(reports_no_error), REPAIRED),
    ("fail_closed", chat(trusts_a_stump), REPAIRED),
    ("faithful", chat(loses_the_last_character), REPAIRED),
    ("typed_error", chat(indexes_blindly), REPAIRED),
    ("once_terminal", chat(completes_twice), chat(completes)),
    ("no_early_action", chat(acts_on_whole_json), chat(acts_at_the_end)),
    ("prefix", chat(shows_a_cursor), chat(shows_snapshots)),
    ("incremental", chat(buffers), chat(shows_deltas)),
    ("fragmentation", chat(decodes_each_chunk), REPAIRED),
    ("isolated", chat(Shared.read), REPAIRED),
    ("released", chat(shows_deltas, closes_source=True), chat(closes, closes_source=True)),
    ("resliced", chat(counts_events), REPAIRED),
    ("parity", chat(repaired, whole=whole_without_finish), chat(repaired, whole=whole)),
]


@pytest.mark.untraced
@pytest.mark.parametrize(("oracle", "faulty"), [(name, faulty) for name, faulty, _ in PLANTED])
def test_the_oracle_alone_catches_its_planted_fault(oracle: str, faulty: Target) -> None:
    assert seen(faulty, oracle) == {oracle}


TWINS = {twin.name: twin for _, _, twin in PLANTED} | {"whole": chat(repaired, whole=whole)}


@pytest.mark.untraced
@pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS)
def test_nothing_is_found_on_a_repaired_twin(twin: Target) -> None:
    assert seen(twin) == set()


def test_every_oracle_is_planted() -> None:
    assert {name for name, _, _ in PLANTED} == set(ALL_ORACLES)


def test_every_oracle_opens_with_its_invariant() -> None:
    for oracle in (*ORACLES.values(), *PROBES.values()):
        first = (oracle.__doc__ or "").splitlines()[0]
        assert first.endswith(".")
        assert first[0].isupper()


# --- what the specifications leave open


def verdicts(call: Callable[..., Any], data: bytes, end: End = "eof", **more: Any) -> list[tuple[str, str, str]]:
    made = target(call, errors=(StreamError,), **more)
    with Bench(made) as bench:
        found = bench.deviations(Case(made.provider, (data,), made.takes, end))
    return [(deviation.oracle, deviation.kind, deviation.verdict) for deviation in found]


def refuses_all(chunks: Iterable[bytes]) -> Any:
    raise StreamError(str(len(b"".join(chunks))))


def test_a_parser_of_lines_need_not_skip_blank_ones() -> None:
    assert verdicts(refuses_all, b"{}\n{}\n", provider="ndjson", gives="frames") == [("faithful", "refused", "fail")]
    assert verdicts(refuses_all, b"{}\n\n{}\n", provider="ndjson", gives="frames") == [("faithful", "refused", "warn")]


def test_a_cause_can_only_be_hidden_where_it_is_documented() -> None:
    assert verdicts(refuses_all, b'{"error":"boom"}\n', provider="ollama") == [("surfaced_error", "masked", "fail")]
    assert verdicts(refuses_all, b'{"error":{"boom":1}}\n', provider="ollama") == []
    assert verdicts(refuses_all, b'{"error":{"boom":1}}', provider="ollama") == []


def test_giving_out_what_is_no_json_is_one_fault() -> None:
    def reads_nan(chunks: Iterable[bytes]) -> Any:
        return [json.loads(payload) for payload in _payloads(chunks) if payload != "[DONE]"]

    data = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: NaN\n\ndata: [DONE]\n\n'
    more = {"provider": "openai-chat", "gives": "events"}
    assert verdicts(reads_nan, data, **more) == [("fail_closed", "trusted", "fail")]


# --- readers of frames and of events


def says(*items: Any, fails: bool = False) -> Callable[..., Any]:
    """A reader that gives out the same whatever it reads, and may then fail."""

    def reader(chunks: Iterable[bytes]) -> Iterator[Any]:
        with suppress(Exception):  # a connection that breaks
            list(chunks)
        yield from items
        if fails:
            raise StreamError("no more of this")

    return reader


def but_late(found: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [verdict for verdict in found if verdict[0] != "incremental"]


A, B, C = ({"data": letter} for letter in "abc")
TWO, HALF = b"data: a\n\ndata: b\n\n", b"data: a\n\ndata: b\n"


@pytest.mark.parametrize(
    ("data", "end", "reader", "found"),
    [
        (TWO, "eof", says(A, B), []),
        (TWO, "eof", says(A), [("faithful", "lost", "fail")]),
        (TWO, "eof", says(A, B, fails=True), [("faithful", "refused", "fail")]),
        (TWO, "reset", says(A, fails=True), []),
        (TWO, "reset", says(A), []),
        (TWO, "reset", says(C, fails=True), [("faithful", "altered", "fail")]),
        (TWO, "reset", says(A, C), [("faithful", "altered", "fail")]),
        (HALF, "eof", says(A), []),
        (HALF, "eof", says(A, B), [("faithful", "delivered", "warn")]),
        (HALF, "eof", says(A, C), [("faithful", "invented", "fail")]),
    ],
)
def test_readers_of_frames_are_held_to_every_frame(data: bytes, end: End, reader: Any, found: list[Any]) -> None:
    assert but_late(verdicts(reader, data, end, provider="sse", gives="frames")) == found


def event(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


ONE, OTHER, LAST = event({"content": "a"}), event({"content": "x"}), event({}, "stop")
ODD = {"object": "something.else"}


def sent(*events: Any) -> bytes:
    payloads = (event if isinstance(event, str) else json.dumps(event) for event in (*events, "[DONE]"))
    return "".join(f"data: {payload}\n\n" for payload in payloads).encode()


@pytest.mark.parametrize(
    ("data", "end", "reader", "found"),
    [
        (sent(ONE, LAST), "eof", says(ONE, LAST), []),
        (sent(ONE, LAST), "eof", says(OTHER, LAST), [("faithful", "altered", "fail")]),
        (sent(ONE, LAST), "eof", says(ONE, fails=True), [("faithful", "refused", "fail")]),
        (sent(ONE, LAST), "reset", says(ONE, fails=True), []),
        (sent(ONE, LAST), "reset", says(fails=True), []),
        (sent(ONE, LAST), "reset", says(OTHER, fails=True), [("faithful", "altered", "fail")]),
        (sent(ONE, "{", LAST), "eof", says(ONE, fails=True), []),
        (sent(ONE, "{", LAST), "eof", says(OTHER, fails=True), [("faithful", "altered", "fail")]),
        (sent(ONE, "{", LAST), "eof", says(ONE, LAST), [("fail_closed", "trusted", "fail")]),
        (sent(ONE, ODD, LAST), "eof", says(ONE, ODD, LAST), []),
        (sent(ONE, ODD, LAST), "eof", says(ONE, LAST), []),
        (sent(ONE, ODD, LAST), "eof", says(ONE, ODD), [("faithful", "lost", "fail")]),
    ],
)
def test_readers_of_events_are_held_to_every_event(data: bytes, end: End, reader: Any, found: list[Any]) -> None:
    assert but_late(verdicts(reader, data, end, provider="openai-chat", gives="events")) == found


# --- runs that came to no end


def ended(ending: Ending, failure: Failure, chunks: tuple[bytes, ...] = (b"data: [DONE]\n\n",)) -> Run:
    reading = Reading(get("openai-chat"), b"".join(chunks))
    trace = Trace((), (), ending, None, failure, 0, False, 0.0)
    return Run(chat(repaired), reading, reading.judge("eof"), chunks, "eof", trace)


LOST = Failure("SIGSEGV", "killed by signal 11 (SIGSEGV)", "", declared=False, transport=False, lost=True)
RAISED = Failure("MemoryError", "", "mine.py:3 in parse", declared=True, transport=False)


@pytest.mark.parametrize(
    ("ending", "failure", "kind", "got", "error"),
    [
        ("died", LOST, "crashed", "killed by signal 11 (SIGSEGV)", "SIGSEGV"),
        ("hang", replace(LOST, type="killed"), "hung", "killed by signal 11 (SIGSEGV)", "killed"),
        ("hang", replace(RAISED, type="Hang"), "hung", "still running after 2 s, at mine.py:3 in parse", ""),
        ("memory", RAISED, "memory", "MemoryError at mine.py:3 in parse", ""),
        ("memory", replace(LOST, message="needed more than 2 GB"), "memory", "needed more than 2 GB", ""),
    ],
)
def test_a_run_without_an_end_breaks_bounded_and_nothing_else(
    ending: Ending, failure: Failure, kind: str, got: str, error: str
) -> None:
    run = ended(ending, failure)
    found = check(run, ALL_ORACLES)
    assert [(d.oracle, d.kind, d.got, d.error) for d in found] == [("bounded", kind, got, error)]
    assert found[0].kills == (failure.lost and kind != "memory")
    assert got in describe("mine", found[0])


def test_what_kills_only_in_pieces_or_only_whole_is_not_a_matter_of_fragmentation() -> None:
    died, right = ended("died", LOST).trace, ended("error", RAISED).trace
    for one, other in ((died, right), (right, died)):
        run = ended("died", LOST)
        run.trace, run.baseline = one, other
        assert list(fragmentation(run)) == []
