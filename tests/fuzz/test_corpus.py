"""Corpora: files are there whole or not at all, and every trouble is told as something to mend."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from streamfuzz import corpus
from streamfuzz.case import Case, CaseError, CaseFile, Expectation, Found, load
from streamfuzz.deviation import Deviation
from streamfuzz.finding import Finding
from streamfuzz.spec import UsageError

CASE = Case("sse", (b"data: a\n\n",))
FILE = CaseFile(CASE, "a reason")
HELLO = b"""data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m",\
"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}

"""
DONE = b"data: [DONE]\n\n"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


# --- writing


def test_a_saved_file_reads_back_and_is_named_by_its_content(tmp_path: Path) -> None:
    path = corpus.save(tmp_path / "deep" / "er", FILE)
    assert path == tmp_path / "deep" / "er" / FILE.name
    assert corpus.open_case(path) == FILE


def test_saving_twice_leaves_one_file_with_the_newer_reason(tmp_path: Path) -> None:
    corpus.save(tmp_path, FILE)
    corpus.save(tmp_path, CaseFile(CASE, "a better reason"))
    assert names(tmp_path) == [FILE.name]
    assert corpus.open_case(tmp_path / FILE.name).why == "a better reason"


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, error: BaseException
) -> None:
    corpus.save(tmp_path, FILE)
    before = (tmp_path / FILE.name).read_bytes()

    def fail(*args: Any) -> None:
        raise error

    monkeypatch.setattr(os, failing, fail)
    wanted = UsageError if isinstance(error, OSError) else KeyboardInterrupt
    for file in (CaseFile(CASE, "other"), CaseFile(Case("sse", (b"other",)))):
        with pytest.raises(wanted):
            corpus.save(tmp_path, file)
    assert names(tmp_path) == [FILE.name]
    assert (tmp_path / FILE.name).read_bytes() == before


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    for ask in (corpus.probe, lambda folder: corpus.save(folder, FILE)):
        with pytest.raises(UsageError, match=r"cannot write to .*; choose another folder"):
            ask(tmp_path / "file" / "below")

    def deny(*args: Any, **more: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", deny)
    with pytest.raises(UsageError, match="Permission denied; choose another folder"):
        corpus.probe(tmp_path)


def test_asking_whether_a_folder_can_be_written_to_leaves_it_empty(tmp_path: Path) -> None:
    corpus.probe(tmp_path / "new")
    assert names(tmp_path) == ["new"]


# --- reading


def test_a_file_that_cannot_be_read_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"cannot read .*gone\.json: No such file"):
        corpus.open_case(tmp_path / "gone.json")
    (tmp_path / "bad.json").write_bytes(b"{")
    with pytest.raises(CaseError, match=r"bad\.json is not JSON"):
        corpus.open_case(tmp_path / "bad.json")


def test_paths_come_in_order_of_name_and_place(tmp_path: Path) -> None:
    for name in ("b.json", "a/z.json", "a/y.json", "c.txt", ".hidden.json", ".x.part"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [str(path.relative_to(tmp_path)) for path in corpus.paths([tmp_path])] == ["a/y.json", "a/z.json", "b.json"]
    given = [tmp_path / "c.txt", tmp_path / "a"]
    assert [path.name for path in corpus.paths(given)] == ["c.txt", "y.json", "z.json"]


def test_a_place_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no such file or folder: .*nowhere"):
        list(corpus.paths([tmp_path / "nowhere"]))


# --- what is written


@pytest.mark.parametrize(
    ("chunks", "end", "outcome", "rule"),
    [
        ((HELLO, DONE), "eof", "complete", None),
        ((HELLO,), "eof", "either", "openai-chat.done.missing"),
        ((HELLO, DONE), "reset", "either", None),
        ((DONE,), "eof", "refuse", "openai-chat.stream.empty"),
        ((b"data: {\n\n",), "eof", "refuse", "stream.payload.not-json"),
    ],
)
def test_the_expectation_is_what_the_judge_says(chunks: Any, end: Any, outcome: str, rule: str | None) -> None:
    made = corpus.expectation(Case("openai-chat", chunks, end=end))
    assert made.outcome == outcome
    if rule is None:
        assert made.rule is None
    else:
        assert made.rule is not None
        assert made.rule.split(".")[0] == rule.split(".")[0]
    assert (made.reply is None) == (outcome == "refuse")
    if made.reply is not None:
        assert made.reply["choices"][0]["text"] == "hi"


def test_a_finding_is_kept_with_who_found_it_and_how() -> None:
    finding = Finding("t", CASE, Deviation("faithful", "lost", "frame 1", "a", None), ("a comment",), "truncated")
    file = corpus.as_file(finding)
    assert file.case == CASE
    assert file.why == finding.sentence
    assert file.found == Found("t", "faithful", "faithful.lost: a comment", finding.sentence, "truncated")
    assert isinstance(file.expect, Expectation)
    assert load(corpus.dump(file)) == file


# --- recorded streams


def test_a_recorded_stream_is_read_whole_and_byte_by_byte(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded.sse"
    recorded.write_bytes(b"data: a\n\n")
    whole, bytewise = corpus.open_any(recorded, "sse")
    assert whole.case == Case("sse", (b"data: a\n\n",))
    assert bytewise.case.data == whole.case.data
    assert {len(chunk) for chunk in bytewise.case.chunks} == {1}


def test_whose_stream_was_recorded_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="say whose with --provider"):
        corpus.open_any(tmp_path / "recorded.sse")
    with pytest.raises(CaseError, match=r"cannot read .*gone\.sse"):
        corpus.open_any(tmp_path / "gone.sse", "sse")


def test_a_case_file_is_its_one_case(tmp_path: Path) -> None:
    path = corpus.save(tmp_path, CaseFile(Case("sse", (b"data: a\n\n",))))
    assert corpus.open_any(path) == (corpus.open_case(path),)


# --- places


def test_a_path_and_a_file_url_are_folders_on_this_machine(tmp_path: Path) -> None:
    assert corpus.place("some/folder") == Path("some/folder")
    assert corpus.place((tmp_path / "a b").as_uri()) == tmp_path / "a b"
    assert corpus.save(corpus.place(tmp_path.as_uri()), FILE) == tmp_path / FILE.name


def test_a_url_is_an_object_store() -> None:
    place = corpus.place("memory://test-corpus/deep")
    corpus.probe(place)
    path = corpus.save(place, FILE)
    corpus.write_whole(place / "a" / "recorded.sse", b"data: a\n\n")
    assert str(path) == f"memory://test-corpus/deep/{FILE.name}"
    assert list(corpus.paths([place])) == [path]
    assert corpus.open_any(path) == (FILE,)
    assert corpus.open_any(place / "a" / "recorded.sse", "sse")[0].case == CASE
    corpus.remove(path)
    corpus.remove(path)
    assert list(corpus.paths([place])) == []
    with pytest.raises(CaseError, match=r"cannot read memory://test-corpus/deep/.*: No such file"):
        corpus.open_case(path)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nowhere://x/y", "cannot use nowhere://x/y: Unsupported filesystem"),
        ("s3://", "s3:// names no bucket: write s3://bucket/folder"),
        ("memory:///", "memory:/// names no bucket: write memory://bucket/folder"),
    ],
)
def test_a_url_that_is_no_place_is_told(url: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        corpus.place(url)


@pytest.mark.parametrize(("url", "lacking"), [("gs://bucket/x", "gcsfs"), ("memory://x", "upath")])
def test_what_is_not_installed_for_a_url_is_told(monkeypatch: pytest.MonkeyPatch, url: str, lacking: str) -> None:
    monkeypatch.setitem(sys.modules, lacking, None)
    with pytest.raises(
        UsageError, match=r"cannot use .*install what it needs, for S3: pip install 'streamfuzz\[remote\]'"
    ):
        corpus.place(url)


def test_a_store_that_fails_is_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    place = corpus.place("memory://test-corpus/deep")

    def fail(*args: Any, **more: Any) -> None:
        raise RuntimeError("token\nexpired")

    for name in ("pipe_file", "rm_file", "cat_ranges", "find"):
        monkeypatch.setattr(type(place.fs), name, fail)  # type: ignore[union-attr]
    for doing, ask in {
        "write to": lambda: corpus.save(place, FILE),
        "delete": lambda: corpus.remove(place / "x.json"),
        "read": lambda: list(corpus.paths([place])),
        "read ": lambda: corpus.open_case(place / "x.json"),
    }.items():
        with pytest.raises(
            UsageError, match=rf"cannot {doing.strip()} memory://test-corpus/deep.*: token expired; check"
        ):
            ask()


def test_a_case_file_has_the_rights_that_new_files_have(tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    assert corpus.save(tmp_path, FILE).stat().st_mode == (tmp_path / "new").stat().st_mode


def test_a_file_that_cannot_be_deleted_is_told(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match=r"cannot delete .*folder"):
        corpus.remove(tmp_path / "folder")
