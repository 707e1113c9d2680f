"""Anthropic Messages streams (``POST /v1/messages`` with ``stream: true``)."""

from __future__ import annotations

from ...framing.sse import SSE
from ..base import Provider
from .habits import FAILURES, FEATURES, IGNORABLE, NOISE
from .lifecycle import EXTRA_RULES, MACHINES, steps
from .protocol import CUT_REASONS, STREAMING, error, kind
from .reducer import MessageReducer, body, read_body
from .schema import SCHEMAS
from .strategy import draw_events, draw_reply, plain_events

__all__ = ["PROVIDERS", "read_body"]

PROVIDERS = {
    "anthropic": Provider(
        name="anthropic",
        title="Anthropic Messages",
        source=STREAMING,
        framing=SSE,
        machines=MACHINES,
        steps=steps,
        reducer=MessageReducer,
        draw_reply=draw_reply,
        draw_events=draw_events,
        plain_events=plain_events,
        error=error,
        kind=kind,
        schemas=SCHEMAS,
        cut_finishes=CUT_REASONS,
        body=body,
        extra_rules=EXTRA_RULES,
        ignorable=IGNORABLE,
        noise=NOISE,
        failures=FAILURES,
        features=FEATURES,
    )
}
