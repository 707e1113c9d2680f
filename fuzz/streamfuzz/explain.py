"""Why a case fails, found by taking things away.

Each feature of the failing case (a byte order mark, CR line ends, a cut inside a character, a kind of event) is
taken out by itself and the case is run again.  What makes the failure vanish is a cause.  So a finding can say
in one sentence what goes wrong and what in the bytes it hangs on, and findings with one cause are one finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from streamfuzz_strategies import cuts, providers
from streamfuzz_strategies.rules import Rule
from streamfuzz_strategies.wire import PLACES, Wire

from . import edits
from .bench import Bench, read
from .case import Case
from .deviation import Deviation
from .features import framing_features, kind_features, payload_features
from .finding import Finding

SINGLY = 12
"""Of a kind of place, how many cuts are tried by themselves."""


def explain(bench: Bench, case: Case, deviation: Deviation, how: str = "") -> Finding:
    """Find the causes of a failure; the case in the finding may be simpler than the one given.

    A failure that does not show again is returned as flaky, without causes.
    """
    search = _Search(bench, deviation)
    again = search.fails(case)
    if again is None:
        return Finding(bench.target.name, case, deviation, (), how, flaky=True)
    if case.probe:
        return Finding(bench.target.name, case, again, (), how)
    case = search.without_oddities(case)
    causes: list[str] = []
    if edits.is_wire(case) and len(case.chunks) > 1:
        case, causes = search.cuts(case)
    found = search.features(case)
    if not causes and not found:
        case = search.without_features(case)
        found = search.features(case) or search.kinds(case)
    causes += found
    return Finding(bench.target.name, case, search.fails(case) or again, tuple(dict.fromkeys(causes)), how)


class _Search:
    def __init__(self, bench: Bench, deviation: Deviation) -> None:
        self.bench = bench
        self.wanted, self.rule = deviation, deviation.rule

    def fails(self, case: Case) -> Deviation | None:
        """The same deviation on another case, if it is there."""
        for deviation in self.bench.deviations(case):
            if deviation.same_as(replace(self.wanted, rule=self.rule)):
                return deviation
        return None

    def without_oddities(self, case: Case) -> Case:
        """The case without what is odd in the stream but has no part in the failure."""
        while True:
            odd = [breach.index for breach in read(case).judge(case.end).breaches if breach.level == "may"]
            plainer = next(filter(self._still_fails, self._plainer(case, odd)), None)
            if plainer is None:
                break
            case, self.rule = plainer, self._rule_in(plainer)
        return case

    def _plainer(self, case: Case, odd: list[int]) -> Iterator[Case]:
        """The case without all that is odd, or without one oddity; only cases that are really less odd."""
        for gone in dict.fromkeys((frozenset(odd), *(frozenset({index}) for index in odd))):
            plainer = edits.without_frames(case, gone - {-1})
            if -1 in gone and self.bench.provider.sentinel is not None and edits.is_wire(case):
                plainer = edits.with_sentinel(plainer)
            if len(read(plainer).judge(plainer.end).breaches) < len(read(case).judge(case.end).breaches):
                yield plainer

    def _rule_in(self, case: Case) -> Rule | None:
        """The rule that the same deviation would name in another case; some never name one."""
        worst = read(case).judge(case.end).worst
        return worst.rule if worst is not None and self.rule is not None else None

    def _still_fails(self, case: Case) -> bool:
        rule, self.rule = self.rule, self._rule_in(case)
        failed = self.fails(case) is not None
        self.rule = rule
        return failed

    def cuts(self, case: Case) -> tuple[Case, list[str]]:
        """The fewest cuts with which the case fails, and what they cut."""
        data = case.data
        whole = edits.recut(case, data, cuts.WHOLE)
        if whole is not None and self.wanted.oracle != "fragmentation" and self.fails(whole):
            return whole, []
        causes = []
        full = replace(case, chunks=tuple(chunk for chunk in case.chunks if chunk) or case.chunks[:1])
        if full.chunks != case.chunks:
            if self.fails(full):
                case = full
            else:
                causes.append("an empty chunk")
        wire = Wire(data, self.bench.provider.framing)
        rank = {place: number for number, place in enumerate(PLACES[wire.framing.name])}
        inner = [offset for offset in edits.offsets(case) if 0 < offset < len(data)]
        by_place: dict[str, list[int]] = {}
        for offset in inner:
            by_place.setdefault(wire.place(offset), []).append(offset)
        for place in sorted(by_place, key=lambda name: rank.get(name, 0)):
            single = self._one_cut(case, by_place[place])
            if single is not None:
                return single, [*causes, f"a cut {place}"]
        return case, causes or [_many(case)]

    def _one_cut(self, case: Case, offsets: list[int]) -> Case | None:
        """The case with one of these cuts alone, if it fails so: some are tried, others are found by halving."""
        step = -(-len(offsets) // SINGLY)
        for offset in dict.fromkeys((offsets[0], offsets[-1], *offsets[::step])):
            single = self._cut_there(case, [offset])
            if single is not None:
                return single
        return self._among(case, offsets) if step > 1 else None

    def _among(self, case: Case, offsets: list[int]) -> Case | None:
        fewer = self._cut_there(case, offsets)
        if fewer is None or len(offsets) == 1:
            return fewer
        half = len(offsets) // 2
        return self._among(case, offsets[:half]) or self._among(case, offsets[half:])

    def _cut_there(self, case: Case, offsets: list[int]) -> Case | None:
        fewer = edits.recut(case, case.data, tuple(offsets))
        return fewer if fewer is not None and self.fails(fewer) else None

    def features(self, case: Case) -> list[str]:
        """The features without which the case no longer fails."""
        causes = [name for name, without in framing_features(self.bench.provider, case) if self.mends(case, without)]
        if self.mends(case, edits.respelled(case)):
            # Whatever edits a payload also spells it plainly, so nothing more can be learned from such edits.
            return causes or ["the way its JSON is spelled"]
        return causes + [n for n, without in payload_features(self.bench.provider, case) if self.mends(case, without)]

    def kinds(self, case: Case) -> list[str]:
        """The kinds of events without which the case no longer fails; of damage that is trusted its rule says more."""
        if self.rule is not None and self.wanted.oracle != "faithful":
            return []
        return [name for name, without in kind_features(self.bench.provider, case) if self.mends(case, without)]

    def without_features(self, case: Case) -> Case:
        """The case without the features that it fails without just as well.

        Where a case has two things of which one is enough, taking away either alone mends nothing.
        """
        plainer: Case | None = case
        while plainer is not None:
            case = plainer
            names = (*framing_features(self.bench.provider, case), *payload_features(self.bench.provider, case))
            plainer = next((without for _, without in names if without and self._plainer_too(case, without)), None)
        return case

    def _plainer_too(self, case: Case, without: Case) -> bool:
        same = _cut_place(without) == _cut_place(case) and _standing(without) == _standing(case)
        return same and 0 < without.size < case.size and bool(self.fails(without))

    def mends(self, case: Case, without: Case | None) -> bool:
        """Whether the failure is gone from the changed case although the stream is worth the same."""
        if without is None or without == case or not without.chunks:
            return False
        if _cut_place(without) != _cut_place(case):
            return False  # then it is the cut that the edit has taken away
        # Taking away the damage itself would mend any failure and explain none.
        return _standing(without) == _standing(case) and not self.fails(without)


def _cut_place(case: Case) -> str:
    if not edits.is_wire(case) or len(case.chunks) != 2 or not all(case.chunks):
        return ""
    return Wire(case.data, providers.get(case.provider).framing).place(edits.offsets(case)[0])


def _standing(case: Case) -> tuple[str, str, bool]:
    """What a case is worth; an answer that was cut off is as lawful as one that was not."""
    reading = read(case)
    judgement = reading.judge(case.end)
    rule = judgement.worst.rule.id if judgement.worst is not None else ""
    level = judgement.level if rule or not judgement.accepted else "none"
    return level, rule, reading.conforms(len(judgement.events))


def _many(case: Case) -> str:
    return "chunks of one byte" if max(map(len, case.chunks)) == 1 else "the way it is cut"
