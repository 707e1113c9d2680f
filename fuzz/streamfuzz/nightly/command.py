"""``streamfuzz nightly``: what is asked on the command line becomes a job, its happenings become reports."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from .. import campaign
from ..case import Case
from ..config import Recipe, folder_name
from ..corpus import place
from ..corpus_commands import prune_command
from ..engines import Budget, menu
from ..options import json_option, report_options
from ..report.console import Console
from ..report.json_report import night_json, result_json
from ..report.night_console import NightConsole
from ..report.outputs import subscribers, together
from ..spec import UsageError
from ..stopping import on_signals
from ..trace import Trace
from .guarded import guarded_trace
from .history import History
from .job import Job
from .keeper import Keeper
from .lane import Limits
from .settings import Mode, Settings, settings
from .store import Store
from .tasks import Shard
from .workers import Workers, cluster, local

FINDINGS = Path("streamfuzz-findings")
"""Where mode ``change`` writes what it finds; it only reads the corpus."""


@click.command()
@click.argument("mode", type=click.Choice(get_args(Mode)), default="batch")
@click.option("--target", "targets", multiple=True, help="Search this one [default: all that are configured].")
@click.option("--time", help="How long, like 30m or 8h.")
@click.option("--workers", type=click.IntRange(1), help="How many processes [default: one for each core].")
@click.option("--corpus", help="The corpus: a folder or a URL like s3://bucket/corpus.")
@click.option("--base", type=click.Path(path_type=Path), help="Code before the change, to tell what it had already.")
@click.option("--seed", type=int, help="Search as the job with this seed did.")
@click.option("--scheduler", help="Let the workers of the Dask scheduler at this address do the work.")
@click.option("--shard", help="Do one shard again, as the event log has it, and nothing else.")
@report_options
@json_option
@click.pass_context
def nightly(
    context: click.Context,
    /,
    mode: Mode,
    targets: Sequence[str],
    time: str | None,
    workers: int | None,
    corpus: str | None,
    base: Path | None,
    seed: int | None,
    scheduler: str | None,
    shard: str | None,
    as_json: bool,
    **reports: Any,
) -> int:
    """Search many targets for a long time and report only what is new.

    \b
    batch   search until the time is over; the job for the night
    change  search briefly and fail only for what the base does not have; the job for a pull request
    replay  run the whole corpus again
    prune   keep the smallest set of cases that has every rule, goal and signature
    """  # noqa: D301 - click wants the character itself
    if shard is not None:
        return _again(shard, as_json)
    asked = settings(
        mode,
        targets=targets,
        corpus=corpus,
        time=time,
        workers=workers,
        seed=seed if seed is not None else secrets.randbelow(2**31) if mode == "batch" else 0,
        scheduler=scheduler,
        base=base,
    )
    store = Store(place(asked.corpus)) if mode == "change" else Store.open(asked.corpus)
    if mode == "prune":
        for target in targets or (None,):
            context.invoke(prune_command, place=asked.corpus, target=target, as_json=as_json)
        return 0
    history = History(store.nights())
    stream = sys.stderr if as_json else sys.stdout
    console = NightConsole(stream)
    traces = partial(_trace, {subject.name: subject.recipe for subject in asked.subjects}, _limits(asked))
    files = subscribers(**reports, stream=stream, past=tuple(history.trends()), trace_of=traces)
    tell = together([console, *files])
    keeper = Keeper(store, FINDINGS if mode == "change" else None)
    try:
        with on_signals() as stop, _workers(asked) as hands:
            night = Job(asked, keeper, history, hands, tell, stop).run()
    finally:
        console.close()
        if keeper.unsaved:
            click.echo("streamfuzz: nothing could be written; the case files are:", err=True)
            click.echo(keeper.last_words(), err=True)
    if as_json:
        click.echo(json.dumps(night_json(night)))
    return night.exit_code


def _limits(asked: Settings) -> Limits:
    return Limits(asked.memory, asked.patience)


def _workers(asked: Settings) -> AbstractContextManager[Workers]:
    return (
        cluster(asked.scheduler, _limits(asked))
        if asked.scheduler is not None
        else local(asked.workers, _limits(asked))
    )


def _trace(recipes: Mapping[str, Recipe], limits: Limits, name: str, case: Case) -> Trace | None:
    """What a target does with a case, for a report to show."""
    return guarded_trace(recipes[name], case, limits=limits) if name in recipes else None


def _again(text: str, as_json: bool) -> int:
    """Do one shard again, in this process."""
    try:
        shard = msgspec.json.decode(text, type=Shard)
    except msgspec.DecodeError as error:
        raise UsageError(f"--shard takes the 'shard' of a line of the event log: {error}") from None
    target = shard.field.recipe.target(shard.field.provider)
    budget = Budget(None, shard.cases, shard.seed, family=shard.field.family or None, cost=shard.cost)
    console = Console(sys.stderr if as_json else sys.stdout)
    engine = menu.engine(shard.field.engine, shard.field.recipe)
    place = FINDINGS / folder_name(shard.field.recipe.spec)
    result = campaign.run(target, budget, folder=place, tell=console, engine=engine, name=shard.field.engine)
    if as_json:
        console.close()
        click.echo(json.dumps(result_json(result)))
    else:
        spec = shard.field.recipe.spec
        console.finish(result, replay=lambda reported: f"streamfuzz replay {spec} {reported.path}")
    return result.exit_code
