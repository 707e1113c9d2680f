"""How servers that speak chat completions differ from OpenAI's: a table of who does what.

No dialect changes the reply: one that leaves out the role or moves the usage still tells the same message.
"""

from __future__ import annotations

from ..providers.openai_chat.lifecycle import (
    COLLISION,
    FINISH_EMPTY,
    MISTYPED,
    NAMED,
    NO_CHOICES,
    NO_DELTA,
    NO_DONE,
    OTHER_OBJECT,
    TOOL_NO_INDEX,
)
from ..reply import Json
from ..rules import Rule
from ..stream import Event
from . import openai_chat_habits as h
from .base import Dialect, Rewrite, captured, in_turn, keep_alive, no_space, sse_starlette

_AZURE = "https://learn.microsoft.com/azure/foundry/openai/concepts/content-streaming"
_SAFE: Json = {"hate": {"filtered": False, "severity": "safe"}}
_ANONYMOUS: dict[str, Json] = {"id": "", "object": "", "created": 0, "model": ""}
_VERDICT = Event(
    {**_ANONYMOUS, "choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": _SAFE}]}
)


def _late_verdict(choice: dict[str, Json]) -> dict[str, Json]:
    offsets = {"check_offset": 0, "start_offset": 0, "end_offset": 9}
    verdict = {"content_filter_results": _SAFE, "content_filter_offsets": offsets}
    return {**_ANONYMOUS, "choices": [{"index": choice.get("index"), "finish_reason": None, **verdict}]}


def _finish_twin(name: str, reason: Json = None) -> Rewrite:
    """A member beside the finish reason that has a value of its own, the same one as that if none is given."""
    return h.choices(lambda c: {**c, name: (reason or c["finish_reason"]) if c.get("finish_reason") else None})


def _groq_usage(chunk: dict[str, Json]) -> dict[str, Json]:
    told = {"usage": chunk["usage"]} if chunk.get("usage") else {}
    return {**chunk, "x_groq": {"id": "req_1", **told}}


_null_calls = h.deltas(h.adding({"content": None, "tool_calls": None}))
_whole_calls = h.pieces(h.whole)


def _chat(name: str, title: str, source: str, rewrite: Rewrite, *breaks: Rule) -> Dialect:
    return Dialect(name, "openai-chat", title, source, rewrite, breaks)


