"""The command ``streamfuzz init``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from . import scaffold

_WORDS = {
    "write": ("wrote", "would write"),
    "extend": ("added to", "would add to"),
    "replace": ("wrote over", "would write over"),
    "leave": ("left alone", "would leave alone"),
    "same": ("unchanged", "unchanged"),
}
"""What is said of a file, done and in a dry run."""


@click.command("init")
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--call", help="Your parser, as module:attribute [default: a stub where you put it].")
@click.option("--provider", help=f"Whose streams it reads (see `streamfuzz providers`) [default: {scaffold.PROVIDER}].")
@click.option("--force", is_flag=True, help="Write over files that hold something else.")
@click.option("--dry-run", is_flag=True, help="Only say what would be written.")
def init(folder: Path, call: str | None, provider: str | None, force: bool, dry_run: bool) -> None:
    """Set a project up: configuration, a target, tests, and GitHub workflows for nights and pull requests.

    FOLDER is the root of the project; by default the working directory.  Files that are there are left alone.
    """
    plan = scaffold.plan(folder, call=call, provider=provider, force=force)
    if not dry_run:
        scaffold.carry_out(plan)
    for step in plan.steps:
        why = f": {step.why}" if step.why else ""
        click.echo(f"{_WORDS[step.action][dry_run]} {step.path}{why}")
    for sentence in plan.advice:
        click.echo(f"\n{sentence}")
    if dry_run:
        return
    there = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    click.echo("\nNext:")
    click.echo(f"  {there}streamfuzz run {shlex.quote(plan.name)} --time 30s")
    click.echo(f"  {there}streamfuzz nightly batch --time 2m")
