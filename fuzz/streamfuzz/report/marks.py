"""The bytes that a finding hangs on, for the ruler to point at.

Nothing remembers where a cause stood in the stream.  But the search for causes knows, for each, the case that
lacks it, and where the two cases differ is where the cause is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, chain, groupby
from typing import TypeAlias

from streamfuzz_strategies import providers
from streamfuzz_strategies.wire import Wire

from .. import edits
from ..bench import read
from ..case import Case
from ..features import framing_features, kind_features, payload_features
from ..finding import Finding

SPOTS = 3
"""Places pointed at for each cause: enough to see what is meant."""

LONGEST = 8
"""Bytes pointed at in one place; where a whole event is the cause, its beginning says it."""

COMPARED = 20_000
"""Bytes of a stream beyond which no places are looked for, because comparing takes too long."""


def marks(finding: Finding) -> tuple[int, ...]:
    """Where in the stream the causes of a finding stand, or the event that breaks the rule at stake.

    Returns:
        Offsets of bytes, or indexes of frames or events, as :func:`.ruler.draw` takes them.  Empty if nothing
        can be pointed at: the finding is a probe, or its cause is a cut (which the ruler shows by itself).
    """
    case = finding.case
    if case.probe or case.size > COMPARED:
        return ()
    found = {offset for other in _without_causes(finding) for offset in _differences(case, other)}
    return tuple(sorted(found or _broken_rule(finding)))


def _without_causes(finding: Finding) -> Iterator[Case]:
    """The case without each of the finding's causes by itself."""
    case, wanted = finding.case, set(finding.causes)
    if not wanted:
        return
    provider = providers.get(case.provider)
    features = chain(
        framing_features(provider, case),
        [("the way its JSON is spelled", edits.respelled(case))],
        payload_features(provider, case),
        kind_features(provider, case),
    )
    for name, without in features:
        if name in wanted and without is not None:
            yield without


def _differences(case: Case, other: Case) -> Iterator[int]:
    if not edits.is_wire(case):
        pairs = zip(case.chunks, other.chunks, strict=False)
        yield next((n for n, (mine, theirs) in enumerate(pairs) if mine != theirs), len(other.chunks))
        return
    if case.data == other.data:  # only the end differs
        yield len(case.data)
        return
    framing = providers.get(case.provider).framing
    spots = list(_spots(_blocks(Wire(case.data, framing)), _blocks(Wire(other.data, framing))))
    for start, stop in spots[:SPOTS]:
        yield from range(start, min(stop, start + LONGEST))


Lines: TypeAlias = tuple[bytes, ...]


def _blocks(wire: Wire) -> list[Lines]:
    """The lines of each frame, with their line ends."""
    groups = groupby(wire.lines, key=lambda line: line.frame)
    return [tuple(wire.data[line.start : line.stop] for line in group) for _, group in groups]


def _spots(mine: Sequence[Lines], theirs: Sequence[Lines]) -> Iterator[tuple[int, int]]:
    """Where two streams differ, as spans of the first, each within a line; frames are matched before lines."""
    starts = [0, *accumulate(sum(map(len, block)) for block in mine)]
    for i, j, k, m in _changes(mine, theirs):
        if j - i == m - k:
            for n in range(j - i):
                yield from _spots_in_lines(starts[i + n], mine[i + n], theirs[k + n])
        else:
            yield from _spots_in_lines(starts[i], sum(mine[i:j], ()), sum(theirs[k:m], ()))


def _spots_in_lines(offset: int, mine: Lines, theirs: Lines) -> Iterator[tuple[int, int]]:
    starts = list(accumulate(map(len, mine), initial=offset))
    for i, j, k, m in _changes(mine, theirs):
        if i == j:  # only the other has these lines
            yield max(starts[i] - 1, 0), starts[i]
        elif j - i == m - k:
            for n in range(j - i):
                yield _narrowed(starts[i + n], mine[i + n], theirs[k + n])
        else:
            start, stop = _narrowed(starts[i], b"".join(mine[i:j]), b"".join(theirs[k:m]))
            yield start, min(stop, next(end for end in starts if end > start))


def _changes(mine: Sequence[object], theirs: Sequence[object]) -> Iterator[tuple[int, int, int, int]]:
    for tag, *span in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if tag != "equal":
            i, j, k, m = span
            yield i, j, k, m


def _narrowed(offset: int, mine: bytes, theirs: bytes) -> tuple[int, int]:
    """The span of ``mine`` between what both begin and what both end with; at least the byte before it."""
    shorter = min(len(mine), len(theirs))
    head = next((n for n in range(shorter) if mine[n] != theirs[n]), shorter)
    rest = shorter - head
    tail = next((n for n in range(rest) if mine[-1 - n] != theirs[-1 - n]), rest)
    start, stop = offset + head, offset + len(mine) - tail
    return (start, stop) if start < stop else (max(start - 1, 0), start)


def _broken_rule(finding: Finding) -> Iterator[int]:
    """The beginning of the event that breaks the rule, or the end if the rule is broken by what is not there."""
    case, rule = finding.case, finding.deviation.rule
    if rule is None:
        return
    breaches = read(case).judge(case.end).breaches
    index = next((breach.index for breach in breaches if breach.rule == rule), None)
    if index is None:
        return
    if not edits.is_wire(case):
        yield index if index >= 0 else len(case.chunks)
        return
    if index < 0:
        yield len(case.data)
        return
    frames = [lines for lines, _ in edits.frames(case)]
    if index < len(frames):
        line = next(line for line in frames[index] if line.kind in ("data", "json"))
        yield from range(line.value, min(line.end, line.value + LONGEST))
