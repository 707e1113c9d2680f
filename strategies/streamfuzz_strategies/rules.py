"""What a stream can break: rules with a level, and the lifecycle tables that find them.

A *table* says, for each state and each thing that can happen, either the next state or the rule that is
broken and the state to go on from.  Tables are data: ``streamfuzz rules`` prints them and the docs are made
from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["must", "may", "none"]
"""How visible damage is: ``must`` never end as complete, ``may`` be tolerated or refused, ``none`` undecidable."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that a lawful stream does not do.

    ``id`` is stable and dotted (``openai-chat.finish.missing``), ``sentence`` says what the stream did wrong
    in plain words, ``source`` is the paragraph or URL where the rule is written.
    """

    id: str
    sentence: str
    source: str
    level: Level = "must"


Reading: TypeAlias = Literal["apply", "skip", "either"]


@dataclass(frozen=True, slots=True)
class Break:
    """A table cell: this step breaks ``rule``; the walk goes on in ``then``.

    ``reading`` says what a tolerant reduction makes of the offending event: ``apply`` it, ``skip`` it, or
    ``either`` (both are accepted from a target).
    """

    rule: Rule
    then: str
    reading: Reading = "apply"


Cell: TypeAlias = str | Break
END = "end"
"""The symbol fed to every machine when the stream ends."""


@dataclass(frozen=True)
class Machine:
    """A lifecycle table for the stream as a whole or for each entity in it (a choice, a block, an item).

    ``rows`` maps state -> symbol -> cell.  ``always`` machines exist from the start of every stream; others
    come into being with the first step for their key.  A symbol that a row does not name is looked up under
    ``"*"``; with neither, the state is kept.
    """

    name: str
    start: str
    rows: Mapping[str, Mapping[str, Cell]]
    always: bool = False

    def cell(self, state: str, symbol: str) -> Cell:
        """The table's entry for a symbol in a state."""
        row = self.rows[state]
        found = row.get(symbol)
        return found if found is not None else row.get("*", state)

    def rules(self) -> Iterator[Rule]:
        """Every rule that the table can find broken."""
        for row in self.rows.values():
            for cell in row.values():
                if isinstance(cell, Break):
                    yield cell.rule


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that an event does: a symbol for the machine ``machine``, of the entity ``key``.

    ``breaks`` carries a rule that the event breaks by itself (a missing field, a contradiction), which no
    table of states could tell.
    """

    machine: str
    symbol: str
    key: object = None
    breaks: Break | None = None


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule broken at an event: ``index`` counts the stream's events, ``-1`` means at its end."""

    rule: Rule
    index: int
    reading: Reading = "apply"
    about: object = None

    @property
    def level(self) -> Level:
        """The level of the broken rule."""
        return self.rule.level


@dataclass(slots=True)
class Walk:
    """The walk of one stream through its machines.

    ``notes`` is for what a provider's ``steps`` must remember and no finite state can hold, such as the
    pieces of an argument text so far.  Its values are immutable, so that a copy of the walk shares nothing.
    """

    machines: Mapping[str, Machine]
    states: dict[tuple[str, object], str] = field(default_factory=dict)
    notes: dict[tuple[str, object], object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for machine in self.machines.values():
            if machine.always:
                self.states.setdefault((machine.name, None), machine.start)

    def state(self, machine: str, key: object = None) -> str:
        """Where an entity stands; its start state if nothing happened to it yet."""
        return self.states.get((machine, key), self.machines[machine].start)

    def copy(self) -> Walk:
        """An independent walk standing at the same place."""
        return Walk(self.machines, dict(self.states), dict(self.notes))

    def step(self, index: int, steps: Iterable[Step]) -> list[Breach]:
        """Take the steps of one event and return the rules that it breaks."""
        breaches = []
        for step in steps:
            if step.breaks is not None:
                breaches.append(Breach(step.breaks.rule, index, step.breaks.reading, step.key))
                if step.breaks.then:
                    self.states[step.machine, step.key] = step.breaks.then
                continue
            cell = self.machines[step.machine].cell(self.state(step.machine, step.key), step.symbol)
            if isinstance(cell, Break):
                breaches.append(Breach(cell.rule, index, cell.reading, step.key))
                cell = cell.then
            self.states[step.machine, step.key] = cell
        return breaches

    def end(self) -> list[Breach]:
        """The rules that an end of stream at this point breaks.  The walk itself is not moved."""
        breaches = []
        for (name, key), state in self.states.items():
            cell = self.machines[name].cell(state, END)
            if isinstance(cell, Break):
                breaches.append(Breach(cell.rule, -1, cell.reading, key))
        return breaches
