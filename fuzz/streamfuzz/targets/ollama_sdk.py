"""The Ollama client for Python, ``chat(stream=True)``.  https://github.com/ollama/ollama-python, "Streaming".

The client does not accumulate: its user appends the pieces until one says that it is the last.  What a user
does with records after that is no doing of the client's, so nothing is read there.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from functools import cache
from typing import Any

import httpx
import ollama

from ..spec import Delta
from .in_process import NDJSON, URL, Server
from .made import Made


@cache
def _client() -> tuple[Server, ollama.Client]:
    server = Server(httpx, NDJSON)
    return server, ollama.Client(host=URL, transport=server)


def chat(source: Iterable[bytes]) -> Generator[Delta, None, dict[str, Any]]:
    """Append what the records bring, up to the last."""
    server, client = _client()
    server.serve(source)
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    model: str | None = None
    finish: str | None = None
    usage: dict[str, int | None] | None = None
    for record in client.chat(model="m", messages=[], stream=True):
        message, model = record.message, model or record.model
        if message.thinking:
            thoughts.append(message.thinking)
            yield Delta(message.thinking, "reasoning")
        if message.content:
            texts.append(message.content)
            yield Delta(message.content)
        for call in message.tool_calls or ():
            calls.append({"name": call.function.name, "arguments": dict(call.function.arguments)})
        if record.done:
            finish = record.done_reason
            usage = {"input": record.prompt_eval_count, "output": record.eval_count}
            break
    return {
        "text": "".join(texts),
        "reasoning": "".join(thoughts),
        "tool_calls": calls,
        "finish": finish,
        "model": model,
        "usage": usage,
    }


MADE = {"ollama-chat": Made(chat, errors=(ollama.ResponseError, httpx.HTTPError), closes_source=True)}
