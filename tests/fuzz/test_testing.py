"""A fuzz test in one line: it passes, or fails with the explanation, for any test runner."""

from __future__ import annotations

import unittest
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from streamfuzz import campaign
from streamfuzz.corpus import open_case
from streamfuzz.demo import StreamError, demo, repaired
from streamfuzz.engines import Budget
from streamfuzz.result import Result
from streamfuzz.spec import Known, Target, UsageError
from streamfuzz.testing import FuzzFailure, fuzz_test

CASES = 300


def wrong_finish(chunks: Iterable[bytes]) -> Any:
    return {**repaired(chunks), "finish": "never"}


def failure(test: Callable[[], None]) -> str:
    with pytest.raises(FuzzFailure) as failed:
        test()
    return str(failed.value)


def test_a_sound_parser_passes() -> None:
    fuzz_test(repaired, errors=(StreamError,), cases=CASES)()


def test_a_faulty_parser_fails_with_the_sentence_the_signature_and_the_bytes() -> None:
    text = failure(fuzz_test(wrong_finish, name="mine", errors=(StreamError,), cases=CASES))
    assert text.startswith("mine alters the finish reason: ")
    assert "\n[faithful.altered]\n" in text
    assert "\nchunk  byte\n" in text
    assert "end of stream" in text
    assert "kept as" not in text


@pytest.mark.untraced
def test_every_finding_is_explained_and_kept_where_it_is_asked_to_be(tmp_path: Path) -> None:
    text = failure(fuzz_test(demo(), cases=60, seed=1, folder=str(tmp_path / "found")))
    kept = [open_case(path) for path in (tmp_path / "found").iterdir()]
    assert len(kept) > 1
    for file in kept:
        assert file.found is not None
        assert f"{file.found.sentence}\n[{file.found.signature}]\n" in text
        assert f"kept as {tmp_path / 'found' / file.name}" in text


@pytest.mark.untraced
def test_a_failure_is_a_failed_assertion_for_any_runner() -> None:
    test = fuzz_test(wrong_finish, errors=(StreamError,), cases=CASES)
    result = unittest.TestResult()
    unittest.FunctionTestCase(test).run(result)
    assert (len(result.failures), result.errors) == (1, [])


def test_the_test_is_named_for_the_parser() -> None:
    test = fuzz_test(demo().call, provider="openai-chat")
    assert (test.__name__, test.__qualname__) == ("test_parse", "test_parse")
    assert test.__doc__ == "parse keeps the invariants on streams of openai-chat."
    assert fuzz_test(demo()).__name__ == "test_demo"


def test_the_same_streams_are_drawn_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    budgets: list[Budget] = []

    def remember(made: Target, budget: Budget, **more: Any) -> campaign.Result:
        budgets.append(budget)
        return Result(made.name, made.provider, budget.seed, cases=1, goals=Counter(["x"]))

    monkeypatch.setattr(campaign, "run", remember)
    fuzz_test(demo())()
    fuzz_test(demo(), cases=5, seconds=1.5, seed=7)()
    assert budgets == [Budget(30.0, 20_000, 0), Budget(1.5, 5, 7)]
    assert not any(budget.database for budget in budgets)


@pytest.mark.untraced
def test_a_known_deviation_that_is_gone_fails() -> None:
    known = (Known("faithful.altered", "waits for upstream", date(2999, 1, 1)),)
    fuzz_test(wrong_finish, errors=(StreamError,), known=known, cases=CASES)()
    text = failure(fuzz_test(repaired, errors=(StreamError,), known=known, cases=CASES))
    assert text == "a known deviation did not occur, take it off the list: faithful.altered (waits for upstream)"


def test_too_little_time_is_no_success() -> None:
    text = failure(fuzz_test(repaired, errors=(StreamError,), seconds=1e-6))
    assert text.startswith("nothing was judged in ")
    assert text.endswith(": give it more time or cases")


def test_ctrl_c_stops_the_runner_too(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = Result("t", "sse", 0, cases=1, goals=Counter(["x"]), interrupted=True)
    monkeypatch.setattr(campaign, "run", lambda *args, **more: stopped)
    with pytest.raises(KeyboardInterrupt):
        fuzz_test(demo())()


def test_a_wrong_description_is_told_when_the_test_is_made() -> None:
    with pytest.raises(UsageError, match="unknown provider 'closed-ai'"):
        fuzz_test(repaired, provider="closed-ai")
    with pytest.raises(UsageError, match="a Target describes itself already; leave out provider, takes"):
        fuzz_test(demo(), provider="sse", takes="text")
