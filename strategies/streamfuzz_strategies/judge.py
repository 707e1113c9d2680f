"""What any bytes are worth as a stream of a provider.

The judge reads strictly: frames by the framing's spec, payloads as JSON by RFC 8259, events by the provider's
lifecycle table, the reply by its reducer.  It never learns how the bytes came to be, so a generated stream, a
mutated one and a capture are judged alike.

Where two readings are open (a pending last frame may be discarded or delivered, an odd event applied or
skipped) the judge takes both, and a target is right if it agrees with either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from .framing import Decoded
from .providers.base import Provider, is_sentinel
from .reply import Choice, Json, Part, Reply, ToolCall
from .rules import Breach, Level, Rule, Walk
from .stream import Event, Frame, MalformedJson, Raw, parse_json

End: TypeAlias = Literal["eof", "reset"]
"""How the bytes end: a clean end of stream, or the connection breaks."""

NOT_JSON = Rule(
    "stream.payload.not-json",
    "a payload was not JSON",
    "https://www.rfc-editor.org/rfc/rfc8259#section-2",
)
EMPTY_PAYLOAD = Rule(
    "stream.payload.empty",
    "a frame carried an empty payload",
    "https://html.spec.whatwg.org/multipage/server-sent-events.html#dispatchMessage",
    "may",
)
RESET = Rule(
    "stream.reset",
    "the connection broke before the stream had proved its end",
    "https://www.rfc-editor.org/rfc/rfc9112#section-8",
)
ERROR = Rule(
    "stream.error",
    "the provider reported an error",
    "https://html.spec.whatwg.org/multipage/server-sent-events.html",
)
TRAILING = Rule(
    "stream.trailing",
    "something that is no event came after the end",
    "https://html.spec.whatwg.org/multipage/server-sent-events.html",
    "may",
)
GENERIC_RULES = (NOT_JSON, EMPTY_PAYLOAD, RESET, ERROR, TRAILING)
"""Rules that hold for every provider."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a stream is worth.

    Attributes:
        frames: the frames that the framing's spec dispatches.
        events: the provider event in each frame; :class:`Raw` where the payload is no JSON.
        pending: a last frame that was begun and not ended, where the framing discards such a frame.
        breaches: the rules that the stream breaks, in order, read by the letter of the framing.
        accepted: the replies with which a target may end as complete; empty: it must not.
        may_refuse: whether a target may end in an error or as incomplete.
        error: what the provider said went wrong, if it reported an error.
        truths: what has arrived, reduced tolerantly in each open reading; what a target shows before the end
            must be the beginning of one of them.
    """

    frames: tuple[Frame, ...]
    events: tuple[Event, ...]
    pending: Frame | None
    breaches: tuple[Breach, ...]
    accepted: tuple[Reply, ...]
    may_refuse: bool
    error: str | None
    truths: tuple[Reply, ...]

    @property
    def complete(self) -> bool:
        """Whether some lawful reading of the stream is a complete message."""
        return bool(self.accepted)

    @property
    def level(self) -> Level:
        """The level of the stream as a whole: ``must`` refuse, ``may`` refuse, or nothing to see."""
        return "may" if self.accepted and self.may_refuse else "none" if self.accepted else "must"

    @property
    def worst(self) -> Breach | None:
        """The breach that matters most: the first of the highest level."""
        ranked = sorted(self.breaches, key=lambda breach: ("must", "may", "none").index(breach.level))
        return ranked[0] if ranked else None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """One interpretation of a stream, with its possible replies."""

    breaches: tuple[Breach, ...]
    error: str | None
    replies: tuple[Reply, ...]

    @property
    def complete(self) -> bool:
        return self.error is None and all(breach.level != "must" for breach in self.breaches)

    @property
    def sound(self) -> bool:
        return self.complete and all(breach.level == "none" for breach in self.breaches)


@dataclass(frozen=True, slots=True)
class _Tail:
    """A last frame that was begun and not ended, and the framing rules that it breaks."""

    frame: Frame
    broken: tuple[Rule, ...]


def _tail(decoded: Decoded, index: int) -> _Tail | None:
    if decoded.pending is None:
        return None
    return _Tail(decoded.pending, tuple(rule for rule, at in decoded.broken if at == index))


class Reading:
    """The strict reading of one byte string, from which the judgement of each prefix follows cheaply.

    Everything is worked out on demand and kept, so judging all truncations of a stream costs little more than
    judging the stream.
    """

    def __init__(self, provider: Provider, data: bytes) -> None:
        self.provider = provider
        self.data = data
        self.decoded = provider.framing.decode(data)
        self._prepare(self.decoded)

    @classmethod
    def of_frames(cls, provider: Provider, frames: Sequence[Frame]) -> Reading:
        """The reading of frames that no bytes were needed for; offsets then count frames."""
        reading = cls.__new__(cls)
        reading.provider = provider
        reading.data = b""
        reading.decoded = Decoded(tuple(frames), tuple(range(1, len(frames) + 1)))
        reading._prepare(reading.decoded)
        return reading

    @classmethod
    def of_events(cls, provider: Provider, events: Sequence[Event]) -> Reading:
        """The reading of events that were never framed; offsets then count events."""
        reading = cls.__new__(cls)
        reading.provider = provider
        reading.data = b""
        # Whoever made events of payloads has taken the sentinel for the end that it is.
        sentinel = (Event(Raw(provider.sentinel)),) if provider.sentinel is not None else ()
        events = (*(event for event in events if event not in sentinel), *sentinel)
        reading.decoded = Decoded((), tuple(range(1, len(events) + 1)))
        reading._prepare(reading.decoded, tuple(events))
        return reading

    def _prepare(self, decoded: Decoded, events: tuple[Event, ...] | None = None) -> None:
        self.frames = decoded.frames
        self.ends = decoded.ends
        self.events = tuple(map(self._event, decoded.frames)) if events is None else events
        self._walks: list[tuple[Walk, tuple[Breach, ...], str | None]] = [(Walk(self.provider.machines), (), None)]
        self._judged: dict[tuple[int, _Tail | None, End], Judgement] = {}
        self._outcomes: dict[tuple[int, _Tail | None, End], _Outcome] = {}
        self._conforming: dict[int, bool] = {}
        self._replies: dict[tuple[int, bool], Reply] = {}

    @cached_property
    def judgement(self) -> Judgement:
        """The judgement of the whole, ended cleanly."""
        return self.judge()

    def judge(self, end: End = "eof") -> Judgement:
        """The judgement of the whole, ended in the given way."""
        return self._judge(len(self.events), _tail(self.decoded, len(self.decoded.frames)), end)

    def upto(self, offset: int, end: End = "eof") -> Judgement:
        """The judgement of the first ``offset`` bytes (or frames, or events), as if they were all."""
        if offset >= len(self.data) and self.data:
            return self.judge(end)
        count = self.count(offset)
        return self._judge(count, self._pending(count, offset), end)

    def count(self, offset: int) -> int:
        """How many frames the first ``offset`` bytes decide."""
        low, high = 0, len(self.ends)
        while low < high:
            middle = (low + high) // 2
            if self.ends[middle] <= offset:
                low = middle + 1
            else:
                high = middle
        return low

    def reply(self, count: int, *, skip: bool = False) -> Reply:
        """The tolerant reduction of the first ``count`` events; ``skip``: leave out what may be left out."""
        key = (count, skip)
        if key not in self._replies:
            self._replies[key] = self._reduce(self.events[:count], self._state(count)[1], skip=skip)
        return self._replies[key]

    def conforms(self, count: int) -> bool:
        """Whether the first ``count`` events, a last one that lacks its end included, have their documented shape.

        Lifecycle tables do not look at members that nothing depends on; a reader that checks every event against
        the documentation may still refuse one that lacks them.
        """
        if count > len(self.events) and self.decoded.pending is not None:
            pending = self._event(self.decoded.pending)
            if not (isinstance(pending.data, Raw) or self.provider.conforms(pending)):
                return False
        return all(
            isinstance(event.data, Raw) or self._conforms(index) for index, event in enumerate(self.events[:count])
        )

    def _conforms(self, index: int) -> bool:
        if index not in self._conforming:
            self._conforming[index] = self.provider.conforms(self.events[index])
        return self._conforming[index]

    def released(self, count: int) -> tuple[ToolCall, ...]:
        """The tool calls that may be acted on after the first ``count`` events."""
        left_out = _left_out(self._state(count)[1], skip=False)
        reducer = self.provider.reducer()
        for index, event in enumerate(self.events[:count]):
            if index not in left_out:
                reducer.apply(event)
        return tuple(reducer.released())

    def _event(self, frame: Frame) -> Event:
        name = None if frame.event == "message" else frame.event
        if self.provider.text_payloads or frame.data == self.provider.sentinel:
            return Event(Raw(frame.data), name)
        try:
            return Event(parse_json(frame.data), name)
        except MalformedJson:
            return Event(Raw(frame.data), name)

    def _pending(self, count: int, offset: int) -> _Tail | None:
        start = self.ends[count - 1] if count else 0
        rest = self.data[start:offset]
        if not rest.strip(b"\r\n"):
            return None
        framing = self.provider.framing
        return _tail(framing.decode((framing.resume(self.frames[count - 1]) if count else b"") + rest), 0)

    def _state(self, count: int) -> tuple[Walk, tuple[Breach, ...], str | None]:
        while len(self._walks) <= count:
            index = len(self._walks) - 1
            broken = [rule for rule, at in self.decoded.broken if at == index]
            self._walks.append(self._step(*self._walks[-1], index, self.events[index], broken))
        return self._walks[count]

    def _step(
        self,
        walk: Walk,
        breaches: tuple[Breach, ...],
        error: str | None,
        index: int,
        event: Event,
        broken: Sequence[Rule],
    ) -> tuple[Walk, tuple[Breach, ...], str | None]:
        if error is not None:  # nothing that follows a reported error can mend it
            return walk, breaches, error
        over = self._over(walk)
        framed = tuple(Breach(rule, index, "skip" if rule.level == "must" else "apply") for rule in broken)
        if any(breach.reading == "skip" for breach in framed) and not over:
            return walk, (*breaches, *framed), None
        if not over and (rule := self._unreadable(event)) is not None:
            return walk, (*breaches, Breach(rule, index, "skip")), None
        walk = walk.copy()
        found: list[Breach]
        if over and self._unreadable(event) is not None:
            return walk, (*breaches, Breach(TRAILING, index, "skip")), None
        found = walk.step(index, self.provider.steps(event, walk))
        if all(breach.reading != "skip" for breach in found):
            error = self.provider.error(event)
            if error is not None:
                found.append(Breach(ERROR, index))
        return walk, (*breaches, *framed, *found), error

    def _over(self, walk: Walk) -> bool:
        return "stream" in walk.machines and walk.state("stream") in self.provider.over

    def _unreadable(self, event: Event) -> Rule | None:
        if not isinstance(event.data, Raw) or self.provider.text_payloads:
            return None
        if is_sentinel(event, self.provider.sentinel):
            return None
        return NOT_JSON if event.data.text.strip() else EMPTY_PAYLOAD

    def _judge(self, count: int, tail: _Tail | None, end: End) -> Judgement:
        key = (count, tail, end)
        if key in self._judged:
            return self._judged[key]
        outcomes = []
        if tail is None or not self.provider.framing.keeps_pending:
            outcomes.append(self._outcome(count, None, end))
        if tail is not None:
            outcomes.append(self._outcome(count, tail, end))
        accepted = tuple(dict.fromkeys(r for outcome in outcomes if outcome.complete for r in outcome.replies))
        uncut = self._without_cut_calls(accepted)
        first = outcomes[0]
        if tail is not None and accepted and not first.complete:
            first = outcomes[-1]
        pending = tail.frame if tail is not None else None
        keeps = pending is not None and self.provider.framing.keeps_pending
        judgement = Judgement(
            frames=self.frames[:count] + ((pending,) if pending is not None and keeps else ()),
            events=self.events[:count] + ((self._event(pending),) if pending is not None and keeps else ()),
            pending=None if keeps else pending,
            breaches=first.breaches,
            accepted=uncut,
            may_refuse=end == "reset" or not all(outcome.sound for outcome in outcomes) or self._is_cut(accepted),
            error=first.error,
            truths=tuple(dict.fromkeys(r for outcome in outcomes for r in outcome.replies)),
        )
        self._judged[key] = judgement
        return judgement

    def _is_cut(self, replies: Sequence[Reply]) -> bool:
        return any(choice.finish in self.provider.cut_finishes for reply in replies for choice in reply.choices)

    def _without_cut_calls(self, replies: tuple[Reply, ...]) -> tuple[Reply, ...]:
        """Add, for answers that were cut off, the reply without the calls whose arguments are unfinished."""
        if not self._is_cut(replies):
            return replies
        trimmed = (replace(r, choices=tuple(map(self._trim, r.choices))) for r in replies)
        return tuple(dict.fromkeys((*replies, *trimmed)))

    def _trim(self, choice: Choice) -> Choice:
        if choice.finish not in self.provider.cut_finishes:
            return choice
        return replace(choice, parts=tuple(p for p in choice.parts if not _is_unfinished_call(p)))

    def _outcome(self, count: int, tail: _Tail | None, end: End) -> _Outcome:
        """One interpretation: the first ``count`` events, then the pending frame, if given, then the end."""
        event = self._event(tail.frame) if tail is not None else None
        if tail is not None and event is not None and self._unreadable(event) is NOT_JSON:
            tail = replace(tail, frame=_GARBAGE)  # however it is garbled, it comes to the same
        key = (count, tail, end)
        if key not in self._outcomes:
            self._outcomes[key] = self._interpret(count, event, tail.broken if tail is not None else (), end)
        return self._outcomes[key]

    def _interpret(self, count: int, pending: Event | None, broken: Sequence[Rule], end: End) -> _Outcome:
        walk, breaches, error = self._state(count)
        events = self.events[:count]
        if pending is not None:
            events = (*events, pending)
            walk, breaches, error = self._step(walk, breaches, error, count, pending, broken)
        applied = pending is not None and not any(b.index == count and b.reading == "skip" for b in breaches)
        replies = [self._reduce(events, breaches, skip=False) if applied else self.reply(count)]
        if any(breach.reading == "either" for breach in breaches):
            replies.append(self._reduce(events, breaches, skip=True))
        if error is None:
            last = walk.end()
            if end == "reset" and not self._over(walk) and any(breach.level != "none" for breach in last):
                last.insert(0, Breach(RESET, -1))
            breaches = (*breaches, *last)
        return _Outcome(breaches, error, tuple(replies))

    def _reduce(self, events: Sequence[Event], breaches: Sequence[Breach], *, skip: bool) -> Reply:
        left_out = _left_out(breaches, skip=skip)
        reducer = self.provider.reducer()
        for index, event in enumerate(events):
            if index not in left_out:
                reducer.apply(event)
        return reducer.reply()


_GARBAGE = Frame("{")


def _is_unfinished_call(part: Part) -> bool:
    if not isinstance(part, ToolCall):
        return False
    try:
        parse_json(part.arguments or "{}")
    except MalformedJson:
        return True
    return False


def _left_out(breaches: Sequence[Breach], *, skip: bool) -> set[int]:
    return {b.index for b in breaches if b.reading == "skip" or (skip and b.reading == "either")}


def judge(provider: Provider, data: bytes, end: End = "eof") -> Judgement:
    """Judge a byte string as a stream of a provider.

    Args:
        provider: the protocol to read by.
        data: all bytes of the stream.
        end: how they ended.

    Returns:
        What the stream is worth; the function is total over byte strings.
    """
    return Reading(provider, data).judge(end)


def whole_value(judgement: Judgement) -> Json:
    """The one JSON value of a complete ``json`` stream.

    Raises:
        ValueError: the stream is not exactly one JSON value.
    """
    if not judgement.complete or len(judgement.events) != 1:
        raise ValueError("the stream is not one JSON value")
    return judgement.events[0].data
