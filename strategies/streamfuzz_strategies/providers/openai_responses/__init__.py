"""OpenAI's Responses API: items and parts that open, grow and close, numbered events, one terminal response.

A stream is complete once ``response.completed`` or ``response.incomplete`` has come; there is no ``[DONE]``.  An
incomplete response is a complete stream of an answer that was cut off, and its ``finish`` says why, as in
``incomplete:max_output_tokens``.
"""

from __future__ import annotations

from ...framing.sse import SSE
from ..base import Provider
from .events import EVENTS, error, kind
from .habits import FAILURES, FEATURES, IGNORABLE, NOISE, renumber, told_whole
from .lifecycle import steps
from .reducer import Reducer
from .rules import BY_THEMSELVES, MACHINES
from .schema import SCHEMAS
from .strategy import body, draw_events, draw_reply, plain_events, read_body

__all__ = ["PROVIDERS", "read_body"]

PROVIDERS: dict[str, Provider] = {
    "openai-responses": Provider(
        name="openai-responses",
        title="OpenAI Responses",
        source=EVENTS,
        framing=SSE,
        machines=MACHINES,
        steps=steps,
        reducer=Reducer,
        draw_reply=draw_reply,
        draw_events=draw_events,
        plain_events=plain_events,
        error=error,
        kind=kind,
        schemas=SCHEMAS,
        cut_finishes=frozenset(("incomplete:max_output_tokens", "incomplete:content_filter")),
        body=body,
        extra_rules=BY_THEMSELVES,
        ignorable=IGNORABLE,
        noise=NOISE,
        failures=FAILURES,
        features=FEATURES,
        renumber=renumber,
        told_whole=told_whole,
    )
}
