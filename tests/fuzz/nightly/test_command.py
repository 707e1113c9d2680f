"""The command: what a person or a workflow types, with real workers, and what comes of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from streamfuzz.report.json_report import NIGHT_SCHEMA
from tests.fuzz.conftest import Command

MINE = """
[targets.mine]
call = "readers:{}"
errors = ["streamfuzz.demo:StreamError"]

[nightly]
workers = 1
engines = ["sweep"]
"""
CRASHES = """
import ctypes

from streamfuzz.demo import repaired


def read(chunks):
    whole = b"".join(chunks)
    if b"\\xef\\xbb\\xbf" in whole[:3]:
        ctypes.string_at(0)
    return repaired([whole])
"""


def configured(project: Path, call: str = "wrong_finish") -> None:
    (project / "streamfuzz.toml").write_text(MINE.format(call))


def test_a_night_prints_one_object_and_leaves_its_reports(streamfuzz: Command, project: Path) -> None:
    configured(project)
    reports = ["--junit", "j.xml", "--sarif", "s.json", "--events", "e.ndjson", "--html", "p.html"]
    done = streamfuzz("nightly", "--time", "4s", "--seed", "1", "--json", *reports)
    assert done.code == 1, done.err
    night = done.json
    Draft202012Validator(NIGHT_SCHEMA).validate(night)
    (told,) = night["targets"]
    assert [finding["signature"] for finding in told["findings"]] == ["faithful.altered"]
    assert told["findings"][0]["runs"] == 10
    assert Path(told["findings"][0]["case"]).is_file()
    assert all((project / name).stat().st_size for name in reports[1::2])
    events = [json.loads(line)["event"] for line in (project / "e.ndjson").read_text().splitlines()]
    assert (events[0], events[-1]) == ("began", "ended")


def test_a_person_sees_what_is_new_and_what_the_exit_code_means(streamfuzz: Command, project: Path) -> None:
    configured(project)
    done = streamfuzz("nightly", "batch", "--time", "4s")
    assert done.code == 1
    assert "mine reports the finish 'never' although" in done.out or "FAIL" in done.out
    assert "Exit code 1: 1 finding to act on." in done.out
    again = streamfuzz("nightly", "replay")
    assert again.code == 1


def test_a_shard_of_the_event_log_is_done_again(streamfuzz: Command, project: Path) -> None:
    configured(project)
    streamfuzz("nightly", "--time", "12s", "--seed", "1", "--events", "e.ndjson")
    events = [json.loads(line) for line in (project / "e.ndjson").read_text().splitlines()]
    # The first shard of a target depends on the example database too.
    searched = next(event for event in events if event["event"] == "searched" and '"revisit":false' in event["shard"])
    done = streamfuzz("nightly", "--shard", searched["shard"], "--json")
    assert done.json["cases"] == searched["cases"]
    assert done.code == 1


def test_a_target_that_takes_its_process_down_is_a_finding_and_the_night_goes_on(
    streamfuzz: Command, project: Path
) -> None:
    (project / "crashing.py").write_text(CRASHES)
    (project / "streamfuzz.toml").write_text(MINE.format("x").replace("readers:x", "crashing:read"))
    done = streamfuzz("nightly", "--time", "20s", "--seed", "1", "--json", "--events", "e.ndjson")
    night = done.json
    (told,) = night["targets"]
    crashed = [finding for finding in told["findings"] if finding["kind"] == "crashed"]
    assert len(crashed) == 1
    assert "SIGSEGV" in crashed[0]["sentence"]
    assert night["lost"] >= 1
    events = [json.loads(line) for line in (project / "e.ndjson").read_text().splitlines()]
    assert sum(event["event"] == "searched" for event in events) >= 2
    assert told["cases"] > 20
    assert done.code == 1


def test_pruning_keeps_a_case_for_each_signature(streamfuzz: Command, project: Path) -> None:
    configured(project)
    streamfuzz("nightly", "--time", "4s")
    folder = project / "streamfuzz-corpus" / "mine"
    before = signatures(folder)
    done = streamfuzz("nightly", "prune")
    assert done.code == 0
    assert before == signatures(folder) != set()
    assert f"kept {len(list(folder.iterdir()))} case" in done.out


def signatures(folder: Path) -> set[str]:
    return {json.loads(path.read_text())["found"]["signature"] for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--scheduler", "tcp://127.0.0.1:1"], "no Dask scheduler at tcp://127.0.0.1:1"),
        (["--corpus", "nosuch://bucket/x"], "cannot use nosuch://bucket/x"),
        (["--corpus", "readers.py/x"], "cannot write to readers.py/x"),
        (["--time", "soon"], "'soon' is no time: write one like 30s, 5m or 2h"),
        (["--target", "nobody"], "no target 'nobody'"),
        (["--junit", "gone/j.xml"], "gone/j.xml"),
        (["--shard", "{}"], "--shard takes the 'shard' of a line of the event log"),
        (["change", "--base", "gone"], "no such folder: gone"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(
    streamfuzz: Command, project: Path, arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamfuzz.nightly.workers.CONNECTING", 0.5)
    configured(project)
    (project / "gone").touch() if "gone/j.xml" in arguments else None
    done = streamfuzz("nightly", *arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert done.err.startswith("streamfuzz: ")
    assert len(done.err.splitlines()) == 1


def test_a_typo_in_the_configuration_is_told(streamfuzz: Command, project: Path) -> None:
    (project / "streamfuzz.toml").write_text(MINE.format("wrong_finish").replace("workers", "worker"))
    done = streamfuzz("nightly")
    assert done.code == 2
    assert "unknown field `worker`" in done.err
    assert "known here: targets, corpus, time" in done.err


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_night_with_what_it_has(project: Path, number: signal.Signals) -> None:
    configured(project)
    command = [sys.executable, "-m", "streamfuzz", "nightly", "--time", "300s", "--seed", "1", "--json"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as night:
        deadline = time.monotonic() + 60
        while not list(project.glob("streamfuzz-corpus/mine/*.json")) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(os.getpgid(night.pid), 0)
        night.send_signal(number)
        sent = time.monotonic()
        out, err = night.communicate(timeout=60)
    assert time.monotonic() - sent < 30
    assert night.returncode == 1, err
    told = json.loads(out)
    assert told["interrupted"]
    assert [finding["signature"] for finding in told["targets"][0]["findings"]] == ["faithful.altered"]
    assert "Traceback" not in err
