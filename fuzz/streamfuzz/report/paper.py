"""Printed paper: lines for people on a terminal or in a log, and how a finding is drawn on them.

Whatever comes from a target is escaped and never read as markup, so that it cannot paint the terminal.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from shutil import get_terminal_size
from typing import TextIO, TypeAlias

from rich.console import Console as Terminal
from rich.text import Text

from .. import ruler
from ..legible import crop, printable
from ..result import Reported
from ..ruler.paint import painted
from .json_report import Verdict, verdict
from .marks import marks
from .words import notes, replay_of

WIDTH = 100
"""Columns where there is no terminal."""

QUOTED = 60
"""The longest value that a sentence quotes in full."""

IN_FULL = 10
"""Findings that are drawn; more would bury the first, so the rest get a sentence and their file."""

Words: TypeAlias = tuple[tuple[str, str], ...]
Replay: TypeAlias = Callable[[Reported], str]
"""The command that runs a finding's case again; asked only for findings that have a file."""

_VERDICTS: dict[Verdict, tuple[str, str]] = {
    "fail": ("FAIL", "bold red"),
    "warn": ("warn", "yellow"),
    "known": ("known", "cyan"),
    "flaky": ("flaky", "magenta"),
}


class Paper:
    """A stream that lines for people are written to.

    Args:
        stream: where to write.
        colour: whether to colour.  ``None``: on a terminal, unless the environment variable ``NO_COLOR`` is set.
    """

    def __init__(self, stream: TextIO, *, colour: bool | None = None) -> None:
        self.redrawn = stream.isatty() and os.environ.get("TERM") != "dumb"
        if colour is None:
            colour = self.redrawn and not os.environ.get("NO_COLOR")
        self.terminal = Terminal(
            file=stream,
            force_terminal=self.redrawn,
            color_system="standard" if colour else None,
            width=None if self.redrawn else get_terminal_size().columns if stream.isatty() else WIDTH,
            markup=False,
            emoji=False,
            highlight=False,
        )
        self.ascii = not _can_encode("\u2503\u2026\u2192\u4f60", stream.encoding)

    def findings(self, findings: Iterable[Reported], replay: Replay) -> None:
        """Print findings by number: the first ones drawn in full, the rest in short."""
        for number, reported in enumerate(findings, 1):
            if number <= IN_FULL:
                self.line("")
                self.finding(number, reported, replay)
            else:
                if number == IN_FULL + 1:
                    self.line("")
                    self.line("And, in short (`streamfuzz show FILE` draws one):")
                self.in_short(number, reported)

    def finding(self, number: int | None, reported: Reported, replay: Replay) -> None:
        """Print a finding with what should have been, its bytes, its file and how to run it again."""
        finding = reported.finding
        indent = self._sentence(number, reported, "bold")
        times = "once" if finding.count == 1 else f"{finding.count:,} times"
        by = "" if reported.engine == "sweep" else f" by {reported.engine}"
        self.wrapped(((f"{indent}{self.safe(f'{finding.signature}, met {times}{by}')}", "dim"),), indent)
        for note in notes(reported):
            self.wrapped(((indent + self.safe(note), "cyan"),), indent)
        for line in self._values(finding.deviation.expected, finding.deviation.got):
            self.line(f"{indent}  {line}")
        self.line("")
        room = self.terminal.width - len(indent) - 2
        for drawn in ruler.lay(finding.case, width=room, marks=marks(finding), ascii=self.ascii):
            self.terminal.print(Text.assemble(f"{indent}  ", painted(drawn)), soft_wrap=True)
        if reported.path is not None:
            self.line("")
            self.line(f"{indent}file    {self.safe(reported.path)}")
            self.line(f"{indent}replay  {self.safe(replay(reported))}")

    def in_short(self, number: int, reported: Reported) -> None:
        """Print a finding as its sentence, what else is known of it, and its file."""
        indent = self._sentence(number, reported)
        for note in notes(reported):
            self.wrapped(((indent + self.safe(note), "dim"),), indent)
        if reported.path is not None:
            self.line(f"{indent}{self.safe(reported.path)}", "dim")

    def _sentence(self, number: int | None, reported: Reported, style: str = "") -> str:
        """Print what goes wrong, and return the indent of what belongs to it."""
        word, colour = _VERDICTS[verdict(reported)]
        label = f"{number}. " if number is not None else ""
        indent = " " * len(label)
        sentence = self.safe(reported.finding.sentence)
        self.wrapped(((label, ""), (word, colour), (f"  {sentence}", style)), indent)
        return indent

    def _values(self, expected: object, got: object) -> Iterator[str]:
        """What should have been given and what was, where the sentence has no room for it."""
        if expected is None or got is None or max(len(repr(expected)), len(repr(got))) <= QUOTED:
            return
        texts = [value if isinstance(value, str) else _json(value) for value in (expected, got)]
        dots = self.gap.strip()
        room = self.terminal.width - 20
        shown = room - 2 * len(dots)
        shorter = min(map(len, texts))
        same = next((n for n in range(shorter) if texts[0][n] != texts[1][n]), shorter)
        start = same - shown // 3 if same > shown // 2 else 0
        for name, text in zip(("should be", "is"), texts, strict=True):
            part = (dots if start else "") + self.safe(text[start : start + shown])
            yield f"{name:<9}  {crop(part + (dots if len(text) > start + shown else ''), room, self.gap)}"

    def fact(self, name: str, text: str, style: str = "") -> None:
        """Print a word and what there is to say about it."""
        self.wrapped(((f"{name:<9} ", style), (self.safe(text), style)), " " * 10)

    @property
    def gap(self) -> str:
        """What stands for what is left out."""
        return " ... " if self.ascii else " \u2026 "

    def safe(self, text: str) -> str:
        """Text with everything escaped that could paint the terminal or that the stream cannot encode."""
        return printable(text, plain=self.ascii)

    def line(self, line: str, style: str = "") -> None:
        """Print one line as it is, however long: it may be meant for copying."""
        self.terminal.print(Text(line, style=style), soft_wrap=True)

    def wrapped(self, words: Words, indent: str = "") -> None:
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


def as_text(reported: Reported) -> str:
    """A finding as the console draws it, in plain lines without control characters."""
    stream = io.StringIO()
    Paper(stream, colour=False).finding(None, reported, replay_of)
    return stream.getvalue()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _can_encode(text: str, encoding: str | None) -> bool:
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
