"""The reports that a command was asked for, as subscribers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..happenings import Ended, Happening, Subscriber
from ..result import Trend
from ..spec import UsageError
from .event_log import EventLog
from .github import GitHub
from .junit import JUnit
from .sarif import Sarif

if TYPE_CHECKING:
    from .page_data import TraceOf


def subscribers(
    *,
    junit: Path | None = None,
    sarif: Path | None = None,
    events: Path | None = None,
    github: bool = False,
    html: Path | None = None,
    stream: TextIO | None = None,
    past: Sequence[Trend] = (),
    trace_of: TraceOf | None = None,
) -> list[Subscriber]:
    """Make the reports that were asked for; each file is tried at once.

    Args:
        junit: where to write a JUnit file.
        sarif: where to write a SARIF file.
        events: where to write the event log.
        github: whether to print annotations and write a job summary for GitHub Actions.
        html: where to write the page.
        stream: where annotations are printed; by default on stdout.  The others who print there must be told
            of a happening before these are.
        past: the jobs before this one, for the page.
        trace_of: runs a target on a case, for the page to show what it gave out.

    Raises:
        UsageError: one of them cannot be written.
    """
    made: list[Subscriber] = []
    if events is not None:
        made.append(EventLog(events))
    if junit is not None:
        made.append(JUnit(junit))
    if sarif is not None:
        made.append(Sarif(sarif))
    if html is not None:
        from .page import Page

        made.append(Page(html, past=past, trace_of=trace_of))
    if github:
        made.append(GitHub(stream if stream is not None else sys.stdout))
    return made


def together(subscribers: Sequence[Subscriber]) -> Subscriber:
    """One subscriber that tells all of them.

    One that cannot write is told no more, and the others still are: a full disk must not end a job nor take what
    it found.  When the job has ended and all were told, the first failure is raised as a ``UsageError``.
    """
    told, failures = list(subscribers), list[UsageError]()

    def tell(happening: Happening) -> None:
        for subscriber in tuple(told):
            try:
                subscriber(happening)
            except (UsageError, OSError) as error:
                told.remove(subscriber)
                failures.append(error if isinstance(error, UsageError) else UsageError(f"cannot print: {error}"))
        if isinstance(happening, Ended) and failures:
            raise failures[0]

    return tell
