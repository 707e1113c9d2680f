"""Kept cases that are known to take their process down, run again where that costs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from .. import config
from ..bench import ALL_ORACLES
from ..case import CaseFile
from ..replay import Replayed, replay
from ..spec import Target
from .guarded import guarded_rerun
from .lane import Limits, close_all

DEADLY = ("bounded.crashed", "bounded.hung", "bounded.memory")
"""How the signatures of findings begin that may end the process of their target, or never return."""

LIMITS = Limits(memory=2 * 10**9)


def replay_safely(
    spec: str, target: Target, files: Iterable[tuple[Path, CaseFile]], oracles: tuple[str, ...] = ALL_ORACLES
) -> Iterator[Replayed]:
    """Run case files against a target, in order; those that were found by a death in a process of their own.

    Args:
        spec: what the user wrote for the target, so that another process can make it.
        target: the same, made.
        files: the cases.
        oracles: which invariants to hold it against; a death is always told.

    Raises:
        UsageError: the target cannot be made in another process.
    """
    for deadly, group in groupby(files, key=lambda one: _is_deadly(one[1])):
        if not deadly:
            yield from replay(target, group, oracles)
            continue
        kept = {str(path): file for path, file in group}
        try:
            reruns, _ = guarded_rerun(config.recipe(spec)[0], tuple(kept.items()), limits=LIMITS)
        finally:
            close_all()
        for done in reruns:
            yield Replayed(done.name, kept[done.name], done.status, done.findings, done.judge_differs)


def _is_deadly(file: CaseFile) -> bool:
    return file.found is not None and file.found.signature.startswith(DEADLY)
