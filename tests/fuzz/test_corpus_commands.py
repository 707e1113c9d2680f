"""``streamfuzz corpus``: what people see of a corpus, and what they do to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamfuzz import corpus
from streamfuzz.case import Case, CaseFile, Found, dump
from streamfuzz.corpus_commands import failing
from streamfuzz.nightly.store import Store

from .conftest import Command, Done

HEAD = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":['
HELLO = HEAD + b'{"index":0,"delta":{"content":"h\xc3\xa9"},"finish_reason":null}]}\n\n'
STOP = HEAD + b'{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
WHOLE = HELLO + STOP + b"data: [DONE]\n\n"
CUT = HELLO.index(b"\xa9")
SIGNATURE = "fragmentation.altered: a cut inside a 2-byte character"


def found(signature: str, *chunks: bytes) -> CaseFile:
    made = Found("demo", "fragmentation", signature, "demo alters the text")
    return CaseFile(Case("openai-chat", chunks or (WHOLE,)), "demo alters the text", found=made)


@pytest.fixture
def corpora(streamfuzz: Command) -> Command:
    """Runs ``streamfuzz corpus`` in an empty project."""

    def run(*arguments: str | Path) -> Done:
        return streamfuzz("corpus", *arguments)

    return run


# --- list


def test_a_corpus_is_listed_by_target(corpora: Command, project: Path) -> None:
    store = Store.open("streamfuzz-corpus")
    store.save("demo", found(SIGNATURE))
    store.save("other", CaseFile(Case("sse", (b"data: a\n\n",)), "by hand"))
    done = corpora("list")
    header, first, second = done.out.splitlines()
    assert header.split() == ["target", "file", "size", "signature", "why"]
    assert first.split()[:3] == ["demo", found("").name, str(found("").case.size)]
    assert SIGNATURE in first
    assert second.startswith("other")
    assert second.rstrip().endswith("by hand")
    assert (done.code, done.err) == (0, "")


def test_a_list_can_be_read_by_machines(corpora: Command, project: Path) -> None:
    store = Store.open(project / "kept")
    path = store.save("demo", found(SIGNATURE))
    corpus.write_whole(project / "kept" / "demo" / "x.json", b"{")
    done = corpora("list", "kept", "--json")
    (case,) = done.json["cases"]
    assert (project / case.pop("file")) == Path(path)
    assert case == {
        "target": "demo",
        "provider": "openai-chat",
        "size": len(WHOLE) + 1,
        "signature": SIGNATURE,
        "why": "demo alters the text",
    }
    assert [reason.partition(": ")[0] for reason in done.json["skipped"]] == ["skipped"]
    assert "x.json is not JSON" in corpora("list", "kept").err


def test_what_a_case_says_cannot_paint_the_terminal(corpora: Command, project: Path) -> None:
    hostile = "\x1b[2J[bold]x[/bold]\u202e\ud800"
    Store.open("streamfuzz-corpus").save("demo", found(hostile))
    out = corpora("list").out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert r"\x1B[2J[bold]x[/bold]\u{202E}" in out


def test_the_configured_corpus_is_meant(corpora: Command, project: Path) -> None:
    (project / "streamfuzz.toml").write_text('[nightly]\ncorpus = "memory://configured/corpus"\n')
    assert corpora("add", "demo", corpus.save(project, found(SIGNATURE))).code == 0
    assert [row["file"] for row in corpora("list", "--json").json["cases"]] == [
        f"memory://configured/corpus/demo/{found('').name}"
    ]
    Store.open("memory://configured/corpus").remove("demo", found("").name)


# --- add


def test_a_case_file_is_added_to_a_target_with_what_the_judge_says(corpora: Command, project: Path) -> None:
    (project / "mine.json").write_bytes(dump(found(SIGNATURE)))
    done = corpora("add", "demo", "mine.json")
    assert (done.code, done.out) == (0, f"{Path('streamfuzz-corpus') / 'demo' / found('').name}\n")
    ((_, kept),) = Store.open("streamfuzz-corpus").cases("demo")
    assert kept.found == found(SIGNATURE).found
    assert kept.expect == corpus.expectation(kept.case)


def test_a_folder_of_cases_and_a_recorded_stream_are_added(corpora: Command, project: Path) -> None:
    corpus.save(project / "folder", found(SIGNATURE))
    (project / "recorded.sse").write_bytes(WHOLE)
    done = corpora("add", "demo", "folder", "recorded.sse", "--provider", "openai-chat", "--corpus", "kept")
    assert (done.code, len(done.out.splitlines())) == (0, 3)
    assert len(list(Store.open("kept").cases("demo"))) == 2  # the recorded stream in one chunk is the case


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("demo", "gone.json"), "no such file or folder: gone.json"),
        (("demo", "broken.json"), "broken.json is not JSON"),
        (("demo", "recorded.sse"), "say whose with --provider"),
        (("nobody", "good.json"), "no target 'nobody'"),
        (("readers:described", "lines.json"), "use a target for those"),
        (("demo", "empty"), "no case files in empty"),
    ],
)
def test_what_cannot_be_added_is_told_and_nothing_is(
    corpora: Command, project: Path, arguments: tuple[str, ...], says: str
) -> None:
    (project / "empty").mkdir()
    (project / "broken.json").write_text("{")
    (project / "recorded.sse").write_bytes(WHOLE)
    (project / "good.json").write_bytes(dump(found(SIGNATURE)))
    (project / "lines.json").write_bytes(dump(CaseFile(Case("ollama", (b"{}\n",)))))
    target, file = arguments
    done = corpora("add", target, "good.json", file)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert not (project / "streamfuzz-corpus").exists()


# --- merge


def test_corpora_merge_into_the_last(corpora: Command, project: Path) -> None:
    Store.open("one").save("demo", found("a"))
    Store.open("two").save("demo", found("a"))
    Store.open("two").save("demo", found("b", HELLO))
    corpus.write_whole(project / "two" / "demo" / "x.json", b"{}")
    done = corpora("merge", "one", "two", "memory://merged/all")
    assert done.code == 0
    assert done.out.splitlines() == [
        "one: 1 case and 0 records copied, 0 cases already there",
        "two: 1 case and 0 records copied, 1 case already there",
    ]
    assert "x.json is not a case file" in done.err
    assert len(list(Store.open("memory://merged/all").cases("demo"))) == 2


def test_a_corpus_that_is_not_there_is_told(corpora: Command, project: Path) -> None:
    for arguments in (("merge", "gone", "all"), ("list", "gone"), ("prune", "gone")):
        done = corpora(*arguments)
        assert (done.code, done.out) == (2, "")
        assert "no corpus at gone: `streamfuzz nightly` and `streamfuzz corpus add` make one" in done.err
    assert list(project.iterdir()) == [project / "readers.py"]


# --- prune


@pytest.fixture
def kept(project: Path) -> Store:
    """A corpus of two cases that show the same, one larger than the other, and one written by hand."""
    store = Store.open("streamfuzz-corpus")
    store.save("demo", found(SIGNATURE, HELLO[:CUT], HELLO[CUT:] + STOP))
    store.save("demo", found(SIGNATURE, HELLO[:CUT], HELLO[CUT:] + STOP + STOP.replace(b"{}", b'{"content":""}')))
    store.save("demo", CaseFile(Case("openai-chat", (WHOLE,)), "by hand"))
    return store


def names(store: Store) -> set[str]:
    return {Path(path).name for path, _ in store.cases("demo")}


def test_pruning_deletes_what_others_show_and_says_by_what(corpora: Command, kept: Store) -> None:
    before = names(kept)
    told = corpora("prune", "--dry-run")
    assert names(kept) == before
    done = corpora("prune")
    assert (told.code, done.code) == (0, 0)
    assert told.out.replace("would delete", "deleted") == done.out
    assert len(names(kept)) == len(before) - 1
    line, total = done.out.splitlines()
    deleted, covering = line.removeprefix("deleted ").split(": covered by ")
    assert {Path(deleted).name} == before - names(kept)
    assert {Path(path).name for path in covering.split(", ")} <= names(kept)
    assert total == "demo: kept 2 cases, deleted 1"
    assert corpora("prune").out == "demo: kept 2 cases, deleted 0\n"


def test_a_case_is_run_to_see_what_fails_today(project: Path) -> None:
    old = found("old", HELLO[:CUT], HELLO[CUT:] + STOP + b"data: [DONE]\n\n")
    fails = failing("demo", [("old.json", old)])
    assert list(fails(old)) == [SIGNATURE]


def test_what_fails_today_is_kept_too(corpora: Command, kept: Store) -> None:
    done: Any = corpora("prune", "--target", "demo", "--dry-run", "--json").json
    assert done["dry_run"] is True
    assert set(done["targets"]) == {"demo"}
    plan = done["targets"]["demo"]
    assert len(plan["keep"]) + len(plan["drop"]) == 3
    assert corpora("prune", "--target", "nobody").code == 2
    assert "no cases of target readers:described" in corpora("prune", "--target", "readers:described").err
