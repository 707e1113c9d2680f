"""Workers for tests of the job: they do the tasks here and now, in the thread of the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from streamfuzz.case import Case, CaseFile
from streamfuzz.config import Recipe
from streamfuzz.finding import Finding
from streamfuzz.nightly import tasks
from streamfuzz.nightly.tasks import Shard, Sort
from streamfuzz.spec import UsageError


def done(answer: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)
    return future


@dataclass
class Hands:
    """Does what :class:`streamfuzz.nightly.workers.Workers` does, in this thread.

    ``losing`` are exceptions that the next tasks end with instead.
    """

    count: int = 1
    lost: tuple[type[BaseException], ...] = (ConnectionError,)
    losing: list[BaseException] = field(default_factory=list)
    is_gone: bool = False
    asked: int = 0
    shards: list[Shard] = field(default_factory=list)
    begun_with: list[tuple[Case, ...]] = field(default_factory=list)

    def gone(self) -> bool:
        return self.is_gone

    def ask_to_stop(self) -> None:
        self.asked += 1

    def check(self, recipe: Recipe, provider: str) -> Future[Any]:
        try:
            return done(tasks.check(recipe, provider))
        except UsageError as error:
            return done(error)

    def search(
        self,
        shard: Shard,
        seconds: float,
        explained: Mapping[Sort, int],
        examples: str | None,
        kept: Sequence[Case] = (),
    ) -> Future[Any]:
        self.begun_with.append(tuple(kept))
        self.shards.append(shard)
        if self.losing:
            return done(self.losing.pop(0))
        return done((tasks.search(shard, seconds, explained, examples, kept), []))

    def settle(self, recipe: Recipe, finding: Finding, seconds: float, times: int) -> Future[Any]:
        small, failed = tasks.settle(recipe, finding, seconds, times)
        return done((small, failed, times, []))

    def rerun(self, recipe: Recipe, files: Sequence[tuple[str, CaseFile]]) -> Future[Any]:
        return done((tasks.rerun(recipe, files), []))
