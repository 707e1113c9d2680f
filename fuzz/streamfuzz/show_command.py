"""``streamfuzz show``: a case, what a target did with it, and what the judge says: a page, sentences, or a picture."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import get_terminal_size

import click

from streamfuzz_strategies import providers

from . import config, corpus, ruler
from .bench import Bench
from .case import Case, CaseFile
from .deviation import Deviation, Run
from .explain import explain
from .finding import Finding
from .legible import printable
from .oracles import check
from .report.console import Console
from .report.marks import marks
from .ruler.beside import beside, rows_of
from .ruler.linear import cropped, sentences
from .ruler.page import ASCII, NARROWEST, UNICODE, Line, Page, Role
from .ruler.paint import painted
from .spec import UsageError
from .svg import picture

ROWS = 300
"""Rows of a stream beyond which stretches without a cut are left out, unless all is asked for."""

PICTURED = 88
"""Columns of a picture, which has no terminal to fit."""

_WORDS = {"complete": "a complete message", "refuse": "no complete message", "either": "odd: may be read or refused"}


@dataclass(frozen=True, slots=True)
class Shown:
    """A case file and what a target, if one was asked, did with it.

    Attributes:
        file: the case file.
        target: the name of the target.
        run: what it did; ``None`` if the case is a probe, which is more than one run.
        sentences: what is wrong with that.
        marks: where in the stream the causes of that stand.
    """

    file: CaseFile
    target: str | None = None
    run: Run | None = None
    sentences: tuple[str, ...] = ()
    marks: tuple[int, ...] = ()

    @property
    def case(self) -> Case:
        """The case itself."""
        return self.file.case


@click.command()
@click.argument("case", type=click.Path(path_type=Path))
@click.option("--target", help="Also show what this target had given out after each chunk, and how it ended.")
@click.option("--provider", help="Whose stream a file is that is no case file but a recorded stream.")
@click.option("--all", "whole", is_flag=True, help="Leave nothing out, however long it is.")
@click.option("--linear", is_flag=True, help="Tell it in sentences, one for each chunk, for a screen reader.")
@click.option("--svg", type=click.Path(path_type=Path), help="Write a picture of it here.")
def show(case: Path, target: str | None, provider: str | None, whole: bool, linear: bool, svg: Path | None) -> None:
    """Draw a case file or a recorded stream: its bytes, its cuts, and what the judge says of it."""
    if provider is not None and provider not in providers.NAMES:
        raise UsageError(f"unknown provider {provider!r}; known: {', '.join(providers.NAMES)}")
    shown = look(corpus.open_any(case, provider)[0], target, case)
    rows = None if whole else ROWS
    if svg is not None:
        drawn = picture(
            list(page_of(shown, Page(PICTURED, UNICODE, False, rows))),
            title=printable(shown.file.why or f"The case {case.name}"),
            description="\n".join(told(shown, plain=False, whole=whole)),
        )
        try:
            corpus.write_whole(svg, drawn.encode())
        except OSError as error:
            raise UsageError(f"cannot write {svg}: {error.strerror or error}; choose another place") from None
        click.echo(f"wrote {svg}")
        return
    console = Console(sys.stdout)
    if linear:
        for sentence in told(shown, plain=console.ascii, whole=whole):
            click.echo(sentence)
        return
    # A terminal that cannot be redrawn still has a width.
    width = get_terminal_size().columns if sys.stdout.isatty() else console.terminal.width
    for line in page_of(shown, Page(max(width, NARROWEST), ASCII if console.ascii else UNICODE, console.ascii, rows)):
        console.terminal.print(painted(line), soft_wrap=True)


def look(file: CaseFile, target: str | None, path: Path) -> Shown:
    """Run a case against the target, if one is asked for, and find out why it fails if it does."""
    case = file.case
    if target is None:
        return Shown(file)
    with Bench(config.for_case(target, case, path)) as bench:
        run = None if case.probe else bench.run(case)
        deviations = bench.deviations(case) if run is None else check(run, bench.oracles)
        findings = [_finding(bench, case, deviation) for deviation in deviations]
    places = {mark for finding in findings if finding.case == case for mark in marks(finding)}
    sentences = dict.fromkeys(finding.sentence for finding in findings)
    return Shown(file, bench.target.name, run, tuple(sentences), tuple(sorted(places)))


def _finding(bench: Bench, case: Case, deviation: Deviation) -> Finding:
    if deviation.kind == "hung":  # every look for its cause would wait until it hangs again
        return Finding(bench.target.name, case, deviation, ())
    return explain(bench, case, deviation)


def page_of(shown: Shown, page: Page) -> Iterator[Line]:
    """The whole page: what is wrong, the ruler with what the target did, what it should have, and the judge's word."""
    trace = shown.run.trace if shown.run is not None else None
    for role, sentence in _verdict(shown):
        yield from page.fold(printable(sentence, plain=page.plain), role)
    if shown.target is not None:
        yield Line()
    yield from ruler.lay(shown.case, width=page.width, trace=trace, marks=shown.marks, ascii=page.plain, rows=page.rows)
    if shown.run is not None:
        yield Line()
        yield from beside(shown.run, page)
    yield Line()
    for sentence in _reasons(shown):
        yield from page.fold(printable(sentence, plain=page.plain), "note")


def told(shown: Shown, *, plain: bool, whole: bool) -> Iterator[str]:
    """The same in sentences."""
    trace = shown.run.trace if shown.run is not None else None
    yield from (printable(sentence, plain=plain) for _, sentence in _verdict(shown))
    yield from sentences(shown.case, trace=trace, marks=shown.marks, ascii=plain, whole=whole)
    if shown.run is not None:
        outcome, *rows = rows_of(shown.run, plain)
        yield f"It should end as: {cropped(outcome.expected, whole)}"
        for row in rows:
            if row.differs:
                gave, expected = cropped(row.gave, whole), cropped(row.expected, whole)
                yield f"{row.name.capitalize()}: given {gave}; expected {expected}"
    yield from (printable(sentence, plain=plain) for sentence in _reasons(shown))


def _verdict(shown: Shown) -> Iterator[tuple[Role, str]]:
    yield from (("bad", sentence) for sentence in shown.sentences)
    if shown.target is not None and not shown.sentences:
        yield "good", f"{shown.target} does nothing wrong with it."


def _reasons(shown: Shown) -> Iterator[str]:
    expect = corpus.expectation(shown.case)
    yield f"The judge: {_WORDS[expect.outcome]}{f' ({expect.rule})' if expect.rule else ''}"
    if shown.file.why and shown.file.why not in shown.sentences:
        yield f"Kept because: {shown.file.why}"
