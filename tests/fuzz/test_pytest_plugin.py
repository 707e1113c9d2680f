"""The pytest plugin: kept cases as tests of a project, each failing with its explanation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamfuzz import corpus
from streamfuzz.case import Case, CaseFile, Expectation
from streamfuzz.pytest_plugin import pytest_configure

HEAD = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":['
HELLO = HEAD + b'{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
STOP = HEAD + b'{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
SOUND = CaseFile(Case("openai-chat", (HELLO, STOP, DONE)))
RETURNS = CaseFile(
    Case("openai-chat", ((HELLO + STOP + DONE).replace(b"\n", b"\r"),)), expect=Expectation("refuse", "x.y")
)
LINES = CaseFile(Case("ndjson", (b"1\n",)))

PROJECT = """
[tool.pytest.ini_options]
filterwarnings = ["error"]
testpaths = ["tests", "corpus"]
streamfuzz_corpora = [{corpora}]
"""


def run(project: Path, *corpora: str, arguments: tuple[str, ...] = ()) -> tuple[int, str]:
    """Run pytest in the project as its developers do."""
    (project / "pyproject.toml").write_text(PROJECT.format(corpora=", ".join(map(repr, corpora))))
    (project / "tests").mkdir(exist_ok=True)
    (project / "tests" / "test_own.py").write_text("def test_own(): pass\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COLUMNS"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:cov", *arguments],
        cwd=project,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def kept(project: Path) -> Path:
    """A project with two kept cases."""
    corpus.save(project / "corpus" / "chat", SOUND)
    corpus.save(project / "corpus" / "chat" / "deeper", RETURNS)
    return project


def test_a_faulty_parser_fails_on_the_case_that_it_fails_with_the_explanation(kept: Path) -> None:
    code, out = run(kept, "corpus/chat = readers:faulty")
    assert code == 1
    assert "1 failed, 2 passed" in out
    assert f"case {RETURNS.name.removesuffix('.json')}" in out
    assert "\nfaulty loses the text 'hi' because of CR line ends.\n[faithful.lost: CR line ends]\n" in out
    assert "\nchunk  byte\n" in out
    assert re.search(r'"content":"hi"\},\s*"finish_reason":null\}\]\}\\r\n', out)
    assert "\nthe file expects refuse (x.y), the judge says complete (no rule)\n" in out
    assert "Traceback" not in out


def test_a_sound_parser_passes_on_every_case(kept: Path) -> None:
    (kept / "corpus" / "other.json").write_text("{")
    (kept / "corpus" / "chat" / "notes.txt").write_text("a note")
    code, out = run(kept, "corpus/chat = readers:repaired")
    assert (code, "3 passed" in out) == (0, True)


def test_without_the_option_nothing_is_a_case(kept: Path) -> None:
    code, out = run(kept)
    assert (code, "1 passed" in out) == (0, True)


def test_one_case_can_be_run_by_itself_and_a_target_be_named(kept: Path) -> None:
    (kept / "streamfuzz.toml").write_text('[targets.mine]\ncall = "readers:faulty"\n')
    path = f"corpus/chat/deeper/{RETURNS.name}"
    code, out = run(kept, "corpus/chat = mine", arguments=("-v", path))
    assert (code, "1 failed" in out) == (1, True)
    assert f"{path}::{RETURNS.name.removesuffix('.json')} FAILED" in out


def test_what_cannot_be_run_is_told_in_one_line(project: Path) -> None:
    corpora = {}
    for folder, target, file, says in (
        ("bad", "readers:repaired", SOUND, "{path} is not JSON: "),
        ("attribute", "readers:gone", SOUND, "readers has no attribute 'gone'; it has: "),
        ("module", "gone:parse", SOUND, "cannot import 'gone': No module named 'gone'; run streamfuzz where it can"),
        ("form", "demo", LINES, "target demo reads bytes of openai-chat, but {path} is bytes of ndjson: use a target"),
    ):
        path = corpus.save(project / "corpus" / folder, file)
        corpora[f"corpus/{folder} = {target}"] = says.format(path=path)
        if folder == "bad":
            path.write_text("{")
    code, out = run(project, *corpora)
    assert code == 1
    assert "4 failed, 1 passed" in out
    assert [says for says in corpora.values() if f"\n{says}" not in out] == []
    assert "Traceback" not in out


def test_a_line_that_says_nothing_is_refused_before_any_test_runs(kept: Path) -> None:
    code, out = run(kept, "corpus/chat", arguments=("tests",))
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "streamfuzz_corpora: 'corpus/chat' is not of the form 'folder = module:attribute'" in out
    assert "Traceback" not in out


@pytest.mark.parametrize("line", ["corpus/chat =", "= readers:faulty", "="])
def test_both_halves_of_a_line_are_needed(line: str) -> None:
    config: Any = SimpleNamespace(rootpath=Path(), getini={"streamfuzz_corpora": [line]}.__getitem__)
    with pytest.raises(pytest.UsageError, match="is not of the form 'folder = module:attribute'"):
        pytest_configure(config)


def test_sessions_that_do_not_use_it_do_not_pay_for_it() -> None:
    code = "import sys, streamfuzz.pytest_plugin; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "streamfuzz.pytest_plugin" in loaded
    assert not loaded & {"hypothesis", "streamfuzz_strategies", "rich", "jsonschema", "msgspec"}
