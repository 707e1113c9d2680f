"""What a search found, for people: a line that shows how far it is, then each finding with its bytes.

Whatever comes from a target is escaped and never read as markup, so that it cannot paint the terminal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from time import monotonic
from typing import TextIO, TypeAlias

from rich.console import Console as Terminal
from rich.live import Live
from rich.text import Text

from .. import ruler
from ..happenings import Happening, NewFinding, Progress
from ..legible import crop, printable
from ..result import Reported, Result
from .json_report import Verdict, verdict
from .marks import marks

EVERY = 10.0
"""Seconds between two lines of progress where there is no terminal to redraw one on."""

REFRESH = 0.1
"""Seconds between two drawings of the line on a terminal."""

WIDTH = 100
"""Columns where there is no terminal."""

QUOTED = 60
"""The longest value that a sentence quotes in full."""

Words: TypeAlias = tuple[tuple[str, str], ...]

_VERDICTS: dict[Verdict, tuple[str, str]] = {
    "fail": ("FAIL", "bold red"),
    "warn": ("warn", "yellow"),
    "known": ("known", "cyan"),
    "flaky": ("flaky", "magenta"),
}
_COUNTED: dict[Verdict, tuple[str, str]] = {
    "fail": ("failure", "failures"),
    "warn": ("warning", "warnings"),
    "known": ("known", "known"),
    "flaky": ("flaky", "flaky"),
}


IN_FULL = 10
"""Findings that are drawn; more would bury the first, so the rest get a sentence and their file."""


class Console:
    """Shows a search while it runs and what it found when it is over.

    Subscribe an instance to a search, then call :meth:`finish` with the result, or :meth:`close` to say no more.

    Args:
        stream: where to write.  Progress is redrawn in place on a terminal, elsewhere told now and then.
        colour: whether to colour.  ``None``: on a terminal, unless the environment variable ``NO_COLOR`` is set.
    """

    def __init__(self, stream: TextIO, *, colour: bool | None = None) -> None:
        live = stream.isatty() and os.environ.get("TERM") != "dumb"
        if colour is None:
            colour = live and not os.environ.get("NO_COLOR")
        self.terminal = Terminal(
            file=stream,
            force_terminal=live,
            color_system="standard" if colour else None,
            width=None if live else WIDTH,
            markup=False,
            emoji=False,
            highlight=False,
        )
        self.ascii = not _can_encode("\u2503\u2026\u2192\u4f60", stream.encoding)
        self.live = Live(console=self.terminal, auto_refresh=False, transient=True) if live else None
        self.started = False
        self.next = REFRESH if live else EVERY
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
            self._print(line)
            return
        self.next = now + REFRESH
        if not self.started:
            self.started = True
            self.live.start()
        width = self.terminal.width - 1
        shown = Text(crop(line, width, self._gap), style="bold")
        if self.newest:
            shown.append("\n" + crop(f"latest: {self._safe(self.newest)}", width, self._gap), style="not bold dim")
        self.live.update(shown, refresh=True)

    def close(self) -> None:
        """Take the progress line away."""
        if self.live is not None and self.started:
            self.started = False
            self.live.stop()

    def finish(self, result: Result, *, replay: Callable[[Reported], str]) -> None:
        """Print what was found and what was covered.

        Args:
            result: of the search.
            replay: the command that runs a finding's case again; asked only for findings that have a file.
        """
        self.close()
        if result.findings:
            self._wrapped(((self._safe(headline(result)), "bold"),))
        for number, reported in enumerate(result.findings, 1):
            if number <= IN_FULL:
                self._print("")
                self._finding(number, reported, replay)
            else:
                if number == IN_FULL + 1:
                    self._print("")
                    self._print("And, in short (`streamfuzz show FILE` draws one):")
                self._in_short(number, reported)
        if result.findings:
            self._print("")
        self._covered(result)

    def _finding(self, number: int, reported: Reported, replay: Callable[[Reported], str]) -> None:
        finding = reported.finding
        word, style = _VERDICTS[verdict(reported)]
        indent = " " * (len(str(number)) + 2)
        sentence = self._safe(finding.sentence)
        self._wrapped(((f"{number}. ", ""), (word, style), (f"  {sentence}", "bold")), indent)
        times = "once" if finding.count == 1 else f"{finding.count:,} times"
        self._wrapped(((f"{indent}{self._safe(finding.signature)}, met {times}", "dim"),), indent)
        known = reported.known
        if known is not None:
            until = "known until" if reported.status == "known" else "no longer excused: was known until"
            self._wrapped(((indent + self._safe(f"{until} {known.expires}: {known.reason}"), "cyan"),), indent)
        for line in self._values(finding.deviation.expected, finding.deviation.got):
            self._print(f"{indent}  {line}")
        self._print("")
        room = self.terminal.width - len(indent) - 2
        for line in ruler.draw(finding.case, width=room, marks=marks(finding), ascii=self.ascii):
            pointing = line.lstrip().startswith("^") or line.endswith(" ^")
            self._print(f"{indent}  {line}", "bold yellow" if pointing else "")
        if reported.path is not None:
            self._print("")
            self._print(f"{indent}file    {self._safe(str(reported.path))}")
            self._print(f"{indent}replay  {self._safe(replay(reported))}")

    def _in_short(self, number: int, reported: Reported) -> None:
        word, style = _VERDICTS[verdict(reported)]
        indent = " " * (len(str(number)) + 2)
        sentence = self._safe(reported.finding.sentence)
        self._wrapped(((f"{number}. ", ""), (word, style), (f"  {sentence}", "")), indent)
        if reported.path is not None:
            self._print(f"{indent}{self._safe(str(reported.path))}", "dim")

    def _values(self, expected: object, got: object) -> Iterator[str]:
        """What should have been given and what was, where the sentence has no room for it."""
        if expected is None or got is None or max(len(repr(expected)), len(repr(got))) <= QUOTED:
            return
        texts = [value if isinstance(value, str) else _json(value) for value in (expected, got)]
        dots = self._gap.strip()
        room = self.terminal.width - 20
        shown = room - 2 * len(dots)
        shorter = min(map(len, texts))
        same = next((n for n in range(shorter) if texts[0][n] != texts[1][n]), shorter)
        start = same - shown // 3 if same > shown // 2 else 0
        for name, text in zip(("should be", "is"), texts, strict=True):
            part = (dots if start else "") + self._safe(text[start : start + shown])
            yield f"{name:<9}  {crop(part + (dots if len(text) > start + shown else ''), room, self._gap)}"

    def _covered(self, result: Result) -> None:
        reached = sum(1 for name, count in result.goals.items() if count and not name.startswith("rule: "))
        in_all = reached + len(result.unreached)
        if not result.cases:
            self._wrapped((("Nothing was judged: the search ended before its first case.", "bold yellow"),))
        elif not result.findings and in_all and not reached:
            cases = _plural(result.cases, "case")
            text = f"{result.target}: next to nothing was tried in {cases}: give the search more time."
            self._wrapped(((self._safe(text), "bold yellow"),))
        elif not result.findings:
            found = f"{result.target}: nothing found in {_plural(result.cases, 'case')}, {reached} of {in_all} goals."
            self._wrapped(((self._safe(found), "bold green"),))
        if result.interrupted:
            self._wrapped((("Interrupted: this is what was found until then, not all of it shrunk.", "yellow"),))
        seconds = result.seconds or 1.0
        rate, inside = result.cases / seconds, result.inside / seconds
        cases = f"{_plural(result.cases, 'case')} in {result.seconds:.1f} s"
        self._fact("Judged", f"{cases}: {rate:,.0f} a second, {inside:.0%} of the time inside the target")
        if result.more:
            self._fact("Failed", f"{_plural(result.more, 'more case')} in ways that had been seen often enough")
        self._fact("Streams", f"of {result.provider}, seed {result.seed}")
        self._fact("Goals", f"{reached} of {in_all} reached")
        if result.unreached:
            self._fact("Unmet", ", ".join(result.unreached) if reached else "all of them")
        for known in result.gone:
            text = f"{known.signature} was known ({known.reason}) and did not occur: take it off the list"
            self._fact("Gone", text, "yellow")

    def _fact(self, name: str, text: str, style: str = "") -> None:
        self._wrapped(((f"{name:<9} ", style), (self._safe(text), style)), " " * 10)

    @property
    def _gap(self) -> str:
        return " ... " if self.ascii else " \u2026 "

    def _safe(self, text: str) -> str:
        return printable(text, plain=self.ascii)

    def _print(self, line: str, style: str = "") -> None:
        """Print one line as it is, however long: it may be meant for copying."""
        self.terminal.print(Text(line, style=style), soft_wrap=True)

    def _wrapped(self, words: Words, indent: str = "") -> None:
        """Print words on as many lines as they need, those after the first one indented."""
        line = Text.assemble(*words)
        width = self.terminal.width
        first, *_ = line.wrap(self.terminal, width) or [line]
        rest = line[len(first.plain) :]
        first.rstrip()
        self.terminal.print(first, soft_wrap=True)
        if not rest.plain.strip():
            return
        for more in Text(rest.plain.lstrip(), style=words[-1][1]).wrap(self.terminal, width - len(indent)):
            more.rstrip()
            self.terminal.print(Text.assemble(indent, more), soft_wrap=True)


def progress_line(progress: Progress) -> str:
    """How far a search is, in one line.  Only searching judges cases, so later stages have no rate."""
    rate = ""
    if progress.stage == "searching" and progress.seconds:
        rate = f"{progress.cases / progress.seconds:,.0f}/s  "
    return (
        f"{progress.stage}  {progress.seconds:.0f} s  {_plural(progress.cases, 'case')}  {rate}"
        f"{_plural(progress.findings, 'finding')}  goals {progress.goals} of {progress.goals_in_all}"
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


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _can_encode(text: str, encoding: str | None) -> bool:
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
