"""The store: a union of whole files that any number of jobs may work on, and nothing in it is ever lost."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamfuzz import corpus
from streamfuzz.case import Case, CaseFile, dump
from streamfuzz.nightly.store import Merged, Store, merge
from streamfuzz.result import Night, Result
from streamfuzz.spec import UsageError


def file(number: int, why: str = "kept") -> CaseFile:
    return CaseFile(Case("sse", (f"data: {number}\n\n".encode(),)), why)


def night(cases: int = 1) -> Night:
    return Night("batch", datetime(2026, 11, 30, 1, 2, 3, tzinfo=UTC), 1.0, [Result("t", "sse", 0, cases)])


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store on this machine and one in an object store."""
    if request.param == "folder":
        yield Store.open(tmp_path / "corpus")
        return
    made = Store.open("memory://corpus/deep")
    yield made
    made.root.fs.rm("/corpus", recursive=True)  # type: ignore[union-attr]


# --- cases


def test_a_new_store_is_empty(store: Store) -> None:
    assert (store.targets(), list(store.cases("t")), store.nights(), store.skipped) == ([], [], [], ())


def test_what_is_saved_is_there_by_target_in_order_of_name(store: Store) -> None:
    saved = {store.save(target, file(n)): file(n) for target in ("t", "mine.stream:parse") for n in (1, 2, 3)}
    assert store.targets() == ["mine.stream-parse", "t"]
    found = [pair for target in store.targets() for pair in store.cases(target)]
    assert dict(found) == saved
    assert [path for path, _ in store.cases("t")] == sorted(path for path in saved if "/t/" in path)
    assert list(store.cases("mine.stream:parse")) == list(store.cases("mine.stream-parse"))


def test_the_same_experiment_is_one_file(store: Store) -> None:
    assert store.save("t", file(1)) == store.save("t", file(1, "a better reason"))
    assert [kept.why for _, kept in store.cases("t")] == ["a better reason"]


def test_a_case_is_removed_by_name_or_path_and_twice_does_no_harm(store: Store) -> None:
    first, second = store.save("t", file(1)), store.save("t", file(2))
    store.remove("t", file(1).name)
    store.remove("t", first)
    assert [path for path, _ in store.cases("t")] == [second]
    store.remove("t", second)
    assert list(store.cases("t")) == []


def test_what_cannot_be_read_is_skipped_with_its_reason_and_stays(store: Store) -> None:
    store.save("t", file(1))
    future = dump(file(2)).replace(b'"format": 1', b'"format": 2')
    for name, content in {"future.json": future, "broken.json": b"{", "foreign.json": b"{}", "notes.txt": b""}.items():
        corpus.write_whole(store.root / "t" / name, content)
    for _ in range(2):
        assert [kept for _, kept in store.cases("t")] == [file(1)]
    broken, foreign, later = sorted(store.skipped)
    assert "broken.json is not JSON" in broken
    assert "foreign.json is not a case file" in foreign
    assert "future.json has format 2, this version reads 1: install" in later
    assert store.skipped_news() == list(store.skipped)
    assert store.skipped_news() == []
    assert corpus.read_bytes(store.root / "t" / "future.json") == future


def test_a_store_that_is_only_read_is_not_made(tmp_path: Path) -> None:
    assert list(Store.open(tmp_path / "none", write=False).cases("t")) == []
    assert not (tmp_path / "none").exists()


# --- records


def test_a_job_has_one_record_that_tells_how_far_it_is(store: Store) -> None:
    store.record(night(1), finished=False)
    store.record(night(2), finished=True)
    (record,) = store.nights()
    assert (record.finished, record.entries[0].cases) == (True, 2)
    assert record.id.startswith("20261130T010203Z-")


def test_jobs_that_began_at_once_have_records_of_their_own(store: Store) -> None:
    for root in (store, Store(store.root)):
        root.record(night(), finished=True)
    assert len({record.id for record in store.nights()}) == 2


def test_a_target_may_be_called_like_the_folder_of_records(store: Store) -> None:
    store.save("nights", file(1))
    store.record(night(), finished=True)
    assert (store.targets(), len(list(store.cases("nights"))), len(store.nights())) == (["nights"], 1, 1)
    assert store.skipped == ()


def test_records_are_no_cases_for_those_who_look_for_cases(store: Store) -> None:
    store.record(night(), finished=True)
    assert list(corpus.paths([store.root])) == []


def test_a_record_that_cannot_be_read_is_skipped(store: Store) -> None:
    corpus.write_whole(store.root / "nights" / "x.ndjson", b'{"format": 9}')
    corpus.write_whole(store.root / "nights" / "y.ndjson", b"")
    assert store.nights() == []
    assert ["has format 9" in store.skipped[0], "is not the record of a job" in store.skipped[1]] == [True, True]


# --- merging


def test_a_merge_is_a_union_that_keeps_what_is_there(store: Store, tmp_path: Path) -> None:
    other = Store.open(tmp_path / "other")
    other.save("t", file(1, "theirs"))
    other.save("t", file(2))
    other.save("u", file(3))
    other.record(night(), finished=True)
    store.save("t", file(1, "mine"))
    assert merge(other, store) == Merged(cases=2, nights=1, present=1)
    assert merge(other, store) == Merged(cases=0, nights=0, present=3)
    assert {kept.why for _, kept in store.cases("t")} == {"mine", "kept"}
    assert store.targets() == ["t", "u"]
    assert store.nights() == other.nights()


