"""What a provider is: a framing, a lifecycle table, a strategy, a reducer and a schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeAlias, TypeVar

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ..framing import Framing
from ..reply import Json, Reply, ToolCall
from ..rules import Machine, Rule, Step, Walk
from ..stream import Event, Raw

T = TypeVar("T")

Alphabet: TypeAlias = str | tuple[str, ...] | None
"""What model text is made of, see :class:`Drawing`."""

REMEMBERED = 8192
"""Events whose conformance is remembered."""


class Draw(Protocol):
    """Hypothesis' ``draw``, as :func:`hypothesis.strategies.composite` hands it out."""

    def __call__(self, strategy: st.SearchStrategy[T], /) -> T:
        """Draw one value."""
        ...


@dataclass(frozen=True, slots=True)
class Drawing:
    """What the user may ask of the streams that are drawn.

    Attributes:
        tools: tool definitions by name, each the JSON Schema of its arguments; ``None``: a built-in set.
        alphabet: what model text is made of: characters, or whole morsels as in :mod:`..text`; ``None``: all of
            those, and text in which each delta is told from the others.
        max_parts: at most so many parts (text, reasoning, calls) in each choice.
    """

    tools: Mapping[str, Json] | None = None
    alphabet: Alphabet = None
    max_parts: int = 4


class Reducer(Protocol):
    """Events in, reply out.  One instance reads one stream.

    A reducer is total: whatever event it is given, in whatever order, it makes of it what a tolerant reader
    would and never raises.  Saying what is wrong with a stream is the lifecycle table's work.
    """

    def apply(self, event: Event) -> None:
        """Take in one event."""
        ...

    def reply(self) -> Reply:
        """The reply so far; may be asked for after any event, without effect on later ones."""
        ...

    def released(self) -> Sequence[ToolCall]:
        """The tool calls whose own terminator has been seen, so that acting on them is safe."""
        ...


Steps: TypeAlias = Callable[[Event, Walk], Iterable[Step]]


@dataclass(frozen=True)
class Provider:
    """A wire protocol for LLM streams, in one value.

    Attributes:
        name: the name used on the command line, in case files and in rule ids.
        title: for people.
        source: URL of the protocol's documentation.
        framing: how its events are framed.
        machines: its lifecycle tables by name.
        steps: what an event does to the machines, given where they stand.
        reducer: makes a reader for one stream.
        draw_reply: draw a reply that this protocol can say.
        draw_events: draw one of the many ways to stream a reply.  Together with the drawn reply it must satisfy
            ``reduce(draw_events(reply)) == reply``.
        plain_events: the simplest way to stream a reply; deterministic.
        error: the message of an error event, else ``None``.
        kind: a short name for what an event is (for people, rulers and findings).
        schemas: JSON Schema of each event kind (draft 2020-12), keyed by what ``kind`` returns.
        sentinel: payload that ends the stream and is not JSON (``[DONE]``), if any.
        cut_finishes: finish values that say the answer was cut off, so its last call may be unfinished.
        body: the reply as the same API answers without streaming; ``None`` where there is no such thing.
        extra_rules: rules that ``steps`` finds without a table cell, so that they can be listed.
        over: states of the machine ``stream`` after which a reader expects nothing and ignores what comes.
        ignorable: kinds of events that carry nothing, which a reader of events may leave out.
        noise: events that may stand anywhere between others and mean nothing (pings, unknown types).
        failures: error events as this provider sends them in the middle of a stream.
        features: normalisers for the search for causes: what a stream has, in words that follow "because of",
            and a function that takes it out of one event (``None``: the whole event goes).  What is left of a
            lawful stream is one too, but may say less: without "more than one choice" only the first is there.
        renumber: mends the running numbers of a stream's events after some were taken out or put in: the same
            events, counted as they stand now.  ``None``: this protocol does not number its events.
        told_whole: the texts that a stream tells in one piece that is no delta, as some servers do.  A reader that
            shows deltas shows the others only, and is right to.
        text_payloads: payloads are plain text, not JSON (the ``sse`` profile).
    """

    name: str
    title: str
    source: str
    framing: Framing
    machines: Mapping[str, Machine]
    steps: Steps
    reducer: Callable[[], Reducer]
    draw_reply: Callable[[Draw, Drawing], Reply]
    draw_events: Callable[[Draw, Reply, Drawing], tuple[Event, ...]]
    plain_events: Callable[[Reply], tuple[Event, ...]]
    error: Callable[[Event], str | None]
    kind: Callable[[Event], str]
    schemas: Mapping[str, Json] = field(default_factory=dict)
    sentinel: str | None = None
    cut_finishes: frozenset[str] = frozenset()
    body: Callable[[Reply], Json] | None = None
    extra_rules: tuple[Rule, ...] = ()
    over: frozenset[str] = frozenset({"done", "failed"})
    ignorable: frozenset[str] = frozenset()
    noise: tuple[Event, ...] = ()
    failures: tuple[Event, ...] = ()
    features: Mapping[str, Callable[[Event], Event | None]] = field(default_factory=dict)
    renumber: Callable[[Sequence[Event]], tuple[Event, ...]] | None = None
    told_whole: Callable[[Sequence[Event]], frozenset[str]] = lambda events: frozenset()
    text_payloads: bool = False

    def conforms(self, event: Event) -> bool:
        """Whether an event has the shape that the protocol documents for its kind."""
        kind = self.kind(event)
        if kind not in self._validators:
            return True
        text = f"{kind} {event.data if isinstance(event.data, Raw) else json.dumps(event.data)}"
        if text not in self._conforming:
            if len(self._conforming) >= REMEMBERED:
                self._conforming.clear()
            self._conforming[text] = self._validators[kind].is_valid(event.data)
        return self._conforming[text]

    @cached_property
    def _conforming(self) -> dict[str, bool]:
        """What was found of events before: a search asks for the same ones over and over."""
        return {}

    @cached_property
    def _validators(self) -> Mapping[str, Draft202012Validator]:
        return {kind: Draft202012Validator(schema) for kind, schema in self.schemas.items()}

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule of this protocol, by id, each once."""
        found = {rule.id: rule for machine in self.machines.values() for rule in machine.rules()}
        found.update((rule.id, rule) for rule in self.extra_rules)
        return tuple(found[name] for name in sorted(found))


def reduce(provider: Provider, events: Iterable[Event]) -> Reply:
    """Read events to the end and return the reply."""
    reducer = provider.reducer()
    for event in events:
        reducer.apply(event)
    return reducer.reply()


def is_sentinel(event: Event, sentinel: str | None) -> bool:
    """Whether the event is the payload that ends the stream."""
    return sentinel is not None and isinstance(event.data, Raw) and event.data.text == sentinel
