"""What a search or a replay found, for machines: plain JSON, and the schemas that describe it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from streamfuzz_strategies.reply import Json

from ..finding import Finding
from ..replay import Replayed
from ..result import Fixed, Night, Reported, Result, Status
from ..spec import Known

Verdict: TypeAlias = Literal["fail", "warn", "known", "flaky"]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEXT_OR_NULL = {"type": ["string", "null"]}
_DAY_OR_NULL = {"type": ["string", "null"], "format": "date"}
_COUNT = {"type": "integer", "minimum": 0}
_TEXTS = {"type": "array", "items": {"type": "string"}}


def described(about: str, **members: Json) -> dict[str, Json]:
    """The schema of an object that has all of these members; later versions may add others."""
    return {"type": "object", "description": about, "properties": members, "required": sorted(members)}


FINDING = described(
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
    also={**_TEXTS, "description": "In which other ways the same mistake shows."},
    status={"enum": list(get_args(Status)), "description": "What it is to those who saw the searches before."},
    first={**_DAY_OR_NULL, "description": "The day on which it was first seen."},
    last={**_DAY_OR_NULL, "description": "The day on which it was last seen."},
    failed={**_COUNT, "description": "How many of the runs just before the report failed."},
    runs={**_COUNT, "description": "How many runs there were just before the report; 0: none."},
    engine={"type": "string", "description": "Which engine came across it first."},
)
GOALS: dict[str, Json] = {
    "type": "object",
    "additionalProperties": _COUNT,
    "description": "How often each goal was reached; 0: never.",
}
GONE = described(
    "A known deviation that did not occur.",
    signature={"type": "string"},
    reason={"type": "string"},
    expires={"type": "string", "format": "date"},
)

_RUN = described(
    "What one search of one target found.",
    target={"type": "string", "description": "Name of the target."},
    provider={"type": "string", "description": "Whose streams it read."},
    seed={"type": "integer", "description": "Of the drawn streams."},
    cases={**_COUNT, "description": "How many cases were judged."},
    seconds={"type": "number", "minimum": 0},
    findings={"type": "array", "items": FINDING},
    goals=GOALS,
    known_gone={"type": "array", "items": GONE},
    interrupted={"type": "boolean", "description": "Whether the search was stopped before its time."},
    exit_code={
        "enum": [0, 1, 4],
        "description": "0 nothing found, 1 findings, 4 nothing was judged or a known deviation is gone.",
    },
)

SCHEMA: Mapping[str, Json] = {"$schema": DRAFT, "$id": "urn:streamfuzz:run:1", "title": "streamfuzz run", **_RUN}
"""The JSON Schema (draft 2020-12) of :func:`result_json`."""

FIXED = described(
    "A kept case that failed once and passes now.",
    signature={"type": "string", "description": "Of the finding that it was."},
    sentence={"type": "string", "description": "What went wrong, for people."},
    case={"type": "string", "description": "Path of the case file."},
)
_SHARE = described(
    "What one engine did.",
    cases={**_COUNT, "description": "How many cases it judged."},
    seconds={"type": "number", "minimum": 0, "description": "Of processor time."},
    findings={**_COUNT, "description": "How many it came across first."},
)
NIGHT = described(
    "What a job over several targets found.",
    mode={"enum": ["run", "batch", "change", "replay"]},
    started={"type": "string", "format": "date-time"},
    seconds={"type": "number", "minimum": 0},
    workers={**_COUNT, "description": "How many processes searched at once."},
    lost={**_COUNT, "description": "How many of them died or had to be killed."},
    troubles={**_TEXTS, "description": "What went wrong with the job itself."},
    interrupted={"type": "boolean", "description": "Whether it was stopped before its time."},
    exit_code={
        "enum": [0, 1, 2, 4],
        "description": "0 nothing to act on, 1 findings, 2 the job could not do what was asked, 4 nothing was judged, "
        "a goal was never reached, or a known deviation is gone.",
    },
    targets={
        "type": "array",
        "items": described(
            "What one search found, and more of it.",
            **_RUN["properties"],
            source={**_TEXT_OR_NULL, "description": "Where the target is defined, as path:line."},
            inside={"type": "number", "minimum": 0, "description": "How many of the seconds the target took."},
            more={**_COUNT, "description": "How many cases failed beside those that the findings were made of."},
            fixed={"type": "array", "items": FIXED},
            engines={"type": "object", "additionalProperties": _SHARE, "description": "What each engine did."},
        ),
    },
)

NIGHT_SCHEMA: Mapping[str, Json] = {
    "$schema": DRAFT,
    "$id": "urn:streamfuzz:night:1",
    "title": "streamfuzz nightly",
    **NIGHT,
}
"""The JSON Schema (draft 2020-12) of :func:`night_json`."""

REPLAY_SCHEMA: Mapping[str, Json] = {
    "$schema": DRAFT,
    "$id": "urn:streamfuzz:replay:1",
    "title": "streamfuzz replay",
    **described(
        "Case files, run again.",
        cases={
            "type": "array",
            "items": described(
                "One case file.",
                file={"type": "string", "description": "Its path."},
                status={"enum": ["pass", "warn", "known", "flaky", "fail", "error"]},
                sentence={**_TEXT_OR_NULL, "description": "What goes wrong, or why the file could not be run."},
                signature={**_TEXT_OR_NULL, "description": "What makes two failures one finding."},
                signatures={**_TEXTS, "description": "Those of everything that goes wrong."},
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
        "findings": [finding_json(reported) for reported in result.findings],
        "goals": {**dict.fromkeys(result.unreached, 0), **result.goals},
        "known_gone": [known_json(known) for known in result.gone],
        "interrupted": result.interrupted,
        "exit_code": result.exit_code,
    }
    return {name: writable(value) for name, value in made.items()}


def replay_json(replayed: Iterable[Replayed], unreadable: Mapping[Path, str] | None = None) -> dict[str, Json]:
    """The results of a replay as JSON that :data:`REPLAY_SCHEMA` accepts.

    Args:
        replayed: the cases that were run.
        unreadable: files that could not be, each with the reason; their status is ``error``.
    """
    made = [_replayed(one) for one in replayed]
    made += [_row(str(path), "error", reason) for path, reason in (unreadable or {}).items()]
    rows = [{name: writable(value) for name, value in row.items()} for row in made]
    statuses = {row["status"] for row in rows}
    return {"cases": rows, "exit_code": 2 if "error" in statuses else int(bool(statuses & {"fail", "flaky"}))}


def night_json(night: Night) -> dict[str, Json]:
    """A job as JSON that :data:`NIGHT_SCHEMA` accepts."""
    made = {
        "mode": night.mode,
        "started": night.started.isoformat(),
        "seconds": round(night.seconds, 3),
        "workers": night.workers,
        "lost": night.lost,
        "troubles": list(night.troubles),
        "interrupted": night.interrupted,
        "exit_code": night.exit_code,
        "targets": [_of_night(result) for result in night.results],
    }
    return {name: writable(value) for name, value in made.items()}


def _of_night(result: Result) -> dict[str, Json]:
    return {
        **result_json(result),
        "source": result.source,
        "inside": round(result.inside, 3),
        "more": result.more,
        "fixed": [fixed_json(fixed) for fixed in result.fixed],
        "engines": {name: asdict(share) for name, share in result.engines.items()},
    }


def fixed_json(fixed: Fixed) -> dict[str, Json]:
    """A mended case as JSON that :data:`FIXED` accepts, half characters not yet escaped."""
    return {"signature": fixed.signature, "sentence": fixed.sentence, "case": fixed.path}


def finding_json(reported: Reported) -> dict[str, Json]:
    """A finding as JSON that :data:`FINDING` accepts, half characters not yet escaped."""
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
        "also": list(finding.also),
        "status": reported.status,
        "first": reported.first.isoformat() if reported.first is not None else None,
        "last": reported.last.isoformat() if reported.last is not None else None,
        "runs": reported.runs,
        "failed": reported.failed,
        "engine": reported.engine,
    }


def known_json(known: Known) -> dict[str, Json]:
    """A known deviation as JSON that :data:`GONE` accepts, half characters not yet escaped."""
    return {"signature": known.signature, "reason": known.reason, "expires": known.expires.isoformat()}


def _replayed(replayed: Replayed) -> dict[str, Json]:
    worst = min(replayed.findings, key=_severity, default=None)
    sentence, signature = (worst.sentence, worst.signature) if worst is not None else (None, None)
    all_of_them = [finding.signature for finding in replayed.findings]
    return _row(replayed.path, replayed.status, sentence, signature, all_of_them, replayed.judge_differs or None)


def _severity(finding: Finding) -> tuple[bool, bool]:
    return finding.deviation.verdict != "fail", finding.flaky


def _row(
    file: str,
    status: str,
    sentence: str | None,
    signature: str | None = None,
    signatures: Sequence[str] = (),
    judge_differs: str | None = None,
) -> dict[str, Json]:
    return {
        "file": file,
        "status": status,
        "sentence": sentence,
        "signature": signature,
        "signatures": list(signatures),
        "judge_differs": judge_differs,
    }


def writable(value: Any) -> Json:
    """The value with half characters escaped, because no encoding can write them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {writable(name): writable(member) for name, member in value.items()}
    return [writable(item) for item in value] if isinstance(value, list) else value