def test_a_merge_copies_files_as_they_are_also_those_of_a_later_format(store: Store, tmp_path: Path) -> None:
    other = Store.open(tmp_path / "other")
    later = dump(file(1)).replace(b'"format": 1', b'"format": 2')
    corpus.write_whole(other.root / "t" / file(1).name, later)
    corpus.write_whole(other.root / "t" / "package.json", b"{}")
    corpus.write_whole(other.root / "stray.json", dump(file(2)))
    assert merge(other, store) == Merged(cases=1)
    assert corpus.read_bytes(store.root / "t" / file(1).name) == later
    assert "package.json is not a case file" in other.skipped[1]
    assert "stray.json is in no target's folder: add it with" in other.skipped[2]


def test_a_hand_named_case_is_merged_under_the_name_of_its_content(store: Store, tmp_path: Path) -> None:
    other = Store.open(tmp_path / "other")
    for name in ("by-hand.json", "again.json", file(2).name):
        corpus.write_whole(other.root / "t" / name, dump(file(2 if name == file(2).name else 1)))
    store.save("t", file(2))
    assert merge(other, store) == Merged(cases=1, present=2)
    assert sorted(Path(path).name for path, _ in store.cases("t")) == sorted((file(1).name, file(2).name))


def test_a_record_copied_halfway_is_replaced_once_its_job_is_done(store: Store, tmp_path: Path) -> None:
    other = Store.open(tmp_path / "other")
    other.record(night(1), finished=False)
    merge(other, store)
    other.record(night(2), finished=True)
    assert merge(other, store).nights == 1
    assert [record.finished for record in store.nights()] == [True]
    unfinished = Store.open(tmp_path / "third")
    assert merge(store, unfinished).nights == 1
    assert merge(unfinished, store).nights == 0


# --- what a kill leaves, and others at work


def test_what_killed_processes_left_is_swept_once_it_is_old(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    old, young = tmp_path / "t" / ".0123.part", tmp_path / "t" / ".4567.part"
    for path in (old, young):
        path.touch()
    os.utime(old, (time.time() - 4000,) * 2)
    store = Store.open(tmp_path)
    assert (old.exists(), young.exists()) == (False, True)
    assert (store.targets(), list(store.cases("t")), store.skipped) == ([], [], ())
    os.utime(young, (time.time() + 9000,) * 2)  # by a clock that was wrong
    Store.open(tmp_path)
    assert young.exists()


def save_many(root: Path, first: int, last: int) -> None:
    store = Store.open(root)
    for number in range(first, last):
        store.save("t", file(number))
        if number % 20 == 0:
            store.record(night(number), finished=False)


def test_processes_save_side_by_side_while_others_read(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=save_many, args=(tmp_path, first, first + 120)) for first in (0, 60)]
    for worker in workers:
        worker.start()
    reader = Store.open(tmp_path)
    while any(worker.is_alive() for worker in workers):
        assert all(kept.why == "kept" for _, kept in reader.cases("t"))
        assert len(reader.nights()) <= 2
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert sorted(kept.case.data for _, kept in reader.cases("t")) == sorted(file(n).case.data for n in range(180))
    assert reader.skipped == ()
    assert len(reader.nights()) == 2
    assert list(tmp_path.rglob("*.part")) == []


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
from streamfuzz.nightly.store import Store
from streamfuzz.case import Case, CaseFile

root = Path(sys.argv[1])
told = root / "told"
told.touch()
for turn in range(100):
    before = told.stat().st_size
    child = os.fork()
    if not child:
        store, number = Store(root), turn * 1000
        while True:
            number += 1
            store.save("t", CaseFile(Case("sse", (b"data: %d" % number,) * 200), "kept"))
            told.open("ab").write(b"%d\\n" % number)
    while told.stat().st_size == before:
        time.sleep(0.001)
    time.sleep(random.Random(turn).uniform(0, 0.01))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_killed_a_hundred_times_it_holds_whole_files_and_all_that_was_saved(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=True, timeout=60)
    store = Store.open(tmp_path, write=False)
    kept = {one.case.chunks[0] for _, one in store.cases("t")}
    told = {f"data: {number}".encode() for number in (tmp_path / "told").read_text().split()}
    assert store.skipped == ()
    assert told <= kept
    assert len(told) >= 100
    assert len(kept - told) <= 100


# --- troubles


def test_a_folder_that_cannot_be_written_to_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot write to .*file.*; choose another folder"):
        Store.open(tmp_path / "file" / "below")


def test_a_full_disk_is_told_and_what_was_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(tmp_path)
    store.save("t", file(1))
    store.record(night(1), finished=False)

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for ask in (lambda: store.save("t", file(2)), lambda: store.record(night(2), finished=True)):
        with pytest.raises(UsageError, match="No space left on device"):
            ask()
    assert [kept for _, kept in store.cases("t")] == [file(1)]
    assert [record.entries[0].cases for record in store.nights()] == [1]
    assert list(tmp_path.rglob("*.part")) == []
