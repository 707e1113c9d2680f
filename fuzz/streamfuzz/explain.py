"""Why a case fails, found by taking things away.

Each feature of the failing case (a byte order mark, CR line ends, a cut inside a character, a kind of event) is
taken out by itself and the case is run again.  What makes the failure vanish is a cause.  So a finding can say
in one sentence what goes wrong and what in the bytes it hangs on, and findings with one cause are one finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from streamfuzz_strategies import cuts, providers
from streamfuzz_strategies.framing import Line
from streamfuzz_strategies.providers import Provider
from streamfuzz_strategies.reply import Json
from streamfuzz_strategies.rules import Rule
from streamfuzz_strategies.stream import Event, Raw
from streamfuzz_strategies.text import NOT_LINE_ENDS
from streamfuzz_strategies.wire import PLACES, Wire

from . import edits
from .bench import Bench, read
from .case import Case
from .deviation import Deviation
from .edits import Edit

SINGLY = 12
"""Of a kind of place, how many cuts are tried by themselves."""


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


def framing_features(provider: Provider, case: Case) -> Iterator[tuple[str, Case | None]]:
    """Each feature of the framing by name, with the case that lacks it."""
    if case.end == "reset":
        yield "a connection that breaks", replace(case, end="eof")
    if edits.is_wire(case):
        yield "bytes that are not UTF-8", edits.apply(case, _not_utf8(case.data))
        if provider.framing.name == "sse":
            for name, find in _SSE_FEATURES.items():
                yield name, edits.apply(case, find(case.data, Wire(case.data, provider.framing)))
        elif provider.framing.name == "ndjson":
            wire = Wire(case.data, provider.framing)
            yield "CRLF line ends", edits.apply(case, _line_ends(case.data, wire))
            yield "blank lines", edits.apply(case, _lines(("blank",))(case.data, wire))


def _not_utf8(data: bytes) -> list[Edit]:
    """The edits that write a question mark for every byte that no character is made of."""
    text = data.decode("utf-8", "surrogateescape")
    ends = accumulate(len(character.encode("utf-8", "surrogateescape")) for character in text)
    return [(end - 1, end, b"?") for mark, end in zip(text, ends, strict=True) if "\udc80" <= mark <= "\udcff"]


def _lines(kinds: tuple[str, ...]) -> Callable[[bytes, Wire], list[Edit]]:
    def find(data: bytes, wire: Wire) -> list[Edit]:
        return [(line.start, line.stop, b"") for line in wire.lines if line.kind in kinds]

    return find


def _line_ends(data: bytes, wire: Wire) -> list[Edit]:
    return [(i.end, i.stop, b"\n") for i in wire.lines if i.stop > i.end and data[i.end : i.stop] != b"\n"]


def _only(eol: bytes) -> Callable[[bytes, Wire], list[Edit]]:
    def find(data: bytes, wire: Wire) -> list[Edit]:
        ends = {data[line.end : line.stop] for line in wire.lines} - {b""}
        return _line_ends(data, wire) if ends == {eol} else []

    return find


def _mixed_ends(data: bytes, wire: Wire) -> list[Edit]:
    ends = {data[line.end : line.stop] for line in wire.lines} - {b""}
    return _line_ends(data, wire) if len(ends) > 1 else []


def _spaces(data: bytes, wire: Wire) -> list[Edit]:
    return [
        (line.value, line.value, b" ")
        for line in wire.lines
        if line.kind in ("data", "event") and line.value == line.name_end + 1
    ]


def _dataless(data: bytes, wire: Wire) -> list[Edit]:
    """The edits that leave out the fields of every event that ends without having had a line of data."""
    found: list[Edit] = []
    block: list[Line] = []
    for line in wire.lines:
        block.append(line)
        if line.kind == "blank":
            if not any(i.kind == "data" for i in block):
                found += [(i.start, i.stop, b"") for i in block if i.kind in ("event", "id", "retry")]
            block = []
    return found


def _blank_lines(data: bytes, wire: Wire) -> list[Edit]:
    found, before = [], "blank"
    for line in wire.lines:
        if line.kind == "blank" and before in ("blank", "bom", "comment"):
            found.append((line.start, line.stop, b""))
        before = line.kind
    return found


def _folds(data: bytes, wire: Wire) -> list[Edit]:
    found = []
    for line, after in zip(wire.lines, wire.lines[1:], strict=False):
        if line.kind == after.kind == "data" and line.frame == after.frame:
            found.append((line.end, after.value, b""))
    return found


def _event_first(data: bytes, wire: Wire) -> list[Edit]:
    found: list[Edit] = []
    for line, after in zip(wire.lines, wire.lines[1:], strict=False):
        if line.kind == "data" and after.kind == "event" and line.frame == after.frame:
            found.append((line.start, after.stop, data[after.start : after.stop] + data[line.start : line.stop]))
    return found


_SSE_FEATURES: dict[str, Callable[[bytes, Wire], list[Edit]]] = {
    "a byte order mark": _lines(("bom",)),
    "CR line ends": _only(b"\r"),
    "CRLF line ends": _only(b"\r\n"),
    "mixed line ends": _mixed_ends,
    "an event without data": _dataless,
    "a comment": _lines(("comment",)),
    "an unknown field": _lines(("field",)),
    "an id field": _lines(("id",)),
    "a retry field": _lines(("retry",)),
    "extra blank lines": _blank_lines,
    "no space after the colon": _spaces,
    "data over several lines": _folds,
    "an event name after the data": _event_first,
}


def payload_features(provider: Provider, case: Case) -> Iterator[tuple[str, Case | None]]:
    """Each feature of the events and their text by name, with the case that lacks it."""
    yield "a repeated event", renumbered(case, _without_repeats(case))
    for name, change in provider.features.items():
        yield name, renumbered(case, edits.rewrite(case, change))
    yield "null members", edits.rewrite(case, lambda event: replace(event, data=_without_nulls(event.data)))
    text = "".join(map(_words, _events(case)))
    for character in NOT_LINE_ENDS:
        if character in text:
            yield f"U+{ord(character):04X} in the text", edits.rewrite(case, replacing(character))
    for words in ("[DONE]", "data:", "\n\n", "\r", "event:", "id:"):
        if words in text:
            yield f"{words!r} in the text", edits.rewrite(case, replacing(words))
    if not text.isascii():
        yield "text beyond ASCII", edits.rewrite(case, _ascii)


def kind_features(provider: Provider, case: Case) -> Iterator[tuple[str, Case | None]]:
    """Each kind of event by name, with the case that has none of it."""
    kinds = [provider.kind(event) for event in _events(case)]
    for kind in dict.fromkeys(kinds):
        if kinds.count(kind) < len(kinds):
            yield f"an event of kind {kind}", renumbered(case, edits.rewrite(case, _dropping(provider, kind)))


def _events(case: Case) -> tuple[Event, ...]:
    """The events of a case, with a last one that lacks its end where the framing delivers it."""
    return read(case).judge(case.end).events


def renumbered(before: Case, after: Case | None) -> Case | None:
    """The changed case with its events' running numbers mended, if they were in order before."""
    renumber = providers.get(before.provider).renumber
    if after is None or renumber is None:
        return after
    events = _events(before)
    if renumber(events) != events:
        return after
    mended = iter(renumber(_events(after)))
    return edits.rewrite(after, lambda event: next(mended, event)) or after


