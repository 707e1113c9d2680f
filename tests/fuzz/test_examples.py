"""Hypothesis' example database: in a folder, or in a real Redis client's server; the search does not depend on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakeredis import TcpFakeServer
from hypothesis import strategies as st
from hypothesis.database import ExampleDatabase
from redis import Redis

from streamfuzz.bench import Bench
from streamfuzz.demo import demo_repaired
from streamfuzz.engines import Budget
from streamfuzz.engines.examples import examples
from streamfuzz.engines.sweep import _Sweep, draw_batch, sweep
from streamfuzz.spec import UsageError
from streamfuzz_strategies.mutations import encode


class Server:
    """A Redis server on loopback."""

    def __init__(self) -> None:
        self.server = TcpFakeServer(("127.0.0.1", 0), server_type="redis")
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        self.port = self.server.server_address[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def keys(self) -> list[bytes]:
        with Redis.from_url(self.url) as client:
            return sorted(client.keys())

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def kept_at(place: str, provider: str = "sse") -> ExampleDatabase:
    made = examples(place, provider, "any")
    assert made is not None
    return made


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


def test_a_folder_has_one_below_it_for_each_provider(tmp_path: Path) -> None:
    kept_at(str(tmp_path / "kept")).save(b"key", b"value")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["sse"]
    assert set(kept_at(str(tmp_path / "kept")).fetch(b"key")) == {b"value"}
    assert set(kept_at(str(tmp_path / "kept"), "ndjson").fetch(b"key")) == set()


def test_redis_keeps_examples_below_a_prefix_for_each_provider(server: Server) -> None:
    kept = kept_at(server.url)
    kept.save(b"key", b"one")
    kept.save(b"key", b"two")
    kept.delete(b"key", b"one")
    assert set(kept_at(server.url).fetch(b"key")) == {b"two"}
    assert set(kept_at(server.url, "ndjson").fetch(b"key")) == set()
    assert server.keys() == [b"streamfuzz:sse:any:key"]


def test_rich_draws_of_one_search_come_first_in_the_next(server: Server) -> None:
    def drawn(number: int, kept: ExampleDatabase | None) -> list[int]:
        return draw_batch(st.integers(0, 10**6), 30, number, kept, lambda value: value)

    earlier = set(drawn(1, kept_at(server.url)))
    assert set(drawn(2, kept_at(server.url))[:3]) <= earlier
    assert not set(drawn(2, None)[1:]) & earlier


@pytest.mark.untraced
def test_a_search_begins_with_rich_streams_of_those_before(tmp_path: Path) -> None:
    def swept(number: int, database: str | None) -> set[bytes]:
        with Bench(demo_repaired()) as bench:
            search = _Sweep(bench, Budget(None, 1, seed=number, database=database))
            return {
                encode(bench.provider, drawn.stream)
                for strategy, kept in zip(search.strategies, search.kept, strict=True)
                for drawn in search._draw(strategy, number, kept)
            }

    earlier = swept(1, str(tmp_path))
    assert len(swept(2, str(tmp_path)) & earlier) >= len(swept(2, None) & earlier) + 5


@pytest.mark.untraced
def test_a_search_leaves_its_rich_streams_there(server: Server) -> None:
    with Bench(demo_repaired()) as bench:
        for _ in sweep(bench, Budget(None, 200, database=server.url)):
            pass
    kept = server.keys()
    assert kept
    assert all(key.startswith(b"streamfuzz:openai-chat:") for key in kept)


def test_no_more_than_a_few_are_kept_and_the_plainest_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamfuzz.engines.examples.MOST", 3)
    kept = kept_at(str(tmp_path))
    for value in (b"1", b"333", b"22", b"333", b"4444", b"55555"):
        kept.save(b"key", value)
    assert set(kept_at(str(tmp_path)).fetch(b"key")) == {b"333", b"4444", b"55555"}
    kept_at(str(tmp_path)).save(b"key", b"666666")
    assert set(kept.fetch(b"key")) == {b"4444", b"55555", b"666666"}


def test_a_server_that_is_lost_meanwhile_is_done_without() -> None:
    server = Server()
    kept = kept_at(server.url)
    kept.save(b"key", b"value")
    kept.kept.redis.connection_pool.disconnect()  # type: ignore[attr-defined]
    server.stop()
    assert set(kept.fetch(b"key")) == {b"value"}
    kept.save(b"key", b"other")
    kept.delete(b"key", b"value")
    assert set(kept.fetch(b"key")) == {b"other"}


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("redis://user:secret@127.0.0.1:{port}/0", "cannot use the example database at redis://127.0.0.1:{port}: "),
        ("redis://127.0.0.1:no/0", "cannot use the example database at redis://127.0.0.1:no: "),
        ("s3://bucket/examples", "cannot keep examples in a s3:// URL: give a folder or a redis:// URL"),
    ],
)
def test_what_cannot_be_used_is_told_before_the_search(place: str, says: str) -> None:
    server = Server()
    server.stop()
    with Bench(demo_repaired()) as bench, pytest.raises(UsageError) as told:
        next(sweep(bench, Budget(database=place.format(port=server.port))))
    assert str(told.value).startswith(says.format(port=server.port))
    assert "secret" not in str(told.value)


def test_a_missing_client_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "redis", None)
    monkeypatch.delitem(__import__("sys").modules, "hypothesis.extra.redis", raising=False)
    with pytest.raises(UsageError, match=r"pip install 'streamfuzz\[redis\]'"):
        kept_at("redis://127.0.0.1")
