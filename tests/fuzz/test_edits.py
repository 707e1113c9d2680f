"""Edits of a case: the bytes change as asked and the cuts move along."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfuzz import edits
from streamfuzz.case import Case
from streamfuzz_strategies import cuts
from streamfuzz_strategies.draw import fragmented
from streamfuzz_strategies.stream import Event, Frame, Raw

FACE = "\U0001f600".encode()


def case(*chunks: bytes, provider: str = "sse") -> Case:
    return Case(provider, chunks)


def edited(before: Case, *changes: edits.Edit) -> tuple[bytes, ...]:
    after = edits.apply(before, changes)
    assert after is not None
    return after.chunks


pieces = st.lists(st.binary(max_size=4), min_size=1, max_size=6).map(tuple)


@st.composite
def cases_and_edits(draw: st.DrawFn) -> tuple[Case, list[edits.Edit]]:
    made = Case("sse", draw(pieces))
    size = len(made.data)
    ends = sorted(draw(st.lists(st.integers(0, size), max_size=6, unique=True)))
    spans = list(zip(ends[::2], ends[1::2], strict=False))
    return made, [(start, stop, draw(st.binary(max_size=3))) for start, stop in spans]


# --- cuts


@given(pieces)
def test_a_case_cut_at_its_offsets_is_itself(chunks: tuple[bytes, ...]) -> None:
    made = Case("sse", chunks)
    assert edits.recut(made, made.data, edits.offsets(made)) == made


@given(cases_and_edits())
def test_an_edit_changes_the_bytes_as_asked_and_no_more(drawn: tuple[Case, list[edits.Edit]]) -> None:
    made, changes = drawn
    wanted = made.data
    for start, stop, new in sorted(changes, reverse=True):
        wanted = wanted[:start] + new + wanted[stop:]
    after = edits.apply(made, changes)
    if after is None:
        assert wanted == made.data
    else:
        assert after.data == wanted
        assert len(after.chunks) == len(made.chunks)


@given(pieces, st.data())
def test_a_cut_keeps_its_distance_to_what_is_behind_it(chunks: tuple[bytes, ...], data: st.DataObject) -> None:
    made = Case("sse", chunks)
    first = len(chunks[0])
    after = edits.apply(made, [(0, data.draw(st.integers(1, first)), b"")]) if first else None
    if after is not None:
        assert after.chunks[1:] == made.chunks[1:]


def test_a_cut_inside_a_character_stays_there() -> None:
    made = case(b"data: ab" + FACE[:2], FACE[2:] + b"c\n\n")
    assert edited(made, (6, 8, b"")) == (b"data: " + FACE[:2], FACE[2:] + b"c\n\n")
    assert edited(made, (6, 7, b"xyz")) == (b"data: xyzb" + FACE[:2], FACE[2:] + b"c\n\n")
    assert edited(made, (12, 13, b"")) == (b"data: ab" + FACE[:2], FACE[2:] + b"\n\n")


def test_a_cut_inside_what_is_replaced_stays_inside_if_it_can() -> None:
    assert edited(case(b"ab", b"cd"), (0, 4, b"wxyz")) == (b"wx", b"yz")
    assert edited(case(b"ab", b"cd"), (0, 4, b"w")) == (b"w", b"")


def test_what_is_put_in_at_a_cut_comes_behind_it() -> None:
    assert edited(case(b"ab", b"cd"), (2, 2, b"-")) == (b"ab", b"-cd")


def test_empty_chunks_stay() -> None:
    assert edited(case(b"", b"ab", b"", b"cd", b""), (0, 1, b"")) == (b"", b"b", b"", b"cd", b"")


def test_the_byte_order_mark_stays_when_its_first_frame_goes() -> None:
    made = Case("sse", (b"\xef\xbb\xbfdata: a\n\ndata: b\n\n",))
    assert edits.without_frames(made, {0}).data == b"\xef\xbb\xbfdata: b\n\n"


def test_an_edit_that_changes_nothing_is_none() -> None:
    assert edits.apply(case(b"ab"), []) is None
    assert edits.apply(case(b"ab"), [(0, 1, b"a")]) is None


# --- text


def test_text_is_cut_between_characters_only() -> None:
    made = Case("sse", ("a\U0001f600", "b"), "text")
    assert edits.offsets(made) == (5,)
    after = edits.recut(made, made.data, (2, 5))
    assert after is not None
    assert after.chunks == ("a\U0001f600", "b")
    assert edits.recut(made, b"\xff", cuts.WHOLE) is None
    assert edits.apply(made, [(1, 3, b"")]) is None


@settings(deadline=None, max_examples=20)
@given(fragmented("sse"))
def test_the_bytes_of_text_are_its_utf8(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    made = Case("sse", (whole.decode(),), "text")
    assert made.data == whole


# --- frames


def test_frames_are_found_with_their_payloads() -> None:
    made = case(b": hi\n\ndata: a\ndata: b\n\nevent: x\ndata: c\n\n: bye\n")
    assert [payload for _, payload in edits.frames(made)] == ["a\nb", "c"]
    assert [len(lines) for lines, _ in edits.frames(made)] == [5, 3]


def test_frames_are_taken_out_by_number() -> None:
    made = case(b"data: a\n\nda", b"ta: b\n\ndata: c\n\n")
    assert edits.without_frames(made, {0, 2}).chunks == (b"da", b"ta: b\n\n")
    assert edits.without_frames(made, ()) == made


@pytest.mark.parametrize("ending", [b"", b"\n", b"\n\n", b"\r\n\r\n"])
def test_a_sentinel_is_put_at_the_end(ending: bytes) -> None:
    made = edits.with_sentinel(case(b"data: {}" + ending, provider="openai-chat"))
    assert [payload for _, payload in edits.frames(made)] == ["{}", "[DONE]"]


# --- events


def double(event: Event) -> Event | None:
    if isinstance(event.data, Raw):
        return event
    return Event({"n": event.data["n"] * 2}, event.name) if event.data["n"] else None


def test_events_are_rewritten_where_they_stand() -> None:
    made = case(
        b': x\ndata: {"n":1}\n\ndata: {"n":0}\n\ndata:  [DONE]\n\nev', b"ent: a\ndata: {\n\n", provider="openai-chat"
    )
    after = edits.rewrite(made, double)
    assert after is not None
    assert after.chunks == (b': x\ndata: {"n":2}\n\ndata:  [DONE]\n\nev', b"ent: a\ndata: {\n\n")


def test_events_that_stay_are_left_byte_for_byte() -> None:
    made = case(b'data: { "n" : 1 }\n\n', provider="openai-chat")
    assert edits.rewrite(made, lambda event: event) is None
    assert edits.rewrite(made, lambda event: Event(dict(event.data), event.name)) is None


def test_the_name_of_an_event_is_known_when_it_is_rewritten() -> None:
    seen: list[str | None] = []
    edits.rewrite(case(b"event: x\ndata: 1\n\ndata: 2\n\n"), lambda event: seen.append(event.name) or event)  # type: ignore[func-returns-value]
    assert seen == ["x", None]


@pytest.mark.parametrize(
    "made",
    [
        Case("openai-chat", (Event({"n": 1}), Event({"n": 0})), "events"),
        Case("openai-chat", (Frame('{"n": 1}', "x", "7"), Frame('{"n":0}')), "frames"),
    ],
)
def test_items_are_rewritten_too(made: Case) -> None:
    after = edits.rewrite(made, double)
    assert after is not None
    (item,) = after.chunks
    assert item == (Event({"n": 2}) if made.takes == "events" else Frame('{"n":2}', "x", "7"))
    assert edits.rewrite(made, lambda event: event) is None
    assert not edits.is_wire(made)


def test_json_is_respelled_plainly_and_the_rest_is_left() -> None:
    made = case(b'data: { "a": "\\u00e9" }\n\ndata: [DONE]\n\n', provider="openai-chat")
    after = edits.respelled(made)
    assert after is not None
    assert after.data == 'data: {"a":"é"}\n\ndata: [DONE]\n\n'.encode()
    assert edits.respelled(after) is None
    assert edits.respelled(Case("openai-chat", (Event({}),), "events")) is None


def test_a_payload_over_several_lines_is_respelled_on_one() -> None:
    after = edits.respelled(case(b'data: {"a":\ndata: 1}\n\n', provider="openai-chat"))
    assert after is not None
    assert after.data == b'data: {"a":1}\n\n'


def test_a_cut_stays_between_the_same_bytes_of_what_is_written_anew() -> None:
    data = 'data: {"a": "x\u00e9y", "b": 1}\n\n'.encode()
    at = data.index(b"\xa9")
    before, after = edits.respelled(Case("openai-chat", (data[:at], data[at:]))).chunks  # type: ignore[union-attr]
    assert before.endswith(b'"x\xc3')
    assert after.startswith(b'\xa9y"')
