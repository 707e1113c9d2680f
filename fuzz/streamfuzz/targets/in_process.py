"""HTTP without sockets: a transport for httpx and httpx2 whose response body is the chunks of a case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

URL = "http://streamfuzz.invalid"
"""Where clients are pointed: a name that no resolver knows (RFC 6761 section 6.4), and that none is asked for."""

EVENT_STREAM = "text/event-stream; charset=utf-8"
NDJSON = "application/x-ndjson"
JSON = "application/json"


def response(http: Any, source: Iterable[bytes], content_type: str, request: Any = None) -> Any:
    """A response of the library ``http`` (httpx or httpx2) whose body is the source.

    A source that breaks off raises the library's own ``ReadError``, as its real transport does when the peer
    resets the connection; closing the response closes the source.
    """

    class Body(http.SyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            try:
                yield from source
            except OSError as error:
                raise http.ReadError(str(error)) from error

        def close(self) -> None:
            if hasattr(source, "close"):
                source.close()

    return http.Response(
        200,
        headers={"content-type": content_type},
        stream=Body(),
        request=request or http.Request("POST", URL),
    )


class Server:
    """Answers the next request of a client with a given body.

    Use it as the client's ``transport``.  Requests are answered inside the call that makes them, so one server
    and its client serve any number of streams, open at the same time or not.
    """

    def __init__(self, http: Any, content_type: str) -> None:
        self._http = http
        self._content_type = content_type
        self._next: tuple[Iterable[bytes], str] = ((), content_type)

    def serve(self, source: Iterable[bytes], content_type: str | None = None) -> None:
        """Say what the next request is answered with."""
        self._next = (source, content_type or self._content_type)

    def handle_request(self, request: Any) -> Any:
        """Answer; the name is the one that both libraries call."""
        return response(self._http, *self._next, request)

    def close(self) -> None:
        """Called by the client when it is closed; there is nothing to release."""

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
