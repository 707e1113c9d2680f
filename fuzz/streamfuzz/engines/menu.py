"""The engines by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import TypeAlias

from ..bench import Bench
from ..case import Case
from ..config import Recipe
from . import Batch, Budget
from .sweep import sweep

Engine: TypeAlias = Callable[[Bench, Budget], Iterator[Batch]]
"""A way to search: yields what happened, stretch by stretch."""

NAMES = ("sweep", "coverage")


def engine(name: str, recipe: Recipe, kept: Sequence[Case] = ()) -> Engine:
    """The engine of that name.

    Args:
        name: which.
        recipe: how another process can make the target.
        kept: cases that an engine which goes on from what there is may begin with.

    Raises:
        UsageError: it cannot be used with this Python; the message says what to do.
        KeyError: there is none of that name.
    """
    return {"sweep": _sweep, "coverage": _coverage}[name](recipe, kept)


def installed() -> tuple[str, ...]:
    """The names of those that can be used here."""
    return NAMES if find_spec("atheris") is not None else ("sweep",)


def _sweep(recipe: Recipe, kept: Sequence[Case]) -> Engine:
    return sweep


def _coverage(recipe: Recipe, kept: Sequence[Case]) -> Engine:
    from .coverage import Setup, coverage, require_atheris

    require_atheris()
    return partial(coverage, setup=Setup(recipe=recipe, cases=tuple(kept)))
