"""Replies that chat completions can say, and the many streams that say them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias, TypeVar

from hypothesis import strategies as st

from ...arguments import tool_texts
from ...reply import Choice, Json, Part, Reasoning, Refusal, Reply, Text, ToolCall, Usage
from ...stream import Event, Raw
from ...text import slice_text, texts
from ..base import Alphabet, Draw, Drawing
from .body import usage_object
from .shape import CUT_FINISHES, OBJECT, SENTINEL

T = TypeVar("T")
Object: TypeAlias = dict[str, Json]

_SHAPES = (
    ("text",),
    ("text",),
    ("text",),
    ("call",),
    ("call",),
    (),
    ("text", "call"),
    ("call", "call"),
    ("reasoning", "text"),
    ("refusal",),
    ("reasoning", "call"),
    ("text", "call", "call"),
    ("text", "refusal"),
    ("call", "call", "call"),
    ("reasoning", "text", "call", "call"),
)
"""What a choice is made of, in the order of its normal form.

The deprecated ``function_call`` is read and can be streamed, but not drawn: readers of today need not know it.
"""

_FINISHES = {
    "text": ("stop", "stop", "stop", "length", "content_filter"),
    "call": ("tool_calls", "tool_calls", "tool_calls", "stop", "length", "content_filter"),
}
"""Finish reasons by what the choice ends with; a named ``tool_choice`` makes calls end in ``stop``."""

_CHOICES = st.sampled_from((1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3))
_IDS = st.sampled_from(("chatcmpl-1", "c", "gen-2/\u00e9"))
_MODELS = st.sampled_from(("m", "m", "gpt-4o-mini"))
_USAGES = st.sampled_from((None, Usage(3, 5), Usage(0, 0), Usage(2**31, 1)))
_PROSE = st.sampled_from(("hostile", "hostile", "tokens", "echo"))
_FEW = st.integers(2, 3)


@lru_cache(maxsize=32)
def _shapes(max_parts: int, calls: bool) -> st.SearchStrategy[tuple[str, ...]]:
    fitting = [s for s in _SHAPES if len(s) <= max_parts and (calls or "call" not in s)]
    return st.sampled_from(fitting)


@lru_cache(maxsize=32)
def _hostile(alphabet: Alphabet) -> st.SearchStrategy[str]:
    return texts(Drawing(alphabet=alphabet))


_FINISH = {ending: st.sampled_from(reasons) for ending, reasons in _FINISHES.items()}


def draw_reply(draw: Draw, drawing: Drawing) -> Reply:
    """Draw a reply: one to three choices, each with reasoning, text, refusal and calls as the API has them."""
    shapes = _shapes(drawing.max_parts, drawing.tools is None or bool(drawing.tools))
    numbers = iter(range(100))
    choices = tuple(_draw_choice(draw, drawing, draw(shapes), numbers) for _ in range(draw(_CHOICES)))
    return Reply(choices, draw(_IDS), draw(_MODELS), draw(_USAGES))


def _draw_choice(draw: Draw, drawing: Drawing, shape: tuple[str, ...], numbers: Iterator[int]) -> Choice:
    parts: list[Part] = []
    for kind in shape:
        if kind == "call":
            name, arguments = tool_texts(draw, drawing)
            parts.append(ToolCall(f"call_{next(numbers)}", name, arguments))
        else:
            parts.append(_SPOKEN[kind](_prose(draw, drawing)))
    ending = shape[-1] if shape and shape[-1] in _FINISH else "text"
    finish = draw(_FINISH[ending])
    last = parts[-1] if parts else None
    if finish in CUT_FINISHES and isinstance(last, ToolCall):
        parts[-1] = replace(last, arguments=last.arguments[: draw(_within(len(last.arguments)))])
    return Choice(tuple(parts), finish)


_SPOKEN: dict[str, type[Reasoning | Text | Refusal]] = {"reasoning": Reasoning, "text": Text, "refusal": Refusal}


@lru_cache(maxsize=256)
def _within(length: int) -> st.SearchStrategy[int]:
    return st.integers(0, length)


def _prose(draw: Draw, drawing: Drawing) -> str:
    """Words: hostile ones, ones that each name themselves, or the same again and again."""
    how = draw(_PROSE) if drawing.alphabet is None else "hostile"
    if how == "hostile":
        return draw(_hostile(drawing.alphabet))
    count = draw(_FEW)
    return "ha" * count if how == "echo" else "".join(f"t{n} " for n in range(count))


@dataclass(frozen=True, slots=True)
class _Flavour:
    """How a server writes its chunks, beyond what they say.

    ``chunk``, ``choice`` and ``delta`` are members that it adds everywhere; ``reasoning`` is the member that
    carries thinking.  Some put the finish reason on the last delta, not on a chunk of its own, and some the role
    on the first delta that says something.  Azure announces its verdict on the prompt in a first chunk without
    choices, and with the asynchronous filter sends verdicts on the answer in chunks of their own.  Moderated
    completions and some gateways close with a chunk without choices, after the usage if there is any.
    """

    chunk: Mapping[str, Json] = field(default_factory=dict)
    choice: Mapping[str, Json] = field(default_factory=dict)
    delta: Mapping[str, Json] = field(default_factory=dict)
    reasoning: str = "reasoning_content"
    obfuscation: bool = False
    logprobs: bool = False
    prompt_filter: bool = False
    async_filter: bool = False
    finish_on_last: bool = False
    role_on_first: bool = False
    closing: bool = False


_SAFE: Object = {"hate": {"filtered": False, "severity": "safe"}}
_PLAIN = _Flavour()
_FLAVOURS = st.sampled_from(
    (
        _PLAIN,
        _PLAIN,
        _Flavour(choice={"logprobs": None}),
        _Flavour(
            chunk={"service_tier": "default", "system_fingerprint": "fp_1"},
            choice={"logprobs": None},
            obfuscation=True,
        ),
        _Flavour(logprobs=True),
        _Flavour(reasoning="reasoning", chunk={"system_fingerprint": None}),
        _Flavour(delta={"content": None, "tool_calls": None}),
        _Flavour(prompt_filter=True, choice={"content_filter_results": {}}),
        _Flavour(prompt_filter=True, async_filter=True),
        _Flavour(finish_on_last=True),
        _Flavour(closing=True),
        _Flavour(role_on_first=True),
    )
)
_OPENINGS: tuple[Object, ...] = (
    {"content": ""},
    {"content": None},
    {"content": "", "refusal": None},
    {},
)
_ROLE = st.sampled_from(_OPENINGS)
_ORDER = st.sampled_from(("turns", "turns", "rounds", "mixed"))
_OPENING = st.sampled_from(("bare", "bare", "full"))
_RARELY = st.sampled_from((False, False, True))
_PADDING = ("", "xK", "9")
_NAMED_WORDS = re.compile(r"t\d+ |ha")


@lru_cache(maxsize=64)
def _picks(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 3), min_size=count, max_size=count)


@lru_cache(maxsize=16)
def _orders(count: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.permutations(range(count)).map(tuple)


def draw_events(draw: Draw, reply: Reply, drawing: Drawing) -> tuple[Event, ...]:
    """Draw one of the many ways to stream a reply: slices, order of pieces and choices, a server's habits."""
    flavour = draw(_FLAVOURS)
    queues = [_draw_entries(draw, i, choice, flavour) for i, choice in enumerate(reply.choices)]
    if len(queues) > 1:
        entries = _weave(draw, [queues[i] for i in draw(_orders(len(queues)))])
        groups = _grouped(entries, together=draw(_RARELY), key="index")
    else:
        groups = [[entry] for queue in queues for entry in queue]
    return _events(reply, groups, flavour)


