"""The ruler shows every byte, every cut and every mark, and nothing that could drive a terminal."""

from __future__ import annotations

import re
from itertools import chain
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from streamfuzz import legible, ruler
from streamfuzz.case import Case
from streamfuzz.spec import Delta, Final, Release, Snapshot
from streamfuzz.trace import Failure, Trace
from streamfuzz_strategies.stream import Event, Frame, Raw

# No caret or mark of a cut: with those the lines could not be told from those that point.
READABLE = st.text("ab, :\n\r\té你😀\u0301\u2028\x1b\x00א\x85\\nrtxE4u{}", max_size=60).map(str.encode)
ANYTHING = st.binary(max_size=80)


@st.composite
def cases(draw, data=ANYTHING, most=ruler.CROWD):
    whole = draw(data)
    cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=most - 1)))
    chunks = tuple(whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True))
    return Case("sse", chunks, end=draw(st.sampled_from(("eof", "reset"))))


ESCAPE = re.compile(r"\\x[0-9A-F]{2}|\\u\{[0-9A-F]+\}|(?:\\r)?\\n$|\\r$|.", re.DOTALL)


ESCAPES = re.compile(r"\\x[0-9A-F]{2}|\\u\{[0-9A-F]+\}|\\r\\n|\\r|\\n")


def piece(match):
    """The bytes that something in a row stands for.  A row that ends in \\n ends a line; elsewhere JSON says so."""
    escape = match[0]
    if escape.startswith(r"\x"):
        return bytes.fromhex(escape[2:])
    if escape.startswith(r"\u"):
        return chr(int(escape[3:-1], 16)).encode("utf-8", "surrogatepass")
    return {r"\n": b"\n", r"\r": b"\r", r"\r\n": b"\r\n"}.get(escape) or escape.encode()


def read_back(lines):
    """The bytes that an unabridged drawing shows, from its text alone."""
    gutter = re.match(r" *chunk +byte", lines[0]).end() + 2
    rows = [line[gutter:] for line in lines[1:-1] if "^" not in line]
    shown = [row for row in rows if row not in ("(empty chunk)", "(no bytes)")]
    return b"".join(piece(match) for row in shown for match in ESCAPE.finditer(row) if match[0] not in "┃|")


def parts(lines, *roles):
    """The rows of a drawing, only what has one of these roles."""
    return ["".join(span.text for span in line.spans if span.role in roles) for line in lines]


def sse(*chunks, end="eof"):
    return Case("sse", tuple(c.encode() if isinstance(c, str) else c for c in chunks), end=end)


def trace(items=(), after=(), ending="complete", result=None, failure=None, taken=2):
    return Trace(tuple(items), tuple(after), ending, result, failure, taken, True, 0.0)


@given(cases(READABLE), st.booleans())
@settings(deadline=None, max_examples=200)
def test_all_bytes_can_be_read_back(case, plain):
    assert read_back(ruler.draw(case, width=200, ascii=plain)) == case.data


def shown_bytes(lines):
    """The bytes that a drawing shows, told apart by what its parts are."""
    spans = [span for line in lines for span in line.spans]
    escapes = {"bytes": lambda text: [text.encode()], "escape": lambda text: map(piece, ESCAPES.finditer(text))}
    return b"".join(chain.from_iterable(escapes[span.role](span.text) for span in spans if span.role in escapes))


@given(cases(st.one_of(ANYTHING, READABLE), most=60), st.booleans(), st.integers(20, 400))
@settings(deadline=None, max_examples=300)
def test_no_byte_is_lost_at_any_width(case, plain, width):
    assert shown_bytes(ruler.lay(case, width=width, ascii=plain, rows=None)) == case.data


@given(st.lists(st.binary(min_size=1, max_size=2), min_size=32, max_size=45), st.booleans(), st.integers(20, 400))
@settings(deadline=None)
def test_no_byte_is_lost_where_chunks_crowd(chunks, even, width):
    chunks = [chunk[:1] for chunk in chunks] if even else [*chunks, b""]
    lines = ruler.lay(Case("sse", tuple(chunks)), width=width, rows=93)
    assert f"({len(chunks)} chunks" in " ".join(line.text.strip() for line in lines)
    assert shown_bytes(lines) == b"".join(chunks)
    assert max(cell_len(line.text) for line in lines) <= width


