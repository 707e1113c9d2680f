"""``streamfuzz coverage``: search with libFuzzer, and what there is to do with its inputs and artifacts."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from streamfuzz_strategies import providers

from . import campaign, config, corpus
from .bench import Bench
from .case import CaseFile
from .deviation import Deviation
from .engines import Budget, artifacts, fuzz_input
from .engines.coverage import Setup, coverage, folder_of
from .explain import explain
from .legible import printable
from .nightly.guarded import LaneBench
from .nightly.lane import Limits, lane
from .nightly.settings import seconds as seconds_of
from .report.console import Console
from .report.json_report import result_json
from .shrink import shrink
from .spec import UsageError

FINDINGS = Path("streamfuzz-findings")
"""Where case files go unless the user says otherwise: in a folder for each target below this one."""

SHRINKING = 10.0
"""Seconds for the shrinking of what an artifact shows."""


@click.group("coverage")
def coverage_group() -> None:
    """Search behind branches that drawing alone does not reach, with libFuzzer (extra: atheris)."""


def _options(command: Any) -> Any:
    for option in (
        click.option("--provider", type=click.Choice(providers.NAMES), help="Whose streams the target reads."),
        click.option("--package", "packages", multiple=True, help="Watch this package [default: the target's]."),
        click.option("--inputs", type=click.Path(path_type=Path), help="The folder of inputs that reach new code."),
    ):
        command = option(command)
    return command


_corpus_option = click.option("--corpus", "folder", type=click.Path(path_type=Path), help="Write case files here.")


def _setup(
    spec: str, provider: str | None, packages: Sequence[str], inputs: Path | None, jobs: int = 1
) -> tuple[Bench, Setup]:
    recipe, names = config.recipe(spec)
    if provider is None and len(names) > 1:
        raise UsageError(f"{spec} reads several providers, choose one with --provider: {', '.join(names)}")
    target = recipe.target(provider or names[0])
    return Bench(target), Setup(recipe, tuple(packages), folder=inputs or folder_of(target), jobs=jobs)


def _place(bench: Bench, folder: Path | None) -> Path:
    return folder if folder is not None else FINDINGS / config.folder_name(bench.target.name)


@coverage_group.command()
@click.argument("target")
@_options
@click.option("--time", default="1m", show_default=True, help="How long, like 10m or 8h.")
@click.option("--max-cases", type=click.IntRange(1), help="Stop after so many judged cases.")
@click.option("--seed", type=int, help="Begin with the streams of the search with this seed.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="How many processes search.")
@click.option(
    "--begin-with", multiple=True, type=click.Path(path_type=Path), help="Begin with these cases and streams too."
)
@_corpus_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else there.")
def search(
    target: str,
    provider: str | None,
    packages: Sequence[str],
    inputs: Path | None,
    time: str,
    max_cases: int | None,
    seed: int | None,
    jobs: int,
    begin_with: Sequence[Path],
    folder: Path | None,
    as_json: bool,
) -> int:
    """Search TARGET, and keep every input that reaches new code for the next search."""
    bench, setup = _setup(target, provider, packages, inputs, jobs)
    found = bench.target
    files = [file for path in corpus.paths(begin_with) for file in corpus.open_any(path, found.provider)]
    setup = Setup(setup.recipe, setup.packages, tuple(file.case for file in files), setup.folder, jobs)
    budget = Budget(seconds_of(time), max_cases, seed if seed is not None else secrets.randbelow(2**31))
    place = _place(bench, folder)
    console = Console(sys.stderr if as_json else sys.stdout)
    engine = partial(coverage, setup=setup)
    result = campaign.run(found, budget, folder=place, tell=console, engine=engine, name="coverage")
    if as_json:
        console.close()
        click.echo(json.dumps(result_json(result)))
    else:
        again = f"streamfuzz replay {target}"
        console.finish(result, replay=lambda reported: f"{again} {reported.path}")
    return result.exit_code


@coverage_group.command()
@click.argument("target")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path))
@_options
def merge(
    target: str, folders: Sequence[Path], provider: str | None, packages: Sequence[str], inputs: Path | None
) -> int:
    """Keep the fewest inputs that reach all code that TARGET's and those in FOLDERS reach."""
    bench, setup = _setup(target, provider, packages, inputs)
    before, after = artifacts.merge(bench, setup, folders)
    click.echo(f"{before} inputs -> {after}: {setup.folder}")
    return 0


@coverage_group.command()
@click.argument("target")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@_options
@click.option("--minimise", "time", help="Have libFuzzer make inputs that kill the process small, for so long each.")
@_corpus_option
def keep(
    target: str,
    paths: Sequence[Path],
    provider: str | None,
    packages: Sequence[str],
    inputs: Path | None,
    time: str | None,
    folder: Path | None,
) -> int:
    """Make case files of the artifacts that libFuzzer left at PATHS: crash-*, timeout-*, oom-* and the like."""
    bench, setup = _setup(target, provider, packages, inputs)
    assert setup.recipe is not None
    found = [(path, artifacts.read(path)) for path in paths]
    guarded = LaneBench(setup.recipe, bench.target.provider, lane(Limits(memory=2 * 10**9, patience=10.0)))
    place, failed = _place(bench, folder), False
    for path, raw in found:
        case = fuzz_input.to_case(fuzz_input.decode(raw), bench.target)
        deviations = guarded.deviations(case)
        if time is not None and any(deviation.kills for deviation in deviations):
            raw = artifacts.minimise(bench, setup, raw, seconds_of(time))
            case = fuzz_input.to_case(fuzz_input.decode(raw), bench.target)
            deviations = guarded.deviations(case)
        if not deviations:
            why = f"libFuzzer left it as {path.name}; nothing fails on it any more"
            saved = corpus.save(place, CaseFile(case, why, corpus.expectation(case)))
            click.echo(printable(f"{path}: nothing fails on it: {saved}"))
        for deviation in deviations:
            failed = True
            click.echo(printable(f"{path}: {_kept(guarded, case, deviation, path, place)}"))
    return int(failed)


def _kept(bench: Bench, case: Any, deviation: Deviation, path: Path, place: Path) -> str:
    finding = shrink(bench, explain(bench, case, deviation, f"libFuzzer's {path.name}"), SHRINKING)
    return f"{finding.sentence}: {corpus.save(place, corpus.as_file(finding))}"
