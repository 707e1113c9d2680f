"""What a nightly job is to do, as values: from the configuration, and from the command line, which wins."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from .. import config
from ..config import Recipe
from ..engines import menu
from ..engines.examples import EXAMPLES
from ..spec import Target, UsageError

Mode: TypeAlias = Literal["batch", "change", "replay", "prune"]

_TIMES = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}


def seconds(text: str) -> float:
    """Read a time like ``30s``, ``5m``, ``2h``; a bare number is seconds.

    Raises:
        UsageError: it is none, or it is 0.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])?", text.strip())
    if match is None or not float(match[1]):
        raise UsageError(f"{text!r} is no time: write one like 30s, 5m or 2h")
    return float(match[1]) * _TIMES[match[2] or "s"]


def size(text: str) -> int:
    """Read a size like ``500MB`` or ``2GiB``, in bytes.

    Raises:
        UsageError: it is none, or it is too small for a Python process.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(MB|GB|MiB|GiB)", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is no size: write one like 500MB or 2GiB")
    found = int(float(match[1]) * _SIZES[match[2]])
    if found < SMALLEST:
        raise UsageError(f"memory {text!r} is too little for a worker: give it at least 300MB")
    return found


SMALLEST = 300 * 10**6
"""Bytes below which a worker cannot even import what it needs."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A target with the provider whose streams it is searched with.

    Attributes:
        name: what reports call it; of a target that reads several providers, with the provider.
        folder: the name of its folder in the corpus.
        recipe: how a worker makes it.
        target: itself, in this process, where it is never run.
        corpora: further folders of kept cases, which are only read.
    """

    name: str
    folder: str
    recipe: Recipe
    target: Target
    corpora: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """A job.

    Attributes:
        mode: what to do.
        subjects: what to search.
        corpus: where the corpus is: a folder or a URL.
        seconds: how long.
        workers: how many processes.
        memory: bytes that a worker may use.
        patience: seconds after which a run that cannot be cut off costs its worker.
        examples: Hypothesis' example database: the whole path of a folder or a ``redis://`` URL.
        engines: the ways to search.
        seed: of all seeds of the job.
        scheduler: address of a Dask scheduler, whose workers do the work.
        base: a checkout of the code before the change, for mode ``change``.
    """

    mode: Mode
    subjects: tuple[Subject, ...]
    corpus: str
    seconds: float
    workers: int
    memory: int
    patience: float
    examples: str | None
    engines: tuple[str, ...]
    seed: int
    scheduler: str | None = None
    base: Path | None = None


def settings(
    mode: Mode,
    *,
    targets: Sequence[str] = (),
    corpus: str | None = None,
    time: str | None = None,
    workers: int | None = None,
    seed: int,
    scheduler: str | None = None,
    base: Path | None = None,
    start: Path | None = None,
) -> Settings:
    """Put a job together; what is given wins over the configuration.

    Raises:
        UsageError: the configuration has a mistake, or there is nothing to search; the message says what to do.
    """
    folder = start or Path.cwd()
    path = config.find(folder)
    told = config.nightly(path)
    names = tuple(targets) or tuple(told.targets) or tuple(config.configured(folder))
    if not names:
        raise UsageError(
            "no targets: describe one in [tool.streamfuzz.targets.NAME], as `streamfuzz init` does, "
            "or name some with --target"
        )
    count = workers if workers is not None else told.workers if told.workers is not None else os.cpu_count() or 1
    if count < 1:
        raise UsageError(f"workers must be at least 1, not {count}")
    if base is not None and not base.is_dir():
        raise UsageError(f"no such folder: {base}; --base is a checkout of the code before the change")
    subjects = tuple(subject for name in names for subject in _subjects(name, folder))
    shared = [name for name, times in Counter(subject.name for subject in subjects).items() if times > 1]
    if shared:
        raise UsageError(f"more than one target is named {shared[0]}: give each a name of its own in the configuration")
    return Settings(
        mode=mode,
        subjects=subjects,
        corpus=corpus or told.corpus,
        seconds=seconds(time or (told.change if mode == "change" else told.time)),
        workers=count,
        memory=size(told.memory),
        patience=seconds(told.patience),
        examples=_examples(told.examples, corpus or told.corpus, scheduler or told.scheduler),
        engines=_engines(told.engines),
        seed=told.seed if told.seed is not None else seed,
        scheduler=scheduler or told.scheduler,
        base=base,
    )


def _examples(place: str | None, corpus: str, scheduler: str | None) -> str | None:
    """Where the example database is: where it is told, else beside the corpus if that is a folder.

    A folder is given with its whole path, since the processes that use it stand elsewhere; on the machines of a
    cluster there may be no such folder, so there is none that was not asked for.
    """
    if place is None and scheduler is not None:
        return None
    chosen = place or (EXAMPLES if "://" in corpus else f"{corpus}/.examples")
    return chosen if "://" in chosen else str(Path(chosen).absolute())


def _engines(names: Sequence[str]) -> tuple[str, ...]:
    unknown = next((name for name in names if name not in menu.NAMES), None)
    if unknown is not None:
        raise UsageError(f"no engine {unknown!r}; known: {', '.join(menu.NAMES)}")
    if "coverage" in names:
        from ..engines.coverage import require_atheris

        require_atheris()
    return tuple(names) or menu.installed()


def _subjects(name: str, folder: Path) -> list[Subject]:
    recipe, providers = config.recipe(name, start=folder)
    corpora = config.corpora(name, folder)
    return [
        Subject(made.name, config.folder_name(name), recipe, made, corpora)
        for provider in providers
        for made in (recipe.target(provider),)
    ]
