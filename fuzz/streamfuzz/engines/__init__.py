"""Engines: ways to search for cases on which a target fails.  They yield values; who reads them is not theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from streamfuzz_strategies.reply import Json

from ..case import Case
from ..deviation import Deviation


@dataclass(frozen=True, slots=True)
class Budget:
    """How long to search and with what.

    Attributes:
        seconds: stop after so much time (``None``: no limit).
        cases: stop after so many judged cases (``None``: no limit).
        seed: makes the drawn streams reproducible.
        database: begin with the richest streams of earlier runs, from Hypothesis' example database in this
            folder, or at this ``redis://`` URL.  ``None``: off; a seed alone decides what is drawn.
        tools: the user's tool definitions by name, each the JSON Schema of its arguments.
        alphabet: what model text is made of.
        family: draw model text from this family of hostile text only (a name of ``text.FAMILIES``).
        cost: seconds that one run of a stream is taken to need; it decides how densely streams are cut.  Not given,
            it is measured, and then a seed alone does not decide which cases are tried.
        stopped: asked after every few cases; once it says yes, the search ends.
    """

    seconds: float | None = 20.0
    cases: int | None = None
    seed: int = 0
    database: str | None = None
    tools: Mapping[str, Json] | None = None
    alphabet: str | None = None
    family: str | None = None
    cost: float | None = None
    stopped: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Sighting:
    """A case on which the target broke an invariant, and how the engine came by it."""

    case: Case
    deviation: Deviation
    how: str


@dataclass(slots=True)
class Batch:
    """A stretch of searching: how many cases were judged, what was seen, and which goals were reached."""

    cases: int = 0
    sightings: list[Sighting] = field(default_factory=list)
    repeats: Counter[str] = field(default_factory=Counter)
    goals: Counter[str] = field(default_factory=Counter)
