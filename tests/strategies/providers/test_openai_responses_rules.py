from __future__ import annotations

from typing import Any

import pytest

from streamfuzz_strategies.providers import get
from streamfuzz_strategies.providers.base import reduce
from streamfuzz_strategies.reply import Choice, Reply, Text, ToolCall
from streamfuzz_strategies.rules import Walk
from streamfuzz_strategies.stream import Event, Raw

from .walking import breaches

PROVIDER = get("openai-responses")
LEVELS = {rule.id.removeprefix("openai-responses."): rule.level for rule in PROVIDER.rules}


def say(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **members}


def numbered(*said: Any, first: int = 0) -> list[Event]:
    return [
        Event({"sequence_number": n, **data} if isinstance(data, dict) else data) for n, data in enumerate(said, first)
    ]


def numbers(given: list[int | None], *said: dict[str, Any]) -> list[Event]:
    return [Event(data if n is None else {**data, "sequence_number": n}) for n, data in zip(given, said, strict=True)]


def message(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "id": "m", "content": [{"type": "output_text", "text": text}], **more}


def call(arguments: str, **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": "f", "call_id": "c", "name": "n", "arguments": arguments, **more}


def reasoning(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def completed(*output: Any, **more: Any) -> dict[str, Any]:
    return say("completed", response={"id": "r", "status": "completed", "output": list(output), **more})


def added(item: dict[str, Any], at: int = 0) -> dict[str, Any]:
    return say("output_item.added", output_index=at, item=item)


def done(item: dict[str, Any], at: int = 0) -> dict[str, Any]:
    return say("output_item.done", output_index=at, item=item)


def part(step: str, text: str, kind: str = "output_text", at: int = 0) -> dict[str, Any]:
    return say(f"content_part.{step}", item_id="m", output_index=0, content_index=at, part={"type": kind, "text": text})


def text(step: str, value: str, kind: str = "output_text", at: int = 0) -> dict[str, Any]:
    member = "delta" if step == "delta" else "text"
    return say(f"{kind}.{step}", output_index=0, content_index=at, **{member: value})


def arguments(step: str, value: str) -> dict[str, Any]:
    member = "delta" if step == "delta" else "arguments"
    return say(f"function_call_arguments.{step}", item_id="f", output_index=0, **{member: value})


CREATED = say("created", response={"id": "r", "status": "in_progress", "output": []})
PROGRESS = say("in_progress", response={"id": "r", "status": "in_progress", "output": []})
NEW = {"type": "message", "id": "m", "content": []}
OPEN = [CREATED, added(NEW), part("added", "")]
SAID = [*OPEN, text("delta", "a"), text("done", "a")]
SHUT = [*SAID, part("done", "a")]
GOOD = [*SHUT, done(message("a")), completed(message("a"))]
CALL = [CREATED, added(call(""))]
STRAY = text("delta", "a")

CASES = {
    "stream.created-missing": numbered(PROGRESS, completed()),
    "stream.terminal-missing": numbered(*GOOD[:-1]),
    "stream.created-again": numbered(CREATED, CREATED, completed()),
    "stream.terminal-again": numbered(CREATED, completed(), completed()),
    "stream.after-terminal": numbered(CREATED, completed(), PROGRESS),
    "event.foreign": [*numbers([0], CREATED), Event({"data": 1}), *numbers([1], completed())],
    "event.malformed": numbered(CREATED, say("in_progress"), completed()),
    "event.index-missing": numbered(*SHUT, say("output_item.done", item=message("a")), GOOD[-1]),
    "sequence.gap": numbers([0, 2], CREATED, completed()),
    "sequence.repeated": numbers([0, 0], CREATED, completed()),
    "sequence.duplicate": numbers([0, 0, 1], CREATED, CREATED, completed()),
    "sequence.backwards": numbers([0, 1, 0], CREATED, PROGRESS, completed()),
    "sequence.start": numbered(CREATED, completed(), first=1),
    "sequence.missing": numbers([0, None, 1], CREATED, PROGRESS, completed()),
    "response.id-changed": numbered(CREATED, completed(id="other")),
    "terminal.status-differs": numbered(CREATED, completed(status="in_progress")),
    "terminal.output-differs": numbered(*GOOD[:-1], completed(message("b"))),
    "terminal.output-empty": numbered(*GOOD[:-1], completed()),
    "terminal.output-unstreamed": numbered(CREATED, completed(message("a"))),
    "item.index-gap": numbered(CREATED, added(NEW, 1), done(NEW, 1), completed(NEW)),
    "item.added-again": numbered(CREATED, added(NEW), added(NEW), done(NEW), completed(NEW)),
    "item.unopened": numbered(CREATED, STRAY, completed()),
    "item.closed": numbered(*GOOD[:-1], STRAY, GOOD[-1]),
    "item.done-unopened": numbered(CREATED, *GOOD[-2:]),
    "item.done-again": numbered(*GOOD[:-1], *GOOD[-2:]),
    "item.unfinished": numbered(*SHUT, GOOD[-1]),
    "item.cut": numbered(*SHUT, say("incomplete", response={"status": "incomplete", "output": [message("a")]})),
    "item.id-differs": numbered(*SHUT, done(message("a", id="m2")), GOOD[-1]),
    "item.differs": numbered(*SHUT, done(message("b")), completed(message("b"))),
    "item.part-unstreamed": numbered(CREATED, added(NEW), done(message("a")), completed(message("a"))),
    "item.kind": numbered(CREATED, added(NEW), {**arguments("delta", "{"), "item_id": "m"}, done(NEW), completed(NEW)),
    "item.added-with-content": numbered(
        CREATED, added(call("{}")), arguments("done", "{}"), done(call("{}")), completed(call("{}"))
    ),
    "part.index-gap": numbered(
        CREATED,
        added(NEW),
        part("added", "", at=1),
        text("done", "", at=1),
        part("done", "", at=1),
        done(NEW),
        completed(NEW),
    ),
    "part.added-again": numbered(*OPEN, part("added", ""), *GOOD[3:]),
    "part.unopened": numbered(*OPEN[:2], *GOOD[3:]),
    "part.done-unopened": numbered(*OPEN[:2], text("done", "a"), *GOOD[5:]),
    "part.reasoning-unopened": numbered(
        CREATED,
        added({"type": "reasoning", "id": "m", "summary": []}),
        text("delta", "a", "reasoning_text"),
        text("done", "a", "reasoning_text"),
        part("done", "a", "reasoning_text"),
        done({**reasoning("a"), "id": "m"}),
        completed(reasoning("a")),
    ),
    "part.closed": numbered(*SAID, STRAY, *GOOD[5:]),
    "part.done-again": numbered(*SAID, text("done", "a"), *GOOD[5:]),
    "part.text-not-done": numbered(*OPEN, text("delta", "a"), *GOOD[5:]),
    "part.unfinished": numbered(*SAID, *GOOD[6:]),
    "part.differs": numbered(*SAID, part("done", "b"), *GOOD[6:]),
    "text.differs": numbered(*OPEN, text("delta", "b"), *GOOD[4:]),
    "call.closed": numbered(
        *CALL, arguments("done", "{}"), arguments("delta", "{"), done(call("{}")), completed(call("{}"))
    ),
    "call.done-again": numbered(*CALL, *[arguments("done", "{}")] * 2, done(call("{}")), completed(call("{}"))),
    "call.arguments-not-done": numbered(*CALL, done(call("{}")), completed(call("{}"))),
}

MUST = {
    "stream.created-missing",
    "stream.terminal-missing",
    "sequence.gap",
    "sequence.repeated",
    "sequence.backwards",
    "terminal.status-differs",
    "terminal.output-differs",
    "item.index-gap",
    "item.added-again",
    "item.unopened",
    "item.closed",
    "item.unfinished",
    "item.differs",
    "item.kind",
    "part.index-gap",
    "part.added-again",
    "part.unopened",
    "part.closed",
    "part.differs",
    "text.differs",
    "call.closed",
}


def broken(events: list[Event]) -> list[str]:
    return [rule.removeprefix("openai-responses.") for rule, _ in breaches(PROVIDER, events)]


def test_every_rule_has_a_stream_that_breaks_it() -> None:
    assert set(CASES) == set(LEVELS)


@pytest.mark.parametrize("rule", sorted(CASES))
def test_the_stream_breaks_this_rule_and_no_other(rule: str) -> None:
    assert broken(CASES[rule]) == [rule]


def test_the_levels_are_these() -> None:
    assert {rule for rule, level in LEVELS.items() if level == "must"} == MUST
    assert {level for rule, level in LEVELS.items() if rule not in MUST} == {"may"}


def test_the_stream_that_the_others_are_made_from_breaks_nothing() -> None:
    assert broken(numbered(*GOOD)) == []


@pytest.mark.parametrize(
    ("rule", "events"),
    [
        # a call is answered under its call_id, so that must not change
        (
            "item.differs",
            numbered(*CALL, arguments("done", ""), done(call("", call_id="d")), completed(call("", call_id="d"))),
        ),
        ("item.differs", numbered(*CALL, arguments("done", "{}"), done(call("{} ")), completed(call("{} ")))),
        # an item told twice, the second time otherwise
        ("item.differs", numbered(*GOOD[:-1], done(message("b")), GOOD[-1])),
        # one item fewer at the end than were done
        ("terminal.output-differs", numbered(*GOOD[:-1], added(call(""), 1), done(call(""), 1), GOOD[-1])),
        # a delta of refusal for a part of text
        ("item.kind", numbered(*OPEN, say("refusal.delta", output_index=0, content_index=0, delta="n"), *GOOD[3:])),
        # a summary that loses its first part
        (
            "part.index-gap",
            numbered(
                CREATED,
                added({"type": "reasoning", "id": "r", "summary": []}),
                say("reasoning_summary_part.added", output_index=0, summary_index=1, part={"type": "summary_text"}),
                completed(),
            ),
        ),
    ],
)
def test_other_ways_to_break_a_rule(rule: str, events: list[Event]) -> None:
    assert rule in broken(events)


def test_ciphertext_may_differ_each_time_it_is_told() -> None:
    item = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "1"}
    told = [{**item, "encrypted_content": n} for n in "23"]
    events = numbered(CREATED, added(item), done(told[0]), completed(told[1]))
    assert broken(events) == []
    assert reduce(PROVIDER, events).choices[0].parts[0].signature == "3"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (numbered(*OPEN, say("output_text.delta", output_index=0, content_index=0), *GOOD[4:]), ["event.malformed"]),
        (numbered(*OPEN, say("output_text.done", output_index=0, content_index=0), *GOOD[5:]), ["event.malformed"]),
        (numbered(*OPEN[:2], {**part("added", ""), "part": 1}, *GOOD[3:]), ["event.malformed"]),
        (numbered(*SAID, {**part("done", ""), "part": []}, *GOOD[6:]), ["event.malformed", "part.differs"]),
        (
            numbered(*SHUT, {**done(NEW), "item": 1}, GOOD[-1]),
            ["event.malformed", "item.differs", "terminal.output-differs"],
        ),
        (numbered(CREATED, say("completed")), ["event.malformed"]),
        (numbered(*OPEN, {**text("delta", "a"), "content_index": True}, *GOOD[4:]), ["event.index-missing"]),
        (
            numbered(CREATED, added({"type": "message", "id": "m", "content": [1]}), *GOOD[2:]),
            ["item.added-with-content"],
        ),
        (numbered(*OPEN[:2], part("added", "a"), text("delta", ""), *GOOD[4:]), ["item.added-with-content"]),
        (numbered(*SAID, {**part("done", ""), "part": {"type": "refusal", "refusal": "a"}}, *GOOD[6:]), ["item.kind"]),
        (numbered(*OPEN, say("web_search_call.searching", output_index=0), *GOOD[3:]), ["item.kind"]),
    ],
)
def test_a_misshapen_event_is_read_for_what_it_still_says(events: list[Event], expected: list[str]) -> None:
    assert broken(events) == expected
    assert reduce(PROVIDER, events).choices[0].finish == "completed"


