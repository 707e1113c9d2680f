"""The pytest plugin: kept cases as tests of a project, each failing with its explanation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from streamfuzz import corpus
from streamfuzz.case import Case, CaseFile, Expectation

HEAD = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":['
HELLO = HEAD + b'{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
STOP = HEAD + b'{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
SOUND = CaseFile(Case("openai-chat", (HELLO, STOP, DONE)))
RETURNS = CaseFile(Case("openai-chat", ((HELLO + STOP + DONE).replace(b"\n", b"\r"),)), "CR ends a line")
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
    assert "Traceback" not in out


def test_a_sound_parser_passes_on_every_case(kept: Path) -> None:
    code, out = run(kept, "corpus/chat = readers:repaired")
    assert (code, "3 passed" in out) == (0, True)


def test_a_target_may_be_named(kept: Path) -> None:
    (kept / "streamfuzz.toml").write_text('[targets.mine]\ncall = "readers:faulty"\n')
    code, out = run(kept, "corpus/chat = mine", arguments=("corpus",))
    assert (code, "1 failed, 1 passed" in out) == (1, True)


def test_case_files_of_other_folders_are_none_of_its_business(kept: Path) -> None:
    (kept / "corpus" / "other.json").write_text("{")
    (kept / "corpus" / "chat" / "notes.txt").write_text("a note")
    assert run(kept, "corpus/chat = readers:repaired")[0] == 0
    code, out = run(kept)
    assert (code, "1 passed" in out) == (0, True)


def test_one_case_can_be_run_by_itself(kept: Path) -> None:
    path = f"corpus/chat/deeper/{RETURNS.name}"
    code, out = run(kept, "corpus/chat = readers:faulty", arguments=("-v", path))
    assert code == 1
    assert f"{path}::{RETURNS.name.removesuffix('.json')} FAILED" in out


def test_a_judge_that_has_changed_its_mind_is_told_beside_a_failure(project: Path) -> None:
    corpus.save(project / "corpus", CaseFile(RETURNS.case, expect=Expectation("refuse", "x.y")))
    code, out = run(project, "corpus = readers:faulty")
    assert code == 1
    assert "the file expects refuse (x.y), the judge says complete (no rule)" in out


@pytest.mark.parametrize(
    ("target", "content", "says"),
    [
        ("readers:repaired", "{", "{file} is not JSON: "),
        ("readers:gone", None, "readers has no attribute 'gone'; it has: "),
        ("gone:parse", None, "cannot import 'gone': No module named 'gone'; run streamfuzz where it can be imported"),
        ("demo", LINES, "target demo reads bytes of openai-chat, but {file} is bytes of ndjson: use a target for"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_line(
    project: Path, target: str, content: str | CaseFile | None, says: str
) -> None:
    file = content if isinstance(content, CaseFile) else SOUND
    path = corpus.save(project / "corpus", file)
    if isinstance(content, str):
        path.write_text(content)
    code, out = run(project, f"corpus = {target}")
    assert code == 1
    assert "1 failed, 1 passed" in out
    assert f"\n{says.format(file=path)}" in out
    assert "Traceback" not in out


@pytest.mark.parametrize("line", ["corpus/chat", "corpus/chat =", "= readers:faulty"])
def test_a_line_that_says_nothing_is_refused_before_any_test_runs(kept: Path, line: str) -> None:
    code, out = run(kept, line, arguments=("tests",))
    assert code == pytest.ExitCode.USAGE_ERROR
    assert f"streamfuzz_corpora: {line!r} is not of the form 'folder = module:attribute'" in out
    assert "Traceback" not in out
