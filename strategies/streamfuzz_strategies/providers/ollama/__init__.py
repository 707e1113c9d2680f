"""Ollama's native chat API: one JSON record a line, the last of them with ``done`` true.

Every record repeats the model and carries a message of which ``content`` and ``thinking`` are appended and
whose tool calls are whole.  Only the record with ``done`` true has a reason and counts; it may carry a last
piece of the message as well.  A failure after the first byte is a line ``{"error": "..."}`` in place of the
rest.

A record can hold thinking, content and tool calls together; they are read in that order.  Where the last
record gives no ``done_reason`` the reply's ``finish`` stays ``None``: the stream never said, and nothing is
invented.
"""

from __future__ import annotations

from ...framing.ndjson import NDJSON
from ..base import Provider
from .habits import FAILURES, FEATURES, IGNORABLE
from .lifecycle import CALL, CHAT, MACHINES, MESSAGE, kind, steps
from .reducer import OllamaReducer, error
from .schema import SCHEMAS
from .strategy import body, draw_events, draw_reply, plain_events

__all__ = ["PROVIDERS"]

PROVIDERS = {
    "ollama": Provider(
        name="ollama",
        title="Ollama chat",
        source=CHAT,
        framing=NDJSON,
        machines=MACHINES,
        steps=steps,
        reducer=OllamaReducer,
        draw_reply=draw_reply,
        draw_events=draw_events,
        plain_events=plain_events,
        error=error,
        kind=kind,
        schemas=SCHEMAS,
        cut_finishes=frozenset(("length",)),
        body=body,
        extra_rules=(MESSAGE, CALL),
        ignorable=IGNORABLE,
        failures=FAILURES,
        features=FEATURES,
    )
}
