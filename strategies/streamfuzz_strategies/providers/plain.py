"""Plain profiles for parsers that know no provider: ``sse``, ``ndjson`` and ``json``.

Their events are what the framing carries: any text under any name, any JSON values one a line, or one JSON
value.  The reply of such a stream is the list of what it carried, each piece an :class:`~..reply.Opaque` part
with canonical JSON text (members sorted), so that the laws of providers hold here too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache

from hypothesis import strategies as st

from ..arguments import tool_values
from ..framing.json_text import JSON_TEXT
from ..framing.ndjson import NDJSON
from ..framing.sse import SSE
from ..reply import Choice, Json, Opaque, Reply, ToolCall
from ..rules import END, Break, Machine, Rule, Step, Walk
from ..stream import Event, Raw
from ..text import texts
from .base import Alphabet, Draw, Drawing, Provider

HTML = "https://html.spec.whatwg.org/multipage/server-sent-events.html"
NDJSON_SPEC = "https://github.com/ndjson/ndjson-spec"
RFC8259 = "https://www.rfc-editor.org/rfc/rfc8259#section-2"

MISSING = Rule("json.value.missing", "the text ended before it held a JSON value", RFC8259)
SECOND = Rule("json.value.second", "a second value followed the one that a JSON text holds", RFC8259)

UNENDING = {"stream": Machine("stream", "open", {"open": {}}, always=True)}
"""Any number of frames or lines, so nothing that a table could miss."""

ONE_VALUE = {
    "stream": Machine(
        "stream",
        "empty",
        {
            "empty": {"value": "done", END: Break(MISSING, "empty")},
            "done": {"value": Break(SECOND, "done", "skip"), END: "done"},
        },
        always=True,
    )
}


def _no_steps(event: Event, walk: Walk) -> Iterable[Step]:
    return ()


def _value_steps(event: Event, walk: Walk) -> Iterable[Step]:
    return () if isinstance(event.data, Raw) else (Step("stream", "value"),)


def _no_error(event: Event) -> str | None:
    return None


def _frame_kind(event: Event) -> str:
    return "frame"


def _value_kind(event: Event) -> str:
    return "unknown" if isinstance(event.data, Raw) else "value"


def _canonical(value: Json) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits, to be written
        return "null"


class FrameReducer:
    """Lists the name and text of every frame; without a name it is a ``message``."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[Opaque] = []

    def apply(self, event: Event) -> None:
        """Take in one frame."""
        text = event.data.text if isinstance(event.data, Raw) else _canonical(event.data)
        self._parts.append(_frame_part(event.name or "message", text))

    def reply(self) -> Reply:
        """One choice that lists the frames."""
        return Reply((Choice(tuple(self._parts)),))

    def released(self) -> Sequence[ToolCall]:
        """Nothing: frames are no calls."""
        return ()


class ValueReducer:
    """Lists every JSON value, at most ``limit`` of them."""

    __slots__ = ("_limit", "_parts")

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._parts: list[Opaque] = []

    def apply(self, event: Event) -> None:
        """Take in one value; text that is no JSON is passed over."""
        if not isinstance(event.data, Raw) and len(self._parts) != self._limit:
            self._parts.append(_value_part(event.data))

    def reply(self) -> Reply:
        """One choice that lists the values."""
        return Reply((Choice(tuple(self._parts)),))

    def released(self) -> Sequence[ToolCall]:
        """Nothing: values are no calls."""
        return ()


def _one_value() -> ValueReducer:
    return ValueReducer(1)


def _frame_part(name: str, text: str) -> Opaque:
    return Opaque("frame", _canonical([name, text]))


def _value_part(value: Json) -> Opaque:
    return Opaque("value", _canonical(value))


_FRAME_NAMES = st.sampled_from(
    (
        "message",
        "message",
        "error",
        "ping",
        "a b",
        " x",
        "x:y",
        ":",
        "data",
        "\u00e9\U0001f600",
        "\u2028",
        "\x00",
    )
)
_FRAME_TEXTS = st.sampled_from(
    ("", "\n", "\n\n", "a\n", "\nb", " a", "  ", "a\nb\n\nc", ":", "\ufeffa", "{}", "[DONE]")
)
_SPELL_NAME = st.booleans()
_NUMBERS = st.sampled_from((0, 1, -1, 2**53, 2**53 + 1, -(2**63), 10**30, 0.5, -0.0, 1e-7, 1.5e300, 5e-324))
_CONSTANTS = st.sampled_from((None, True, False))
_NAMES = ("a", "b", "", "data", "__proto__", "a b", "\u2028", "\u00e9\U0001f600", '"', "\\")


