"""httpx-sse: the event source over an httpx response.  https://pypi.org/project/httpx-sse/."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import httpx
import httpx_sse

from .in_process import EVENT_STREAM, response
from .made import Made


def events(source: Iterable[bytes]) -> Iterator[httpx_sse.ServerSentEvent]:
    """Iterate over the events of a response."""
    return httpx_sse.EventSource(response(httpx, source, EVENT_STREAM)).iter_sse()


MADE = {"httpx-sse": Made(events, errors=(httpx.HTTPError,))}
