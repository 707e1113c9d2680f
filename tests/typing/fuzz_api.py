"""The public face of streamfuzz as its users' type checkers see it.  Checked, never run.

One function for each thing that users do; ``assert_type`` states what the checker must infer.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, Literal, assert_type

import streamfuzz
from streamfuzz import (
    Budget,
    Case,
    CaseFile,
    Delta,
    Final,
    Finding,
    FuzzFailure,
    Incomplete,
    Known,
    Release,
    Reported,
    Result,
    Snapshot,
    Target,
    UsageError,
    fuzz_test,
    run,
    target,
)

Call = dict[str, str]
View = dict[str, str | list[Call] | None]


class StreamError(Exception): ...


def parse(chunks: Iterable[bytes]) -> View:
    return {"text": b"".join(chunks).decode(), "finish": None}


def parse_slowly(chunks: Iterable[bytes]) -> Generator[Delta | Snapshot | Release | Final | str, None, View]:
    yield "text"
    yield Delta("hm", field="reasoning")
    yield Snapshot({"text": "so far"})
    yield Release({"id": "1", "name": "look_up", "arguments": "{}"})
    yield Final({"text": "all"})
    return parse(chunks)


def may_be_cut_off(chunks: Iterable[bytes]) -> View | Incomplete:
    return Incomplete({"text": "half"}) if not list(chunks) else Incomplete()


def decode(chunks: Iterable[str]) -> Iterator[dict[str, str]]:
    yield from ({"data": chunk} for chunk in chunks)


async def parse_async(chunks: AsyncIterable[bytes]) -> View:
    return parse([chunk async for chunk in chunks])


async def decode_async(chunks: AsyncIterable[bytes]) -> AsyncIterator[dict[str, str]]:
    async for chunk in chunks:
        yield {"data": chunk.decode()}


class Parser:
    def feed(self, chunk: bytes) -> list[str]:
        return [chunk.decode()]

    def close(self) -> View:
        return {}


def every_shape() -> list[Target]:
    made = [
        target(parse),
        target(parse_slowly, provider="anthropic", errors=(StreamError,)),
        target(may_be_cut_off),
        target(decode, provider="sse", takes="text", gives="frames", shape="iterable"),
        target(parse_async, timeout=0.5, closes_source=True),
        target(decode_async, provider="sse"),
        target(Parser, name="mine", shape="push", whole=parse),
        target(parse, dialects=("azure", "vllm")),
        Target("mine", parse, "openai-chat", "bytes", "reply"),
    ]
    assert_type(made[0], Target)
    assert_type(made[0].takes, Literal["bytes", "text", "frames", "events", "reply", "json"])
    assert_type(made[0].shape, Literal["iterable", "async", "push"])
    assert_type(made[0].errors, tuple[type[BaseException], ...])
    return made


def search(made: Target) -> int:
    known = (Known("faithful.lost: a comment", "waits for upstream", date(2027, 6, 30)),)
    excused = target(parse, known=known)
    budget = Budget(seconds=60.0, cases=None, seed=7, tools={"now": {"type": "object"}}, alphabet="ab")
    try:
        result = run(excused, budget, oracles=("faithful",), folder=Path("found"), tell=print)
    except UsageError as error:
        raise SystemExit(str(error)) from None
    assert_type(run(made), Result)
    assert_type(result.findings, list[Reported])
    assert_type(result.goals, Counter[str])
    assert_type(result.gone, tuple[Known, ...])
    assert_type(result.interrupted, bool)
    return result.exit_code


def what_was_found(result: Result) -> list[CaseFile]:
    for reported in result.findings:
        assert_type(reported.finding, Finding)
        assert_type(reported.finding.signature, str)
        assert_type(reported.finding.causes, tuple[str, ...])
        assert_type(reported.finding.case, Case)
        assert_type(reported.path, str | None)
        assert_type(reported.status, Literal["new", "back", "again", "known", "expired"])
        assert_type(reported.known, Known | None)
    case = Case("sse", (b"data: a\n", b"\n"), takes="bytes", end="reset")
    assert_type(case.data, bytes)
    assert_type(CaseFile(case).name, str)
    return [CaseFile(case, "a comment is lost")]


def as_a_test() -> Callable[[], None]:
    test = fuzz_test(parse, provider="anthropic", errors=(StreamError,), cases=100, seconds=1.5, folder="found")
    assert_type(test, Callable[[], None])
    assert_type(streamfuzz.fuzz_test(target(parse)), Callable[[], None])
    try:
        test()
    except FuzzFailure as failure:
        assert_type(failure.args, tuple[Any, ...])
    return test


def what_the_checker_refuses() -> None:
    """For both checkers an ignore that is not needed is an error, so each of these lines must be one."""
    target(parse, takes="words")  # type: ignore[arg-type]
    target(parse, errors=StreamError)  # type: ignore[arg-type]
    target(3)  # type: ignore[arg-type]
    Budget(second=3)  # type: ignore[call-arg]
    run(parse)  # type: ignore[arg-type]
