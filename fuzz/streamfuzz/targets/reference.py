"""Our own reading as targets: incremental decoders, and a reader of each provider built on them.

They are the controls of the harness.  A finding about one of them is a mistake of ours.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from streamfuzz_strategies import providers
from streamfuzz_strategies.framing.ndjson import NDJSONDecoder
from streamfuzz_strategies.framing.sse import SSEDecoder
from streamfuzz_strategies.judge import Reading
from streamfuzz_strategies.reply import view
from streamfuzz_strategies.stream import Frame

from .made import Made

DECODERS: dict[str, type[SSEDecoder] | type[NDJSONDecoder]] = {"sse": SSEDecoder, "ndjson": NDJSONDecoder}
"""The incremental decoders by framing."""


class StreamError(Exception):
    """The stream did not carry a complete answer, or the provider reported an error."""


class ReferenceReader:
    """Reads one stream of a provider: frames as they come, judged and reduced at the end."""

    def __init__(self, provider: str) -> None:
        self._provider = providers.get(provider)
        self._decoder = DECODERS[self._provider.framing.name]()
        self._frames: list[Frame] = []
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> None:
        """Take in some bytes."""
        self._pieces.append(chunk)
        self._frames += self._decoder.feed(chunk)

    def close(self) -> dict[str, Any]:
        """End the stream and return the view of its reply.

        Raises:
            StreamError: it must not count as complete; the message says why.
        """
        self._frames += self._decoder.close()
        self._refuse_broken()
        judgement = self._read(len(self._frames)).judgement
        if judgement.error is not None:
            raise StreamError(judgement.error)
        if not judgement.accepted:
            worst = judgement.worst
            raise StreamError(worst.rule.sentence if worst is not None else "the stream is not complete")
        return view(judgement.accepted[0])

    def _read(self, count: int) -> Reading:
        return Reading.of_frames(self._provider, self._frames[:count])

    def _refuse_broken(self) -> None:
        """Refuse bytes that the framing forbids; the decoders read over them, and so does who is done before."""
        for rule, index in self._provider.framing.decode(b"".join(self._pieces)).broken:
            before = self._read(index).judgement
            if rule.level == "must" and not before.accepted and before.error is None:
                raise StreamError(rule.sentence)


MADE = {
    "reference-sse": Made(SSEDecoder, shape="push"),
    "reference-ndjson": Made(NDJSONDecoder, shape="push"),
    **{
        f"reference-{name}": Made(partial(ReferenceReader, name), errors=(StreamError,), shape="push")
        for name in ("anthropic", "ollama", "openai-chat", "openai-responses")
    },
}
