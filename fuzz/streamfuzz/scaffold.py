"""What ``streamfuzz init`` writes into a project: configuration, a target stub, tests, and two GitHub workflows.

:func:`plan` reads and decides, :func:`carry_out` writes.  What is written are the templates in ``templates/``.
"""

from __future__ import annotations

import configparser
import os
import string
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

from streamfuzz_strategies import providers

from . import config
from .spec import UsageError

Action: TypeAlias = Literal["write", "extend", "replace", "leave", "same"]
"""A file is new, gets sections at its end, is written over, is left alone, or is as it should be already."""

NAME = "mine"
"""What the target is called where the configuration does not name one yet."""

PROVIDER = "openai-chat"
"""Whose streams it reads if nobody says so."""

STUB = "streamfuzz_target"
"""The module of the target stub."""

CASES = "tests/cases"
"""The folder of the cases that are kept for good."""

_REPLY_STUB = "target-reply.py"
_STUBS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "json": ("target-json.py", {}),
    "ndjson": (
        "target-frames.py",
        {"title": "JSON lines", "frame": "value", "module": "ndjson", "decoder": "NDJSONDecoder"},
    ),
    "sse": (
        "target-frames.py",
        {"title": "server-sent events", "frame": "event", "module": "sse", "decoder": "SSEDecoder"},
    ),
}
"""The stub for each plain profile, and what it says; for a provider it is the one that gives replies."""

_ERRORS = f'errors = ["{STUB}:StreamError"]  # what it raises on purpose'
_NO_ERRORS = (
    '# errors = ["mypackage.stream:StreamError"]  # what it raises on purpose; without, any but programming mistakes'
)

_FILES: Mapping[str, str] = {
    "tests/test_streamfuzz.py": "test_streamfuzz.py",
    f"{CASES}/README.md": "cases.md",
    ".github/workflows/streamfuzz-nightly.yml": "nightly.yml",
    ".github/workflows/streamfuzz-pull-request.yml": "pull-request.yml",
}
"""What every project gets, and of which template."""


class _Template(string.Template):
    """Placeholders are ``%{name}``: dollars and plain braces mean something in what is written."""

    delimiter = "%"


@dataclass(frozen=True, slots=True)
class Step:
    """What is done to one file.

    Attributes:
        path: where it is.
        action: what happens to it.
        content: what it holds afterwards, if something happens to it.
        why: of a file that is left alone, a clause that says why.
    """

    path: Path
    action: Action
    content: bytes = b""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is done: the name of the target, a step for each file, and what the user has to do besides."""

    name: str
    steps: tuple[Step, ...]
    advice: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Project:
    """What is there: the text and the tables of its ``pyproject.toml``, and the file that configures streamfuzz."""

    folder: Path
    text: str | None
    tables: Mapping[str, Any]
    configuration: Path | None

    @property
    def extends(self) -> bool:
        """Whether sections can be added at the end of the ``pyproject.toml``."""
        if self.text is None:
            return False
        with suppress(tomllib.TOMLDecodeError):  # such as: "tool" is an inline table
            return bool(tomllib.loads(f"{self.text}\n[tool.streamfuzz.nightly]\n[tool.pytest.ini_options]"))
        return False

    @property
    def own(self) -> Path:
        """The file that configures nothing else."""
        return self.folder / "streamfuzz.toml"

    @property
    def destination(self) -> Path:
        """The file that will configure streamfuzz; where both are there, the one of its own holds."""
        if self.configuration is not None:
            return self.configuration
        return self.folder / "pyproject.toml" if self.extends and not self.own.exists() else self.own


@dataclass(frozen=True, slots=True)
class _Described:
    """The target as the configuration describes it, or will."""

    name: str
    call: str
    provider: str
    chosen: bool = False


def plan(folder: Path, *, call: str | None = None, provider: str | None = None, force: bool = False) -> Plan:
    """Decide what to write into a project; nothing is written.

    Args:
        folder: the root of the project, which need not exist yet.
        call: the parser, as ``module:attribute``; without it a stub is written where one can be put.
        provider: whose streams the parser reads; by default :data:`PROVIDER`.
        force: write over files that hold something else; a ``pyproject.toml`` is extended at most.

    Raises:
        UsageError: the folder is none, ``call`` or ``provider`` means nothing, or the configuration that is there
            cannot be read or describes no target; the message says what to do.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is no folder: name the root of the project")
    if provider is not None and provider not in providers.NAMES:
        raise UsageError(f"unknown provider {provider!r}; known: {', '.join(providers.NAMES)}")
    if call is not None and not _is_name(call):
        raise UsageError(f"{call!r} is not of the form module:attribute, like mypackage.stream:parse")
    project = _read(folder, force)
    target = _described(project.configuration) or _Described(NAME, call or f"{STUB}:parse", provider or PROVIDER)
    values = _values(project, target)
    wanted = dict(_FILES)
    if target.call.startswith(f"{STUB}:"):
        wanted[f"{STUB}.py"] = _STUBS.get(target.provider, (_REPLY_STUB, {}))[0]
    steps = [
        *_configuration(project, values),
        *(_step(folder / name, _filled(template, values), force) for name, template in wanted.items()),
    ]
    return Plan(target.name, tuple(steps), tuple(_advice(project, target, call, provider)))


