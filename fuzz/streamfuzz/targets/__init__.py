"""Ready targets: parsers that many programs are built on, each found by name.

The table says what there is; an adapter is imported, and with it the library that it drives, when it is asked
for.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from ..spec import Form, Target, UsageError

__all__ = ["NAMES", "Row", "describe", "ready"]


class _Entry(NamedTuple):
    module: str
    provider: str
    takes: Form
    gives: Form
    library: str
    line: str


_OURS = "streamfuzz"
_TABLE: dict[str, _Entry] = {
    "demo": _Entry("demo_client", "openai-chat", "bytes", "reply", _OURS, "a chat client as people first write it"),
    "demo-repaired": _Entry(
        "demo_client", "openai-chat", "bytes", "reply", _OURS, "the same with every lesson learned"
    ),
    "reference-sse": _Entry("reference", "sse", "bytes", "frames", _OURS, "our own event decoder"),
    "reference-ndjson": _Entry("reference", "ndjson", "bytes", "frames", _OURS, "our own line decoder"),
    "reference-anthropic": _Entry("reference", "anthropic", "bytes", "reply", _OURS, "our own reading"),
    "reference-ollama": _Entry("reference", "ollama", "bytes", "reply", _OURS, "our own reading"),
    "reference-openai-chat": _Entry("reference", "openai-chat", "bytes", "reply", _OURS, "our own reading"),
    "reference-openai-responses": _Entry("reference", "openai-responses", "bytes", "reply", _OURS, "our own reading"),
    "anthropic-sse": _Entry("anthropic_sdk", "sse", "bytes", "frames", "anthropic", "the SDK's event decoder"),
    "anthropic-create": _Entry(
        "anthropic_sdk", "anthropic", "bytes", "events", "anthropic", "messages.create(stream=True)"
    ),
    "anthropic-stream": _Entry("anthropic_sdk", "anthropic", "bytes", "reply", "anthropic", "messages.stream()"),
    "anthropic-state": _Entry("anthropic_sdk", "anthropic", "events", "reply", "anthropic", "accumulate_event()"),
    "httpx-sse": _Entry("httpx_sse_lib", "sse", "bytes", "frames", "httpx-sse", "EventSource.iter_sse()"),
    "httpx2-sse": _Entry("httpx2_lib", "sse", "bytes", "frames", "httpx2", "EventSource"),
    "ollama-chat": _Entry("ollama_sdk", "ollama", "bytes", "reply", "ollama", "chat(stream=True), appended"),
    "openai-sse": _Entry("openai_sdk", "sse", "bytes", "frames", "openai", "the SDK's event decoder"),
    "openai-chat-create": _Entry(
        "openai_sdk", "openai-chat", "bytes", "events", "openai", "chat.completions.create(stream=True)"
    ),
    "openai-chat-stream": _Entry("openai_sdk", "openai-chat", "bytes", "reply", "openai", "chat.completions.stream()"),
    "openai-chat-state": _Entry("openai_sdk", "openai-chat", "events", "reply", "openai", "ChatCompletionStreamState"),
    "openai-responses-create": _Entry(
        "openai_sdk", "openai-responses", "bytes", "events", "openai", "responses.create(stream=True)"
    ),
    "openai-responses-stream": _Entry(
        "openai_sdk", "openai-responses", "bytes", "reply", "openai", "responses.stream()"
    ),
    "openai-responses-state": _Entry(
        "openai_sdk", "openai-responses", "events", "reply", "openai", "ResponseStreamState"
    ),
    "sseclient-py": _Entry("sseclient_lib", "sse", "bytes", "frames", "sseclient-py", "SSEClient.events()"),
}

NAMES: tuple[str, ...] = tuple(_TABLE)
"""The names that :func:`ready` knows."""


class Row(NamedTuple):
    """What there is to say about a ready target; ``installed`` is the library's version, if it is there."""

    name: str
    provider: str
    takes: Form
    gives: Form
    library: str
    installed: str | None
    line: str


def ready(name: str) -> Target:
    """The ready target of that name.

    Raises:
        UsageError: no such target, or its library is not installed; the message says what to do.
    """
    if name not in _TABLE:
        raise UsageError(f"unknown ready target {name!r}; known: {', '.join(NAMES)}")
    entry = _TABLE[name]
    try:
        made = import_module(f".{entry.module}", __name__).MADE[name]
    except ImportError as error:
        raise UsageError(
            f"the target {name} needs {entry.library}, which cannot be imported ({error}); "
            f"install it with: pip install 'streamfuzz[sdks]'"
        ) from error
    return Target(
        name=name,
        call=made.call,
        provider=entry.provider,
        takes=entry.takes,
        gives=entry.gives,
        shape=made.shape,
        errors=made.errors,
        whole=made.whole,
        closes_source=made.closes_source,
    )


def describe() -> tuple[Row, ...]:
    """Every ready target, in the order of :data:`NAMES`; imports none of the libraries."""
    return tuple(
        Row(name, entry.provider, entry.takes, entry.gives, entry.library, _installed(entry.library), entry.line)
        for name, entry in _TABLE.items()
    )


def _installed(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
