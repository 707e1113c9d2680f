"""Words that several reports say in the same way.  None of them is escaped yet."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..result import Night, Reported
from ..spec import Known


def plural(count: int, word: str) -> str:
    """A count with its word: ``1 case``, ``1,200 cases``."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


SOME = 8
"""Names that a list shows before it says how many more there are."""


def some(names: Sequence[str]) -> str:
    """A list of names; of a long one the beginning, and how many more there are."""
    more = len(names) - SOME
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:SOME])} and {more} more"


def duration(seconds: float) -> str:
    """A time in its two largest units: ``2 h 5 min``, ``3 min 1 s``, ``42 s``."""
    whole = max(round(seconds), 0)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


def tally(night: Night) -> str:
    """How many findings of which kind a job ends with."""
    kinds = [kind(reported) for result in night.results for reported in result.findings]
    counts = [f"{kinds.count(name)} {name}" for name in KINDS if name in kinds]
    fixed = sum(len(result.fixed) for result in night.results)
    counts += [f"{fixed} fixed"] if fixed else []
    return ", ".join(counts) or "nothing found"


KINDS = ("new", "back", "expired", "warning", "flaky", "again", "known")
"""What a finding is to those who read of it, the most pressing first."""


def kind(reported: Reported) -> str:
    """Which of :data:`KINDS` a finding is."""
    if reported.status in ("known", "again"):
        return reported.status
    if reported.finding.flaky:
        return "flaky"
    return reported.status if reported.counts else "warning"


def to_act_on(night: Night, reported: Reported) -> bool:
    """Whether a finding makes a job fail: it is news, or the job was to run again what was kept."""
    still_fails = reported.status == "again" and reported.finding.deviation.verdict == "fail"
    return reported.counts or (night.mode == "replay" and still_fails)


def notes(reported: Reported) -> Iterator[str]:
    """What is known of a finding from elsewhere: its list of known ones, earlier searches, runs before the report."""
    known = reported.known
    if reported.finding.also:
        yield f"shows in other ways too: {', '.join(reported.finding.also)}"
    if known is not None:
        until = "known until" if reported.status == "known" else "no longer excused: was known until"
        yield f"{until} {known.expires}: {known.reason}"
    if reported.status == "back":
        yield "had been fixed and is back"
    if reported.first is not None and reported.last is not None and reported.status != "new":
        yield f"seen since {reported.first}, last {reported.last}"
    if reported.failed < reported.runs:
        yield f"failed in {reported.failed} of {reported.runs} runs"


def gone(known: Known) -> str:
    """That a known deviation did not occur, and what to do."""
    return f"{known.signature} was known ({known.reason}) and did not occur: take it off the list"


def meaning(night: Night) -> str:
    """What the exit code of a job means, in one sentence."""
    found = sum(to_act_on(night, reported) for result in night.results for reported in result.findings)
    meanings = {
        0: "nothing to act on",
        1: f"{plural(found, 'finding')} to act on",
        2: "the job could not do what was asked, as told above",
        4: " and ".join(unproven(night)),
    }
    return f"Exit code {night.exit_code}: {meanings[night.exit_code]}."


def unproven(night: Night) -> Iterator[str]:
    """Why a job without findings that count is no good news."""
    idle = [result.target for result in night.results if not result.cases or not result.goals]
    if idle or not night.results:
        yield f"nothing was judged for {', '.join(idle) or 'any target'}"
    unmet = sum(len(result.unreached) for result in night.results)
    if unmet and night.vacuous and not night.interrupted:
        yield f"{plural(unmet, 'goal')} never reached"
    missed = sum(len(result.gone) for result in night.results)
    if missed:
        yield f"{plural(missed, 'known deviation')} gone, to be taken off the list"


def replay_command(target: str, path: str) -> str:
    """The command that runs a case file against a target again, quoted for a shell."""
    return shlex.join(["streamfuzz", "replay", target, path])


def replay_of(reported: Reported) -> str:
    """The command that runs the case of a finding again; it must have a file."""
    return replay_command(reported.finding.target, str(reported.path))


def place(source: str) -> tuple[str, int]:
    """The path and the line of a ``path:line``; in a GitHub workflow, the path from the top of the repository."""
    path, _, line = source.rpartition(":")
    top, absolute = os.environ.get("GITHUB_WORKSPACE"), Path(path).absolute()
    if top and absolute.is_relative_to(top):
        path = absolute.relative_to(top).as_posix()
    return path, int(line)
