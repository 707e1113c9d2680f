"""The engines by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import TypeAlias

from ..bench import Bench
from ..config import Recipe
from . import Batch, Budget
from .sweep import sweep

Engine: TypeAlias = Callable[[Bench, Budget], Iterator[Batch]]
"""A way to search: yields what happened, stretch by stretch."""

NAMES = ("sweep", "coverage")


def engine(name: str, recipe: Recipe) -> Engine:
    """The engine of that name, for a target that another process can make by the recipe.

    Raises:
        UsageError: it cannot be used with this Python; the message says what to do.
        KeyError: there is none of that name.
    """
    return {"sweep": _sweep, "coverage": _coverage}[name](recipe)


def installed() -> tuple[str, ...]:
    """The names of those that can be used here."""
    return NAMES if find_spec("atheris") is not None else ("sweep",)


def _sweep(recipe: Recipe) -> Engine:
    return sweep


def _coverage(recipe: Recipe) -> Engine:
    from .coverage import Setup, coverage, require_atheris

    require_atheris()
    return partial(coverage, setup=Setup(recipe=recipe))
