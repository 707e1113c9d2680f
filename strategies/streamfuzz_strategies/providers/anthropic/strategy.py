"""Drawing Messages streams: the reply first, then one of the many ways to stream it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from hypothesis import strategies as st

from ...arguments import tool_texts
from ...reply import Choice, Json, Opaque, Part, Reasoning, Refusal, Reply, Text, ToolCall, Usage
from ...stream import Event
from ...text import slice_text, texts
from ..base import Alphabet, Draw, Drawing
from .protocol import CUT_REASONS, STOP_SEQUENCE, canonical, compact, json_object
from .reducer import CITATION, grouped, whole_block

CITATIONS: tuple[dict[str, Json], ...] = (
    {
        "type": "char_location",
        "cited_text": "\u00e9",
        "document_index": 0,
        "document_title": None,
        "start_char_index": 0,
        "end_char_index": 1,
    },
    {
        "type": "page_location",
        "cited_text": "a",
        "document_index": 0,
        "document_title": "t",
        "start_page_number": 1,
        "end_page_number": 2,
    },
    {
        "type": "content_block_location",
        "cited_text": "a",
        "document_index": 0,
        "document_title": None,
        "start_block_index": 0,
        "end_block_index": 1,
    },
    {
        "type": "web_search_result_location",
        "cited_text": "a",
        "encrypted_index": "Eo8=",
        "title": "t",
        "url": "https://a.example/",
    },
    {
        "type": "search_result_location",
        "cited_text": "a",
        "search_result_index": 0,
        "source": "s",
        "title": None,
        "start_block_index": 0,
        "end_block_index": 1,
    },
)
"""One citation of each type that the stable API has."""


def _server_call(name: str, given: dict[str, Json]) -> dict[str, Json]:
    return {"type": "server_tool_use", "id": "", "name": name, "input": given}


def _result(of: str, content: Json) -> dict[str, Json]:
    return {"type": f"{of}_tool_result", "tool_use_id": "", "content": content}


SERVER_TOOLS: tuple[tuple[dict[str, Json], dict[str, Json]], ...] = (
    (
        _server_call("web_search", {"query": "a \u4f60"}),
        _result(
            "web_search",
            [
                {
                    "type": "web_search_result",
                    "title": "t",
                    "url": "https://a.example/",
                    "encrypted_content": "Eq==",
                    "page_age": None,
                }
            ],
        ),
    ),
    (
        _server_call("web_search", {"query": "b"}),
        _result("web_search", {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}),
    ),
    (
        _server_call("web_fetch", {"url": "https://a.example/"}),
        _result("web_fetch", {"type": "web_fetch_tool_result_error", "error_code": "url_not_accessible"}),
    ),
    (
        _server_call("code_execution", {"code": 'print("\\n")'}),
        _result(
            "code_execution",
            {"type": "code_execution_result", "content": [], "return_code": 0, "stderr": "", "stdout": "\n\n"},
        ),
    ),
    (
        _server_call("bash_code_execution", {"command": "ls"}),
        _result(
            "bash_code_execution",
            {
                "type": "bash_code_execution_result",
                "content": [{"type": "bash_code_execution_output", "file_id": "file_1"}],
                "return_code": 0,
                "stderr": "",
                "stdout": "data: x\n",
            },
        ),
    ),
    (
        _server_call("text_editor_code_execution", {"command": "create", "path": "a"}),
        _result(
            "text_editor_code_execution",
            {"type": "text_editor_code_execution_create_result", "is_file_update": False},
        ),
    ),
    (
        _server_call("tool_search_tool_regex", {"pattern": "a.*"}),
        _result(
            "tool_search",
            {
                "type": "tool_search_tool_search_result",
                "tool_references": [{"type": "tool_reference", "tool_name": "now"}],
            },
        ),
    ),
)
"""Calls that the API runs itself, each with its result, which arrives whole."""

LONE_BLOCKS: tuple[dict[str, Json], ...] = (
    {"type": "redacted_thinking", "data": "EmwKAhgBEgy3+/="},
    {"type": "container_upload", "file_id": "file_1"},
)
"""Other blocks that arrive whole."""

_CITATION = st.sampled_from(CITATIONS)
_SERVER_TOOL = st.sampled_from(SERVER_TOOLS)
_LONE_BLOCK = st.sampled_from(LONE_BLOCKS)
_SIGNATURE = st.sampled_from(("EqQB", "ErUBCkYI+/==", "c2ln"))
_COUNT = st.sampled_from((1, 1, 2, 1, 1, 2, 3, 0, 4))
_MARKS = st.integers(2, 4)
_BOOL = st.booleans()
_SELDOM = st.sampled_from((False, False, False, True))
_MESSAGE_ID = st.sampled_from(("msg_1", "msg_01XFDUDYJgAACzvnptvVoYEL"))
_MODEL = st.sampled_from(("claude-sonnet-5", "claude-opus-5"))
_TOKENS = st.sampled_from((1, 7, 25, 1000))
_MANNER = st.sampled_from(("hostile", "hostile", "marked", "echo", "empty"))
_ECHO = st.sampled_from(("haha", "nonono", "  ", "\n\n\n"))
_CALL_FINISH = st.sampled_from(("tool_use", "tool_use", "tool_use", "max_tokens", "pause_turn"))
_TEXT_FINISH = st.sampled_from(
    (
        "end_turn",
        "end_turn",
        "stop_sequence",
        "refusal",
        "pause_turn",
        "max_tokens",
        "model_context_window_exceeded",
    )
)
_PINGS = st.sampled_from(((), (1,), (), (0,), (3,), (2, 5), (), (99, 99)))

_MARKED = re.compile(r"(?:<[a-z]\d>)+")
"""Text of which every four characters are a token that occurs only once in the stream."""


@lru_cache(maxsize=64)
def _texts(alphabet: Alphabet) -> st.SearchStrategy[str]:
    return texts(Drawing(alphabet=alphabet))


def _words(draw: Draw, drawing: Drawing, number: int) -> str:
    manner = draw(_MANNER) if drawing.alphabet is None else "hostile"
    if manner == "marked":
        letter = chr(ord("a") + number % 26)
        return "".join(f"<{letter}{n}>" for n in range(draw(_MARKS)))
    if manner == "echo":
        return draw(_ECHO)
    return "" if manner == "empty" else draw(_texts(drawing.alphabet))


def _text(draw: Draw, drawing: Drawing, number: int) -> list[Part]:
    return [Text(_words(draw, drawing, number))]


def _cited(draw: Draw, drawing: Drawing, number: int) -> list[Part]:
    return [Text(_words(draw, drawing, number)), Opaque(CITATION, canonical(draw(_CITATION)))]


def _thinking(draw: Draw, drawing: Drawing, number: int) -> list[Part]:
    return [Reasoning(_words(draw, drawing, number), draw(_SIGNATURE))]


def _call(draw: Draw, drawing: Drawing, number: int) -> list[Part]:
    name, arguments = tool_texts(draw, drawing)
    return [ToolCall(f"toolu_{number}", name, arguments)]


def _server_tool(draw: Draw, drawing: Drawing, number: int) -> list[Part]:
    call, result = draw(_SERVER_TOOL)
    named = {**call, "id": f"srvtoolu_{number}"}, {**result, "tool_use_id": f"srvtoolu_{number}"}
    return [Opaque(block["type"], canonical(block)) for block in named]


def _lone_block(draw: Draw, drawing: Drawing, number: int) -> list[Part]:
    block = draw(_LONE_BLOCK)
    return [Opaque(block["type"], canonical(block))]


_PART = st.sampled_from((_text, _text, _text, _call, _call, _thinking, _thinking, _cited, _server_tool, _lone_block))


def draw_reply(draw: Draw, drawing: Drawing) -> Reply:
    """Draw a message of at most ``drawing.max_parts`` parts (a citation counts as one)."""
    parts: list[Part] = []
    for number in range(min(draw(_COUNT), drawing.max_parts)):
        made: Callable[[Draw, Drawing, int], list[Part]] = draw(_PART)
        parts += made(draw, drawing, number)
    del parts[drawing.max_parts :]
    called = any(isinstance(part, ToolCall) for part in parts)
    finish = draw(_CALL_FINISH if called else _TEXT_FINISH)
    last = parts[-1] if parts else None
    if finish in CUT_REASONS and isinstance(last, ToolCall) and draw(_BOOL):
        parts[-1] = _torn(draw, last)
    usage = Usage(draw(_TOKENS), draw(_TOKENS))
    return Reply((Choice(tuple(parts), finish),), draw(_MESSAGE_ID), draw(_MODEL), usage)


def _torn(draw: Draw, call: ToolCall) -> ToolCall:
    """The call with the end of its arguments cut off; a cut before their first character would leave ``{}``."""
    length = draw(st.integers(1, len(call.arguments) - 1))
    return ToolCall(call.id, call.name, call.arguments[:length])


def _event(name: str, **members: Json) -> Event:
    """An event of this protocol: its SSE name is its type."""
    return Event({"type": name, **members}, name)


def draw_events(draw: Draw, reply: Reply, drawing: Drawing) -> tuple[Event, ...]:
    """Draw one way to stream the reply."""
    if not reply.choices:
        return ()
    choice = reply.choices[0]
    if _prefillable(choice) and draw(_BOOL):
        content = [whole_block(part, citations) for part, citations in grouped(choice.parts)]
        events = [_message_start(reply, reply.usage, content, choice.finish), _event("message_stop")]
    else:
        events = [_message_start(reply, _first_counts(draw, reply.usage))]
        for index, (part, citations) in enumerate(grouped(choice.parts)):
            start, deltas = _draw_block(draw, part, citations)
            events += _block(index, start, deltas)
        events += _draw_ending(draw, choice.finish, reply.usage)
    for place in draw(_PINGS):
        events.insert(min(place, len(events) - 1), _event("ping"))
    return tuple(events)


def plain_events(reply: Reply) -> tuple[Event, ...]:
    """The simplest way to stream a reply: one delta for each thing that a block says."""
    if not reply.choices:
        return ()
    choice = reply.choices[0]
    events = [_message_start(reply, reply.usage)]
    for index, (part, citations) in enumerate(grouped(choice.parts)):
        start, said = _begun(part, citations)
        events += _block(index, start, said)
    delta = _message_delta(choice.finish, reply.usage)
    return (*events, delta, _event("message_stop"))


def _prefillable(choice: Choice) -> bool:
    """Whether the whole message may stand in ``message_start``, as where code that runs in a container calls."""
    calls = [part for part in choice.parts if isinstance(part, ToolCall)]
    return (
        choice.finish == "tool_use"
        and len(calls) == len(choice.parts) > 0
        and all(_input(call.arguments) is not None for call in calls)
    )


def _input(arguments: str) -> dict[str, Json] | None:
    """The object from which these very arguments can be read back, if there is one."""
    value = json_object(arguments)
    return value if value is not None and compact(value) == arguments else None


def _first_counts(draw: Draw, usage: Usage | None) -> Usage | None:
    """What ``message_start`` counts: little output yet, and sometimes less input than in the end."""
    if usage is None or usage.input is None or usage.output is None:
        return usage
    return Usage(usage.input - 1 if draw(_SELDOM) else usage.input, 1)


def _message_start(reply: Reply, usage: Usage | None, content: Sequence[Json] = (), reason: str | None = None) -> Event:
    message = {
        **({} if reply.id is None else {"id": reply.id}),
        "type": "message",
        "role": "assistant",
        **({} if reply.model is None else {"model": reply.model}),
        "content": list(content),
        "stop_reason": reason,
        "stop_sequence": None,
        **_usage(usage),
    }
    return _event("message_start", message=message)


def _usage(usage: Usage | None, names: Sequence[str] = ("input", "output")) -> dict[str, Json]:
    if usage is None:
        return {}
    counts = {f"{name}_tokens": getattr(usage, name) for name in names}
    return {"usage": {name: count for name, count in counts.items() if count is not None}}


def _message_delta(
    reason: str | None,
    usage: Usage | None,
    names: Sequence[str] = ("output",),
    more: Mapping[str, Json] | None = None,
) -> Event:
    stop_sequence = STOP_SEQUENCE if reason == "stop_sequence" else None
    delta = {"stop_reason": reason, "stop_sequence": stop_sequence, **(more or {})}
    return _event("message_delta", delta=delta, **_usage(usage, names))


def _draw_ending(draw: Draw, reason: str | None, usage: Usage | None) -> list[Event]:
    """One ``message_delta`` or two: counts are totals, so two of them do not add up."""
    more = _REFUSED if reason == "refusal" and draw(_BOOL) else None
    endings = [_message_delta(reason, usage, ("input", "output"), more), _event("message_stop")]
    if usage is not None and usage.output is not None and draw(_SELDOM):
        endings.insert(0, _message_delta(reason if draw(_BOOL) else None, Usage(None, 1)))
    return endings


_REFUSED = {"stop_details": {"type": "refusal", "category": None, "explanation": None}}


def _block(index: int, start: Mapping[str, Json], deltas: Sequence[Mapping[str, Json]]) -> list[Event]:
    return [
        _event("content_block_start", index=index, content_block=start),
        *(_event("content_block_delta", index=index, delta=delta) for delta in deltas),
        _event("content_block_stop", index=index),
    ]


def _delta(kind: str, member: str, value: Json) -> dict[str, Json]:
    return {"type": kind, member: value}


def _begun(part: Part, citations: Sequence[Json]) -> tuple[dict[str, Json], list[dict[str, Json]]]:
    """A block's start before anything was said, and one delta for each thing that it says."""
    match part:
        case Text(text) | Refusal(text):
            cited: dict[str, Json] = {"citations": []} if citations else {}
            said = [_delta("citations_delta", "citation", citation) for citation in citations]
            return {"type": "text", "text": "", **cited}, [*said, *_said("text_delta", "text", text)]
        case Reasoning(text, signature):
            signed = _said("signature_delta", "signature", signature or "")
            start = {"type": "thinking", "thinking": "", "signature": ""}
            return start, [*_said("thinking_delta", "thinking", text), *signed]
        case ToolCall(id, name, arguments):
            named = {"type": "tool_use", **({} if id is None else {"id": id}), "name": name}
            said = [] if arguments == "{}" else _said("input_json_delta", "partial_json", arguments)
            return {**named, "input": {}}, said
        case Opaque():
            return _begun_opaque(whole_block(part) or {})