def test_of_an_answer_that_was_cut_the_open_item_may_or_may_not_be_told() -> None:
    shut = [*GOOD[:-1], added(call(""), 1)]
    for output in ([message("a")], [message("a"), call("")]):
        final = say("incomplete", response={"status": "incomplete", "output": output})
        assert broken(numbered(*shut, final)) == ["item.cut"]


# What servers really send


def test_events_of_unknown_types_are_ignored_but_their_numbers_count() -> None:
    news = say("keepalive", output_index=9, delta="x")
    lawful = numbered(*GOOD[:4], news, *GOOD[4:])
    assert broken(lawful) == []
    assert reduce(PROVIDER, lawful) == reduce(PROVIDER, numbered(*GOOD))
    assert broken([*lawful[:4], *lawful[5:]]) == ["sequence.gap"]
    plain = numbered(*GOOD)
    assert broken([*plain[:4], Event(news), *plain[4:]]) == []
    assert broken([Event(news), *plain]) == []


def test_a_call_whose_arguments_come_only_with_its_done_event() -> None:
    events = numbered(*CALL, arguments("done", '{"a":1}'), done(call('{"a":1}')), completed(call('{"a":1}')))
    assert broken(events) == []
    reducer = PROVIDER.reducer()
    for event in events[:3]:
        reducer.apply(event)
    assert reducer.released() == [ToolCall("c", "n", '{"a":1}')]


