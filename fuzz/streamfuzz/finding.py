"""What a finding is, its signature, and the sentence that tells it."""

from __future__ import annotations

from dataclasses import dataclass

from streamfuzz_strategies.reply import Json

from .case import Case
from .deviation import Deviation


@dataclass(frozen=True, slots=True)
class Finding:
    """A way in which a target fails: the smallest case known, why it fails, and how often it was met.

    Attributes:
        target: its name.
        case: the smallest case known.
        deviation: what goes wrong on it.
        causes: what in the stream or the way it is cut it hangs on.
        how: the way in which the stream was made.
        count: how often it was met.
        flaky: whether it did not show again.
        also: in which other ways the same mistake shows.
    """

    target: str
    case: Case
    deviation: Deviation
    causes: tuple[str, ...]
    how: str = ""
    count: int = 1
    flaky: bool = False
    also: tuple[str, ...] = ()

    @property
    def signature(self) -> str:
        """What makes two failures one finding: oracle, kind, the rule at stake, and causes."""
        if self.deviation.kind == "undeclared":  # where it is raised says more than what provokes it
            return f"{self.deviation.oracle}.{self.deviation.kind}: {self.deviation.what}"
        error = f" {self.deviation.error}" if self.deviation.error else ""
        rule = f"@{self.deviation.rule.id}" if self.deviation.rule is not None else ""
        why = ": " + " + ".join(self.causes) if self.causes else ""
        return f"{self.deviation.oracle}.{self.deviation.kind}{error}{rule}{why}"

    @property
    def sentence(self) -> str:
        """What goes wrong, in one sentence."""
        return describe(self.target, self.deviation, self.causes)


_VERBS = {
    "lost": "loses {what}{expected}",
    "repeated": "repeats {what}{got}",
    "reordered": "reorders {what}{becomes}",
    "altered": "alters {what}{becomes}",
    "invented": "invents {what}{got}",
    "delivered": "delivers {what}",
    "refused": "refuses {what} with {reason}",
    "trusted": "reports {what} as complete",
    "swallowed": "swallows {what}{expected}",
    "masked": "hides {what}{expected}, raising {reason}",
    "undeclared": "raises {what}, which it does not declare ({reason})",
    "late": "gives out {what} too late",
    "taken-back": "takes back {what}{becomes}",
    "early": "releases {what} too early{got}",
    "twice": "reports {what} {reason} times",
    "hung": "hangs: {what} is {reason}",
    "crashed": "takes its process down on {what}: {reason}",
    "memory": "needs more memory than there is for {what}: {reason}",
    "slow": "slows down on {what}: {reason}",
    "leaked": "does not let go: {what}{got}",
    "mixed": "mixes up two streams: {what}{becomes}",
    "differs": "gives two results for one message: {what}{becomes}",
}


def describe(target: str, deviation: Deviation, causes: tuple[str, ...] = ()) -> str:
    """Say in one sentence what a target did wrong, and because of what in the bytes."""
    words = _VERBS[deviation.kind].format(
        what=deviation.what,
        expected=_quoted(deviation.expected),
        got=_quoted(deviation.got),
        becomes=f":{_quoted(deviation.expected)} becomes{_quoted(deviation.got)}",
        reason=str(deviation.got) if deviation.got is not None else "no word",
    )
    when = " because of " + " and ".join(causes) if causes else ""
    rule = f" although {deviation.rule.sentence}" if deviation.rule is not None and deviation.kind == "trusted" else ""
    if deviation.rule is not None and not rule:
        rule = f" (in the stream, {deviation.rule.sentence})"
    return f"{target} {words}{when}{rule}."


def _quoted(value: Json) -> str:
    if value is None:
        return " nothing" if value is None else ""
    text = repr(value) if not isinstance(value, str) else ascii(value) if not value.isprintable() else repr(value)
    return " " + (text if len(text) <= 60 else text[:57] + "...")