def _dropping(provider: Provider, kind: str) -> Callable[[Event], Event | None]:
    return lambda event: None if provider.kind(event) == kind else event


def _without_repeats(case: Case) -> Case | None:
    before: list[Event] = []

    def change(event: Event) -> Event | None:
        repeated = bool(before) and before[-1] == event
        before.append(event)
        return None if repeated else event

    return edits.rewrite(case, change)


def _without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _words(event: Event) -> str:
    return event.data.text if isinstance(event.data, Raw) else "".join(_strings(event.data))


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from _strings(member)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _map_strings(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(name): _map_strings(member, change) for name, member in value.items()}
    return [_map_strings(item, change) for item in value] if isinstance(value, list) else value


def replacing(words: str, new: str = "x") -> Callable[[Event], Event]:
    """An edit of an event: other words for some words, wherever they stand."""

    def change(event: Event) -> Event:
        if isinstance(event.data, Raw):
            return event
        return Event(_map_strings(event.data, lambda text: text.replace(words, new)), event.name)

    return change


def _ascii(event: Event) -> Event:
    if isinstance(event.data, Raw):
        return event
    # What is no line end is a feature of its own.
    plain = str.maketrans({c: "x" for c in set(_words(event)) if not c.isascii() and c not in NOT_LINE_ENDS})
    return Event(_map_strings(event.data, lambda text: text.translate(plain)), event.name)


# -- words ----------------------------------------------------------------------------------------------------

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
