"""Dialects of a target: declared in every way, tried by the sweep, and named by what goes wrong in them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamfuzz import campaign, config, targets
from streamfuzz.bench import Bench
from streamfuzz.demo import StreamError, repaired
from streamfuzz.engines import Batch, Budget
from streamfuzz.engines.goals import dialects_of, goals
from streamfuzz.engines.sweep import sweep
from streamfuzz.result import Result
from streamfuzz.spec import Target, UsageError, target
from streamfuzz_strategies.dialects import DIALECTS, of
from streamfuzz_strategies.framing.sse import SSEDecoder

from .conftest import Command

SOUND = target(repaired, errors=(StreamError,))
READERS = {name: f"reference-{name}" for name in ("anthropic", "openai-chat", "openai-responses")}


def trusts_the_shape(chunks: Iterable[bytes]) -> Any:
    """Looks at the finish reason of every choice, as if there always were one, be it null."""
    read = repaired(chunks := list(chunks))
    for frame in SSEDecoder().feed(b"".join(chunks)):
        if frame.data.startswith("{"):
            [choice["finish_reason"] for choice in json.loads(frame.data).get("choices") or ()]
    return read


def reads_all(events: Iterable[Any]) -> Any:
    read = targets.ready("reference-openai-chat").call()
    for event in events:
        read.feed(b"data: " + json.dumps(event.data if hasattr(event, "data") else event).encode() + b"\n\n")
    read.feed(b"data: [DONE]\n\n")
    return read.close()


def searched(made: Target, cases: int, *names: str) -> Result:
    return campaign.run(replace(made, dialects=names), Budget(None, cases, seed=1))


def batches(made: Target, cases: int) -> list[Batch]:
    with Bench(made) as bench:
        return list(sweep(bench, Budget(None, cases, seed=1, cost=0.0001)))


# --- the sweep


@pytest.mark.untraced
def test_each_dialect_is_tried_and_all_of_them_together() -> None:
    result = searched(SOUND, 3000, "vllm", "groq")
    tried = {name for name in result.goals if name.startswith("dialect: ")}
    assert tried == {"dialect: vllm", "dialect: groq", "dialect: all together"}
    assert not result.findings


@pytest.mark.untraced
def test_what_a_dialect_shows_names_it() -> None:
    made = target(trusts_the_shape, errors=(StreamError,), dialects=("vllm", "xai"))
    seen = {
        s.how.partition(",")[0]
        for batch in batches(made, 4000)
        for s in batch.sightings
        if s.deviation.error == "KeyError"
    }
    assert seen == {"xai", "all together"}


@pytest.mark.untraced
def test_without_a_dialect_none_is_tried() -> None:
    assert not any(name.startswith("dialect") for batch in batches(SOUND, 2500) for name in batch.goals)
    with Bench(SOUND) as bench:
        assert not any(name.startswith("dialect") for name in goals(bench))


def test_a_target_that_takes_events_meets_them_too() -> None:
    made = target(reads_all, takes="events", dialects=("vllm", "perplexity"))
    reached = {name for batch in batches(made, 300) for name in batch.goals}
    assert reached >= {"dialect: vllm", "dialect: perplexity", "dialect: all together"}


@pytest.mark.untraced
@pytest.mark.parametrize("provider", READERS)
def test_a_sound_reader_reads_every_dialect(provider: str) -> None:
    result = searched(targets.ready(READERS[provider]), 6000, *of(provider))
    assert not result.findings
    assert result.goals["dialect: all together"]


def test_one_dialect_is_not_also_all_of_them() -> None:
    assert list(dialects_of(replace(SOUND, dialects=("vllm",)))) == ["vllm"]
    assert dialects_of(replace(SOUND, dialects=("vllm", "groq")))["all together"] == ("vllm", "groq")


# --- declared


def test_an_unknown_dialect_names_those_of_the_provider() -> None:
    with pytest.raises(UsageError, match=r"unknown dialect 'vllm' of anthropic; known: bedrock, gateway-retry, "):
        target(repaired, provider="anthropic", dialects=("vllm",))
    with pytest.raises(UsageError, match="of ollama; known: none"):
        target(repaired, provider="ollama", dialects=("vllm",))


def configured(folder: Path, lines: str) -> None:
    (folder / "streamfuzz.toml").write_text(f'[targets.mine]\ncall = "streamfuzz.demo:repaired"\n{lines}\n')


def test_the_configuration_declares_dialects(project: Path) -> None:
    configured(project, 'dialects = ["vllm", "groq"]')
    assert config.resolve("mine").dialects == ("vllm", "groq")
    assert config.resolve("mine", dialects=("tgi",)).dialects == ("tgi",)
    assert config.recipe("mine")[0].target().dialects == ("vllm", "groq")
    configured(project, 'dialects = ["klingon"]')
    with pytest.raises(UsageError, match=r"configured target 'mine': unknown dialect 'klingon' of openai-chat; known:"):
        config.resolve("mine")


def test_a_target_of_several_providers_has_of_each_its_own(project: Path) -> None:
    configured(project, 'providers = ["openai-chat", "anthropic"]\ndialects = ["vllm", "bedrock", "sse-starlette"]')
    assert config.resolve("mine", provider="openai-chat").dialects == ("vllm", "sse-starlette")
    assert config.resolve("mine", provider="anthropic").dialects == ("bedrock", "sse-starlette")
    configured(project, 'providers = ["openai-chat", "anthropic"]\ndialects = ["klingon"]')
    with pytest.raises(UsageError, match="unknown dialect 'klingon'"):
        config.resolve("mine", provider="anthropic")


# --- the command line


@pytest.mark.untraced
def test_run_takes_dialects(streamfuzz: Command) -> None:
    options = ("demo-repaired", "--max-cases", "3000", "--seed", "1", "--json")
    done = streamfuzz("run", *options, "--dialect", "vllm", "--dialect", "tgi")
    assert done.code == 0
    assert json.loads(done.out)["goals"]["dialect: tgi"]
    assert "dialect: tgi" not in json.loads(streamfuzz("run", *options).out)["goals"]


def test_run_refuses_an_unknown_dialect(streamfuzz: Command) -> None:
    done = streamfuzz("run", "demo", "--dialect", "klingon")
    assert done.code == 2
    assert "unknown dialect 'klingon' of openai-chat; known: azure, " in done.err


def test_rules_lists_the_dialects(streamfuzz: Command) -> None:
    listed = streamfuzz("rules", "--dialects").out.splitlines()[1:]
    assert [line.split()[:2] for line in listed] == [[dialect.name, dialect.provider] for dialect in DIALECTS]
    for line, dialect in zip(listed, DIALECTS, strict=True):
        assert dialect.title in line
        assert line.rstrip().endswith(dialect.source)
    of_one = streamfuzz("rules", "--dialects", "anthropic").out.splitlines()[1:]
    assert [line.split()[0] for line in of_one] == list(of("anthropic"))
