"""The workflows of this project, and those that `streamfuzz init` writes: least rights, and commands that exist."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from streamfuzz import config, scaffold, targets

ROOT = Path(__file__).parents[1]
FOLDER = ".github/workflows"

OURS = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / FOLDER).glob("*.yml"))}
SCAFFOLDED = {
    step.path.name: step.content.decode()
    for step in scaffold.plan(ROOT / "nowhere").steps
    if step.path.parent.name == "workflows"
}
ALL = {**OURS, **SCAFFOLDED}


def steps(workflow: Any) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


def commands(workflow: Any) -> Iterator[list[str]]:
    """The command lines of streamfuzz."""
    for step in steps(workflow):
        for line in step.get("run", "").splitlines():
            words = shlex.split(line)
            if words[:1] == ["streamfuzz"]:
                yield words[1 : words.index("||") if "||" in words else None]


@pytest.fixture(params=ALL)
def workflow(request: pytest.FixtureRequest) -> Any:
    return yaml.safe_load(ALL[request.param])


def test_there_are_workflows_for_changes_and_for_nights() -> None:
    assert set(OURS) == {"ci.yml", "nightly.yml"}
    assert set(SCAFFOLDED) == {"streamfuzz-nightly.yml", "streamfuzz-pull-request.yml"}


def test_a_workflow_may_read_and_nothing_else(workflow: Any) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in workflow["jobs"].values())


def test_a_checkout_leaves_no_token_behind(workflow: Any) -> None:
    checkouts = [step for step in steps(workflow) if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_every_action_is_github_s_own_at_a_major_version(workflow: Any) -> None:
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert [name for name in used if not re.fullmatch(r"actions/[a-z-]+(/[a-z-]+)?@v\d+", name)] == []


def test_every_job_ends_some_time(workflow: Any) -> None:
    assert all(job["timeout-minutes"] <= 360 for job in workflow["jobs"].values())


def test_no_script_is_put_together_from_what_a_stranger_wrote(workflow: Any) -> None:
    """Expressions of the matrix are ours; a branch's name, a title or an input is not."""
    put_in = [found for step in steps(workflow) for found in re.findall(r"\$\{\{\s*([^ }]+)", step.get("run", ""))]
    assert [name for name in put_in if not name.startswith("matrix.")] == []


@pytest.mark.parametrize("name", [name for name in ALL if name != "ci.yml"])
def test_its_commands_are_ones_that_streamfuzz_has(name: str) -> None:
    from streamfuzz.cli import main

    written = list(commands(yaml.safe_load(ALL[name])))
    assert any(words[0] == "nightly" for words in written)
    for words in written:
        command: click.Command = main
        while isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        with command.make_context(command.name, words):
            pass


@pytest.mark.parametrize("name", [name for name in ALL if "nightly" in name])
def test_what_a_night_found_is_kept_whatever_came_of_it(name: str) -> None:
    by_action: dict[str, dict[str, Any]] = {
        step["uses"].partition("@")[0]: step for step in steps(yaml.safe_load(ALL[name])) if "uses" in step
    }
    restore, save, upload = (
        by_action[f"actions/{action}"] for action in ("cache/restore", "cache/save", "upload-artifact")
    )
    assert save["if"] == upload["if"] == "always()"
    assert save["with"] == {key: restore["with"][key] for key in ("path", "key")}
    assert "github.run_id" in save["with"]["key"]
    assert save["with"]["key"].startswith(restore["with"]["restore-keys"])
    assert save["with"]["path"] in upload["with"]["path"].split()


def test_a_pull_request_only_reads_the_corpus_of_the_nights() -> None:
    text = SCAFFOLDED["streamfuzz-pull-request.yml"]
    assert "actions/cache/save" not in text
    assert "actions/cache@" not in text
    restore_keys = re.findall(r"restore-keys: (\S+)", ALL["streamfuzz-nightly.yml"] + text)
    assert len(set(restore_keys)) == 1


def test_the_job_has_more_time_than_its_search() -> None:
    from streamfuzz.nightly.settings import seconds

    told = config.nightly(ROOT / "streamfuzz.toml")
    (job,) = yaml.safe_load(OURS["nightly.yml"])["jobs"].values()
    assert seconds(told.time) + 20 * 60 <= job["timeout-minutes"] * 60


def test_our_night_searches_every_ready_target() -> None:
    told = tomllib.loads((ROOT / "streamfuzz.toml").read_text(encoding="utf-8"))
    assert set(told["nightly"]["targets"]) == set(targets.NAMES)