@pytest.mark.untraced
@given(cases(st.one_of(ANYTHING, READABLE), most=30), st.booleans(), st.integers(20, 400), st.lists(st.integers(0, 80)))
@settings(deadline=None, max_examples=300)
def test_nothing_in_a_drawing_can_drive_a_terminal_or_is_wider_than_it(case, plain, width, marks):
    did = trace([Delta(case.data.decode("utf-8", "replace")), {"data": "你" * width}], [1, 2], result={"a": "é" * 300})
    lines = ruler.draw(case, width=width, ascii=plain, marks=marks, trace=did)
    assert all(line.isprintable() for line in lines)
    assert all(line.isascii() for line in lines) or not plain
    assert max(map(cell_len, lines)) <= width


@given(cases(most=ruler.CROWD))
@settings(deadline=None, max_examples=200)
def test_each_chunk_is_numbered_and_has_its_offset(case):
    lines = ruler.draw(case, width=200)
    found = [tuple(map(int, match.groups())) for line in lines if (match := re.match(r" +(\d+) +(\d+)  ", line))]
    starts = [sum(map(len, case.chunks[:n])) for n in range(len(case.chunks))]
    assert found == [(n + 1, start) for n, start in enumerate(starts)]


@given(st.binary(min_size=3000, max_size=4000), st.data())
@settings(deadline=None, max_examples=40)
def test_a_long_case_is_short_but_keeps_what_stands_near_cuts_and_marks(data, draws):
    data = bytes(65 + byte % 26 for byte in data)
    cut, mark = (draws.draw(st.integers(100, len(data) - 100)) for _ in range(2))
    lines = ruler.draw(Case("sse", (data[:cut], data[cut:])), marks=(mark,))
    text = "".join(line[13:] for line in lines if "^" not in line)
    assert len(lines) <= 34
    for offset in (20, cut, mark, len(data) - 20):
        near = data[offset - 20 : offset + 20].decode()
        assert near in text.replace("┃", "")


@pytest.mark.untraced
@given(st.binary(min_size=3000, max_size=4000))
@settings(deadline=None, max_examples=40)
def test_what_is_left_out_is_counted(data):
    data = bytes(65 + byte % 26 for byte in data)
    text = "".join(line[13:] for line in ruler.draw(Case("sse", (data,)))[1:-1])
    gap = re.search(r"… (\d+) bytes …", text)
    assert len(text.replace(gap[0], "").replace("┃", "")) + int(gap[1]) == len(data)


@pytest.mark.untraced
@given(
    st.lists(st.sampled_from(("data: ", "a" * 50, "你", ", ", "\n\n", "\u202e")), min_size=100, max_size=400), st.data()
)
@settings(deadline=None, max_examples=60)
def test_what_is_left_out_is_counted_at_any_width(pieces, draws):
    data = "".join(pieces).encode()
    width, plain = draws.draw(st.integers(20, 400)), draws.draw(st.booleans())
    marks = draws.draw(st.lists(st.integers(0, len(data)), max_size=2))
    cut = draws.draw(st.integers(0, len(data)))
    lines = ruler.lay(Case("sse", (data[:cut], data[cut:])), width=width, ascii=plain, marks=marks)
    out = sum(int(re.search(r"\d+", row)[0]) for row in parts(lines, "gap") if row.strip())
    assert len(shown_bytes(lines)) + out == len(data)
    assert max(cell_len(line.text) for line in lines) <= width


def test_a_cut_inside_a_character_is_shown_and_named():
    assert ruler.draw(sse(b"data: \xe4", b"\xbd\xa0\n\n")) == [
        "chunk  byte",
        "    1     0  data: \\xE4┃",
        "                       ^ cut inside a 3-byte character: 你 is E4 ┃ BD A0",
        "    2     7  \\xBD\\xA0\\n",
        "             \\n",
        "  end    11  end of stream",
    ]


def test_there_is_a_drawing_in_ascii():
    assert ruler.draw(sse("data: é┃\n", "\n"), ascii=True)[:3] == [
        "chunk  byte",
        "    1     0  data: \\u{E9}\\u{2503}\\n",
        "                                   ^ cut between the two line ends of a blank line",
    ]
    assert ruler.draw(sse("da", "ta"), ascii=True)[1] == "    1     0  da|"


def test_a_cut_between_cr_and_lf_is_shown():
    lines = ruler.draw(sse("data: a\r", "\n\r\n"))
    assert lines[1:5] == [
        "    1     0  data: a\\x0D┃",
        "                        ^ cut inside CRLF",
        "    2     8  \\n",
        "             \\r\\n",
    ]


