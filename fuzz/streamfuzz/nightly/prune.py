"""The smallest set of cases that shows everything that all of them show.

What a case shows are its features: the signatures of its failures, the rules that its bytes break, the places at
which it is cut, how it ends, what is asked of the target with it, and what its stream is worth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from streamfuzz_strategies import providers
from streamfuzz_strategies.wire import Wire

from ..bench import read
from ..case import Case, CaseFile, joined

Features = frozenset[str]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A case that is not needed, and the kept ones that show what it shows."""

    name: str
    covered_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Which cases to keep, and which not; both in the order in which they were given."""

    keep: tuple[str, ...]
    drop: tuple[Dropped, ...]


def features(file: CaseFile, signatures: Iterable[str] = ()) -> Features:
    """What a case shows.

    Args:
        file: the case, and who failed on it once.
        signatures: of the failures that it provokes today, if it was run.
    """
    case = file.case
    judgement = read(case).judge(case.end)
    found = [file.found.signature] if file.found is not None else []
    return frozenset(
        f"{case.provider}, {case.takes}: {name}"
        for name in (
            *(f"signature {signature}" for signature in (*found, *signatures)),
            *(f"rule {breach.rule.id}" for breach in judgement.breaches),
            *_cuts(case),
            f"end {case.end}",
            f"probe {case.probe or 'none'}",
            f"judged {judgement.level}",
        )
    )


def _cuts(case: Case) -> Iterator[str]:
    if case.takes not in ("bytes", "text"):
        return
    data = case.data
    wire = Wire(data, providers.get(case.provider).framing)
    sizes = [len(joined((chunk,), case.takes)) for chunk in case.chunks]
    for offset in accumulate(sizes):
        if 0 < offset < len(data):
            yield f"cut {wire.place(offset)}"
    if 0 in sizes:
        yield "an empty chunk"


def plan(cases: Iterable[tuple[str, CaseFile]], fails: Callable[[CaseFile], Iterable[str]] = lambda file: ()) -> Plan:
    """Choose which cases to keep: greedily those that show most for their size, then without those made needless.

    A case that nobody found, one written by hand or recorded, was kept for a reason that no feature tells; it
    stays.

    Args:
        cases: all of a target, each with its name.
        fails: runs a case and gives the signatures of what fails today.
    """
    shown: dict[str, Features] = {}
    sizes: dict[str, int] = {}
    stays: list[str] = []
    for name, file in cases:
        shown[name], sizes[name] = features(file, fails(file)), file.case.size + 1
        if file.found is None:
            stays.append(name)
    needed = frozenset().union(*shown.values()).difference(*(shown[name] for name in stays))
    chosen = _without_needless(_cover(needed, shown, sizes), needed, shown, sizes)
    keep = {*stays, *chosen}
    kept = {name: shown[name] for name in shown if name in keep}
    drop = (Dropped(name, tuple(_cover(shown[name], kept, sizes))) for name in shown if name not in keep)
    return Plan(tuple(kept), tuple(drop))


def _cover(needed: Features, shown: Mapping[str, Features], sizes: Mapping[str, int]) -> list[str]:
    """Names that together show what is needed, those first that show most of it for their size."""
    left = {name: news for name, each in shown.items() if (news := each & needed)}
    chosen = []
    while left:
        best = min(left, key=lambda name: (-len(left[name]) / sizes[name], name))
        chosen.append(best)
        gained = left[best]
        left = {name: rest for name, news in left.items() if (rest := news - gained)}
    return chosen


def _without_needless(
    chosen: Sequence[str], needed: Features, shown: Mapping[str, Features], sizes: Mapping[str, int]
) -> list[str]:
    """Take out what the others show as well, the largest first."""
    kept = list(chosen)
    for name in sorted(chosen, key=lambda name: (-sizes[name], name)):
        others = frozenset().union(*(shown[other] for other in kept if other != name))
        if shown[name] & needed <= others:
            kept.remove(name)
    return kept
