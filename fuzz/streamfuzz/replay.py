"""Run kept cases again and say which fail, and where the judge has changed its mind since they were written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal, TypeAlias

from . import corpus
from .bench import ALL_ORACLES, Bench
from .case import CaseFile
from .explain import explain
from .finding import Finding
from .spec import Target

Status: TypeAlias = Literal["pass", "warn", "known", "flaky", "fail"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """One case, run again.

    Attributes:
        path: of its file, or its URL.
        file: its content.
        status: ``fail`` if the target breaks an invariant on it; ``flaky`` if it does so only sometimes.
        findings: what is broken, with causes.
        judge_differs: what the judge says today, where that is not what the file expects.
    """

    path: str
    file: CaseFile
    status: Status
    findings: tuple[Finding, ...] = ()
    judge_differs: str = ""


def replay(
    target: Target, files: Iterable[tuple[Path, CaseFile]], oracles: tuple[str, ...] = ALL_ORACLES
) -> Iterator[Replayed]:
    """Run case files against a target, one after the other."""
    with Bench(target, oracles) as bench:
        for path, file in files:
            yield replay_one(bench, str(path), file)


def replay_one(bench: Bench, name: str, file: CaseFile) -> Replayed:
    """Run one case file against a target that is on the bench."""
    findings = []
    for deviation in bench.deviations(file.case):
        findings.append(explain(bench, file.case, deviation))
    return Replayed(name, file, _status(bench.target, findings), tuple(findings), _differs(file))


def _status(target: Target, findings: list[Finding]) -> Status:
    live = {known.signature for known in target.known if known.expires >= date.today()}
    news = [finding for finding in findings if finding.signature not in live]
    if any(finding.deviation.verdict == "fail" and not finding.flaky for finding in news):
        return "fail"
    if any(finding.flaky for finding in news):
        return "flaky"
    if news:
        return "warn"
    return "known" if findings else "pass"


def _differs(file: CaseFile) -> str:
    if file.expect is None:
        return ""
    today = corpus.expectation(file.case)
    if (today.outcome, today.rule) == (file.expect.outcome, file.expect.rule):
        return ""
    return (
        f"the file expects {file.expect.outcome} ({file.expect.rule or 'no rule'}), "
        f"the judge says {today.outcome} ({today.rule or 'no rule'})"
    )