def _draw_frames(draw: Draw, drawing: Drawing) -> Reply:
    frames = draw(_frames(drawing.alphabet, drawing.max_parts))
    # A carriage return ends a line in SSE whatever stands around it, so no frame can hold one.
    return _listed(_frame_part(name, text.replace("\r", "")) for name, text in frames)


@lru_cache(maxsize=64)
def _frames(alphabet: Alphabet, limit: int) -> st.SearchStrategy[list[tuple[str, str]]]:
    words = texts(Drawing(alphabet=alphabet), min_size=0)
    text = st.one_of(words, _FRAME_TEXTS) if alphabet is None else words
    return st.lists(st.tuples(_FRAME_NAMES, text), min_size=1, max_size=limit)


def _frame_events(draw: Draw, reply: Reply, drawing: Drawing) -> tuple[Event, ...]:
    return _to_frames(reply, default="message" if draw(_SPELL_NAME) else None)


def _plain_frames(reply: Reply) -> tuple[Event, ...]:
    return _to_frames(reply, default=None)


def _to_frames(reply: Reply, *, default: str | None) -> tuple[Event, ...]:
    pairs = [json.loads(data) for data in _data(reply)]
    return tuple(Event(Raw(text), default if name == "message" else name) for name, text in pairs)


def _draw_lines(draw: Draw, drawing: Drawing) -> Reply:
    values = draw(_value_lists(drawing.alphabet, drawing.max_parts))
    return _listed(map(_value_part, values))


def _draw_value(draw: Draw, drawing: Drawing) -> Reply:
    if drawing.tools is not None or draw(_FROM_TOOL):
        return _listed((_value_part(tool_values(draw, drawing)[1]),))
    return _listed((_value_part(draw(_values(drawing.alphabet))),))


_FROM_TOOL = st.sampled_from((True, False))


@lru_cache(maxsize=64)
def _values(alphabet: Alphabet) -> st.SearchStrategy[Json]:
    """JSON values up to three levels deep, mostly objects."""
    text = texts(Drawing(alphabet=alphabet), min_size=0)
    names = st.sampled_from(_NAMES) if alphabet is None else text
    leaf = _evenly(text, _NUMBERS, _CONSTANTS)
    flat = _evenly(leaf, st.lists(leaf, max_size=3), st.dictionaries(names, leaf, max_size=3))
    nested = st.dictionaries(names, flat, max_size=3)
    return _evenly(nested, leaf, st.lists(flat, max_size=3), nested)


def _evenly(*strategies: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    # Not one_of: it would count each family of text as a branch of its own, and hardly ever draw a number.
    return st.integers(0, len(strategies) - 1).flatmap(strategies.__getitem__)


@lru_cache(maxsize=64)
def _value_lists(alphabet: Alphabet, limit: int) -> st.SearchStrategy[list[Json]]:
    return st.lists(_values(alphabet), min_size=1, max_size=limit)


def _value_events(draw: Draw, reply: Reply, drawing: Drawing) -> tuple[Event, ...]:
    return _plain_values(reply)


def _plain_values(reply: Reply) -> tuple[Event, ...]:
    return tuple(Event(json.loads(data)) for data in _data(reply))


def _listed(parts: Iterable[Opaque]) -> Reply:
    return Reply((Choice(tuple(parts)),))


def _data(reply: Reply) -> list[str]:
    return [part.data for part in reply.choices[0].parts if isinstance(part, Opaque)]


PROVIDERS = {
    "sse": Provider(
        name="sse",
        title="server-sent events, whatever they carry",
        source=HTML,
        framing=SSE,
        machines=UNENDING,
        steps=_no_steps,
        reducer=FrameReducer,
        draw_reply=_draw_frames,
        draw_events=_frame_events,
        plain_events=_plain_frames,
        error=_no_error,
        kind=_frame_kind,
        text_payloads=True,
    ),
    "ndjson": Provider(
        name="ndjson",
        title="JSON values, one a line",
        source=NDJSON_SPEC,
        framing=NDJSON,
        machines=UNENDING,
        steps=_no_steps,
        reducer=ValueReducer,
        draw_reply=_draw_lines,
        draw_events=_value_events,
        plain_events=_plain_values,
        error=_no_error,
        kind=_value_kind,
        schemas={"value": {}},
    ),
    "json": Provider(
        name="json",
        title="one JSON value",
        source=RFC8259,
        framing=JSON_TEXT,
        machines=ONE_VALUE,
        steps=_value_steps,
        reducer=_one_value,
        draw_reply=_draw_value,
        draw_events=_value_events,
        plain_events=_plain_values,
        error=_no_error,
        kind=_value_kind,
        schemas={"value": {}},
        over=frozenset(),  # what follows the value is not ignored: it spoils the text
    ),
}
