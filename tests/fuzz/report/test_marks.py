"""Marks point at the bytes that a finding hangs on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfuzz.bench import read
from streamfuzz.case import Case
from streamfuzz.deviation import Deviation
from streamfuzz.features import framing_features, kind_features, payload_features
from streamfuzz.finding import Finding
from streamfuzz.report.marks import COMPARED, SPOTS, marks
from streamfuzz_strategies.providers import get
from streamfuzz_strategies.stream import Event, Frame

HELLO = '{"choices":[{"index":0,"delta":{"content":"hi"}}]}'
STOP = '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
WHOLE = f"data: {HELLO}\n\ndata: {STOP}\n\ndata: [DONE]\n\n"


def finding(case, *causes, rule=None):
    return Finding("t", case, Deviation("faithful", "lost", "the text", "a", "", rule), causes)


def chat(data, **more):
    return Case("openai-chat", (data.encode(),), **more)


def marked(data, *causes):
    """The bytes that are pointed at, neighbours together."""
    raw, runs, before = data.encode(), [], None
    for offset in marks(finding(chat(data), *causes)):
        if before is not None and offset == before + 1:
            runs[-1] += raw[offset : offset + 1]
        else:
            runs.append(raw[offset : offset + 1])
        before = offset
    return runs


@pytest.mark.parametrize(
    ("data", "cause", "bytes_"),
    [
        ("\ufeff" + WHOLE, "a byte order mark", [b"\xef\xbb\xbf"]),
        (": hello\n" + WHOLE, "a comment", [b": hello\n"]),
        (WHOLE.replace("data: [", "id: 1\ndata: ["), "an id field", [b"id: 1\n"]),
        (WHOLE.replace("data: {", "data:{", 1), "no space after the colon", [b":"]),
        (WHOLE.replace("\n\ndata: [", "\r\n\r\ndata: ["), "mixed line ends", [b"\r", b"\r"]),
        (WHOLE.replace("hi", "h\u2028"), "U+2028 in the text", [b"\xe2\x80\xa8"]),
        (WHOLE.replace("data: {", f"data: {HELLO}\n\ndata: {{", 1), "a repeated event", [b'data: {"']),
        (WHOLE.replace("data: [", 'data: {"choices":[]}\n\ndata: ['), "a chunk without choices", [b'data: {"']),
        (WHOLE.replace('"delta"', ' "delta"', 1), "the way its JSON is spelled", [b" "]),
    ],
)
def test_a_cause_is_pointed_at(data, cause, bytes_):
    assert marked(data, cause) == bytes_


def test_of_many_places_the_first_few_are_pointed_at():
    assert marked(WHOLE.replace("\n", "\r"), "CR line ends") == [b"\r\r", b"\r"]
    assert SPOTS == 3


def test_data_over_several_lines_is_pointed_at_where_it_breaks():
    data = WHOLE.replace('{"choices"', '{\ndata: "choices"', 1)
    assert marked(data, "data over several lines") == [b"\n"]


def test_two_causes_are_both_pointed_at():
    assert marked("\ufeff: x\n" + WHOLE, "a byte order mark", "a comment") == [b"\xef\xbb\xbf: x\n"]


def test_a_cause_that_is_a_cut_needs_no_mark():
    case = Case("openai-chat", (WHOLE[:9].encode(), WHOLE[9:].encode()))
    assert marks(finding(case, "a cut inside a JSON key")) == ()


def test_a_connection_that_breaks_is_pointed_at_where_it_does():
    assert marks(finding(chat(WHOLE, end="reset"), "a connection that breaks")) == (len(WHOLE),)


def worst(case):
    return read(case).judge(case.end).worst.rule


def test_the_event_that_breaks_a_rule_is_pointed_at():
    case = chat(WHOLE.replace(STOP, "oops"))
    start = case.data.index(b"oops")
    assert marks(finding(case, rule=worst(case))) == tuple(range(start, start + 4))


def test_a_rule_broken_by_what_is_missing_points_at_the_end():
    case = chat(f"data: {HELLO}\n\n")
    assert marks(finding(case, rule=worst(case))) == (len(case.data),)
    events = Case("openai-chat", (Event({"choices": [{"index": 0, "delta": {}}]}),), "events")
    assert marks(finding(events, rule=worst(events))) == (1,)


def test_a_rule_that_the_stream_does_not_break_points_nowhere():
    case = chat(WHOLE.replace(STOP, "oops"))
    assert marks(finding(chat(WHOLE), rule=worst(case))) == ()


def test_the_event_that_is_a_cause_is_pointed_at_by_its_index():
    frames = (Frame(HELLO), Frame('{"choices":[]}'), Frame(STOP), Frame("[DONE]"))
    assert marks(finding(Case("openai-chat", frames, "frames"), "a chunk without choices")) == (1,)


def test_the_frame_that_breaks_a_rule_is_pointed_at_by_its_index():
    case = Case("openai-chat", (Frame(HELLO), Frame("oops"), Frame(STOP), Frame("[DONE]")), "frames")
    assert marks(finding(case, rule=worst(case))) == (1,)


def test_nothing_is_pointed_at_in_a_probe_or_a_huge_case():
    assert marks(finding(chat(": x\n" + WHOLE, probe="released"), "a comment")) == ()
    assert marks(finding(chat(f": {'x' * COMPARED}\n" + WHOLE), "a comment")) == ()


PIECES = st.sampled_from(
    ("\ufeff", ": c\n", "id: 1\n", "\n", "\r", f"data:{HELLO}\n\n", f"data: {STOP}\r\n\r\n", "data: x")
)


@given(st.lists(PIECES, max_size=6).map("".join))
@settings(deadline=None, max_examples=60)
def test_whatever_the_causes_marks_stay_within_the_stream(data):
    case = chat(data)
    provider = get("openai-chat")
    for features in (framing_features, payload_features, kind_features):
        for name, _ in features(provider, case):
            found = marks(finding(case, name))
            assert all(0 <= offset <= len(case.data) for offset in found)
            assert list(found) == sorted(set(found))