def carry_out(made: Plan) -> None:
    """Write what is planned, each file whole or not at all.

    Raises:
        UsageError: a file cannot be written; those before it are.
    """
    for step in made.steps:
        if step.action not in ("leave", "same"):
            try:
                _write(step.path, step.content)
            except OSError as error:
                raise UsageError(
                    f"cannot write {step.path}: {error.strerror or error}; make that possible and run init again"
                ) from None


def _is_name(call: str) -> bool:
    module, _, attribute = call.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))


def _read(folder: Path, force: bool) -> _Project:
    path = folder / "pyproject.toml"
    text, tables = None, {}
    if path.exists():
        try:
            text = path.read_bytes().decode()
            tables = tomllib.loads(text)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"cannot read {path}: {error}; mend it, then run init again") from None
    found = _Project(folder, text, tables, None)
    if found.own.exists():
        return found if force else replace(found, configuration=found.own)
    return replace(found, configuration=path) if "streamfuzz" in tables.get("tool", {}) else found


def _described(configuration: Path | None) -> _Described | None:
    """The target that is described already: ours, or else the first."""
    if configuration is None:
        return None
    described = config.load(configuration)
    if not described:
        raise UsageError(
            f"{configuration} describes no target: add a table targets.{NAME} with `call` and `provider` to what "
            "configures streamfuzz there, then run init again"
        )
    name = NAME if NAME in described else next(iter(described))
    table = described[name]
    return _Described(name, table.call, table.provider or [*table.providers, PROVIDER][0], bool(table.providers))


def _values(project: _Project, target: _Described) -> Mapping[str, str]:
    """What the placeholders of the templates stand for."""
    stub, words = _STUBS.get(target.provider, (_REPLY_STUB, {"title": providers.get(target.provider).title}))
    ours = target.call.startswith(f"{STUB}:") and stub == _REPLY_STUB
    return {
        **words,
        "name": target.name,
        "call": target.call,
        "provider": target.provider,
        "chosen": f', provider="{target.provider}"' if target.chosen else "",
        "config": project.destination.name,
        "table": "tool.streamfuzz." if project.destination.name == "pyproject.toml" else "",
        "errors": _ERRORS if ours else _NO_ERRORS,
        "packages": " ".join(_packages(project)),
    }


def _packages(project: _Project) -> Sequence[str]:
    """What a workflow has to install: the project, what it names as its requirements, and streamfuzz."""
    packages = []
    if {"project", "build-system"} & set(project.tables) or (project.folder / "setup.py").exists():
        packages.append("-e .")
    if (project.folder / "requirements.txt").exists():
        packages.append("-r requirements.txt")
    return (*packages, "streamfuzz")


