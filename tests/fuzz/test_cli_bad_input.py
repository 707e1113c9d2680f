"""Bad input: each kind gets exit code 2 and one sentence that says what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamfuzz_strategies import providers

from .conftest import Command


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "nosuch"), r"no target 'nosuch': write module:attribute, or one of: demo, .*"),
        (("run", "nosuch:parse"), r"cannot import 'nosuch': .*; run streamfuzz where it can be imported"),
        (("run", "readers.py:parse"), r"'readers.py' is no module name: write the module as in an import .*"),
        (("run", ":parse"), r"':parse' is not of the form module:attribute"),
        (("run", "readers:nope"), r"readers has no attribute 'nope'; it has: Reader, StreamError, chatty, .*"),
        (("run", "readers:VALUE"), r"readers:VALUE is not callable but int: name a function or class that .*"),
        (("run", "broken:parse"), r"importing 'broken' raised ZeroDivisionError: .*; make it importable first"),
        (("run", "readers:two"), r"target two must take one argument, the chunks: give a function or class .*"),
        (("run", "readers:nothing"), r"target nothing gave nothing on a plain, .*: return the result, .*"),
        (("run", "readers:number"), r"target number does not give reply: a reply must be a mapping with .*"),
        (("run", "demo", "--provider", "closed-ai"), r"unknown provider 'closed-ai'; known: anthropic, .*"),
        (("run", "demo", "--corpus", "readers.py/below"), r"cannot write to .*; choose another folder"),
        (("run", "demo", "--gives", "json"), r"a target that gives json .*; use provider='json'"),
        (("replay", "demo", "gone.json"), r"no such file or folder: gone\.json"),
        (("replay", "demo", "empty"), r"no case files in empty; `streamfuzz run` writes some"),
        (("shrink", "demo", "empty"), r"no case files in empty; `streamfuzz run` writes some"),
        (("shrink", "demo", "readers.py"), r"readers\.py is no case file; .*"),
        (("show", "gone.json"), r"cannot read gone\.json: No such file or directory"),
        (("show", "empty"), r"cannot read empty: .*"),
        (("rules", "closed-ai"), r"unknown provider 'closed-ai'; known: anthropic, .*"),
    ],
    ids=" ".join,
)
def test_bad_input_gets_one_sentence(streamfuzz: Command, project: Path, arguments: tuple[str, ...], says: str) -> None:
    (project / "empty").mkdir()
    (project / "broken.py").write_text("1 / 0\n")
    for more in ((), ("--json",) if arguments[0] in ("run", "replay") else ()):
        done = streamfuzz(*arguments, *more)
        assert (done.code, done.out) == (2, "")
        assert re.fullmatch(rf"streamfuzz: {says}\n", done.err), done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "--time", "soon"), "Invalid value for '--time': write a time like 30s, 5m or 2h"),
        (("run", "--time", "0s"), "Invalid value for '--time': write a time like 30s, 5m or 2h"),
        (("run", "--time", "-5s"), "Invalid value for '--time': write a time like 30s, 5m or 2h"),
        (("run", "--max-cases", "0"), "Invalid value for '--max-cases'"),
        (("run", "--oracle", "luck"), "Invalid value for '--oracle': 'luck' is not one of 'bounded', "),
        (("run", "--takes", "words"), "Invalid value for '--takes': 'words' is not one of 'bytes', "),
        (("run", "--tmie", "1m"), "No such option"),
        (("fuzz",), "No such command 'fuzz'"),
        (("replay", "demo"), "Missing argument 'PLACES...'"),
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_told_with_the_way_to_help(
    streamfuzz: Command, arguments: tuple[str, ...], says: str
) -> None:
    done = streamfuzz(*arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "-h' for help" in done.err or "--help' for help" in done.err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty: a case file is a JSON object"),
        ("{", "is not JSON: "),
        ("[]", "is not a case file: a JSON object with a 'format' is needed"),
        ('{"format": 99}', "has format 99, this version reads 1: install the streamfuzz that wrote it, or a newer one"),
        (
            '{"format": 1, "provider": "sse", "takes": "bytes", "chunks": [], "mood": "good"}',
            "is not a case file of format 1: Object contains unknown field `mood`",
        ),
        (
            '{"format": 1, "provider": "sse", "takes": "bytes", "chunks": [{"hex": "no"}]}',
            "is not a case file of format 1: non-hexadecimal number",
        ),
        (
            '{"format": 1, "provider": "sse", "takes": "bytes", "chunks": [7]}',
            "is not a case file of format 1: Expected `str | object`, got `int`",
        ),
    ],
)
def test_a_case_file_that_cannot_be_read_is_told_by_every_command(
    streamfuzz: Command, project: Path, content: str, says: str
) -> None:
    (project / "case.json").write_text(content)
    for command in (("shrink", "demo"), ("show",)):
        done = streamfuzz(*command, "case.json")
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"streamfuzz: case.json {says}")
        assert done.err.count("\n") == 1
    replayed = streamfuzz("replay", "demo", "case.json")
    assert (replayed.code, replayed.err) == (2, "")
    assert replayed.out.startswith(f"error case.json {says}")
    row = streamfuzz("replay", "demo", "case.json", "--json").json["cases"][0]
    assert (row["status"], row["sentence"].startswith(f"case.json {says}")) == ("error", True)


def test_what_no_one_foresaw_is_an_internal_error(streamfuzz: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ZeroDivisionError("not foreseen")

    monkeypatch.setattr(providers, "get", fail)
    done = streamfuzz("rules", "sse")
    assert done.code == 3
    assert done.err.endswith(
        "ZeroDivisionError: not foreseen\nstreamfuzz: internal error; please report it with the lines above\n"
    )
