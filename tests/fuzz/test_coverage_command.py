"""``streamfuzz coverage``: searching, merging, and artifacts that become case files."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streamfuzz import corpus
from streamfuzz.bench import Bench
from streamfuzz.config import Recipe
from streamfuzz.coverage_command import coverage_group
from streamfuzz.engines import artifacts
from streamfuzz.engines.coverage import Setup
from streamfuzz.engines.fuzz_input import Input, encode
from streamfuzz.spec import UsageError

from .test_coverage import SOURCE

pytestmark = pytest.mark.skipif(find_spec("atheris") is None, reason="there is no Atheris for this Python")

BAD = b"event: qZ\ndata: a\n\n"


@pytest.fixture
def home(project: Path) -> Path:
    """The working directory, with the module ``odd`` and a folder of inputs."""
    (project / "odd.py").write_text(SOURCE)
    (project / "inputs").mkdir()
    return project


def run(*arguments: str) -> Result:
    return CliRunner().invoke(coverage_group, arguments, standalone_mode=False, catch_exceptions=False)


def test_a_search_reports_as_a_run_does_and_keeps_its_inputs(home):
    (home / "bad.sse").write_bytes(BAD)
    done = run(
        "search", "odd:loses", "--time=20s", "--max-cases=500", "--begin-with=bad.sse", "--inputs=inputs", "--json"
    )
    told = json.loads(done.stdout)
    assert done.return_value == 1
    assert told["findings"][0]["oracle"] == "faithful"
    assert Path(told["findings"][0]["case"]).is_relative_to("streamfuzz-findings/loses")
    assert list((home / "inputs").iterdir())


def test_merging_keeps_the_fewest_inputs_with_the_same_reach(home):
    (home / "other").mkdir()
    for number in range(5):
        (home / "other" / str(number)).write_bytes(b"data: %d\n\n" % number)
    (home / "inputs" / "bad").write_bytes(BAD)
    done = run("merge", "odd:loses", "other", "--inputs=inputs")
    kept = [path.read_bytes() for path in (home / "inputs").iterdir()]
    assert done.output == f"6 inputs -> {len(kept)}: inputs\n"
    assert BAD in kept
    assert len(kept) < 6
    assert len(list((home / "other").iterdir())) == 5


def test_what_cannot_be_merged_stays_as_it_is(home):
    (home / "inputs" / "one").write_bytes(BAD)
    with pytest.raises(UsageError, match="no such folder: nowhere"):
        run("merge", "odd:loses", "nowhere", "--inputs=inputs")
    with Bench(Recipe("odd:loses").target("sse")) as bench:
        (home / "odd.py").write_text("raise RuntimeError('broken meanwhile')")
        with pytest.raises(UsageError, match=r"could not merge inputs, which stays as it is: .*broken meanwhile"):
            artifacts.merge(bench, Setup(Recipe("odd:loses"), folder=Path("inputs")))
    assert [path.name for path in (home / "inputs").iterdir()] == ["one"]


@pytest.mark.parametrize(
    ("target", "kind", "sentence"),
    [
        ("crashes", "crashed", "SIGSEGV"),
        ("loses", "lost", "loses"),
    ],
)
def test_an_artifact_becomes_a_case_file(home, target, kind, sentence):
    (home / "crash-1").write_bytes(encode(Input(b"data: b\n\n" + BAD, (3,))))
    done = run("keep", f"odd:{target}", "crash-1", "--corpus=kept")
    (file,) = [corpus.open_case(path) for path in corpus.paths([home / "kept"])]
    assert done.return_value == 1
    assert sentence in done.output
    assert file.found is not None
    assert kind in file.found.signature
    assert b"qZ" in file.case.data


def test_libfuzzer_makes_a_deadly_artifact_smaller(home):
    raw = b"data: and much more\n\n" * 20 + BAD
    (home / "crash-1").write_bytes(raw)
    bench = Bench(Recipe("odd:crashes").target("sse"))
    small = artifacts.minimise(bench, Setup(Recipe("odd:crashes")), artifacts.read(home / "crash-1"), 5)
    assert len(small) < len(raw)
    assert b"qZ" in small
    assert artifacts.minimise(bench, Setup(Recipe("odd:crashes")), b"data: fine\n\n", 2) == b"data: fine\n\n"


def test_an_artifact_on_which_nothing_fails_is_kept_and_told_of(home):
    (home / "timeout-1").write_bytes(b"data: b\n\n")
    done = run("keep", "odd:loses", "timeout-1", "--corpus=kept")
    (file,) = [corpus.open_case(path) for path in corpus.paths([home / "kept"])]
    assert done.return_value == 0
    assert "timeout-1: nothing fails on it" in done.output
    assert file.why == "libFuzzer left it as timeout-1; nothing fails on it any more"


def test_what_is_no_artifact_is_refused_before_anything_is_done(home):
    (home / "crash-1").write_bytes(BAD)
    (home / "notes.txt").write_text("hello")
    with pytest.raises(UsageError, match=r"notes\.txt is no artifact of libFuzzer: .*streamfuzz replay"):
        run("keep", "odd:loses", "crash-1", "notes.txt", "--corpus=kept")
    with pytest.raises(UsageError, match="cannot read crash-2"):
        run("keep", "odd:loses", "crash-2")
    assert not (home / "kept").exists()
    assert (home / "crash-1").read_bytes() == BAD