def _said(kind: str, member: str, text: str) -> list[dict[str, Json]]:
    return [_delta(kind, member, text)] if text else []


def _begun_opaque(block: dict[str, Json]) -> tuple[dict[str, Json], list[dict[str, Json]]]:
    given = block.get("input")
    if block["type"] not in ("server_tool_use", "mcp_tool_use") or not given:
        return block, []
    text = given if isinstance(given, str) else compact(given)
    return {**block, "input": {}}, _said("input_json_delta", "partial_json", text)


def _draw_block(draw: Draw, part: Part, citations: Sequence[Json]) -> tuple[dict[str, Json], list[dict[str, Json]]]:
    """Draw a block's start and its deltas."""
    start, said = _begun(part, citations)
    if isinstance(part, ToolCall):
        given = _input(part.arguments)
        if given is not None and draw(_SELDOM):
            return {**start, "input": given, "caller": {"type": "direct"}}, []
        if not said and draw(_BOOL):
            said = [_delta("input_json_delta", "partial_json", part.arguments)]
    deltas: list[dict[str, Json]] = []
    for delta in said:
        deltas += _draw_slices(draw, delta)
    if bool(citations) and draw(_SELDOM):
        # Seen are citations before the words that they belong to; nothing forbids them after these.
        deltas = deltas[len(citations) :] + deltas[: len(citations)]
    return start, deltas


_SLICED = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def _draw_slices(draw: Draw, delta: dict[str, Json]) -> list[dict[str, Json]]:
    member = _SLICED.get(delta["type"])
    if member is None:
        return [delta]
    pieces = _pieces(draw, delta[member])
    if member == "partial_json" and pieces[0] and draw(_BOOL):
        pieces.insert(0, "")
    return [{**delta, member: piece} for piece in pieces]


def _pieces(draw: Draw, text: str) -> list[str]:
    """Slice a text: one token to a delta where it is made of tokens, equal deltas where it repeats itself."""
    if _MARKED.fullmatch(text):
        return [text[at : at + 4] for at in range(0, len(text), 4)]
    half = len(text) // 2
    if half and text[:half] == text[half:] and draw(_BOOL):
        return [text[:half], text[half:]]
    return slice_text(draw, text, max_pieces=5)
