"""Each trigger tells the faulty parser from its repaired twin, and the twin gives what the specification says."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import pytest

from . import decoding, ends, fields
from .blocks import MARK, SSEDecoder
from .pair import Pair

PAIRS = (*decoding.PAIRS, *fields.PAIRS, *ends.PAIRS)
BY_NAME = {pair.name: pair for pair in PAIRS}


def frame(data: str, event: str = "message", id: str = "") -> dict[str, str]:  # noqa: A002
    return {"event": event, "data": data, "id": id}


def reply(text: str, finish: str, id: str | None = None) -> dict[str, Any]:  # noqa: A002
    return {"text": text, "finish": finish, "id": id, "model": None}


EXPECTED: dict[str, Any] = {
    "utf8-per-chunk": [frame("é")],
    "utf8-strict-per-chunk": [frame("é")],
    "utf8-fresh-decoder": reply("🌍", "stop"),
    "utf8-error-escapes": reply("中", "end_turn", "m"),
    "charset-latin1": [frame("é")],
    "unicode-line-ends": [frame("x\x0by")],
    "unicode-line-ends-in-json": reply("a\u2028b", "stop"),
    "crlf-forgotten-between-chunks": [frame("a\nb")],
    "crlf-normalised-per-chunk": reply("", "stop"),
    "only-lf": [frame("a")],
    "blank-line-split": [frame("a")],
    "line-over-two-reads": [frame("ab")],
    "data-without-space": reply("", "stop"),
    "six-characters-cut": [frame("1")],
    "space-before-sentinel": reply("", "stop"),
    "value-stripped": [frame("a ")],
    "leading-tab-stripped": [frame("\ta")],
    "field-without-colon": [frame("")],
    "last-data-line-only": [frame("a\nb")],
    "data-lines-glued": [frame("a\nb")],
    "byte-order-mark-kept": [frame("a")],
    "byte-order-mark-split": [frame("a")],
    "event-name-outlives-block": [frame("b")],
    "field-names-any-case": [],
    "sentinel-inside-text": reply("[DONE]", "stop"),
    "prefix-inside-text": [frame("a data: b")],
    "comment-ends-read": [frame("a")],
    "bare-colon-refused": [],
    "comment-as-data": [],
    "block-without-data": [],
    "event-from-old-id": [frame("a", id="1")],
    "too-many-empty-lines": reply("", "stop"),
    "id-forgotten": [frame("a", id="1"), frame("b", id="1")],
    "ping-before-start": reply("", "end_turn", "m"),
    "record-per-chunk": reply("ab", "stop"),
    "record-split": reply("a", "stop"),
    "values-without-carry": [[]],
    "value-per-chunk": [],
    "long-line-is-end": [frame("a" * 65_536)],
}
"""What the repaired twin makes of its trigger: the frames, events, reply or value."""

REFUSED = {
    "cut-is-stop": "cut before",
    "empty-is-answer": "cut before",
    "cut-is-end-turn": "before message_stop",
    "bad-json-skipped": "not JSON",
    "error-is-end": "Overloaded",
    "error-ignored": "Overloaded",
    "named-error-dropped": "Overloaded",
    "error-before-start": "Overloaded",
    "error-record-is-end": "model cannot be loaded",
    "json-error-escapes": "before message_stop",
}
"""Triggers that the repaired twin refuses, with words of its error."""

MORE = {
    "shared-text-decoder": "isolated",
    "shared-line-buffer": "isolated",
    "source-left-open": "released",
    "source-read-on": "released",
    "events-held-in-block": "incremental",
    "line-scanned-again": "bounded",
    "rest-copied-per-line": "bounded",
}
"""Triggers for invariants that take more than the outcome of one run; each kind has its own test."""


class Source:
    """Chunks that know how many were taken and whether anyone closed them."""

    def __init__(self, chunks: Iterable[Any]) -> None:
        self.chunks = iter(chunks)
        self.taken = 0
        self.closed = False

    def __iter__(self) -> Source:
        return self

    def __next__(self) -> Any:
        chunk = next(self.chunks)
        self.taken += 1
        return chunk

    def close(self) -> None:
        self.closed = True


async def slowly(chunks: Iterable[Any]) -> AsyncIterator[Any]:
    for chunk in chunks:
        await asyncio.sleep(0)
        yield chunk


def run(call: Any, chunks: Iterable[Any]) -> Any:
    """Read the chunks to their end: the result if there is one, else the items."""
    if isinstance(call, type):
        return pushed(call(), chunks)
    if inspect.iscoroutinefunction(call):
        return asyncio.run(call(slowly(chunks)))
    if inspect.isasyncgenfunction(call):
        return asyncio.run(collected(call(slowly(chunks))))
    made = call(Source(chunks))
    return drained(made) if isinstance(made, Iterator) else made


def drained(made: Iterator[Any]) -> Any:
    items = []
    while True:
        try:
            items.append(next(made))
        except StopIteration as stop:
            return items if stop.value is None else stop.value


def pushed(parser: Any, chunks: Iterable[Any]) -> Any:
    items = [item for chunk in chunks for item in parser.feed(chunk)]
    closed = parser.close()
    return closed if isinstance(closed, dict) else [*items, *closed]


async def collected(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


def outcome(call: Any, chunks: Iterable[Any]) -> Any:
    """What comes of the chunks, an error included."""
    try:
        return run(call, chunks)
    except Exception as error:  # noqa: BLE001 - faulty parsers raise anything
        return f"{type(error).__name__}: {error}"


def pairs(names: Iterable[str]) -> list[Any]:
    return [pytest.param(BY_NAME[name], id=name) for name in names]


def of_kind(oracle: str) -> list[Any]:
    return pairs(name for name, kind in MORE.items() if kind == oracle)


def test_every_pair_is_tested() -> None:
    assert len(BY_NAME) == len(PAIRS) >= 26
    assert sorted(BY_NAME) == sorted([*EXPECTED, *REFUSED, *MORE])
    assert all(BY_NAME[name].oracle == oracle for name, oracle in MORE.items())


@pytest.mark.parametrize("pair", pairs(EXPECTED))
def test_repaired_twin_reads_its_trigger(pair: Pair) -> None:
    assert run(pair.repaired, pair.trigger) == EXPECTED[pair.name]


@pytest.mark.parametrize("pair", pairs(REFUSED))
def test_repaired_twin_refuses_its_trigger(pair: Pair) -> None:
    with pytest.raises(pair.errors, match=REFUSED[pair.name]):
        run(pair.repaired, pair.trigger)


@pytest.mark.parametrize("pair", pairs([*EXPECTED, *REFUSED]))
def test_faulty_parser_differs_on_its_trigger(pair: Pair) -> None:
    assert outcome(pair.faulty, pair.trigger) != outcome(pair.repaired, pair.trigger)


@pytest.mark.parametrize("pair", pairs(name for name in BY_NAME if BY_NAME[name].oracle == "fragmentation"))
def test_faulty_parser_is_right_about_the_whole(pair: Pair) -> None:
    whole = ("" if pair.takes == "text" else b"").join(pair.trigger)
    assert run(pair.faulty, [whole]) == EXPECTED[pair.name]


@pytest.mark.parametrize("pair", pairs(name for name in BY_NAME if BY_NAME[name].oracle == "typed_error"))
def test_faulty_parser_raises_what_it_never_declared(pair: Pair) -> None:
    with pytest.raises(ValueError, match="Expecting value") as caught:
        run(pair.faulty, pair.trigger)
    assert not isinstance(caught.value, pair.errors)


@pytest.mark.parametrize("pair", pairs([*EXPECTED, *REFUSED]))
def test_repaired_twin_does_not_care_about_cuts(pair: Pair) -> None:
    empty = "" if pair.takes == "text" else b""
    whole = empty.join(pair.trigger)
    if len(whole) > 1000:
        pytest.skip("too long for every cut")
    wanted = outcome(pair.repaired, [whole])
    assert outcome(pair.repaired, [whole[i : i + 1] for i in range(len(whole))]) == wanted
    for at in range(len(whole) + 1):
        assert outcome(pair.repaired, [whole[:at], empty, whole[at:]]) == wanted


@pytest.mark.parametrize("pair", of_kind("isolated"))
def test_only_the_repaired_twin_keeps_streams_apart(pair: Pair) -> None:
    def second(call: Any) -> Any:
        broken_off = call(iter(pair.trigger)) if not isinstance(call, type) else None
        if broken_off is not None:
            drained(broken_off)
        else:
            list(call().feed(pair.trigger[0]))
        return run(call, [b"data: a\n\n" if pair.provider == "sse" else b"2\n"])

    wanted = [frame("a")] if pair.provider == "sse" else [{"data": "2"}]
    assert second(pair.repaired) == wanted
    assert second(pair.faulty) != wanted


@pytest.mark.parametrize("pair", of_kind("released"))
def test_only_the_repaired_twin_lets_go_of_its_source(pair: Pair) -> None:
    def after_close(call: Any) -> tuple[bool, int]:
        source = Source(pair.trigger)
        made = call(source)
        assert next(made) == frame("a")
        made.close()
        return source.closed, source.taken

    assert after_close(pair.repaired) == (True, 1)
    assert after_close(pair.faulty) != (True, 1)


@pytest.mark.parametrize("pair", of_kind("incremental"))
def test_only_the_repaired_twin_gives_events_as_they_come(pair: Pair) -> None:
    def taken_by_each(call: Any) -> list[int]:
        source = Source(pair.trigger)
        return [source.taken for _ in call(source)]

    assert taken_by_each(pair.repaired) == [1, 2]
    assert taken_by_each(pair.faulty) == [2, 2]


@pytest.mark.parametrize("pair", of_kind("bounded"))
def test_only_the_repaired_twin_is_linear(pair: Pair) -> None:
    wanted = run(SSEDecoder, [b"".join(pair.trigger)])

    def seconds(call: Any) -> float:
        started = time.process_time()
        assert run(call, pair.trigger) == wanted
        return time.process_time() - started

    # A tracer and a busy machine make both slower by the same, so the ratio smaller.
    assert min(seconds(pair.faulty) for _ in range(3)) > 1.5 * min(seconds(pair.repaired) for _ in range(3))


def test_decoder_follows_the_examples_of_the_standard() -> None:
    text = (
        f"{MARK}: test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
        "data\n\ndata\ndata\n\nevent: add\ndata: 1\r\rid: a\0b\ndata: 2\n\nretry: 1\n\ndata: lost"
    )
    wanted = [
        frame("first event", id="1"),
        frame("second event"),
        frame(" third event"),
        frame(""),
        frame("\n"),
        frame("1", "add"),
        frame("2"),
    ]
    assert run(SSEDecoder, [text.encode()]) == wanted
    assert run(SSEDecoder, [bytes([byte]) for byte in text.encode()]) == wanted
