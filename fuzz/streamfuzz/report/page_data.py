"""What the report page shows of each finding, as plain JSON, packed so that ten thousand fit into a small file.

All text is made printable here, so no control or bidirectional character reaches the page.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, groupby
from time import perf_counter
from typing import Any, TypeAlias

from streamfuzz_strategies import providers
from streamfuzz_strategies.reply import Json
from streamfuzz_strategies.stream import Event, Frame, Raw
from streamfuzz_strategies.wire import PLACES, Wire

from .. import ruler
from ..case import Case
from ..corpus import expectation
from ..finding import Finding
from ..grouping import rank
from ..legible import exact, printable
from ..oracles import ORACLES, fragmentation
from ..probes import ORACLES as PROBES
from ..result import Night, Reported, Result
from ..spec import Delta, Final, Release, Snapshot
from ..trace import Trace
from .marks import marks

BYTES = 4096
"""Bytes of a stream that its ruler shows; also the most frames or events, and moments told."""

TEXT = 1200
"""Characters of one text that are shown."""

DRAWN = 4_000_000
"""Characters of packed findings, after which a finding gets a sentence and its command but no ruler."""

MARKED = 500
"""Findings whose causes are pointed at in their bytes; looking for the places takes time."""

PATIENCE = 20.0
"""Seconds that running targets again for the page may take in all."""

PLACE_NAMES = ("", *dict.fromkeys(chain.from_iterable(PLACES.values())))
"""The names of places, by the numbers that stand for them in the data."""

_NUMBERS = {name: number for number, name in enumerate(PLACE_NAMES)}

TraceOf: TypeAlias = Callable[[str, Case], Trace | None]
"""Runs a target, given by name, on a case; ``None`` where that cannot be done."""

ReplayOf: TypeAlias = Callable[[str, Reported], str]
"""The command that runs a finding's case again, given the name of the target; asked if the finding has a file."""


def in_order(night: Night) -> list[tuple[Result, Reported]]:
    """All findings of a job, those first that are to be read first."""
    found = [(result, reported) for result in night.results for reported in result.findings]
    return sorted(found, key=lambda pair: rank(pair[1]))


def tags(reported: Reported) -> list[str]:
    """The words that a finding is labelled with: its status and, if they hold, ``flaky`` and ``warning``."""
    finding = reported.finding
    more = {"flaky": finding.flaky, "warning": finding.deviation.verdict == "warn"}
    return [reported.status, *(name for name, holds in more.items() if holds)]


def packed(night: Night, replay_of: ReplayOf, trace_of: TraceOf | None = None) -> str:
    """All findings for the script of the page.

    Returns:
        Lines of JSON, deflated and in base64: what the findings have in common, then each finding in order.
    """
    pack = _Pack()
    for line in _lines(night, replay_of, trace_of, pack):
        pack.add(line)
    return pack.finish()


class _Pack:
    """JSON values as deflated lines."""

    def __init__(self) -> None:
        self.squeeze = zlib.compressobj()
        self.made = bytearray()

    def add(self, line: Json) -> None:
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        self.made += self.squeeze.compress(text.encode() + b"\n")

    @property
    def has_room(self) -> bool:
        return len(self.made) * 4 // 3 < DRAWN

    def finish(self) -> str:
        return base64.b64encode(self.made + self.squeeze.flush()).decode()


def _lines(night: Night, replay_of: ReplayOf, trace_of: TraceOf | None, pack: _Pack) -> Iterator[Json]:
    found = in_order(night)
    oracles = {**ORACLES, "fragmentation": fragmentation, **PROBES}
    rules = {r.finding.deviation.rule for _, r in found} - {None}
    yield {
        "places": list(PLACE_NAMES),
        "oracles": {name: (oracle.__doc__ or "").partition("\n")[0] for name, oracle in oracles.items()},
        "rules": {
            rule.id: {"sentence": rule.sentence, "source": rule.source, "level": rule.level}
            for rule in rules
            if rule is not None
        },
    }
    patience = PATIENCE
    for number, (result, reported) in enumerate(found):
        entry = _entry(result, reported, replay_of)
        if pack.has_room:
            case = reported.finding.case
            trace = None
            if trace_of is not None and not case.probe and patience > 0:
                began = perf_counter()
                trace = trace_of(result.target, case)
                patience -= perf_counter() - began
            entry["case"] = _case(reported.finding, pointing=number < MARKED)
            entry["trace"] = _trace(trace) if trace is not None else None
        yield entry


