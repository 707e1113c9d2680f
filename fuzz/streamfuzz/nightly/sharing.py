"""How the time of a job is shared out: it goes where something new still turns up.

The one decision is :func:`choose`; everything else here is what it looks at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

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
"""Each so-many-th shard goes to the field that has had least time, whatever it promises."""


def choose(fields: Mapping[Field, Yield], running: Counter[Field], shard: float, number: int) -> Field:
    """The field that gets shard ``number`` of a job, which takes ``shard`` seconds.

    The one that promises most news for a second: ``(news + 1) / (seconds + shard)``, where both are of late and
    what is running now counts as spent.  The ``+ 1`` is hope: without it, a field that was dry once would never
    be tried again, and it lets those not yet tried come before those that are dry.  Of equals, the one with least
    time in all; so a job that finds nothing any more goes round.  Each fifth shard goes to the one with least time
    anyhow: a field that brings a little all the time must not starve one that was never looked at.
    """

    def total(field: Field) -> float:
        return fields[field].total + running[field] * shard

    def promise(field: Field) -> tuple[float, float]:
        spent = fields[field]
        return -(spent.news + 1) / (spent.seconds + running[field] * shard + shard), total(field)

    return min(fields, key=total if number % FAIR == FAIR - 1 else promise)
