"""The coverage engine: what its process tells, what is made of that, and that nothing it meets is lost."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from streamfuzz import campaign
from streamfuzz.bench import Bench
from streamfuzz.case import Case
from streamfuzz.config import Recipe
from streamfuzz.engines import Batch, Budget
from streamfuzz.engines.coverage import HOW, Setup, coverage, folder_of, packages_of, seeds
from streamfuzz.engines.coverage_child import KEPT, Explorer, Seen, Tally, Told
from streamfuzz.engines.fuzz_input import Input, decode, encode
from streamfuzz.spec import Target, UsageError, target
from streamfuzz.targets import ready
from streamfuzz_strategies.framing.sse import SSEDecoder
from streamfuzz_strategies.providers import NAMES, get

needs_atheris = pytest.mark.skipif(find_spec("atheris") is None, reason="there is no Atheris for this Python")

SOURCE = '''
"""Decoders of server-sent events that go wrong on events of a certain name."""

import ctypes
import os
import signal
import time

from streamfuzz.spec import target
from streamfuzz_strategies.framing.sse import SSEDecoder


def decoder(wrong):
    def decode(chunks):
        decoder = SSEDecoder()
        for chunk in chunks:
            for frame in decoder.feed(chunk):
                if frame.event == "qZ":
                    wrong()
                else:
                    yield {"data": frame.data, "event": frame.event, "id": frame.id}
    return decode


def blocked():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # as code in C may, and no timer gets through
    time.sleep(60)


def greedy():
    bytearray(1 << 40)


loses = target(decoder(lambda: None), name="loses", provider="sse", gives="frames")
crashes = target(decoder(lambda: ctypes.string_at(0)), name="crashes", provider="sse", gives="frames")
leaves = target(decoder(lambda: os._exit(3)), name="leaves", provider="sse", gives="frames")
hangs = target(decoder(lambda: time.sleep(60)), name="hangs", provider="sse", gives="frames", timeout=0.3)
blocks = target(decoder(blocked), name="blocks", provider="sse", gives="frames", timeout=0.3)
eats = target(decoder(greedy), name="eats", provider="sse", gives="frames")
raises = target(decoder(lambda: {}["q"]), name="raises", provider="sse", gives="frames")


def named(chunks):
    return decoder(lambda: None)(chunks)
'''


def decode_frames(chunks: Iterable[bytes]) -> Any:
    decoder = SSEDecoder()
    for chunk in chunks:
        for frame in decoder.feed(chunk):
            if "x" not in frame.data:
                yield frame


LOSES_X = target(decode_frames, name="loses-x", provider="sse", gives="frames")


@pytest.fixture
def odd(project: Path) -> Callable[[str], Target]:
    """Makes a target of the module ``odd``, which other processes can import too."""
    (project / "odd.py").write_text(SOURCE)
    return lambda name: Recipe(f"odd:{name}").target("sse")


def search(asked: Target, budget: Budget, setup: Setup = Setup()) -> list[Batch]:  # noqa: B008 - a frozen value
    recipe = Recipe(f"odd:{asked.name}")
    with Bench(asked) as bench:
        return list(coverage(bench, budget, replace(setup, recipe=recipe)))


def until(asked: Target, kind: str, seconds: float = 40.0, setup: Setup = Setup()) -> tuple[Batch, Any]:  # noqa: B008
    """Search until a deviation of a kind is met: all that was done, and the sighting."""
    done = Batch()
    recipe = Recipe(f"odd:{asked.name}")
    with Bench(asked) as bench:
        for batch in coverage(bench, Budget(seconds=seconds), replace(setup, recipe=recipe)):
            done.cases += batch.cases
            for sighting in batch.sightings:
                if sighting.deviation.kind == kind:
                    return done, sighting
    raise AssertionError(f"no {kind} in {seconds} s and {done.cases} cases")


# -- what the process tells ---------------------------------------------------------------------------------------


def explored(inputs: Iterable[bytes], **given: Any) -> list[Told]:
    told: list[Told] = []
    with Bench(LOSES_X) as bench:
        explorer = Explorer(bench, told.append, **given)
        for raw in inputs:
            explorer(raw)
        explorer.tally()
    return told


def test_a_deviation_of_one_sort_is_told_a_few_times_and_then_counted():
    told = explored([b"data: x%d\n\n" % number for number in range(10)])
    seen = [each for each in told if isinstance(each, Seen)]
    assert [each.input for each in seen] == [b"data: x0\n\n", b"data: x1\n\n"]
    assert (seen[0].oracle, seen[0].kind, seen[0].rule, seen[0].new) == ("faithful", "lost", "", False)
    tallies = [each for each in told if isinstance(each, Tally)]
    assert sum(tally.repeats.get("faithful.lost", 0) for tally in tallies) == 10 - KEPT
    assert sum(tally.cases for tally in tallies) == 10
    assert sum(tally.inside for tally in tallies) > 0


def test_a_known_sort_is_told_again_where_the_input_reached_new_code():
    inputs = [b"data: x%d\n\n" % number for number in range(10)]
    told = explored(inputs, is_kept=lambda raw: raw == inputs[7])
    assert [each.input for each in told if isinstance(each, Seen) and each.new] == [inputs[7]]


def test_a_cut_run_is_two_cases_and_the_number_of_cases_is_kept_to():
    with Bench(LOSES_X) as bench:
        told: list[Told] = []
        explorer = Explorer(bench, told.append, cases=3)
        assert explorer(encode(Input(b"data: a\n\n", (2,))))
        assert not explorer(b"data: b\n\n")
    assert told[-1] == Tally(3, told[-1].inside, {}, {}, last=True)  # type: ignore[union-attr]


def test_goals_are_counted():
    raw = encode(Input(b"data: a\n\n", (2,), "reset"))
    tally = explored([raw] * 16)[-1]
    assert isinstance(tally, Tally)
    assert tally.goals["connection reset"] == 16
    assert tally.goals["cut inside a field name"] == 1


# -- what it begins with ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", NAMES)
def test_seeds_are_drawn_by_seed_whole_and_cut(provider):
    first = list(seeds(get(provider), Budget(seed=1)))
    assert first == list(seeds(get(provider), Budget(seed=1)))
    assert first != list(seeds(get(provider), Budget(seed=2)))
    assert {bool(decode(raw).cuts) for raw in first} == {True, False}


def test_kept_cases_are_begun_with():
    cases = (Case("sse", (b"data: k", b"\n\n")), Case("sse", (b"data: r\n\n",), end="reset"))
    begun = [decode(raw) for raw in seeds(get("sse"), Budget(), cases)]
    assert begun[:2] == [Input(b"data: k\n\n", (7,)), Input(b"data: r\n\n", (), "reset")]


def test_the_text_of_one_family_can_be_asked_for():
    def drawn(family: str) -> bytes:
        return b"".join(decode(raw).data for raw in seeds(get("ollama"), Budget(family=family)))

    assert "\u2028".encode() in drawn("not line ends")
    assert "\u2028".encode() not in drawn("words")


def test_tools_that_are_none_are_refused():
    with pytest.raises(UsageError, match="must be a JSON Schema"):
        list(seeds(get("openai-chat"), Budget(tools={"f": 3})))  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("demo", ("streamfuzz",)), ("httpx-sse", ("streamfuzz", "httpx", "httpx_sse"))],
)
def test_the_packages_of_a_ready_target(name, expected):
    assert packages_of(ready(name)) == expected


def test_the_package_of_a_users_target():
    assert packages_of(target(partial(decode_frames), provider="sse")) == ("tests",)


def test_each_target_has_its_folder():
    assert folder_of(replace(LOSES_X, name="my target/é")) == Path(".streamfuzz/coverage/my-target-é-sse")


# -- what cannot be done ------------------------------------------------------------------------------------------


def test_without_atheris_there_is_one_sentence_that_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "atheris", None)
    monkeypatch.setattr("streamfuzz.engines.coverage.find_spec", lambda name: None)
    with Bench(LOSES_X) as bench, pytest.raises(UsageError, match=r"pip install 'streamfuzz\[atheris\]'.*3\.11 to 3\."):
        next(coverage(bench, Budget()))


@needs_atheris
def test_a_target_that_no_other_process_can_have_is_refused(project):
    local = target(lambda chunks: [], name="local", provider="sse", gives="frames")
    with Bench(local) as bench, pytest.raises(UsageError, match=r"local in another process.*at the top of a module"):
        next(coverage(bench, Budget()))


@needs_atheris
def test_a_module_that_breaks_in_the_other_process_is_told_of(odd, project):
    asked = odd("loses")
    (project / "odd.py").write_text("raise RuntimeError('broken meanwhile')")
    with pytest.raises(UsageError, match=r"coverage engine cannot run loses: .*broken meanwhile"):
        search(asked, Budget(seconds=20))


@needs_atheris
def test_a_folder_that_cannot_be_written_to_is_refused(odd, project):
    (project / "file").touch()
    with pytest.raises(UsageError, match=r"cannot write to .*choose another folder"):
        search(odd("loses"), Budget(seconds=20), Setup(folder=project / "file" / "inputs"))


# -- searching ----------------------------------------------------------------------------------------------------


@needs_atheris
@pytest.mark.untraced
def test_it_gets_behind_a_branch_and_the_next_search_begins_there(odd, project):
    def lost(cases: int) -> list[bytes]:
        batches = search(odd("loses"), Budget(cases=cases, seconds=60))
        return [sighting.case.data for batch in batches for sighting in batch.sightings if sighting.how == HOW]

    begun = len(list(seeds(get("sse"), Budget()))) * 2
    assert lost(begun) == []
    first = lost(20_000)
    assert first
    assert all(b"qZ" in data for data in first)
    kept = project / ".streamfuzz" / "coverage" / "loses-sse"
    assert lost(begun + 4 * len(list(kept.iterdir())))


@needs_atheris
def test_the_number_of_cases_is_kept_to(odd):
    assert sum(batch.cases for batch in search(odd("loses"), Budget(cases=3000, seconds=60))) in (3000, 3001)


@needs_atheris
def test_a_sighting_names_the_rule_that_is_at_stake(project):
    with Bench(ready("demo")) as bench:
        batches = list(coverage(bench, Budget(cases=3000, seconds=60), Setup(folder=project / "inputs")))
    rules = {s.deviation.rule.id for batch in batches for s in batch.sightings if s.deviation.rule is not None}
    assert {"stream.payload.not-json", "openai-chat.stream.empty"} <= rules


@needs_atheris
def test_several_processes_share_what_they_find(odd):
    batches = search(odd("loses"), Budget(cases=4000, seconds=60), Setup(jobs=2))
    assert sum(batch.cases for batch in batches) >= 4000


@needs_atheris
def test_it_stops_when_asked_and_leaves_no_process(odd):
    started = monotonic()
    with Bench(odd("loses")) as bench:
        asked = Budget(seconds=60, stopped=lambda: monotonic() - started > 1)
        list(coverage(bench, asked, Setup(Recipe("odd:loses"))))
    assert monotonic() - started < 10


@needs_atheris
@pytest.mark.parametrize(
    ("name", "kind", "got"),
    [
        ("crashes", "crashed", "killed by signal 11 (SIGSEGV)"),
        ("leaves", "crashed", "exited with code 3"),
        ("hangs", "hung", "still running after 0.3 s"),
        ("eats", "memory", "MemoryError"),
        ("raises", "undeclared", "KeyError"),
    ],
)
def test_whatever_a_target_does_behind_the_branch_is_a_finding(odd, name, kind, got):
    _, sighting = until(odd(name), kind)
    assert got in str(sighting.deviation.got)
    assert b"qZ" in sighting.case.data


@needs_atheris
def test_a_hang_that_no_timer_gets_through_costs_a_process_and_is_a_finding(odd, monkeypatch):
    monkeypatch.setattr("streamfuzz.engines.coverage.PATIENCE", 1.0)
    _, sighting = until(odd("blocks"), "hung")
    assert "had to be killed" in str(sighting.deviation.got)
    assert sighting.deviation.kills


@needs_atheris
@pytest.mark.untraced
def test_a_campaign_searches_with_it(odd, project):
    engine = partial(coverage, setup=Setup(Recipe("odd:raises")))
    result = campaign.run(odd("raises"), Budget(seconds=8), folder=project / "cases", engine=engine)
    assert {reported.finding.deviation.error for reported in result.findings} == {"KeyError"}
    assert min(reported.finding.case.size for reported in result.findings) < 40
    assert len(list((project / "cases").iterdir())) == len(result.findings)
