"""The public strategies: replies, streams, their bytes, and those bytes in chunks.

All take the same keyword arguments, which are checked when the strategy is made and not when it draws:

>>> from hypothesis import given
>>> tools = {"weather": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
>>> @given(fragmented("ollama", tools=tools))
... def test_my_parser(chunks):
...     assert my_parser(chunks) == my_parser([b"".join(chunks)])
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import jsonschema
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument
from hypothesis_jsonschema import from_schema

from . import mutations
from .cuts import chunks, fragmentations
from .providers import NAMES, Drawing, get
from .providers.base import Draw
from .reply import Json, Reply
from .stream import Stream
from .style import PLAIN
from .styles import styles
from .wire import Wire


def replies(
    provider: str = "openai-chat",
    *,
    tools: Mapping[str, Json] | None = None,
    alphabet: str | None = None,
    max_parts: int = 4,
) -> st.SearchStrategy[Reply]:
    """Replies that the provider's protocol can say.

    Args:
        provider: a name of :data:`.providers.NAMES`.
        tools: the tools that the model may call, by name, each the JSON Schema of its arguments, of type
            ``object``; by default a built-in set.  Where a schema lists properties and does not speak of
            others, only those are drawn.  The ``json`` profile draws its value from the schemas too.
        alphabet: characters that text is made of; by default text known to break readers.
        max_parts: at most so many parts in each choice, and frames or values in a plain profile; at least 1.

    Raises:
        InvalidArgument: an argument that is none of these; the message says what to pass.

    >>> replies("anthropic", alphabet="ab").example()  # doctest: +SKIP
    Reply(choices=(Choice(parts=(Text(text='ab'),), finish='end_turn'),), id='msg_1', model='m', usage=None)
    """
    return _replies(_known(provider), drawing(tools, alphabet, max_parts))


def streams(
    provider: str = "openai-chat",
    *,
    tools: Mapping[str, Json] | None = None,
    alphabet: str | None = None,
    max_parts: int = 4,
    styled: bool = False,
) -> st.SearchStrategy[Stream]:
    """Lawful streams: a reply, one of the many ways to slice it into events, and how they are framed.

    Args:
        provider: see :func:`replies`; so are ``tools``, ``alphabet`` and ``max_parts``.
        tools: see :func:`replies`.
        alphabet: see :func:`replies`.
        max_parts: see :func:`replies`.
        styled: draw any lawful style of framing and JSON spelling instead of the usual one.

    Raises:
        InvalidArgument: see :func:`replies`.

    >>> stream = streams("ollama", alphabet="a").example()  # doctest: +SKIP
    >>> encode(stream).splitlines()[-1]  # doctest: +SKIP
    b'{"model":"m","created_at":"2025-01-01T00:00:00Z",...,"done":true,"done_reason":"stop"}'
    """
    return _streams(_known(provider), drawing(tools, alphabet, max_parts), styled)


def wires(
    provider: str = "openai-chat",
    *,
    tools: Mapping[str, Json] | None = None,
    alphabet: str | None = None,
    max_parts: int = 4,
    styled: bool = False,
) -> st.SearchStrategy[bytes]:
    """The bytes of lawful streams.  Arguments and errors are those of :func:`streams`.

    >>> wires("json", tools={"f": {"type": "object", "maxProperties": 0}}).example()  # doctest: +SKIP
    b'{}'
    """
    return _streams(_known(provider), drawing(tools, alphabet, max_parts), styled).map(encode)


def fragmented(
    provider: str = "openai-chat",
    *,
    tools: Mapping[str, Json] | None = None,
    alphabet: str | None = None,
    max_parts: int = 4,
    styled: bool = False,
) -> st.SearchStrategy[list[bytes]]:
    r"""The bytes of lawful streams as chunks, cut anywhere, some of them perhaps empty.

    Arguments and errors are those of :func:`streams`.

    >>> fragmented("sse", alphabet="a", max_parts=1).example()  # doctest: +SKIP
    [b'data: a\n', b'\n']
    """
    return _fragmented(_streams(_known(provider), drawing(tools, alphabet, max_parts), styled))


def mutated(
    provider: str = "openai-chat",
    *,
    tools: Mapping[str, Json] | None = None,
    alphabet: str | None = None,
    max_parts: int = 4,
    styled: bool = False,
) -> st.SearchStrategy[bytes]:
    """The bytes of streams after one mutation: a lawful rewriting, or damage.

    What they are worth is not known from how they were made: ask :func:`.judge.judge`.  Arguments and errors are
    those of :func:`streams`.

    >>> mutated("ndjson", alphabet="a").example()  # doctest: +SKIP
    b'{"a":1}'
    """
    return _mutated(_streams(_known(provider), drawing(tools, alphabet, max_parts), styled))


def encode(stream: Stream) -> bytes:
    """The bytes of a stream, in its own style.

    Raises:
        ValueError: an event that the provider's framing cannot carry; drawn streams have none.
        LookupError: the stream's provider is not known.
    """
    return mutations.encode(get(stream.provider), stream)


# The composites are given names and not providers: Hypothesis prints arguments, and a provider prints at length.


@st.composite
def _replies(draw: Draw, provider: str, drawing: Drawing) -> Reply:
    return get(provider).draw_reply(draw, drawing)


@st.composite
def _streams(draw: Draw, provider: str, drawing: Drawing, styled: bool) -> Stream:
    found = get(provider)
    reply = found.draw_reply(draw, drawing)
    events = found.draw_events(draw, reply, drawing)
    style = draw(styles(found.framing.name)) if styled else PLAIN
    return Stream(provider, events, reply, style)


@st.composite
def _fragmented(draw: Draw, whole: st.SearchStrategy[Stream]) -> list[bytes]:
    stream = draw(whole)
    data = encode(stream)
    return list(chunks(data, draw(fragmentations(Wire(data, get(stream.provider).framing)))))


@st.composite
def _mutated(draw: Draw, whole: st.SearchStrategy[Stream]) -> bytes:
    stream = draw(whole)
    return mutations.apply(get(stream.provider), stream, (draw(mutations.mutations(stream)),))


def _known(provider: str) -> str:
    if provider not in NAMES:
        raise InvalidArgument(f"unknown provider {provider!r}; known: {', '.join(NAMES)}")
    return provider


def drawing(tools: Mapping[str, Json] | None = None, alphabet: str | None = None, max_parts: int = 4) -> Drawing:
    """Check what a user asks of drawn streams.

    Raises:
        InvalidArgument: see :func:`replies`.
    """
    if not isinstance(max_parts, int) or max_parts < 1:
        raise InvalidArgument(f"max_parts={max_parts!r} must be an int of at least 1")
    if alphabet is not None:
        _check_alphabet(alphabet)
    return Drawing(None if tools is None else _checked_tools(tools), alphabet, max_parts)


def _check_alphabet(alphabet: str) -> None:
    if not isinstance(alphabet, str) or not alphabet:
        raise InvalidArgument(f"alphabet={alphabet!r} must be a string of at least one character, or None")
    if any("\ud800" <= character <= "\udfff" for character in alphabet):
        raise InvalidArgument(f"alphabet={alphabet!r} has a lone surrogate, which UTF-8 cannot hold")


def _checked_tools(tools: Mapping[str, Json]) -> dict[str, Json]:
    """A copy of the tools, so that what is drawn does not change with the caller's own object."""
    if not isinstance(tools, Mapping):
        raise InvalidArgument(f"tools={tools!r} must map tool names to the JSON Schemas of their arguments")
    if not tools:
        raise InvalidArgument("tools is empty: name at least one tool, or leave it out for the built-in ones")
    return {name: _checked_schema(name, schema) for name, schema in tools.items()}


