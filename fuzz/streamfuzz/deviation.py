"""What an oracle looks at, one run and what its stream was worth, and what it finds wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal, TypeAlias

from streamfuzz_strategies.judge import End, Judgement, Reading
from streamfuzz_strategies.providers import Provider
from streamfuzz_strategies.reply import Json
from streamfuzz_strategies.rules import Rule

from .spec import Target
from .trace import Trace

Verdict: TypeAlias = Literal["fail", "warn"]


@dataclass(frozen=True, slots=True)
class Deviation:
    """One broken invariant.

    Attributes:
        oracle: which invariant.
        kind: what went wrong in one word: lost, repeated, reordered, altered, invented, delivered, refused,
            trusted, swallowed, masked, undeclared, late, taken-back, early, twice, hung, leaked, mixed, slow, differs,
            crashed, memory.
        what: the thing it happened to, in words.
        expected: what it should have been, as far as there is such a thing.
        got: what it was.
        rule: the rule of the stream that is at stake, if any.
        verdict: ``warn`` where the specification only recommends, or leaves it to policy.
        error: type of the error that was raised, where the deviation is that one was raised; how the process was
            lost, where it was.
    """

    oracle: str
    kind: str
    what: str
    expected: Json = None
    got: Json = None
    rule: Rule | None = None
    verdict: Verdict = "fail"
    error: str = ""

    @property
    def kills(self) -> bool:
        """Whether a process that runs the case again must be expected to die, or to hang until it is killed."""
        return self.kind == "crashed" or (self.kind == "hung" and bool(self.error))

    def same_as(self, other: Deviation) -> bool:
        """Whether it is the same thing that went wrong, whatever was lost, altered or raised in detail."""
        mine = (self.oracle, self.kind, self.rule, self.verdict, self.error)
        return mine == (other.oracle, other.kind, other.rule, other.verdict, other.error)


@dataclass(slots=True)
class Run:
    """One run of a target and what the stream was worth."""

    target: Target
    reading: Reading
    judgement: Judgement
    chunks: Sequence[Any]
    end: End
    trace: Trace
    baseline: Trace | None = None
    baseline_deviations: Sequence[Deviation] = ()
    _offsets: list[int] = field(default_factory=list)

    @property
    def provider(self) -> Provider:
        """The protocol of the stream."""
        return self.reading.provider

    def offset(self, taken: int) -> int:
        """How far into the stream the first ``taken`` chunks reach: bytes, frames or events."""
        if not self._offsets:
            self._offsets = [0, *accumulate(map(_SIZES[self.target.takes], self.chunks))]
        return self._offsets[min(taken, len(self._offsets) - 1)]


_SIZES: Mapping[str, Callable[[Any], int]] = {
    "bytes": len,
    "text": lambda chunk: len(chunk.encode("utf-8", "surrogatepass")),
    "frames": lambda chunk: 1,
    "events": lambda chunk: 1,
}
