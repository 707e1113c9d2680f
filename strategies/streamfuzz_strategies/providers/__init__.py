"""Providers: one module each, found by name."""

from __future__ import annotations

from importlib import import_module

from .base import Drawing, Provider, Reducer

__all__ = ["NAMES", "Drawing", "Provider", "Reducer", "get"]

_MODULES = {
    "anthropic": "anthropic",
    "json": "plain",
    "ndjson": "plain",
    "ollama": "ollama",
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "sse": "plain",
}

NAMES = tuple(_MODULES)
"""The names that :func:`get` knows, sorted."""


def get(name: str) -> Provider:
    """The provider of that name.

    Raises:
        LookupError: no such provider; the message lists the known names.
    """
    if name not in _MODULES:
        raise LookupError(f"unknown provider {name!r}; known: {', '.join(NAMES)}")
    found: dict[str, Provider] = import_module(f".{_MODULES[name]}", __package__).PROVIDERS
    return found[name]
