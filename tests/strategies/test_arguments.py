"""Tool arguments: they follow their schema, however they are spelled."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from streamfuzz_strategies.arguments import TOOLS, tool_texts, tool_values
from streamfuzz_strategies.providers import Drawing

quick = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
search = settings(deadline=None, database=None, max_examples=2000, phases=[Phase.generate])

WEATHER = {"weather": {"type": "object", "properties": {"city": {"const": "Köln"}}, "required": ["city"]}}


@st.composite
def called(draw: st.DrawFn, tools: Any = None) -> tuple[str, Any]:
    return tool_values(draw, Drawing(tools))


@st.composite
def spelled(draw: st.DrawFn, tools: Any = None) -> tuple[str, str]:
    return tool_texts(draw, Drawing(tools))


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_the_built_in_schemas_are_schemas_of_objects(name: str) -> None:
    Draft202012Validator.check_schema(TOOLS[name])
    assert TOOLS[name]["type"] == "object"


@quick
@given(called())
def test_arguments_follow_the_schema_of_their_tool(call: tuple[str, Any]) -> None:
    name, value = call
    Draft202012Validator(TOOLS[name]).validate(value)


@quick
@given(spelled())
def test_argument_texts_are_json_that_follows_the_schema(call: tuple[str, str]) -> None:
    name, text = call
    Draft202012Validator(TOOLS[name]).validate(json.loads(text))
    assert text.encode()


@quick
@given(called(WEATHER))
def test_only_the_users_tools_are_called(call: tuple[str, Any]) -> None:
    name, value = call
    assert name == "weather"
    assert value["city"] == "Köln"


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_built_in_tool_is_called(name: str) -> None:
    assert find(called(), lambda call: call[0] == name, settings=search)[0] == name


def test_a_tool_without_arguments_takes_an_empty_object() -> None:
    assert find(called(), lambda call: call[0] == "now", settings=search) == ("now", {})


@pytest.mark.parametrize("wanted", ["\\u00f6", "ö", '": "', '":"'])
def test_arguments_are_spelled_in_several_ways(wanted: str) -> None:
    assert wanted in find(spelled(WEATHER), lambda call: wanted in call[1], settings=search)[1]
