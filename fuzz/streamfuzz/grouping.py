"""Findings put together: equal ones are one, what only follows from another is left out, the rest is put in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from .finding import Finding
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
    text is wrong is no news either.  Of several changes that one thing makes to what lawful streams say, the first
    in the list stands for all, and a cut inside one character for cuts inside wider and narrower ones.
    """
    kept = {finding.signature: finding for finding in findings}
    for number, finding in enumerate(findings):
        origin = next((o for o in findings if o.signature in kept and follows(finding, o)), None) or next(
            (earlier for earlier in findings[:number] if earlier.signature in kept and alike(finding, earlier)), None
        )
        if origin is not None:
            base = kept[origin.signature]
            also = dict.fromkeys((*base.also, *_differences(finding, origin)))
            kept[origin.signature] = replace(base, count=base.count + finding.count, also=tuple(also))
            del kept[finding.signature]
    return list(kept.values())


CHANGES = ("lost", "repeated", "reordered", "altered", "invented")
"""The kinds of deviation that tell how what was given out differs from what should have been."""


def alike(finding: Finding, other: Finding) -> bool:
    """Whether two findings are changes that one thing makes to lawful streams, so that one mistake explains both."""
    mine, theirs = finding.deviation, other.deviation
    return (
        finding is not other
        and bool(finding.causes)
        and not (finding.flaky or other.flaky or finding.case.probe or other.case.probe)
        and mine.rule is None
        and theirs.rule is None
        and {mine.kind, theirs.kind} <= set(CHANGES)
        and (mine.oracle, _of_any_width(finding)) == (theirs.oracle, _of_any_width(other))
    )


def _of_any_width(finding: Finding) -> list[str]:
    """The causes of a finding, where who cuts a character in two is not told by its number of bytes."""
    return [re.sub(r"a \d-byte character", "a character", cause) for cause in finding.causes]


def _differences(finding: Finding, origin: Finding) -> Iterator[str]:
    """How a finding that is like another one shows."""
    if alike(finding, origin):
        if finding.causes != origin.causes:
            yield f"{finding.deviation.kind} because of {' and '.join(finding.causes)}"
        else:
            yield finding.deviation.kind


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