def plain_events(reply: Reply) -> tuple[Event, ...]:
    """The simplest stream of a reply: every part in one delta, choice after choice."""
    groups = [[entry] for index, choice in enumerate(reply.choices) for entry in _plain_entries(index, choice)]
    return _events(reply, groups, _PLAIN)


def _plain_entries(index: int, choice: Choice) -> list[Object]:
    deltas: list[Object] = [{"role": "assistant"}]
    slot = 0
    for part in choice.parts:
        if isinstance(part, ToolCall):
            key, pieces = _call_pieces(part, slot, [part.arguments], bare=False)
            deltas += [{key: piece if key == "function_call" else [piece]} for piece in pieces]
            slot += key == "tool_calls"
        elif isinstance(part, (Reasoning, Text, Refusal)):
            deltas.append({_member(part, _PLAIN): part.text})
    entries: list[Object] = [{"index": index, "delta": delta, "finish_reason": None} for delta in deltas]
    if choice.finish is not None:
        entries.append({"index": index, "delta": {}, "finish_reason": choice.finish})
    return entries


def _member(part: Reasoning | Text | Refusal, flavour: _Flavour) -> str:
    if isinstance(part, Reasoning):
        return flavour.reasoning
    return "content" if isinstance(part, Text) else "refusal"


def _call_pieces(call: ToolCall, slot: int, pieces: Sequence[str], *, bare: bool) -> tuple[str, list[Object]]:
    """The delta member that carries a call, and the call's fragments; ``bare``: the first has no arguments."""
    first, *rest = ["", *pieces] if bare else pieces
    if call.id is None:
        return "function_call", [{"name": call.name, "arguments": first}, *({"arguments": p} for p in rest)]
    opening = {"index": slot, "id": call.id, "type": "function"}
    return "tool_calls", [
        {**opening, "function": {"name": call.name, "arguments": first}},
        *({"index": slot, "function": {"arguments": piece}} for piece in rest),
    ]


