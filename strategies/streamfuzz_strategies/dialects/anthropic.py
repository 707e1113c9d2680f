"""How platforms and gateways in front of the Messages API differ from it."""

from __future__ import annotations

from dataclasses import replace

from ..providers.anthropic.lifecycle import RESTARTED
from ..providers.anthropic.protocol import type_of
from ..stream import Event, Stream
from .base import Dialect, captured, sse_starlette

_METRICS = {"inputTokenCount": 1, "outputTokenCount": 1, "invocationLatency": 1, "firstByteLatency": 1}


def _with_metrics(stream: Stream) -> Stream:
    return replace(
        stream,
        events=tuple(
            Event({**event.data, "amazon-bedrock-invocationMetrics": _METRICS}, event.name)
            if type_of(event) == "message_stop" and isinstance(event.data, dict)
            else event
            for event in stream.events
        ),
    )


def _started_twice(stream: Stream) -> Stream:
    starts = [event for event in stream.events if type_of(event) == "message_start"]
    at = stream.events.index(starts[0]) + 1 if starts else 0
    return replace(stream, events=(*stream.events[:at], *starts[:1], *stream.events[at:]))


DIALECTS = (
    Dialect(
        "bedrock",
        "anthropic",
        "message_stop carries the metrics of the call",
        "https://github.com/BerriAI/litellm",
        _with_metrics,
    ),
    Dialect(
        "gateway-retry",
        "anthropic",
        "message_start comes twice with the same id",
        captured("anthropic/src/__fixtures__/duplicate-message-start"),
        _started_twice,
        (RESTARTED,),
    ),
    sse_starlette("anthropic"),
)
"""All of them."""
