"""Case files: what is written reads back, equal cases are one file, and what is wrong is told by name."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamfuzz.case import FORMAT, PROBES, Case, CaseError, CaseFile, Expectation, Found, digest, dump, load, schema
from streamfuzz.spec import UsageError
from streamfuzz_strategies.providers import NAMES
from streamfuzz_strategies.stream import Event, Frame, Raw

any_text = st.text(st.characters(codec="utf-8"), max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | any_text,
    lambda v: st.lists(v, max_size=2) | st.dictionaries(any_text, v),
)
chunks_by_form: dict[Any, st.SearchStrategy[Any]] = {
    "bytes": st.binary(max_size=12) | any_text.map(str.encode),
    "text": any_text,
    "frames": st.builds(Frame, any_text, any_text, any_text, st.none() | st.integers(0, 9)),
    "events": st.builds(Event, json_values | any_text.map(Raw), st.none() | any_text),
}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    takes = draw(st.sampled_from(sorted(chunks_by_form)))
    chunks = st.lists(chunks_by_form[takes], max_size=4).map(tuple)
    probe = draw(st.sampled_from(PROBES))
    end = draw(st.sampled_from(("eof", "reset")))
    return Case(draw(st.sampled_from(NAMES)), draw(chunks), takes, end, probe, draw(chunks) if probe else ())


words = st.text(max_size=8)
expectations = st.none() | st.builds(Expectation, words, st.none() | words, json_values)
founds = st.none() | st.builds(Found, words, words, words, words, words)
files = st.builds(CaseFile, cases(), any_text, expectations, founds)

SMALL = Case("sse", (b"data: a\n\n",))
VALIDATOR = jsonschema.Draft202012Validator(schema())


# --- round trips


@given(files)
@example(CaseFile(Case("sse", (b"\xff\xfe", "é".encode()[:1], b"", b"\x00\x7f"))))
@example(CaseFile(Case("sse", ("\u2028\ufeff\x85", ""), "text")))
@example(CaseFile(Case("openai-chat", (Event({"a": None}, "x"), Event(Raw("[DONE]")), Event(None)), "events")))
@example(CaseFile(Case("sse", (b"a",), "bytes", "eof", "isolated", (b"\xff", b"b"))))
def test_what_is_written_reads_back(file: CaseFile) -> None:
    assert load(dump(file)) == file


@pytest.mark.parametrize("takes", ["text", "events"])
def test_half_a_surrogate_pair_survives(takes: Any) -> None:
    chunk: Any = "a\ud83d" if takes == "text" else Event({"t": "\ude00"})
    file = CaseFile(Case("openai-chat", (chunk,), takes), "because of \ud83d", Expectation("complete", None, "\ude00"))
    assert load(dump(file)) == file


@given(files)
def test_a_file_is_what_the_schema_says(file: CaseFile) -> None:
    VALIDATOR.validate(json.loads(dump(file)))


@given(files)
def test_a_file_is_utf8_with_sorted_keys_one_chunk_a_line_and_a_line_end(file: CaseFile) -> None:
    text = dump(file).decode()
    assert text.endswith("}\n")
    assert json.dumps(json.loads(text), sort_keys=True) == json.dumps(json.loads(text))
    if file.case.takes in ("bytes", "text"):
        assert len(text.split("\n")) > len(file.case.chunks)


@given(files)
def test_nothing_in_a_file_is_mangled_by_editors(file: CaseFile) -> None:
    text = dump(file).decode()
    assert len(text.splitlines()) == text.count("\n")
    assert not set(text) & set("\ufeff\u202e\u200d\u00a0\x7f")


# --- names


@given(cases(), any_text, any_text)
def test_equal_cases_are_one_file_whatever_is_said_about_them(case: Case, why: str, reason: str) -> None:
    found = Found("t", "o", "s", reason)
    assert CaseFile(case, why).name == CaseFile(case, found=found).name == f"{digest(case)}.json"


@pytest.mark.parametrize(
    "other",
    [
        Case("ndjson", SMALL.chunks),
        Case("sse", (b"data: a\n", b"\n")),
        Case("sse", ("data: a\n\n",), "text"),
        Case("sse", SMALL.chunks, end="reset"),
        Case("sse", SMALL.chunks, probe="released"),
        Case("sse", SMALL.chunks, other=SMALL.chunks),
    ],
)
def test_different_cases_are_different_files(other: Case) -> None:
    assert digest(other) != digest(SMALL)


def test_names_never_change_from_one_version_to_the_next() -> None:
    assert digest(SMALL) == "3de8869b38541a32"


# --- sizes


def test_every_cut_and_every_byte_counts() -> None:
    assert SMALL.size == 10
    assert Case("sse", (b"data: a\n", b"\n")).size == 11
    assert Case("sse", (b"ab",), other=(b"c",)).size == 5
    assert Case("sse", ("é",), "text").data == "é".encode()


# --- what is wrong


def broken(**changes: Any) -> bytes:
    good = {"format": FORMAT, "provider": "sse", "takes": "bytes", "chunks": ["a"]}
    return json.dumps({name: value for name, value in {**good, **changes}.items() if value is not ...}).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: a case file is a JSON object"),
        (b" \n", "is empty"),
        (b"{", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "a JSON object with a 'format' is needed"),
        (b"7", "a JSON object with a 'format' is needed"),
        (broken(format=...), "a JSON object with a 'format' is needed"),
        (broken(format=99), "has format 99, this version reads 1: install the streamfuzz that wrote it"),
        (broken(format="1"), "has format '1'"),
        (broken(chunks=...), "missing required field `chunks`"),
        (broken(surprise=1), "unknown field `surprise`"),
        (broken(chunks="a"), "Expected `array`"),
        (broken(chunks=[7]), "$.chunks[0]"),
        (broken(chunks=[{"hex": "0g"}]), "hexadecimal"),
        (broken(chunks=[{}]), "must be text or an object with 'hex', 'frame' or 'event'"),
        (broken(chunks=[{"frame": {"data": "a"}}]), "must be text or an object with 'hex'"),
        (broken(chunks=[{"hexx": "00"}]), "unknown field `hexx`"),
        (broken(takes="text", chunks=[{"hex": "00"}]), "a chunk of text must be text"),
        (broken(takes="frames"), "a chunk of frames is an object, not text"),
        (broken(takes="frames", chunks=[{"frame": {"event": "x"}}]), "missing required field `data`"),
        (broken(takes="events", chunks=[{"event": {}}]), "an event must have 'json' or 'text'"),
        (broken(takes="events", chunks=[{"event": {"json": 1, "text": "a"}}]), "an event must have 'json' or 'text'"),
        (broken(takes="events", chunks=[{"event": {"json": 1, "x": 1}}]), "an event must have 'json' or 'text'"),
        (broken(provider="gpt"), "provider 'gpt' is not known; known: anthropic"),
        (broken(takes="words", chunks=[]), "takes 'words' is not known; known: bytes, text, frames, events"),
        (broken(takes="words"), "takes 'words' is not known"),
        (broken(end="timeout"), "end 'timeout' is not known; known: eof, reset"),
        (broken(probe="taste"), "probe 'taste' is not known; known: isolated"),
        (broken(found={"target": "t"}), "missing required field `oracle`"),
    ],
)
def test_a_bad_file_is_told_by_name_and_by_what_is_wrong(content: bytes, message: str) -> None:
    with pytest.raises(CaseError) as refusal:
        load(content, "corpus/x.json")
    assert str(refusal.value).startswith("corpus/x.json ")
    assert message in str(refusal.value)


@given(st.binary(max_size=60))
def test_reading_any_bytes_gives_a_case_or_says_what_is_wrong(content: bytes) -> None:
    with pytest.raises(CaseError, match=r"^x\.json "):
        load(content, "x.json")


@given(files, st.data())
def test_a_file_cut_short_is_refused(file: CaseFile, data: st.DataObject) -> None:
    content = dump(file)
    length = data.draw(st.integers(0, len(content) - 3))
    with pytest.raises(CaseError):
        load(content[:length])


def test_a_bad_file_is_the_users_to_mend() -> None:
    assert issubclass(CaseError, UsageError)


@pytest.mark.parametrize(
    "change",
    [{"format": "1"}, {"chunks": [7]}, {"surprise": 1}, {"chunks": [{"hexx": ""}]}, {"takes": 1}, {"chunks": ...}],
)
def test_the_schema_refuses_what_the_reader_refuses(change: dict[str, Any]) -> None:
    assert VALIDATOR.is_valid(json.loads(broken()))
    assert not VALIDATOR.is_valid(json.loads(broken(**change)))
