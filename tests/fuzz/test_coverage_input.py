"""Inputs of libFuzzer: nothing is lost in writing one, and any bytes are one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfuzz.case import Case
from streamfuzz.demo import repaired
from streamfuzz.engines.fuzz_input import LONGEST, MARK, Input, decode, encode, of_case, to_case
from streamfuzz.spec import Target, target
from streamfuzz_strategies.cuts import every_byte
from streamfuzz_strategies.stream import Event, Frame

BYTES = st.one_of(st.binary(max_size=40), st.lists(st.sampled_from([b"\xff", b"\xfe", b"a", MARK])).map(b"".join))


@st.composite
def inputs(draw: st.DrawFn) -> Input:
    data = draw(BYTES)
    offsets = st.lists(st.integers(0, len(data)), max_size=5).map(lambda some: tuple(sorted(some)))
    return Input(
        data, draw(st.one_of(offsets, st.just(every_byte(len(data))))), draw(st.sampled_from(("eof", "reset")))
    )


def reader(takes: str) -> Target:
    return Target("reader", repaired, takes=takes)  # type: ignore[arg-type]


@given(inputs())
def test_what_is_written_is_read_back(given_input: Input) -> None:
    assert decode(encode(given_input)) == given_input


@given(BYTES)
def test_any_bytes_are_an_input_that_can_be_written_again(raw: bytes) -> None:
    assert decode(encode(decode(raw))) == decode(raw)


@given(BYTES, st.sampled_from(("bytes", "text", "frames", "events")))
def test_any_bytes_are_a_case_for_any_target(raw: bytes, takes: str) -> None:
    case = to_case(decode(raw), reader(takes))
    assert case.takes == takes
    assert all(isinstance(chunk, {"bytes": bytes, "text": str}.get(takes, object)) for chunk in case.chunks)


def test_plain_bytes_are_a_whole_stream() -> None:
    assert encode(Input(b"data: a\n\n")) == b"data: a\n\n"
    assert decode(b"data: a\n\n") == Input(b"data: a\n\n")


def test_bytes_put_in_before_the_trailer_do_not_touch_it() -> None:
    raw = encode(Input(b"data: a\n\n", (3,), "reset"))
    assert decode(b"xx" + raw) == Input(b"xxdata: a\n\n", (3,), "reset")


def test_a_broken_trailer_still_cuts() -> None:
    assert decode(b"abcd" + MARK).cuts == ()
    assert decode(b"abcd" + MARK + bytes((0x80, 0, 0, 0x82, 0, 0))).cuts == (2,)
    assert decode(b"abcd" + MARK + bytes((0, 0, 0, 7))).cuts == (2,)


@pytest.mark.parametrize("cuts", [(2, 1), (-1,), (3,)])
def test_cuts_that_are_none_cannot_be_written(cuts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="increasing order"):
        encode(Input(b"ab", cuts))


def test_a_cut_too_far_into_the_stream_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="too far"):
        encode(Input(bytes(LONGEST + 1), (1, LONGEST)))


@pytest.mark.parametrize(
    "case",
    [
        Case("sse", (b"data: a", b"", b"\n\n")),
        Case("sse", (b"data: a", b"\n\n"), end="reset"),
        Case("sse", ("data: \u00e9", "\n\n"), "text"),
        Case("sse", (Frame("a"), Frame("b", "x")), "frames"),
        Case("openai-chat", (Event({"id": "1"}), Event({"id": "2"})), "events"),
    ],
)
def test_a_case_comes_back_from_its_input(case: Case) -> None:
    asked = Target("reader", repaired, provider=case.provider, takes=case.takes, gives="events")
    assert to_case(decode(encode(of_case(case))), asked) == case


def test_frames_that_no_bytes_can_carry_are_no_input() -> None:
    with pytest.raises(ValueError, match="carriage return"):
        of_case(Case("sse", (Frame("\r"),), "frames"))


def test_a_push_target_is_not_told_of_a_reset() -> None:
    class Reader:
        def feed(self, chunk: bytes) -> list[str]:
            return []

        def close(self) -> None:
            return None

    assert to_case(Input(b"x", end="reset"), target(Reader)).end == "eof"