def test_a_gateway_that_sends_a_new_item_id_each_time() -> None:
    ids = ({**data, "item_id": f"x{n}"} if "item_id" in data else data for n, data in enumerate(GOOD))
    events = numbered(*(data for data in ids))
    assert set(broken(events)) == {"item.id-differs"}
    assert reduce(PROVIDER, events) == reduce(PROVIDER, numbered(*GOOD))


def test_a_server_without_numbers_and_with_few_indexes() -> None:
    counts = ("output_index", "content_index")
    events = [Event({k: v for k, v in data.items() if k not in counts or "done" not in data["type"]}) for data in GOOD]
    assert set(broken(events)) == {"sequence.missing", "event.index-missing"}
    assert broken(events).count("sequence.missing") == 1
    assert reduce(PROVIDER, events[:-1]).choices == (Choice((Text("a"),), None),)


def test_a_server_that_streams_everything_and_ends_with_an_empty_output() -> None:
    events = CASES["terminal.output-empty"]
    assert reduce(PROVIDER, events) == Reply((Choice((Text("a"),), "completed"),), "r")


def test_items_may_overlap_and_are_read_in_the_order_of_their_indexes() -> None:
    searches = [{"type": "web_search_call", "id": f"w{n}", "status": "completed"} for n in range(2)]
    events = numbered(
        CREATED,
        added(searches[0], 0),
        added(searches[1], 1),
        done(searches[1], 1),
        done(searches[0], 0),
        completed(*searches),
    )
    assert broken(events) == []
    assert reduce(PROVIDER, events[:-1]).choices[0].parts == reduce(PROVIDER, events).choices[0].parts


