"""What several commands are asked in the same way."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from .spec import GIVES, TAKES

F = TypeVar("F", bound=Callable[..., Any])


def duration(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Read a time like ``30s``, ``5m`` or ``2h``, in seconds."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)?", value.strip())
    if match is None or not float(match[1]):
        raise click.BadParameter("write a time like 30s, 5m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2] or "s"]


def target_options(command: F) -> F:
    """``--provider``, ``--takes``, ``--gives``: what the target reads and makes."""
    for option in (
        click.option("--gives", type=click.Choice(GIVES), help="What the target makes of its chunks."),
        click.option("--takes", type=click.Choice(TAKES), help="What the target's chunks are."),
        click.option("--provider", help="Whose streams the target reads (see `streamfuzz providers`)."),
    ):
        command = option(command)
    return command


def report_options(command: F) -> F:
    """``--junit``, ``--sarif``, ``--events``, ``--html``, ``--github``, as ``report.outputs.subscribers`` has them."""
    for option in (
        click.option("--github", is_flag=True, help="Print annotations and a job summary for GitHub Actions."),
        click.option("--html", type=click.Path(path_type=Path), help="Write a page here that shows everything."),
        click.option("--events", type=click.Path(path_type=Path), help="Write each happening here, one JSON a line."),
        click.option("--sarif", type=click.Path(path_type=Path), help="Write a SARIF report here."),
        click.option("--junit", type=click.Path(path_type=Path), help="Write a JUnit report here."),
    ):
        command = option(command)
    return command


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else there."
)
"""``--json``: one machine-readable object on stdout."""
