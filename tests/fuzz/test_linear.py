"""A case in sentences says what the ruler draws, and needs neither columns nor colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfuzz.case import Case
from streamfuzz.ruler.linear import CHUNKS, LONGEST, sentences
from streamfuzz.spec import Delta, Snapshot
from streamfuzz.trace import Trace
from streamfuzz_strategies.stream import Event, Frame


def trace(items: Sequence[Any] = (), after: Sequence[int] = (), result: Any = None) -> Trace:
    return Trace(tuple(items), tuple(after), "complete", result, None, 2, True, 0.0)


def test_each_chunk_is_a_sentence_and_so_is_what_the_target_had_given_out() -> None:
    case = Case("sse", (b"data: \xe4", b"", b"\xbd\xa0\n\n"))
    did = trace((Delta("a"), Delta("b"), Snapshot({"text": "ab"})), (1, 1, 4), {"text": "ab"})
    assert sentences(case, trace=did) == [
        r"Chunk 1, bytes 0 to 6, cut off inside a 3-byte character (你 is E4, then BD A0): data: \xE4",
        "After chunk 1, the target had given out: text 'ab'",
        "Chunk 2, at byte 7, is empty.",
        r"Chunk 3, bytes 7 to 10: \xBD\xA0\x0A\x0A",
        "The stream ends after 11 bytes.",
        'After that, the target had given out: the whole so far: {"text":"ab"}',
        'The target ended as complete, after 2 of 3 chunks: {"text":"ab"}',
    ]


def test_a_target_that_gave_nothing_out_is_said_to() -> None:
    told = sentences(Case("sse", (b"a", b"b"), end="reset"), trace=trace())
    assert told[-3:] == [
        "The connection is reset after 2 bytes.",
        "The target gave out nothing on the way.",
        "The target ended as complete",
    ]


def test_marks_are_told_by_their_bytes() -> None:
    told = sentences(Case("sse", (b"data: a\n\n",)), marks=(4, 5, 9))
    assert told == [
        "Chunk 1, bytes 0 to 8, marked at 4, 5: data: a\\x0A\\x0A",
        "The stream ends after 9 bytes, marked.",
    ]


def test_frames_and_events_are_sentences_too() -> None:
    told = sentences(Case("sse", (Frame("a", "ping"), Frame("b")), "frames"), marks=(1,))
    assert told == [
        'Frame 1: {"event":"ping","data":"a"}',
        'Frame 2, marked: {"data":"b"}',
        "The stream ends after 2 frames.",
    ]
    assert sentences(Case("ndjson", (Event({"a": 1}),), "events"))[0] == 'Event 1: {"a":1}'


@pytest.mark.parametrize("probe", ["isolated", "released", "growth-many"])
def test_a_probe_says_what_is_done(probe: str) -> None:
    chunks, other = (
        () if probe == "growth-many" else (b"data: a\n\n",),
        (b"data: b\n\n",) if probe == "isolated" else (),
    )
    told = sentences(Case("sse", chunks, probe=probe, other=other))
    assert len(told[0].split()) > 5
    assert ("The second stream:" in told) == bool(other)
    assert len(told) == {"isolated": 7, "released": 3, "growth-many": 1}[probe]


def test_what_is_long_loses_its_middle_unless_all_is_asked_for() -> None:
    case = Case("sse", (b"data: " + b"a" * 5000,))
    (short, _), (whole, _) = sentences(case), sentences(case, whole=True)
    assert f"({5006 - LONGEST} bytes are left out here)" in short
    assert whole.count("a") > 5000


def test_many_chunks_lose_their_middle_unless_all_is_asked_for() -> None:
    case = Case("sse", tuple(b"x" for _ in range(CHUNKS * 3)))
    assert f"{CHUNKS * 2 + 1} chunks are left out here." in sentences(case)
    assert len(sentences(case, whole=True)) == CHUNKS * 3 + 1


@given(st.lists(st.binary(max_size=12), max_size=12), st.booleans())
@settings(deadline=None)
def test_no_sentence_can_drive_a_terminal(chunks: list[bytes], plain: bool) -> None:
    for sentence in sentences(Case("sse", tuple(chunks)), ascii=plain):
        assert sentence.isprintable()
        assert sentence.isascii() or not plain
