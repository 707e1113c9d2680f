"""Experiments of more than one run: each tells its planted fault from a sound target."""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from streamfuzz import probes
from streamfuzz.case import Case
from streamfuzz.demo import StreamError, _payloads, repaired
from streamfuzz.deviation import Deviation
from streamfuzz.drive import Driver
from streamfuzz.finding import describe
from streamfuzz.spec import Target, target
from streamfuzz_strategies.framing.sse import SSEDecoder
from streamfuzz_strategies.judge import judge
from streamfuzz_strategies.providers import NAMES, get
from streamfuzz_strategies.reply import Choice, Reply, Text, ToolCall, view
from streamfuzz_strategies.stream import payloads
from streamfuzz_strategies.style import PLAIN

CHAT = get("openai-chat")


def stream(text: str, *parts: Any, finish: str = "stop") -> tuple[bytes, ...]:
    """A chat completion, one event a chunk."""
    events = CHAT.plain_events(Reply((Choice((Text(text), *parts), finish),), "id", "m"))
    return tuple(CHAT.framing.encode([pair], PLAIN) for pair in payloads(events, PLAIN))


ONE, OTHER = stream("one"), stream("other")


def probed(made: Target, probe: str, chunks: Sequence[Any] = ONE, other: Sequence[Any] = ()) -> list[Deviation]:
    case = Case(made.provider, tuple(chunks), made.takes, "eof", probe, tuple(other))
    with Driver(made) as driver:
        return probes.run(driver, get(made.provider), case)


def chat(call: Callable[..., Any], **more: Any) -> Target:
    return target(call, errors=(StreamError,), **more)


def whats(deviations: list[Deviation]) -> list[tuple[str, str]]:
    return [(deviation.oracle, deviation.what) for deviation in deviations]


# --- isolated


def leaking(*, afterwards: bool) -> Callable[..., Any]:
    kept: list[bytes] = []

    def parser(chunks: Iterable[bytes]) -> Any:
        if not afterwards:
            kept.clear()
        for chunk in chunks:
            kept.append(chunk)
        whole = list(kept)
        if b"[DONE]" in b"".join(whole):
            kept.clear()
        return repaired(whole)

    return parser


def test_state_left_by_a_stream_that_was_cut_off_is_found() -> None:
    found = probed(chat(leaking(afterwards=True)), "isolated", ONE, OTHER)
    assert whats(found) == [("isolated", "a stream read after one that was cut off")]


def test_state_shared_with_an_open_stream_is_found() -> None:
    found = probed(chat(leaking(afterwards=False)), "isolated", ONE, OTHER)
    assert whats(found) == [("isolated", "a stream during which another one is read")]


def test_a_stream_that_takes_from_an_open_one_is_found() -> None:
    opened: list[bool] = []

    def parser(chunks: Iterable[bytes]) -> Any:
        if opened:
            raise StreamError("busy")
        opened.append(True)
        try:
            return repaired(list(chunks))
        finally:
            opened.clear()

    found = probed(chat(parser), "isolated", ONE, OTHER)
    assert whats(found) == [("isolated", "a stream read while another one is open")]
    assert found[0].got == "StreamError: busy"


def test_streams_apart_stay_apart() -> None:
    assert probed(chat(repaired), "isolated", ONE, OTHER) == []
    assert probed(chat(repaired), "isolated", ONE, ONE) == []

    async def parser(chunks: Any) -> Any:
        return repaired([chunk async for chunk in chunks])

    assert probed(chat(parser), "isolated", ONE, OTHER) == []


def test_a_target_that_never_agrees_with_itself_is_not_judged() -> None:
    runs: list[int] = []

    def parser(chunks: Iterable[bytes]) -> Any:
        runs.append(1)
        return {"text": str(len(runs))}

    assert probed(chat(parser), "isolated", ONE, OTHER) == []


# --- released


def frames(chunks: Iterable[bytes]) -> Any:
    decoder = SSEDecoder()
    for chunk in chunks:
        yield from decoder.feed(chunk)


def closing(chunks: Any) -> Any:
    try:
        yield from frames(chunks)
    finally:
        chunks.close()


def draining(chunks: Any) -> Any:
    try:
        yield from frames(chunks)
    finally:
        list(chunks)


def failing(chunks: Any) -> Any:
    try:
        yield from frames(chunks)
    except GeneratorExit:
        raise KeyError("lock") from None


