"""The command line.

Exit codes: 0 nothing found, 1 findings, 2 usage or configuration, 3 internal error, 4 nothing was judged or a
known deviation is gone.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console as RichConsole
from rich.markup import escape
from rich.table import Table

from streamfuzz_strategies import dialects as spoken
from streamfuzz_strategies import providers
from streamfuzz_strategies.judge import GENERIC_RULES

from . import campaign, config, corpus, ruler, targets
from .bench import ALL_ORACLES, Bench
from .case import Case, CaseError, CaseFile
from .corpus_commands import corpus_group
from .coverage_command import coverage_group
from .detect import detectability, summary
from .engines import Budget, menu
from .engines.examples import EXAMPLES
from .explain import explain
from .happenings import Began, Ended
from .init_command import init
from .nightly.command import nightly
from .nightly.safely import replay_safely
from .options import duration, json_option, report_options, target_options
from .oracles import ORACLES
from .probes import ORACLES as PROBES
from .replay import Replayed
from .report.console import Console
from .report.json_report import replay_json, result_json
from .report.outputs import subscribers, together
from .result import Night
from .show_command import show
from .shrink import shrink
from .spec import Target, UsageError
from .trace import Trace

DEFAULT_FOLDER = Path("streamfuzz-findings")
"""Where ``run`` writes case files when it is not told: in a folder for each target below this one."""

HELP = ["-h", "--help"]
UNWRAPPED = 1000
"""Columns for tables where there is no terminal: more than any row has."""


class _Commands(click.Group):
    """The commands in the order in which a newcomer needs them; errors become exit codes here."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        # Click makes a command's help option once, by the first context that it is called in, which may be its own.
        cmd.context_settings.setdefault("help_option_names", HELP)
        super().add_command(cmd, name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["standalone_mode"] = False
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # no encoding is too small to tell a finding in
        try:
            code = super().main(*args, **kwargs)
        except UsageError as error:
            click.echo(f"streamfuzz: {error}", err=True)
            code = 2
        except click.exceptions.Abort:
            click.echo("streamfuzz: stopped", err=True)
            code = 2
        except click.ClickException as error:
            error.show()
            code = 2
        except Exception:  # noqa: BLE001 - the last resort: say that it is our fault
            traceback.print_exc()
            click.echo("streamfuzz: internal error; please report it with the lines above", err=True)
            code = 3
        sys.exit(code or 0)


@click.group(cls=_Commands, context_settings={"help_option_names": HELP, "max_content_width": 100})
@click.version_option(package_name="streamfuzz")
def main() -> None:
    """Find the bugs in code that reads LLM streams.

    TARGET is module:attribute, a ready target (see `streamfuzz targets`), or a name from [tool.streamfuzz].
    """


@main.command()
@click.argument("target", required=False)
@target_options
@click.option("--time", "seconds", callback=duration, help="Stop after this long, like 30s or 5m [default: 20s].")
@click.option("--max-cases", type=click.IntRange(1), help="Stop after so many judged cases.")
@click.option("--seed", type=int, help="Draw by this seed alone, and begin with nothing that earlier runs kept.")
@click.option("--oracle", "oracles", multiple=True, type=click.Choice(ALL_ORACLES), help="Hold only these invariants.")
@click.option(
    "--corpus",
    "folder",
    help=f"Write a case file of each finding here [default: {DEFAULT_FOLDER}/<name of the target>].",
)
@click.option(
    "--dialect", "dialects", multiple=True, help="What the target also reads (see `streamfuzz rules --dialects`)."
)
@click.option("--engine", "engine_name", type=click.Choice(menu.NAMES), default="sweep", show_default=True)
@report_options
@json_option
def run(
    target: str | None,
    provider: str | None,
    takes: str | None,
    gives: str | None,
    seconds: float | None,
    max_cases: int | None,
    seed: int | None,
    oracles: Sequence[str],
    folder: str | None,
    dialects: Sequence[str],
    engine_name: str,
    as_json: bool,
    **reports: Any,
) -> int:
    """Fuzz TARGET (without one: the bundled demo parser)."""
    budget = Budget(
        seconds=seconds if seconds is not None else None if max_cases is not None else 20.0,
        cases=max_cases,
        seed=seed if seed is not None else secrets.randbelow(2**31),
        database=EXAMPLES if seed is None else None,
    )
    stream = sys.stderr if as_json else sys.stdout
    console = Console(stream)
    with _stdout_is_ours(as_json):
        found = config.resolve(
            target or "demo", provider=provider, takes=takes, gives=gives, dialects=tuple(dialects) or None
        )
        tell = together([console, *subscribers(**reports, stream=stream, trace_of=partial(_trace, found))])
        recipe, _ = config.recipe(target or "demo", provider=provider, takes=takes, gives=gives)
        engine = menu.engine(engine_name, recipe)
        place = corpus.place(folder) if folder is not None else DEFAULT_FOLDER / config.folder_name(found.name)
        started = datetime.now(UTC)
        tell(Began("run", started, [found.name], budget.seconds))
        result = campaign.run(
            found, budget, oracles=oracles or ALL_ORACLES, folder=place, tell=tell, engine=engine, name=engine_name
        )
        console.close()
        if not as_json:
            again = " ".join(["streamfuzz replay", target or "demo", *(["--gives", gives] if gives else [])])
            console.finish(result, replay=lambda reported: f"{again} {reported.path}")
        tell(Ended(Night("run", started, result.seconds, [result])))
    if as_json:
        click.echo(json.dumps(result_json(result)))
    return result.exit_code


def _trace(target: Target, name: str, case: Case) -> Trace | None:
    """What the target does with a case, for a report to show."""
    if case.probe:
        return None
    with Bench(target) as bench:
        return bench.run(case).trace


@contextmanager
def _stdout_is_ours(as_json: bool) -> Iterator[None]:
    """For ``--json``: what the target prints goes to stderr, also from C and from processes that it starts."""
    if not as_json:
        yield
        return
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))
        with suppress(OSError):  # one of the two is closed, so nothing can get into the other
            kept = os.dup(1)
            stack.callback(os.close, kept)
            os.dup2(2, 1)
            stack.callback(os.dup2, kept, 1)
        if sys.__stdout__ is not None:
            stack.callback(sys.__stdout__.flush)
        yield


