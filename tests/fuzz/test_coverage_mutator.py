"""Changes of inputs: by seed alone, never too long, and of a stream mostly into a stream."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfuzz.engines.dictionary import LONGEST, constants, words, written
from streamfuzz.engines.fuzz_input import Input, decode, encode
from streamfuzz.engines.mutator import Mutator, spans
from streamfuzz_strategies import providers
from streamfuzz_strategies.cuts import every_byte
from streamfuzz_strategies.providers import get

STREAM = b": hi\n\nid: 1\ndata: a\n\nevent: x\ndata: b\n\ndata: c\n\ndata: tail"


def flip(data: bytes, limit: int) -> bytes:
    """What stands in for libFuzzer's own mutations."""
    return (data[:-1] + b"#")[:limit] if data else b"#"[:limit]


def mutator(provider: str = "sse") -> Mutator:
    return Mutator(get(provider), flip, (b"WORD",))


def changes(raw: bytes, count: int = 400) -> list[Input]:
    return [decode(mutator().change(raw, 4096, seed)) for seed in range(count)]


@given(st.binary(max_size=60), st.sampled_from(providers.NAMES), st.integers(0, 80), st.integers(0, 2**32 - 1))
def test_any_input_is_changed_within_its_limit_and_by_its_seed_alone(
    raw: bytes, provider: str, limit: int, seed: int
) -> None:
    made = mutator(provider).change(raw, limit, seed)
    assert len(made) <= limit
    assert made == mutator(provider).change(raw, limit, seed)


@given(st.binary(max_size=60), st.binary(max_size=60), st.integers(0, 80), st.integers(0, 2**32 - 1))
def test_any_two_inputs_can_be_crossed(raw: bytes, other: bytes, limit: int, seed: int) -> None:
    made = mutator().cross(raw, other, limit, seed)
    assert len(made) <= limit
    assert made == mutator().cross(raw, other, limit, seed)


@pytest.mark.parametrize(
    "made",
    [
        b"event: x\ndata: b\n\ndata: c\n\ndata: tail",  # the first frame is dropped with the comment before it
        STREAM.replace(b"data: c\n\n", b"data: c\n\ndata: c\n\n"),  # repeated
        b"event: x\ndata: b\n\n: hi\n\nid: 1\ndata: a\n\ndata: c\n\ndata: tail",  # swapped
        STREAM.replace(b"data: c", b"data: #"),  # a value, by libFuzzer
        STREAM.replace(b"id: 1", b"id: WORD"),  # a value, by a word
    ],
)
def test_an_edit_leaves_the_bytes_that_it_does_not_touch(made: bytes) -> None:
    assert made in {change.data for change in changes(STREAM, 4000)}


def test_cuts_and_ends_are_changed_too() -> None:
    made = changes(encode(Input(STREAM, (5,))), 3000)
    assert {"eof", "reset"} == {change.end for change in made}
    kept = [change.cuts for change in made if change.data == STREAM]
    assert {(), (4,), (6,), (5, 5), every_byte(len(STREAM))} <= set(kept)


def test_one_byte_a_chunk_stays_so_when_the_bytes_change() -> None:
    made = changes(encode(Input(STREAM, every_byte(len(STREAM)))))
    changed = [change for change in made if change.data != STREAM]
    assert changed
    assert all(change.cuts == every_byte(len(change.data)) for change in changed)


def test_streams_are_joined_between_frames() -> None:
    other = b"data: 1\n\ndata: 2\n\n"
    made = {decode(mutator().cross(STREAM, other, 4096, seed)).data for seed in range(400)}
    assert b": hi\n\nid: 1\ndata: a\n\ndata: 2\n\n" in made


def test_half_of_what_libfuzzer_would_cross_is_only_changed() -> None:
    random = Random(0)
    seeds = [random.getrandbits(32) for _ in range(400)]
    same = Counter(mutator().cross(STREAM, b"data: 1\n\n", 4096, s) == mutator().change(STREAM, 4096, s) for s in seeds)
    assert same[True] > 200
    assert same[False] > 40


@pytest.mark.parametrize(
    ("provider", "data", "expected"),
    [
        ("sse", b"", ()),
        ("sse", b"data: a\n\ndata: b\n\n:x", (b"data: a\n\n", b"data: b\n\n", b":x")),
        ("sse", b": c\n\ndata: a\n\n", (b": c\n\ndata: a\n\n",)),
        ("ndjson", b"1\n\n2", (b"1\n", b"\n2")),
        ("json", b"{}", (b"{}",)),
    ],
)
def test_the_bytes_of_frames(provider: str, data: bytes, expected: tuple[bytes, ...]) -> None:
    assert spans(get(provider), data) == expected


@pytest.mark.parametrize("provider", providers.NAMES)
def test_every_word_is_one_that_libfuzzer_takes(provider: str) -> None:
    found = words(provider)
    assert len(found) == len(set(found))
    assert all(0 < len(word) <= LONGEST for word in found)
    assert len(written(found).splitlines()) == len(found)


@pytest.mark.parametrize(
    ("provider", "word"),
    [
        ("sse", b"\xef\xbb\xbf"),
        ("sse", b"retry: "),
        ("sse", b"\r"),
        ("openai-chat", b"[DONE]"),
        ("openai-chat", b'"finish_reason":'),
        ("anthropic", b'"content_block_delta"'),
        ("anthropic", b"error"),
        ("ollama", b'"done":'),
    ],
)
def test_the_words_of_a_provider(provider: str, word: bytes) -> None:
    assert word in words(provider)


def test_a_dictionary_is_plain_ascii_in_quotes() -> None:
    assert written([b'a"b', b"\xef\\\n"]) == '"a\\x22b"\n"\\xEF\\x5C\\x0A"\n'


def test_texts_of_the_code_are_words_and_docstrings_are_not() -> None:
    import streamfuzz.demo

    found = constants(("streamfuzz",))
    assert {b"[DONE]", b"data", b"finish_reason"} <= set(found)
    assert not any(b"Decode server-sent events" in word for word in found)
    assert constants(("no_such_package",)) == ()
    assert streamfuzz.demo.__name__ == "streamfuzz.demo"
