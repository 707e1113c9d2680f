"""Each pair's trigger: the repaired twin reads it as worked out by hand, the faulty one does not."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from streamfuzz import Final, Incomplete, Release

from . import partial_json, shapes, terminals, tools
from .pair import Pair

PAIRS = {pair.name: pair for module in (tools, terminals, shapes, partial_json) for pair in module.PAIRS}


def outcome(call: Any, chunks: Iterable[Any]) -> tuple[list[Any], Any]:
    """Run code under test in its own shape: what it showed, and its result or the error that it raised."""
    shown: list[Any] = []
    try:
        return shown, _run(call, chunks, shown)
    except Exception as error:  # noqa: BLE001 - whatever it raises is its outcome
        return shown, error


def _run(call: Any, chunks: Iterable[Any], shown: list[Any]) -> Any:
    if isinstance(call, type):
        parser = call()
        for chunk in chunks:
            shown.extend(parser.feed(chunk) or ())
        return parser.close()
    if inspect.iscoroutinefunction(call):
        return asyncio.run(call(_source(chunks)))
    made = call(iter(chunks))
    if not inspect.isgenerator(made):
        return made
    while True:
        try:
            shown.append(next(made))
        except StopIteration as stop:
            return stop.value


async def _source(chunks: Iterable[Any]) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk


def comparable(found: tuple[list[Any], Any]) -> tuple[list[Any], Any]:
    """An outcome with errors as type and words, so that two of them can be compared."""
    shown, end = found
    return shown, (type(end), str(end)) if isinstance(end, Exception) else end


def call(name: str, arguments: Any, id: str | None) -> dict[str, Any]:  # noqa: A002
    return {"id": id, "name": name, "arguments": arguments}


# What the repaired twin says: the fields of its message that matter, or words of its error.
EXPECTED: dict[str, Any] = {
    "call-index-ignored": {"tool_calls": [call("f", "{}", "a"), call("g", "{}", "b")], "finish": "tool_calls"},
    "call-follows-latest": {"tool_calls": [call("f", "{}", "a"), call("g", "{}", "b")]},
    "calls-shared-by-choices": {
        "choices": [
            {"text": "", "refusal": "", "tool_calls": [call("f", "{}", "a")], "finish": "tool_calls"},
            {"text": "", "refusal": "", "tool_calls": [call("g", "{}", "b")], "finish": "tool_calls"},
        ]
    },
    "one-call-per-chunk": {"tool_calls": [call("f", "{}", "a"), call("g", "{}", "b")]},
    "call-arguments-lost": {"tool_calls": [call("f", '{"x":1}', "a")]},
    "empty-object-skipped": {"tool_calls": [call("f", "{}", "a")]},
    "ollama-calls-collide": {"tool_calls": [call("f", {"x": 1}, None), call("g", {"y": 2}, None)]},
    "call-without-input-dropped": {"tool_calls": [call("f", "{}", "t")], "finish": "tool_use"},
    "empty-input-refused": {"tool_calls": [call("f", "{}", "t")], "finish": "tool_use"},
    "torn-input-repaired": {"tool_calls": [call("f", '{"x":"ab', "t")], "finish": "max_tokens"},
    "arguments-only-when-done": {"tool_calls": [call("f", '{"x":1}', "a")], "finish": "completed"},
    "first-call-takes-all": {"tool_calls": [call("f", '{"x":1}', "a"), call("g", '{"y":2}', "b")]},
    "acts-on-open-block": {"tool_calls": [call("f", "{}", "t")], "finish": "tool_use"},
    "repairs-and-acts": {"tool_calls": [call("f", '{"x":[1,', "a")], "finish": "length"},
    "finish-chunk-text-lost": {"text": "a", "finish": "stop", "id": "c1", "model": "m"},
    "eof-is-stop": "cut",
    "one-finish-is-enough": "cut",
    "unknown-finish-is-stop": {"finish": "content_filter"},
    "undecodable-skipped": "not JSON",
    "finished-twice": None,
    "error-ends-answer": "Overloaded",
    "early-error-masked": "Overloaded",
    "eof-is-end-turn": "cut",
    "stray-index-error": "not open",
    "ollama-error-swallowed": "model failed to load",
    "done-record-unread": {"tool_calls": [call("f", {}, None)], "finish": "stop"},
    "usage-of-completed-only": {"usage": {"input": 3, "output": 9}, "finish": "incomplete:max_output_tokens"},
    "finish-of-completed-only": {"finish": "incomplete:content_filter"},
    "failed-is-completed": "it broke",
    "eof-is-completed": "cut",
    "first-choice-assumed": {"usage": {"input": 3, "output": 9}, "finish": "stop"},
    "null-is-text": {"text": "", "finish": "stop"},
    "text-or-calls": {"text": "a", "tool_calls": [call("f", "{}", "a")]},
    "choices-mixed": {"text": "a", "finish": "stop"},
    "repeated-text-dropped": {"text": "aa", "finish": "stop"},
    "new-event-refused": {"text": "", "finish": "end_turn"},
    "new-block-refused": {"text": "", "finish": "end_turn"},
    "block-index-unread": "out of order",
    "totals-added": {"usage": {"input": 3, "output": 15}},
    "detail-per-delta": {"reasoning": "ab", "details": ["ab"]},
    "whole-without-thinking": {"reasoning": "a", "text": ""},
    "first-record-lost": {"text": "a", "finish": "stop"},
    "thinking-or-content": {"text": "a", "reasoning": "b"},
    "whole-text-appended": {"text": "a", "finish": "completed"},
    "whole-text-shown-again": {"text": "a", "finish": "completed"},
    "cut-json-closed": "not JSON",
    "not-json-is-empty": "not JSON",
    "second-value-unread": "not JSON",
    "number-ends-with-chunk": 12,
    "escape-cut-off": "\n",
    "escape-decoded-by-chunk": "\U0001f600",
    "surrogates-halved": "\U0001f378",
    "last-number-lost": [7, 8],
}
JSON_VALUES = {"escape-cut-off", "escape-decoded-by-chunk", "surrogates-halved"}


def test_every_pair_has_an_expected_outcome() -> None:
    assert set(EXPECTED) == set(PAIRS)
    assert len(PAIRS) == sum(len(module.PAIRS) for module in (tools, terminals, shapes, partial_json))


@pytest.mark.parametrize("name", EXPECTED)
def test_the_repaired_twin_reads_its_trigger_right(name: str) -> None:
    pair, expected = PAIRS[name], EXPECTED[name]
    _, end = outcome(pair.repaired, pair.trigger)
    if isinstance(expected, str) and name not in JSON_VALUES:
        assert isinstance(end, pair.errors)
        assert expected in str(end)
    elif isinstance(expected, dict):
        assert {field: end[field] for field in expected} == expected
    else:
        assert end == expected


# These two end alike and show the same; when, or what else they get wrong, has a test of its own below.
ALIKE = {"acts-on-open-block", "whole-without-thinking"}


@pytest.mark.parametrize("name", sorted(EXPECTED.keys() - ALIKE))
def test_the_faulty_one_differs_on_the_trigger(name: str) -> None:
    pair = PAIRS[name]
    right, wrong = (comparable(outcome(code, pair.trigger)) for code in (pair.repaired, pair.faulty))
    assert wrong != right


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_where_the_trigger_is_damaged_the_faulty_one_trusts_it_and_elsewhere_both_give_a_message(pair: Pair) -> None:
    _, right = outcome(pair.repaired, pair.trigger)
    _, wrong = outcome(pair.faulty, pair.trigger)
    if pair.oracle == "fail_closed":
        assert isinstance(right, pair.errors)
        assert not isinstance(wrong, (Exception, Incomplete))
    elif pair.oracle in ("surfaced_error", "typed_error"):
        assert isinstance(right, pair.errors)
    else:
        assert not isinstance(right, Exception)


@pytest.mark.parametrize("name", [pair.name for pair in PAIRS.values() if pair.oracle == "fragmentation"])
def test_a_fragmentation_bug_is_not_there_when_the_trigger_comes_whole(name: str) -> None:
    pair = PAIRS[name]
    whole = type(pair.trigger[0])().join(pair.trigger)
    assert outcome(pair.faulty, (whole,)) == outcome(pair.repaired, (whole,)) == ([], EXPECTED[name])


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_the_repaired_twin_reads_its_trigger_the_same_however_it_is_cut(pair: Pair) -> None:
    whole = type(pair.trigger[0])().join(pair.trigger)
    empty = whole[:0]
    single = [whole[at : at + 1] for at in range(len(whole))]
    expected = comparable(outcome(pair.repaired, pair.trigger))
    for chunks in ([whole], single, [chunk for one in single for chunk in (one, empty)]):
        assert comparable(outcome(pair.repaired, chunks)) == expected


def test_a_stray_error_is_an_index_error() -> None:
    pair = PAIRS["stray-index-error"]
    assert isinstance(outcome(pair.faulty, pair.trigger)[1], IndexError)


def test_a_masked_error_does_not_say_its_cause() -> None:
    pair = PAIRS["early-error-masked"]
    error = outcome(pair.faulty, pair.trigger)[1]
    assert isinstance(error, pair.errors)
    assert "Overloaded" not in str(error)


def test_text_is_shown_once_and_not_again() -> None:
    pair = PAIRS["whole-text-shown-again"]
    assert outcome(pair.repaired, pair.trigger)[0] == ["a"]
    assert outcome(pair.faulty, pair.trigger)[0] == ["a", "a"]


def test_completion_is_reported_once_by_the_twin_and_twice_by_the_other() -> None:
    pair = PAIRS["finished-twice"]
    (once,), _ = outcome(pair.repaired, pair.trigger)
    twice, _ = outcome(pair.faulty, pair.trigger)
    assert isinstance(once, Final)
    assert once.view["finish"] == "stop"
    assert twice == [once, once]


def test_a_call_is_run_before_its_block_is_closed() -> None:
    pair = PAIRS["acts-on-open-block"]
    until_open = pair.trigger[:3]
    assert outcome(pair.faulty, until_open)[0] == [Release(call("f", "{}", "t"))]
    assert outcome(pair.repaired, until_open)[0] == []
    assert outcome(pair.repaired, pair.trigger)[0] == [Release(call("f", "{}", "t"))]


def test_a_torn_call_is_repaired_and_run() -> None:
    pair = PAIRS["repairs-and-acts"]
    assert outcome(pair.faulty, pair.trigger)[0] == [Release(call("f", '{"x":[1]}', "a"))]
    assert outcome(pair.repaired, pair.trigger)[0] == []


def test_an_answer_that_is_not_streamed_loses_its_thinking() -> None:
    pair = PAIRS["whole-without-thinking"]
    body = {"content": [{"type": "thinking", "thinking": "a"}], "stop_reason": "end_turn"}
    streamed = outcome(pair.repaired, pair.trigger)[1]
    assert pair.repaired.whole(body)["reasoning"] == streamed["reasoning"] == "a"
    assert pair.faulty.whole(body)["reasoning"] == ""
    assert outcome(pair.faulty, pair.trigger) == outcome(pair.repaired, pair.trigger)
