"""Dialects: each carries the same message, alone and after any other, and breaks no rule but those it owns up to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from streamfuzz.engines.sweep import draw_batch
from streamfuzz_strategies import dialects
from streamfuzz_strategies.dialects import DIALECTS, Dialect, of, speak
from streamfuzz_strategies.draw import streams
from streamfuzz_strategies.judge import Judgement, judge
from streamfuzz_strategies.mutations import encode
from streamfuzz_strategies.providers import NAMES, get
from streamfuzz_strategies.providers.base import reduce
from streamfuzz_strategies.reply import Choice, Reasoning, Reply, Text, ToolCall, Usage
from streamfuzz_strategies.stream import Event, Stream

DOCS = Path(__file__).parents[2] / "docs" / "dialects.md"

every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: f"{dialect.provider}-{dialect.name}")
every_provider = pytest.mark.parametrize("provider", [name for name in NAMES if of(name)])


@cache
def drawn(provider: str, count: int, *, styled: bool) -> Sequence[Stream]:
    return draw_batch(streams(provider, styled=styled), count, 11)


def judged(stream: Stream) -> Judgement:
    return judge(get(stream.provider), encode(get(stream.provider), stream))


def broken(judgement: Judgement) -> set[str]:
    return {breach.rule.id for breach in judgement.breaches}


# --- the message


@every_dialect
def test_a_dialect_carries_the_same_message(dialect: Dialect) -> None:
    for stream in drawn(dialect.provider, 60, styled=True):
        spoken = speak(stream, [dialect.name])
        assert reduce(get(stream.provider), spoken.events) == stream.reply
        assert stream.reply in judged(spoken).accepted


@pytest.mark.untraced
@every_provider
def test_any_two_dialects_carry_the_same_message(provider: str) -> None:
    for names in permutations(of(provider), 2):
        for stream in drawn(provider, 8, styled=True):
            assert stream.reply in judged(speak(stream, names)).accepted, names


@every_provider
def test_all_dialects_together_carry_the_same_message(provider: str) -> None:
    for names in (tuple(of(provider)), tuple(of(provider))[::-1]):
        for stream in drawn(provider, 60, styled=True):
            assert stream.reply in judged(speak(stream, names)).accepted


@every_dialect
def test_a_dialect_breaks_the_rules_that_it_says_and_no_other(dialect: Dialect) -> None:
    found: set[str] = set()
    for stream in drawn(dialect.provider, 150, styled=False):
        found |= broken(judged(speak(stream, [dialect.name]))) - broken(judged(stream))
    assert found == {rule.id for rule in dialect.breaks}
    assert all(rule.level == "may" for rule in dialect.breaks)


@every_dialect
def test_a_dialect_is_heard(dialect: Dialect) -> None:
    assert any(speak(stream, [dialect.name]) != stream for stream in drawn(dialect.provider, 60, styled=True))


# --- what it looks like on the wire

ANSWER = Reply(
    (Choice((Reasoning("hm"), Text("hi"), ToolCall("a", "f", "{}"), ToolCall("b", "g", "[]")), "tool_calls"),),
    "c",
    "m",
    Usage(3, 4),
)


def chat(*names: str) -> list[Any]:
    """The payloads of a plain answer in dialects of chat completions."""
    stream = Stream("openai-chat", get("openai-chat").plain_events(ANSWER), ANSWER)
    return [event.data for event in speak(stream, names).events]


def said(payloads: Sequence[Any], read: Callable[[Any], Any]) -> list[Any]:
    """What is read of each choice."""
    return [read(choice) for data in payloads if isinstance(data, dict) for choice in data.get("choices") or ()]


def calls(payloads: Sequence[Any]) -> list[tuple[Any, Any]]:
    found = said(payloads, lambda choice: choice["delta"].get("tool_calls") or [])
    return [(call.get("index"), call.get("id")) for pieces in found for call in pieces]


def test_calls_that_share_an_index() -> None:
    assert calls(chat()) == [(0, "a"), (1, "b")]
    assert calls(chat("tgi")) == calls(chat("ollama")) == [(0, "a"), (0, "b")]


def test_calls_without_an_index() -> None:
    assert calls(chat("gemini")) == calls(chat("mistral")) == [(None, "a"), (None, "b")]


def test_a_call_in_pieces_comes_whole() -> None:
    function = [{"name": "f", "arguments": "{"}, {"arguments": "}"}]
    pieces = [{"index": 0, "id": "a", "function": function[0]}, {"index": 0, "function": function[1]}]
    events = tuple(Event({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]}) for piece in pieces)
    spoken = speak(Stream("openai-chat", events), ["xai"])
    whole = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    assert spoken.events == (Event({"choices": [{"index": 0, "delta": {"tool_calls": [whole]}}]}),)


def test_a_piece_that_continues_a_call_repeats_its_id_or_has_an_empty_one() -> None:
    pieces = [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}, {"index": 0, "function": {}}]
    stream = Stream("openai-chat", (Event({"choices": [{"index": 0, "delta": {"tool_calls": pieces}}]}),))
    assert [calls([speak(stream, [name]).events[0].data]) for name in ("tgi", "qwen")] == [
        [(0, "a"), (0, "a")],
        [(0, "a"), (0, "")],
    ]


def test_the_finish_reason_is_on_the_last_delta() -> None:
    assert said(chat(), lambda choice: choice["finish_reason"])[-2:] == [None, "tool_calls"]
    last = said(chat("vllm"), lambda choice: (choice["finish_reason"], bool(choice["delta"].get("tool_calls"))))
    assert last[-2:] == [(None, True), ("tool_calls", True)]


def test_the_finish_reason_that_is_none_yet_is_empty_or_missing() -> None:
    empty = said(chat("sglang-empty-finish"), lambda choice: choice["finish_reason"])
    missing = said(chat("xai"), lambda choice: choice.get("finish_reason", "missing"))
    assert set(empty[:-1]) == {""}
    assert set(missing[:-1]) == {"missing"}
    assert empty[-1] == missing[-1] == "tool_calls"


def test_the_usage_moves() -> None:
    def where(*names: str) -> list[Any]:
        return [(bool(data["choices"]), data["usage"]["completion_tokens"]) for data in told(chat(*names))]

    def told(payloads: Sequence[Any]) -> list[Any]:
        return [data for data in payloads if isinstance(data, dict) and data.get("usage")]

    assert where() == [(False, 4)]
    assert where("deepseek") == where("openrouter") == [(True, 4)]
    assert where("openrouter-null-choices") == [(False, 4)]
    assert where("vllm-continuous-usage")[-2:] == [(True, 4), (False, 4)]
    ramp = [count for _, count in where("perplexity")]
    assert ramp == sorted(ramp)
    assert len(ramp) == len(chat()) - 2
    assert ramp[-1] == 4


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["deepseek"], {"reasoning_content": "hm", "content": None}),
        (["groq"], {"reasoning": "hm"}),
        (["magistral"], {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
        (["openrouter", "deepseek"], {"reasoning_content": "hm", "content": None}),
    ],
)
def test_thinking_is_told_once_and_where_the_server_tells_it(names: list[str], expected: Any) -> None:
    assert said(chat(*names), lambda choice: choice["delta"])[1] == expected


def test_responses_without_numbers_and_indexes() -> None:
    stream = drawn("openai-responses", 60, styled=False)[0]
    spoken = [event.data for event in speak(stream, ["llama-cpp"]).events]
    assert not any("sequence_number" in data for data in spoken)
    assert not any("output_index" in data for data in spoken if data["type"].endswith(".done"))


# --- the table


def test_names_are_unique_and_every_dialect_says_what_it_is_and_where_that_was_read() -> None:
    assert len({(dialect.provider, dialect.name) for dialect in DIALECTS}) == len(DIALECTS)
    for dialect in DIALECTS:
        assert dialect.provider in NAMES
        assert dialect.source.startswith("https://")
        assert dialect.title
        assert not dialect.title.endswith(".")


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(KeyError, match="klingon"):
        speak(drawn("openai-chat", 8, styled=True)[0], ["klingon"])


def test_no_dialect_leaves_the_stream_as_it_is() -> None:
    stream = drawn("openai-chat", 8, styled=True)[0]
    assert speak(stream, ()) == stream


def table() -> str:
    rows = ["| of | `--dialect` | what is different | breaks | source |", "|---|---|---|---|---|"]
    for dialect in dialects.DIALECTS:
        names = ", ".join(f"`{rule.id}`" for rule in dialect.breaks)
        rows.append(f"| {dialect.provider} | `{dialect.name}` | {dialect.title} | {names} | <{dialect.source}> |")
    return "\n".join(rows) + "\n"


def test_the_docs_list_every_dialect() -> None:
    assert DOCS.read_text(encoding="utf-8").endswith("\n\n" + table())
