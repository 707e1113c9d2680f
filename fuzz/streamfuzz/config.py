"""Where targets come from: ``module:attribute``, a ready name, or a name from the project's configuration.

Configuration is ``[tool.streamfuzz]`` in ``pyproject.toml``, or ``streamfuzz.toml``, in the working directory
or the nearest one above it::

    [tool.streamfuzz.targets.mine]
    call = "mypackage.stream:parse"
    provider = "anthropic"
    errors = ["mypackage.stream:StreamError"]

    [[tool.streamfuzz.targets.mine.known]]
    signature = "fail_closed.trusted@anthropic.stream.unfinished"
    reason = "the server in front of it never sends message_stop"
    expires = 2027-06-30
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from streamfuzz_strategies import dialects

from . import targets
from .case import Case
from .spec import Known, Target, UsageError, target

T = TypeVar("T", bound=msgspec.Struct)

LISTED = 20
"""How many names a message lists."""


class _Known(msgspec.Struct, forbid_unknown_fields=True):
    signature: str
    reason: str
    expires: date


class _Target(msgspec.Struct, forbid_unknown_fields=True):
    call: str
    provider: str | None = None
    providers: list[str] = []
    takes: str | None = None
    gives: str | None = None
    shape: str | None = None
    errors: list[str] = []
    known: list[_Known] = []
    whole: str | None = None
    closes_source: bool = False
    timeout: float = 2.0
    dialects: list[str] = []
    corpora: list[str] = []


class Nightly(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What ``[tool.streamfuzz.nightly]`` says; :mod:`.nightly.settings` makes it into values."""

    targets: list[str] = []
    corpus: str = "streamfuzz-corpus"
    time: str = "30m"
    change: str = "2m"
    workers: int | None = None
    memory: str = "2GB"
    patience: str = "30s"
    engines: list[str] = []
    examples: str | None = None
    scheduler: str | None = None
    seed: int | None = None


class _Config(msgspec.Struct, forbid_unknown_fields=True):
    targets: dict[str, Any] = {}
    nightly: Any = {}


def find(start: Path) -> Path | None:
    """The configuration file that holds for a folder, if there is one."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "streamfuzz.toml").is_file():
            return folder / "streamfuzz.toml"
        pyproject = folder / "pyproject.toml"
        if pyproject.is_file():
            return pyproject if _table(pyproject) is not None else None
    return None


def load(path: Path) -> Mapping[str, _Target]:
    """Read the targets of a configuration file.

    Raises:
        UsageError: it is not TOML, or has a name or a value that streamfuzz does not know.
    """
    config = _convert(_table(path) or {}, _Config, str(path))
    nightly(path)  # a mistake anywhere in the file is told at once
    return {name: _convert(table, _Target, f"{path}: target {name!r}") for name, table in config.targets.items()}


def nightly(path: Path | None) -> Nightly:
    """What a configuration file says of the nightly job.

    Raises:
        UsageError: as for :func:`load`.
    """
    if path is None:
        return Nightly()
    config = _convert(_table(path) or {}, _Config, str(path))
    return _convert(config.nightly, Nightly, f"{path}: nightly")


def _convert(table: Any, kind: type[T], where: str) -> T:
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        known = ", ".join(field.name for field in msgspec.structs.fields(kind))
        raise UsageError(f"{where}: {error}; known here: {known}") from None


def _table(path: Path) -> Any:
    """What a file configures; ``None`` for a ``pyproject.toml`` that says nothing of streamfuzz."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    if path.name != "pyproject.toml":
        return table
    tool = table.get("tool")
    return tool.get("streamfuzz") if isinstance(tool, dict) else None


def configured(start: Path) -> Mapping[str, _Target]:
    """The targets that the project's configuration names."""
    path = find(start)
    return load(path) if path is not None else {}


def resolve(spec: str, *, start: Path | None = None, **asked: Any) -> Target:
    """The target that a name or ``module:attribute`` means.

    Args:
        spec: what the user wrote.
        start: the folder whose configuration holds; by default the working directory.
        asked: fields of :class:`Target` that the user gave (``None``: not given); they win.

    Raises:
        UsageError: nothing of that name; it does not import; it is not callable; the message says what to do.
    """
    given = {name: value for name, value in asked.items() if value is not None}
    names = configured(start or Path.cwd())
    if spec in names:
        return _of_table(spec, names[spec], given)
    if ":" not in spec:
        if spec not in targets.NAMES:
            known = ", ".join((*names, *targets.NAMES))
            raise UsageError(f"no target {spec!r}: write module:attribute, or one of: {known}")
        return replace(targets.ready(spec), **given)
    return _described(_import(spec), spec, given)