@main.command("replay")
@click.argument("target")
@click.argument("places", nargs=-1, required=True, type=click.Path(path_type=Path))
@target_options
@click.option("--oracle", "oracles", multiple=True, type=click.Choice(ALL_ORACLES), help="Hold only these invariants.")
@json_option
def replay_command(
    target: str,
    places: Sequence[Path],
    provider: str | None,
    takes: str | None,
    gives: str | None,
    oracles: Sequence[str],
    as_json: bool,
) -> int:
    """Run case files, all in a folder, or recorded streams (with --provider) against TARGET."""
    files, unreadable = _open_all(places, provider)
    done: list[Replayed] = []
    with _stdout_is_ours(as_json):
        for group in _by_form(files):
            path, file = group[0]
            found = config.for_case(target, file.case, path, provider=provider, takes=takes, gives=gives)
            done += replay_safely(target, found, group, tuple(oracles) or ALL_ORACLES)
    outcome = replay_json(done, unreadable)
    if as_json:
        click.echo(json.dumps(outcome))
        return int(outcome["exit_code"])
    for replayed in done:
        _print_replayed(replayed)
    for reason in unreadable.values():
        click.echo(f"error {ruler.printable(reason)}")
    failed = sum(replayed.status in ("fail", "flaky") for replayed in done)
    click.echo(f"{len(done)} cases: {len(done) - failed} pass, {failed} fail, {len(unreadable)} not readable")
    return int(outcome["exit_code"])


def _open_all(places: Sequence[Path], provider: str | None) -> tuple[list[tuple[Path, CaseFile]], dict[Path, str]]:
    """All case files, and why those that cannot be read cannot be."""
    files: list[tuple[Path, CaseFile]] = []
    unreadable = {}
    for path in _paths(places):
        try:
            files += [(path, file) for file in corpus.open_any(path, provider)]
        except CaseError as error:
            unreadable[path] = str(error)
    return files, unreadable


def _paths(places: Sequence[Path]) -> list[Path]:
    found = list(corpus.paths(places))
    if not found:
        raise UsageError(f"no case files in {', '.join(map(str, places))}; `streamfuzz run` writes some")
    return found


def _by_form(files: Sequence[tuple[Path, CaseFile]]) -> list[list[tuple[Path, CaseFile]]]:
    groups: dict[tuple[str, str], list[tuple[Path, CaseFile]]] = {}
    for path, file in files:
        groups.setdefault((file.case.provider, file.case.takes), []).append((path, file))
    return list(groups.values())


def _print_replayed(replayed: Replayed) -> None:
    click.echo(f"{replayed.status:<5} {replayed.path}")
    for finding in replayed.findings:
        click.echo(f"      {ruler.printable(finding.sentence)}")
    if replayed.judge_differs:
        click.echo(f"      {replayed.judge_differs}")


