"""`streamfuzz init`: what it says, and that what it wrote works: the tests, and both workflows as they are written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import Command

SCRIPTS = Path(sys.executable).parent
"""Where the command `streamfuzz` is installed."""

SOUND = "reader.feed(chunk)"
BUG = 'reader.feed(chunk.decode("utf-8", "replace").encode())'
"""Each chunk decoded by itself: a character that a cut goes through is lost."""

LONG, SHORT = ('time = "30m"', 'change = "2m"'), ('time = "12s"', 'change = "12s"')
"""What the configuration says of time, and what the tests have."""


# --- what it says


def test_it_says_what_it_wrote_and_what_to_type_next(streamfuzz: Command, project: Path) -> None:
    done = streamfuzz("init")
    assert done.code == 0
    assert done.err == ""
    assert done.out.splitlines()[:2] == ["wrote streamfuzz.toml", "wrote pytest.ini"]
    assert "wrote .github/workflows/streamfuzz-nightly.yml\n" in done.out
    assert done.out.endswith("\nNext:\n  streamfuzz run mine --time 30s\n  streamfuzz nightly batch --time 2m\n")


def test_it_says_it_of_another_folder(streamfuzz: Command, project: Path) -> None:
    done = streamfuzz("init", "the chat")
    assert "wrote the chat/streamfuzz_target.py\n" in done.out
    assert "\n  cd 'the chat' && streamfuzz run mine --time 30s\n" in done.out


def test_a_second_time_it_says_that_nothing_changed(streamfuzz: Command, project: Path) -> None:
    streamfuzz("init")
    done = streamfuzz("init")
    assert done.code == 0
    assert "left alone streamfuzz.toml: it configures streamfuzz already\n" in done.out
    assert "unchanged streamfuzz_target.py\n" in done.out
    assert "wrote" not in done.out


def test_what_is_left_alone_and_what_is_written_over_is_told(streamfuzz: Command, project: Path) -> None:
    (project / "streamfuzz_target.py").write_text("# theirs\n")
    assert "left alone streamfuzz_target.py: it holds something else\n" in streamfuzz("init").out
    assert "wrote over streamfuzz_target.py\n" in streamfuzz("init", "--force").out


def test_a_dry_run_only_says_it(streamfuzz: Command, project: Path) -> None:
    before = sorted(project.rglob("*"))
    done = streamfuzz("init", "--dry-run")
    assert done.code == 0
    assert "would write streamfuzz.toml\n" in done.out
    assert "Next:" not in done.out
    assert sorted(project.rglob("*")) == before


def test_bad_input_is_one_sentence(streamfuzz: Command, project: Path) -> None:
    done = streamfuzz("init", "--provider", "openia")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("streamfuzz: unknown provider 'openia'; known: ")
    assert done.err.count("\n") == 1


def test_the_first_command_to_type_works_at_once(streamfuzz: Command, project: Path) -> None:
    streamfuzz("init", "--provider", "anthropic")
    done = streamfuzz("run", "mine", "--max-cases", "300", "--seed", "1")
    assert done.code == 0
    assert done.out.startswith("mine: nothing found in ")


# --- what it wrote


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scaffolded project, whose searches are short."""
    folder = tmp_path_factory.mktemp("healthy")
    shell(folder, "streamfuzz init")
    for long, short in zip(LONG, SHORT, strict=True):
        change(folder / "streamfuzz.toml", long, f'{short}\nengines = ["sweep"]' if long == LONG[0] else short)
    return folder


@pytest.fixture
def copied(healthy: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Makes a copy of the project."""
    return lambda name: Path(shutil.copytree(healthy, tmp_path / name))


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def plant(project: Path) -> Path:
    change(project / "streamfuzz_target.py", SOUND, BUG)
    return project


def shell(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script as GitHub does, with the job summary in ``summary.md`` above the folder."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        "PATH": os.pathsep.join((str(SCRIPTS), os.environ["PATH"])),
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(folder.parent / "summary.md"),
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def searches(project: Path, workflow: str) -> Iterator[str]:
    """The commands of a workflow that search, as they are written."""
    written: Any = yaml.safe_load((project / f".github/workflows/streamfuzz-{workflow}.yml").read_text())
    for job in written["jobs"].values():
        yield from (step["run"] for step in job["steps"] if step.get("run", "").startswith("streamfuzz "))


def run(project: Path, workflow: str) -> subprocess.CompletedProcess[str]:
    (command,) = searches(project, workflow)
    return shell(project, command)


def signatures(folder: Path) -> set[str]:
    return {json.loads(path.read_text())["found"]["signature"] for path in folder.rglob("mine/*.json")}


@pytest.mark.slow
def test_its_tests_pass_and_a_kept_case_is_one_of_them(copied: Callable[[str], Path]) -> None:
    project = copied("project")
    change(project / "tests/test_streamfuzz.py", "cases=5_000", "cases=300")
    done = shell(project, "python -m pytest -q")
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout
    plant(project)
    done = shell(project, "python -m pytest -q")
    assert done.returncode == 1
    assert "1 failed" in done.stdout
    (kept, *_) = sorted((project / "streamfuzz-findings/mine").glob("*.json"))
    kept.rename(project / "tests/cases" / kept.name)
    change(project / "streamfuzz_target.py", BUG, SOUND)
    done = shell(project, "python -m pytest -q")
    assert (done.returncode, "2 passed" in done.stdout) == (0, True), done.stdout


@pytest.mark.slow
def test_the_nightly_workflow_finds_a_planted_bug_once(copied: Callable[[str], Path]) -> None:
    project = plant(copied("project"))
    done = run(project, "nightly")
    assert done.returncode == 1, done.stdout + done.stderr
    assert any("character" in signature for signature in signatures(project / "streamfuzz-corpus"))
    assert "::error " in done.stdout
    assert "mine" in (project.parent / "summary.md").read_text()
    reports = {path.name for path in (project / "streamfuzz-report").iterdir()}
    assert reports == {"index.html", "junit.xml", "findings.sarif", "events.ndjson"}


@pytest.mark.slow
def test_the_pull_request_workflow_tells_what_the_change_brings(copied: Callable[[str], Path]) -> None:
    project = copied("project")
    shutil.copytree(project, project / "base")
    plant(project)
    done = run(project, "pull-request")
    assert done.returncode == 1, done.stdout + done.stderr
    assert any("character" in signature for signature in signatures(project / "streamfuzz-findings"))
    assert not (project / "streamfuzz-corpus").exists()
    change(project / "streamfuzz_target.py", BUG, SOUND)
    done = run(project, "pull-request")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_pull_request_workflow_does_not_blame_a_change_for_what_was_there(copied: Callable[[str], Path]) -> None:
    project = plant(copied("project"))
    shutil.copytree(project, project / "base")
    done = run(project, "pull-request")
    assert done.returncode == 0, done.stdout + done.stderr