def test_deltas_of_an_earlier_part_go_where_they_belong() -> None:
    events = numbered(*OPEN, part("added", "", at=1), text("delta", "A"), text("delta", "B", at=1), text("delta", "X"))
    assert reduce(PROVIDER, events).choices[0].parts == (Text("AX"), Text("B"))


def test_an_item_that_never_was_done_keeps_its_place() -> None:
    events = numbered(
        CREATED,
        added(call("")),
        arguments("delta", "{}"),
        added(call("", call_id="d"), 1),
        done(call("[]", call_id="d"), 1),
    )
    assert reduce(PROVIDER, events).tool_calls == (ToolCall("c", "n", "{}"), ToolCall("d", "n", "[]"))


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter", "max_messages"])
def test_an_incomplete_response_is_a_complete_stream_that_says_why(reason: str) -> None:
    response = {"id": "r", "status": "incomplete", "incomplete_details": {"reason": reason}, "output": [message("a")]}
    events = numbered(*GOOD[:-1], say("incomplete", response=response))
    assert broken(events) == []
    assert reduce(PROVIDER, events).choices[0].finish == f"incomplete:{reason}"
    assert (f"incomplete:{reason}" in PROVIDER.cut_finishes) == (reason != "max_messages")


def test_a_payload_that_is_no_json_is_left_to_the_judge() -> None:
    walk = Walk(PROVIDER.machines)
    assert list(PROVIDER.steps(Event(Raw("[DONE]")), walk)) == []


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "x", [], {}, {"type": 1}])
def test_a_payload_that_is_no_event_is_skipped(value: Any) -> None:
    events = numbered(*GOOD)
    assert broken([*events[:3], Event(value), *events[3:]]) == ["event.foreign"]
    assert reduce(PROVIDER, [*events[:3], Event(value), *events[3:]]) == reduce(PROVIDER, events)


def test_a_long_text_is_kept_in_one_note() -> None:
    deltas = [text("delta", "x")] * 2_000
    events = numbered(*OPEN, *deltas, text("done", "x" * 2_000), part("done", "x" * 2_000))
    walk = Walk(PROVIDER.machines)
    sizes = []
    for n, event in enumerate(events):
        assert walk.step(n, PROVIDER.steps(event, walk)) == []
        sizes.append(len(walk.notes))
    assert len(set(sizes[3:])) == 1


def test_an_empty_item_only_takes_its_index() -> None:
    empty = {**added(NEW), "item": None}
    later = [{**data, "output_index": 1} if "output_index" in data else data for data in GOOD[1:]]
    events = numbered(CREATED, empty, *later)
    assert broken(events) == ["event.malformed"]
    assert reduce(PROVIDER, events[:-1]).choices[0].parts == (Text("a"),)
