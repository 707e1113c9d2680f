"""Each rule of chat completions has a stream that breaks it alone, and each tolerant reading an example."""

import pytest

from streamfuzz_strategies.judge import Reading
from streamfuzz_strategies.providers import get
from streamfuzz_strategies.providers.base import reduce
from streamfuzz_strategies.reply import Choice, Reasoning, Refusal, Reply, Text, ToolCall, Usage
from streamfuzz_strategies.rules import Walk
from streamfuzz_strategies.stream import Event, Raw

from .walking import breaches

CHAT = get("openai-chat")
DONE = Event(Raw("[DONE]"))


def chunk(*choices, name=None, **members):
    """A chunk of those choices; ``name`` is an SSE event name."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return Event({**head, "choices": list(choices), **members}, name)


def choice(delta=None, finish=None, index=0):
    return {"index": index, "delta": delta or {}, "finish_reason": finish}


def call(arguments="", index=0, **members):
    """A choice with one fragment of a tool call; ``id`` and ``name`` as given."""
    function = {"arguments": arguments}
    if "name" in members:
        function["name"] = members.pop("name")
    return choice({"tool_calls": [{"index": index, "function": function, **members}]})


def says(text, finish=None, index=0):
    return chunk(choice({"content": text}, finish, index))


STOP = chunk(choice(finish="stop"))
CALLS = chunk(choice(finish="tool_calls"))

BREAKS = {
    "openai-chat.stream.empty": ("must", [DONE]),
    "openai-chat.stream.no-done": ("may", [says("a"), STOP]),
    "openai-chat.stream.late": ("may", [says("a"), STOP, DONE, says("b")]),
    "openai-chat.stream.foreign": ("may", [Event({"tool": "t"}), says("a"), STOP, DONE]),
    "openai-chat.stream.named": ("may", [says("a"), Event({"tool": "t"}, "x.tool.progress"), STOP, DONE]),
    "openai-chat.stream.spliced": ("may", [says("a"), chunk(choice({"content": "b"}), id="d"), STOP, DONE]),
    "openai-chat.chunk.object": ("may", [says("a"), chunk(choice(finish="stop"), object="chat.completion.done"), DONE]),
    "openai-chat.chunk.no-choices": ("may", [chunk(choice({"content": "a"}, "stop")), Event({"id": "c"}), DONE]),
    "openai-chat.chunk.mistyped": ("may", [chunk(choice({"content": "a", "refusal": False})), STOP, DONE]),
    "openai-chat.usage.early": ("may", [says("a"), chunk(usage={"prompt_tokens": 1}), STOP, DONE]),
    "openai-chat.choice.unfinished": ("must", [says("a"), DONE]),
    "openai-chat.choice.missing": ("must", [says("a", "stop", index=1), DONE]),
    "openai-chat.choice.continued": ("must", [says("a"), STOP, says("b"), DONE]),
    "openai-chat.choice.echoed": ("may", [says("a"), STOP, chunk(choice({"reasoning": "b"})), DONE]),
    "openai-chat.choice.no-index": ("may", [chunk({"delta": {"content": "a"}, "finish_reason": "stop"}), DONE]),
    "openai-chat.choice.no-delta": ("may", [says("a"), chunk({"index": 0, "finish_reason": "stop"}), DONE]),
    "openai-chat.finish.repeated": ("may", [says("a"), STOP, STOP, DONE]),
    "openai-chat.finish.conflict": ("may", [chunk(call("{}", id="i", name="f")), CALLS, STOP, DONE]),
    "openai-chat.finish.empty": ("may", [says("a", ""), STOP, DONE]),
    "openai-chat.finish.unknown": ("may", [says("a"), says("b", "eos"), DONE]),
    "openai-chat.tool.nameless": ("must", [chunk(call("{}", id="i")), CALLS, DONE]),
    "openai-chat.tool.nameless-cut": ("may", [chunk(call("{", id="i")), chunk(choice(finish="length")), DONE]),
    "openai-chat.tool.no-id": ("may", [chunk(call("{}", name="f")), CALLS, DONE]),
    "openai-chat.tool.no-index": ("may", [chunk(call("{}", index=None, id="i", name="f")), CALLS, DONE]),
    "openai-chat.tool.gap": ("may", [chunk(call("{}", index=1, id="i", name="f")), CALLS, DONE]),
    "openai-chat.tool.collision": (
        "may",
        [chunk(call("{}", id="i", name="f")), chunk(call("{}", id="j", name="g")), CALLS, DONE],
    ),
    "openai-chat.tool.renamed": (
        "may",
        [chunk(call("{", id="i", name="f")), chunk(call("}", name="g")), CALLS, DONE],
    ),
    "openai-chat.tool.not-json": ("may", [chunk(call('{"a', id="i", name="f")), CALLS, DONE]),
}


@pytest.mark.parametrize("rule", sorted(BREAKS))
def test_a_stream_breaks_this_rule_alone(rule):
    level, events = BREAKS[rule]
    assert {found for found, _ in breaches(CHAT, events)} == {rule}
    assert {r.level for r in CHAT.rules if r.id == rule} == {level}


def test_every_rule_has_such_a_stream():
    assert {rule.id for rule in CHAT.rules} == set(BREAKS)


def test_every_rule_says_what_happened_and_where_that_is_written():
    for rule in CHAT.rules:
        assert rule.source.startswith("https://")
        assert rule.sentence[0].islower() or rule.sentence.startswith("[")
        assert not rule.sentence.endswith(".")


LAWFUL = {
    "empty deltas and a repeated role after the finish": [
        says("a"),
        STOP,
        chunk(choice()),
        chunk(choice({"role": "assistant", "content": ""})),
        DONE,
    ],
    "Azure's verdict after the finish": [
        says("a"),
        STOP,
        chunk({**choice(), "content_filter_offsets": {}}, id="", object="", model=""),
        DONE,
    ],
    "expiry of audio after the finish": [
        says("a"),
        STOP,
        chunk({"index": 0, "delta": {"audio": {"expires_at": 9}}}),
        DONE,
    ],
    "usage on every chunk and on the finish": [
        chunk(choice({"content": "a"}), usage={"prompt_tokens": 1, "completion_tokens": 1}),
        chunk(choice(finish="stop"), usage={"prompt_tokens": 1, "completion_tokens": 2}),
        DONE,
    ],
    "finish_reason left out": [chunk({"index": 0, "delta": {"content": "a"}}), STOP, DONE],
    "text on the finish chunk": [says("a", "stop"), DONE],
    "no choices": [Event({"id": "c", "choices": []}), says("a", "stop"), DONE],
    "scalars of a call said again": [
        chunk(call("{", id="i", name="f", type="function")),
        chunk(call("}", id="i", name="f", type="function")),
        chunk(call("", id="i", name="f")),
        CALLS,
        DONE,
    ],
    "empty scalars on a call's continuation": [
        chunk(call("{", id="i", name="f")),
        chunk(call("}", id="", name="")),
        CALLS,
        DONE,
    ],
    "a call without arguments": [chunk(call(id="i", name="f")), CALLS, DONE],
    "arguments cut off by the length": [
        chunk(call('{"a', id="i", name="f")),
        chunk(choice(finish="length")),
        DONE,
    ],
    "a moderation chunk": [says("a", "stop"), chunk(moderation={}), DONE],
    "the name message, which every unnamed event has": [chunk(choice({"content": "a"}, "stop"), name="message"), DONE],
}


@pytest.mark.parametrize("what", sorted(LAWFUL))
def test_this_breaks_nothing(what):
    assert breaches(CHAT, LAWFUL[what]) == []


def test_after_an_error_nothing_else_is_broken():
    failing = [says("a", index=1), chunk(call("{")), Event({"error": {"message": "boom"}}), says("b"), DONE]
    assert breaches(CHAT, failing) == []
    assert reduce(CHAT, failing) == reduce(CHAT, failing[:2])


ERRORS = [
    ({"error": {"message": "boom", "type": "server_error"}}, "boom"),
    ({"error": {"message": "", "type": "server_error"}}, "server_error"),
    ({"error": {"message": None, "code": "overloaded"}}, "overloaded"),
    ({"error": "boom", "error_type": "overloaded"}, "boom"),
    ({"choices": [], "error": {"message": "boom"}}, "boom"),
    ({"error": {"code": 502}}, ""),
    ({"error": True}, ""),
    ({"error": None}, None),
    ({"error": {}}, None),
    ({"message": "boom"}, None),
    (["error"], None),
    (Raw("error"), None),
]


@pytest.mark.parametrize(("data", "message"), ERRORS)
def test_an_error_is_an_object_with_a_truthy_error(data, message):
    assert CHAT.error(Event(data)) == message


F = ToolCall("i", "f", "{}")
G = ToolCall("j", "g", "[]")
READINGS = {
    "parts have a fixed order": (
        [
            chunk(choice({"refusal": "no", "content": "a"})),
            chunk(call("{}", id="i", name="f")),
            chunk(choice({"reasoning": "hm"})),
        ],
        (Reasoning("hm"), Text("a"), Refusal("no"), F),
    ),
    "thinking under both names is said once": (
        [chunk(choice({"reasoning": "hm", "reasoning_content": "hm"}))],
        (Reasoning("hm"),),
    ),
    "content as typed parts": (
        [
            chunk(choice({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]})),
            chunk(choice({"content": [{"type": "text", "text": "a"}, {"type": "image"}, 5]})),
        ],
        (Reasoning("hm"), Text("a")),
    ),
    "calls by index, not by arrival": (
        [chunk(call("[]", index=1, id="j", name="g")), chunk(call("{}", index=0, id="i", name="f"))],
        (F, G),
    ),
    "interleaved calls": (
        [
            chunk(call("{", index=0, id="i", name="f")),
            chunk(call("[", index=1, id="j", name="g")),
            chunk(call("}", index=0)),
            chunk(call("]", index=1)),
        ],
        (F, G),
    ),
    "one index for all, told apart by id": (
        [
            chunk(call("{", id="i", name="f")),
            chunk(call("[", id="j", name="g")),
            chunk(call("}", id="i")),
            chunk(call("]")),
        ],
        (F, G),
    ),
    "no index, told apart by id": (
        [
            chunk(call("{}", index=None, id="i", name="f")),
            chunk(call("[", index=None, id="j", name="g")),
            chunk(call("]", index=None)),
        ],
        (F, G),
    ),
    "an id that comes late": (
        [chunk(call("{", name="f")), chunk(call("}", id="i"))],
        (F,),
    ),
    "scalars of a call are set once": (
        [chunk(call("{", id="i", name="f")), chunk(call("}", id="i", name="f"))],
        (F,),
    ),
    "a function call has no id": (
        [
            chunk(choice({"function_call": {"name": "f", "arguments": "{"}})),
            chunk(choice({"function_call": {"arguments": "}"}})),
        ],
        (ToolCall(None, "f", "{}"),),
    ),
    "a call without an index beside a function call": (
        [
            chunk(choice({"function_call": {"name": "h", "arguments": ""}})),
            chunk(call("{}", index=None, name="f")),
        ],
        (ToolCall(None, "h", ""), ToolCall(None, "f", "{}")),
    ),
    "null, missing and empty add nothing": (
        [says("a"), says(None), says(""), chunk(choice({"tool_calls": None, "refusal": None})), says("b")],
        (Text("ab"),),
    ),
    "padding is no text": ([chunk(choice({"content": "a"}), obfuscation="xyz")], (Text("a"),)),
    "nothing counts after [DONE]": ([says("a"), DONE, says("b")], (Text("a"),)),
}


@pytest.mark.parametrize("what", sorted(READINGS))
def test_reading(what):
    events, parts = READINGS[what]
    assert reduce(CHAT, events) == Reply((Choice(parts),), "c", "m")


def test_equal_neighbours_are_both_kept():
    assert reduce(CHAT, [says("hi"), says("hi")]).choices[0].parts == (Text("hihi"),)


def test_the_last_finish_and_the_last_usage_hold():
    counts = {"prompt_tokens": 1, "completion_tokens": 2}
    again = chunk(choice(finish="tool_calls"), usage={"prompt_tokens": 1, "completion_tokens": 5})
    events = [chunk(choice(finish="stop"), usage=counts), again, chunk(usage=None)]
    assert reduce(CHAT, events) == Reply((Choice((), "tool_calls"),), "c", "m", Usage(1, 5))


def test_azures_first_chunk_does_not_set_the_id():
    first = Event({"choices": [], "id": "", "model": "", "object": "", "prompt_filter_results": []})
    assert reduce(CHAT, [first, says("a")]) == Reply((Choice((Text("a"),)),), "c", "m")


def test_choices_do_not_leak_into_each_other():
    events = [says("p"), says("q", index=1), says("p"), says("q", index=1)]
    assert reduce(CHAT, events).choices == (Choice((Text("pp"),)), Choice((Text("qq"),)))


def test_a_choice_that_never_came_is_empty_and_its_neighbours_keep_their_place():
    assert reduce(CHAT, [says("a", index=2)]).choices == (Choice(), Choice(), Choice((Text("a"),)))


def test_an_absurd_index_does_not_make_an_absurd_reply():
    events = [says("a", index=10**9), says("b", index=0)]
    assert reduce(CHAT, events).choices == (Choice((Text("b"),)), Choice((Text("a"),)))
    walk = Walk(CHAT.machines)
    walk.step(0, CHAT.steps(events[0], walk))
    assert len(walk.states) < 200


NO_CHOICES = ("openai-chat.chunk.no-choices", 0)


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({}, [NO_CHOICES]),
        ({"choices": None}, [NO_CHOICES]),
        ({"choices": {}}, [NO_CHOICES, ("openai-chat.chunk.mistyped", 0)]),
        ({"usage": {"prompt_tokens": 1}}, [NO_CHOICES]),
        ({"error": None}, [NO_CHOICES]),
    ],
)
def test_choices_that_are_no_list_are_odd_and_the_rest_of_the_chunk_counts(members, found):
    events = [Event({"id": "c", "model": "m", **members}), says("a", "stop"), DONE]
    assert breaches(CHAT, events) == found
    judgement = Reading.of_events(CHAT, events).judgement
    usage = Usage(1, None) if "usage" in members else None
    assert judgement.accepted == (Reply((Choice((Text("a"),), "stop"),), "c", "m", usage),)
    assert judgement.may_refuse


def test_a_chunk_of_another_completion_may_be_taken_left_out_or_refused():
    events = [says("a"), chunk(choice({"content": "b"}), id="d"), STOP, DONE]
    judgement = Reading.of_events(CHAT, events).judgement
    assert [reply.choices[0].parts for reply in judgement.accepted] == [(Text("ab"),), (Text("a"),)]
    assert judgement.level == "may"


def test_one_unfinished_choice_of_two_is_enough():
    events = [says("a", "stop"), says("b", index=1), DONE]
    assert breaches(CHAT, events) == [("openai-chat.choice.unfinished", -1)]


def test_a_breach_is_reported_at_its_event():
    events = [says("a"), STOP, says("b"), DONE]
    assert breaches(CHAT, events) == [("openai-chat.choice.continued", 2)]


def test_arguments_are_weighed_at_the_first_finish_only():
    events = [chunk(call("{", id="i", name="f")), CALLS, CALLS, DONE]
    assert breaches(CHAT, events) == [("openai-chat.tool.not-json", 1), ("openai-chat.finish.repeated", 2)]


def test_text_after_the_finish_counts_beside_a_call_that_says_nothing_new():
    both = call("", id="i", name="f")
    both["delta"]["content"] = "a"
    events = [chunk(call("{}", id="i", name="f")), CALLS, chunk(both), DONE]
    assert breaches(CHAT, events) == [("openai-chat.choice.continued", 2)]


def test_a_copied_walk_shares_nothing():
    walk = Walk(CHAT.machines)
    walk.step(0, CHAT.steps(chunk(call("{", id="i", name="f")), walk))
    other = walk.copy()
    other.step(1, CHAT.steps(chunk(call("]", id="i", name="f")), other))
    assert walk.step(1, CHAT.steps(chunk(call("}")), walk)) == []
    assert walk.step(2, CHAT.steps(CALLS, walk)) == []


def test_many_pieces_of_one_call_are_joined():
    events = [chunk(call('"', id="i", name="f")), *[chunk(call("x"))] * 5_000, chunk(call('"')), CALLS, DONE]
    assert breaches(CHAT, events) == []
    assert reduce(CHAT, events).tool_calls == (ToolCall("i", "f", '"' + "x" * 5_000 + '"'),)


KINDS = [
    (DONE, "done"),
    (Event(Raw("{")), "unknown"),
    (Event(None), "unknown"),
    (Event({}), "unknown"),
    (Event({"error": "boom"}), "error"),
    (chunk(), "chunk"),
    (chunk(usage={"prompt_tokens": 1}), "usage"),
    (chunk(prompt_filter_results=[1]), "prompt_filter"),
    (chunk(choice(), object=""), "content_filter"),
    (chunk(choice({"role": "assistant", "content": ""})), "chunk:role"),
    (says("a"), "chunk:content"),
    (says("a", "stop"), "chunk:finish"),
    (chunk(choice({"refusal": "a"})), "chunk:refusal"),
    (chunk(choice({"reasoning": "a"})), "chunk:reasoning"),
    (chunk(call()), "chunk:tool_calls"),
    (chunk(choice({"function_call": {}})), "chunk:function_call"),
    (chunk(choice()), "chunk:empty"),
    (chunk({"index": 0, "delta": None}), "chunk:empty"),
]


@pytest.mark.parametrize(("event", "kind"), KINDS)
def test_kind(event, kind):
    assert CHAT.kind(event) == kind
