"""What a job found for GitHub Actions: annotations on the lines of a change, and a summary of the job.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands

The runner takes any line of output for a command that begins with ``::`` behind spaces.  What a target is fed or
gives out may begin so, and the console shows it; so commands are stopped while the job runs, until a word that no
target can know.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from ..grouping import rank
from ..happenings import Began, Ended, Happening
from ..legible import printable
from ..result import Night, Reported, Result
from .files import unwritable
from .night_console import goals_reached
from .paper import as_text
from .words import duration, gone, kind, meaning, notes, place, plural, some, tally, to_act_on

SHOWN = 10
"""Annotations of each level that GitHub shows of one step; it drops the rest."""

ROOM = 1024 * 1024
"""Bytes that the summary of a step may have; GitHub drops one that is larger."""

_MEANING = re.compile(r"[^\w ,()'/?=;\x80-\U0010ffff]|_")
"""What may mean something in Markdown or HTML, also as a part of a bare address or a name."""

_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


class GitHub:
    """Prints annotations and writes the job summary when a job has ended.

    Subscribe it behind everything that prints to the same stream: commands are in force again when it has ended.

    Args:
        stream: where the runner reads commands.

    Raises:
        UsageError: the file that ``GITHUB_STEP_SUMMARY`` names cannot be written.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.token = secrets.token_hex(16)
        name = os.environ.get("GITHUB_STEP_SUMMARY")
        self.summary = Path(name) if name else None
        self._append("")

    def __call__(self, happening: Happening) -> None:
        """Stop commands when a job begins; tell everything when it has ended.

        Raises:
            UsageError: the summary cannot be written.
        """
        if isinstance(happening, Began):
            self._print(f"::stop-commands::{self.token}")
        elif isinstance(happening, Ended):
            self._print(f"::{self.token}::")
            for command in commands(happening.night):
                self._print(command)
            if self.summary is not None:
                taken = self.summary.stat().st_size if self.summary.exists() else 0
                self._append(markdown(happening.night, ROOM - taken))

    def _print(self, line: str) -> None:
        self.stream.write(f"{line}\n")
        self.stream.flush()

    def _append(self, text: str) -> None:
        if self.summary is None:
            return
        try:
            with self.summary.open("a", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise unwritable(self.summary, error) from None


# -- annotations ----------------------------------------------------------------------------------------------------


def commands(night: Night) -> Iterator[str]:
    """Workflow commands: an error for each finding that counts, a warning for one that is flaky or only warns."""
    if night.exit_code not in (0, 1):
        yield _command("error", meaning(night), title="streamfuzz")
    for level in ("error", "warning"):
        told = [(result, reported) for result, reported in _ranked(night) if _level(night, reported) == level]
        for result, reported in told[:SHOWN]:
            finding = reported.finding
            path, line = place(result.source) if result.source is not None else ("", 0)
            text = "\n".join(map(printable, [finding.sentence, *notes(reported), reported.path or ""])).rstrip()
            title = f"{result.target}: {finding.deviation.oracle}"
            yield _command(level, text, file=path, line=str(line or ""), title=title)


def _level(night: Night, reported: Reported) -> str:
    """The level of the annotation of a finding; none for what is no news."""
    if kind(reported) in ("warning", "flaky"):
        return "warning"
    return "error" if to_act_on(night, reported) else ""


def _ranked(night: Night) -> list[tuple[Result, Reported]]:
    found = [(result, reported) for result in night.results for reported in result.findings]
    return sorted(found, key=lambda pair: rank(pair[1]))


def _command(name: str, text: str, **properties: str) -> str:
    told = ",".join(f"{key}={_escaped(printable(value), _PROPERTY)}" for key, value in properties.items() if value)
    return f"::{name} {told}::{_escaped(text, _DATA)}"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)


# -- the summary ----------------------------------------------------------------------------------------------------


def markdown(night: Night, room: int = ROOM) -> str:
    """A job as a summary of at most so many bytes; what has no room is left out at the end, and that is said.

    Args:
        night: the job.
        room: bytes that the summary may have.
    """
    last = "The rest had no room here; the other reports have it.\n"
    left = room - len(last)
    text = ""
    for block in _blocks(night):
        left -= len(block.encode()) + 2
        if left < 0:
            return text + last if room >= len(last) else ""
        text += f"{block}\n\n"
    return text


def _blocks(night: Night) -> Iterator[str]:
    yield f"## streamfuzz {_plain(night.mode)}: {_plain(tally(night))}"
    yield _plain(f"{meaning(night)} {duration(night.seconds)} on {plural(night.workers, 'worker')}.")
    yield "\n".join(_table(night))
    yield from _listed("", list(_facts(night)))
    found = [reported for _, reported in _ranked(night)]
    for number, reported in enumerate((each for each in found if to_act_on(night, each)), 1):
        yield _drawn(number, reported)
    rest = [
        f"{kind(each)}: {'; '.join([each.finding.sentence, *notes(each)])}"
        for each in found
        if not to_act_on(night, each)
    ]
    yield from _listed("Other findings", rest)
    yield from _listed("Fixed", [f"{fixed.sentence} ({fixed.path})" for r in night.results for fixed in r.fixed])


def _table(night: Night) -> Iterator[str]:
    yield "| target | cases | cases/s | findings | to act on | goals |"
    yield "|---|--:|--:|--:|--:|--:|"
    for result in night.results:
        reached, in_all = goals_reached(result)
        rate = f"{result.cases / result.seconds:,.0f}" if result.seconds else ""
        acted = sum(to_act_on(night, reported) for reported in result.findings)
        cells = (f"{result.cases:,}", rate, f"{len(result.findings):,}", f"{acted:,}", f"{reached}/{in_all}")
        yield f"| {_plain(result.target)} | {' | '.join(cells)} |"


def _facts(night: Night) -> Iterator[str]:
    for result in night.results:
        if result.unreached:
            yield f"{result.target}: never reached: {some(result.unreached)}"
        for known in result.gone:
            yield f"{result.target}: {gone(known)}"
    if night.lost:
        yield f"{plural(night.lost, 'worker')} died or had to be killed"
    yield from night.troubles


def _listed(title: str, items: Sequence[str]) -> Iterator[str]:
    """A list, an item a block, so that one that has no room takes only itself and those after it along."""
    if items and title:
        yield f"### {title}"
    for item in items:
        yield f"- {_plain(item)}"


def _drawn(number: int, reported: Reported) -> str:
    text = as_text(reported)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    shown = " open" if number == 1 else ""
    head = f"<summary>{number}. <b>{kind(reported)}</b> {_plain(reported.finding.sentence)}</summary>"
    return f"<details{shown}>{head}\n\n{fence}text\n{text}{fence}\n\n</details>"


def _plain(text: str) -> str:
    """Text that means nothing but itself in Markdown and HTML: whatever could mean more is a character reference."""
    return _MEANING.sub(lambda found: f"&#{ord(found[0])};", printable(text))
