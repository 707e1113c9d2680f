"""A search as one HTML file: complete in itself, offline, and safe whatever the target gave out.

Findings travel in the file as packed data and are written into the page by its script, as text and never as markup.
A policy in the page lets nothing run, and nothing be loaded, but that one script and that one style sheet.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from streamfuzz_strategies import providers
from streamfuzz_strategies.judge import GENERIC_RULES
from streamfuzz_strategies.rules import Rule

from ..happenings import Ended, Happening
from ..result import Night, Result, Trend
from . import charts
from .files import claim, write
from .page_data import ReplayOf, TraceOf, in_order, packed, short, tags
from .words import duration, gone, meaning, plural, replay_command

FILES = files("streamfuzz.report") / "templates"
"""The parts of the page."""

FIXED = 200
"""Fixed findings that are listed."""

NIGHTS = 60
"""Jobs of the past that are shown."""

SAMPLES = 12
"""Rows of the table that says what a curve shows."""

TAGS = ("new", "back", "expired", "flaky", "warning", "again", "known")
"""The labels of findings, the most pressing first."""

GROUPS = (
    ("Where streams were cut", "cut "),
    ("How streams were spelled", "style: "),
    ("What was rewritten", "rewriting: "),
    ("What was damaged", "damage: "),
    ("What else was tried", ""),
    ("Rules that streams broke", "rule: "),
)
"""The parts of the grid and how the names of their goals begin; what fits no other goes with the empty one."""


class Page:
    """Writes the report page when a search has ended; subscribe an instance to the search.

    Args:
        path: the file to write.  Folders that it needs are made.
        past: the jobs before this one, the oldest first.
        trace_of: runs a target on a case, to show what it had given out after each chunk.
        replay_of: the command that runs a finding's case again.

    Raises:
        UsageError: the file cannot be written, now or at the end.
    """

    def __init__(
        self,
        path: Path,
        *,
        past: Sequence[Trend] = (),
        trace_of: TraceOf | None = None,
        replay_of: ReplayOf | None = None,
    ) -> None:
        claim(path)
        self.path = path
        self.past = past
        self.trace_of = trace_of
        self.replay_of = replay_of or (lambda target, reported: replay_command(target, reported.path or ""))

    def __call__(self, happening: Happening) -> None:
        """Be told what happens."""
        if not isinstance(happening, Ended):
            return
        content = page(happening.night, self.replay_of, past=self.past, trace_of=self.trace_of)
        write(self.path, content.encode())


def page(night: Night, replay_of: ReplayOf, *, past: Sequence[Trend] = (), trace_of: TraceOf | None = None) -> str:
    """The report page of a job as one HTML document."""
    templates = Environment(
        loader=PackageLoader("streamfuzz.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"text": short, "duration": duration, "number": lambda value: f"{value:,.0f}"}
    templates.globals |= {"plural": plural, "heat": heat, "reached": reached}
    style, script = ((FILES / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return templates.get_template("page.html").render(
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        version=version("streamfuzz"),
        night=night,
        headline=headline(night),
        meaning=meaning(night),
        cases=sum(result.cases for result in night.results),
        tags=tag_counts(night),
        packed=packed(night, replay_of, trace_of),
        notes=list(notes(night)),
        fixed=[(result.target, fixed) for result in night.results for fixed in result.fixed],
        most_fixed=FIXED,
        grid=grid(night.results),
        curves=[
            (result, charts.curves(result.curve), charts.thinned(result.curve, SAMPLES))
            for result in night.results
            if len(result.curve) > 1
        ],
        past=[*past, Trend.of(night)][-NIGHTS:],
        nights=charts.nights,
    )


def reached(result: Result) -> int:
    """How many goals of a target were reached; rules are not counted."""
    return sum(1 for name, count in result.goals.items() if count and not name.startswith("rule: "))


def policy(style: str, script: str) -> str:
    """The content security policy of a page with one style sheet and one script."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def headline(night: Night) -> str:
    """What a job found, in one sentence."""
    failing = [result.target for result in night.results for reported in result.findings if reported.counts]
    cases = plural(sum(result.cases for result in night.results), "case")
    if not failing:
        return f"Nothing to act on in {cases}." if night.exit_code == 0 else f"No failure is news in {cases}."
    targets = len(set(failing))
    where = short(failing[0]) if targets == 1 else f"{targets} of {plural(len(night.results), 'target')}"
    return f"{plural(len(failing), 'failure')} to act on in {where}."


def notes(night: Night) -> Iterator[str]:
    """What else a reader must know of a job, in sentences."""
    if night.interrupted:
        yield "The job was stopped before its time; this is what was found until then."
    yield from (f"{gone(known)}." for result in night.results for known in result.gone)
    yield from night.troubles


def tag_counts(night: Night) -> list[tuple[str, int]]:
    """How many findings carry each label, of those labels that any carries."""
    worn = [tag for _, reported in in_order(night) for tag in tags(reported)]
    return [(tag, worn.count(tag)) for tag in TAGS if tag in worn]


@dataclass(frozen=True, slots=True)
class Row:
    """A goal or rule in the grid.

    Attributes:
        name: of the goal, without what its group says already.
        about: the sentence of a rule; empty for a goal.
        counts: for each target how often it was reached; ``None``: not a goal of the target.
    """

    name: str
    about: str
    counts: tuple[int | None, ...]

    @property
    def unmet(self) -> bool:
        """Whether a target never reached it."""
        return 0 in self.counts


def grid(results: Sequence[Result]) -> list[tuple[str, list[Row]]]:
    """The goals and rules of all targets, in named groups."""
    columns = [_counts(result) for result in results]
    rules = {rule.id: rule.sentence for result in results for rule in _rules(result)}
    rows: dict[str, list[Row]] = {title: [] for title, _ in GROUPS}
    for name in sorted(dict.fromkeys(name for column in columns for name in column)):
        title, begins = max((group for group in GROUPS if name.startswith(group[1])), key=lambda group: len(group[1]))
        shown = name.removeprefix(begins)
        counts = tuple(column.get(name) for column in columns)
        rows[title].append(Row(shown, rules.get(shown, "") if begins == "rule: " else "", counts))
    return [(title, found) for title, found in rows.items() if found]


def _counts(result: Result) -> dict[str, int]:
    if not result.cases:
        return {}
    rules = {f"rule: {rule.id}": 0 for rule in _rules(result)}
    return {**rules, **dict.fromkeys(result.unreached, 0), **result.goals}


def _rules(result: Result) -> tuple[Rule, ...]:
    return (*GENERIC_RULES, *providers.get(result.provider).rules)


def heat(count: int) -> int:
    """How strongly a count is shaded: 1 for a few, 4 for ten thousands."""
    return min(4, 1 + int(math.log10(count) / 1.5)) if count else 0