def test_a_character_cut_twice_shows_which_byte_is_where():
    lines = ruler.draw(sse(b"data: \xf0", b"\x9f\x98", b"\x80\n\n"))
    said = [line.split("character: ")[1] for line in lines if "character: " in line]
    assert said == ["😀 is F0 ┃ 9F 98 ┃ 80"] * 2


def test_a_divided_character_that_does_not_stand_is_named_by_its_escape():
    lines = ruler.draw(sse(b"data: \xe2\x80", b"\xae\n\n"), ascii=True)
    assert lines[2].endswith(r"^ cut inside a 3-byte character: \u{202E} is E2 80 | AE")


@pytest.mark.parametrize(
    "character",
    [*"\u0301\u0903\u05d0\u202e\u2066\u200b\u200d\u00ad\ufe0f\ufeff\u2028\u115f\u3164\u2800\x85\xa0", "🇩", "🏽"],
)
def test_what_is_not_seen_or_moves_its_neighbours_is_an_escape(character):
    lines = ruler.draw(sse(f"data: a{character}b\n\n"))
    assert lines[1] == f"    1     0  data: a\\u{{{ord(character):X}}}b\\n"


def test_what_looks_like_an_escape_or_a_cut_is_none():
    lines = ruler.draw(sse('data: "\\xE4\\u{41}\\t┃"\t\n\n'))
    assert lines[1] == r'    1     0  data: "\x5CxE4\x5Cu{41}\t\u{2503}"\x09\n'


def test_a_row_that_ends_in_an_escape_of_a_line_end_ends_a_line():
    for width in range(48, 80):
        rows = parts(ruler.lay(sse('data: "' + "\\n" * 40 + '"\n\n'), width=width), "bytes")
        assert not any(row.endswith("\\n") for row in rows)


def test_on_a_narrow_page_numbers_stand_above():
    did = trace((Delta("a"),), (1,), result={"text": "a"})
    assert ruler.draw(sse("data: a\n", "\n"), width=30, trace=did) == [
        "chunk 1, byte 0",
        "  data: a\\n",
        "           ^",
        "     cut between the two line ",
        "          ends of a blank line",
        "  → gave text 'a'",
        "chunk 2, byte 8",
        "  \\n",
        "end, byte 9",
        "  end of stream",
        "  → ended as complete: ",
        '    {"text":"a"}',
    ]


def test_events_on_a_narrow_page_are_numbered_above():
    lines = ruler.draw(Case("sse", (Event(Raw("a")),), "events"), width=20)
    assert lines == ["event 1", "  a", "end", "  end of stream"]


def test_a_page_has_at_least_twenty_columns():
    assert ruler.draw(sse("data: a\n\n"), width=3) == ruler.draw(sse("data: a\n\n"), width=20)


def test_with_room_for_all_rows_each_of_many_chunks_has_its_own():
    lines = ruler.draw(sse(*"data: abcdefgh\n\n"), rows=None)
    assert [line.split()[0] for line in lines if re.match(r" +\d+ +\d+  ", line)] == [str(n + 1) for n in range(16)]


def test_a_megabyte_is_drawn_at_once():
    before = perf_counter()
    lines = ruler.draw(sse("data: " + "x" * 1_000_000, "x\n\n"), rows=300)
    assert perf_counter() - before < 5
    assert re.search(r"… \d{6} bytes …", "\n".join(lines))


def test_an_empty_chunk_and_a_reset_are_named():
    assert ruler.draw(sse("data: a\n\n", "", end="reset"))[-2:] == [
        "    2     9  (empty chunk)",
        "  end     9  connection reset",
    ]


def test_a_stream_without_bytes_is_named():
    assert ruler.draw(Case("sse", ())) == ["chunk  byte", "             (no bytes)", "  end     0  end of stream"]


def test_a_stream_that_ends_within_a_line_shows_it():
    assert ruler.draw(sse("data: a"))[1] == "    1     0  data: a┃"


def test_a_raw_line_separator_does_not_look_like_its_json_escape():
    rows = ruler.draw(sse('data: "\u2028\\u2028"\n\n'))
    assert rows[1] == '    1     0  data: "\\u{2028}\\u2028"\\n'


def test_half_a_surrogate_pair_in_text_is_one_character():
    rows = ruler.draw(Case("sse", ("data: \ud83d",), "text"))
    assert rows[1] == "    1     0  data: \\u{D83D}┃"


