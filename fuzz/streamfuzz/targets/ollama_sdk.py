"""The Ollama client for Python, ``chat(stream=True)``.  https://github.com/ollama/ollama-python, "Streaming".

The client does not accumulate: its user appends the pieces, as the client's documentation shows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from functools import cache
from typing import Any

import httpx
import ollama

from ..target import Delta
from .in_process import NDJSON, URL, Server
from .made import Made


@cache
def _client() -> tuple[Server, ollama.Client]:
    server = Server(httpx, NDJSON)
    return server, ollama.Client(host=URL, transport=server)


def chat(source: Iterable[bytes]) -> Generator[Delta, None, dict[str, Any]]:
    """Append what the records bring, over the whole stream."""
    server, client = _client()
    server.serve(source)
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    last: ollama.ChatResponse | None = None
    for last in client.chat(model="m", messages=[], stream=True):
        message = last.message
        if message.thinking:
            thoughts.append(message.thinking)
            yield Delta(message.thinking, "reasoning")
        if message.content:
            texts.append(message.content)
            yield Delta(message.content)
        for call in message.tool_calls or ():
            calls.append({"name": call.function.name, "arguments": dict(call.function.arguments)})
    return {
        "text": "".join(texts),
        "reasoning": "".join(thoughts),
        "tool_calls": calls,
        "finish": last.done_reason if last is not None and last.done else None,
        "model": None if last is None else last.model,
        "usage": None if last is None else {"input": last.prompt_eval_count, "output": last.eval_count},
    }


MADE = {"ollama-chat": Made(chat, errors=(ollama.ResponseError, httpx.HTTPError), closes_source=True)}
