"""Ready targets: every name resolves, every adapter gives exactly what its stream says, the controls are clean."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pytest

from streamfuzz import targets
from streamfuzz.campaign import preflight, run
from streamfuzz.drive import Driver, Source
from streamfuzz.engines import Budget
from streamfuzz.spec import Delta, Target, UsageError
from streamfuzz.trace import Trace
from streamfuzz_strategies import providers
from streamfuzz_strategies.reply import Choice, Json, Reasoning, Reply, Text, ToolCall, Usage
from streamfuzz_strategies.stream import Event, Raw, payloads
from streamfuzz_strategies.style import PLAIN

CONTROLS = tuple(name for name in targets.NAMES if name.startswith("reference-"))
MODULES = {"anthropic", "httpx_sse", "httpx2", "ollama", "openai", "sseclient"}


def adapted(**fields: str) -> list[str]:
    """Names of the targets that drive a library, whose row has these fields."""
    rows = [row._asdict() for row in targets.describe()]
    return [row["name"] for row in rows if row["library"] != "streamfuzz" and fields.items() <= row.items()]


def drive(target: Target, chunks: Sequence[Any]) -> Trace:
    with Driver(target) as driver:
        return driver.run(chunks)


def bytewise(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


# -- the table ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", targets.NAMES)
def test_every_name_resolves_to_a_target_as_its_row_describes_it(name: str) -> None:
    row = next(row for row in targets.describe() if row.name == name)
    target = targets.ready(name)
    assert (target.name, target.provider, target.takes, target.gives) == (name, row.provider, row.takes, row.gives)


@pytest.mark.parametrize("name", targets.NAMES)
def test_every_target_passes_its_preflight(name: str) -> None:
    preflight(targets.ready(name))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown ready target 'nope'.*openai-sse.*sseclient-py"):
        targets.ready("nope")


@pytest.mark.parametrize("name", adapted())
def test_without_its_library_a_target_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in list(sys.modules):
        if module.startswith("streamfuzz.targets."):
            monkeypatch.delitem(sys.modules, module)
    for module in MODULES:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=rf"{name} needs .*pip install 'streamfuzz\[sdks\]'"):
        targets.ready(name)


def test_rows_tell_the_installed_version_of_the_library() -> None:
    for row in targets.describe():
        assert row.installed == version(row.library)
        assert row.line


def test_a_row_of_a_library_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(library: str) -> str:
        raise PackageNotFoundError(library)

    monkeypatch.setattr(targets, "version", missing)
    assert {row.installed for row in targets.describe()} == {None}


# -- the controls --------------------------------------------------------------------------------------------------


@pytest.mark.untraced
@pytest.mark.parametrize("name", CONTROLS)
def test_our_own_reading_gives_no_finding(name: str) -> None:
    result = run(targets.ready(name), Budget(seconds=None, cases=3000, seed=5))
    assert result.cases >= 3000
    assert [reported.finding.sentence for reported in result.findings] == []


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("reference-openai-chat", b'data: {"error":{"message":"overloaded"}}\n\n', "overloaded"),
        ("reference-openai-chat", b"data: {\n\n", "not JSON"),
        ("reference-anthropic", b"", "ended"),
        ("reference-ollama", b'{"message":{"role":"assistant","content":"\xff"},"done":true}\n', "UTF-8"),
    ],
)
def test_our_own_reading_refuses_with_the_reason(name: str, data: bytes, words: str) -> None:
    failure = drive(targets.ready(name), [data]).failure
    assert failure is not None
    assert failure.declared
    assert words in failure.message


# -- frames --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [bytewise, lambda data: [data]], ids=["bytewise", "whole"])
@pytest.mark.parametrize("name", [*adapted(gives="frames"), "reference-sse"])
def test_decoders_give_the_fields_of_each_event(name: str, cut: Any) -> None:
    data = b": hello\n\nevent: a\nid: 7\nretry: 10\ndata: x\ndata: \xc3\xa9\n\ndata:y\nid: 7\n\n"
    assert drive(targets.ready(name), cut(data)).items == (
        {"event": "a", "data": "x\n\u00e9", "id": "7", "retry": 10},
        {"event": "message", "data": "y", "id": "7", "retry": None},
    )


# -- messages ------------------------------------------------------------------------------------------------------

CALL = ToolCall("call_1", "search", '{"q": "caf\\u00e9", "n": [1, 2]}')
WORDS = Text("Caf\u00e9 \U0001f600")
THOUGHT = Reasoning("hm\u2026", "c2ln")
REPLIES = {
    "openai-chat": Reply((Choice((WORDS, CALL), "tool_calls"),), "chatcmpl-1", "gpt-4o", Usage(3, 5)),
    "openai-responses": Reply((Choice((THOUGHT, WORDS, CALL), "completed"),), "resp_1", "gpt-4o", Usage(3, 5)),
    "anthropic": Reply((Choice((THOUGHT, WORDS, CALL), "tool_use"),), "msg_1", "claude", Usage(3, 5)),
    "ollama": Reply((Choice((THOUGHT, WORDS, CALL), "stop"),), None, "llama", Usage(3, 5)),
}


def events_of(provider: str) -> tuple[Event, ...]:
    return providers.get(provider).plain_events(REPLIES[provider])


def bytes_of(provider: str) -> bytes:
    return providers.get(provider).framing.encode(payloads(events_of(provider), PLAIN), PLAIN)


def expected_view(provider: str) -> dict[str, Json]:
    reply = REPLIES[provider]
    parts = reply.choices[0].parts
    return {
        "text": "".join(part.text for part in parts if isinstance(part, Text)),
        "reasoning": "".join(part.text for part in parts if isinstance(part, Reasoning)),
        "refusal": "",
        "tool_calls": [{"id": CALL.id, "name": CALL.name, "arguments": json.loads(CALL.arguments)}],
        "finish": reply.choices[0].finish,
        "id": reply.id,
        "model": reply.model,
        "usage": {"input": 3, "output": 5},
    }


def normal(result: dict[str, Json]) -> dict[str, Json]:
    """A view with its only choice unfolded and the arguments of its calls decoded."""
    flat = {key: result[key] for key in result if key != "choices"}
    if "choices" in result:
        (only,) = result["choices"]
        flat |= only
    for call in flat["tool_calls"]:
        if isinstance(call["arguments"], str):
            call["arguments"] = json.loads(call["arguments"])
    return flat


def assert_is_the_message(view: dict[str, Json], provider: str) -> None:
    found, wanted = normal(view), expected_view(provider)
    assert {"text", "tool_calls", "finish", "model", "usage"} <= found.keys()
    if provider == "ollama":  # its client has no ids of calls
        wanted["tool_calls"] = [{"name": CALL.name, "arguments": json.loads(CALL.arguments)}]
    assert found == {field: wanted[field] for field in found}


@pytest.mark.parametrize("cut", [bytewise, lambda data: [data]], ids=["bytewise", "whole"])
@pytest.mark.parametrize("name", adapted(takes="bytes", gives="reply"))
def test_helpers_give_the_message_of_a_plain_stream(name: str, cut: Any) -> None:
    target = targets.ready(name)
    trace = drive(target, cut(bytes_of(target.provider)))
    assert trace.failure is None
    assert trace.ending == "complete"
    assert_is_the_message(trace.result, target.provider)
    assert trace.shown("text") == WORDS.text
    assert trace.shown("reasoning") in ("", THOUGHT.text)


@pytest.mark.parametrize("name", adapted(takes="events"))
def test_accumulators_give_the_message_of_plain_events(name: str) -> None:
    target = targets.ready(name)
    trace = drive(target, [event for event in events_of(target.provider) if not isinstance(event.data, Raw)])
    assert trace.failure is None
    assert trace.ending == "complete"
    assert_is_the_message(trace.result, target.provider)


@pytest.mark.parametrize("cut", [bytewise, lambda data: [data]], ids=["bytewise", "whole"])
@pytest.mark.parametrize("name", adapted(gives="events"))
def test_raw_streams_give_the_events_that_were_sent(name: str, cut: Any) -> None:
    target = targets.ready(name)
    trace = drive(target, cut(bytes_of(target.provider)))
    assert list(trace.items) == [e.data for e in events_of(target.provider) if not isinstance(e.data, Raw)]


@pytest.mark.parametrize("name", adapted(takes="bytes", gives="reply"))
def test_an_answer_that_was_not_streamed_reads_the_same(name: str) -> None:
    target = targets.ready(name)
    body = providers.get(target.provider).body
    if target.whole is None:
        pytest.skip("this library is driven by its streams only")
    assert body is not None
    assert_is_the_message(target.whole(body(REPLIES[target.provider])), target.provider)


# -- transport -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*adapted(gives="events"), *adapted(takes="bytes", gives="reply")])
def test_a_connection_that_breaks_is_an_error_of_the_library_with_its_cause(name: str) -> None:
    target = targets.ready(name)
    with Driver(target) as driver:
        failure = driver.run([bytes_of(target.provider)[:40]], "reset").failure
    assert failure is not None
    assert failure.declared
    assert failure.transport


@pytest.mark.parametrize("name", [*adapted(gives="events"), *adapted(takes="bytes", gives="reply")])
def test_closing_a_stream_early_closes_its_source(name: str) -> None:
    target = targets.ready(name)
    source = Source(bytewise(bytes_of(target.provider)))
    stream = target.call(source)
    next(stream)
    stream.close()
    del stream
    assert source.closed


@pytest.mark.parametrize("name", adapted(takes="bytes", gives="reply"))
def test_two_streams_of_one_client_do_not_mix(name: str) -> None:
    target = targets.ready(name)
    data = bytes_of(target.provider)
    first = target.call(iter([data]))
    next(first)
    assert drive(target, [data]).shown() == WORDS.text
    assert_is_the_message(result_of(first), target.provider)


def result_of(stream: Iterator[Delta]) -> dict[str, Json]:
    """What a generator returns once it has been read to its end."""
    while True:
        try:
            next(stream)
        except StopIteration as end:
            return end.value