def for_case(spec: str, case: Case, path: Path, *, start: Path | None = None, **asked: Any) -> Target:
    """The target that a name or ``module:attribute`` means, to run a kept case.

    What a plain function reads is told by the case, unless the user says it; other targets say it themselves.

    Args:
        spec: what the user wrote.
        case: the case; the target must read its provider and form.
        path: its file, for the message.
        start: as for :func:`resolve`.
        asked: as for :func:`resolve`.

    Raises:
        UsageError: as :func:`resolve`, or the target reads something else.
    """
    several = configured(start or Path.cwd()).get(spec)
    if several is not None and case.provider in several.providers:
        asked = {**asked, "provider": asked.get("provider") or case.provider}
    found = resolve(spec, start=start, **asked)
    if (found.provider, found.takes) == (case.provider, case.takes):
        return found
    told = asked.get("provider") is not None or asked.get("takes") is not None
    named = ":" not in spec or spec in configured(start or Path.cwd())
    if not told and not named and not isinstance(_import(spec), Target):
        return resolve(spec, start=start, **{**asked, "provider": case.provider, "takes": case.takes})
    raise UsageError(
        f"target {found.name} reads {found.takes} of {found.provider}, "
        f"but {path} is {case.takes} of {case.provider}: use a target for those"
    )


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make a target in another process: plain data, so that it can be sent there and written down.

    Attributes:
        spec: what the user wrote.
        table: the entry of the configuration with that name, as JSON; empty if there is none.
    """

    spec: str
    table: str = ""

    def target(self, provider: str | None = None) -> Target:
        """Make the target, for streams of this provider.

        Raises:
            UsageError: as :func:`resolve`.
        """
        given = {"provider": provider} if provider is not None else {}
        if not self.table:
            return resolve(self.spec, start=Path(os.sep), **given)
        return _of_table(self.spec, msgspec.json.decode(self.table, type=_Target), given)


def recipe(spec: str, *, start: Path | None = None, **asked: Any) -> tuple[Recipe, tuple[str, ...]]:
    """How to make a target, and the providers whose streams it reads.

    Args:
        spec: what the user wrote.
        start: as for :func:`resolve`.
        asked: fields of :class:`Target` that the user gave; of a plain function or class only.

    Raises:
        UsageError: as :func:`resolve`.
    """
    table = configured(start or Path.cwd()).get(spec)
    given = {name: value for name, value in asked.items() if value is not None}
    if table is None and given and ":" in spec:
        table = _Target(call=spec, **given)
    made = Recipe(spec, msgspec.json.encode(table).decode() if table is not None else "")
    if table is not None and table.providers:
        for provider in table.providers:
            made.target(provider)
        return made, tuple(table.providers)
    return made, (made.target().provider,)


def corpora(spec: str, start: Path) -> tuple[Path, ...]:
    """The folders of kept cases that the configuration names for a target.

    Raises:
        UsageError: one of them does not exist.
    """
    path = find(start)
    table = load(path).get(spec) if path is not None else None
    if path is None or table is None:
        return ()
    found = tuple(path.parent / folder for folder in table.corpora)
    for folder in found:
        if not folder.is_dir():
            raise UsageError(f"{path}: target {spec!r}: corpora: no such folder: {folder}")
    return found


def folder_name(spec: str) -> str:
    """What the folder of a target is called in a corpus."""
    return re.sub(r"[^\w.-]+", "-", spec).lstrip(".") or "-"


def _of_table(name: str, table: _Target, given: Mapping[str, Any]) -> Target:
    try:
        if table.providers and table.provider is not None:
            raise UsageError("say provider or providers, not both")
        if table.providers and given.get("provider") not in table.providers:
            raise UsageError(f"it reads several providers, choose one with --provider: {', '.join(table.providers)}")
        if table.providers:
            table = _in_dialects_of(given["provider"], table)
        made = _configured(name, table, given)
        return replace(made, name=f"{name} ({made.provider})") if len(table.providers) > 1 else made
    except UsageError as error:
        raise UsageError(f"configured target {name!r}: {error}") from None


def _in_dialects_of(provider: str, table: _Target) -> _Target:
    """The table with no dialects but those of this provider; all of its providers have to know each name together."""
    known = {name for each in table.providers for name in dialects.of(each)}
    kept = [name for name in table.dialects if name in dialects.of(provider) or name not in known]
    return msgspec.structs.replace(table, dialects=kept)


def _described(found: Any, spec: str, given: Mapping[str, Any]) -> Target:
    if isinstance(found, Target):
        return replace(found, **given)
    if not callable(found):
        raise UsageError(
            f"{spec} is not callable but {type(found).__name__}: name a function or class that reads chunks"
        )
    return target(found, name=spec.partition(":")[2], **given)


def _configured(name: str, table: _Target, given: Mapping[str, Any]) -> Target:
    fields: dict[str, Any] = {
        "errors": tuple(_import(error) for error in table.errors),
        "known": tuple(Known(known.signature, known.reason, known.expires) for known in table.known),
        "closes_source": table.closes_source,
        "timeout": table.timeout,
        "dialects": tuple(table.dialects),
    }
    for field in ("provider", "takes", "gives", "shape"):
        if getattr(table, field) is not None:
            fields[field] = getattr(table, field)
    if table.whole is not None:
        fields["whole"] = _import(table.whole)
    made = _described(_import(table.call), table.call, {**fields, **given})
    return replace(made, name=name)


def _import(spec: str) -> Any:
    module_name, _, attribute = spec.partition(":")
    if not module_name or not attribute:
        raise UsageError(f"{spec!r} is not of the form module:attribute")
    if module_name.endswith(".py") or not all(map(str.isidentifier, module_name.split("."))):
        raise UsageError(
            f"{module_name!r} is no module name: write the module as in an import statement, like mypackage.stream"
        )
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UsageError(f"cannot import {module_name!r}: {error}; run streamfuzz where it can be imported") from None
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"importing {module_name!r} raised {type(error).__name__}: {error}; make it importable first"
        ) from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise UsageError(f"{module_name} has no attribute {attribute!r}; it has: {_callables(found)}")
        found = getattr(found, name)
    return found


def _callables(found: Any) -> str:
    members = vars(found) if hasattr(found, "__dict__") else {}
    names = sorted(name for name, member in members.items() if callable(member) and not name.startswith("_"))
    return ", ".join((*names[:LISTED], "...") if len(names) > LISTED else names) or "nothing that can be called"
