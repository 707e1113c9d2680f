"""Draw replies that the Responses API can give, and write them as one of their many lawful streams.

The answer's parts are laid out over output items: neighbouring texts and refusals may share a message, thinking
comes as a summary or as the reasoning itself, provider tools that stand side by side may overlap.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from hypothesis import strategies as st

from ...arguments import tool_texts
from ...reply import Choice, Json, Opaque, Part, Reasoning, Refusal, Reply, Text, ToolCall, Usage, usage_of
from ...stream import Event
from ...text import slice_text, texts
from ..base import Draw, Drawing
from .events import PROGRESS, WORDS, canonical, parts_of

Object: TypeAlias = dict[str, Json]

_SIZES = (1, 1, 1, 1, 2, 2, 3, 0, 4)
_KINDS = ("text", "text", "call", "call", "reasoning", "refusal", "tool", "text")
_TOOLS = ("web_search_call", "custom_tool_call")
_TEXTS = ("hostile", "hostile", "tokens", "echo")
_FINISHES = ("completed",) * 5 + ("incomplete:max_output_tokens", "incomplete:content_filter")
_MODELS = ("gpt-5", "gpt-4.1-mini")
_SIGNATURES = (None, "gAAAAB+/c2ln==", "gAAAAA")
_COUNTS = (1, 0, 7, 1000)
_BARE = (False,) * 5 + (True,)
_AT_END = -1
_CITED = (None, None, None, 0, _AT_END)
_NOISE = ("", "x", "aZ09", "q7")
_OWN_PIECES = re.compile(r"\[\d+\]|ha")


@lru_cache(maxsize=256)
def _one_of(options: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(options)


def draw_reply(draw: Draw, drawing: Drawing) -> Reply:
    """Draw a reply: up to ``drawing.max_parts`` parts, finished or cut off."""
    size = min(draw(_one_of(_SIZES)), drawing.max_parts)
    parts = [_draw_part(draw, drawing, at) for at in range(size)]
    finish = draw(_one_of(_FINISHES))
    if parts and finish == "incomplete:max_output_tokens" and isinstance(parts[-1], ToolCall):
        whole = parts[-1].arguments
        parts[-1] = ToolCall(parts[-1].id, parts[-1].name, whole[: draw(st.integers(0, len(whole)))])
    usage = Usage(draw(_one_of(_COUNTS)), draw(_one_of(_COUNTS)))
    return Reply((Choice(tuple(parts), finish),), "resp_1", draw(_one_of(_MODELS)), usage)


def _draw_part(draw: Draw, drawing: Drawing, at: int) -> Part:
    match draw(_one_of(_KINDS)):
        case "text":
            return Text(_draw_text(draw, drawing, at))
        case "refusal":
            return Refusal(_draw_text(draw, drawing, at))
        case "reasoning":
            signature = draw(_one_of(_SIGNATURES))
            silent = signature is not None and draw(_one_of((False, True)))
            return Reasoning("" if silent else _draw_text(draw, drawing, at), signature)
        case "call":
            name, arguments = tool_texts(draw, drawing)
            return ToolCall(f"call_{at}", name, arguments)
        case _:
            kind = draw(_one_of(_TOOLS))
            return Opaque(kind, canonical(_tool_item(kind, _draw_text(draw, drawing, at), at)))


def _draw_text(draw: Draw, drawing: Drawing, at: int) -> str:
    how = "hostile" if drawing.alphabet is not None else draw(_one_of(_TEXTS))
    if how == "hostile":
        return draw(texts(drawing))
    count = draw(_one_of((2, 3, 4)))
    return "ha" * count if how == "echo" else "".join(f"[{at * 10 + n}]" for n in range(count))


def _tool_item(kind: str, text: str, at: int) -> Object:
    if kind == "web_search_call":
        action = {"type": "search", "query": text}
        return {"type": kind, "id": f"ws_{at}", "status": "completed", "action": action}
    return {"type": kind, "id": f"ctc_{at}", "call_id": f"call_{at}", "name": "patch", "input": text}


class _Choices(Protocol):
    """Who decides where a reply can be streamed in more than one way."""

    def pick(self, options: tuple[Any, ...]) -> Any:
        """One of the options, of which the first is the plainest."""
        ...

    def pieces(self, text: str) -> list[str]:
        """The deltas of a text."""
        ...


class _Plainest:
    def pick(self, options: tuple[Any, ...]) -> Any:
        return options[0]

    def pieces(self, text: str) -> list[str]:
        return [text]


class _Drawn:
    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def pick(self, options: tuple[Any, ...]) -> Any:
        return self._draw(_one_of(options))

    def pieces(self, text: str) -> list[str]:
        own = _OWN_PIECES.findall(text)
        if len(own) > 1 and "".join(own) == text and self.pick((True, False)):
            return own
        return slice_text(self._draw, text)


def draw_events(draw: Draw, reply: Reply, drawing: Drawing) -> tuple[Event, ...]:
    """Draw one of the lawful streams of a reply."""
    return _Writer(_Drawn(draw)).stream(reply)


def plain_events(reply: Reply) -> tuple[Event, ...]:
    """The shortest lawful stream of a reply."""
    return _Writer(_Plainest()).stream(reply)


def body(reply: Reply) -> Json:
    """The response object with which the API answers when it does not stream."""
    return _response(reply, [_item(held, at, reply) for at, held in enumerate(_layout(reply, _Plainest()))])


def read_body(response: Json) -> Reply:
    """The reply in a response object, read as a stream's terminal response is."""
    held = response if isinstance(response, dict) else {}
    output, status, details = held.get("output"), held.get("status"), held.get("incomplete_details")
    parts = tuple(part for item in (output if isinstance(output, list) else ()) for part in parts_of(item))
    reason = details.get("reason") if status == "incomplete" and isinstance(details, dict) else None
    finish = f"{status}:{reason}" if isinstance(reason, str) else status if isinstance(status, str) else None
    usage = usage_of(held.get("usage"), "input_tokens", "output_tokens")
    name, model = (held.get(member) for member in ("id", "model"))
    return Reply(
        (Choice(parts, finish),),
        name if isinstance(name, str) else None,
        model if isinstance(model, str) else None,
        usage,
    )


