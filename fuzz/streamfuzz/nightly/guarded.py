"""The tasks of a job, done so that a case that kills its process is a finding and costs nothing else.

A shard that lost its worker is done again with the deadly case left out.  Why a case kills is found out, and the
case made small, by running every variant of it in a worker of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..bench import ALL_ORACLES, Bench
from ..case import Case
from ..config import Recipe
from ..deviation import Deviation
from ..oracles import unended
from . import lane
from .box import Deadly
from .lane import Limits, Lost

DEATHS = 3
"""How many workers a shard may cost; then what is known is returned."""

TRIES = 5
"""How often a case that killed a worker is run alone until it counts as one that does so only sometimes."""

LOST = "its worker was lost"
"""How a case came about whose death was seen but whose search was not finished."""


class LaneBench(Bench):
    """A bench whose target runs in the worker of this thread: of a case that kills, the death is the deviation."""

    def __init__(self, recipe: Recipe, provider: str, limits: Limits, oracles: Sequence[str] = ALL_ORACLES) -> None:
        super().__init__(recipe.target(provider), oracles)
        self.recipe = recipe
        self.limits = limits
        # What is known to hang need not be waited for as long as what is not.
        self.patience = min(limits.patience, 2 * self.target.timeout)

    def __enter__(self) -> LaneBench:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def deviations(self, case: Case) -> list[Deviation]:
        """Run the experiment in the worker and return the invariants that the target breaks."""
        self.cases += 1
        avoid: list[Deadly] = []
        arguments = (self.recipe, self.target.provider, self.oracles, case)
        while len(avoid) < DEATHS:
            try:
                found: list[Deviation] = lane.lane(self.limits).run(
                    _deviations, *arguments, avoid=avoid, patience=self.patience
                )
                return found
            except Lost as lost:
                avoid.append(Deadly(lost.case or case, lost.ending, lost.name, lost.how))
        return [unended(avoid[-1].trace, self.target)]