def test_marks_point_at_bytes_and_at_the_end():
    assert ruler.draw(sse("data:你\n\n"), marks=(5, 10)) == [
        "chunk  byte",
        "    1     0  data:你\\n",
        "                  ^^ here",
        "             \\n",
        "  end    10  end of stream",
        "             ^ here",
    ]


def test_a_label_stands_before_its_caret_where_the_page_ends():
    lines = ruler.draw(sse("data: " + "a" * 40, "a\n\n"), width=60)
    assert lines[2].endswith("cut inside a text value ^")
    assert lines[2].index("^") == lines[1].index("┃")


def test_a_label_stands_below_its_caret_where_neither_side_has_room():
    lines = ruler.draw(sse("data: a\n", "\n"), width=50)
    assert lines[2:5] == [
        "                      ^",
        " " * 15 + "cut between the two line ends of a ",
        " " * 40 + "blank line",
    ]


def test_long_rows_break_behind_a_comma():
    lines = ruler.draw(sse('data: {"aaaaaaaaaaaaaaaaa":1,"bbbbbbbbbbbbbbb":2}\n\n'), width=50)
    assert lines[1].endswith('"aaaaaaaaaaaaaaaaa":1,')
    assert lines[2].strip() == '"bbbbbbbbbbbbbbb":2}\\n'


def test_whole_lines_are_left_out_where_there_are_lines():
    lines = ruler.draw(sse("".join(f"data: {n:>50}\n\n" for n in range(60))))
    gap = next(line for line in lines if "…" in line)
    shown = sum("data: " in line for line in lines)
    assert gap.strip() == f"… {(60 - shown) * 58} bytes …"
    assert all(line.endswith("\\n") for line in lines[1:-1] if line != gap)


def test_many_even_chunks_are_counted():
    lines = ruler.draw(sse(*"data: abcde\n\n"))
    assert lines[:3] == [
        "chunk  byte",
        "             (13 chunks of 1 byte each)",
        "    1     0  data: abcde\\n",
    ]


def test_many_uneven_chunks_are_marked_in_the_line():
    lines = ruler.draw(sse(*"abcdefghi", "", "jk\n\n"))
    assert lines[1:3] == [
        "             (11 chunks, 1 of them empty; ┃ stands where one ends)",
        "    1     0  a┃b┃c┃d┃e┃f┃g┃h┃i┃jk\\n",
    ]


def test_frames_are_drawn_one_a_line():
    case = Case("sse", (Frame('{"a":"\u2028"}'), Frame("x", "ping", "7", 5)), "frames")
    assert ruler.draw(case, marks=(1,)) == [
        "frame",
        r"""    1  {"data":"{\"a\":\"\u2028\"}"}""",
        '    2  {"event":"ping","data":"x","id":"7","retry":5}',
        "       ^ here",
        "  end  end of stream",
    ]


def test_events_are_drawn_one_a_line_with_their_names():
    case = Case("anthropic", (Event({"type": "ping"}, "ping"), Event(Raw("[DONE]"))), "events", end="reset")
    assert [line.strip() for line in ruler.draw(case)] == [
        "event",
        '1  ping {"type":"ping"}',
        "2  [DONE]",
        "end  connection reset",
    ]


def test_many_events_are_left_out_in_the_middle_but_not_near_a_mark():
    case = Case("ndjson", tuple(Event(n) for n in range(100)), "events")
    lines = [line.strip() for line in ruler.draw(case, marks=(50,))]
    assert "51  50" in lines
    assert "… 37 events …" in lines
    assert len(lines) <= 34


def test_a_long_event_loses_its_middle():
    case = Case("ndjson", (Event({"a": "x" * 9000}),), "events")
    lines = ruler.draw(case)
    assert any(" … " in line for line in lines)
    assert len(lines) <= 34


@given(st.text("ab, 你\u0301א\u200b\\", max_size=60), st.integers(20, 400), st.sampled_from(("anthropic", "sse")))
@settings(deadline=None)
def test_events_break_without_loss_at_any_width(text, width, provider):
    case = Case(provider, (Event(Raw("x" + text), "n"), Event(Raw("y"))), "events")
    lines = ruler.lay(case, width=width, rows=None)
    assert "".join(parts(lines, "bytes")).strip() == f"n x{legible.exact(text, False)}" + "y"
    assert max(cell_len(line.text) for line in lines) <= width


def test_a_case_without_events_says_so():
    assert "(no events)" in [line.strip() for line in ruler.draw(Case("ndjson", (), "events"))]


