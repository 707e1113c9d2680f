"""The store in a bucket: a real S3 client over a socket to a server of its own, and what goes wrong is told soon."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from urllib.request import Request, urlopen

import fsspec.config
import pytest
from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem

from streamfuzz import corpus
from streamfuzz.case import Case, CaseError, CaseFile, dump
from streamfuzz.nightly.store import Merged, Store, merge
from streamfuzz.result import Night, Result
from streamfuzz.spec import UsageError

PLACE = "s3://bucket/fuzz/corpus"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1"}


def file(number: int, why: str = "kept") -> CaseFile:
    return CaseFile(Case("sse", (f"data: {number}\n\n".encode(),)), why)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A client that knows nothing but what the test says."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    S3FileSystem.clear_instance_cache()
    yield
    S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty bucket; the place of a corpus in it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    urlopen(Request(f"{server}/moto-api/reset", method="POST")).close()
    urlopen(Request(f"{server}/bucket", method="PUT")).close()
    return PLACE


def test_cases_and_records_come_back(bucket: str) -> None:
    store = Store.open(bucket)
    saved = {store.save(target, file(n)): file(n) for target in ("t", "u") for n in range(3)}
    store.record(Night("batch", datetime(2026, 11, 30, tzinfo=UTC), 1.0, [Result("t", "sse", 0, 5)]), finished=True)
    again = Store.open(bucket, write=False)
    assert again.targets() == ["t", "u"]
    assert dict([*again.cases("t"), *again.cases("u")]) == saved
    assert all(path.startswith(f"{PLACE}/") for path in saved)
    assert [record.entries[0].cases for record in again.nights()] == [5]
    assert again.skipped == ()


def test_what_others_write_is_seen(bucket: str) -> None:
    mine, theirs = Store.open(bucket), Store.open(bucket)
    assert list(mine.cases("t")) == []
    path = theirs.save("t", file(1))
    assert list(mine.cases("t")) == [(path, file(1))]
    mine.remove("t", path)
    theirs.remove("t", path)
    assert list(theirs.cases("t")) == []


def test_what_cannot_be_read_is_skipped_and_stays(bucket: str) -> None:
    store = Store.open(bucket)
    store.save("t", file(1))
    corpus.write_whole(store.root / "t" / "foreign.json", b"{}")
    assert [kept for _, kept in store.cases("t")] == [file(1)]
    assert "s3://bucket/fuzz/corpus/t/foreign.json is not a case file" in store.skipped[0]
    with pytest.raises(CaseError, match=r"cannot read s3://bucket/fuzz/corpus/t/gone\.json: No such file"):
        corpus.open_case(store.root / "t" / "gone.json")


def test_more_cases_than_are_read_at_once(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "AT_ONCE", 3)
    store = Store.open(bucket)
    for number in range(7):
        store.save("t", file(number))
    assert {kept.case.data for _, kept in store.cases("t")} == {file(n).case.data for n in range(7)}


def test_a_folder_and_a_bucket_merge_both_ways(bucket: str, tmp_path: Path) -> None:
    local, remote = Store.open(tmp_path), Store.open(bucket)
    local.save("t", file(1))
    remote.save("t", file(1, "theirs"))
    remote.save("t", file(2))
    assert merge(local, remote) == Merged(present=1)
    assert merge(remote, local) == Merged(cases=1, present=1)
    assert (tmp_path / "t" / file(2).name).read_bytes() == dump(file(2))


def test_jobs_may_save_at_once(bucket: str) -> None:
    store = Store.open(bucket)
    jobs = [threading.Thread(target=lambda: [store.save("t", file(n)) for n in range(20)]) for _ in range(3)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert len(list(store.cases("t"))) == 20


def test_paths_search_a_bucket_and_take_one_object(bucket: str) -> None:
    place = corpus.place(bucket)
    first, second = sorted([corpus.save(place / "t", file(1)), corpus.save(place / "t" / "deeper", file(2))])
    assert list(corpus.paths([place])) == [first, second]
    assert list(corpus.paths([first])) == [first]
    assert list(corpus.paths([place / "nothing"])) == []
    assert {corpus.open_any(path)[0] == corpus.open_case(path) for path in (first, second)} == {True}


# --- troubles


def told_soon(place: str, says: str) -> None:
    started = perf_counter()
    for ask in (lambda: Store.open(place), lambda: list(Store.open(place, write=False).cases("t"))):
        with pytest.raises(UsageError, match=says) as told:
            ask()
        assert str(told.value).startswith(("cannot write to s3://", "cannot read s3://"))
        assert "check the address, the credentials, and that the bucket exists" in str(told.value)
        assert "\n" not in str(told.value)
    assert perf_counter() - started < 10


def test_a_bucket_that_does_not_exist_is_told(bucket: str) -> None:
    told_soon("s3://nowhere/corpus", "The specified bucket does not exist")


def test_a_server_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    told_soon(PLACE, "Could not connect to the endpoint URL")


def test_missing_credentials_are_told(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CREDENTIALS:
        monkeypatch.delenv(name)
    told_soon(bucket, "Unable to locate credentials")


def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "PATIENCE", {"read_timeout": 0.2, "retries": {"total_max_attempts": 1}})
    monkeypatch.setattr(corpus, "ANSWER", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        told_soon(PLACE, "it does not answer|Read timeout")


def test_the_users_own_configuration_wins(server: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": server})
    store = Store.open(bucket)
    assert corpus.read_bytes(store.root / corpus.MARK)
