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
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from . import targets
from .target import Known, Target, UsageError, target


class _Known(msgspec.Struct, forbid_unknown_fields=True):
    signature: str
    reason: str
    expires: date


class _Target(msgspec.Struct, forbid_unknown_fields=True):
    call: str
    provider: str | None = None
    takes: str | None = None
    gives: str | None = None
    shape: str | None = None
    errors: list[str] = []
    known: list[_Known] = []
    whole: str | None = None
    closes_source: bool = False
    timeout: float = 2.0


class _Config(msgspec.Struct, forbid_unknown_fields=True):
    targets: dict[str, _Target] = {}


def find(start: Path) -> Path | None:
    """The configuration file that holds for a folder, if there is one."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "streamfuzz.toml").is_file():
            return folder / "streamfuzz.toml"
        pyproject = folder / "pyproject.toml"
        if pyproject.is_file():
            return pyproject if "streamfuzz" in _table(pyproject).get("tool", {}) else None
    return None


def load(path: Path) -> _Config:
    """Read a configuration file.

    Raises:
        UsageError: it is not TOML, or has a name or a value that streamfuzz does not know.
    """
    table = _table(path)
    if path.name == "pyproject.toml":
        table = table.get("tool", {}).get("streamfuzz", {})
    try:
        return msgspec.convert(table, _Config)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}") from None


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None


def configured(start: Path) -> Mapping[str, _Target]:
    """The targets that the project's configuration names."""
    path = find(start)
    return load(path).targets if path is not None else {}


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
        return _configured(spec, names[spec], given)
    if ":" not in spec:
        if spec not in targets.NAMES:
            known = ", ".join((*names, *targets.NAMES))
            raise UsageError(f"no target {spec!r}: write module:attribute, or one of: {known}")
        return replace(targets.ready(spec), **given)
    return _described(_import(spec), spec, given)


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
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UsageError(f"cannot import {module_name!r}: {error}; run streamfuzz where it can be imported") from None
    except Exception as error:
        raise UsageError(f"importing {module_name!r} raised {type(error).__name__}: {error}") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise UsageError(f"{module_name} has no attribute {attribute!r}")
        found = getattr(found, name)
    return found