def _checked_schema(name: str, schema: Json) -> Json:
    if not isinstance(name, str) or not name:
        raise InvalidArgument(f"tool name {name!r} must be a string of at least one character")
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise InvalidArgument(
            f'tool {name!r}: {schema!r} must be a JSON Schema with "type": "object" for the arguments'
        )
    try:
        copy = _closed(json.loads(json.dumps(schema, allow_nan=False)))
        jsonschema.validators.validator_for(copy).check_schema(copy)
        nothing = from_schema(copy).is_empty
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"tool {name!r}: its schema is not JSON: {error}") from None
    except jsonschema.SchemaError as error:
        raise InvalidArgument(f"tool {name!r}: its schema is not a JSON Schema: {error.message}") from None
    if nothing:
        raise InvalidArgument(f"tool {name!r}: no arguments can satisfy its schema")
    return copy


def _closed(schema: dict[str, Json]) -> dict[str, Json]:
    """The schema without unnamed members: models send what a tool lists, and streams stay small."""
    if "properties" in schema and _OPENINGS.isdisjoint(schema):
        return {**schema, "additionalProperties": False}
    return schema


_OPENINGS = frozenset(
    (
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "dependentSchemas",
        "if",
        "minProperties",
        "oneOf",
        "patternProperties",
        "propertyNames",
        "unevaluatedProperties",
    )
)
"""Keywords that speak of members beyond ``properties``; a schema with one of them stays as it is."""