def test_what_the_target_gave_is_told_after_each_chunk():
    items = (Delta("a"), Delta("b"), Release({"name": "f"}), Snapshot({"text": "ab"}), Final({"text": "ab"}))
    did = trace(items, (1, 1, 2, 3, 3), result={"text": "ab"})
    lines = ruler.draw(sse("data: a\n\n", "data: b\n\n"), trace=did)
    assert lines[1:] == [
        "    1     0  data: a\\n",
        "             \\n",
        "               ^ cut between frames",
        "               → gave text 'ab'",
        "    2     9  data: b\\n",
        "             \\n",
        '               → gave a tool call to act on: {"name":"f"}',
        "  end    18  end of stream",
        '               → gave the whole so far: {"text":"ab"}',
        '               → gave the final message: {"text":"ab"}',
        '               → ended as complete: {"text":"ab"}',
    ]


def test_what_the_target_gave_of_events_is_told_after_each():
    did = trace(({"a": 1}, {"b": 2}), (1, 2))
    lines = [
        line.strip() for line in ruler.draw(Case("ndjson", (Event({"a": 1}), Event({"b": 2})), "events"), trace=did)
    ]
    assert lines[1:5] == ['1  {"a":1}', '→ gave {"a":1}', '2  {"b":2}', '→ gave {"b":2}']


def test_many_items_after_one_chunk_are_counted_unless_all_are_asked_for():
    did = trace([{"data": str(n)} for n in range(12)], [1] * 12)
    assert "               → gave 4 more" in ruler.draw(sse("data: a\n\n"), trace=did)
    assert '               → gave {"data":"11"}' in ruler.draw(sse("data: a\n\n"), trace=did, rows=None)


def test_what_is_given_among_many_chunks_is_told_with_its_moment():
    did = trace([{"data": str(n)} for n in range(14)], range(3, 17))
    lines = [line.strip() for line in ruler.draw(sse(*"data: abcdefghij"), trace=did)]
    assert '→ after chunk 3: gave {"data":"0"}' in lines
    assert "→ and so on, up to chunk 16" in lines


def test_a_long_thing_given_out_loses_its_middle_and_says_how_much():
    did = trace([Delta("z" * 5000)], [1], ending="hang")
    lines = ruler.draw(sse("data: a\n\n"), trace=did, width=80)
    told = "".join(line[17:] for line in lines if line.startswith(" " * 15))
    out = int(re.search(r" … (\d+) characters … ", told)[1])
    assert told.count("z") + out == 5000
    whole = ruler.draw(sse("data: a\n\n"), trace=did, width=80, rows=None)
    assert sum(line.count("z") for line in whole) == 5000


@pytest.mark.parametrize(
    ("did", "told"),
    [
        (trace(ending="incomplete"), "ended as incomplete"),
        (trace(ending="hang", taken=1), "did not end, after 1 of 2 chunks"),
        (
            trace(ending="error", failure=Failure("Oops", "\x1b[2J", "", True, False), taken=1),
            "ended with Oops, after 1 of 2 chunks: \\x1B[2J",
        ),
        (trace(items=[Delta("\x1b")], after=[3]), "ended as complete"),
    ],
)
def test_how_the_target_ended_is_told(did, told):
    lines = ruler.draw(sse("data: a\n\n", "data: b\n\n"), trace=did)
    assert lines[-1].strip() == f"→ {told}"
    assert all(line.isprintable() for line in lines)


def test_a_probe_says_what_is_done_and_shows_both_streams():
    case = Case("sse", (b"data: a\n\n",), probe="isolated", other=(b"data: b\n\n",))
    lines = ruler.draw(case)
    assert lines[0].startswith("Two streams: ")
    assert lines.index("first stream:") < lines.index("second stream:")
    assert "    1     0  data: b\\n" in lines[lines.index("second stream:") :]


def test_a_probe_of_one_stream_shows_it():
    assert "    1     0  data: a\\n" in ruler.draw(Case("sse", (b"data: a\n\n",), probe="released"))


def test_a_probe_that_makes_its_own_streams_has_no_ruler():
    assert len(ruler.draw(Case("sse", (), probe="growth-long"))) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 你", "plain é 你"),
        ("\x1b]0;title\x07", "\\x1B]0;title\\x07"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\u202egnp.exe", "\\u{202E}gnp.exe"),
        ("\ud800", "\\u{D800}"),
    ],
)
def test_text_is_made_printable(text, shown):
    assert ruler.printable(text) == shown


def test_text_is_made_ascii():
    assert ruler.printable("é", plain=True) == "\\u{E9}"