def _entry(result: Result, reported: Reported, replay_of: ReplayOf) -> dict[str, Json]:
    """All of a finding but its bytes."""
    finding, known = reported.finding, reported.known
    deviation = finding.deviation
    path = reported.path
    return {
        "target": short(result.target),
        "provider": finding.case.provider,
        "tags": [*tags(reported)],
        "sentence": short(finding.sentence),
        "signature": short(finding.signature),
        "oracle": short(deviation.oracle),
        "rule": deviation.rule.id if deviation.rule is not None else None,
        "causes": [short(cause) for cause in finding.causes],
        "also": list(finding.also),
        "values": _values(deviation.expected, deviation.got),
        "count": finding.count,
        "failed": reported.failed,
        "runs": reported.runs,
        "first": reported.first.isoformat() if reported.first is not None else None,
        "last": reported.last.isoformat() if reported.last is not None else None,
        "engine": short(reported.engine),
        "how": short(finding.how),
        "known": {"until": known.expires.isoformat(), "reason": short(known.reason)} if known is not None else None,
        "path": short(path) if path is not None else None,
        "replay": short(replay_of(result.target, reported)) if path is not None else None,
    }


def short(text: str, start: int = 0, legible: Callable[[str], str] = printable) -> str:
    """Text made legible; what is too long is cut off and the text says so."""
    if len(text) <= TEXT:
        return legible(text)
    dots = "\u2026 " if start else ""
    return f"{dots}{legible(text[start : start + TEXT])} \u2026 ({len(text):,} characters in all)"


def _exact(text: str) -> str:
    """A value, of which each character is to be seen."""
    return exact(text, plain=False)


def _values(expected: Json, got: Json) -> list[Json]:
    """What should have been given and what was, each if there is one, from a little before they differ."""
    named = [(name, _text(value)) for name, value in (("Should be", expected), ("Is", got)) if value is not None]
    texts = [text for _, text in named]
    shorter = min(map(len, texts), default=0)
    differ = next((n for n in range(shorter) if texts[0][n] != texts[-1][n]), shorter) if len(texts) == 2 else 0
    start = max(0, differ - TEXT // 4) if max(map(len, texts), default=0) > TEXT else 0
    return [[name, short(text, start, _exact)] for name, text in named]


def _text(value: Any) -> str:
    return (value or "(empty text)") if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):  # a target may give what only looks like JSON
        return str(value)


# -- the stream -----------------------------------------------------------------------------------------------


def _case(finding: Finding, *, pointing: bool) -> dict[str, Json]:
    case = finding.case
    made: dict[str, Json] = {
        "takes": case.takes,
        "end": case.end,
        # With nothing to draw after it, the first line of a ruler is the sentence that says what the probe does.
        "probe": ruler.draw(case, width=1000)[0] if case.probe else None,
    }
    at = marks(finding) if pointing else ()
    streams = [case.chunks] if case.chunks or not case.probe else []
    streams += [case.other] if case.other else []
    if case.takes in ("bytes", "text"):
        made["streams"] = [_wire(case, chunks, at if n == 0 else ()) for n, chunks in enumerate(streams)]
    else:
        made["streams"] = [_items(chunks, at if n == 0 else ()) for n, chunks in enumerate(streams)]
    if not case.probe:
        expect = expectation(case)
        made["judge"] = [expect.outcome, expect.rule]
    return made


