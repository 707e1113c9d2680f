"""Streams before they are bytes: JSON by the letter of RFC 8259, and payloads spelled in a style."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfuzz_strategies.stream import Event, MalformedJson, Raw, Stream, parse_json, payloads
from streamfuzz_strategies.style import PLAIN, Style

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
spellings = st.builds(
    Style,
    separators=st.sampled_from(((",", ":"), (", ", ": "))),
    ascii=st.booleans(),
    escape_slash=st.booleans(),
    indent=st.sampled_from((None, 0, 2)),
    sort_keys=st.sampled_from((None, True, False)),
)


# --- JSON


@given(values)
def test_a_json_text_reads_back_as_its_value(value: Any) -> None:
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    "text", ["", " ", "{", "nul", "NaN", "Infinity", "-Infinity", "[NaN]", "1 2", "'a'", '"\n"', "01"]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(MalformedJson):
        parse_json(text)


def test_what_is_nested_too_deeply_is_refused_and_not_fatal() -> None:
    with pytest.raises(MalformedJson, match="nested too deeply"):
        parse_json("[" * 200_000)


def test_a_number_of_too_many_digits_is_refused_and_not_fatal() -> None:
    with pytest.raises(MalformedJson):
        parse_json("1" * 10_000)


def test_the_refusal_of_a_constant_names_it() -> None:
    with pytest.raises(MalformedJson, match="NaN is not JSON"):
        parse_json("NaN")


@pytest.mark.parametrize(
    ("text", "value"),
    [('{"a":1,"a":2}', {"a": 2}), (r'"\ud83d\ude00"', "\U0001f600"), (r'"\ud83d"', "\ud83d"), ('"\u2028"', "\u2028")],
)
def test_odd_but_lawful_json_is_read(text: str, value: Any) -> None:
    assert parse_json(text) == value


# --- spelling


@given(values, spellings)
def test_every_spelling_is_the_same_value_in_utf8(value: Any, style: Style) -> None:
    assert parse_json(style.spell(value).encode().decode()) == value


def test_half_a_surrogate_pair_is_escaped_whatever_the_style() -> None:
    for style in (PLAIN, Style(ascii=True)):
        assert style.spell({"\ud83d": "\ude00é"}).encode()
        assert json.loads(style.spell("\ud83d")) == "\ud83d"


def test_a_style_spells_as_it_says() -> None:
    value = {"b": "é/", "a": [1, {"d": 2, "c": 3}]}
    assert PLAIN.spell(value) == '{"b":"é/","a":[1,{"d":2,"c":3}]}'
    assert Style(ascii=True, escape_slash=True).spell("é/") == '"\\u00e9\\/"'
    assert Style(separators=(", ", ": ")).spell(value) == '{"b": "é/", "a": [1, {"d": 2, "c": 3}]}'
    assert Style(sort_keys=True).spell(value) == '{"a":[1,{"c":3,"d":2}],"b":"é/"}'
    assert Style(sort_keys=False).spell(value) == '{"b":"é/","a":[1,{"d":2,"c":3}]}'
    assert Style(indent=0).spell([1]) == "[\n1\n]"


# --- payloads


def test_payloads_are_spelled_json_or_raw_text_as_it_is() -> None:
    events = (Event({"a": 1}, "x"), Event(Raw("[DONE]")), Event("[DONE]"))
    assert payloads(events, PLAIN) == [('{"a":1}', "x"), ("[DONE]", None), ('"[DONE]"', None)]


def test_a_stream_is_plain_unless_styled() -> None:
    assert Stream("sse", ()).style is PLAIN
    assert Stream("sse", ()).reply is None
