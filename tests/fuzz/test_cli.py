"""The command line: what each command prints, its exit code, and one clear sentence for bad input."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from streamfuzz import corpus, targets
from streamfuzz.bench import ALL_ORACLES
from streamfuzz.case import PROBES, Case, CaseFile, dump
from streamfuzz.cli import main
from streamfuzz.report.json_report import REPLAY_SCHEMA, SCHEMA
from streamfuzz_strategies import providers

from .conftest import Command

HEAD = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":['
HELLO = HEAD + b'{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
STOP = HEAD + b'{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
SOUND = Case("openai-chat", (HELLO, STOP, DONE))
CUT_OFF = Case("openai-chat", (HELLO, HELLO))

FEW = ("--max-cases", "60", "--seed", "1")
ENOUGH = ("--max-cases", "300", "--seed", "1")  # to reach a goal, without which nothing counts as judged


def keep(folder: Path, *cases: Case) -> Path:
    for case in cases:
        corpus.save(folder, CaseFile(case, "kept by hand", corpus.expectation(case)))
    return folder


# --- help


def test_help_lists_every_command_with_what_it_does(streamfuzz: Command) -> None:
    for asked in ("-h", "--help"):
        done = streamfuzz(asked)
        assert done.code == 0
        commands = done.out.partition("Commands:")[2].split("\n")
        listed = [line.split()[0] for line in commands if re.match(r"  \w+  +\w", line)]
        assert listed[:4] == ["run", "replay", "shrink", "show"]
        assert listed[4:] == ["nightly", "corpus", "coverage", "init", "rules", "providers", "targets"]


def test_every_command_has_help(streamfuzz: Command) -> None:
    for command in main.commands:
        assert streamfuzz(command, "-h").out.startswith(f"Usage: streamfuzz {command} ")


def test_a_command_that_was_called_by_itself_still_has_help(streamfuzz: Command) -> None:
    main.commands["rules"].make_context("rules", [])
    assert streamfuzz("rules", "-h").code == 0


def test_version_is_that_of_the_package(streamfuzz: Command) -> None:
    assert streamfuzz("--version").out.split()[-1] == version("streamfuzz")


# --- lists


def test_targets_lists_the_ready_and_the_configured(streamfuzz: Command, project: Path) -> None:
    (project / "streamfuzz.toml").write_text('[targets.mine]\ncall = "no.such:thing"\nprovider = "ollama"\n')
    done = streamfuzz("targets")
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines()[1:]]
    assert [row[0] for row in rows] == ["mine", *targets.NAMES]
    assert rows[0] == ["mine", "ollama", "no.such:thing"]
    assert rows[1][:4] == ["demo", "openai-chat", "bytes", "reply"]


def test_providers_lists_all_with_their_sources_in_full(streamfuzz: Command) -> None:
    rows = streamfuzz("providers").out.splitlines()[1:]
    assert [row.split()[0] for row in rows] == list(providers.NAMES)
    assert [row.split()[-1] for row in rows] == [providers.get(name).source for name in providers.NAMES]


def test_rules_lists_every_oracle_and_the_rules_of_the_provider(streamfuzz: Command) -> None:
    done = streamfuzz("rules", "ollama")
    first = [line.split()[0] for line in done.out.splitlines() if line.strip()]
    assert set(first) >= set(ALL_ORACLES)
    rules = {rule.id: rule for rule in providers.get("ollama").rules}
    assert set(first) >= set(rules)
    assert not any(name.startswith("anthropic.") for name in first)
    for line in done.out.splitlines():
        rule = rules.get(line.partition(" ")[0])
        if rule is not None:
            assert rule.level in line
            assert rule.sentence in line
            assert line.rstrip().endswith(rule.source)


def test_rules_without_a_provider_lists_those_of_all(streamfuzz: Command) -> None:
    first = {line.partition(" ")[0] for line in streamfuzz("rules").out.splitlines()}
    assert first >= {rule.id for name in providers.NAMES for rule in providers.get(name).rules}


def test_rules_says_how_visible_each_damage_is(streamfuzz: Command) -> None:
    done = streamfuzz("rules", "--damage", "ndjson")
    head, *rows = done.out.splitlines()
    assert head.split() == ["damage", "ndjson"]
    shown = {row[: head.index("ndjson")].strip(): row[head.index("ndjson") :].strip() for row in rows}
    assert shown["cut off inside an event"].startswith("must")
    assert shown["drop an event"] == "none"


# --- run


@dataclass(frozen=True)
class Fuzzed:
    code: int
    result: Any
    folder: Path


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Fuzzed:
    """What `run` makes of the demo, as another program sees it."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "streamfuzz", "run", *FEW, "--json", "--corpus", "found"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 1
    return Fuzzed(done.returncode, json.loads(done.stdout), folder / "found")


