"""streamfuzz: find the bugs in code that reads LLM streams.

Describe a parser with :func:`target`, search with :func:`run`, make a test of it with :func:`fuzz_test`, and
keep what was found as case files.

The names below are imported when they are first used: pytest loads the plugin of this package in every session,
also in those that have nothing to do with it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .campaign import run
    from .case import Case, CaseFile
    from .engines import Budget
    from .finding import Finding
    from .result import Reported, Result
    from .spec import Delta, Final, Incomplete, Known, Release, Snapshot, Target, UsageError, target
    from .testing import FuzzFailure, fuzz_test

__all__ = [
    "Budget",
    "Case",
    "CaseFile",
    "Delta",
    "Final",
    "Finding",
    "FuzzFailure",
    "Incomplete",
    "Known",
    "Release",
    "Reported",
    "Result",
    "Snapshot",
    "Target",
    "UsageError",
    "fuzz_test",
    "run",
    "target",
]

_HOMES = {
    "campaign": ("run",),
    "case": ("Case", "CaseFile"),
    "engines": ("Budget",),
    "explain": ("Finding",),
    "result": ("Reported", "Result"),
    "spec": ("Delta", "Final", "Incomplete", "Known", "Release", "Snapshot", "Target", "UsageError", "target"),
    "testing": ("FuzzFailure", "fuzz_test"),
}


def __getattr__(name: str) -> Any:
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = found
    return found