class Deaf:
    """An iterator that goes on after it was closed."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.made = frames(chunks)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self.made)

    def close(self) -> None:
        pass


FRAMES = tuple(b"data: %d\n\n" % number for number in range(6))


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (frames, "the source, left open after closing"),
        (draining, "the source, read on after closing"),
        (failing, "closing"),
        (Deaf, "an item delivered after closing"),
    ],
)
def test_what_does_not_let_go_is_found(call: Callable[..., Any], what: str) -> None:
    made = target(call, provider="sse", closes_source=True)
    assert whats(probed(made, "released", FRAMES)) == [("released", what)]


def test_what_lets_go_is_not() -> None:
    assert probed(target(closing, provider="sse", closes_source=True), "released", FRAMES) == []
    assert probed(target(frames, provider="sse"), "released", FRAMES) == []


@pytest.mark.parametrize("call", [lambda chunks: list(frames(chunks)), lambda chunks: iter(list(frames(chunks)))])
def test_what_cannot_be_closed_is_not_asked_to(call: Callable[..., Any]) -> None:
    assert probed(target(call, provider="sse", closes_source=True), "released", FRAMES) == []


def test_a_stream_too_short_to_be_left_is_not_judged() -> None:
    assert probed(target(draining, provider="sse", closes_source=True), "released", ()) == []


# --- resliced


def pieces(*texts: str) -> tuple[bytes, ...]:
    whole = b"".join(stream("@"))
    head, delta, tail = whole.partition(next(c for c in stream("@") if b"@" in c))
    return (head, *(delta.replace(b"@", text.encode()) for text in texts), tail)


def counting(chunks: Iterable[bytes]) -> Any:
    kept = list(chunks)
    return {**repaired(kept), "deltas": sum(1 for _ in _payloads(kept))}


def test_two_results_for_one_message_are_found() -> None:
    found = probed(chat(counting), "resliced", pieces("ab"), pieces("a", "b"))
    assert whats(found) == [("resliced", "the deltas")]


def test_one_result_for_one_message_is_right() -> None:
    assert probed(chat(repaired), "resliced", pieces("ab"), pieces("a", "b")) == []
    assert probed(target(frames, provider="sse"), "resliced", FRAMES, FRAMES) == []


def test_what_is_wrong_altogether_is_left_to_faithful() -> None:
    def last_delta_only(chunks: Iterable[bytes]) -> Any:
        return {**repaired(chunks), "text": "b"}

    assert probed(chat(last_delta_only), "resliced", pieces("ab"), pieces("a", "b")) == []


# --- parity


def whole(body: Any) -> Any:
    choice = body["choices"][0]
    calls = [{"id": call["id"], **call["function"]} for call in choice["message"].get("tool_calls") or ()]
    return {"text": choice["message"]["content"], "tool_calls": calls, "finish": choice["finish_reason"]}


CALL = ToolCall("t", "f", '{"a": 1}')


@pytest.mark.parametrize(
    ("buffered", "what"),
    [
        (lambda body: {**whole(body), "tool_calls": []}, "the tool_calls"),
        (lambda body: {**whole(body), "text": ""}, "the text"),
        (lambda body: 7, "the answer that was not streamed"),
        (lambda body: body["choice"], "the answer that was not streamed"),
    ],
)
def test_a_buffered_answer_that_differs_is_found(buffered: Callable[[Any], Any], what: str) -> None:
    made = chat(repaired, whole=buffered)
    assert whats(probed(made, "parity", stream("a", CALL, finish="tool_calls"))) == [("parity", what)]


def test_a_buffered_answer_that_is_the_same_is_right() -> None:
    chunks = stream("a", CALL, finish="tool_calls")
    assert probed(chat(repaired, whole=whole), "parity", chunks) == []
    assert probed(chat(repaired, whole=lambda body: {"text": "a"}), "parity", chunks) == []
    assert probed(chat(repaired), "parity", chunks) == []
    assert probed(chat(repaired, whole=lambda body: 7), "parity", chunks[:-2]) == []


# --- growth

GROWTH = ("growth-long", "growth-many")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("texts", [["x" * 3000], ["ab"] * 200])
def test_long_streams_are_complete_and_as_long_as_asked(name: str, texts: list[str]) -> None:
    content = probes._stream(get(name), texts)
    judgement = judge(get(name), content)
    assert len(content) > len("".join(texts))
    assert judgement.level == "none", judgement.breaches
    if name not in ("sse", "ndjson", "json"):
        assert view(judgement.accepted[0])["choices"][0]["text"] == "".join(texts)


def quadratic(chunks: Iterable[bytes]) -> Any:
    whole = b""
    for chunk in chunks:
        whole += chunk
        whole.upper()
    yield from frames([whole])


def test_time_that_grows_with_the_square_is_found() -> None:
    found = probed(target(quadratic, provider="sse", timeout=20), "growth-long", ())
    assert [(deviation.oracle, deviation.kind) for deviation in found] == [("bounded", "slow")]
    assert "times the bytes took" in str(found[0].got)


def test_a_limit_on_the_length_of_a_line_is_found() -> None:
    def limited(chunks: Iterable[bytes]) -> Any:
        return (frame for frame in frames(chunks) if len(frame.data) < 65_536)

    assert [d.kind for d in probed(target(limited, provider="sse"), "growth-long", ())] == ["lost"]


@pytest.mark.parametrize("probe", GROWTH)
@pytest.mark.parametrize("provider", ["sse", "openai-chat"])
def test_time_in_proportion_is_right(probe: str, provider: str) -> None:
    made = target(frames, provider="sse") if provider == "sse" else chat(repaired)
    assert probed(made, probe, ()) == []


@pytest.mark.parametrize("probe", GROWTH)
def test_a_hang_on_a_long_stream_is_found(probe: str) -> None:
    def hangs(chunks: Iterable[bytes]) -> Any:
        data = b"".join(chunks)
        while len(data) > 10_000:
            pass
        return list(frames([data]))

    found = probed(target(hangs, provider="sse", timeout=0.2), probe, ())
    assert [(deviation.oracle, deviation.kind) for deviation in found] == [("bounded", "hung")]


# --- leak


def keeping(keep: Callable[[bytes], Any]) -> Target:
    def parser(chunks: Iterable[bytes]) -> Any:
        data = b"".join(chunks)
        keep(data)
        return repaired([data])

    return chat(parser)


class Knot:
    def __init__(self, data: bytes) -> None:
        self.data, self.me = data, self


@pytest.mark.parametrize(
    "kept",
    [
        lambda kept, data: kept.append(bytearray(data)),
        lambda kept, data: kept.append([object() for _ in range(20)]),
        lambda kept, data: kept.append(Knot(bytearray(data))),
    ],
)
def test_memory_that_is_kept_of_every_stream_is_a_leak(kept: Callable[[list[Any], bytes], Any]) -> None:
    store: list[Any] = []
    found = probed(keeping(lambda data: kept(store, data)), "leak")
    assert [(deviation.oracle, deviation.kind) for deviation in found] == [("bounded", "leaked")]
    assert isinstance(found[0].got, int)
    assert found[0].got > 60


def cache(size: int) -> Callable[[bytes], Any]:
    filled: deque[bytes] = deque(maxlen=size)
    return lambda data: filled.append(bytes(bytearray(data)))


@pytest.mark.parametrize(
    "keep",
    [
        lambda data: None,
        Knot,
        lambda data: sys.intern(data.decode()),
        cache(128),
        cache(500),
        set().add,
        lambda data, count=[0]: count.append(count.pop() + 1),
    ],
)
def test_caches_cycles_and_counts_are_no_leak(keep: Callable[[bytes], Any]) -> None:
    assert probed(keeping(keep), "leak") == []


def test_async_targets_are_asked_too() -> None:
    store: list[Any] = []

    async def sound(chunks: Any) -> Any:
        return repaired([chunk async for chunk in chunks])

    async def leaks(chunks: Any) -> Any:
        store.append([chunk async for chunk in chunks] + [bytearray(500)])
        return repaired(store[-1][:-1])

    assert probed(chat(sound), "leak") == []
    assert [deviation.kind for deviation in probed(chat(leaks), "leak")] == ["leaked"]


def test_slow_targets_are_not_asked_for_leaks() -> None:
    store: list[Any] = []

    def slow(data: bytes) -> None:
        time.sleep(0.025)
        store.append(bytearray(data))

    assert probed(keeping(slow), "leak") == []
    assert len(store) == 1


def test_tracing_that_was_on_stays_on() -> None:
    tracemalloc.start()
    try:
        assert probed(chat(repaired), "leak") == []
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    assert probed(chat(repaired), "leak") == []
    assert not tracemalloc.is_tracing()


def test_a_leak_is_said_in_a_sentence() -> None:
    store: list[Any] = []
    found = probed(keeping(lambda data: store.append(bytearray(data))), "leak")
    assert describe("mine", found[0]).startswith(
        "mine does not let go: memory, in bytes kept of every stream that was read: "
    )
