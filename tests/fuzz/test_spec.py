"""Targets: what is not said is worked out, and what cannot be is refused with what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest

from streamfuzz.spec import Target, UsageError, accepts_one_argument, target


def plain(chunks: Iterable[bytes]) -> dict[str, Any]:
    return {"text": ""}


async def waiting(chunks: AsyncIterator[bytes]) -> dict[str, Any]:
    return {"text": ""}


async def yielding(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    yield ""


class Pushed:
    def feed(self, chunk: bytes) -> None: ...

    def close(self) -> None: ...


class Called:
    def __call__(self, chunks: Iterable[bytes]) -> None: ...


class CalledLater:
    async def __call__(self, chunks: AsyncIterator[bytes]) -> None: ...


class Bound:
    def read(self, chunks: Iterable[bytes]) -> None: ...

    async def read_later(self, chunks: AsyncIterator[bytes]) -> None: ...


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (plain, "iterable"),
        (lambda chunks: chunks, "iterable"),
        (Called(), "iterable"),
        (Called, "iterable"),
        (Bound().read, "iterable"),
        (waiting, "async"),
        (yielding, "async"),
        (CalledLater(), "async"),
        (Bound().read_later, "async"),
        (Pushed, "push"),
    ],
)
def test_the_shape_follows_from_the_code(call: Callable[..., Any], shape: str) -> None:
    assert target(call).shape == shape


def test_a_given_shape_wins() -> None:
    assert target(lambda: Pushed(), shape="push").shape == "push"


@pytest.mark.parametrize(
    ("provider", "gives"),
    [("openai-chat", "reply"), ("anthropic", "reply"), ("sse", "frames"), ("ndjson", "frames"), ("json", "json")],
)
def test_what_it_gives_follows_from_the_provider(provider: str, gives: str) -> None:
    assert target(plain, provider=provider).gives == gives


def test_the_name_is_the_codes_own() -> None:
    assert target(plain).name == "plain"
    assert target(Bound.read).name == "Bound.read"
    assert target(Called()).name == "Called"
    assert target(plain, name="mine").name == "mine"


def test_an_attribute_whole_is_taken() -> None:
    class Reader(Called):
        def whole(self, body: Any) -> None: ...

    reader = Reader()
    assert target(reader).whole == reader.whole
    assert target(reader, whole=plain).whole is plain
    assert target(plain).whole is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"provider": "gpt"}, "unknown provider 'gpt'; known: anthropic"),
        ({"takes": "chunks"}, "takes='chunks' is not known; choose one of: bytes, text, frames, events"),
        ({"gives": "words"}, "gives='words' is not known; choose one of: frames"),
        ({"shape": "socket"}, "shape='socket' is not known; choose one of: iterable, async, push"),
        ({"takes": "events", "gives": "frames"}, "cannot take events and give frames; takes: bytes or text"),
        ({"gives": "json"}, "use provider='json'"),
        ({"provider": "sse", "gives": "reply"}, "the plain profile 'sse' has no replies; name a provider or give"),
        ({"errors": (ValueError, "KeyError")}, "must be exception types, not 'KeyError'"),
    ],
)
def test_a_description_that_contradicts_itself_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        target(plain, **wrong)
    assert message in str(refusal.value)


def test_what_cannot_be_called_is_no_target() -> None:
    with pytest.raises(UsageError, match="target 'x' is not callable but int"):
        Target("x", 7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "shape", "fits"),
    [
        (plain, "iterable", True),
        (lambda: None, "iterable", False),
        (lambda one, other: None, "iterable", False),
        (lambda one, other=None: None, "iterable", True),
        (lambda *all: None, "iterable", True),
        (Pushed, "push", True),
        (plain, "push", False),
        (dict, "iterable", True),
    ],
)
def test_the_signature_must_fit_the_shape(call: Callable[..., Any], shape: Any, fits: bool) -> None:
    assert accepts_one_argument(call, shape) == fits
