"""Hypothesis' example database: where rich streams are kept between searches, in a folder or in Redis.

It is a convenience: once a search runs, it goes on without a database that fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase, InMemoryExampleDatabase

from ..spec import UsageError

EXAMPLES = ".hypothesis/streamfuzz"
"""Where the database is, below the working directory, if it is not told."""

REDIS = ("redis", "rediss")
"""The schemes of URLs that mean a Redis server, without and with TLS."""

MOST = 50
"""Examples of one kind that are kept; each search adds some, and nobody else takes any out."""

PATIENCE = 4
"""Seconds that a Redis server may take to answer."""


def examples(place: str | None, provider: str, family: str) -> ExampleDatabase | None:
    """The database for the streams of a provider whose text is of one family.

    Args:
        place: a folder, or the URL of a Redis server as redis-py takes it: ``redis://host:6379/0``; ``None``: none.
        provider: whose streams; they are kept in a folder, or below keys, of their own.
        family: what their text is made of; the same holds for it.

    Raises:
        UsageError: the server does not answer, the extra ``redis`` is not installed, or it is some other URL.
    """
    if place is None:
        return None
    scheme, separator, _ = place.partition("://")
    if not separator:
        return _Few(DirectoryBasedExampleDatabase(Path(place) / provider / family), (OSError,))
    if scheme not in REDIS:
        raise UsageError(f"cannot keep examples in a {scheme}:// URL: give a folder or a redis:// URL")
    try:
        from hypothesis.extra.redis import RedisExampleDatabase
        from redis import Redis, RedisError
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ImportError:
        raise UsageError("to keep examples in Redis, install its client: pip install 'streamfuzz[redis]'") from None
    where = f"{scheme}://{urlsplit(place).netloc.rpartition('@')[2]}"  # without the password
    try:
        client = Redis.from_url(
            place, socket_connect_timeout=PATIENCE, socket_timeout=PATIENCE, retry=Retry(NoBackoff(), 1)
        )
        client.ping()
    except (RedisError, OSError, ValueError) as error:
        raise UsageError(
            f"cannot use the example database at {where}: {error}; start the server, or set examples to a folder"
        ) from None
    kept = RedisExampleDatabase(client, key_prefix=f"streamfuzz:{provider}:{family}:".encode())
    return _Few(kept, (RedisError, OSError))


class _Few(ExampleDatabase):
    """A database that keeps a few examples of a kind, and is given up for an empty one when it fails."""

    def __init__(self, kept: ExampleDatabase, errors: tuple[type[Exception], ...]) -> None:
        super().__init__()
        self.kept, self.errors = kept, errors
        self.held: dict[bytes, set[bytes]] = {}

    def fetch(self, key: bytes) -> Iterable[bytes]:
        with self._giving_up():
            self.held[key] = set(self.kept.fetch(key))
        return tuple(self.held.setdefault(key, set()))

    def save(self, key: bytes, value: bytes) -> None:
        held = self.held[key] if key in self.held else set(self.fetch(key))
        if value not in held and len(held) >= MOST:
            self.delete(key, min(held, key=len))  # the plainest
        self.held.setdefault(key, set()).add(value)
        with self._giving_up():
            self.kept.save(key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        self.held.setdefault(key, set()).discard(value)
        with self._giving_up():
            self.kept.delete(key, value)

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        try:
            yield
        except self.errors:
            self.kept = InMemoryExampleDatabase()
