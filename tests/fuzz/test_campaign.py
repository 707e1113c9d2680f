"""Campaigns: what was found is grouped, shrunk, written and told, and known deviations stay true."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from streamfuzz import campaign
from streamfuzz.bench import Bench
from streamfuzz.campaign import preflight, run
from streamfuzz.case import Case
from streamfuzz.corpus import open_case
from streamfuzz.demo import StreamError, demo, repaired
from streamfuzz.deviation import Deviation
from streamfuzz.engines import Batch, Budget, Sighting
from streamfuzz.explain import explain
from streamfuzz.finding import Finding
from streamfuzz.grouping import fold
from streamfuzz.happenings import NewFinding, Progress
from streamfuzz.result import Reported, Result
from streamfuzz.spec import Known, Target, UsageError, target

SMALL = Budget(seconds=None, cases=1200, seed=1)
REPAIRED = target(repaired, errors=(StreamError,))
TOMORROW, YESTERDAY = date.today() + timedelta(1), date.today() - timedelta(1)


def wrong_finish(chunks: Iterable[bytes]) -> Any:
    return {**repaired(chunks), "finish": "never"}


def wrong(known: tuple[Known, ...] = ()) -> Target:
    return target(wrong_finish, name="wrong", errors=(StreamError,), known=known)


@pytest.fixture(scope="module")
def of_demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, list[Any], Path]:
    folder = tmp_path_factory.mktemp("corpus")
    told: list[Any] = []
    return run(demo(), SMALL, folder=folder, tell=told.append), told, folder


Outcome = tuple[Result, list[Any], Path]


# --- what a campaign finds


def test_the_demo_has_findings_and_its_repaired_twin_has_none(of_demo: Outcome) -> None:
    assert of_demo[0].exit_code == 1
    sound = run(REPAIRED, SMALL)
    assert sound.findings == []
    assert sound.exit_code == 0


def test_a_result_says_what_was_searched(of_demo: Outcome) -> None:
    result, _, _ = of_demo
    assert (result.target, result.provider, result.seed) == ("demo", "openai-chat", 1)
    assert result.cases >= 1200
    assert 0 < result.inside <= result.seconds
    assert not result.interrupted
    assert set(result.unreached).isdisjoint(result.goals)


def test_every_finding_has_a_signature_of_its_own(of_demo: Outcome) -> None:
    signatures = [reported.finding.signature for reported in of_demo[0].findings]
    assert len(signatures) > 1
    assert len(set(signatures)) == len(signatures)


def test_findings_that_count_come_first(of_demo: Outcome) -> None:
    counts = [reported.counts for reported in of_demo[0].findings]
    assert counts == sorted(counts, reverse=True)


def test_every_finding_shows_again_from_its_file(of_demo: Outcome) -> None:
    result, _, folder = of_demo
    assert {reported.path for reported in result.findings} == set(map(str, folder.iterdir()))
    with Bench(demo()) as bench:
        for reported in result.findings:
            assert reported.path is not None
            file = open_case(Path(reported.path))
            assert file.case == reported.finding.case
            assert file.why == reported.finding.sentence
            assert file.found is not None
            assert file.found.signature == reported.finding.signature
            assert any(d.same_as(reported.finding.deviation) for d in bench.deviations(file.case))


def test_findings_are_told_as_they_are_made_and_progress_never_goes_back(of_demo: Outcome) -> None:
    result, told, _ = of_demo
    new = [happening.finding.signature for happening in told if isinstance(happening, NewFinding)]
    assert len(new) == len(set(new))
    assert {reported.finding.signature for reported in result.findings} <= set(new)
    progress = [happening for happening in told if isinstance(happening, Progress)]
    assert [p.cases for p in progress] == sorted(p.cases for p in progress)
    assert progress[-1].cases == result.cases
    assert all(p.goals <= p.goals_in_all for p in progress)
    assert {"searching", "shrinking"} <= {p.stage for p in progress}


@pytest.mark.untraced
def test_only_the_oracles_asked_for_are_asked() -> None:
    found = run(demo(), Budget(seconds=None, cases=4000, seed=1), oracles=("fail_closed",)).findings
    assert {reported.finding.deviation.oracle for reported in found} == {"fail_closed"}


# --- known deviations

SIGNATURE = "faithful.altered"


@pytest.mark.untraced
def test_a_known_deviation_is_excused_until_it_expires() -> None:
    result = run(wrong((Known(SIGNATURE, "being mended", TOMORROW),)), SMALL)
    assert [(r.finding.signature, r.counts) for r in result.findings] == [(SIGNATURE, False)]
    assert result.exit_code == 0
    assert result.gone == ()
    late = run(wrong((Known(SIGNATURE, "being mended", YESTERDAY),)), SMALL)
    assert [r.status for r in late.findings] == ["expired"]
    assert late.exit_code == 1


@pytest.mark.untraced
def test_a_deviation_is_still_excused_on_its_last_day() -> None:
    assert run(wrong((Known(SIGNATURE, "being mended", date.today()),)), SMALL).exit_code == 0


def test_a_deviation_that_is_gone_fails_the_run() -> None:
    gone = Known("faithful.lost: a comment", "being mended", TOMORROW)
    result = run(wrong((gone, Known(SIGNATURE, "", TOMORROW))), SMALL)
    assert result.gone == (gone,)
    assert result.exit_code == 4


def test_a_deviation_that_the_search_only_missed_is_not_gone(tmp_path: Path) -> None:
    kept = run(wrong(()), SMALL, folder=tmp_path).findings[0]
    known = Known(kept.finding.signature, "being mended", TOMORROW)
    short = Budget(seconds=None, cases=1, seed=1)
    result = run(wrong((known,)), short, oracles=("typed_error",), folder=tmp_path)
    assert result.findings == []
    assert result.gone == (known,), "an oracle that is not asked cannot show it"
    result = campaign.run(wrong((known,)), short, folder=tmp_path, engine=lambda bench, budget: iter([Batch(cases=1)]))
    assert result.findings == []
    assert result.gone == ()


def stumbles_over_comments(chunks: Iterable[bytes]) -> Any:
    whole = b"".join(chunks)
    view = repaired([whole])
    if not re.search(rb"^:", whole, re.MULTILINE):
        return view
    return {**view, "text": view["text"][:-1]} if len(view["text"]) > 1 else {**view, "finish": "oh"}


@pytest.mark.untraced
def test_of_two_changes_with_one_cause_an_excused_one_takes_the_other_not_in_and_is_not_gone() -> None:
    lost, altered = "faithful.lost: a comment", "faithful.altered: a comment"
    for known, other in ((lost, altered), (altered, lost)):
        excused = (Known(known, "being mended", TOMORROW),)
        made = target(stumbles_over_comments, provider="openai-chat", errors=(StreamError,), known=excused)
        result = run(made, SMALL)
        assert [(r.finding.signature, r.status) for r in result.findings] == [(other, "new")]
        assert result.gone == ()
        assert result.exit_code == 1


@pytest.mark.untraced
def test_a_known_deviation_excuses_no_other() -> None:
    other = Known(f"{SIGNATURE}: a comment", "being mended", TOMORROW)
    result = run(wrong((other,)), SMALL)
    assert [r.known for r in result.findings] == [None]
    assert (result.exit_code, result.gone) == (1, (other,))


# --- exit codes


def finding(verdict: Any = "fail", **more: Any) -> Finding:
    deviation = Deviation("faithful", "lost", "the text", verdict=verdict)
    return Finding("t", Case("sse", (b"",)), deviation, (), **more)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cases": 5}, 0),
        ({}, 4),
        ({"cases": 5, "goals": Counter()}, 4),
        ({"cases": 5, "findings": [Reported(finding())]}, 1),
        ({"cases": 5, "findings": [Reported(finding("warn"))]}, 0),
        ({"cases": 5, "findings": [Reported(finding(), status="known")]}, 0),
        ({"cases": 5, "gone": (Known("s", "", TOMORROW),)}, 4),
        ({"gone": (Known("s", "", TOMORROW),), "findings": [Reported(finding())]}, 1),
    ],
)
def test_the_exit_code_tells_how_it_went(changes: dict[str, Any], code: int) -> None:
    assert Result("t", "sse", 0, **{"goals": Counter(["truncated"]), **changes}).exit_code == code


# --- engines and interruptions


def sightings_of(made: Target, *cases: Case) -> list[Sighting]:
    with Bench(made) as bench:
        return [Sighting(case, deviation, "by hand") for case in cases for deviation in bench.deviations(case)]


HEAD = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":['
HELLO = HEAD + b'{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
PLAIN = Case("openai-chat", (HELLO + b"data: [DONE]\n\n",))


def test_any_engine_will_do_and_equal_failures_are_one_finding() -> None:
    made = wrong()
    seen = sightings_of(made, PLAIN, PLAIN, PLAIN)

    def engine(bench: Bench, budget: Budget) -> Iterator[Batch]:
        yield Batch(3, seen)

    result = run(made, SMALL, engine=engine)
    assert result.cases == 3
    (reported,) = result.findings
    assert reported.finding.count == 3
    assert reported.finding.case.size < PLAIN.size


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stage", ["searching", "shrinking"])
def test_a_search_that_was_asked_to_stop_keeps_what_it_has(stage: str, number: signal.Signals) -> None:
    made = wrong()
    seen = sightings_of(made, PLAIN)

    def engine(bench: Bench, budget: Budget) -> Iterator[Batch]:
        yield Batch(1, seen)
        if stage == "searching":
            signal.raise_signal(number)
            assert budget.stopped()

    def tell(happening: Any) -> None:
        if isinstance(happening, Progress) and happening.stage == stage == "shrinking":
            signal.raise_signal(number)

    result = run(made, SMALL, engine=engine, tell=tell)
    assert result.interrupted
    assert [reported.finding.signature for reported in result.findings] == [SIGNATURE]
    assert result.gone == ()
    assert result.exit_code == 1


def test_what_follows_from_a_failure_on_lawful_streams_is_folded_into_it() -> None:
    def refuses_comments(chunks: Iterable[bytes]) -> Any:
        whole = b"".join(chunks)
        return {"text": "", "finish": "stop"} if b": x" in whole else repaired([whole])

    made = target(refuses_comments, errors=(StreamError,))
    lawful = Case("openai-chat", (b": x\n" + PLAIN.data,))
    damaged = Case("openai-chat", (b": x\n" + PLAIN.data.replace(b'"stop"', b"null"),))
    seen = sightings_of(made, lawful, damaged)
    assert {sighting.deviation.oracle for sighting in seen} == {"faithful", "fail_closed"}

    def engine(bench: Bench, budget: Budget) -> Iterator[Batch]:
        yield Batch(2, seen)

    (reported,) = run(made, SMALL, engine=engine).findings
    assert reported.finding.deviation.oracle == "faithful"
    assert reported.finding.causes == ("a comment",)
    assert reported.finding.count == 2


def test_a_failure_under_a_rule_that_needs_nothing_more_takes_in_those_that_need_more() -> None:
    def trusts_anything(chunks: Iterable[bytes]) -> Any:
        whole = b"".join(chunks)
        return {"text": "", "finish": "stop"} if b"null" in whole else repaired([whole])

    def trusts_comments(chunks: Iterable[bytes]) -> Any:
        whole = b"".join(chunks)
        return trusts_anything([whole]) if b": x" in whole else repaired([whole])

    unfinished = PLAIN.data.replace(b'"stop"', b"null")
    cases = [Case("openai-chat", (unfinished,)), Case("openai-chat", (b": x\n" + unfinished,))]
    bare, busy = sightings_of(target(trusts_anything, errors=(StreamError,)), *cases)
    with Bench(target(trusts_comments, errors=(StreamError,))) as bench:
        more = explain(bench, busy.case, busy.deviation)
    with Bench(target(trusts_anything, errors=(StreamError,))) as bench:
        less = explain(bench, bare.case, bare.deviation)
    assert (less.causes, more.causes) == ((), ("a comment",))
    (folded,) = fold([more, less])
    assert (folded.causes, folded.count) == ((), 2)


# --- before the search


def nothing_at_all() -> None: ...


async def no_argument() -> None: ...


class NeedsArgument:
    def __init__(self, limit: int) -> None: ...

    def feed(self, chunk: bytes) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("call", "more", "message"),
    [
        (nothing_at_all, {}, "must take one argument, the chunks: give a function or class that does"),
        (lambda one, other: {}, {}, "must take one argument, the chunks"),
        (no_argument, {}, "must take one argument, the chunks"),
        (NeedsArgument, {}, "must take no argument"),
        (lambda chunks: None, {}, "gave nothing on a plain, complete stream of openai-chat: return the result"),
        (lambda chunks: 7, {}, "does not give reply: a reply must be a mapping with any of text"),
        (lambda chunks: [b"a"], {"provider": "sse"}, "does not give frames: a frame must be text, a mapping"),
        (lambda chunks: [object()], {"gives": "events"}, "does not give events: an event must be a JSON value"),
        (lambda chunks: {"tool_calls": [{}]}, {}, "a tool call must have 'name' and 'arguments'"),
    ],
)
def test_a_wrong_description_is_told_before_the_search(call: Callable[..., Any], more: Any, message: str) -> None:
    made = target(call, name="mine", **more)
    for ask in (preflight, lambda made: run(made, SMALL)):
        with pytest.raises(UsageError) as refusal:
            ask(made)
        assert str(refusal.value).startswith("target mine ")
        assert message in str(refusal.value)


def test_a_target_that_fails_on_the_plainest_stream_is_a_finding_and_no_wrong_description() -> None:
    def broken(chunks: Iterable[bytes]) -> Any:
        return {}["text"]

    preflight(target(broken))
    result = run(target(broken, errors=(StreamError,)), SMALL)
    assert result.exit_code == 1


def test_a_folder_that_cannot_be_written_to_is_told_before_the_search(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    runs: list[int] = []

    def counts(chunks: Iterable[bytes]) -> Any:
        runs.append(1)
        return repaired(chunks)

    with pytest.raises(UsageError, match="choose another folder"):
        run(target(counts), SMALL, folder=tmp_path / "file" / "below")
    assert runs == []


def test_what_kills_a_process_is_not_run_again_in_this_one(tmp_path: Path) -> None:
    ran: list[bytes] = []

    def watched(chunks: Iterable[bytes]) -> Any:
        ran.append(b"".join(chunks))
        return repaired([ran[-1]])

    deadly = replace(PLAIN, chunks=(b": deadly\n", *PLAIN.chunks))
    death = Deviation("bounded", "crashed", "the stream", got="killed by signal 11 (SIGSEGV)", error="SIGSEGV")

    def engine(bench: Bench, budget: Budget) -> Iterator[Batch]:
        yield Batch(1, [Sighting(deadly, death, "coverage")])

    (reported,) = run(target(watched, errors=(StreamError,)), SMALL, engine=engine, folder=tmp_path).findings
    assert reported.finding.case == deadly
    assert reported.path is not None
    assert deadly.data not in ran
