"""What a search found, for people: a line that shows how far it is, then each finding with its bytes.

Whatever comes from a target is escaped and never read as markup, so that it cannot paint the terminal.
"""

from __future__ import annotations

from time import monotonic
from typing import TextIO

from rich.live import Live
from rich.text import Text

from ..happenings import Happening, NewFinding, Progress
from ..legible import crop
from ..result import Result
from .json_report import Verdict, verdict
from .paper import Paper, Replay
from .words import gone, plural, some

EVERY = 10.0
"""Seconds between two lines of progress where there is no terminal to redraw one on."""

REFRESH = 0.1
"""Seconds between two drawings of the line on a terminal."""

_COUNTED: dict[Verdict, tuple[str, str]] = {
    "fail": ("failure", "failures"),
    "warn": ("warning", "warnings"),
    "known": ("known", "known"),
    "flaky": ("flaky", "flaky"),
}


class Console(Paper):
    """Shows a search while it runs and what it found when it is over.

    Subscribe an instance to a search, then call :meth:`finish` with the result, or :meth:`close` to say no more.

    Args:
        stream: where to write.  Progress is redrawn in place on a terminal, elsewhere told now and then.
        colour: whether to colour.  ``None``: on a terminal, unless the environment variable ``NO_COLOR`` is set.
    """

    def __init__(self, stream: TextIO, *, colour: bool | None = None) -> None:
        super().__init__(stream, colour=colour)
        self.live = Live(console=self.terminal, auto_refresh=False, transient=True) if self.redrawn else None
        self.started = False
        self.next = REFRESH if self.redrawn else EVERY
        self.begun = monotonic()
        self.newest = ""

    def __call__(self, happening: Happening) -> None:
        """Be told what happens."""
        if isinstance(happening, NewFinding):
            self.newest = happening.finding.sentence
            return
        if not isinstance(happening, Progress):
            return
        now = monotonic() - self.begun
        if now < self.next:
            return
        line = progress_line(happening)
        if self.live is None:
            self.next = now + EVERY
            self.line(line)
            return
        self.next = now + REFRESH
        if not self.started:
            self.started = True
            self.live.start()
        width = self.terminal.width - 1
        shown = Text(crop(line, width, self.gap), style="bold")
        if self.newest:
            shown.append("\n" + crop(f"latest: {self.safe(self.newest)}", width, self.gap), style="not bold dim")
        self.live.update(shown, refresh=True)

    def close(self) -> None:
        """Take the progress line away."""
        if self.live is not None and self.started:
            self.started = False
            self.live.stop()

    def finish(self, result: Result, *, replay: Replay) -> None:
        """Print what was found and what was covered.

        Args:
            result: of the search.
            replay: the command that runs a finding's case again; asked only for findings that have a file.
        """
        self.close()
        if result.findings:
            self.wrapped(((self.safe(headline(result)), "bold"),))
        self.findings(result.findings, replay)
        if result.findings:
            self.line("")
        self._covered(result)

    def _covered(self, result: Result) -> None:
        reached = sum(1 for name, count in result.goals.items() if count and not name.startswith("rule: "))
        in_all = reached + len(result.unreached)
        if not result.cases:
            self.wrapped((("Nothing was judged: the search ended before its first case.", "bold yellow"),))
        elif not result.findings and in_all and not reached:
            cases = plural(result.cases, "case")
            text = f"{result.target}: next to nothing was tried in {cases}: give the search more time."
            self.wrapped(((self.safe(text), "bold yellow"),))
        elif not result.findings:
            found = f"{result.target}: nothing found in {plural(result.cases, 'case')}, {reached} of {in_all} goals."
            self.wrapped(((self.safe(found), "bold green"),))
        if result.interrupted:
            self.wrapped((("Interrupted: this is what was found until then, not all of it shrunk.", "yellow"),))
        seconds = result.seconds or 1.0
        rate, inside = result.cases / seconds, result.inside / seconds
        cases = f"{plural(result.cases, 'case')} in {result.seconds:.1f} s"
        self.fact("Judged", f"{cases}: {rate:,.0f} a second, {inside:.0%} of the time inside the target")
        if result.more:
            self.fact("Failed", f"{plural(result.more, 'more case')} in ways that had been seen often enough")
        self.fact("Streams", f"of {result.provider}, seed {result.seed}")
        self.fact("Goals", f"{reached} of {in_all} reached")
        if result.unreached:
            self.fact("Unmet", some(result.unreached) if reached else "all of them")
        for known in result.gone:
            self.fact("Gone", gone(known), "yellow")


def progress_line(progress: Progress) -> str:
    """How far a search is, in one line.  Only searching judges cases, so later stages have no rate."""
    rate = ""
    if progress.stage == "searching" and progress.seconds:
        rate = f"{progress.cases / progress.seconds:,.0f}/s  "
    return (
        f"{progress.stage}  {progress.seconds:.0f} s  {plural(progress.cases, 'case')}  {rate}"
        f"{plural(progress.findings, 'finding')}  goals {progress.goals} of {progress.goals_in_all}"
    )


def headline(result: Result) -> str:
    """How many findings there are of each verdict."""
    verdicts = [verdict(reported) for reported in result.findings]
    counts = [
        f"{verdicts.count(name)} {words[verdicts.count(name) != 1]}"
        for name, words in _COUNTED.items()
        if name in verdicts
    ]
    return f"{result.target}: {', '.join(counts)}"
