"""The provider-neutral message: what a stream says once it has been read to its end.

A reply is a frozen value.  Strategies draw one, an encoder writes it as a provider's events, and the
reference reducer reads it back, so ``reduce(encode(reply)) == reply`` can be stated as plain equality.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A JSON value as :mod:`json` decodes it: None, bool, int, float, str, list or dict of the same."""


@dataclass(frozen=True, slots=True)
class Text:
    """Words of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Thinking shown by the model, with the opaque signature that must be sent back unchanged."""

    text: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asks for.  ``arguments`` is JSON text exactly as it was streamed."""

    id: str | None
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Words with which the model declines, on APIs that keep them apart from the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part that streamfuzz carries without looking inside; ``data`` is canonical JSON text."""

    kind: str
    data: str


Part: TypeAlias = Text | Reasoning | ToolCall | Refusal | Opaque


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate answer: its parts in order, and why it ended (``None``: the stream never said)."""

    parts: tuple[Part, ...] = ()
    finish: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens read and written, as the provider counts them."""

    input: int | None = None
    output: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The final message.  ``finish`` values keep the provider's own spelling."""

    choices: tuple[Choice, ...] = ()
    id: str | None = None
    model: str | None = None
    usage: Usage | None = None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Every tool call of every choice, in order."""
        return tuple(p for choice in self.choices for p in choice.parts if isinstance(p, ToolCall))


CHOICE_FIELDS = ("text", "reasoning", "refusal", "tool_calls", "parts", "finish")
"""View fields that belong to one choice."""

REPLY_FIELDS = ("id", "model", "usage")
"""View fields that belong to the whole reply."""


def view(reply: Reply) -> dict[str, Json]:
    """Every field that a target can report, as JSON.

    Returns:
        ``{"choices": [{text, reasoning, refusal, tool_calls, parts, finish}, ...], "id", "model", "usage"}``.
        Text fields are the concatenation of their parts; ``tool_calls`` is a list of ``{id, name,
        arguments}`` with the arguments as JSON text.
    """
    return {
        "choices": [choice_view(choice) for choice in reply.choices],
        "id": reply.id,
        "model": reply.model,
        "usage": None if reply.usage is None else {"input": reply.usage.input, "output": reply.usage.output},
    }


def choice_view(choice: Choice) -> dict[str, Json]:
    """The fields of one choice, see :func:`view`."""
    return {
        "text": "".join(p.text for p in choice.parts if isinstance(p, Text)),
        "reasoning": "".join(p.text for p in choice.parts if isinstance(p, Reasoning)),
        "refusal": "".join(p.text for p in choice.parts if isinstance(p, Refusal)),
        "tool_calls": [part_view(p) for p in choice.parts if isinstance(p, ToolCall)],
        "parts": [{"kind": type(p).__name__.lower(), **part_view(p)} for p in choice.parts],
        "finish": choice.finish,
    }


def part_view(part: Part) -> dict[str, Json]:
    """The fields of one part by name."""
    view = {field.name: getattr(part, field.name) for field in fields(part)}
    if isinstance(part, Opaque):
        view["of"] = view.pop("kind")
    return view


def merge_text(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Join neighbouring text, refusal, and unsigned reasoning parts and drop the empty ones.

    Providers that stream bare deltas (chat completions, Ollama) cannot tell two neighbouring text parts
    from one, so their replies are compared in this normal form.
    """
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, (Text, Refusal, Reasoning)) and not part.text and not getattr(part, "signature", None):
            continue
        last = merged[-1] if merged else None
        if isinstance(part, Text) and isinstance(last, Text):
            merged[-1] = Text(last.text + part.text)
        elif isinstance(part, Refusal) and isinstance(last, Refusal):
            merged[-1] = Refusal(last.text + part.text)
        elif isinstance(part, Reasoning) and isinstance(last, Reasoning) and part.signature == last.signature is None:
            merged[-1] = Reasoning(last.text + part.text)
        else:
            merged.append(part)
    return tuple(merged)


def usage_of(data: Mapping[str, Json] | None, input_key: str, output_key: str) -> Usage | None:
    """Read a provider's usage object by its own key names; ``None`` where there is none."""
    if not isinstance(data, Mapping):
        return None
    usage = Usage(_count(data.get(input_key)), _count(data.get(output_key)))
    return usage if usage != Usage() else None


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