def test_the_demo_has_bugs_and_each_is_kept(fuzzed: Fuzzed) -> None:
    jsonschema.validate(fuzzed.result, SCHEMA, cls=jsonschema.Draft202012Validator)
    assert fuzzed.code == fuzzed.result["exit_code"] == 1
    assert (fuzzed.result["target"], fuzzed.result["provider"], fuzzed.result["seed"]) == ("demo", "openai-chat", 1)
    assert len(fuzzed.result["findings"]) >= 3
    kept = sorted(path.name for path in fuzzed.folder.iterdir())
    assert sorted(Path(finding["case"]).name for finding in fuzzed.result["findings"]) == kept


def test_what_was_kept_fails_again_and_not_on_the_repaired_twin(fuzzed: Fuzzed, streamfuzz: Command) -> None:
    again = streamfuzz("replay", "demo", fuzzed.folder, "--json")
    jsonschema.validate(again.json, REPLAY_SCHEMA, cls=jsonschema.Draft202012Validator)
    assert again.code == again.json["exit_code"] == 1
    signatures = {Path(finding["case"]).name: finding["signature"] for finding in fuzzed.result["findings"]}
    assert {Path(row["file"]).name for row in again.json["cases"]} == set(signatures)
    assert {row["status"] for row in again.json["cases"]} == {"fail"}
    assert {row["judge_differs"] for row in again.json["cases"]} == {None}
    mended = streamfuzz("replay", "demo-repaired", fuzzed.folder)
    assert mended.code == 0
    assert mended.out.splitlines()[-1] == f"{len(signatures)} cases: {len(signatures)} pass, 0 fail, 0 not readable"


def test_a_run_that_finds_nothing_says_so(streamfuzz: Command, project: Path) -> None:
    done = streamfuzz("run", "readers:repaired", *ENOUGH)
    assert done.code == 0
    assert "nothing found" in done.out
    assert list((project / "streamfuzz-findings").rglob("*.json")) == []


def test_a_finding_is_told_with_the_command_that_shows_it_again(streamfuzz: Command) -> None:
    done = streamfuzz("run", "readers:wrong_finish", *FEW, "--oracle", "faithful")
    assert done.code == 1
    assert "wrong_finish alters the finish reason: " in done.out
    replay = re.search(r"replay  streamfuzz (replay readers:wrong_finish \S+\.json)", done.out)
    assert replay is not None
    again = streamfuzz(*replay[1].split())
    assert again.code == 1
    assert again.out.startswith("fail  ")


@pytest.mark.untraced
def test_only_the_oracles_asked_for_are_held(streamfuzz: Command) -> None:
    done = streamfuzz("run", "readers:wrong_finish", *ENOUGH, "--oracle", "bounded", "--oracle", "isolated", "--json")
    assert (done.code, done.json["findings"]) == (0, [])


def test_nothing_judged_is_no_success(streamfuzz: Command) -> None:
    done = streamfuzz("run", "demo-repaired", "--time", "0.001s", "--seed", "1")
    assert done.code == 4
    assert "give the search more time" in done.out


def test_what_a_target_prints_does_not_get_into_the_json(streamfuzz: Command, project: Path) -> None:
    (project / "loud.py").write_text("print('imported')\nfrom readers import chatty\n")
    done = streamfuzz("run", "loud:chatty", *FEW, "--oracle", "faithful", "--json")
    assert done.code == 1
    (finding,) = done.json["findings"]
    assert finding["signature"] == "faithful.altered"
    printed = set(done.err.splitlines())
    assert printed >= {"imported", "printed", "written", "from a child"}
    again = streamfuzz("replay", "readers:chatty", finding["case"], "--json")
    assert [row["status"] for row in again.json["cases"]] == ["fail"]


def test_json_is_written_in_ascii_whatever_the_stream_holds(streamfuzz: Command, project: Path) -> None:
    case = Case("openai-chat", ((HELLO + STOP + DONE).replace(b"hi", "键".encode()).replace(b"\n", b"\r"),))
    done = streamfuzz("replay", "demo", keep(project / "kept", case), "--json")
    assert done.out.isascii()
    assert "键" in done.json["cases"][0]["sentence"]


def test_a_hanging_target_is_a_finding(streamfuzz: Command, project: Path) -> None:
    (project / "streamfuzz.toml").write_text('[targets.hangs]\ncall = "readers:hangs"\ntimeout = 0.02\n')
    done = streamfuzz("run", "hangs", "--max-cases", "2", "--seed", "1", "--json")
    assert done.code == 1
    assert [finding["signature"] for finding in done.json["findings"]] == ["bounded.hung"]


