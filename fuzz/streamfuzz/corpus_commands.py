"""``streamfuzz corpus``: look into a corpus, add to it, merge two, and take out what is not needed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import config, corpus
from .bench import Bench
from .case import CaseFile
from .explain import explain
from .legible import printable
from .nightly import prune
from .nightly.store import Store, merge
from .report.words import plural
from .spec import UsageError

UNWRAPPED = 1000
"""Columns for tables where there is no terminal: more than any row has."""

_place_option = click.option("--corpus", "place", help="The corpus, a folder or a URL [default: the nightly job's].")
_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


@click.group("corpus")
def corpus_group() -> None:
    """List, add, merge and prune kept cases.

    A corpus is a folder or a URL like s3://bucket/corpus, with a folder of case files for each target.
    """


def _opened(place: str | None, *, write: bool = False) -> Store:
    root = corpus.place(place or _configured())
    if isinstance(root, Path) and not root.is_dir():
        raise UsageError(f"no corpus at {root}: `streamfuzz nightly` and `streamfuzz corpus add` make one")
    return Store.open(root, write=write)


def _configured() -> str:
    return config.nightly(config.find(Path.cwd())).corpus


def _tell_skipped(store: Store) -> None:
    for reason in store.skipped:
        click.echo(printable(reason), err=True)


@corpus_group.command("list")
@click.argument("place", required=False)
@_json_option
def list_command(place: str | None, as_json: bool) -> None:
    """List the cases of the corpus at PLACE."""
    store = _opened(place)
    rows = [
        {
            "target": target,
            "file": path,
            "provider": file.case.provider,
            "size": file.case.size,
            "signature": file.found.signature if file.found is not None else None,
            "why": file.why,
        }
        for target in store.targets()
        for path, file in store.cases(target)
    ]
    if as_json:
        click.echo(json.dumps({"cases": rows, "skipped": store.skipped}))
        return
    table = Table("target", "file", "size", "signature", "why", box=None, pad_edge=False)
    for row in rows:
        name = str(row["file"]).replace("\\", "/").rpartition("/")[2]
        cells = (row["target"], name, row["size"], row["signature"] or "", row["why"])
        table.add_row(*(escape(printable(str(cell))) for cell in cells))
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else UNWRAPPED)
    console.print(table, highlight=False)
    _tell_skipped(store)


@corpus_group.command()
@click.argument("target")
@click.argument("files", nargs=-1, required=True)
@click.option("--provider", help="Whose streams those files are that are no case files but recorded streams.")
@_place_option
def add(target: str, files: Sequence[str], provider: str | None, place: str | None) -> None:
    """Add case files, all in a folder, or recorded streams (with --provider) to the cases of TARGET."""
    cases: list[tuple[corpus.Place, CaseFile]] = []
    for name in files:
        paths = list(corpus.paths([corpus.place(name)]))
        if not paths:
            raise UsageError(f"no case files in {name}")
        cases += [(path, file) for path in paths for file in corpus.open_any(path, provider)]
    for path, file in cases:  # all are looked at before the first is added
        config.for_case(target, file.case, Path(str(path)), provider=provider)
    store = Store.open(place or _configured())
    for _, file in cases:
        expected = file if file.expect is not None else replace(file, expect=corpus.expectation(file.case))
        click.echo(printable(store.save(target, expected)))


@corpus_group.command("merge")
@click.argument("sources", nargs=-1, required=True)
@click.argument("destination")
def merge_command(sources: Sequence[str], destination: str) -> None:
    """Copy what DESTINATION lacks from other corpora; what both have stays as it is there."""
    opened = [_opened(source) for source in sources]
    into = Store.open(destination)
    for source in opened:
        done = merge(source, into)
        click.echo(
            f"{printable(str(source.root))}: {plural(done.cases, 'case')} and {plural(done.nights, 'record')} copied, "
            f"{plural(done.present, 'case')} already there"
        )
        _tell_skipped(source)


@corpus_group.command("prune")
@click.argument("place", required=False)
@click.option("--target", help="Prune only this target's cases, and run them to see what fails today.")
@click.option("--dry-run", is_flag=True, help="Only tell what would be deleted.")
@_json_option
def prune_command(place: str | None, target: str | None, dry_run: bool, as_json: bool) -> None:
    """Delete from the corpus at PLACE the cases that show nothing but what others show as well.

    What is kept has every signature, broken rule, place of a cut, end and probe that all cases have together.
    """
    store = _opened(place, write=not dry_run)
    names = [config.folder_name(target)] if target is not None else store.targets()
    plans = {}
    for name in names:
        cases = list(store.cases(name))
        if target is not None and not cases:
            raise UsageError(f"no cases of target {target} in {store.root}")
        plans[name] = prune.plan(cases, failing(target, cases) if target is not None else lambda file: ())
        if not dry_run:
            for dropped in plans[name].drop:
                store.remove(name, dropped.name)
    if as_json:
        told = {name: asdict(plan) for name, plan in plans.items()}
        click.echo(json.dumps({"dry_run": dry_run, "targets": told, "skipped": store.skipped}))
        return
    verb = "would delete" if dry_run else "deleted"
    for name, plan in plans.items():
        for dropped in plan.drop:
            click.echo(printable(f"{verb} {dropped.name}: covered by {', '.join(dropped.covered_by)}"))
        click.echo(printable(f"{name}: kept {plural(len(plan.keep), 'case')}, {verb} {len(plan.drop)}"))
    _tell_skipped(store)


def failing(target: str, cases: Iterable[tuple[str, CaseFile]]) -> Callable[[CaseFile], Iterable[str]]:
    """A function that runs a case and gives the signatures of what fails.

    Raises:
        UsageError: the target reads something else than one of the cases.
    """
    made = {
        (file.case.provider, file.case.takes): config.for_case(target, file.case, Path(path)) for path, file in cases
    }

    def fails(file: CaseFile) -> list[str]:
        with Bench(made[file.case.provider, file.case.takes]) as bench:
            return [explain(bench, file.case, deviation).signature for deviation in bench.deviations(file.case)]

    return fails
