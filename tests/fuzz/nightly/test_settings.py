"""Settings: what a job is to do, from the configuration and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamfuzz.nightly.settings import Settings, seconds, settings, size
from streamfuzz.spec import UsageError

MINE = """
[targets.mine]
call = "readers:described"
[targets.both]
call = "readers:wrong_finish"
providers = ["openai-chat", "anthropic"]
"""


def made(text: str, mode: Any = "batch", **more: Any) -> Settings:
    Path("streamfuzz.toml").write_text(text)
    return settings(mode, **{"seed": 1, **more})


def test_all_configured_targets_are_searched_and_each_with_each_of_its_providers(project: Path) -> None:
    subjects = made(MINE).subjects
    assert [(s.name, s.folder, s.target.provider) for s in subjects] == [
        ("mine", "mine", "openai-chat"),
        ("both (openai-chat)", "both", "openai-chat"),
        ("both (anthropic)", "both", "anthropic"),
    ]


def test_named_targets_win_over_listed_ones_and_those_over_all(project: Path) -> None:
    listed = MINE + '[nightly]\ntargets = ["mine"]\n'
    assert [s.name for s in made(listed).subjects] == ["mine"]
    assert [s.name for s in made(listed, targets=["demo"]).subjects] == ["demo"]


def test_the_command_line_wins_over_the_configuration(project: Path) -> None:
    told = (
        MINE + '[nightly]\ntime = "2h"\nchange = "90s"\nworkers = 3\ncorpus = "c"\nmemory = "1GiB"\npatience = "9s"\n'
    )
    batch = made(told)
    assert (batch.seconds, batch.workers, batch.corpus) == (7200, 3, "c")
    assert (batch.memory, batch.patience, batch.seed) == (2**30, 9, 1)
    assert made(told, "change").seconds == 90
    mine = made(told, time="5m", workers=1, corpus="d")
    assert (mine.seconds, mine.workers, mine.corpus) == (300, 1, "d")


def test_examples_are_kept_beside_the_corpus_and_are_found_from_any_folder(project: Path) -> None:
    assert made(MINE, corpus="c").examples == str(project / "c/.examples")
    assert made(MINE, corpus="s3://bucket/c").examples == str(project / ".hypothesis/streamfuzz")
    assert made(MINE + '[nightly]\nexamples = "e"\n').examples == str(project / "e")
    assert made(MINE + '[nightly]\nexamples = "redis://localhost"\n').examples == "redis://localhost"


def test_a_cluster_is_given_no_folder_of_this_machine_that_nobody_asked_for(project: Path) -> None:
    assert made(MINE, scheduler="tcp://far:8786").examples is None
    asked = made(MINE + '[nightly]\nexamples = "shared"\n', scheduler="tcp://far:8786")
    assert asked.examples == str(project / "shared")


def test_a_target_brings_its_own_kept_cases(project: Path) -> None:
    (project / "kept").mkdir()
    (subject,) = made('[targets.mine]\ncall = "readers:described"\ncorpora = ["kept"]\n').subjects
    assert subject.corpora == (project / "kept",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no targets: describe one"),
        (MINE + "[nightly]\ntiem = '2h'\n", "unknown field `tiem`"),
        (MINE + "[nightly]\ntime = 'long'\n", "'long' is no time: write one like 30s, 5m or 2h"),
        (MINE + "[nightly]\nmemory = '2'\n", "'2' is no size: write one like 500MB or 2GiB"),
        (MINE + "[nightly]\nmemory = '10MB'\n", "too little for a worker: give it at least 300MB"),
        (MINE + "[nightly]\nworkers = 0\n", "workers must be at least 1, not 0"),
        (MINE + "[nightly]\ntargets = ['other']\n", "no target 'other'"),
        ("[targets.mine]\ncall = 'readers:described'\ncorpora = ['gone']\n", "corpora: no such folder"),
        ("[targets.mine]\ncall = 'readers:described'\nproviders = ['nobody']\n", "unknown provider 'nobody'"),
        (
            "[targets.mine]\ncall = 'readers:described'\nprovider = 'sse'\nproviders = ['sse']\n",
            "say provider or providers, not both",
        ),
    ],
)
def test_a_mistake_is_told_in_one_sentence(project: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as told:
        made(text)
    assert says in str(told.value)


def test_a_base_that_is_not_there_is_told(project: Path) -> None:
    with pytest.raises(UsageError, match="no such folder: gone; --base is a checkout"):
        made(MINE, "change", base=Path("gone"))


@pytest.mark.parametrize(("text", "value"), [("30s", 30), ("1.5m", 90), ("2 h", 7200), ("1d", 86400), ("7", 7)])
def test_times_are_read(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize(("text", "value"), [("500MB", 5 * 10**8), ("2 GiB", 2**31), ("0.5GB", 5 * 10**8)])
def test_sizes_are_read(text: str, value: int) -> None:
    assert size(text) == value


@pytest.mark.parametrize("text", ["0s", "", "-1s", "1e3s", "10 years"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no time"):
        seconds(text)
