"""Shrinking: the case gets smaller and the failure stays the same one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamfuzz.bench import Bench
from streamfuzz.case import Case
from streamfuzz.demo import StreamError, parse, repaired
from streamfuzz.explain import explain
from streamfuzz.finding import Finding
from streamfuzz.shrink import shrink
from streamfuzz.spec import Target, target
from streamfuzz_strategies.draw import fragmented, streams
from streamfuzz_strategies.providers import get
from streamfuzz_strategies.reply import Choice, Reply, Text, Usage
from streamfuzz_strategies.stream import Event, payloads
from streamfuzz_strategies.style import PLAIN

DONE = "data: [DONE]\n\n"


def chunk(content: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {"role": "assistant", "content": content} if content is not None else {}
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-9", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "gpt-x"}
    return {**head, "system_fingerprint": "fp_1", "choices": [choice], "usage": None, **more}


def sse(*events: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events)


CAPTURE = ": OPENROUTER PROCESSING\n\n" + sse(
    chunk(""), chunk("The weather"), chunk(" in Z\u00fcrich \U0001f600 is "), chunk("fine."), chunk(finish="stop")
)
CAPTURE += DONE


def found(made: Target, case: Case) -> tuple[Finding, Finding]:
    """The first failure on a case, explained, and the same shrunk."""
    with Bench(made) as bench:
        deviations = bench.deviations(case)
        assert deviations
        finding = explain(bench, case, deviations[0], "by hand")
        return finding, shrink(bench, finding, seconds=5)


def demo() -> Target:
    return target(parse, errors=(StreamError,))


def still_fails(made: Target, finding: Finding) -> bool:
    with Bench(made) as bench:
        return any(deviation.same_as(finding.deviation) for deviation in bench.deviations(finding.case))


# --- what shrinking keeps


@settings(deadline=None, max_examples=6, suppress_health_check=list(HealthCheck))
@given(fragmented("openai-chat", max_parts=1), st.integers(1, 99))
def test_the_signature_stays_and_the_case_gets_no_bigger(chunks: list[bytes], share: int) -> None:
    kept = tuple(chunks)[: max(1, len(chunks) * share // 100)]
    made = demo()
    with Bench(made) as bench:
        for deviation in bench.deviations(Case("openai-chat", kept))[:2]:
            finding = explain(bench, Case("openai-chat", kept), deviation, "x")
            small = shrink(bench, finding, seconds=1)
            assert small.signature == finding.signature
            assert small.case.size <= finding.case.size
            assert (small.how, small.count, small.target) == (finding.how, finding.count, finding.target)
            assert finding.flaky or any(d.same_as(small.deviation) for d in bench.deviations(small.case))


def refuses(words: bytes) -> Callable[..., Any]:
    def parser(chunks: Iterable[bytes]) -> Any:
        whole = b"".join(chunks)
        if words in whole:
            raise StreamError("cannot read this")
        return repaired([whole])

    return parser


@pytest.mark.parametrize(
    ("words", "case"),
    [
        (b"\xc3\xbc", Case("openai-chat", (CAPTURE.encode(),))),
        (b": OPENROUTER", Case("openai-chat", (CAPTURE.encode()[:77], CAPTURE.encode()[77:]))),
        (b"\r", Case("openai-chat", (CAPTURE.replace("\n", "\r\n").encode(),))),
        (b"stop", Case("openai-chat", (CAPTURE.encode(),))),
    ],
)
def test_a_capture_shrinks_to_little_more_than_what_matters(words: bytes, case: Case) -> None:
    made = target(refuses(words), errors=(StreamError,))
    finding, small = found(made, case)
    assert small.signature == finding.signature
    assert words in small.case.data
    assert small.case.size < finding.case.size / 2
    assert len(small.case.chunks) == 1
    assert still_fails(made, small)


def test_a_hand_written_case_shrinks_to_the_cut_inside_the_character() -> None:
    data = CAPTURE.encode()
    at = data.index("\U0001f600".encode()) + 2
    case = Case("openai-chat", (data[:40], data[40:at], b"", data[at : at + 1], data[at + 1 :]))
    finding, small = found(demo(), case)
    assert "a cut inside a 4-byte character" in small.causes
    assert small.signature == finding.signature
    before, after = small.case.chunks
    assert "\U0001f600".encode() in before + after
    with pytest.raises(UnicodeDecodeError):
        before.decode()


def test_a_shrunk_case_cannot_be_shrunk_again_by_much() -> None:
    made = demo()
    _, small = found(made, Case("openai-chat", (CAPTURE.replace("\n", "\r\n").encode(),)))
    with Bench(made) as bench:
        again = shrink(bench, small, seconds=5)
    assert again.case.size == small.case.size
    assert again.signature == small.signature


def test_shrinking_breaks_no_rule_that_was_not_broken() -> None:
    _, small = found(target(refuses(b"Z"), errors=(StreamError,)), Case("openai-chat", (CAPTURE.encode(),)))
    with Bench(demo()) as bench:
        assert bench.run(small.case).judgement.breaches == ()


def test_a_connection_that_breaks_is_left_out_where_it_plays_no_part() -> None:
    made = target(lambda chunks: {"text": "never", "finish": "stop"})
    finding, small = found(made, Case("openai-chat", (CAPTURE.encode(),), end="reset"))
    assert (finding.case.end, small.case.end) == ("reset", "eof")


def test_what_is_no_json_shrinks_byte_by_byte() -> None:
    def stumbles(chunks: Iterable[bytes]) -> Any:
        raise IndexError if b"\xc3" in b"".join(chunks) else StreamError("cannot read this")

    case = Case("openai-chat", (b"event: some long name\nid: 4711\n\n" + b'data: {"x": "\xc3(", and so on',))
    _, small = found(target(stumbles, errors=(StreamError,)), case)
    assert small.case.data == b"data: \xc3"


def test_members_that_every_event_has_go_at_once() -> None:
    chunks = (chunk(f"{n} ", service_tier="x") for n in range(40))
    case = Case("openai-chat", ((sse(*chunks, chunk(finish="stop")) + DONE).encode(),))
    with Bench(target(refuses(b"39 "), errors=(StreamError,))) as bench:
        finding = explain(bench, case, bench.deviations(case)[0])
        before = bench.cases
        small = shrink(bench, finding, seconds=5)
        assert bench.cases - before < 500
    assert b"service_tier" not in small.case.data
    assert small.case.data.count(b"data:") == 3


def test_a_text_and_its_end_become_one_event() -> None:
    made = target(refuses("\u00fc".encode()), errors=(StreamError,))
    _, small = found(made, Case("openai-chat", (CAPTURE.encode(),)))
    assert small.case.data.count(b"data:") == 2
    assert '"content":"\u00fc"},"finish_reason":"stop"'.encode() in small.case.data


def test_a_cut_inside_a_character_stays_there_when_events_are_joined() -> None:
    data = CAPTURE.encode()
    at = data.index("\U0001f600".encode()) + 2
    _, small = found(demo(), Case("openai-chat", (data[:at], data[at:])))
    assert small.causes == ("a cut inside a 4-byte character",)
    assert small.case.data.count(b"data:") == 2


@pytest.mark.untraced
def test_indexes_are_closed_up_when_a_block_goes() -> None:
    def last_block(chunks: Iterable[bytes]) -> Any:
        return {"text": "", "finish": "end_turn"} if b"needle" in b"".join(chunks) else {"text": "other"}

    texts = [Text(f"block {n}") for n in range(3)]
    reply = Reply((Choice((*texts, Text("needle")), "end_turn"),), "msg_1", "m", Usage(1, 1))
    events = get("anthropic").plain_events(reply)
    data = get("anthropic").framing.encode(payloads(events, PLAIN), PLAIN)
    made = target(last_block, provider="anthropic")
    with Bench(made) as bench:
        case = Case("anthropic", (data,))
        (deviation,) = (d for d in bench.deviations(case) if d.oracle == "faithful")
        small = shrink(bench, explain(bench, case, deviation), seconds=5)
        assert bench.run(small.case).judgement.breaches == ()
    assert small.causes == ("more than one block",)
    assert small.case.data.count(b"event: content_block_start") == 2
    assert b'"index":1' in small.case.data
    assert b'"index":2' not in small.case.data


def test_data_over_several_lines_stays_so() -> None:
    folded = CAPTURE.replace('"choices"', '\ndata: "choices"').replace(', "usage"', ',\ndata: "usage"')

    def unfolded(chunks: Iterable[bytes]) -> Any:
        whole = b"".join(chunks)
        if b"\ndata: " in whole.replace(b"\n\ndata: ", b""):
            raise StreamError("cannot read this")
        return repaired([whole])

    _, small = found(target(unfolded, errors=(StreamError,)), Case("openai-chat", (folded.encode(),)))
    assert small.causes == ("data over several lines",)
    assert small.case.data.count(b"\ndata: ") == small.case.data.count(b"\n\ndata: ") + 1


def test_json_inside_a_text_shrinks_and_stays_json() -> None:
    call = {
        "index": 0,
        "id": "c",
        "type": "function",
        "function": {"name": "f", "arguments": '{"q": "\u2028", "n": 5}'},
    }
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    data = sse({**chunk(), "choices": [choice]}) + DONE
    _, small = found(target(refuses("\u2028".encode()), errors=(StreamError,)), Case("openai-chat", (data.encode(),)))
    assert '{\\"\\":\\"\u2028\\"}'.encode() in small.case.data


# --- other forms


def test_text_shrinks() -> None:
    def parser(chunks: Iterable[str]) -> Any:
        return refuses(b"Z")([piece.encode() for piece in chunks])

    made = target(parser, takes="text", errors=(StreamError,))
    finding, small = found(made, Case("openai-chat", (CAPTURE[:50], CAPTURE[50:]), "text"))
    assert small.case.size < finding.case.size / 2
    assert "Z" in "".join(small.case.chunks)


def test_events_shrink() -> None:
    def parser(events: Iterable[Event]) -> Any:
        payloads = [event.data for event in events]
        if any("fine" in str(payload) for payload in payloads):
            raise StreamError("cannot read this")
        return repaired([(sse(*payloads) + DONE).encode()])

    events = tuple(Event(e) for e in (chunk("fi"), chunk("ne"), chunk("fine."), chunk(" a"), chunk(finish="stop")))
    finding, small = found(target(parser, takes="events", errors=(StreamError,)), Case("openai-chat", events, "events"))
    assert small.case.size < finding.case.size
    assert len(small.case.chunks) < len(events)
    assert "fine" in str(small.case.chunks)


def test_the_second_stream_of_a_probe_stays() -> None:
    class Shared:
        seen: tuple[bytes, ...] = ()

        @classmethod
        def read(cls, chunks: Iterable[bytes]) -> Any:
            cls.seen = ()
            for piece in chunks:
                cls.seen += (piece,)
            return repaired(cls.seen)

    data, other = CAPTURE.encode(), CAPTURE.replace("weather", "answer").encode()
    frames = tuple(frame + b"\n\n" for frame in data.split(b"\n\n")[:-1])
    made = target(Shared.read, errors=(StreamError,))
    finding, small = found(made, Case("openai-chat", frames, probe="isolated", other=(other,)))
    assert small.deviation.oracle == "isolated"
    assert small.case.size <= finding.case.size
    assert still_fails(made, small)


# --- limits


def test_shrinking_ends_in_time() -> None:
    def slow(chunks: Iterable[bytes]) -> Any:
        time.sleep(0.01)
        return refuses(b"Z")(chunks)

    case = Case("openai-chat", (CAPTURE.encode(),))
    with Bench(target(slow, errors=(StreamError,))) as bench:
        finding = explain(bench, case, bench.deviations(case)[0])
        started = time.perf_counter()
        small = shrink(bench, finding, seconds=0.3)
        assert time.perf_counter() - started < 3
    assert small.case.size <= finding.case.size


def test_without_time_nothing_changes() -> None:
    case = Case("openai-chat", (CAPTURE.encode(),))
    with Bench(target(refuses(b"Z"), errors=(StreamError,))) as bench:
        finding = explain(bench, case, bench.deviations(case)[0])
        assert shrink(bench, finding, seconds=0) == finding


@pytest.mark.parametrize(
    "change", [{"flaky": True}, {"case": Case("openai-chat", (), probe="growth-long")}], ids=["flaky", "growth"]
)
def test_what_cannot_be_shrunk_is_handed_back(change: dict[str, Any]) -> None:
    from dataclasses import replace

    case = Case("openai-chat", (CAPTURE.encode(),))
    with Bench(target(refuses(b"Z"), errors=(StreamError,))) as bench:
        finding = replace(explain(bench, case, bench.deviations(case)[0]), **change)
        assert shrink(bench, finding) is finding


@pytest.mark.untraced
@settings(deadline=None, max_examples=5, suppress_health_check=list(HealthCheck))
@given(streams("anthropic", max_parts=1))
def test_any_provider_shrinks(stream: Any) -> None:
    def nothing(chunks: Iterable[bytes]) -> Any:
        return {"text": "never", "finish": "never"}

    made = target(nothing, provider="anthropic")
    with Bench(made) as bench:
        from streamfuzz_strategies.draw import encode

        case = Case("anthropic", (encode(stream),))
        finding = explain(bench, case, bench.deviations(case)[0])
        small = shrink(bench, finding, seconds=0.5)
    assert small.signature == finding.signature
    assert small.case.size <= case.size