def _items(chunks: Sequence[Any], at: Sequence[int]) -> dict[str, Json]:
    """A stream of frames or events: each as text."""
    return {
        "items": [short(_item(chunk), 0, _exact) for chunk in chunks[:BYTES]],
        "size": len(chunks),
        "marks": [index for index in at if index <= min(len(chunks), BYTES)],
    }


def _item(chunk: Frame | Event) -> str:
    """A frame or an event as JSON, without what it does not say."""
    if isinstance(chunk, Frame):
        said = {"event": chunk.event, "data": chunk.data, "id": chunk.id, "retry": chunk.retry}
        return _json({n: value for n, value in said.items() if n == "data" or value != getattr(Frame(""), n)})
    name = f"{chunk.name} " if chunk.name is not None else ""
    return name + (chunk.data.text if isinstance(chunk.data, Raw) else _json(chunk.data))


def _wire(case: Case, chunks: Sequence[Any], at: Sequence[int]) -> dict[str, Json]:
    """A stream of bytes, as one character for each byte, with its map.

    Of a long stream there is the part around the first mark or cut; offsets count from the stream's beginning.
    """
    pieces = [chunk if isinstance(chunk, bytes) else chunk.encode("utf-8", "surrogatepass") for chunk in chunks]
    data = b"".join(pieces)
    ends = list(accumulate(map(len, pieces)))
    start, stop = 0, len(data)
    if len(data) > BYTES:
        spot = next(iter([*at, *(end for end in ends if end < len(data))]), 0)
        start = max(0, min(spot - BYTES // 2, len(data) - BYTES))
        stop = start + BYTES
    wire = Wire(data[:stop], providers.get(case.provider).framing)
    places = [_NUMBERS[name] for name in wire.places()[start:]]
    return {
        "bytes": data[start:stop].decode("latin-1"),
        "start": start,
        "size": len(data),
        "chunks": _runs(map(len, pieces)),
        "count": len(pieces),
        "lines": [
            [line.kind, line.start, line.name_end, line.value, line.end, line.stop, line.frame]
            for line in wire.lines
            if line.stop > start
        ],
        # The cut before the byte at start + 1, and so on, by the numbers of the places.
        "places": _runs(places),
        "marks": [offset for offset in at if start <= offset <= stop],
    }


def _runs(numbers: Iterable[int]) -> list[Json]:
    """Numbers as pairs of each and how often it stands there in a row."""
    return [[number, sum(1 for _ in run)] for number, run in groupby(numbers)]


# -- what the target did --------------------------------------------------------------------------------------


def _trace(trace: Trace) -> dict[str, Json]:
    moments = list(_moments(zip(trace.after, trace.items, strict=True)))
    return {
        "moments": [[after, what, short(text, 0, _exact)] for after, what, text in moments[:BYTES]],
        "taken": trace.taken,
        "end": _ended(trace),
        "result": short(_text(trace.result), 0, _exact) if trace.result is not None else None,
    }


def _moments(given: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, str, str]]:
    """After how many chunks, what, and its text; pieces of one field after the same chunk are joined."""
    for (after, what), group in groupby(((n, *_told(item)) for n, item in given), key=lambda told: told[:2]):
        texts = [text for _, _, text in group]
        if what in _WHOLE.values() or what == "item":
            yield from ((after, what, text) for text in texts)
        else:
            yield after, what, "".join(texts)


_WHOLE = {Snapshot: "the whole so far", Release: "a tool call to act on", Final: "the final message"}


def _told(item: Any) -> tuple[str, str]:
    if isinstance(item, Delta):
        return item.field, item.text
    if isinstance(item, (Snapshot, Final)):
        return _WHOLE[type(item)], _text(item.view)
    if isinstance(item, Release):
        return _WHOLE[Release], _text(item.call)
    return "item", _text(item)


def _ended(trace: Trace) -> str:
    if trace.failure is not None:
        return short(f"ended with {trace.failure.type}: {trace.failure.message}")
    return "did not end" if trace.ending == "hang" else f"ended as {trace.ending}"
