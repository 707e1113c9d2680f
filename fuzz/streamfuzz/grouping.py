"""Findings put together: equal ones are one, what only follows from another is left out, the rest is put in order."""

from __future__ import annotations

from dataclasses import replace

from .explain import Finding
from .result import Reported


def merged(one: Finding, other: Finding) -> Finding:
    """One finding of two with the same signature: the simpler case, and how often both were met."""
    simpler = min(one, other, key=lambda finding: (finding.flaky, len(finding.causes), finding.case.size))
    return replace(simpler, count=one.count + other.count)


BELIEVED_FIRST = (
    "fragmentation",
    "isolated",
    "faithful",
    "surfaced_error",
    "bounded",
    "no_early_action",
    "incremental",
    "prefix",
)
"""Oracles whose findings a person believes at first sight, so they are told first; the others follow by name."""


def rank(reported: Reported) -> tuple[bool, bool, int, bool, str, int]:
    """The order in which findings are told: what counts first, then what a person believes at first sight."""
    deviation = reported.finding.deviation
    believed = BELIEVED_FIRST.index(deviation.oracle) if deviation.oracle in BELIEVED_FIRST else len(BELIEVED_FIRST)
    lawful = deviation.rule is None
    return (
        not reported.counts,
        reported.finding.flaky,
        believed,
        not lawful,
        deviation.oracle,
        reported.finding.case.size,
    )


def fold(findings: list[Finding]) -> list[Finding]:
    """Leave out what only follows from another finding; it is counted with the finding that it follows from.

    If a target fails on lawful streams because of something, then its failures on odd and damaged streams
    because of the same thing are no news, nor are those that take that and more; if it fails on all of them, nor
    is the same failure on odd ones.  A failure under a rule is no
    news if the target fails so whatever else the stream has.  Text shown on the way that is wrong as the final
    text is wrong is no news either.
    """
    kept = {finding.signature: finding for finding in findings}
    for finding in findings:
        origin = next((other for other in findings if other.signature in kept and follows(finding, other)), None)
        if origin is not None:
            base = kept[origin.signature]
            kept[origin.signature] = replace(base, count=base.count + finding.count)
            del kept[finding.signature]
    return list(kept.values())


def follows(finding: Finding, other: Finding) -> bool:
    """Whether a finding is no news beside another one; :func:`fold` says why."""
    if finding is other or finding.case.probe or other.case.probe:
        return False
    mine, theirs = finding.deviation, other.deviation
    if theirs.rule is None and not other.causes and not other.flaky and mine.rule is not None:
        return (mine.oracle, mine.kind) == (theirs.oracle, theirs.kind)
    if theirs.rule is None and other.causes and set(other.causes) <= set(finding.causes):
        if mine.rule is not None:
            return True
        if mine.oracle == theirs.oracle and set(other.causes) < set(finding.causes):
            return True
        if mine.oracle == "typed_error" and mine.error == theirs.error:
            return True
    if theirs.rule is not None and mine.same_as(theirs) and set(other.causes) < set(finding.causes):
        return mine.kind != "undeclared"
    return (
        mine.oracle == "prefix"
        and theirs.oracle in ("faithful", "fragmentation")
        and (mine.kind, mine.rule, finding.causes) == (theirs.kind, theirs.rule, other.causes)
    )
