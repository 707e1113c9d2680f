"""Charts of the report page, as SVG: how a search went over time, and how the jobs of the past went.

Shapes and numbers only: colours come from the style sheet, and the figures stand in a table beside each chart.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TypeAlias

from markupsafe import Markup

from ..result import Point, Trend
from .words import duration

WIDTH, HEIGHT = 280, 84
"""Of one small chart, in units of SVG; the page scales it."""

POINTS = 240
"""Points drawn of a curve; a screen shows no more."""

STRETCHES = 40
"""Stretches of time for each of which there is a rate."""

MARGIN, TOP, BOTTOM = 4, 8, 16

STACKED = ("new", "again", "known")
"""What the column of a night is made of, from the bottom."""


def thinned(curve: Sequence[Point], most: int) -> list[Point]:
    """At most so many points of a curve, evenly chosen, the first and the last among them."""
    if len(curve) <= most:
        return list(curve)
    return [curve[round(n * (len(curve) - 1) / (most - 1))] for n in range(most)]


def rates(curve: Sequence[Point]) -> list[tuple[float, float]]:
    """Cases a second in equal stretches of time, each at the second at which it ends."""
    whole = curve[-1].seconds
    ends = [whole * n / STRETCHES for n in range(STRETCHES + 1)]
    done = [_cases(curve, end) for end in ends]
    return [(ends[n], (done[n] - done[n - 1]) * STRETCHES / whole) for n in range(1, STRETCHES + 1)] if whole else []


def _cases(curve: Sequence[Point], seconds: float) -> float:
    """How many cases had been judged then, between the points of a curve in proportion to time."""
    after = bisect_left(curve, seconds, key=lambda point: point.seconds)
    if after == len(curve):
        return curve[-1].cases
    before = curve[after - 1] if after else Point(0, 0, 0, 0, 0)
    share = (seconds - before.seconds) / ((curve[after].seconds - before.seconds) or 1)
    return before.cases + share * (curve[after].cases - before.cases)


def curves(curve: Sequence[Point]) -> list[tuple[str, str, Markup]]:
    """The small charts of a search: the name, the highest value in words, and the picture of each."""
    few = thinned(curve, POINTS)
    counts = {
        "Findings": [(point.seconds, point.findings) for point in few],
        "Goals reached": [(point.seconds, point.goals) for point in few],
        "Rules broken": [(point.seconds, point.rules) for point in few],
    }
    made = [(name, _highest(line), _small(_steps(line), line)) for name, line in counts.items()]
    rate = rates(curve)
    return [*made, ("Cases a second", _highest(rate), _small(rate, rate))]


Line: TypeAlias = Sequence[tuple[float, float]]


def _highest(line: Line) -> str:
    return f"{max((y for _, y in line), default=0):,.0f}"


def _steps(line: Line) -> Line:
    """The line of a count, which holds until the moment at which it grows."""
    levels = [0.0, *(y for _, y in line)]
    return [step for level, (x, y) in zip(levels, line, strict=False) for step in ((x, level), (x, y))]


def _small(drawn: Line, line: Line) -> Markup:
    """A line over time with the area below it, on axes that end where ``line`` does."""
    wide = max((x for x, _ in line), default=0) or 1
    high = max((y for _, y in line), default=0) or 1
    floor, right = HEIGHT - BOTTOM, WIDTH - MARGIN
    points = [(MARGIN + (right - MARGIN) * x / wide, floor - (floor - TOP) * y / high) for x, y in drawn]
    path = f"M{MARGIN} {floor}" + "".join(f"L{x:.1f} {y:.1f}" for x, y in points)
    return Markup(
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true" focusable="false">'
        f'<path class="area" d="{path}V{floor}Z"/><path class="line" d="{path}"/>'
        f'<path class="axis" d="M{MARGIN} {floor}.5H{right}"/><text x="{MARGIN}" y="{HEIGHT - 3}">0</text>'
        f'<text x="{right}" y="{HEIGHT - 3}" text-anchor="end">{duration(wide)}</text></svg>'
    )


def nights(past: Sequence[Trend]) -> Markup:
    """One column of findings for each job."""
    high = max((night.new + night.again + night.known for night in past), default=0) or 1
    each = 24
    wide = max(each * len(past), 8 * each)
    bars = []
    for number, night in enumerate(past):
        floor = 96.0
        for kind in STACKED:
            tall = 88 * getattr(night, kind) / high
            floor -= tall
            if tall:
                bars.append(
                    f'<rect class="{kind}" x="{each * number + 3}" y="{floor:.1f}" width="18" height="{tall:.1f}"/>'
                )
    axis = f'<path class="axis" d="M0 96.5H{wide}"/>'
    return Markup(
        f'<svg class="nights" viewBox="0 0 {wide} 100" width="{wide}" height="100" aria-hidden="true" '
        f'focusable="false">{"".join(bars)}{axis}</svg>'
    )
