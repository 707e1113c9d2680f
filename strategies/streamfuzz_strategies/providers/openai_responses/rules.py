"""What a Responses stream can break, and the lifecycle tables of the stream, its items and their parts."""

from __future__ import annotations

from collections.abc import Mapping

from ...rules import END, Break, Cell, Machine, Rule
from .events import EVENTS, OBJECT

ERRORS = "https://platform.openai.com/docs/api-reference/responses-streaming/error"

CREATED_MISSING = Rule(
    "openai-responses.stream.created-missing", "the stream did not begin with response.created", EVENTS
)
TERMINAL_MISSING = Rule(
    "openai-responses.stream.terminal-missing",
    "the stream ended before response.completed, response.incomplete or response.failed",
    EVENTS,
)
CREATED_AGAIN = Rule(
    "openai-responses.stream.created-again", "a response that had been created was created again", EVENTS, "may"
)
TERMINAL_AGAIN = Rule(
    "openai-responses.stream.terminal-again", "a second terminal event followed the first", EVENTS, "may"
)
AFTER_TERMINAL = Rule("openai-responses.stream.after-terminal", "an event followed the terminal event", EVENTS, "may")
FOREIGN = Rule("openai-responses.event.foreign", "a payload was not an object with a type", EVENTS, "may")
MALFORMED = Rule(
    "openai-responses.event.malformed",
    "an event lacked a member that its type needs, or the member had the wrong type",
    EVENTS,
    "may",
)
INDEX_MISSING = Rule(
    "openai-responses.event.index-missing", "an event did not say which item or part it was for", EVENTS, "may"
)
SEQUENCE_GAP = Rule("openai-responses.sequence.gap", "a sequence number was skipped", EVENTS)
SEQUENCE_REPEATED = Rule(
    "openai-responses.sequence.repeated", "a sequence number came twice in a row with different events", EVENTS
)
SEQUENCE_DUPLICATE = Rule(
    # Whoever reads the numbers can leave the second one out and has the whole message.
    "openai-responses.sequence.duplicate",
    "an event came twice in a row with the same sequence number",
    EVENTS,
    "may",
)
SEQUENCE_BACKWARDS = Rule(
    "openai-responses.sequence.backwards", "a sequence number was lower than one before it", EVENTS
)
SEQUENCE_START = Rule("openai-responses.sequence.start", "the first sequence number was not 0", EVENTS, "may")
SEQUENCE_MISSING = Rule("openai-responses.sequence.missing", "an event had no sequence number", EVENTS, "may")
RESPONSE_CHANGED = Rule(
    "openai-responses.response.id-changed", "an event told of a response with another id", OBJECT, "may"
)
STATUS_DIFFERS = Rule(
    "openai-responses.terminal.status-differs",
    "the response in the terminal event had another status than the event's type says",
    OBJECT,
)
OUTPUT_DIFFERS = Rule(
    "openai-responses.terminal.output-differs",
    "the output in the terminal event differed from the items that were done before",
    OBJECT,
)
OUTPUT_EMPTY = Rule(
    "openai-responses.terminal.output-empty",
    "the output in the terminal event was empty or missing though items had been streamed",
    OBJECT,
    "may",
)
OUTPUT_UNSTREAMED = Rule(
    "openai-responses.terminal.output-unstreamed",
    "the terminal event had output though no item had been streamed",
    OBJECT,
    "may",
)
ITEM_GAP = Rule("openai-responses.item.index-gap", "an output index was skipped", EVENTS)
ITEM_ADDED_AGAIN = Rule(
    "openai-responses.item.added-again", "an item was added at an output index that was taken", EVENTS
)
ITEM_UNOPENED = Rule("openai-responses.item.unopened", "an event was for an item that had not been added", EVENTS)
ITEM_CLOSED = Rule("openai-responses.item.closed", "an event was for an item that was already done", EVENTS)
ITEM_DONE_UNOPENED = Rule(
    "openai-responses.item.done-unopened", "an item was done that had not been added", EVENTS, "may"
)
ITEM_DONE_AGAIN = Rule("openai-responses.item.done-again", "an item that was done was done again", EVENTS, "may")
ITEM_UNFINISHED = Rule("openai-responses.item.unfinished", "the response completed while an item was not done", EVENTS)
ITEM_CUT = Rule(
    "openai-responses.item.cut", "the response ended as incomplete while an item was not done", EVENTS, "may"
)
ITEM_ID = Rule(
    "openai-responses.item.id-differs",
    "an event had another item id than the item at its output index",
    EVENTS,
    "may",
)
ITEM_DIFFERS = Rule(
    "openai-responses.item.differs", "an item was done with other content than had been streamed for it", EVENTS
)
ITEM_UNSTREAMED = Rule(
    "openai-responses.item.part-unstreamed",
    "an item was done with a part for which nothing had been streamed",
    EVENTS,
    "may",
)
KIND = Rule(
    "openai-responses.item.kind",
    "an event was for another kind of item or part than the one at its index",
    EVENTS,
)
NOT_EMPTY = Rule(
    "openai-responses.item.added-with-content",
    "an item or part had content when it was added, before its deltas",
    EVENTS,
    "may",
)
PART_GAP = Rule("openai-responses.part.index-gap", "a part's index was skipped", EVENTS)
PART_ADDED_AGAIN = Rule("openai-responses.part.added-again", "a part was added at an index that was taken", EVENTS)
PART_UNOPENED = Rule("openai-responses.part.unopened", "a delta was for a part that had not been added", EVENTS)
PART_DONE_UNOPENED = Rule(
    "openai-responses.part.done-unopened", "a part or its text was done that had not been added", EVENTS, "may"
)
REASONING_UNOPENED = Rule(
    "openai-responses.part.reasoning-unopened",
    "a reasoning delta was for a part that had not been added",
    EVENTS,
    "may",
)
PART_CLOSED = Rule("openai-responses.part.closed", "a delta was for a part whose text was already done", EVENTS)
PART_DONE_AGAIN = Rule("openai-responses.part.done-again", "a part or its text was done again", EVENTS, "may")
PART_UNSAID = Rule("openai-responses.part.text-not-done", "a part was done before its text was", EVENTS, "may")
PART_UNFINISHED = Rule(
    "openai-responses.part.unfinished", "an item was done while one of its parts was not", EVENTS, "may"
)
PART_DIFFERS = Rule(
    "openai-responses.part.differs", "a part was done with another text than had been streamed for it", EVENTS
)
TEXT_DIFFERS = Rule("openai-responses.text.differs", "a text was done that differed from its deltas joined", EVENTS)
CALL_CLOSED = Rule("openai-responses.call.closed", "a delta was for a call whose arguments were already done", EVENTS)
CALL_DONE_AGAIN = Rule("openai-responses.call.done-again", "a call's arguments were done again", EVENTS, "may")
CALL_UNSAID = Rule(
    "openai-responses.call.arguments-not-done", "a call was done before its arguments were", EVENTS, "may"
)

