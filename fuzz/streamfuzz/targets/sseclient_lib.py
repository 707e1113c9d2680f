"""sseclient-py: events over any iterable of bytes that can be closed.  https://pypi.org/project/sseclient-py/."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import sseclient

from .made import Made


def events(source: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Iterate over the events.  The library hands out ``retry`` as the text of the field; it is read as a number."""
    for event in sseclient.SSEClient(iter(source)).events():
        retry = event.retry
        if isinstance(retry, str) and retry.isascii() and retry.isdigit():
            retry = int(retry)
        yield {"event": event.event, "data": event.data, "id": event.id, "retry": retry}


MADE = {"sseclient-py": Made(events)}
