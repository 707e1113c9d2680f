"""Dialects: what compatible servers and gateways really send, as named rewrites that compose.

A dialect leaves the reply as it is: the reference reads the same message out of it.  Where the judge calls one odd
(level ``may``), a target may refuse it or read it right, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..stream import Stream
from .anthropic import DIALECTS as ANTHROPIC
from .base import Dialect
from .openai_chat import DIALECTS as OPENAI_CHAT
from .openai_responses import DIALECTS as OPENAI_RESPONSES

__all__ = ["DIALECTS", "Dialect", "of", "speak"]

DIALECTS: tuple[Dialect, ...] = (*ANTHROPIC, *OPENAI_CHAT, *OPENAI_RESPONSES)
"""All of them."""


def of(provider: str) -> Mapping[str, Dialect]:
    """The dialects of a provider by name; none for a protocol that all its servers speak alike."""
    return {dialect.name: dialect for dialect in DIALECTS if dialect.provider == provider}


def speak(stream: Stream, names: Iterable[str]) -> Stream:
    """Rewrite a stream in the dialects of these names, in turn.

    Raises:
        KeyError: the stream's provider has no dialect of that name.
    """
    known = of(stream.provider)
    for name in names:
        stream = known[name].rewrite(stream)
    return stream