def _draw_entries(draw: Draw, index: int, choice: Choice, flavour: _Flavour) -> list[Object]:
    """The elements of ``choices`` that stream one choice, in order."""
    spoken: list[list[Object]] = []
    calls: list[list[Object]] = []
    for part in choice.parts:
        if isinstance(part, ToolCall):
            pieces = slice_text(draw, part.arguments, max_pieces=3)
            key, fragments = _call_pieces(part, len(calls), pieces, bare=draw(_OPENING) == "bare")
            if key == "tool_calls":
                calls.append(fragments)
            else:
                spoken.append([{key: fragment} for fragment in fragments])
        elif isinstance(part, (Reasoning, Text, Refusal)):
            spoken.append([{_member(part, flavour): piece} for piece in _slices(draw, part.text)])
    if calls:
        woven = _weave(draw, calls)
        spoken.append([{"tool_calls": group} for group in _grouped(woven, together=draw(_RARELY), key=None)])
    opening = {"role": "assistant", **draw(_ROLE)}
    deltas = [opening, *({**flavour.delta, **delta} for delta in _weave(draw, spoken))]
    if flavour.role_on_first and len(deltas) > 1:
        deltas[:2] = [{**opening, **deltas[1]}]
    entries = [_entry(index, delta, None, flavour) for delta in deltas]
    if flavour.async_filter:
        entries.append({"index": index, "delta": {}, "finish_reason": None, "content_filter_results": _SAFE})
    if choice.finish is not None and flavour.finish_on_last:
        entries[-1] = {**entries[-1], "finish_reason": choice.finish}
    elif choice.finish is not None:
        entries.append(_entry(index, {}, choice.finish, flavour))
    return entries


def _slices(draw: Draw, text: str) -> list[str]:
    """Slices of a text: words that name themselves or repeat stay whole, so that each delta shows its loss."""
    words = _NAMED_WORDS.findall(text)
    return words if "".join(words) == text else slice_text(draw, text, max_pieces=4)


def _entry(index: int, delta: Object, finish: str | None, flavour: _Flavour) -> Object:
    entry = {"index": index, "delta": delta, **flavour.choice, "finish_reason": finish}
    if flavour.logprobs and delta.get("content"):
        token = {"token": delta["content"], "logprob": -0.5, "bytes": None, "top_logprobs": []}
        entry["logprobs"] = {"content": [token], "refusal": None}
    return entry


def _weave(draw: Draw, queues: Sequence[Sequence[T]]) -> list[T]:
    """Merge queues that each keep their order; one begins only once the one before it has begun."""
    how = draw(_ORDER) if len(queues) > 1 else "turns"
    if how == "turns":
        return [item for queue in queues for item in queue]
    total = sum(map(len, queues))
    picks = draw(_picks(total)) if how == "mixed" else range(total)
    places = [0] * len(queues)
    woven: list[T] = []
    begun = 0
    for pick in picks:
        active = [q for q in range(begun + 1) if places[q] < len(queues[q])]
        chosen = active[pick % len(active)] if how == "mixed" else min(active, key=places.__getitem__)
        woven.append(queues[chosen][places[chosen]])
        places[chosen] += 1
        while begun < len(queues) - 1 and places[begun] > 0:
            begun += 1
    return woven


def _grouped(items: Sequence[Object], *, together: bool, key: str | None) -> list[list[Object]]:
    """Each item alone, or neighbours in pairs; with a ``key``, only neighbours that differ in it."""
    groups: list[list[Object]] = []
    for item in items:
        last = groups[-1] if groups else []
        if together and len(last) == 1 and (key is None or last[0][key] != item[key]):
            last.append(item)
        else:
            groups.append([item])
    return groups


def _events(reply: Reply, groups: Sequence[list[Object]], flavour: _Flavour) -> tuple[Event, ...]:
    head = {"id": reply.id or "", "object": OBJECT, "created": 1, "model": reply.model or "", **flavour.chunk}
    anonymous = {"id": "", "object": "", "created": 0, "model": ""}
    chunks: list[Object] = []
    if flavour.prompt_filter:
        verdicts = [{"prompt_index": 0, "content_filter_results": _SAFE}]
        chunks.append({**anonymous, "choices": [], "prompt_filter_results": verdicts})
    for number, group in enumerate(groups):
        verdict = flavour.async_filter and all(_is_verdict(entry) for entry in group)
        chunk = {**(anonymous if verdict else head), "choices": group}
        if reply.usage is not None and not verdict:
            chunk["usage"] = None
        if flavour.obfuscation:
            chunk["obfuscation"] = _PADDING[number % len(_PADDING)]
        chunks.append(chunk)
    if reply.usage is not None:
        chunks.append({**head, "choices": [], "usage": usage_object(reply.usage)})
    if flavour.closing:
        chunks.append({**head, "choices": []})
    return (*map(Event, chunks), Event(Raw(SENTINEL)))


def _is_verdict(entry: Object) -> bool:
    return "content_filter_results" in entry
