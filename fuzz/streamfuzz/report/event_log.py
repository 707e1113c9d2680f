"""What happens in a search, for machines: one JSON object a line, written when it happens."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamfuzz_strategies.reply import Json

from ..happenings import (
    Began,
    Ended,
    Happening,
    Mended,
    NewFinding,
    Progress,
    Searched,
    Settled,
    Trouble,
    WorkerLost,
)
from ..result import Reported
from .files import claim, unwritable
from .json_report import (
    DRAFT,
    FINDING,
    FIXED,
    NIGHT,
    described,
    finding_json,
    fixed_json,
    night_json,
    writable,
)

_TEXT = {"type": "string"}
_TARGET = {"type": "string", "description": "Name of the target."}
_COUNT = {"type": "integer", "minimum": 0}
_SECONDS = {"type": "number", "minimum": 0}
_SECONDS_OR_NULL = {"type": ["number", "null"]}


def _began(began: Began) -> dict[str, Json]:
    return {
        "mode": began.mode,
        "started": began.started.isoformat(),
        "targets": list(began.targets),
        "seconds": began.seconds,
        "workers": began.workers,
    }


def _progress(progress: Progress) -> dict[str, Json]:
    return {
        "target": progress.target,
        "cases": progress.cases,
        "seconds": round(progress.seconds, 3),
        "findings": progress.findings,
        "goals": progress.goals,
        "goals_in_all": progress.goals_in_all,
        "stage": progress.stage,
        "left": progress.left,
    }


def _searched(searched: Searched) -> dict[str, Json]:
    return {
        "target": searched.target,
        "engine": searched.engine,
        "shard": searched.shard,
        "cases": searched.cases,
        "seconds": round(searched.seconds, 3),
        "news": list(searched.news),
    }


def _found(new: NewFinding) -> dict[str, Json]:
    return {"target": new.finding.target, "finding": finding_json(Reported(new.finding))}


def _settled(settled: Settled) -> dict[str, Json]:
    return {"target": settled.reported.finding.target, "finding": finding_json(settled.reported)}


def _mended(mended: Mended) -> dict[str, Json]:
    return {"target": mended.target, "fixed": fixed_json(mended.fixed)}


def _lost(lost: WorkerLost) -> dict[str, Json]:
    return {"target": lost.target, "how": lost.how}


def _trouble(trouble: Trouble) -> dict[str, Json]:
    return {"message": trouble.message}


def _ended(ended: Ended) -> dict[str, Json]:
    return {"night": night_json(ended.night)}


_EVENTS: Mapping[type[Happening], tuple[str, Callable[[Any], dict[str, Json]], str, dict[str, Json]]] = {
    Began: (
        "began",
        _began,
        "A job begins.",
        {
            "mode": _TEXT,
            "started": {"type": "string", "format": "date-time"},
            "targets": {"type": "array", "items": _TEXT},
            "seconds": {**_SECONDS_OR_NULL, "description": "How long it may take; null: no limit."},
            "workers": _COUNT,
        },
    ),
    Progress: (
        "progress",
        _progress,
        "How far the search of a target is.",
        {
            "target": _TARGET,
            "cases": _COUNT,
            "seconds": _SECONDS,
            "findings": _COUNT,
            "goals": _COUNT,
            "goals_in_all": _COUNT,
            "stage": _TEXT,
            "left": {**_SECONDS_OR_NULL, "description": "Seconds until the whole job ends, if known."},
        },
    ),
    Searched: (
        "searched",
        _searched,
        "A shard is done.",
        {
            "target": _TARGET,
            "engine": _TEXT,
            "shard": {**_TEXT, "description": "What `streamfuzz nightly --shard` takes to do it again."},
            "cases": _COUNT,
            "seconds": _SECONDS,
            "news": {"type": "array", "items": _TEXT, "description": "Goals, rules and signatures met first."},
        },
    ),
    NewFinding: (
        "found",
        _found,
        "A finding was met for the first time in this job; it is not shrunk yet.",
        {"target": _TARGET, "finding": FINDING},
    ),
    Settled: (
        "settled",
        _settled,
        "A finding was shrunk, run again and written: so it is reported.",
        {"target": _TARGET, "finding": FINDING},
    ),
    Mended: ("fixed", _mended, "A kept case passes now.", {"target": _TARGET, "fixed": FIXED}),
    WorkerLost: ("worker_lost", _lost, "A worker died or was killed.", {"target": _TARGET, "how": _TEXT}),
    Trouble: ("trouble", _trouble, "Something is wrong with the job itself.", {"message": _TEXT}),
    Ended: ("ended", _ended, "The job is over.", {"night": NIGHT}),
}
"""For each happening: its name in the log, what is written of it, what it means, and the schema of its members."""

SCHEMA: Mapping[str, Json] = {
    "$schema": DRAFT,
    "$id": "urn:streamfuzz:event:1",
    "title": "One line of the event log",
    "oneOf": [
        described(about, event={"const": name}, time={"type": "string", "format": "date-time"}, **members)
        for name, _, about, members in _EVENTS.values()
    ],
}
"""The JSON Schema (draft 2020-12) of a line of the log."""


class EventLog:
    """Writes what happens into a file, line by line, so that a job that is killed leaves what happened until then.

    Args:
        path: of the file; what it had before is gone.

    Raises:
        UsageError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        claim(path)
        self.path = path
        try:
            path.write_bytes(b"")
        except OSError as error:
            raise unwritable(path, error) from None

    def __call__(self, happening: Happening) -> None:
        """Write a line.

        Raises:
            UsageError: it cannot be written.
        """
        try:
            with self.path.open("a", encoding="ascii", newline="\n") as file:
                file.write(line(happening, datetime.now(UTC)))
        except OSError as error:
            raise unwritable(self.path, error) from None


def line(happening: Happening, time: datetime) -> str:
    """A happening as a line of the log, in ASCII."""
    name, write, _, _ = _EVENTS[type(happening)]
    told = {"event": name, "time": time.isoformat(timespec="milliseconds"), **write(happening)}
    return json.dumps(writable(told), sort_keys=True) + "\n"
