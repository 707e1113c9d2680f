"""Kept cases, run again: what fails is told, known deviations are excused, and a changed judge is told apart."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from streamfuzz import corpus
from streamfuzz.case import Case, CaseFile, Expectation
from streamfuzz.demo import StreamError, demo, demo_repaired, repaired
from streamfuzz.replay import Replayed, replay
from streamfuzz.spec import Known, Target, target

HEAD = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":['
HELLO = HEAD + b'{"index":0,"delta":{"content":"h\xc3\xa9"},"finish_reason":null}]}\n\n'
STOP = HEAD + b'{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
SOUND = Case("openai-chat", (HELLO, STOP, DONE))
CUT = HELLO.index(b"\xa9")
IN_CHARACTER = Case("openai-chat", (HELLO[:CUT], HELLO[CUT:] + STOP + DONE))
CUT_OFF = Case("openai-chat", (HELLO,))
ISOLATED = Case("openai-chat", (HELLO, STOP, DONE), probe="isolated", other=(HELLO, STOP, DONE))
SIGNATURE = "fragmentation.altered: a cut inside a 2-byte character"
PATH = Path("kept/1.json")


def one(made: Target, file: CaseFile | Case, **more: Any) -> Replayed:
    kept = file if isinstance(file, CaseFile) else CaseFile(file)
    (replayed,) = replay(made, [(PATH, kept)], **more)
    assert (replayed.path, replayed.file) == (str(PATH), kept)
    return replayed


def signatures(replayed: Replayed) -> list[str]:
    return [finding.signature for finding in replayed.findings]


def test_cases_come_back_in_order() -> None:
    files = [(Path(f"{n}.json"), CaseFile(case)) for n, case in enumerate((SOUND, IN_CHARACTER, CUT_OFF, ISOLATED))]
    assert [(r.path, r.status) for r in replay(demo(), files)] == [
        ("0.json", "pass"),
        ("1.json", "fail"),
        ("2.json", "fail"),
        ("3.json", "pass"),
    ]
    assert {r.status for r in replay(demo_repaired(), files)} == {"pass"}


def test_a_failure_comes_with_its_cause() -> None:
    assert signatures(one(demo(), IN_CHARACTER)) == [SIGNATURE]
    assert one(demo(), IN_CHARACTER).findings[0].sentence.startswith("demo alters the text: 'é' becomes ")


def test_probes_are_run_again_too() -> None:
    shared: list[bytes] = []

    def mixes(chunks: Iterable[bytes]) -> Any:
        for chunk in chunks:
            shared.append(chunk)
            yield ""
        mine = list(shared)
        shared.clear()
        return repaired(mine)

    replayed = one(target(mixes, errors=(StreamError,)), ISOLATED)
    assert replayed.status == "fail"
    assert {finding.deviation.oracle for finding in replayed.findings} == {"isolated"}


def test_only_the_oracles_asked_for_are_held() -> None:
    assert one(demo(), IN_CHARACTER, oracles=("fail_closed",)).status == "pass"
    assert one(demo(), CUT_OFF, oracles=("fail_closed",)).status == "fail"


def known(*kept: tuple[str, date]) -> Target:
    made = tuple(Known(signature, "waits for upstream", expires) for signature, expires in kept)
    return Target("demo", demo().call, known=made)


def test_a_known_deviation_is_known_until_it_expires() -> None:
    today = date.today()
    assert one(known((SIGNATURE, today)), IN_CHARACTER).status == "known"
    assert one(known((SIGNATURE, today - timedelta(1))), IN_CHARACTER).status == "fail"
    assert one(known(("faithful.altered", today)), IN_CHARACTER).status == "fail"
    assert one(known((SIGNATURE, today)), SOUND).status == "pass"


def test_what_shows_only_sometimes_is_flaky() -> None:
    runs: list[int] = []

    def moody(chunks: Iterable[bytes]) -> Any:
        runs.append(1)
        view = repaired(chunks)
        return {**view, "text": "other"} if len(runs) == 1 else view

    replayed = one(target(moody, errors=(StreamError,)), Case("openai-chat", (HELLO + STOP + DONE,)))
    assert replayed.status == "flaky"
    assert [finding.flaky for finding in replayed.findings] == [True]


def test_an_incomplete_message_that_is_shown_only_weakly_is_a_warning() -> None:
    def weak(chunks: Iterable[bytes]) -> Any:
        try:
            return repaired(chunks)
        except StreamError:
            return {"text": "hé", "finish": None}

    replayed = one(target(weak, errors=(StreamError,)), CUT_OFF)
    assert replayed.status == "warn"
    assert [finding.deviation.verdict for finding in replayed.findings] == ["warn"]


@pytest.mark.parametrize(
    ("expect", "differs"),
    [
        (None, ""),
        (corpus.expectation(SOUND), ""),
        (Expectation("complete", None, {"text": "replies are not compared"}), ""),
        (Expectation("refuse", "x.y"), "the file expects refuse (x.y), the judge says complete (no rule)"),
        (Expectation("complete", "x.y"), "the file expects complete (x.y), the judge says complete (no rule)"),
        (Expectation("either"), "the file expects either (no rule), the judge says complete (no rule)"),
    ],
)
def test_a_judge_that_has_changed_its_mind_is_told(expect: Expectation | None, differs: str) -> None:
    replayed = one(demo(), CaseFile(SOUND, expect=expect))
    assert (replayed.status, replayed.judge_differs) == ("pass", differs)
