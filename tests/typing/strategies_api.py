"""The public face of streamfuzz_strategies as its users' type checkers see it.  Checked, never run.

One function for each module; ``assert_type`` states what the checker must infer.
"""

from __future__ import annotations

from typing import Any, Literal, assert_type

from hypothesis.strategies import SearchStrategy

from streamfuzz_strategies import providers
from streamfuzz_strategies.draw import encode, fragmented, mutated, replies, streams, wires
from streamfuzz_strategies.judge import Judgement, Reading, judge
from streamfuzz_strategies.providers import Provider
from streamfuzz_strategies.reply import (
    Choice,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Reply,
    Text,
    ToolCall,
    Usage,
    choice_view,
    merge_text,
    usage_of,
    view,
)
from streamfuzz_strategies.rules import END, Breach, Break, Cell, Machine, Rule, Step, Walk
from streamfuzz_strategies.stream import Event, Frame, Raw, Stream, parse_json, payloads
from streamfuzz_strategies.style import PLAIN, Eol, Style


def reply() -> Reply:
    call = ToolCall(id=None, name="look_up", arguments="{}")
    parts: tuple[Part, ...] = (
        Text("hi"),
        Reasoning("hm", signature="s"),
        Refusal("no"),
        Opaque("x", "{}"),
        call,
    )
    reply = Reply((Choice(parts, finish="stop"),), id="r1", usage=Usage(input=1))
    assert_type(reply.choices[0].finish, str | None)
    assert_type(reply.tool_calls, tuple[ToolCall, ...])
    assert_type(reply.usage, Usage | None)
    assert_type(view(reply), dict[str, Any])
    assert_type(choice_view(reply.choices[0]), dict[str, Any])
    assert_type(merge_text(parts), tuple[Part, ...])
    assert_type(usage_of({"in": 1}, "in", "out"), Usage | None)
    return reply


def part_of_each_kind(part: Part) -> str:
    match part:
        case Text(text) | Reasoning(text) | Refusal(text):
            return text
        case ToolCall(_, name, arguments):
            return name + arguments
        case Opaque(kind, data):
            return kind + data


def stream() -> Stream:
    events = (Event({"a": 1}, name="message"), Event(Raw("[DONE]")))
    drawn = Stream("openai-chat", events, reply(), PLAIN)
    assert_type(drawn.events, tuple[Event, ...])
    assert_type(drawn.reply, Reply | None)
    assert_type(payloads(drawn.events, drawn.style), list[tuple[str, str | None]])
    assert_type(Frame("x").retry, int | None)
    assert_type(parse_json("1"), Any)
    return drawn


def style() -> Style:
    ends: tuple[Eol, ...] = ("\r", "\r\n")
    style = Style(eols=ends, bom=True, inserts=((0, ": comment"),), sort_keys=False)
    assert_type(style.spell({"a": 1}), str)
    assert_type(style.eols, tuple[Eol, ...])
    return style


def rules() -> Walk:
    rule = Rule("demo.finish.missing", "the stream never finished", "https://example.com", "may")
    assert_type(rule.level, Literal["must", "may", "none"])
    machine = Machine("stream", "open", {"open": {"stop": "done", END: Break(rule, "open")}, "done": {}}, always=True)
    assert_type(machine.cell("open", END), Cell)
    walk = Walk({machine.name: machine})
    assert_type(walk.step(0, [Step("stream", "stop")]), list[Breach])
    assert_type(walk.end(), list[Breach])
    return walk.copy()


def draw() -> SearchStrategy[list[bytes]]:
    tools = {"now": {"type": "object"}}
    assert_type(replies("anthropic", tools=tools, alphabet="ab", max_parts=2), SearchStrategy[Reply])
    assert_type(streams("ollama", styled=False), SearchStrategy[Stream])
    assert_type(wires("sse"), SearchStrategy[bytes])
    assert_type(mutated("json"), SearchStrategy[bytes])
    assert_type(encode(stream()), bytes)
    return fragmented("openai-responses")


def worth(data: bytes) -> bool:
    assert_type(providers.NAMES, tuple[str, ...])
    assert_type(providers.get("sse"), Provider)
    judgement = judge(providers.get("sse"), data, "reset")
    assert_type(judgement, Judgement)
    assert_type(judgement.accepted, tuple[Reply, ...])
    assert_type(judgement.breaches, tuple[Breach, ...])
    assert_type(judgement.level, Literal["must", "may", "none"])
    assert_type(Reading(providers.get("sse"), data).upto(3), Judgement)
    return judgement.complete
