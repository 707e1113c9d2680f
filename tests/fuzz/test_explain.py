"""Causes are found by taking them away: one planted blind spot gives exactly one cause."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import Any

import pytest

from streamfuzz.bench import Bench
from streamfuzz.case import Case
from streamfuzz.demo import StreamError, repaired
from streamfuzz.explain import explain
from streamfuzz.finding import Finding
from streamfuzz.spec import Delta, target
from streamfuzz_strategies.stream import Event

BOM = b"\xef\xbb\xbf"
FACE = "\U0001f600".encode()


def chunk(content: str | None = None, finish: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": {} if content is None else {"content": content}, "finish_reason": finish}
    made = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}
    return json.dumps(made, ensure_ascii=False, separators=(",", ":"))


USAGE = chunk(choices=[], usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3})


def stream(*payloads: str, eol: str = "\n", before: str = "data: ") -> bytes:
    return "".join(f"{before}{payload}{eol}{eol}" for payload in (*payloads, "[DONE]")).encode()


PLAIN = (chunk("Hel"), chunk("lo"), chunk(finish="stop"))


def found(call: Callable[..., Any], *chunks: bytes, oracle: str = "", end: Any = "eof") -> Finding:
    """Explain what the target gets wrong on a case."""
    case = Case("openai-chat", chunks, end=end)
    with Bench(target(call, errors=(StreamError,))) as bench:
        deviation, *_ = (d for d in bench.deviations(case) if oracle in d.oracle)
        return explain(bench, case, deviation, "by hand")


# --- blind spots of readers of bytes


def on_the_whole(spoil: Callable[[bytes], bytes]) -> Callable[..., Any]:
    def parser(chunks: Iterable[bytes]) -> Any:
        return repaired([spoil(b"".join(chunks))])

    return parser


def refuses(pattern: bytes) -> Callable[..., Any]:
    def parser(chunks: Iterable[bytes]) -> Any:
        whole = b"".join(chunks)
        if re.search(pattern, whole, re.MULTILINE):
            raise StreamError("cannot read this")
        return repaired([whole])

    return parser


def splits_lines_like_str(whole: bytes) -> bytes:
    return "\n".join(whole.decode().splitlines()).encode() + b"\n\n"


def without_repeats(whole: bytes) -> bytes:
    return re.sub(rb"(data: .*\n\n)\1", rb"\1", whole)


def ends_at_done(chunks: Iterable[bytes]) -> Any:
    whole = b"".join(chunks)
    return repaired([whole[: whole.find(b"\n", whole.find(b"[DONE]"))] + b"\n\ndata: [DONE]\n\n"])


def decodes_each_chunk(chunks: Iterable[bytes]) -> Any:
    return repaired(piece.decode("utf-8", "replace").encode() for piece in chunks)


def ends_at_an_empty_chunk(chunks: Iterable[bytes]) -> Any:
    return repaired(takewhile(bool, chunks))


NAMED = stream(*PLAIN).replace(b"data: ", b"event: x\ndata: ", 1)
SPOTS: list[tuple[str, Callable[..., Any], tuple[bytes, ...]]] = [
    ("a byte order mark", refuses(rb"\A\xef\xbb\xbf"), (BOM + stream(*PLAIN),)),
    ("CR line ends", on_the_whole(lambda w: re.sub(rb"\r(?!\n)", b" ", w)), (stream(*PLAIN, eol="\r"),)),
    ("CRLF line ends", on_the_whole(lambda w: w.replace(b"\r\n", b"  ")), (stream(*PLAIN, eol="\r\n"),)),
    ("mixed line ends", refuses(rb"\n\r\n"), (stream(*PLAIN).replace(b"\n\n", b"\n\r\n"),)),
    ("a comment", refuses(rb"^:"), (b": ping\n" + stream(*PLAIN),)),
    ("an event without data", refuses(rb"^event: x\n\n"), (b"event: x\n\n" + stream(*PLAIN),)),
    ("bytes that are not UTF-8", refuses(rb"\xff"), (stream(*PLAIN).replace(b"Hel", b"\xff"),)),
    ("an unknown field", refuses(rb"^foo"), (b"foo: x\n" + stream(*PLAIN),)),
    ("an id field", refuses(rb"^id"), (b"id: 7\n" + stream(*PLAIN),)),
    ("a retry field", refuses(rb"^retry"), (b"retry: 7\n" + stream(*PLAIN),)),
    ("extra blank lines", refuses(rb"\n\n\n"), (stream(*PLAIN).replace(b"\n\n", b"\n\n\n"),)),
    ("no space after the colon", refuses(rb"^data:[^ ]"), (stream(*PLAIN, before="data:"),)),
    (
        "data over several lines",
        refuses(rb"^data: .*\ndata: "),
        (stream(*PLAIN).replace(b'{"id"', b'{\ndata: "id"', 1),),
    ),
    (
        "an event name after the data",
        refuses(rb"^data.*\nevent"),
        (stream(*PLAIN).replace(b"\n\n", b"\nevent: message\n\n", 1),),
    ),
    ("the way its JSON is spelled", refuses(rb'"id": "c"'), (stream(PLAIN[0].replace(":", ": "), *PLAIN[1:]),)),
    ("an empty chunk", ends_at_an_empty_chunk, (stream(*PLAIN[:2])[:-14], b"", stream(*PLAIN[2:]))),
    (
        "a cut inside a 4-byte character",
        decodes_each_chunk,
        stream(chunk("a\U0001f600"), *PLAIN).partition(FACE[:2]),
    ),
    ("U+2028 in the text", on_the_whole(splits_lines_like_str), (stream(chunk("a\u2028b"), *PLAIN),)),
    ("U+0085 in the text", on_the_whole(splits_lines_like_str), (stream(chunk("a\u0085b"), *PLAIN),)),
    ("'[DONE]' in the text", refuses(rb'"content":"[^"]*\[DONE\]'), (stream(chunk("a [DONE] b"), *PLAIN),)),
    ("text beyond ASCII", refuses(rb"[\x80-\xff]"), (stream(chunk("\u00e9"), *PLAIN),)),
    ("the usage chunk", refuses(rb'"choices":\[\]'), (stream(*PLAIN, USAGE),)),
    ("a repeated event", on_the_whole(without_repeats), (stream(PLAIN[0], PLAIN[0], *PLAIN),)),
]
PLAINEST = [spot for spot in SPOTS[:12] if not spot[0].startswith(("bytes", "an event"))]


@pytest.mark.parametrize(("cause", "call", "chunks"), SPOTS, ids=[cause for cause, _, _ in SPOTS])
def test_a_blind_spot_is_the_one_cause(cause: str, call: Callable[..., Any], chunks: tuple[bytes, ...]) -> None:
    finding = found(call, *chunks)
    assert finding.causes == (cause,)
    assert not finding.flaky
    assert finding.how == "by hand"
    assert f"because of {cause}" in finding.sentence
    assert finding.signature.endswith(f": {cause}")


@pytest.mark.parametrize(("cause", "call", "chunks"), PLAINEST, ids=[cause for cause, _, _ in PLAINEST])
def test_what_plays_no_part_is_no_cause(cause: str, call: Callable[..., Any], chunks: tuple[bytes, ...]) -> None:
    whole = b"".join(chunks)
    eol = b"\r\n" if cause == "CRLF line ends" else b"\r" if cause == "CR line ends" else b"\n"
    extra = {"a comment": b": x", "an id field": b"id: x", "a retry field": b"retry: 1", "an unknown field": b"foo: x"}
    lines = eol.join(line for name, line in extra.items() if name != cause) + eol
    busy = BOM + lines + whole if not whole.startswith(BOM) else BOM + lines + whole[len(BOM) :]
    assert found(call, busy[:30], busy[30:]).causes == (cause,)


@pytest.mark.parametrize(("identifier", "events"), [("e", 6), ("e", 60), ("\u00e9", 6)])
def test_the_one_cut_that_matters_is_found_among_many_of_its_kind(identifier: str, events: int) -> None:
    """Models, which nobody shows, have the same characters, and identifiers, which must stay the same, may have."""
    names = {"id": identifier, "model": "\u00e9"}
    payloads = [chunk("\u00e9" if number == 3 else "e", **names) for number in range(events)]
    whole = stream(*payloads, chunk(finish="stop", **names))
    finding = found(decodes_each_chunk, *(whole[i : i + 1] for i in range(len(whole))), oracle="fragmentation")
    assert finding.causes == ("a cut inside a 2-byte character",)
    assert len(finding.case.chunks[0]) == whole.index(b'"content":"\xc3') + 12


# --- what an explanation is


def test_the_case_of_a_finding_has_no_cuts_that_it_does_not_need() -> None:
    whole = BOM + stream(*PLAIN)
    _, spoiled, _ = SPOTS[0]
    assert found(spoiled, whole[:9], whole[9:20], whole[20:]).case.chunks == (whole,)


def test_one_cut_is_enough_for_a_reader_that_breaks_at_a_kind_of_place() -> None:
    whole = stream(chunk("a\U0001f600"), *PLAIN)
    finding = found(decodes_each_chunk, *(whole[i : i + 1] for i in range(len(whole))))
    assert len(finding.case.chunks) == 2
    assert finding.deviation.oracle == "fragmentation"
    assert finding.case.data == whole


def test_chunks_of_one_byte_are_a_cause_where_no_single_cut_is() -> None:
    def counts(chunks: Iterable[bytes]) -> Any:
        kept = list(chunks)
        return repaired(kept if len(kept) < 50 else kept[:50])

    whole = stream(*PLAIN)
    finding = found(counts, *(whole[i : i + 1] for i in range(len(whole))))
    assert finding.causes == ("chunks of one byte",)


def test_two_causes_are_both_named() -> None:
    def needs_both(chunks: Iterable[bytes]) -> Any:
        whole = b"".join(chunks)
        if whole.startswith(BOM) and b": x" in whole:
            raise StreamError("both")
        return repaired([whole])

    finding = found(needs_both, BOM + b": x\n" + stream(*PLAIN))
    assert finding.causes == ("a byte order mark", "a comment")
    assert "because of a byte order mark and a comment" in finding.sentence


def test_a_failure_on_the_plainest_stream_has_no_cause() -> None:
    finding = found(lambda chunks: {**repaired(chunks), "finish": "never"}, stream(*PLAIN))
    assert finding.causes == ()
    assert finding.signature == "faithful.altered"


def test_oddities_without_a_part_in_the_failure_are_taken_out() -> None:
    def says_nothing(chunks: Iterable[bytes]) -> Any:
        whole = b"".join(chunks)
        return {"text": ""} if b": x" in whole else repaired([whole])

    finding = found(says_nothing, b": x\n" + stream(PLAIN[0], "", *PLAIN[1:]))
    assert finding.causes == ("a comment",)
    assert finding.deviation.rule is None
    assert b"data: \n" not in finding.case.data


def test_what_must_be_refused_keeps_its_rule_in_the_signature() -> None:
    finding = found(lambda chunks: {"text": "", "finish": "stop"}, stream(*PLAIN[:2]), oracle="fail_closed")
    assert finding.deviation.rule is not None
    assert f"fail_closed.trusted@{finding.deviation.rule.id}" in finding.signature
    assert f"although {finding.deviation.rule.sentence}." in finding.sentence


def test_a_failure_that_does_not_show_again_is_flaky() -> None:
    runs: list[int] = []

    def fails_at_first(chunks: Iterable[bytes]) -> Any:
        runs.append(1)
        if len(runs) == 1:
            raise StreamError("not today")
        return repaired(chunks)

    finding = found(fails_at_first, BOM + stream(*PLAIN))
    assert finding.flaky
    assert finding.causes == ()


def test_a_stray_error_is_one_finding_wherever_it_comes_from() -> None:
    def indexes(chunks: Iterable[bytes]) -> Any:
        whole = b"".join(chunks)
        return [][len(whole)] if b"[DONE]" not in whole or whole.startswith(BOM) else repaired([whole])

    damaged = found(indexes, stream(*PLAIN[:1])[:-14], oracle="typed_error")
    assert damaged.signature == "typed_error.undeclared: a stray IndexError in indexes"
    assert "IndexError: list index out of range" in damaged.sentence


def test_of_two_things_that_are_each_enough_one_is_left_as_the_cause() -> None:
    finding = found(refuses(rb"^(foo|id): x"), b"foo: x\nid: x\n" + stream(*PLAIN))
    assert finding.causes in (("an unknown field",), ("an id field",))
    assert finding.case.data.count(b": x\n") == 1


def test_an_answer_that_was_cut_off_is_explained_like_any_other() -> None:
    def mixes_choices(chunks: Iterable[bytes]) -> Any:
        whole = b"".join(chunks)
        view = repaired([whole])
        return {**view, "text": view["text"] * 2} if b'"index":1' in whole else view

    choices = [{"index": i, "delta": {"content": "a"}, "finish_reason": f} for i, f in enumerate(("stop", "length"))]
    assert found(mixes_choices, stream(chunk(choices=choices))).causes == ("more than one choice",)


def test_an_event_that_is_odd_but_plays_no_part_is_left_out() -> None:
    def loses_the_first(events: Iterable[Event]) -> Any:
        return repaired([stream(*(json.dumps(event.data) for event in list(events)[1:]))])

    odd = Event({"what": "is this"})
    case = Case("openai-chat", (*(Event(json.loads(payload)) for payload in PLAIN), odd), "events")
    with Bench(target(loses_the_first, takes="events", errors=(StreamError,))) as bench:
        finding = explain(bench, case, bench.deviations(case)[0])
    assert finding.deviation.rule is None
    assert odd not in finding.case.chunks


def test_events_are_explained_too() -> None:
    def skips_usage(events: Iterable[Any]) -> Iterator[Delta]:
        return iter([Delta("x")])

    made = target(skips_usage, takes="events")
    case = Case("openai-chat", tuple(Event(json.loads(payload)) for payload in PLAIN), "events")
    with Bench(made) as bench:
        finding = explain(bench, case, bench.deviations(case)[0])
    assert not finding.flaky
    assert finding.case.takes == "events"
