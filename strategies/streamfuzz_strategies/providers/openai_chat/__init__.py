"""OpenAI chat completions, and what compatible servers make of them.

Server-sent events without names; each carries a chunk with deltas for one or more choices, and ``[DONE]``
ends the stream.  Of the message it reads reasoning, text, refusal, tool calls and the older function call; token log
probabilities, annotations and audio are carried past and are no part of the reply.
"""

from __future__ import annotations

from ...framing.sse import SSE
from ..base import Provider
from .body import body, read_body
from .habits import FAILURES, FEATURES, IGNORABLE, NOISE
from .lifecycle import EXTRA_RULES, MACHINES, steps
from .reducer import Reducer
from .schema import SCHEMAS
from .shape import CUT_FINISHES, SENTINEL, error, kind
from .strategy import draw_events, draw_reply, plain_events

__all__ = ["PROVIDERS", "read_body"]

PROVIDERS: dict[str, Provider] = {
    "openai-chat": Provider(
        name="openai-chat",
        title="OpenAI Chat Completions",
        source="https://platform.openai.com/docs/api-reference/chat-streaming",
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
        sentinel=SENTINEL,
        cut_finishes=CUT_FINISHES,
        body=body,
        extra_rules=EXTRA_RULES,
        ignorable=IGNORABLE,
        noise=NOISE,
        failures=FAILURES,
        features=FEATURES,
    )
}
