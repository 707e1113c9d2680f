"""One line that makes a fuzz test of a parser, for pytest or any other runner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import campaign, ruler
from .engines import Budget
from .result import Reported
from .spec import Target, UsageError, target


class FuzzFailure(AssertionError):
    """A parser failed its fuzz test; the message explains each finding."""


def fuzz_test(
    parser: Callable[..., Any] | Target,
    *,
    cases: int = 20_000,
    seconds: float = 30.0,
    seed: int = 0,
    folder: str | Path | None = None,
    **description: Any,
) -> Callable[[], None]:
    """Make a test that fuzzes a parser and fails with an explanation.

    ::

        test_my_parser = streamfuzz.fuzz_test(parse, provider="anthropic")

    Args:
        parser: the code under test, or a :class:`Target`.
        cases: judged cases after which the test passes.
        seconds: time after which it passes in any case.
        seed: the test draws the same streams every time; another seed draws others.
        folder: where to write a case file of each finding, if anywhere.
        description: what :func:`streamfuzz.target` takes: ``provider``, ``takes``, ``gives``, ``errors``, ...

    Raises:
        UsageError: the description contradicts itself.
    """
    if isinstance(parser, Target) and description:
        raise UsageError(f"a Target describes itself already; leave out {', '.join(description)}")
    described = parser if isinstance(parser, Target) else target(parser, **description)
    place = Path(folder) if folder is not None else None

    def test() -> None:
        result = campaign.run(described, Budget(seconds, cases, seed), folder=place)
        if result.interrupted:
            raise KeyboardInterrupt  # the runner wants to stop too
        failures = [reported for reported in result.findings if reported.counts]
        if failures:
            raise FuzzFailure("\n\n".join(map(_explained, failures)))
        if result.gone:
            gone = "; ".join(f"{known.signature} ({known.reason})" for known in result.gone)
            raise FuzzFailure(f"a known deviation did not occur, take it off the list: {gone}")
        if result.exit_code:
            raise FuzzFailure(f"nothing was judged in {result.seconds:.1f} s: give it more time or cases")

    test.__name__ = test.__qualname__ = f"test_{described.name.rpartition('.')[2]}"
    test.__doc__ = f"{described.name} keeps the invariants on streams of {described.provider}."
    return test


def _explained(reported: Reported) -> str:
    finding = reported.finding
    lines = [finding.sentence, f"[{finding.signature}]", "", *ruler.draw(finding.case)]
    if reported.path is not None:
        lines += ["", f"kept as {reported.path}"]
    return "\n".join(lines)