KNOWN = """
[targets.mine]
call = "readers:{call}"

[[targets.mine.known]]
signature = "faithful.altered"
reason = "waits for upstream"
expires = {expires}
"""


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("call", "expires", "code", "says"),
    [
        ("wrong_finish", "2999-01-01", 0, "known until 2999-01-01: waits for upstream"),
        ("wrong_finish", "2020-01-01", 1, "1 failure"),
        ("repaired", "2999-01-01", 4, "take it off the list"),
        ("repaired", "2020-01-01", 4, "take it off the list"),
    ],
)
def test_a_known_deviation_is_excused_while_it_is_there_and_has_not_expired(
    streamfuzz: Command, project: Path, call: str, expires: str, code: int, says: str
) -> None:
    (project / "streamfuzz.toml").write_text(KNOWN.format(call=call, expires=expires))
    done = streamfuzz("run", "mine", *ENOUGH, "--oracle", "faithful")
    assert (done.code, says in re.sub(r"\s+", " ", done.out)) == (code, True)


# --- Ctrl-C

INTERRUPTED = """
import pathlib
from streamfuzz.demo import parse

runs = 0


def slow(chunks):
    global runs
    runs += 1
    if runs == 400:
        pathlib.Path("running").touch()
    return parse(chunks)
"""


@pytest.mark.untraced
@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_ends_a_run_with_what_it_has(tmp_path: Path, as_json: bool) -> None:
    (tmp_path / "slow.py").write_text(INTERRUPTED)
    command = [sys.executable, "-m", "streamfuzz", "run", "slow:slow", "--time", "60s", "--seed", "1"]
    command += ["--json"] if as_json else []
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        deadline = time.monotonic() + 30
        while not (tmp_path / "running").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)
        sent = time.monotonic()
        out, err = run.communicate(timeout=50)
    assert time.monotonic() - sent < 30
    assert (run.returncode, "Traceback" in out + err) == (1, False)
    if as_json:
        assert json.loads(out)["interrupted"]
        assert json.loads(out)["findings"]
    else:
        assert "FAIL" in out
        assert "Interrupted: " in out


LOST = """
import gc
import signal
from streamfuzz.demo import parse

runs = 0


def callback(phase, info):
    gc.callbacks.remove(callback)
    signal.raise_signal(signal.SIGINT)


def interrupted(chunks):
    global runs
    runs += 1
    if runs == 400:
        gc.callbacks.append(callback)
        gc.collect()
    return parse(chunks)
"""


def test_ctrl_c_is_heard_while_the_garbage_collector_calls_back(streamfuzz: Command, project: Path) -> None:
    (project / "lost.py").write_text(LOST)
    done = streamfuzz("run", "lost:interrupted", "--time", "60s", "--seed", "1")
    assert (done.code, done.err) == (1, "")
    assert "Interrupted: " in done.out


def test_ctrl_c_stops_the_other_commands(streamfuzz: Command, project: Path) -> None:
    (project / "stops.py").write_text("def read(chunks):\n    raise KeyboardInterrupt\n")
    kept = keep(project / "kept", SOUND)
    for command in ("replay", "shrink"):
        done = streamfuzz(command, "stops:read", kept)
        assert (done.code, done.out, done.err.strip()) == (2, "", "streamfuzz: stopped")


# --- replay, shrink, show


def test_replay_tells_each_case_and_goes_on_past_files_that_cannot_be_read(streamfuzz: Command, project: Path) -> None:
    folder = keep(project / "kept", SOUND, CUT_OFF)
    (folder / "zzz.json").write_text("{")
    done = streamfuzz("replay", "demo", folder)
    assert done.code == 2
    lines = done.out.splitlines()
    assert sorted(line.split()[0] for line in lines if not line.startswith(" ")) == ["2", "error", "fail", "pass"]
    assert lines[-1] == "2 cases: 1 pass, 1 fail, 1 not readable"
    as_json = streamfuzz("replay", "demo", folder, "--json")
    assert [row["status"] for row in as_json.json["cases"]] in (["pass", "fail", "error"], ["fail", "pass", "error"])
    assert as_json.code == 2


def test_replay_says_where_the_judge_has_changed_its_mind(streamfuzz: Command, project: Path) -> None:
    wrong = corpus.expectation(CUT_OFF)
    corpus.save(project / "kept", CaseFile(SOUND, "kept by hand", wrong))
    done = streamfuzz("replay", "readers:repaired", "kept")
    assert f"the file expects refuse ({wrong.rule}), the judge says complete (no rule)" in done.out
    assert done.code == 0


