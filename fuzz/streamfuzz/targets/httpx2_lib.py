"""httpx2: its own event source over its own response.  https://pypi.org/project/httpx2/."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import httpx2

from .in_process import EVENT_STREAM, response
from .made import Made


def events(source: Iterable[bytes]) -> Iterator[httpx2.ServerSentEvent]:
    """Iterate over the events of a response."""
    return iter(httpx2.EventSource(response(httpx2, source, EVENT_STREAM)))


MADE = {"httpx2-sse": Made(events, errors=(httpx2.HTTPError,))}