BY_THEMSELVES = (
    MALFORMED,
    INDEX_MISSING,
    SEQUENCE_GAP,
    SEQUENCE_REPEATED,
    SEQUENCE_DUPLICATE,
    SEQUENCE_BACKWARDS,
    SEQUENCE_START,
    SEQUENCE_MISSING,
    RESPONSE_CHANGED,
    STATUS_DIFFERS,
    OUTPUT_DIFFERS,
    OUTPUT_EMPTY,
    OUTPUT_UNSTREAMED,
    ITEM_GAP,
    ITEM_ID,
    ITEM_DIFFERS,
    ITEM_UNSTREAMED,
    KIND,
    NOT_EMPTY,
    PART_GAP,
    PART_DIFFERS,
    TEXT_DIFFERS,
)
"""Rules that compare an event with what came before it, which no table of states can hold."""

_DONE: Mapping[str, Cell] = {
    "terminal": Break(TERMINAL_AGAIN, "done", "skip"),
    "*": Break(AFTER_TERMINAL, "done", "skip"),
    END: "done",
}

MACHINES = {
    "stream": Machine(
        "stream",
        "start",
        {
            "start": {
                "created": "open",
                "terminal": Break(CREATED_MISSING, "done"),
                "event": Break(CREATED_MISSING, "open"),
                "error": "failed",
                "foreign": Break(FOREIGN, "start", "skip"),
                END: Break(TERMINAL_MISSING, "start"),
            },
            "open": {
                "created": Break(CREATED_AGAIN, "open", "either"),
                "terminal": "done",
                "event": "open",
                "error": "failed",
                "foreign": Break(FOREIGN, "open", "skip"),
                END: Break(TERMINAL_MISSING, "open"),
            },
            "done": _DONE,
            "failed": {},
        },
        always=True,
    ),
    "item": Machine(
        "item",
        "absent",
        {
            "absent": {
                "added": "open",
                "inner": Break(ITEM_UNOPENED, "absent"),
                "done": Break(ITEM_DONE_UNOPENED, "done"),
            },
            "open": {
                "added": Break(ITEM_ADDED_AGAIN, "open", "either"),
                "inner": "open",
                "done": "done",
                "completed": Break(ITEM_UNFINISHED, "open"),
                "incomplete": Break(ITEM_CUT, "open"),
            },
            "done": {
                "added": Break(ITEM_ADDED_AGAIN, "done", "either"),
                "inner": Break(ITEM_CLOSED, "done", "skip"),
                "done": Break(ITEM_DONE_AGAIN, "done", "skip"),
            },
        },
    ),
    "part": Machine(
        "part",
        "absent",
        {
            "absent": {
                "added": "open",
                "delta": Break(PART_UNOPENED, "open"),
                "reasoning delta": Break(REASONING_UNOPENED, "open"),
                "text done": Break(PART_DONE_UNOPENED, "said"),
                "done": Break(PART_DONE_UNOPENED, "done"),
            },
            "open": {
                "added": Break(PART_ADDED_AGAIN, "open", "either"),
                "text done": "said",
                "done": Break(PART_UNSAID, "done"),
                "item done": Break(PART_UNFINISHED, "done"),
            },
            "said": {
                "added": Break(PART_ADDED_AGAIN, "said", "either"),
                "delta": Break(PART_CLOSED, "said", "skip"),
                "reasoning delta": Break(PART_CLOSED, "said", "skip"),
                "text done": Break(PART_DONE_AGAIN, "said", "skip"),
                "done": "done",
                "item done": Break(PART_UNFINISHED, "done"),
            },
            "done": {
                "added": Break(PART_ADDED_AGAIN, "done", "either"),
                "delta": Break(PART_CLOSED, "done", "skip"),
                "reasoning delta": Break(PART_CLOSED, "done", "skip"),
                "text done": Break(PART_DONE_AGAIN, "done", "skip"),
                "done": Break(PART_DONE_AGAIN, "done", "skip"),
            },
        },
    ),
    "call": Machine(
        "call",
        "open",
        {
            "open": {"delta": "open", "text done": "said", "item done": Break(CALL_UNSAID, "said")},
            "said": {
                "delta": Break(CALL_CLOSED, "said", "skip"),
                "text done": Break(CALL_DONE_AGAIN, "said", "skip"),
                "item done": "said",
            },
        },
    ),
}
"""The lifecycle tables.  Items are keyed by output index; parts and calls by output index, slot and part index."""
