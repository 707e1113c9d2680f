"""Lifecycle tables: what a step does is in the table, and every provider's tables are sound."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfuzz_strategies.judge import GENERIC_RULES
from streamfuzz_strategies.providers import NAMES, get
from streamfuzz_strategies.rules import END, Breach, Break, Machine, Rule, Step, Walk

LATE = Rule("toy.late", "it came late", "nowhere", "may")
UNFINISHED = Rule("toy.unfinished", "it never ended", "nowhere")

STREAM = Machine(
    "stream",
    "new",
    {
        "new": {"open": "open", END: Break(UNFINISHED, "new")},
        "open": {"close": "done", "*": "open", END: Break(UNFINISHED, "open")},
        "done": {"more": Break(LATE, "done", "skip"), "again": Break(LATE, "open"), END: "done"},
    },
    always=True,
)
BLOCK = Machine("block", "shut", {"shut": {"open": "open"}, "open": {END: Break(UNFINISHED, "open")}})
MACHINES = {"stream": STREAM, "block": BLOCK}
symbols = st.lists(st.sampled_from(("open", "close", "more", "again", "odd")), max_size=8)

every_provider = pytest.mark.parametrize("name", NAMES)


def walked(*steps: str) -> Walk:
    walk = Walk(MACHINES)
    for index, symbol in enumerate(steps):
        walk.step(index, [Step("stream", symbol)])
    return walk


# --- the walk


def test_a_cell_is_found_by_symbol_then_star_then_the_state_stays() -> None:
    assert STREAM.cell("open", "close") == "done"
    assert STREAM.cell("open", "odd") == "open"
    assert STREAM.cell("new", "odd") == "new"


def test_a_break_is_reported_where_it_happens_and_the_walk_goes_on() -> None:
    walk = walked("open", "close")
    assert walk.step(7, [Step("stream", "more")]) == [Breach(LATE, 7, "skip")]
    assert walk.state("stream") == "done"
    assert walk.step(8, [Step("stream", "again")]) == [Breach(LATE, 8)]
    assert walk.state("stream") == "open"


def test_the_level_of_a_breach_is_its_rules() -> None:
    assert Breach(LATE, 0).level == "may"
    assert Breach(UNFINISHED, 0).level == "must"


def test_the_end_is_asked_of_every_entity_that_came_into_being() -> None:
    walk = Walk(MACHINES)
    assert walk.end() == [Breach(UNFINISHED, -1)]
    walk.step(0, [Step("stream", "open"), Step("stream", "close")])
    assert walk.end() == []
    walk.step(1, [Step("block", "open", 3), Step("block", "open", 4)])
    assert walk.end() == [Breach(UNFINISHED, -1, about=3), Breach(UNFINISHED, -1, about=4)]


def test_entities_of_one_machine_stand_apart() -> None:
    walk = Walk(MACHINES)
    walk.step(0, [Step("block", "open", "a")])
    assert (walk.state("block", "a"), walk.state("block", "b")) == ("open", "shut")


def test_a_step_may_carry_its_own_break_and_where_it_leads() -> None:
    walk = walked("open")
    assert walk.step(1, [Step("stream", "close", breaks=Break(LATE, "", "either"))]) == [Breach(LATE, 1, "either")]
    assert walk.state("stream") == "open"
    walk.step(2, [Step("stream", "", breaks=Break(LATE, "done"))])
    assert walk.state("stream") == "done"


@given(symbols)
def test_asking_for_the_end_does_not_move_the_walk(steps: list[str]) -> None:
    walk = walked(*steps)
    before = dict(walk.states)
    assert walk.end() == walk.end()
    assert walk.states == before


@given(symbols, symbols)
def test_a_copy_walks_by_itself(steps: list[str], more: list[str]) -> None:
    walk = walked(*steps)
    walk.notes["stream", None] = "kept"
    states, notes = dict(walk.states), dict(walk.notes)
    copy = walk.copy()
    for index, symbol in enumerate(more):
        copy.step(index, [Step("stream", symbol)])
    copy.notes["stream", None] = "other"
    assert (walk.states, walk.notes) == (states, notes)
    assert copy.states == walked(*steps, *more).states


def test_a_machine_lists_the_rules_that_it_can_find_broken() -> None:
    assert {rule.id for rule in STREAM.rules()} == {"toy.late", "toy.unfinished"}


# --- the providers' tables


@every_provider
def test_every_cell_leads_to_a_state_of_its_table(name: str) -> None:
    for machine in get(name).machines.values():
        assert machine.start in machine.rows
        for row in machine.rows.values():
            for cell in row.values():
                then = cell.then if isinstance(cell, Break) else cell
                assert then in machine.rows, (machine.name, then)


@every_provider
def test_every_machine_is_listed_by_its_own_name(name: str) -> None:
    assert [machine.name for machine in get(name).machines.values()] == list(get(name).machines)


@every_provider
def test_every_state_can_be_reached(name: str) -> None:
    for machine in get(name).machines.values():
        reached, waiting = {machine.start}, [machine.start]
        while waiting:
            for symbol, cell in machine.rows[waiting.pop()].items():
                then = cell.then if isinstance(cell, Break) else cell
                if symbol != END and then not in reached:
                    reached.add(then)
                    waiting.append(then)
        assert set(machine.rows) - reached <= get(name).over, machine.name


@every_provider
def test_every_rule_has_one_meaning(name: str) -> None:
    rules = [rule for machine in get(name).machines.values() for rule in machine.rules()]
    rules += [*get(name).extra_rules, *GENERIC_RULES]
    assert len({rule.id for rule in rules}) == len(set(rules))


@every_provider
def test_every_rule_says_what_went_wrong_and_where_it_is_written(name: str) -> None:
    for rule in (*get(name).rules, *GENERIC_RULES):
        assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9_-]+)+", rule.id)
        assert rule.sentence == rule.sentence.strip().rstrip(".")
        assert rule.source
        assert rule.level in ("must", "may", "none")


@every_provider
def test_a_state_in_which_the_stream_is_over_is_one_of_its_own(name: str) -> None:
    provider = get(name)
    if "stream" in provider.machines and provider.over:
        rows = provider.machines["stream"].rows
        assert provider.over & set(rows) or set(rows) == {"open"}
