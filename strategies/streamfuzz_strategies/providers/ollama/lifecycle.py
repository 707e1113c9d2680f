"""What a lawful stream of chat records is: its rules, its tables, and what each line does to them."""

from __future__ import annotations

from collections.abc import Iterable

from ...reply import Json
from ...rules import END, Break, Machine, Rule, Step, Walk
from ...stream import Event, Raw
from .reducer import error

CHAT = "https://docs.ollama.com/api/chat"
STREAMING = "https://docs.ollama.com/api/streaming"

UNFINISHED = Rule("ollama.stream.unfinished", "the stream ended before a record with done true", STREAMING)
AFTER_DONE = Rule("ollama.stream.after-done", "a record followed the one that said done true", STREAMING, "may")
NOT_OBJECT = Rule("ollama.record.not-object", "a line held a JSON value that was not an object", CHAT)
FOREIGN = Rule("ollama.record.foreign", "a line held none of the members of a chat record", CHAT, "may")
DONE = Rule("ollama.record.done", "a record's done was missing or not a boolean", CHAT, "may")
MODEL = Rule("ollama.record.model", "a record named another model than the records before it", CHAT)
MESSAGE = Rule(
    "ollama.message.shape", "a record's message was missing or a member of it had the wrong type", CHAT, "may"
)
CALL = Rule("ollama.call.shape", "a tool call lacked a name or an object of arguments", CHAT, "may")

MACHINES = {
    "stream": Machine(
        "stream",
        "open",
        {
            "open": {
                "record": "open",
                "last": "done",
                "error": "failed",
                "value": Break(NOT_OBJECT, "open", "skip"),
                "foreign": Break(FOREIGN, "open", "skip"),
                "undone": Break(DONE, "open"),
                "unclear": Break(DONE, "unsure", "either"),
                END: Break(UNFINISHED, "open"),
            },
            # A reader that asks whether done is truthy has its end here, one that asks for true has not.
            "unsure": {
                "last": Break(AFTER_DONE, "done", "either"),
                "error": "failed",
                "*": Break(AFTER_DONE, "unsure", "either"),
                END: "unsure",
            },
            "done": {"*": Break(AFTER_DONE, "done", "skip"), END: "done"},
            "failed": {},
        },
        always=True,
    ),
    "model": Machine(
        "model",
        "unnamed",
        {"unnamed": {"named": "named"}, "named": {"another": Break(MODEL, "named")}},
    ),
}

_MARKS = frozenset(("model", "created_at", "message", "done"))
_BAD_MESSAGE = Step("stream", "message", breaks=Break(MESSAGE, "", "either"))
_BAD_CALL = Step("stream", "call", breaks=Break(CALL, "", "either"))


def steps(event: Event, walk: Walk) -> Iterable[Step]:
    """What a line does; nothing once the stream has failed."""
    state = walk.state("stream")
    if state == "failed" or (isinstance(event.data, Raw) and state != "done"):
        return ()
    symbol = _symbol(event)
    if state == "done" or symbol in ("error", "value", "foreign"):
        return (Step("stream", symbol),)
    return (Step("stream", symbol), *_record_steps(event.data, walk))


def _symbol(event: Event) -> str:
    record = event.data
    if record is None:  # the official Go client decodes null into an empty record and goes on
        return "foreign"
    if not isinstance(record, dict):
        return "value"
    if error(event) is not None:
        return "error"
    if _MARKS.isdisjoint(record):
        return "foreign"
    done = record.get("done")
    if done is None:
        return "undone"
    return "unclear" if not isinstance(done, bool) else "last" if done else "record"


def _record_steps(record: Json, walk: Walk) -> Iterable[Step]:
    yield from _message_steps(record.get("message"))
    model = record.get("model")
    if not isinstance(model, str) or not model:
        return
    known = next((key for machine, key in walk.states if machine == "model"), None)
    if known is None:
        yield Step("model", "named", model)
    elif known != model:
        yield Step("model", "another", known)


def _message_steps(message: Json) -> Iterable[Step]:
    if not isinstance(message, dict):
        yield _BAD_MESSAGE
        return
    calls = message.get("tool_calls")
    if (
        not isinstance(message.get("role"), str)
        or not isinstance(calls, list | None)
        or not all(isinstance(message.get(member), str | None) for member in ("content", "thinking"))
    ):
        yield _BAD_MESSAGE
    elif not all(map(_is_call, calls or ())):
        yield _BAD_CALL


def _is_call(call: Json) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return (
        isinstance(function, dict)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), dict)
    )


def kind(event: Event) -> str:
    """``chunk``, ``chunk:empty``, ``done``, ``error``, or ``unknown``."""
    found = _KINDS[_symbol(event)]
    return "chunk:empty" if found == "chunk" and _says_nothing(event.data) else found


def _says_nothing(record: Json) -> bool:
    message = record.get("message")
    return isinstance(message, dict) and not any(map(message.get, ("content", "thinking", "tool_calls")))


_KINDS = {
    "record": "chunk",
    "undone": "chunk",
    "unclear": "chunk",
    "last": "done",
    "error": "error",
    "foreign": "unknown",
    "value": "unknown",
}
