"""What a job found as a JUnit file, which most CI systems read: a suite for each target, a test for each finding."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from ..happenings import Ended, Happening
from ..legible import printable
from ..result import Fixed, Night, Reported, Result
from .files import claim, write
from .paper import as_text
from .words import gone, kind, notes, to_act_on

DRAWN = 100
"""Findings that are drawn with their bytes; a file that no CI system opens helps nobody."""


class JUnit:
    """Writes a JUnit file when a job has ended.

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
            write(self.path, xml(happening.night))


def xml(night: Night) -> bytes:
    """A job as a JUnit file.

    A finding that counts is a failed test, one that is known or was reported before a skipped one, a warning and
    a fixed one a passed one.  The test ``search`` of a target fails if nothing was judged, and has an error if
    the search proves nothing for another reason.
    """
    suites = JUnitXml("streamfuzz")
    drawn = iter(range(DRAWN))
    for result in night.results:
        cases = [_search(result, night), *(_found(night, reported, drawn) for reported in result.findings)]
        suites.add_testsuite(_suite(result.target, night, [*cases, *(_fixed(result, one) for one in result.fixed)]))
    if night.failed or night.troubles or night.lost:
        suites.add_testsuite(_suite("streamfuzz", night, [_job(night)]))
    suites.update_statistics()  # type: ignore[no-untyped-call]
    stream = BytesIO()
    suites.write(stream)
    return stream.getvalue()


def _suite(name: str, night: Night, cases: list[TestCase]) -> TestSuite:
    suite = TestSuite(printable(name))
    suite.timestamp = night.started.isoformat(timespec="seconds")
    suite.add_testcases(cases)
    return suite


def _case(target: str, name: str, seconds: float = 0.0) -> TestCase:
    return TestCase(printable(name), printable(target), round(seconds, 3))


def _search(result: Result, night: Night) -> TestCase:
    case = _case(result.target, "search", result.seconds)
    if not result.cases or not result.goals:
        case.result = [Failure("nothing was judged: give the search more time", "nothing")]
        return case
    unmet = result.unreached if night.vacuous and not night.interrupted else ()
    reasons = [f"never reached: {goal}" for goal in unmet] + [gone(known) for known in result.gone]
    if reasons:
        case.result = [Error(printable("; ".join(reasons)), "unproven")]
    return case


def _found(night: Night, reported: Reported, drawn: Iterator[int]) -> TestCase:
    finding = reported.finding
    case = _case(finding.target, finding.signature)
    told = printable("; ".join([finding.sentence, *notes(reported)]))
    if to_act_on(night, reported):
        failure = Failure(told, f"{finding.deviation.oracle}.{finding.deviation.kind}")
        failure.text = as_text(reported) if next(drawn, None) is not None else told
        case.result = [failure]
    elif kind(reported) in ("known", "again"):
        case.result = [Skipped(told)]
    else:
        case.system_out = told
    return case


def _fixed(result: Result, fixed: Fixed) -> TestCase:
    case = _case(result.target, fixed.signature)
    case.system_out = printable(f"passes now: {fixed.sentence} ({fixed.path})")
    return case


def _job(night: Night) -> TestCase:
    """The job itself, where something was wrong with it."""
    case = _case("streamfuzz", "job", night.seconds)
    if night.failed:
        case.result = [Error("the job could not do what was asked", "failed")]
    lost = [f"{night.lost} of its workers died or had to be killed"] if night.lost else []
    case.system_out = "\n".join(map(printable, [*lost, *night.troubles]))
    return case
