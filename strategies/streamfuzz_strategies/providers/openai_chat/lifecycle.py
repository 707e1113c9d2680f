"""What a chat completion stream must and must not do: its rules, its tables, and how events move them.

A stream is complete when every choice has a finish reason; ``[DONE]`` ends it, but servers exist that never
send it.  Choices live independently and may be interleaved, and so may the calls inside a choice.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import cast

from ...reply import Json
from ...rules import END, Break, Machine, Reading, Rule, Step, Walk
from ...stream import Event, MalformedJson, Raw, parse_json
from .shape import (
    CUT_FINISHES,
    FINISHES,
    LEGACY_SLOT,
    MARKS,
    MAX_CHOICES,
    OBJECT,
    Call,
    Entry,
    Fragment,
    absorb,
    entries,
    error,
    is_done,
    joined,
    mistyped,
    string,
)

_API = "https://platform.openai.com/docs/api-reference/chat-streaming"
_AZURE = "https://learn.microsoft.com/azure/foundry/openai/concepts/content-streaming"
_SSE = "https://html.spec.whatwg.org/multipage/server-sent-events.html#the-messageevent-interface"

EMPTY = Rule("openai-chat.stream.empty", "the stream ended before any choice of an answer had appeared", _API)
NO_DONE = Rule(
    "openai-chat.stream.no-done", "every choice had finished but the stream ended without [DONE]", _API, "may"
)
LATE = Rule("openai-chat.stream.late", "the stream went on after [DONE]", _API, "may")
FOREIGN = Rule("openai-chat.stream.foreign", "a payload was JSON but nothing that this protocol sends", _API, "may")
NAMED = Rule("openai-chat.stream.named", "an event had an SSE event name, which this protocol never gives", _SSE, "may")
SPLICED = Rule("openai-chat.stream.spliced", "the completion's id changed in the middle of the stream", _API, "may")
OTHER_OBJECT = Rule(
    "openai-chat.chunk.object",
    'a chunk that carried a part of the answer was not marked "chat.completion.chunk"',
    _API,
    "may",
)
NO_CHOICES = Rule("openai-chat.chunk.no-choices", "a chunk had no list of choices", _API, "may")
MISTYPED = Rule(
    "openai-chat.chunk.mistyped",
    "a member of a chunk had another type than the protocol gives it",
    _API,
    "may",
)
UNFINISHED = Rule("openai-chat.choice.unfinished", "the stream ended before a choice had got its finish reason", _API)
MISSING = Rule("openai-chat.choice.missing", "the stream ended without a choice below one that had appeared", _API)
CONTINUED = Rule("openai-chat.choice.continued", "a choice was given more of its answer after it had finished", _API)
ECHOED = Rule(
    "openai-chat.choice.echoed",
    "a choice came again after it had finished, with thinking or with a piece of a call that said nothing new",
    _API,
    "may",
)
USAGE_EARLY = Rule(
    "openai-chat.usage.early", "a choice went on after the chunk that had nothing but the usage", _API, "may"
)
NO_INDEX = Rule("openai-chat.choice.no-index", "a choice did not say its index", _API, "may")
NO_DELTA = Rule("openai-chat.choice.no-delta", "a choice came without a delta", _AZURE, "may")
FINISH_AGAIN = Rule("openai-chat.finish.repeated", "a choice was given the same finish reason once more", _API, "may")
FINISH_CONFLICT = Rule(
    "openai-chat.finish.conflict", "a choice that had finished was given another finish reason", _API, "may"
)
FINISH_EMPTY = Rule(
    "openai-chat.finish.empty", "a finish reason was the empty string where null was meant", _API, "may"
)
FINISH_UNKNOWN = Rule(
    "openai-chat.finish.unknown", "a finish reason was none of those that the protocol lists", _API, "may"
)
NAMELESS = Rule("openai-chat.tool.nameless", "the stream ended before a tool call had got its name", _API)
NAMELESS_CUT = Rule(
    "openai-chat.tool.nameless-cut", "a choice was cut off before its tool call had got its name", _API, "may"
)
NO_ID = Rule("openai-chat.tool.no-id", "the stream ended before a tool call had got its id", _API, "may")
TOOL_NO_INDEX = Rule("openai-chat.tool.no-index", "a tool call's piece did not say its index", _API, "may")
TOOL_GAP = Rule("openai-chat.tool.gap", "a tool call began while the index below had not been seen", _API, "may")
COLLISION = Rule(
    "openai-chat.tool.collision", "a tool call with a new id began at the index of another one", _API, "may"
)
RENAMED = Rule("openai-chat.tool.renamed", "a tool call was given a second, different name", _API, "may")
NOT_JSON = Rule(
    "openai-chat.tool.not-json", "a choice finished while the arguments of a call were not JSON", _API, "may"
)

EXTRA_RULES = (
    NAMED,
    SPLICED,
    OTHER_OBJECT,
    NO_CHOICES,
    MISTYPED,
    USAGE_EARLY,
    NO_INDEX,
    NO_DELTA,
    FINISH_EMPTY,
    FINISH_UNKNOWN,
    TOOL_NO_INDEX,
    TOOL_GAP,
    COLLISION,
    RENAMED,
    NOT_JSON,
)
"""Rules that an event breaks by itself or against what an earlier one said, so that no table holds them."""

# ``finish`` is a choice's first finish reason.  One more of the same comes from gateways that put it on the
# usage chunk too; a different one ("tool_calls", then "stop") from bridges that end a turn twice.  Readers
# that keep the first and readers that keep the last both exist, and nothing says which is right.
_STOPPED = {"*": "failed"}
MACHINES = {
    machine.name: machine
    for machine in (
        Machine(
            "stream",
            "empty",
            {
                "empty": {
                    "choice": "open",
                    "foreign": Break(FOREIGN, "empty", "skip"),
                    "done": Break(EMPTY, "done"),
                    "error": "failed",
                    END: Break(EMPTY, "empty"),
                },
                "open": {
                    "foreign": Break(FOREIGN, "open", "skip"),
                    "done": "done",
                    "error": "failed",
                    END: Break(NO_DONE, "open"),
                },
                "done": {"*": Break(LATE, "done", "skip"), END: "done"},
                "failed": _STOPPED,
            },
            always=True,
        ),
        Machine(
            "choice",
            "absent",
            {
                "absent": {"expected": "expected", "seen": "open", "adds": "open", "echoes": "open"},
                "expected": {
                    "seen": "open",
                    "adds": "open",
                    "echoes": "open",
                    "error": "failed",
                    END: Break(MISSING, "expected"),
                },
                "open": {"finish": "finished", "error": "failed", END: Break(UNFINISHED, "open")},
                "finished": {
                    "adds": Break(CONTINUED, "finished"),
                    "echoes": Break(ECHOED, "finished", "either"),
                    "finish": Break(FINISH_AGAIN, "finished"),
                    "conflict": Break(FINISH_CONFLICT, "finished", "either"),
                    "error": "failed",
                },
                "failed": _STOPPED,
            },
        ),
        Machine(
            "call-name",
            "absent",
            {
                "absent": {"piece": "awaited", "name": "known"},
                "awaited": {
                    "name": "known",
                    "cut": Break(NAMELESS_CUT, "known"),
                    "error": "failed",
                    END: Break(NAMELESS, "awaited"),
                },
                "known": {"error": "failed"},
                "failed": _STOPPED,
            },
        ),
        Machine(
            "call-id",
            "absent",
            {
                "absent": {"piece": "awaited", "id": "known"},
                "awaited": {"id": "known", "error": "failed", END: Break(NO_ID, "awaited")},
                "known": {"error": "failed"},
                "failed": _STOPPED,
            },
        ),
    )
}


def steps(event: Event, walk: Walk) -> Iterator[Step]:
    """What an event does to the tables.  Total: any JSON value and any raw text will do."""
    if walk.state("stream") in ("done", "failed"):
        yield Step("stream", "late")
        return
    data = event.data
    if isinstance(data, Raw):
        if is_done(event):
            yield Step("stream", "done")
        return
    if error(event) is not None:
        for machine, key in list(walk.states):
            yield Step(machine, "error", key)
        return
    named = event.name not in (None, "message")
    if named:
        yield _alone("stream", None, NAMED, "either")
    if not isinstance(data, dict) or not MARKS.intersection(data):
        if not named:
            yield Step("stream", "foreign")
        return
    yield from _chunk(data, walk)


def _alone(machine: str, key: object, rule: Rule, reading: Reading = "apply") -> Step:
    """A step that breaks a rule and leaves the machine where it stands."""
    return Step(machine, "", key, Break(rule, "", reading))


def _chunk(data: dict[str, Json], walk: Walk) -> Iterator[Step]:
    name = string(data.get("id"))
    if name and walk.notes.setdefault(("id", None), name) != name:
        yield _alone("stream", None, SPLICED, "either")
    if not isinstance(data.get("choices"), list):
        yield _alone("stream", None, NO_CHOICES)
    if mistyped(data):
        yield _alone("stream", None, MISTYPED)
    found = list(entries(data))
    if data.get("object") != OBJECT and any(e.adds or e.finish for e in found):
        yield _alone("stream", None, OTHER_OBJECT, "either")
    if data.get("choices") == [] and data.get("usage"):
        walk.notes["usage", None] = True
    elif ("usage", None) in walk.notes and any(e.adds or e.finish for e in found):
        yield _alone("stream", None, USAGE_EARLY)
    yield Step("stream", "choice" if found else "chunk")
    for entry in found:
        yield from _choice(entry, walk)


def _choice(entry: Entry, walk: Walk) -> Iterator[Step]:
    index = entry.number
    if ("choice", index) not in walk.states:
        for lower in range(min(index, MAX_CHOICES)):
            if ("choice", lower) not in walk.states:
                yield Step("choice", "expected", lower)
    # Calls first: whether a piece continues a call or only repeats its id decides whether it adds anything.
    added = bool(entry.text or entry.refusal)
    for fragment in entry.fragments:
        added = (yield from _fragment(index, fragment, walk)) or added
    # Thinking is no member of the protocol's own, so a reader need not know that there is any.
    echoes = bool(entry.reasoning or entry.fragments)
    yield Step("choice", "adds" if added else "echoes" if echoes else "seen", index)
    if not entry.indexed:
        yield _alone("choice", index, NO_INDEX)
    if entry.choice.get("delta") is None:
        yield _alone("choice", index, NO_DELTA)
    if entry.choice.get("finish_reason") == "":
        yield _alone("choice", index, FINISH_EMPTY)
    if entry.finish:
        yield from _finish(index, entry.finish, walk)


def _calls(walk: Walk, index: int) -> tuple[Call, ...]:
    return cast("tuple[Call, ...]", walk.notes.get(("calls", index), ()))


def _fragment(index: int, fragment: Fragment, walk: Walk) -> Generator[Step, None, bool]:
    """The steps of one piece of a call; returns whether it says anything that was not known."""
    before = _calls(walk, index)
    calls = list(before)
    position = absorb(calls, fragment)
    walk.notes["calls", index] = tuple(calls)
    key = (index, position)
    yield Step("call-name", "name" if fragment.name else "piece", key)
    if fragment.slot != LEGACY_SLOT:
        yield Step("call-id", "id" if fragment.id else "piece", key)
    if fragment.slot is None:
        yield _alone("call-name", key, TOOL_NO_INDEX)
    if position == len(before):
        slots = {call.slot for call in before}
        if fragment.slot in slots:
            yield _alone("call-name", key, COLLISION)
        elif fragment.slot is not None and fragment.slot > 0 and fragment.slot - 1 not in slots:
            yield _alone("call-name", key, TOOL_GAP)
        return True
    known = before[position]
    if fragment.name and known.name not in ("", fragment.name):
        yield _alone("call-name", key, RENAMED)
    return bool(fragment.arguments or (fragment.name and not known.name) or (fragment.id and not known.id))


def _finish(index: int, finish: str, walk: Walk) -> Iterator[Step]:
    if finish not in FINISHES:
        yield _alone("choice", index, FINISH_UNKNOWN)
    first = walk.notes.get(("finish", index))
    yield Step("choice", "finish" if first in (None, finish) else "conflict", index)
    if first is not None:
        return
    walk.notes["finish", index] = finish
    for position, call in enumerate(_calls(walk, index)):
        if finish in CUT_FINISHES:
            yield Step("call-name", "cut", (index, position))
        elif not _is_json(joined(call.arguments)):
            yield _alone("choice", index, NOT_JSON)


def _is_json(arguments: str) -> bool:
    """Whether arguments are JSON; none at all are how a call without arguments may be streamed."""
    if not arguments:
        return True
    try:
        parse_json(arguments)
    except MalformedJson:
        return False
    return True