DIALECTS = (
    _chat(
        "azure",
        "a chunk without choices, id or model comes first with the verdict on the prompt, and choices have verdicts",
        _AZURE,
        in_turn(h.choices(h.adding({"content_filter_results": {}})), h.first(_VERDICT)),
    ),
    _chat(
        "azure-async-filter",
        "verdicts on the answer come in chunks of their own, whose choice has no delta",
        _AZURE,
        h.before_finish(_late_verdict),
        NO_DELTA,
    ),
    _chat(
        "azure-deepseek",
        "roles, contents and tool calls are null where there are none, and created grows",
        captured("azure/src/__fixtures__/azure-deepseek-reasoning.1"),
        in_turn(h.deltas(h.adding({"role": None})), _null_calls, _finish_twin("matched_stop", 1), h.drifting),
    ),
    _chat(
        "deepseek",
        "the usage is on the finish chunk, content or reasoning_content is null, and comments keep the line alive",
        "https://api-docs.deepseek.com/quick_start/rate_limit",
        in_turn(
            h.thinking_as("reasoning_content"),
            h.deltas(h.adding({"content": None, "reasoning_content": None})),
            h.usage_on_finish,
            h.on_usage(h.adding({"prompt_cache_hit_tokens": 0})),
            keep_alive(": keep-alive"),
        ),
    ),
    _chat(
        "gateway-without-done",
        "the stream ends without [DONE]",
        "https://github.com/theopenco/llmgateway/pull/1901",
        h.without_sentinel,
        NO_DONE,
    ),
    _chat(
        "gemini",
        "tool calls come whole and have no index",
        "https://github.com/gptscript-ai/gptscript/pull/374",
        in_turn(_whole_calls, h.pieces(h.without_index)),
        TOOL_NO_INDEX,
    ),
    _chat(
        "groq",
        "the usage is on the finish chunk and once more in x_groq, tool calls come whole, and created grows",
        captured("groq/src/__fixtures__/groq-text"),
        in_turn(
            h.thinking_as("reasoning"),
            _whole_calls,
            h.usage_on_finish,
            h.on_last(_groq_usage),
            h.on_first(h.adding({"x_groq": {"id": "req_1"}})),
            h.drifting,
        ),
    ),
    _chat(
        "litellm",
        "events named ping stand between the chunks",
        "https://github.com/BerriAI/litellm/blob/main/litellm/constants.py",
        h.around(Event({"type": "ping"}, "ping")),
        NAMED,
    ),
    _chat(
        "llama-cpp",
        "created grows, and the last chunk with choices has timings",
        "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/server-task.cpp",
        in_turn(
            h.thinking_as("reasoning_content"),
            h.on_last(h.adding({"timings": {"predicted_n": 5, "predicted_ms": 1.5}})),
            h.drifting,
        ),
    ),
    _chat(
        "magistral",
        "while the model thinks, content is a list of typed parts",
        captured("mistral/src/__fixtures__/mistral-reasoning"),
        h.deltas(h.thinking_in_content),
        MISTYPED,
    ),
    _chat(
        "mistral",
        "tool calls come whole, without an index and with the finish reason, as does the usage",
        captured("mistral/src/__fixtures__/mistral-tool-call"),
        in_turn(_whole_calls, h.pieces(h.without_index), h.finish_on_last, h.usage_on_finish),
        TOOL_NO_INDEX,
    ),
    _chat(
        "mistral-incremental",
        "the role is never said, and pieces of a tool call repeat its type with an empty name",
        captured("mistral/src/__fixtures__/mistral-incremental-tool-call"),
        in_turn(h.deltas(h.no_role), h.pieces(h.with_type)),
    ),
    _chat(
        "moonshot",
        "the finish reason and the usage are on the last chunk that says something",
        captured("moonshotai/src/__fixtures__/moonshot-text"),
        in_turn(h.thinking_as("reasoning_content"), h.finish_on_last, h.usage_on_finish),
    ),
    _chat(
        "ollama",
        "tool calls come whole and all have the index 0",
        "https://github.com/vercel/ai/pull/14277",
        in_turn(
            h.thinking_as("reasoning"),
            _whole_calls,
            h.pieces(h.at_zero),
            h.chunks(h.adding({"system_fingerprint": "fp_ollama"})),
        ),
        COLLISION,
    ),
    _chat(
        "openrouter",
        "thinking is told twice, the usage chunk has a choice that says nothing, and comments keep the line alive",
        "https://openrouter.ai/docs/api-reference/streaming",
        in_turn(
            h.thinking_as("reasoning"),
            h.deltas(h.thinking_in_detail),
            _finish_twin("native_finish_reason"),
            h.usage_with_a_choice,
            h.chunks(h.adding({"provider": "OpenAI"})),
            keep_alive(": OPENROUTER PROCESSING"),
        ),
    ),
    _chat(
        "openrouter-null-choices",
        "the chunk with the usage has null for its choices",
        "https://github.com/pydantic/pydantic-ai/issues/5165",
        h.usage_without_choices,
        NO_CHOICES,
    ),
    _chat(
        "perplexity",
        "every chunk has the role and the usage so far, and the last one is named chat.completion.done",
        captured("perplexity/src/__fixtures__/perplexity-text"),
        in_turn(
            h.deltas(h.with_role),
            h.choices(h.finish_absent),
            h.usage_on_finish,
            h.usage_everywhere,
            h.chunks(h.adding({"citations": ["https://example.org/"], "search_results": []})),
            h.on_last(lambda chunk: {**chunk, "object": "chat.completion.done"}),
            h.drifting,
        ),
        OTHER_OBJECT,
    ),
    _chat(
        "qwen",
        "pieces that continue a tool call have an empty id and an empty name",
        captured("alibaba/src/__fixtures__/alibaba-tool-call"),
        in_turn(h.thinking_as("reasoning_content"), h.pieces(h.with_type), h.pieces(h.with_empty_id)),
    ),
    _chat(
        "sglang",
        "contents, reasoning contents and tool calls are null where there are none",
        "https://github.com/sgl-project/sglang",
        in_turn(
            h.thinking_as("reasoning_content"),
            h.deltas(h.adding({"reasoning_content": None})),
            _null_calls,
            _finish_twin("matched_stop", 1),
        ),
    ),
    _chat(
        "sglang-empty-finish",
        "the finish reason is the empty string where null is meant",
        "https://github.com/sgl-project/sglang/issues/3912",
        h.choices(h.finish_empty),
        FINISH_EMPTY,
    ),
    _chat(
        "tgi",
        "all tool calls have the index 0, their id and the role are repeated, and no space follows data:",
        "https://github.com/huggingface/text-generation-inference/blob/main/router/src/chat.rs",
        in_turn(h.deltas(h.with_role), h.pieces(h.with_id), h.pieces(h.at_zero), h.drifting, no_space, keep_alive(":")),
        COLLISION,
    ),
    _chat(
        "together",
        "every delta has the role and a token_id",
        "https://pypi.org/project/together/",
        in_turn(h.deltas(h.with_role), h.deltas(h.adding({"token_id": 17}))),
    ),
    _chat(
        "vllm",
        "the finish reason is on the last delta, and choices have members of vLLM's own",
        "https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/chat_completion/serving.py",
        in_turn(
            h.thinking_as("reasoning"),
            h.finish_on_last,
            h.choices(h.adding({"stop_reason": None, "token_ids": None})),
            h.on_first(h.adding({"prompt_token_ids": None})),
        ),
    ),
    _chat(
        "vllm-continuous-usage",
        "every chunk has the usage so far",
        "https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/chat_completion/serving.py",
        h.usage_everywhere,
    ),
    _chat(
        "xai",
        "there is no finish reason until the end, tool calls come whole, and created grows",
        captured("openai-compatible/src/chat/__fixtures__/xai-text"),
        in_turn(h.thinking_as("reasoning_content"), h.choices(h.finish_absent), _whole_calls, h.drifting),
    ),
    sse_starlette("openai-chat"),
)
"""All of them."""
