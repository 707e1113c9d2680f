"""How the time of a job is shared out: it goes where something new still turns up.

The one decision is :func:`choose`; everything else here is what it looks at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ..config import Recipe
from .tasks import Field


@dataclass(slots=True)
class Yield:
    """What a field has brought of late: each shard halves what was before it.

    Attributes:
        news: goals, rules and signatures that nobody had met before.
        seconds: spent for them.
        total: seconds spent in all, not halved.
    """

    news: float = 0.0
    seconds: float = 0.0
    total: float = 0.0

    def add(self, news: int, seconds: float) -> None:
        """Count a shard."""
        self.news = self.news / 2 + news
        self.seconds = self.seconds / 2 + seconds
        self.total += seconds


FAIR = 5
"""Each so-many-th shard goes where least time was spent, whatever it promises."""


def choose(fields: Mapping[Field, Yield], running: Counter[Field], shard: float, number: int) -> Field:
    """The field that gets shard ``number`` of a job, which takes ``shard`` seconds.

    A target that was never looked at comes first.  Then the field that promises most news for a second:
    ``(news + 1) / (seconds + shard)``, where both are of late and what is running now counts as spent.  The ``+ 1``
    is hope: without it, a field that was dry once would never be tried again.  Of equals, the one whose target has
    had least time, so a job that finds nothing any more goes round.  Each fifth shard goes to the target, and of it
    to the field, with least time anyhow: one that brings a little all the time must not starve the others.
    """
    totals = {field: spent.total + running[field] * shard for field, spent in fields.items()}
    of_target: dict[tuple[Recipe, str], float] = {}
    for field, total in totals.items():
        target = field.recipe, field.provider
        of_target[target] = of_target.get(target, 0.0) + total

    def rest(field: Field) -> tuple[float, float]:
        return of_target[field.recipe, field.provider], totals[field]

    def promise(field: Field) -> tuple[float, float, float]:
        spent = fields[field]
        return -(spent.news + 1) / (spent.seconds + running[field] * shard + shard), *rest(field)

    least = min(fields, key=rest)
    if number % FAIR == FAIR - 1 or not of_target[least.recipe, least.provider]:
        return least
    return min(fields, key=promise)
