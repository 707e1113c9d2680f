"""Text that a server tells whole, without deltas: who shows deltas shows the rest, and is right to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from streamfuzz.bench import Bench
from streamfuzz.case import Case
from streamfuzz.spec import Delta, target
from streamfuzz_strategies import providers
from streamfuzz_strategies.judge import judge
from streamfuzz_strategies.mutations import encode
from streamfuzz_strategies.reply import Choice, Reply, Text
from streamfuzz_strategies.stream import Event, Stream

PROVIDER = providers.get("openai-responses")
REPLY = Reply((Choice((Text("one"), Text("two")), "completed"),), "id", "model")


def stream(*whole: str) -> bytes:
    """The reply, with the texts ``whole`` told by no delta."""
    events = PROVIDER.plain_events(REPLY)
    kept = [event for event in events if not _is_delta(event, whole)]
    assert PROVIDER.renumber is not None
    return encode(PROVIDER, Stream(PROVIDER.name, PROVIDER.renumber(kept)))


def _is_delta(event: Event, texts: tuple[str, ...]) -> bool:
    data = event.data
    return isinstance(data, dict) and data["type"] == "response.output_text.delta" and data["delta"] in texts


def shows_deltas(chunks: Iterable[bytes]) -> Iterator[Any]:
    judged = judge(PROVIDER, b"".join(chunks))
    for event in judged.events:
        data = event.data
        if isinstance(data, dict) and data["type"] == "response.output_text.delta":
            yield Delta(data["delta"])
    return {"text": "onetwo", "finish": "completed"}


def shows_nonsense(chunks: Iterable[bytes]) -> Iterator[Any]:
    yield Delta("three")
    return (yield from shows_deltas(chunks))


def oracles(call: Any, data: bytes) -> set[str]:
    with Bench(target(call, provider=PROVIDER.name)) as bench:
        return {deviation.oracle for deviation in bench.deviations(Case(PROVIDER.name, (data,)))}


def test_only_texts_without_deltas_are_told_whole() -> None:
    for whole in ((), ("one",), ("two",), ("one", "two")):
        assert PROVIDER.told_whole(judge(PROVIDER, stream(*whole)).events) == frozenset(whole)


def test_who_shows_deltas_need_not_show_what_has_none() -> None:
    for whole in ("one", "two"):
        assert oracles(shows_deltas, stream(whole)) == set()


def test_what_is_shown_must_still_be_said() -> None:
    assert oracles(shows_nonsense, stream("one")) == {"prefix"}
