"""What `streamfuzz init` writes: files that work as they are, beside what the project has already."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from pathlib import Path

import pytest

from streamfuzz import campaign, config, scaffold
from streamfuzz.engines import Budget
from streamfuzz.spec import UsageError
from streamfuzz_strategies import providers

EVERYTHING = [
    "streamfuzz.toml",
    "pytest.ini",
    "tests/test_streamfuzz.py",
    "tests/cases/README.md",
    ".github/workflows/streamfuzz-nightly.yml",
    ".github/workflows/streamfuzz-pull-request.yml",
    "streamfuzz_target.py",
]
PYPROJECT = '[project]\nname = "their"   # spaced by hand\nversion = "1"\n'


def scaffolded(folder: Path, **asked: object) -> dict[str, str]:
    """Carry out a plan; what happened to which file."""
    made = scaffold.plan(folder, **asked)  # type: ignore[arg-type]
    scaffold.carry_out(made)
    return {step.path.relative_to(folder).as_posix(): step.action for step in made.steps}


def advice(folder: Path, **asked: object) -> str:
    return "\n".join(scaffold.plan(folder, **asked).advice)  # type: ignore[arg-type]


def install_line(folder: Path) -> str:
    scaffolded(folder)
    text = (folder / ".github/workflows/streamfuzz-nightly.yml").read_text()
    return next(line.partition("run: ")[2] for line in text.splitlines() if "pip install" in line)


# --- an empty project


def test_an_empty_project_gets_everything(tmp_path: Path) -> None:
    assert scaffolded(tmp_path) == dict.fromkeys(EVERYTHING, "write")
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert written == set(EVERYTHING)


def test_a_plan_writes_nothing(tmp_path: Path) -> None:
    scaffold.plan(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_made(tmp_path: Path) -> None:
    scaffolded(tmp_path / "new" / "project")
    assert (tmp_path / "new" / "project" / "streamfuzz.toml").exists()


def test_no_placeholder_is_left(tmp_path: Path) -> None:
    scaffolded(tmp_path)
    assert [name for name in EVERYTHING if "%" in (tmp_path / name).read_text()] == []


@pytest.mark.untraced
@pytest.mark.parametrize("provider", providers.NAMES)
def test_the_stub_of_each_provider_runs_and_is_right(project: Path, provider: str) -> None:
    scaffolded(project, provider=provider)
    result = campaign.run(config.resolve("mine"), Budget(None, 400, seed=1))
    assert result.provider == provider
    assert (result.findings, result.exit_code) == ([], 0)


@pytest.mark.parametrize("provider", providers.NAMES)
def test_written_python_fits_the_usual_style(tmp_path: Path, provider: str) -> None:
    scaffolded(tmp_path, provider=provider)
    for name in ("streamfuzz_target.py", "tests/test_streamfuzz.py"):
        text = (tmp_path / name).read_text()
        assert ast.get_docstring(ast.parse(text))
        assert max(map(len, text.splitlines())) <= 88


def test_the_stub_is_held_to_its_error_type(project: Path) -> None:
    scaffolded(project)
    assert [error.__name__ for error in config.resolve("mine").errors] == ["StreamError"]


def test_a_parser_of_ones_own_needs_no_stub(project: Path) -> None:
    assert "streamfuzz_target.py" not in scaffolded(project, call="readers:repaired", provider="openai-chat")
    target = config.resolve("mine")
    assert target.call.__name__ == "repaired"
    assert target.errors == ()


def test_the_configuration_is_what_the_nightly_job_reads(project: Path) -> None:
    scaffolded(project)
    told = config.nightly(project / "streamfuzz.toml")
    assert (told.corpus, told.time, told.change) == ("streamfuzz-corpus", "30m", "2m")
    assert config.corpora("mine", project) == (project / "tests/cases",)


def test_the_example_of_a_known_deviation_is_one(project: Path) -> None:
    scaffolded(project)
    path = project / "streamfuzz.toml"
    path.write_text(re.sub(r"^# (?=\[\[|signature|reason|expires)", "", path.read_text(), flags=re.MULTILINE))
    (known,) = config.resolve("mine").known
    assert known.signature.startswith("typed_error.undeclared")


# --- what is there already


def test_a_pyproject_is_extended_and_not_touched_otherwise(project: Path) -> None:
    (project / "pyproject.toml").write_text(PYPROJECT)
    actions = scaffolded(project)
    assert actions["pyproject.toml"] == "extend"
    assert not {"streamfuzz.toml", "pytest.ini"} & set(actions)
    text = (project / "pyproject.toml").read_text()
    assert text.startswith(PYPROJECT + "\n")
    assert config.resolve("mine").name == "mine"
    assert tomllib.loads(text)["tool"]["pytest"]["ini_options"]["streamfuzz_corpora"] == ["tests/cases = mine"]
    assert "pyproject.toml" in (project / "tests/test_streamfuzz.py").read_text()


@pytest.mark.parametrize("content", ["", "[project]\r\nname = 'their'\r\n", "[project]\nname = 'their'", "# é\n"])
def test_any_pyproject_keeps_its_bytes_and_its_line_ends(tmp_path: Path, content: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes(content.encode())
    scaffolded(tmp_path)
    made = path.read_bytes()
    assert made.startswith(content.encode())
    assert ("mine" in config.load(path)) is True
    if "\r\n" in content:
        assert made.count(b"\n") == made.count(b"\r\n")


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    scaffolded(tmp_path, provider="anthropic")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert set(scaffolded(tmp_path).values()) == {"leave", "same"}
    assert scaffolded(tmp_path, force=True)["pyproject.toml"] == "leave"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_holds_something_else_is_left_alone_unless_forced(tmp_path: Path) -> None:
    for name in EVERYTHING:
        if name not in ("streamfuzz.toml", "pytest.ini"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("# theirs\n")
    actions = scaffolded(tmp_path)
    theirs = {name for name, action in actions.items() if action == "leave"}
    assert theirs == set(EVERYTHING) - {"streamfuzz.toml", "pytest.ini"}
    assert {(tmp_path / name).read_text() for name in theirs} == {"# theirs\n"}
    forced = scaffolded(tmp_path, force=True)
    assert {forced[name] for name in theirs} == {"replace"}


def test_the_target_that_is_described_already_is_the_one_that_is_tested(project: Path) -> None:
    (project / "streamfuzz.toml").write_text('[targets.chat]\ncall = "readers:repaired"\nprovider = "openai-chat"\n')
    actions = scaffolded(project)
    assert actions["streamfuzz.toml"] == "leave"
    assert "streamfuzz_target.py" not in actions
    assert 'resolve("chat")' in (project / "tests/test_streamfuzz.py").read_text()
    assert "tests/cases = chat" in (project / "pytest.ini").read_text()


def test_one_provider_is_chosen_of_a_target_that_reads_several(project: Path) -> None:
    table = '[targets.chat]\ncall = "readers:repaired"\nproviders = ["ollama", "anthropic"]\n'
    (project / "streamfuzz.toml").write_text(table)
    scaffolded(project)
    assert 'resolve("chat", provider="ollama")' in (project / "tests/test_streamfuzz.py").read_text()


def test_force_writes_over_a_configuration_of_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "streamfuzz.toml").write_text("[nightly]\n")
    (tmp_path / "pyproject.toml").write_text("[tool.streamfuzz.nightly]\n")
    assert scaffolded(tmp_path, force=True)["streamfuzz.toml"] == "replace"
    assert "mine" in config.load(tmp_path / "streamfuzz.toml")


def test_a_pyproject_that_cannot_be_extended_gets_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool = {black = {line-length = 100}}\n")
    actions = scaffolded(tmp_path)
    assert (actions["streamfuzz.toml"], actions["pytest.ini"]) == ("write", "write")
    assert "pyproject.toml" not in actions


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pytest.ini", "[pytest]\n"),
        (".pytest.ini", ""),
        ("pyproject.toml", "[tool.pytest.ini_options]\n"),
        ("tox.ini", "[tox]\n[pytest]\n"),
        ("setup.cfg", "[tool:pytest]\n"),
    ],
)
def test_the_configuration_of_pytest_is_the_users(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    scaffolded(tmp_path)
    assert (tmp_path / name).read_text().startswith(content)
    assert "streamfuzz_corpora" not in (tmp_path / name).read_text()
    assert name == "pytest.ini" or not (tmp_path / "pytest.ini").exists()
    assert f"add to its configuration in {tmp_path / name}: streamfuzz_corpora = " in advice(tmp_path)


def test_an_ini_file_that_says_nothing_of_pytest_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "tox.ini").write_text("[tox]\n")
    (tmp_path / "setup.cfg").write_text("no ini file at all")
    assert scaffolded(tmp_path)["pytest.ini"] == "write"


@pytest.mark.parametrize(
    ("there", "installed"),
    [
        ({}, "streamfuzz"),
        ({"pyproject.toml": PYPROJECT}, "-e . streamfuzz"),
        ({"pyproject.toml": "[tool.black]\n"}, "streamfuzz"),
        ({"setup.py": "", "requirements.txt": "httpx\n"}, "-e . -r requirements.txt streamfuzz"),
    ],
)
def test_workflows_install_what_the_project_needs(tmp_path: Path, there: dict[str, str], installed: str) -> None:
    for name, content in there.items():
        (tmp_path / name).write_text(content)
    assert install_line(tmp_path) == f"python -m pip install {installed}"


# --- advice


def test_workflows_below_the_root_of_a_repository_do_nothing_and_it_says_so(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert "GitHub reads workflows at the root" in advice(tmp_path / "part")
    assert "GitHub reads workflows" not in advice(tmp_path)


def test_what_git_should_ignore_is_said_until_it_does(tmp_path: Path) -> None:
    assert ".gitignore" in advice(tmp_path)
    (tmp_path / ".gitignore").write_text("streamfuzz-*/\n")
    assert ".gitignore" not in advice(tmp_path)


def test_a_target_that_was_asked_for_and_not_written_is_told(tmp_path: Path) -> None:
    scaffolded(tmp_path, provider="anthropic")
    assert "describes another target" in advice(tmp_path, provider="ollama")
    assert "describes another target" in advice(tmp_path, call="my.stream:parse")
    assert "describes another target" not in advice(tmp_path, provider="anthropic")


# --- writing


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_text(PYPROJECT)
    real.chmod(0o640)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").symlink_to(real)
    scaffolded(folder)
    assert (folder / "pyproject.toml").is_symlink()
    assert "[tool.streamfuzz.targets.mine]" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_permissions_of_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    scaffolded(tmp_path)
    assert (tmp_path / "streamfuzz.toml").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match=r"cannot write .*pyproject.toml: No space left on device; make that possible"):
        scaffolded(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["pyproject.toml"]
    assert (tmp_path / "pyproject.toml").read_text() == PYPROJECT


# --- bad input


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"provider": "openia"}, "unknown provider 'openia'; known: anthropic, "),
        ({"call": "parse"}, "'parse' is not of the form module:attribute"),
        ({"call": "src/stream.py:parse"}, "is not of the form module:attribute"),
        ({"call": 'a:b"\nevil = "x'}, "is not of the form module:attribute"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, asked: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        scaffold.plan(tmp_path, **asked)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pyproject.toml", b"[project\n", "cannot read .*pyproject.toml: .*; mend it"),
        ("pyproject.toml", b"\xff", "cannot read .*pyproject.toml"),
        ("streamfuzz.toml", b"[nightly]\n", r"streamfuzz.toml describes no target: add a table targets\.mine"),
        ("streamfuzz.toml", b"[nightly]\nhours = 3\n", "unknown field `hours`"),
        ("pyproject.toml", b"[tool]\nstreamfuzz = 3\n", "Expected `object`"),
    ],
)
def test_configuration_that_cannot_be_read_stops_it_first(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        scaffolded(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_is_no_project(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("")
    with pytest.raises(UsageError, match="notes is no folder: name the root of the project"):
        scaffold.plan(tmp_path / "notes")