def _layout(reply: Reply, choices: _Choices) -> list[list[Part]]:
    """The parts of each output item."""
    items: list[list[Part]] = []
    for part in reply.choices[0].parts:
        words = isinstance(part, (Text, Refusal))
        if words and items and isinstance(items[-1][0], (Text, Refusal)) and choices.pick((False, True)):
            items[-1].append(part)
        else:
            items.append([part])
    return items


def _cut(reply: Reply) -> bool:
    return (reply.choices[0].finish or "").startswith("incomplete")


def _item(parts: Sequence[Part], at: int, reply: Reply, *, shown: bool = False) -> Object:
    """The final form of an output item; ``shown``: reasoning that is not summarised but given itself."""
    last = _cut(reply) and parts[-1] is reply.choices[0].parts[-1]
    status = "incomplete" if last else "completed"
    match parts[0]:
        case Reasoning(text, signature):
            key, kind = ("content", "reasoning_text") if shown else ("summary", "summary_text")
            held = [{"type": kind, "text": half} for half in _halves(text)] if text else []
            item: Object = {"type": "reasoning", "id": f"rs_{at}", "summary": [], key: held}
            return item if signature is None else {**item, "encrypted_content": signature}
        case ToolCall(name, called, arguments):
            told = {"call_id": name, "name": called, "arguments": arguments}
            return {"type": "function_call", "id": f"fc_{at}", "status": status, **told}
        case Opaque(_, data):
            return dict(json.loads(data))
        case _:
            content = [_part(part) for part in parts]
            head = {"type": "message", "id": f"msg_{at}", "status": status, "role": "assistant"}
            return {**head, "content": content}


def _halves(text: str) -> list[str]:
    """A text as the parts of a summary: two where it has an own seam in the middle, else one."""
    middle = len(text) // 2
    return [text[:middle], text[middle:]] if text[middle - 1 : middle] in ("]", "a", " ") else [text]


def _part(part: Part) -> Object:
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text}
    assert isinstance(part, Text)
    return {"type": "output_text", "text": part.text, "annotations": []}


def _empty(part: Object) -> Object:
    """A part as it is when it is added."""
    nothing: Object = {"text": "", "refusal": "", "annotations": []}
    return {member: nothing.get(member, value) for member, value in part.items()}


