"""What a job found as SARIF 2.1.0, which code scanning reads: each oracle is a rule, each finding a result.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; paragraphs below are of that document.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from streamfuzz_strategies.reply import Json

from .. import oracles, probes
from ..happenings import Ended, Happening
from ..legible import printable
from ..result import Night, Reported, Result, Status
from .files import claim, write
from .json_report import finding_json, writable
from .words import kind, meaning, notes, place, replay_of

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

ORACLES: Mapping[str, Callable[..., Any]] = {
    **oracles.ORACLES,
    "fragmentation": oracles.fragmentation,
    **probes.ORACLES,
}
"""The oracles by name; their docstrings open with what they hold a target to."""

_LEVELS = {"warning": "warning", "flaky": "warning"}
"""The level of each kind of finding; the others have that of their verdict."""

_BASELINES: Mapping[Status, str] = {
    "new": "new",
    "back": "new",
    "again": "unchanged",
    "known": "unchanged",
    "expired": "unchanged",
}
"""What a finding is beside the searches before (3.27.24)."""


class Sarif:
    """Writes a SARIF file when a job has ended.

    Args:
        path: of the file.

    Raises:
        UsageError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        claim(path)
        self.path = path

    def __call__(self, happening: Happening) -> None:
        """Write the file if the job has ended.

        Raises:
            UsageError: it cannot be written.
        """
        if isinstance(happening, Ended):
            text = json.dumps(writable(log(happening.night)), indent=1, sort_keys=True)
            write(self.path, text.encode("ascii") + b"\n")


def log(night: Night) -> dict[str, Json]:
    """A job as a SARIF log with one run.  A case that is fixed is no result: code scanning closes what is absent."""
    found = [(result, reported) for result in night.results for reported in result.findings]
    names = list(dict.fromkeys([*ORACLES, *(reported.finding.deviation.oracle for _, reported in found)]))
    driver = {"name": "streamfuzz", "version": version("streamfuzz"), "rules": [_rule(name) for name in names]}
    run = {
        "tool": {"driver": driver},
        "invocations": [_invocation(night)],
        "results": [_result(result, reported, names) for result, reported in found],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(oracle: str) -> dict[str, Json]:
    about = (getattr(ORACLES.get(oracle), "__doc__", None) or oracle).partition("\n")[0]
    replay = "Run a case again with `streamfuzz replay TARGET FILE`, and look at it with `streamfuzz show FILE`."
    return {"id": oracle, "shortDescription": {"text": about}, "help": {"text": f"{about} {replay}"}}


def _invocation(night: Night) -> dict[str, Json]:
    ended = night.started + timedelta(seconds=night.seconds)
    return {
        "executionSuccessful": not night.failed,
        "exitCode": night.exit_code,
        "exitCodeDescription": printable(meaning(night)),
        "startTimeUtc": _time(night.started),
        "endTimeUtc": _time(ended),
        "toolExecutionNotifications": [
            {"level": "warning", "message": {"text": _message(trouble)}} for trouble in night.troubles
        ],
    }


def _result(result: Result, reported: Reported, rules: list[str]) -> dict[str, Json]:
    finding = reported.finding
    told = [finding.sentence, *(f"({note})" for note in notes(reported))]
    identity = hashlib.sha256(json.dumps([result.target, finding.signature]).encode()).hexdigest()[:16]
    made: dict[str, Json] = {
        "ruleId": finding.deviation.oracle,
        "ruleIndex": rules.index(finding.deviation.oracle),
        "level": _LEVELS.get(kind(reported)) or {"fail": "error", "warn": "warning"}[finding.deviation.verdict],
        "message": {"text": _message(" ".join(told))},
        "locations": [_location(result, reported)],
        "occurrenceCount": finding.count,
        "baselineState": _BASELINES[reported.status],
        # The second one is what GitHub knows an alert by; its own would make all findings of a target one.
        "partialFingerprints": {"streamfuzzSignature/v1": identity, "primaryLocationLineHash": f"{identity}:1"},
        "properties": {**finding_json(reported), "target": result.target, "provider": result.provider},
    }
    if reported.path is not None:
        physical = {"artifactLocation": {"uri": _uri(reported.path)}}
        about = printable(f"The smallest case; run it again with {replay_of(reported)}")
        made["relatedLocations"] = [{"id": 1, "physicalLocation": physical, "message": {"text": _message(about)}}]
    if reported.status == "known" and reported.known is not None:
        until = f"{reported.known.reason} (until {reported.known.expires})"
        made["suppressions"] = [{"kind": "external", "status": "accepted", "justification": printable(until)}]
    return made


def _location(result: Result, reported: Reported) -> dict[str, Json]:
    """Where the target is defined; where that is unknown, its case file, because code scanning wants a file."""
    made: dict[str, Json] = {"logicalLocations": [{"fullyQualifiedName": printable(result.target)}]}
    if result.source is not None:
        path, line = place(result.source)
        made["physicalLocation"] = {"artifactLocation": {"uri": _uri(path)}, "region": {"startLine": line}}
    elif reported.path is not None:
        made["physicalLocation"] = {"artifactLocation": {"uri": _uri(reported.path)}, "region": {"startLine": 1}}
    return made


def _uri(path: str) -> str:
    """A path, or a URL, as a reference that RFC 3986 allows."""
    scheme, colon, rest = path.partition("://")
    if colon and scheme.isalnum():
        return f"{scheme}://{quote(rest, errors='replace')}"
    reference = quote(path.replace("\\", "/"), errors="replace")
    return f"file://{reference}" if path.startswith("/") else reference


def _message(text: str) -> str:
    """Text as a plain message, with a space where it would be a placeholder (3.11.5) or a link (3.11.6)."""
    return re.sub(r"\{(\d+)\}", r"{ \1 }", printable(text)).replace("](", "] (")


def _time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
