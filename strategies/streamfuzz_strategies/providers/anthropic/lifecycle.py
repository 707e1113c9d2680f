"""The lifecycle of a Messages stream: its rules, its tables, and what each event does to them.

::

    stream   = message_start block* message_delta+ message_stop
             | message_start[content and stop_reason already set] message_stop
    block(i) = content_block_start(i) content_block_delta(i)* content_block_stop(i)     i = 0, 1, 2, ...

Blocks follow each other, never overlapping; pings and events of unknown types may stand anywhere.  The proof
of the end is ``message_stop``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...reply import Json
from ...rules import END, Break, Cell, Machine, Reading, Rule, Step, Walk
from ...stream import Event
from .protocol import (
    CUT_REASONS,
    DELTA_MEMBERS,
    EVENT_TYPES,
    STOP_REASONS,
    STREAMING,
    TAKES,
    THINKING,
    TOOL_USE,
    error,
    is_index,
    json_object,
    type_of,
)

UNFINISHED = Rule(
    "anthropic.stream.unfinished",
    "the stream ended before the message had a stop reason",
    STREAMING,
)
UNSTOPPED = Rule(
    # Readers disagree about this one, and a retry of a turn that was whole can repeat it for ever.
    "anthropic.stream.unstopped",
    "the stream ended after its stop reason but without message_stop",
    STREAMING,
    "may",
)
BEFORE_START = Rule("anthropic.stream.before-start", "an event came before message_start", STREAMING)
AFTER_STOP = Rule("anthropic.stream.after-stop", "an event came after message_stop", STREAMING, "may")
LATE_DELTA = Rule(
    # It brings no content; readers that stop at message_stop and readers that go on to the end of the stream
    # are both right.
    "anthropic.message.late-delta",
    "a message_delta came only after message_stop",
    STREAMING,
    "may",
)
RESTARTED = Rule(
    # Gateways that retry the first read send it twice.
    "anthropic.message.restarted",
    "message_start was repeated with the same id",
    STREAMING,
    "may",
)
SPLICED = Rule("anthropic.message.spliced", "a message_start with another id came in mid-message", STREAMING)
NO_REASON = Rule(
    # Proxies that translate from other formats drop message_delta.
    "anthropic.message.no-reason",
    "message_stop came although no stop reason had been given",
    STREAMING,
    "may",
)
REASON_CHANGED = Rule(
    "anthropic.message.reason-changed",
    "a later message_delta gave another stop reason",
    STOP_REASONS,
    "may",
)
REASON_WITHDRAWN = Rule(
    "anthropic.message.reason-withdrawn",
    "a later message_delta had no stop reason after one had been given",
    STOP_REASONS,
    "may",
)
AFTER_REASON = Rule("anthropic.message.after-reason", "content came after the stop reason", STREAMING)
OVERLAP = Rule("anthropic.block.overlap", "a block was started while another was still open", STREAMING)
GAP = Rule("anthropic.block.gap", "a block's index skipped one", STREAMING)
REOPENED = Rule("anthropic.block.reopened", "a block was started a second time", STREAMING)
UNOPENED = Rule(
    "anthropic.block.unopened",
    "a delta or stop named a block that had never been started",
    STREAMING,
)
CLOSED = Rule("anthropic.block.closed", "a delta named a block that had been stopped", STREAMING)
STOPPED_TWICE = Rule("anthropic.block.stopped-twice", "a block was stopped a second time", STREAMING, "may")
LEFT_OPEN = Rule("anthropic.block.left-open", "message_stop came while a block was still open", STREAMING)
LATE_STOP = Rule(
    "anthropic.block.late-stop",
    "a block was stopped only after the stop reason had been given",
    STREAMING,
    "may",
)
MISFIT = Rule("anthropic.delta.misfit", "a delta was of a type that its block cannot have", STREAMING)
UNSIGNED = Rule(
    # Compatible servers have no signatures to give.
    "anthropic.thinking.unsigned",
    "a thinking block was stopped without a signature_delta",
    THINKING,
    "may",
)
AFTER_SIGNATURE = Rule(
    "anthropic.thinking.after-signature",
    "thinking came after the signature of its block",
    THINKING,
    "may",
)
SIGNED_TWICE = Rule(
    "anthropic.thinking.signed-twice",
    "a thinking block had a second signature_delta",
    THINKING,
    "may",
)
TORN_INPUT = Rule(
    # The model's words are not checked while they stream, so what is damage and what is the model's own
    # mistake cannot be told apart.
    "anthropic.call.torn",
    "a call's input was not a JSON object although the turn was not cut there",
    TOOL_USE,
    "may",
)
MALFORMED = Rule(
    "anthropic.event.malformed",
    "an event lacked a member that its type requires, or had it in another form",
    STREAMING,
    "may",
)
UNNAMED = Rule(
    # The vendor's own SDKs pass over events without an SSE name.
    "anthropic.event.unnamed",
    "an event had no SSE event name",
    STREAMING,
    "may",
)
MISNAMED = Rule(
    "anthropic.event.misnamed",
    "an event's SSE name and the type in its data did not agree",
    STREAMING,
    "may",
)
FOREIGN = Rule(
    "anthropic.event.foreign",
    "a payload was not an event of this protocol",
    STREAMING,
    "may",
)


def _anywhere(state: str) -> dict[str, Cell]:
    return {
        "error": "failed",
        "restart": Break(RESTARTED, state, "skip"),
        "splice": Break(SPLICED, state, "either"),
    }


STREAM = Machine(
    "stream",
    "idle",
    {
        "idle": {
            "start": "between",
            "prefilled": "told",
            "error": "failed",
            "open": Break(BEFORE_START, "inside"),
            "delta": Break(BEFORE_START, "between"),
            "close": Break(BEFORE_START, "between"),
            "progress": Break(BEFORE_START, "between"),
            "reason": Break(BEFORE_START, "told"),
            "stop": Break(BEFORE_START, "idle", "skip"),
            END: Break(UNFINISHED, "idle"),
        },
        "between": {
            **_anywhere("between"),
            "open": "inside",
            "reason": "told",
            "stop": Break(NO_REASON, "done"),
            END: Break(UNFINISHED, "between"),
        },
        "inside": {
            **_anywhere("inside"),
            "open": Break(OVERLAP, "inside"),
            "close": "between",
            "reason": "told inside",
            "stop": Break(LEFT_OPEN, "done"),
            END: Break(UNFINISHED, "inside"),
        },
        "told": {
            **_anywhere("told"),
            "open": Break(AFTER_REASON, "told"),
            "delta": Break(AFTER_REASON, "told"),
            "stop": "done",
            END: Break(UNSTOPPED, "told"),
        },
        "told inside": {
            **_anywhere("told inside"),
            "open": Break(AFTER_REASON, "told inside"),
            "delta": Break(AFTER_REASON, "told inside"),
            "close": Break(LATE_STOP, "told"),
            "stop": Break(LEFT_OPEN, "done"),
            END: Break(UNFINISHED, "told inside"),
        },
        "done": {  # here the symbols are the types of the events themselves
            "message_delta": Break(LATE_DELTA, "done", "either"),
            "*": Break(AFTER_STOP, "done", "skip"),
            END: "done",
        },
        "failed": {},
    },
    always=True,
)
"""The message: not begun, between blocks, inside one, told why it stopped, done."""


def _taking(state: str, **cells: Cell) -> dict[str, Cell]:
    """The row of an open block: what it takes, and for all other known deltas that they do not fit."""
    misfits: dict[str, Cell] = dict.fromkeys(DELTA_MEMBERS, Break(MISFIT, state, "either"))
    reopened: dict[str, Cell] = dict.fromkeys(_OPENINGS, Break(REOPENED, state, "either"))
    return {**misfits, **reopened, "stop": "closed", **cells}


_FAMILY = {
    "text": "text",
    "thinking": "thinking",
    "tool_use": "input",
    "server_tool_use": "input",
    "mcp_tool_use": "input",
    "compaction": "compaction",
    **dict.fromkeys((block for block, takes in TAKES.items() if not takes), "whole"),
}
_OPENINGS = tuple(f"open {family}" for family in (*dict.fromkeys(_FAMILY.values()), "unknown"))

BLOCK = Machine(
    "block",
    "absent",
    {
        "absent": {
            **{opening: opening.removeprefix("open ") for opening in _OPENINGS},
            "prefilled": "closed",
            END: "absent",
            "*": Break(UNOPENED, "absent", "either"),
        },
        "text": _taking("text", text_delta="text", citations_delta="text"),
        "thinking": _taking(
            "thinking", thinking_delta="thinking", signature_delta="signed", stop=Break(UNSIGNED, "closed")
        ),
        "signed": _taking(
            "signed",
            thinking_delta=Break(AFTER_SIGNATURE, "signed"),
            signature_delta=Break(SIGNED_TWICE, "signed"),
        ),
        "input": _taking("input", input_json_delta="input"),
        "compaction": _taking("compaction", compaction_delta="compaction"),
        "whole": _taking("whole"),
        # A block type of the future may be built of any deltas.
        "unknown": _taking("unknown", **dict.fromkeys(DELTA_MEMBERS, "unknown")),
        "closed": {
            **dict.fromkeys(_OPENINGS, Break(REOPENED, "closed", "either")),
            "prefilled": "closed",
            "stop": Break(STOPPED_TWICE, "closed", "skip"),
            END: "closed",
            "*": Break(CLOSED, "closed", "either"),
        },
    },
)
"""A content block, by its index: what it can take while it is open depends on its type."""

MACHINES: Mapping[str, Machine] = {machine.name: machine for machine in (STREAM, BLOCK)}

EXTRA_RULES = (
    GAP,
    REASON_CHANGED,
    REASON_WITHDRAWN,
    TORN_INPUT,
    MALFORMED,
    UNNAMED,
    MISNAMED,
    FOREIGN,
)
"""Rules about what events say, which no table of states can tell."""


def steps(event: Event, walk: Walk) -> list[Step]:
    """What an event does to the tables; total over all payloads."""
    state = walk.state("stream")
    found = type_of(event)
    if state == "failed":
        return []
    if (found is not None and found not in EVENT_TYPES) or found == "ping":
        return [] if isinstance(event.data, dict) or state == "done" else [_broken(MALFORMED, "skip")]
    if state == "done":
        return [Step("stream", found or "foreign")]
    if error(event) is not None:
        return [*_naming(event), Step("stream", "error")]
    if found is None or not isinstance(event.data, dict):
        return [_broken(FOREIGN, "skip")]
    return [*_naming(event), *_STEPS[found](event.data, walk)]


def _broken(rule: Rule, reading: Reading = "apply", key: object = None) -> Step:
    return Step("stream", "broken", key, Break(rule, "", reading))


def _naming(event: Event) -> list[Step]:
    if event.name in (None, "message"):
        return [_broken(UNNAMED, "either")]
    inner = event.data.get("type") if isinstance(event.data, dict) else None
    return [] if inner == event.name else [_broken(MISNAMED, "either")]


def _message_start(data: Mapping[str, Json], walk: Walk) -> list[Step]:
    message = data.get("message")
    found = [] if isinstance(message, dict) else [_broken(MALFORMED, "either")]
    message = message if isinstance(message, dict) else {}
    if ("message", None) in walk.notes:
        same = walk.notes["message", None] == message.get("id")
        return [*found, Step("stream", "restart" if same else "splice")]
    walk.notes["message", None] = message.get("id")
    reason, content = message.get("stop_reason"), message.get("content")
    if not isinstance(content, list) or not content:
        return [*found, Step("stream", "start")]
    found += [Step("block", "prefilled", index) for index in range(len(content))]
    if not isinstance(reason, str):
        return [*found, Step("stream", "start")]
    walk.notes["reason", None] = reason
    return [*found, Step("stream", "prefilled")]


def _content_block_start(data: Mapping[str, Json], walk: Walk) -> list[Step]:
    index, block = data.get("index"), data.get("content_block")
    if not is_index(index) or not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return [_broken(MALFORMED, "either")]
    given = block.get("input")
    if _FAMILY.get(block["type"]) == "input" and given is not None and not isinstance(given, dict):
        return [_broken(MALFORMED, "either"), *_opened(index, block, walk)]
    return _opened(index, block, walk)


def _opened(index: int, block: Mapping[str, Json], walk: Walk) -> list[Step]:
    found = _torn(walk)
    opening = Step("block", f"open {_FAMILY.get(block['type'], 'unknown')}", index)
    if walk.state("block", index) != "absent":
        return [*found, opening]
    if index != 0 and walk.state("block", index - 1) == "absent":
        found.append(_broken(GAP, key=index))
    return [*found, Step("stream", "open"), opening]


def _content_block_delta(data: Mapping[str, Json], walk: Walk) -> list[Step]:
    index, delta = data.get("index"), data.get("delta")
    if not is_index(index) or not isinstance(delta, dict) or not isinstance(delta.get("type"), str):
        return [_broken(MALFORMED, "either")]
    symbol = delta["type"]
    carried = delta.get(DELTA_MEMBERS.get(symbol, ""))
    if carried is not None and not isinstance(carried, dict if symbol == "citations_delta" else str):
        return [_broken(MALFORMED, "either", index)]
    if symbol == "input_json_delta" and carried:
        # A chain of pairs: adding to it costs the same however long it is, and copies of the walk share it.
        walk.notes["input", index] = (walk.notes.get(("input", index)), carried)
    return [
        Step("stream", "delta"),
        Step("block", symbol if symbol in DELTA_MEMBERS else "unknown delta", index),
    ]


def _content_block_stop(data: Mapping[str, Json], walk: Walk) -> list[Step]:
    index = data.get("index")
    if not is_index(index):
        return [_broken(MALFORMED, "either")]
    if walk.state("block", index) == "input":
        pieces = _pieces(walk.notes.pop(("input", index), None))
        if pieces and json_object("".join(pieces)) is None:
            walk.notes["torn", None] = index
    return [Step("stream", "close"), Step("block", "stop", index)]


def _pieces(chain: object) -> list[str]:
    pieces: list[str] = []
    while isinstance(chain, tuple):
        chain, piece = chain
        pieces.append(piece)
    return pieces[::-1]


def _torn(walk: Walk) -> list[Step]:
    """The rule about a torn call, once it is known that the turn was not cut inside it."""
    index = walk.notes.pop(("torn", None), None)
    return [] if index is None else [_broken(TORN_INPUT, key=index)]


def _message_delta(data: Mapping[str, Json], walk: Walk) -> list[Step]:
    delta = data.get("delta")
    reason = delta.get("stop_reason") if isinstance(delta, dict) else None
    if not isinstance(delta, dict) or not isinstance(reason, str | None):
        return [_broken(MALFORMED, "either")]
    before = walk.notes.get(("reason", None))
    if reason is None:
        return [Step("stream", "progress") if before is None else _broken(REASON_WITHDRAWN)]
    walk.notes["reason", None] = reason
    if before is not None and reason != before:
        return [_broken(REASON_CHANGED)]
    return [*([] if reason in CUT_REASONS else _torn(walk)), Step("stream", "reason")]


def _message_stop(data: Mapping[str, Json], walk: Walk) -> list[Step]:
    return [Step("stream", "stop")]


_STEPS: Mapping[str, Callable[[Mapping[str, Json], Walk], list[Step]]] = {
    "message_start": _message_start,
    "content_block_start": _content_block_start,
    "content_block_delta": _content_block_delta,
    "content_block_stop": _content_block_stop,
    "message_delta": _message_delta,
    "message_stop": _message_stop,
}