def _response(reply: Reply, output: list[Json] | None) -> Object:
    """The response object: as it is when created (no output yet) or when it ended."""
    status, _, reason = (reply.choices[0].finish or "completed").partition(":")
    usage = reply.usage
    ended = {
        "incomplete_details": {"reason": reason} if reason else None,
        "usage": None
        if usage is None
        else {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": (usage.input or 0) + (usage.output or 0),
        },
    }
    return {
        "id": reply.id,
        "object": "response",
        "created_at": 1,
        "model": reply.model,
        "status": "in_progress" if output is None else status,
        "output": output or [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **({} if output is None else ended),
    }


class _Writer:
    """Writes one stream, numbering its events."""

    def __init__(self, choices: _Choices) -> None:
        self.choices = choices
        self.events: list[Event] = []
        self.obfuscated = False

    def say(self, name: str, **members: Json) -> None:
        """Write one event."""
        number = len(self.events)
        if self.obfuscated and name.endswith(".delta"):
            members["obfuscation"] = _NOISE[number % len(_NOISE)]
        self.events.append(Event({"type": name, "sequence_number": number, **members}, name))

    def stream(self, reply: Reply) -> tuple[Event, ...]:
        """Write the whole stream."""
        self.obfuscated = self.choices.pick((False, True))
        begun = _response(reply, None)
        self.say("response.created", response=begun)
        for opening in self.choices.pick(((), ("in_progress",), ("queued", "in_progress"))):
            self.say(f"response.{opening}", response={**begun, "status": opening})
        output = self.items(reply)
        response = _response(reply, output)
        self.say(f"response.{response['status']}", response=response)
        return tuple(self.events)

    def items(self, reply: Reply) -> list[Json]:
        """Write every item and return their final forms."""
        output: list[Json] = []
        waiting: list[tuple[int, Object]] = []
        for at, parts in enumerate(_layout(reply, self.choices)):
            shown = isinstance(parts[0], Reasoning) and self.choices.pick((False, True))
            item = _item(parts, at, reply, shown=shown)
            if waiting and item["type"] != "web_search_call":
                self.close(waiting)
            self.say("response.output_item.added", output_index=at, item=self.opened(item))
            self.inside(item, at)
            output.append(item)
            waiting.append((at, item))
            if item["type"] != "web_search_call" or not self.choices.pick((False, True)):
                self.close(waiting)
        self.close(waiting)
        return output

    def close(self, waiting: list[tuple[int, Object]]) -> None:
        """Finish the items that are open, the latest first."""
        while waiting:
            at, item = waiting.pop()
            self.say("response.output_item.done", output_index=at, item=item)

    def opened(self, item: Object) -> Object:
        """An item as it is when it is added: nothing said yet."""
        empty: Object = {"content": [], "summary": [], "arguments": "", "input": "", "status": "in_progress"}
        opened = {member: empty.get(member, value) for member, value in item.items()}
        if "encrypted_content" in opened:  # encrypted anew each time, so only the last one counts
            opened["encrypted_content"] = f"{opened['encrypted_content']}0"
        return opened

    def inside(self, item: Object, at: int) -> None:
        """Write what stands between an item's beginning and its end."""
        where = {"item_id": item["id"], "output_index": at}
        match item["type"]:
            case "message":
                for n, part in enumerate(item["content"]):
                    self.content_part(part, {**where, "content_index": n})
            case "reasoning":
                for n, part in enumerate(item["summary"]):
                    self.summary_part(part, {**where, "summary_index": n})
                for n, part in enumerate(item.get("content", ())):
                    self.content_part(part, {**where, "content_index": n})
            case "function_call":
                self.text("response.function_call_arguments", item["arguments"], where, item["status"])
            case "custom_tool_call":
                self.text("response.custom_tool_call_input", item["input"], where)
            case kind:
                for name in (name for name, tool in PROGRESS.items() if tool == kind):
                    self.say(name, **where)

    def content_part(self, part: Object, where: Object) -> None:
        """Write a part of a message, or of reasoning that is given itself."""
        prefix = {"output_text": "response.output_text", "refusal": "response.refusal"}.get(
            part["type"], "response.reasoning_text"
        )
        self.say("response.content_part.added", **where, part=_empty(part))
        self.text(prefix, part[WORDS[prefix].member], where, annotations=part.get("annotations"))
        self.say("response.content_part.done", **where, part=dict(part))

    def summary_part(self, part: Object, where: Object) -> None:
        """Write a part of a summary of reasoning."""
        self.say("response.reasoning_summary_part.added", **where, part=_empty(part))
        self.text("response.reasoning_summary_text", part["text"], where)
        self.say("response.reasoning_summary_part.done", **where, part=part)

    def text(
        self,
        prefix: str,
        text: str,
        where: Object,
        status: str = "completed",
        annotations: list[Json] | None = None,
    ) -> None:
        """Write the deltas of a text, if any, and that it is done, unless it was cut off.

        ``annotations`` is the list of its part: a citation is added to it now and then, between two deltas or
        after the last.
        """
        extra: Object = {"logprobs": []} if prefix == "response.output_text" else {}
        # Some servers leave the deltas out; a text that is cut off has nothing but its deltas.
        bare = status == "completed" and self.choices.pick(_BARE)
        pieces = [] if bare else self.choices.pieces(text)
        cited = self.choices.pick(_CITED) if annotations is not None else None
        for n, piece in enumerate(pieces):
            self.say(f"{prefix}.delta", **where, delta=piece, **extra)
            if annotations is not None and cited == n:
                self.cite(annotations, where)
        if annotations is not None and cited == _AT_END:
            self.cite(annotations, where)
        if status == "completed":
            self.say(f"{prefix}.done", **where, **{WORDS[prefix].member: text}, **extra)

    def cite(self, annotations: list[Json], where: Object) -> None:
        """Write a citation and add it to its part."""
        citation = {"type": "url_citation", "start_index": 0, "end_index": 1, "title": "t", "url": "https://a.b"}
        self.say(
            "response.output_text.annotation.added",
            **where,
            annotation_index=len(annotations),
            annotation=citation,
        )
        annotations.append(citation)