def test_replay_tells_a_plain_function_what_the_cases_are_and_refuses_it_to_others(
    streamfuzz: Command, project: Path
) -> None:
    (project / "lines.py").write_text("def lines(chunks):\n    return b''.join(chunks).decode().splitlines()\n")
    keep(project / "kept", Case("ndjson", (b"1\n2\n",)))
    assert streamfuzz("replay", "lines:lines", "kept").code == 0
    for target in ("demo", "readers:described"):
        done = streamfuzz("replay", target, "kept")
        assert done.code == 2
        assert re.fullmatch(
            r"streamfuzz: target \w+ reads bytes of openai-chat, "
            r"but kept/\w+\.json is bytes of ndjson: use a target for those\n",
            done.err,
        )


CAPTURED = tuple((HELLO * 3 + STOP + DONE).replace(b"\n", b"\r").splitlines(keepends=True))
BY_HAND = """{
  "format": 1, "provider": "openai-chat", "takes": "bytes",
  "chunks": ["data: {\\"choices\\":[{\\"index\\":0,\\"delta\\":{\\"content\\":\\"hello\\"},",
             "\\"finish_reason\\":\\"stop\\"}]}\\r\\r", "data: [DONE]\\r\\r"]
}"""


@pytest.mark.parametrize(
    "content", [BY_HAND, dump(CaseFile(Case("openai-chat", CAPTURED))).decode()], ids=["by hand", "captured"]
)
def test_shrink_makes_a_failing_case_small(streamfuzz: Command, project: Path, content: str) -> None:
    path = project / "kept.json"
    path.write_text(content)
    file = corpus.open_case(path)
    done = streamfuzz("shrink", "demo", path, "--corpus", "small")
    assert done.code == 1
    (small,) = [corpus.open_case(path) for path in (project / "small").iterdir()]
    assert small.case.size < file.case.size
    assert f"{path}: {file.case.size} -> {small.case.size}: small/{small.name}" in done.out
    assert small.found is not None
    assert small.found.how == f"shrunk from {path.name}"
    assert small.found.signature.endswith(": CR line ends")
    assert streamfuzz("replay", "demo", "small").code == 1


def test_shrink_says_when_nothing_fails(streamfuzz: Command, project: Path) -> None:
    done = streamfuzz("shrink", "demo", keep(project / "kept", SOUND))
    assert done.code == 0
    assert done.out == f"{project / 'kept' / CaseFile(SOUND).name}: nothing fails on it\n"


@pytest.mark.parametrize("probe", PROBES)
def test_show_draws_every_kind_of_case(streamfuzz: Command, project: Path, probe: str) -> None:
    chunks = () if probe.startswith("growth") else SOUND.chunks
    other = SOUND.chunks if probe in ("isolated", "resliced") else ()
    path = corpus.save(project, CaseFile(Case("openai-chat", chunks, probe=probe, other=other), "kept by hand"))
    done = streamfuzz("show", path, "--target", "demo")
    assert done.code == 0
    assert ('"content":"hi"' in done.out) == bool(chunks)
    assert done.out.endswith("Kept because: kept by hand\n")


@pytest.mark.parametrize(
    ("case", "says"),
    [
        (SOUND, "The judge: a complete message\n"),
        (CUT_OFF, "The judge: no complete message (openai-chat."),
        (Case("openai-chat", (HELLO, STOP)), "The judge: odd: may be read or refused (openai-chat."),
    ],
)
def test_show_says_what_the_judge_says(streamfuzz: Command, project: Path, case: Case, says: str) -> None:
    assert says in streamfuzz("show", corpus.save(project, CaseFile(case))).out


def test_show_can_say_what_a_target_had_given_out(streamfuzz: Command, project: Path) -> None:
    path = corpus.save(project, CaseFile(SOUND))
    given = streamfuzz("show", path, "--target", "demo").out
    assert "→" in given
    assert "→" not in streamfuzz("show", path).out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_small_encoding_is_enough(tmp_path: Path, encoding: str) -> None:
    case = Case("openai-chat", ((HELLO + STOP + DONE).replace(b"hi", "键é".encode()).replace(b"\n", b"\r"),))
    path = corpus.save(tmp_path, CaseFile(case, "键"))
    for arguments, code in ((("show", path.name), 0), (("replay", "demo", path.name), 1)):
        done = subprocess.run(
            [sys.executable, "-m", "streamfuzz", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": encoding},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (code, b"")
