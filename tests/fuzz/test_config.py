"""Where targets come from: names, module:attribute, and the project's configuration."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from streamfuzz import config, targets
from streamfuzz.case import Case
from streamfuzz.demo import StreamError, repaired
from streamfuzz.spec import Known, UsageError

WHOLE = """
[targets.mine]
call = "readers:repaired"
provider = "openai-chat"
takes = "bytes"
gives = "reply"
shape = "iterable"
errors = ["readers:StreamError", "builtins:ValueError"]
whole = "json:loads"
closes_source = true
timeout = 0.5

[[targets.mine.known]]
signature = "faithful.altered"
reason = "waits for upstream"
expires = 2027-06-30
"""


def configure(folder: Path, text: str, name: str = "streamfuzz.toml") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def refusal(spec: str, **asked: Any) -> str:
    with pytest.raises(UsageError) as refused:
        config.resolve(spec, **asked)
    assert "\n" not in str(refused.value)
    return str(refused.value)


# --- which file holds


def test_the_nearest_file_holds(project: Path) -> None:
    configure(project, '[tool.streamfuzz.targets.far]\ncall = "a:b"', "pyproject.toml")
    below = project / "a" / "b"
    below.mkdir(parents=True)
    assert config.find(below) == project / "pyproject.toml"
    configure(project / "a", '[targets.near]\ncall = "a:b"')
    assert config.find(below) == project / "a" / "streamfuzz.toml"
    assert list(config.configured(below)) == ["near"]
    assert list(config.configured(project)) == ["far"]


def test_a_file_of_its_own_wins_over_pyproject(project: Path) -> None:
    configure(project, '[tool.streamfuzz.targets.one]\ncall = "a:b"', "pyproject.toml")
    configure(project, '[targets.other]\ncall = "a:b"')
    assert list(config.configured(project)) == ["other"]


@pytest.mark.parametrize("text", ["", "[tool.other]\nx = 1", "tool = 3", "[project]\nname = 'streamfuzz'"])
def test_a_project_ends_at_its_pyproject(project: Path, text: str) -> None:
    configure(project, '[targets.mine]\ncall = "a:b"')
    configure(project / "inner", text, "pyproject.toml")
    assert config.find(project / "inner") is None
    assert config.configured(project / "inner") == {}


# --- what a file may say


def test_all_that_a_target_has_can_be_configured(project: Path) -> None:
    configure(project, WHOLE)
    found = config.resolve("mine")
    assert found.name == "mine"
    assert found.call is repaired
    assert (found.provider, found.takes, found.gives, found.shape) == ("openai-chat", "bytes", "reply", "iterable")
    assert found.errors == (StreamError, ValueError)
    assert found.known == (Known("faithful.altered", "waits for upstream", date(2027, 6, 30)),)
    assert found.whole is not None
    assert found.whole("[1]") == [1]
    assert (found.closes_source, found.timeout) == (True, 0.5)


def test_what_is_not_configured_follows_from_the_code(project: Path) -> None:
    configure(project, '[targets.lines]\ncall = "readers:repaired"\nprovider = "ndjson"')
    found = config.resolve("lines")
    assert (found.provider, found.takes, found.gives, found.shape) == ("ndjson", "bytes", "frames", "iterable")
    assert (found.errors, found.known, found.timeout) == ((), (), 2.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("targets =", "cannot read {file}: "),
        ("[target.mine]", "{file}: Object contains unknown field `target`; known here: targets"),
        (
            '[targets.mine]\ncall = "a:b"\nprovidr = "sse"',
            "{file}: target 'mine': Object contains unknown field `providr`; known here: call, provider, ",
        ),
        ("[targets.mine]", "{file}: target 'mine': Object missing required field `call`"),
        ("targets = 3", "{file}: Expected `object`, got `int`"),
        ('[targets.mine]\ncall = "a:b"\ntimeout = "long"', "{file}: target 'mine': Expected `float`, got `str`"),
        (
            '[targets.mine]\ncall = "a:b"\n[[targets.mine.known]]\nsignature = "s"\nreason = "r"\nexpires = "soon"',
            "{file}: target 'mine': Invalid RFC3339 encoded date - at `$.known[0].expires`",
        ),
        (
            '[targets.mine]\ncall = "a:b"\n[[targets.mine.known]]\nsignature = "s"\nexpires = 2027-01-01',
            "{file}: target 'mine': Object missing required field `reason` - at `$.known[0]`",
        ),
        ('[targets.mine]\ncall = "parse"', "configured target 'mine': 'parse' is not of the form module:attribute"),
        (
            '[targets.mine]\ncall = "readers:repaired"\nprovider = "closed-ai"',
            "configured target 'mine': unknown provider 'closed-ai'; known: ",
        ),
        (
            '[targets.mine]\ncall = "readers:repaired"\nerrors = ["readers:VALUE"]',
            "configured target 'mine': errors of target 'repaired' must be exception types, not 3",
        ),
        (
            '[targets.mine]\ncall = "readers:repaired"\nwhole = "readers:gone"',
            "configured target 'mine': readers has no attribute 'gone'; it has: Reader, ",
        ),
    ],
)
def test_a_file_that_says_something_wrong_is_told_by_its_place(project: Path, text: str, says: str) -> None:
    configure(project, text)
    assert refusal("mine").startswith(says.format(file=project / "streamfuzz.toml"))


def test_a_file_that_is_no_text_is_told(project: Path) -> None:
    (project / "streamfuzz.toml").write_bytes(b"\xff")
    assert refusal("mine").startswith(f"cannot read {project / 'streamfuzz.toml'}: ")


# --- names


def test_a_ready_name_is_a_ready_target_and_what_is_asked_wins(project: Path) -> None:
    assert config.resolve("reference-sse") == targets.ready("reference-sse")
    assert config.resolve("demo", takes="text", gives=None).takes == "text"


def test_a_configured_name_hides_a_ready_one(project: Path) -> None:
    configure(project, '[targets.demo]\ncall = "readers:repaired"')
    assert config.resolve("demo").call is repaired


def test_what_the_user_asks_wins_over_the_file(project: Path) -> None:
    configure(project, WHOLE)
    found = config.resolve("mine", provider="ollama", takes="text")
    assert (found.provider, found.takes, found.gives) == ("ollama", "text", "reply")


def test_the_message_about_an_unknown_name_lists_the_known_ones(project: Path) -> None:
    configure(project, WHOLE)
    assert refusal("min").startswith("no target 'min': write module:attribute, or one of: mine, demo, ")


# --- module:attribute


def test_code_is_imported_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "only_here_7c1.py").write_text("def read(chunks):\n    return {}\n")
    found = config.resolve("only_here_7c1:read")
    assert (found.name, found.provider, found.gives) == ("read", "openai-chat", "reply")


def test_an_attribute_may_lie_deep(project: Path) -> None:
    assert config.resolve("readers:reader.whole").name == "reader.whole"


def test_a_described_target_keeps_what_it_says(project: Path) -> None:
    found = config.resolve("readers:described")
    assert (found.name, found.errors) == ("mine", (StreamError,))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("import absent_module_5f2", "cannot import 'broken': No module named 'absent_module_5f2'; run streamfuzz"),
        ("raise ValueError('boo')", "importing 'broken' raised ValueError: boo; make it importable first"),
        ("def read(:", "importing 'broken' raised SyntaxError: "),
        ("import sys; sys.exit(5)", "importing 'broken' raised SystemExit: 5; make it importable first"),
    ],
)
def test_a_module_that_does_not_import_is_told(project: Path, content: str, says: str) -> None:
    (project / "broken.py").write_text(content)
    assert refusal("broken:read").startswith(says)


@pytest.mark.parametrize("module", ["readers.py", "./readers.py", ".readers", "a/b", "a..b", "my reader"])
def test_a_file_is_no_module(project: Path, module: str) -> None:
    assert refusal(f"{module}:read").startswith(f"{module!r} is no module name: write the module as in an import")


@pytest.mark.parametrize("spec", [":", "readers:", ":read"])
def test_both_halves_are_needed(spec: str, project: Path) -> None:
    assert refusal(spec) == f"{spec!r} is not of the form module:attribute"


def test_a_missing_attribute_is_answered_with_what_there_is(project: Path) -> None:
    assert refusal("readers:reader.hole").startswith("readers has no attribute 'reader.hole'; it has: nothing that")
    many = "".join(f"def f{number:02}(): ...\n" for number in range(30))
    (project / "many.py").write_text(many)
    assert refusal("many:g").endswith("f18, f19, ...")
    assert refusal("readers:VALUE.up").startswith("readers has no attribute 'VALUE.up'; it has: nothing that")


# --- targets for kept cases


def test_a_case_tells_what_a_plain_function_reads(project: Path) -> None:
    case = Case("ndjson", ("1",), takes="text")
    found = config.for_case("readers:repaired", case, Path("case.json"))
    assert (found.provider, found.takes, found.gives) == ("ndjson", "text", "frames")


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        ("demo", {}),
        ("readers:described", {}),
        ("readers:repaired", {"provider": "ollama"}),
        ("readers:repaired", {"takes": "text"}),
        ("mine", {}),
    ],
)
def test_who_says_what_it_reads_is_not_given_other_cases(project: Path, spec: str, asked: dict[str, str]) -> None:
    configure(project, WHOLE)
    with pytest.raises(UsageError, match=r"^target \S+ reads .*, but kept/1\.json is bytes of ndjson: use a target"):
        config.for_case(spec, Case("ndjson", (b"1",)), Path("kept/1.json"), **asked)


def test_a_case_of_what_the_target_reads_is_welcome(project: Path) -> None:
    configure(project, WHOLE)
    for spec in ("demo", "readers:described", "readers:repaired", "mine"):
        assert config.for_case(spec, Case("openai-chat", (b"",)), Path("1.json")) == config.resolve(spec)
