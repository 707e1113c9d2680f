"""What the README tells people to type works as it says: Python runs, commands parse, names exist."""

from __future__ import annotations

import runpy
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import hypothesis
import pytest
from markdown_it import MarkdownIt

import streamfuzz
from streamfuzz import config, targets
from streamfuzz.bench import ALL_ORACLES
from streamfuzz.cli import main
from streamfuzz.pytest_plugin import _corpora
from streamfuzz.spec import GIVES, TAKES
from streamfuzz.targets.reference import StreamError
from streamfuzz_strategies import providers
from streamfuzz_strategies.judge import GENERIC_RULES

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOKENS = MarkdownIt().enable("table").parse(README)


def blocks(language: str) -> list[str]:
    return [token.content for token in TOKENS if token.type == "fence" and token.info == language]


def parse(chunks: Iterable[bytes]) -> Any:
    """A sound reader of Anthropic streams."""
    reader = targets.ready("reference-anthropic").call()
    for chunk in chunks:
        reader.feed(chunk)
    return reader.close()


@pytest.fixture
def mypackage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package that belongs to whoever reads the README."""
    stream: Any = ModuleType("mypackage.stream")
    stream.parse, stream.StreamError = parse, StreamError
    package: Any = ModuleType("mypackage")
    package.stream = stream
    monkeypatch.setitem(sys.modules, "mypackage", package)
    monkeypatch.setitem(sys.modules, "mypackage.stream", stream)


# --- Python


def quick(test: Callable[[], None]) -> Callable[[], None]:
    """The same property on a few examples."""
    return hypothesis.settings(max_examples=5, deadline=None, database=None)(test)


@pytest.mark.usefixtures("mypackage")
@pytest.mark.parametrize("source", blocks("python"))
def test_python_runs(source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(streamfuzz, "fuzz_test", partial(streamfuzz.fuzz_test, cases=400))
    (tmp_path / "block.py").write_text(source)
    names = runpy.run_path(str(tmp_path / "block.py"))
    tests = [found for name, found in names.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        (quick(test) if hypothesis.is_hypothesis_test(test) else test)()


# --- commands


def command_lines() -> list[str]:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    inline = [child.content for token in TOKENS for child in token.children or () if child.type == "code_inline"]
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [line for line in (*parts, *inline) if line.split()[:1] == ["streamfuzz"] and line != "streamfuzz"]


def parsed(line: str) -> click.Context:
    """Parse a command line as the shell and click do, and run nothing."""
    _, name, *rest = shlex.split(line, comments=True)
    if name not in main.commands:
        raise click.UsageError(f"no command {name}")
    return main.commands[name].make_context(name, rest)


@pytest.mark.parametrize("line", command_lines())
def test_command_lines_parse(line: str) -> None:
    assert parsed(line).command.name == line.split()[1]


def test_a_command_line_with_an_unknown_option_does_not_parse() -> None:
    for wrong in ("streamfuzz run --tmie 1m", "streamfuzz fuzz", "streamfuzz run --time soon"):
        with pytest.raises(click.UsageError):
            parsed(wrong)


def test_every_command_that_needs_telling_is_told() -> None:
    told = {line.split()[1] for line in command_lines()}
    assert told == set(main.commands) - {"providers"}


# --- tables


def rows() -> Iterator[list[list[str]]]:
    """The rows of all tables, each cell as the inline code that it holds."""
    row: list[list[str]] = []
    for token in TOKENS:
        if token.type == "tr_open":
            row = []
        elif token.type == "inline" and token.level > 3:
            row.append([child.content for child in token.children or () if child.type == "code_inline"])
        elif token.type == "tr_close":
            yield row


def test_options_and_what_they_take_are_those_of_run() -> None:
    described = {name: cells for (first, cells) in rows() for name in first if name.startswith("--")}
    options = {option for parameter in main.commands["run"].params for option in parameter.opts if option[:2] == "--"}
    assert set(described) == options
    assert set(described["--provider"]) == set(providers.NAMES)
    assert tuple(described["--takes"]) == TAKES
    assert tuple(described["--gives"]) == GIVES


def test_invariants_are_the_oracles_that_there_are() -> None:
    described = [name for (first, _) in rows() for name in first if not name.startswith("--")]
    unknown = set(described) - set(ALL_ORACLES)
    assert (unknown, sorted(described)) == (set(), sorted(ALL_ORACLES))


# --- configuration


@pytest.mark.usefixtures("mypackage")
def test_the_configuration_is_one_and_its_signature_can_occur(tmp_path: Path) -> None:
    (block,) = [block for block in blocks("toml") if "tool.streamfuzz" in block]
    (tmp_path / "pyproject.toml").write_text(block)
    found = config.resolve("mine", start=tmp_path)
    (known,) = found.known
    oracle, _, rule = known.signature.partition(".")[0], *known.signature.partition("@")[1:]
    assert oracle in ALL_ORACLES
    assert rule in {rule.id for rule in (*GENERIC_RULES, *providers.get(found.provider).rules)}


def test_the_lines_for_pytest_are_read_by_the_plugin() -> None:
    (block,) = [block for block in blocks("toml") if "tool.pytest" in block]
    options = tomllib.loads(block)["tool"]["pytest"]["ini_options"]

    class Config:
        rootpath = ROOT
        getini = staticmethod(options.__getitem__)

    corpora: Any = _corpora(Config)  # type: ignore[arg-type]
    assert list(corpora) == [(ROOT / "corpus" / "chat", "mypackage.stream:parse")]