@main.command("shrink")
@click.argument("target")
@click.argument("places", nargs=-1, required=True, type=click.Path(path_type=Path))
@target_options
@click.option("--time", "seconds", callback=duration, default="10s", show_default=True, help="Time for each failure.")
@click.option("--corpus", "folder", type=click.Path(path_type=Path), help="Write here [default: beside the case].")
def shrink_command(
    target: str,
    places: Sequence[Path],
    provider: str | None,
    takes: str | None,
    gives: str | None,
    seconds: float,
    folder: Path | None,
) -> int:
    """Make failing cases, or recorded streams, small: each failure becomes a case file of its own."""
    failed = False
    cases = [(path, file.case) for path in _paths(places) for file in corpus.open_any(path, provider)]
    for path, case in cases:
        with Bench(config.for_case(target, case, path, provider=provider, takes=takes, gives=gives)) as bench:
            deviations = bench.deviations(case)
            if not deviations:
                click.echo(f"{path}: nothing fails on it")
            for deviation in deviations:
                failed = True
                finding = explain(bench, case, deviation)
                if finding.flaky:
                    click.echo(f"{path}: flaky, so it is not shrunk: {ruler.printable(finding.sentence)}")
                    continue
                small = shrink(bench, replace(finding, how=f"shrunk from {path.name}"), seconds)
                saved = corpus.save(folder or path.parent, corpus.as_file(small))
                click.echo(f"{path}: {case.size} -> {small.case.size}: {saved}")
                click.echo(f"      {ruler.printable(small.sentence)}")
    return int(failed)


main.add_command(show)
main.add_command(nightly)
main.add_command(corpus_group)
main.add_command(coverage_group)
main.add_command(init)


@main.command()
@click.argument("provider", required=False)
@click.option("--damage", is_flag=True, help="Print how visible each damage is, for each provider.")
@click.option("--dialects", is_flag=True, help="Print what compatible servers do differently.")
def rules(provider: str | None, damage: bool, dialects: bool) -> None:
    """List the oracles and the rules of PROVIDER (or of all), each with its level and source."""
    names = providers.NAMES if provider is None else (_known_provider(provider),)
    console = _tables()
    if damage:
        _print_damage(console, names)
        return
    if dialects:
        _print_dialects(console, names)
        return
    table = Table("oracle", "invariant", box=None, pad_edge=False)
    for name, oracle in {**ORACLES, **_fragmentation(), **PROBES}.items():
        table.add_row(name, escape((oracle.__doc__ or "").partition("\n")[0]))
    console.print(table)
    for name in names:
        found = providers.get(name)
        table = Table("rule", "level", "a stream breaks it when", "source", box=None, pad_edge=False)
        for rule in (*GENERIC_RULES, *found.rules):
            table.add_row(escape(rule.id), rule.level, escape(rule.sentence), escape(rule.source))
        console.print(f"\n[bold]{escape(found.title)}[/bold] ({name})")
        console.print(table)


def _tables() -> RichConsole:
    """Where tables are printed: fit to a terminal, else one line for each row, for what reads them there."""
    return RichConsole(width=None if sys.stdout.isatty() else UNWRAPPED)


def _fragmentation() -> dict[str, Any]:
    from .oracles import fragmentation

    return {"fragmentation": fragmentation}


def _known_provider(name: str) -> str:
    try:
        return providers.get(name).name
    except LookupError as error:
        raise UsageError(str(error.args[0])) from None


def _print_damage(console: RichConsole, names: Sequence[str]) -> None:
    table = Table("damage", *names, box=None, pad_edge=False)
    for kind, row in detectability(tuple(names)).items():
        table.add_row(kind, *(summary(row[name]) if name in row else "-" for name in names))
    console.print(table)


def _print_dialects(console: RichConsole, names: Sequence[str]) -> None:
    table = Table("dialect", "provider", "what is different", "breaks", "source", box=None, pad_edge=False)
    for dialect in spoken.DIALECTS:
        if dialect.provider in names:
            broken = ", ".join(rule.id for rule in dialect.breaks)
            row = (dialect.name, dialect.provider, dialect.title, broken, dialect.source)
            table.add_row(*map(escape, row))
    console.print(table)


@main.command("providers")
def providers_command() -> None:
    """List the providers and plain profiles whose streams can be drawn and judged."""
    table = Table("provider", "title", "framing", "rules", "source", box=None, pad_edge=False)
    for name in providers.NAMES:
        found = providers.get(name)
        table.add_row(name, escape(found.title), found.framing.name, str(len(found.rules)), escape(found.source))
    _tables().print(table)


@main.command("targets")
def targets_command() -> None:
    """List the ready targets and those that the project's configuration names."""
    table = Table(
        "target", "provider", "takes", "gives", "library", "installed", "what it is", box=None, pad_edge=False
    )
    for name, described in config.configured(Path.cwd()).items():
        table.add_row(
            name, described.provider or "", described.takes or "", described.gives or "", "", "", described.call
        )
    for row in targets.describe():
        table.add_row(*(escape(cell or "no") for cell in row))
    _tables().print(table)
