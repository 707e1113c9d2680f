"""A job over several targets, for people: a table of how far each is, then what is news and what was covered."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TextIO

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..finding import Finding
from ..grouping import rank
from ..happenings import Began, Ended, Happening, NewFinding, Progress, Settled, Trouble, WorkerLost
from ..legible import crop
from ..result import Fixed, Night, Reported, Result
from .paper import IN_FULL, Paper
from .words import duration, gone, kind, meaning, plural, replay_of, some, tally, to_act_on

EVERY = 30.0
"""Seconds between two lines of progress where there is no terminal to redraw a table on."""

REFRESH = 0.2
"""Seconds between two drawings of the table on a terminal."""

NAME = 40
"""The most columns that a name gets in a table; on a narrow terminal, a third of them."""

IN_SHORT = 50
"""The most findings that are told of one kind."""

_GROUPS: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("News", ("new", "back", "warning"), True),
    ("No longer excused", ("expired",), True),
    ("Flaky", ("flaky",), False),
    ("Known", ("known",), False),
    ("Reported before", ("again",), False),
)
"""The parts of the summary in order: title, kinds of findings, and whether they are drawn in full."""


@dataclass(slots=True)
class _Row:
    """What is known of a target while it is searched."""

    progress: Progress | None = None
    news: int = 0


class NightConsole(Paper):
    """Shows a job while it runs and sums it up when it has ended.

    Subscribe an instance to a job; call :meth:`close` if the job ends without saying so.

    Args:
        stream: where to write.  Progress is redrawn in place on a terminal, elsewhere told now and then.
        colour: whether to colour.  ``None``: on a terminal, unless the environment variable ``NO_COLOR`` is set.
    """

    def __init__(self, stream: TextIO, *, colour: bool | None = None) -> None:
        super().__init__(stream, colour=colour)
        self.live = Live(console=self.terminal, auto_refresh=False, transient=True) if self.redrawn else None
        self.started = False
        self.rows: dict[str, _Row] = {}
        self.newest = ""
        self.begun = self.told = monotonic()

    def __call__(self, happening: Happening) -> None:
        """Be told what happens."""
        match happening:
            case Began():
                self._begin(happening)
            case Progress():
                self._row(happening.target).progress = happening
                self._show(happening)
            case NewFinding():
                self._tell_finding(happening.finding)
            case Settled():
                self._row(happening.reported.finding.target).news += happening.reported.counts
            case WorkerLost():
                text = f"A worker on {happening.target} was lost ({happening.how}); another one takes its place."
                self.wrapped(((self.safe(text), "yellow"),))
            case Trouble():
                self.wrapped(((self.safe(happening.message), "yellow"),))
            case Ended():
                self.close()
                self._sum_up(happening.night)

    def close(self) -> None:
        """Take the table away."""
        if self.live is not None and self.started:
            self.started = False
            self.live.stop()

    def _row(self, target: str) -> _Row:
        return self.rows.setdefault(target, _Row())

    # -- while it runs --------------------------------------------------------------------------------------------

    def _begin(self, began: Began) -> None:
        self.begun = self.told = monotonic()
        for name in began.targets:
            self._row(name)
        time = f" for {duration(began.seconds)}" if began.seconds is not None else ""
        targets, workers = plural(len(began.targets), "target"), plural(began.workers, "worker")
        self.line(self.safe(f"{began.mode}: {targets}{time} on {workers}"), "bold")

    def _tell_finding(self, finding: Finding) -> None:
        self.newest = finding.sentence
        if self.live is None:
            self.wrapped((("found  ", ""), (self.safe(finding.sentence), "")), " " * 7)

    def _show(self, progress: Progress) -> None:
        now = monotonic()
        if now - self.told < (EVERY if self.live is None else REFRESH):
            return
        self.told = now
        if self.live is None:
            self.line(self._in_a_line(progress))
            return
        if not self.started:
            self.started = True
            self.live.start()
        self.live.update(Group(self._table(), *self._bottom(progress)), refresh=True)

    def _in_a_line(self, progress: Progress) -> str:
        """How far the whole job is."""
        told = [row.progress for row in self.rows.values() if row.progress is not None]
        cases, findings = sum(each.cases for each in told), sum(each.findings for each in told)
        goals, in_all = sum(each.goals for each in told), sum(each.goals_in_all for each in told)
        elapsed = max(monotonic() - self.begun, 0.001)
        left = f"  {duration(progress.left)} left" if progress.left is not None else ""
        return (
            f"{duration(elapsed)}{left}  {plural(cases, 'case')}  {cases / elapsed:,.0f}/s  "
            f"{plural(findings, 'finding')}  goals {goals} of {in_all}"
        )

    def _table(self) -> Table:
        table = _table("target", "cases", "cases/s", "findings", "goals", "")
        for name, row in self.rows.items():
            progress = row.progress
            if progress is None:
                table.add_row(self._name(name), "", "", "", "", Text("waiting", "dim"))
                continue
            table.add_row(
                self._name(name),
                Text(f"{progress.cases:,}"),
                Text(_rate(progress.cases, progress.seconds)),
                self._count(progress.findings, row.news),
                Text(f"{progress.goals}/{progress.goals_in_all}"),
                Text(self.safe(progress.stage)),
            )
        return table

    def _bottom(self, progress: Progress) -> list[Text]:
        width = self.terminal.width - 1
        lines = []
        if progress.left is not None:
            lines.append(Text(f"{duration(progress.left)} left", "bold"))
        if self.newest:
            lines.append(Text(crop(f"newest: {self.safe(self.newest)}", width, self.gap), "dim"))
        return lines

    def _name(self, name: str) -> Text:
        return Text(crop(self.safe(name), min(NAME, self.terminal.width // 3), self.gap))

    @staticmethod
    def _count(findings: int, news: int) -> Text:
        return Text(f"{findings:,} ({news:,} new)", "bold red") if news else Text(f"{findings:,}")

    # -- when it has ended ----------------------------------------------------------------------------------------

    def _sum_up(self, night: Night) -> None:
        self.line("")
        self.wrapped(((f"{night.mode}, {duration(night.seconds)}: {tally(night)}", "bold"),))
        self._findings(night)
        self._fixed([fixed for result in night.results for fixed in result.fixed])
        self._covered(night)
        style = "bold green" if night.exit_code == 0 else "bold"
        self.wrapped(((self.safe(meaning(night)), style),))

    def _findings(self, night: Night) -> None:
        found = sorted((reported for result in night.results for reported in result.findings), key=rank)
        number = 0
        for title, kinds, drawn in _GROUPS:
            members = [reported for reported in found if kind(reported) in kinds]
            self._title(title, members)
            for reported in members[:IN_SHORT]:
                number += 1
                if drawn and number <= IN_FULL:
                    self.line("")
                    self.finding(number, reported, replay_of)
                else:
                    self.in_short(number, reported)
            if len(members) > IN_SHORT:
                self.line(f"and {len(members) - IN_SHORT:,} more, which the report files tell")

    def _title(self, title: str, members: list[Reported] | list[Fixed]) -> None:
        if members:
            self.line("")
            self.line(f"{title} ({len(members):,})", "bold underline")

    def _fixed(self, members: list[Fixed]) -> None:
        self._title("Fixed", members)
        for fixed in members:
            self.wrapped((("- passes now  ", "green"), (self.safe(fixed.sentence), "")), "  ")
            self.line(f"  {self.safe(fixed.path)}", "dim")

    def _covered(self, night: Night) -> None:
        self.line("")
        table = _table("target", "cases", "cases/s", "findings", "goals", "found by")
        for result in night.results:
            news = sum(to_act_on(night, reported) for reported in result.findings)
            reached, in_all = goals_reached(result)
            table.add_row(
                self._name(result.target),
                Text(f"{result.cases:,}"),
                Text(_rate(result.cases, result.seconds)),
                self._count(len(result.findings), news),
                Text(f"{reached}/{in_all}"),
                self._name(_engines(result)),
            )
        self.terminal.print(table)
        self.line("")
        self._facts(night)

    def _facts(self, night: Night) -> None:
        for result in night.results:
            if result.unreached:
                unmet = some(result.unreached) if goals_reached(result)[0] else "all of them"
                self.fact("Unmet", f"{result.target}: {unmet}")
            for known in result.gone:
                self.fact("Gone", f"{result.target}: {gone(known)}", "yellow")
            if result.more:
                self.fact("More", f"{result.target}: {plural(result.more, 'more case')} failed in ways seen before")
        if night.lost:
            self.fact("Workers", f"{plural(night.lost, 'worker')} of {night.workers} lost and replaced", "yellow")
        for trouble in night.troubles:
            self.fact("Trouble", trouble, "yellow")
        if night.interrupted:
            self.fact("Stopped", "interrupted: this is what was found until then, not all of it shrunk", "yellow")


def goals_reached(result: Result) -> tuple[int, int]:
    """How many goals a search reached, and of how many."""
    reached = sum(1 for name, count in result.goals.items() if count and not name.startswith("rule: "))
    return reached, reached + len(result.unreached)


def _rate(cases: int, seconds: float) -> str:
    return f"{cases / seconds:,.0f}" if seconds else ""


def _engines(result: Result) -> str:
    return ", ".join(f"{name} {share.findings:,}" for name, share in sorted(result.engines.items()))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        figures = name in ("cases", "cases/s", "findings", "goals")
        table.add_column(Text(name), justify="right" if figures else "left", overflow="fold", no_wrap=figures)
    return table
