"""What a search or a replay found, for machines: plain JSON, and the schemas that describe it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from streamfuzz_strategies.reply import Json

from ..explain import Finding
from ..replay import Replayed
from ..result import Reported, Result
from ..spec import Known

Verdict: TypeAlias = Literal["fail", "warn", "known", "flaky"]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEXT_OR_NULL = {"type": ["string", "null"]}
_COUNT = {"type": "integer", "minimum": 0}
_TEXTS = {"type": "array", "items": {"type": "string"}}


def _object(about: str, **members: Json) -> dict[str, Json]:
    """The schema of an object that has all of these members; later versions may add others."""
    return {"type": "object", "description": about, "properties": members, "required": sorted(members)}


SCHEMA: Mapping[str, Json] = {
    "$schema": _DRAFT,
    "$id": "urn:streamfuzz:run:1",
    "title": "streamfuzz run",
    **_object(
        "What one search of one target found.",
        target={"type": "string", "description": "Name of the target."},
        provider={"type": "string", "description": "Whose streams it read."},
        seed={"type": "integer", "description": "Of the drawn streams."},
        cases={**_COUNT, "description": "How many cases were judged."},
        seconds={"type": "number", "minimum": 0},
        findings={
            "type": "array",
            "items": _object(
                "One way in which the target fails.",
                rule={**_TEXT_OR_NULL, "description": "Id of the rule of the stream that is at stake, if any."},
                oracle={"type": "string", "description": "The invariant that is broken."},
                kind={"type": "string", "description": "What went wrong, in one word."},
                signature={"type": "string", "description": "What makes two failures one finding."},
                verdict={"enum": ["fail", "warn", "known", "flaky"]},
                sentence={"type": "string", "description": "What goes wrong, for people."},
                count={"type": "integer", "minimum": 1, "description": "How often it was met."},
                case={**_TEXT_OR_NULL, "description": "Path of the case file, if one was written."},
                causes={**_TEXTS, "description": "What the failure hangs on."},
            ),
        },
        goals={
            "type": "object",
            "additionalProperties": _COUNT,
            "description": "How often each goal was reached; 0: never.",
        },
        known_gone={
            "type": "array",
            "items": _object(
                "A known deviation that did not occur.",
                signature={"type": "string"},
                reason={"type": "string"},
                expires={"type": "string", "format": "date"},
            ),
        },
        interrupted={"type": "boolean", "description": "Whether the search was stopped before its time."},
        exit_code={
            "enum": [0, 1, 4],
            "description": "0 nothing found, 1 findings, 4 nothing was judged or a known deviation is gone.",
        },
    ),
}
"""The JSON Schema (draft 2020-12) of :func:`result_json`."""

REPLAY_SCHEMA: Mapping[str, Json] = {
    "$schema": _DRAFT,
    "$id": "urn:streamfuzz:replay:1",
    "title": "streamfuzz replay",
    **_object(
        "Case files, run again.",
        cases={
            "type": "array",
            "items": _object(
                "One case file.",
                file={"type": "string", "description": "Its path."},
                status={"enum": ["pass", "warn", "known", "flaky", "fail", "error"]},
                sentence={**_TEXT_OR_NULL, "description": "What goes wrong, or why the file could not be run."},
                signature={**_TEXT_OR_NULL, "description": "What makes two failures one finding."},
                judge_differs={
                    **_TEXT_OR_NULL,
                    "description": "What the judge says today, if not what the file expects.",
                },
            ),
        },
        exit_code={"enum": [0, 1, 2], "description": "0 all pass, 1 some fail, 2 some could not be read."},
    ),
}
"""The JSON Schema (draft 2020-12) of :func:`replay_json`."""


def verdict(reported: Reported) -> Verdict:
    """What a finding is worth; a known deviation is known before it is anything else."""
    if reported.status == "known":
        return "known"
    return "flaky" if reported.finding.flaky else reported.finding.deviation.verdict


def result_json(result: Result) -> dict[str, Json]:
    """The result of a search as JSON that :data:`SCHEMA` accepts."""
    made = {
        "target": result.target,
        "provider": result.provider,
        "seed": result.seed,
        "cases": result.cases,
        "seconds": round(result.seconds, 3),
        "findings": [_finding(reported) for reported in result.findings],
        "goals": {**dict.fromkeys(result.unreached, 0), **result.goals},
        "known_gone": [_known(known) for known in result.gone],
        "interrupted": result.interrupted,
        "exit_code": result.exit_code,
    }
    return {name: _writable(value) for name, value in made.items()}


def replay_json(replayed: Iterable[Replayed], unreadable: Mapping[Path, str] | None = None) -> dict[str, Json]:
    """The results of a replay as JSON that :data:`REPLAY_SCHEMA` accepts.

    Args:
        replayed: the cases that were run.
        unreadable: files that could not be, each with the reason; their status is ``error``.
    """
    made = [_replayed(one) for one in replayed]
    made += [_row(str(path), "error", reason) for path, reason in (unreadable or {}).items()]
    rows = [{name: _writable(value) for name, value in row.items()} for row in made]
    statuses = {row["status"] for row in rows}
    return {"cases": rows, "exit_code": 2 if "error" in statuses else int(bool(statuses & {"fail", "flaky"}))}


def _finding(reported: Reported) -> dict[str, Json]:
    finding = reported.finding
    deviation = finding.deviation
    return {
        "rule": deviation.rule.id if deviation.rule is not None else None,
        "oracle": deviation.oracle,
        "kind": deviation.kind,
        "signature": finding.signature,
        "verdict": verdict(reported),
        "sentence": finding.sentence,
        "count": finding.count,
        "case": reported.path,
        "causes": list(finding.causes),
    }


def _known(known: Known) -> dict[str, Json]:
    return {"signature": known.signature, "reason": known.reason, "expires": known.expires.isoformat()}


def _replayed(replayed: Replayed) -> dict[str, Json]:
    worst = min(replayed.findings, key=_severity, default=None)
    sentence, signature = (worst.sentence, worst.signature) if worst is not None else (None, None)
    return _row(replayed.path, replayed.status, sentence, signature, replayed.judge_differs or None)


def _severity(finding: Finding) -> tuple[bool, bool]:
    return finding.deviation.verdict != "fail", finding.flaky


def _row(
    file: str, status: str, sentence: str | None, signature: str | None = None, judge_differs: str | None = None
) -> dict[str, Json]:
    return {
        "file": file,
        "status": status,
        "sentence": sentence,
        "signature": signature,
        "judge_differs": judge_differs,
    }


def _writable(value: Any) -> Json:
    """The value with half characters escaped, because no encoding can write them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_writable(name): _writable(member) for name, member in value.items()}
    return [_writable(item) for item in value] if isinstance(value, list) else value