def _filled(template: str, values: Mapping[str, str]) -> str:
    source = files(__package__) / "templates" / f"{template}.in"
    return _Template(source.read_text(encoding="utf-8")).substitute(values)


def _configuration(project: _Project, values: Mapping[str, str]) -> list[Step]:
    """The configuration of streamfuzz and of pytest, at the end of a ``pyproject.toml`` or in files of their own."""
    steps, sections = [], []
    if project.configuration is not None:
        steps.append(Step(project.configuration, "leave", why="it configures streamfuzz already"))
    elif project.destination == project.own:
        steps.append(_step(project.own, _filled("config.toml", values), force=True))
    else:
        sections.append(_filled("config.toml", values))
    if _pytest(project) is None:
        if project.extends:
            sections.append(_filled("pytest.toml", values))
        else:
            steps.append(Step(project.folder / "pytest.ini", "write", _filled("pytest.ini", values).encode()))
    if sections and project.text is not None:
        steps.append(Step(project.folder / "pyproject.toml", "extend", _extended(project.text, sections)))
    return steps


def _extended(text: str, sections: Sequence[str]) -> bytes:
    end = "\r\n" if "\r\n" in text else "\n"
    added = "\n".join(sections).replace("\n", end)
    gap = "" if not text else end if text.endswith("\n") else end + end
    return f"{text}{gap}{added}".encode()


def _pytest(project: _Project) -> Path | None:
    """The file that configures pytest, if one does."""
    for name in ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"):
        if (project.folder / name).exists():
            return project.folder / name
    if "pytest" in project.tables.get("tool", {}):
        return project.folder / "pyproject.toml"
    for name, section in (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        parser = configparser.RawConfigParser(strict=False)
        with suppress(configparser.Error, UnicodeDecodeError):
            parser.read(project.folder / name, encoding="utf-8")
        if parser.has_section(section):
            return project.folder / name
    return None


def _step(path: Path, content: str, force: bool) -> Step:
    data = content.encode()
    if not path.exists():
        return Step(path, "write", data)
    if path.is_file() and path.read_bytes() == data:
        return Step(path, "same")
    return Step(path, "replace", data) if force else Step(path, "leave", why="it holds something else")


def _advice(project: _Project, target: _Described, call: str | None, provider: str | None) -> list[str]:
    """What the user has to do besides."""
    advice = []
    if project.configuration is not None and (call or target.call, provider or target.provider) != (
        target.call,
        target.provider,
    ):
        advice.append(f"{project.configuration} describes another target; change it there.")
    pytest = _pytest(project)
    if pytest is not None and "streamfuzz_corpora" not in pytest.read_text(encoding="utf-8", errors="replace"):
        advice.append(
            f"To run kept cases with pytest, add to its configuration in {pytest}: streamfuzz_corpora = "
            f'["{CASES} = {target.name}"] (in an ini file without brackets and quotes, on a line of its own).'
        )
    root = next((above for above in project.folder.resolve().parents if (above / ".git").exists()), None)
    if root is not None and not (project.folder / ".git").exists():
        advice.append(
            f"GitHub reads workflows at the root of the repository: move {project.folder / '.github'} to {root} "
            "and give its `run` steps a working-directory."
        )
    ignored = project.folder / ".gitignore"
    if not ignored.exists() or "streamfuzz-" not in ignored.read_text(encoding="utf-8", errors="replace"):
        advice.append(f"Add streamfuzz-*/ to .gitignore: what is kept for good is kept in {CASES}.")
    return advice


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, with the permissions that it had or that a new file has here."""
    path = path.resolve()  # a link stays one
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".streamfuzz-", dir=path.parent) as scratch:
        whole = Path(scratch) / path.name
        with whole.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            whole.chmod(path.stat().st_mode)
        os.replace(whole, path)
