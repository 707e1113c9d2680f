"""One search of one target: engine, causes, groups, shrinking, files.  Reports subscribe to what happens."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from time import perf_counter

from . import corpus
from .bench import ALL_ORACLES, Bench
from .case import CaseError
from .corpus import Place
from .deviation import Run
from .engines import Batch, Budget, Sighting
from .engines.goals import goals
from .engines.menu import Engine
from .engines.sweep import plain_case, sweep
from .explain import explain
from .finding import Finding
from .grouping import fold, merged, rank
from .happenings import NewFinding, Progress, Subscriber
from .result import Point, Reported, Result, Share, Status, extend
from .shrink import SECONDS, shrink
from .spec import Known, Target, UsageError, accepts_one_argument, source_of
from .stopping import Stop, on_signals
from .trace import Trace

SHRINKING = 20.0
"""Seconds that shrinking may take in all, if the search itself was shorter than that."""

EXPLAINING = 0.5
"""The share of the time so far that the search for causes may take; sightings beyond it wait for the end."""


def run(
    target: Target,
    budget: Budget | None = None,
    *,
    oracles: Sequence[str] = ALL_ORACLES,
    folder: Place | None = None,
    tell: Subscriber = lambda happening: None,
    engine: Engine = sweep,
    name: str = "sweep",
) -> Result:
    """Search for the ways in which a target fails.

    Args:
        target: the code under test.
        budget: how long and with what to search; by default 20 seconds.
        oracles: which invariants to hold it against.
        folder: where to write case files, if anywhere.
        tell: is told what happens while it happens.
        engine: how to search.
        name: what reports call the engine.

    Returns:
        The findings, grouped by signature and shrunk, with what was covered.

    Raises:
        UsageError: the target cannot be called, or gives something that it was not declared to give.
    """
    with on_signals() as stop:
        asked = replace(budget or Budget(), stopped=stop)
        return _Campaign(target, asked, oracles, folder, tell, stop, name).run(engine)


class _Campaign:
    def __init__(
        self,
        target: Target,
        budget: Budget,
        oracles: Sequence[str],
        folder: Place | None,
        tell: Subscriber,
        stop: Stop,
        name: str,
    ) -> None:
        self.target = target
        self.budget = budget
        self.folder = folder
        self.tell = tell
        self.stop = stop
        self.name = name
        self.bench = Bench(target, oracles)
        self.result = Result(target.name, target.provider, budget.seed, source=source_of(target.call))
        self.groups: dict[str, Finding] = {}
        self.waiting: list[Sighting] = []
        self.explaining = 0.0
        self.started = perf_counter()

    def run(self, engine: Engine) -> Result:
        if self.folder is not None:
            corpus.probe(self.folder)
        preflight(self.target)
        with self.bench:
            self.in_all = goals(self.bench)
            for batch in engine(self.bench, self.budget):
                self._take(batch)
            self._finish_search()
            self._report()
        return self.result

    def _take(self, batch: Batch) -> None:
        self.result.cases += batch.cases
        self.result.goals += batch.goals
        self.result.more += batch.repeats.total()
        self.waiting += batch.sightings
        while self.waiting and self.explaining <= EXPLAINING * (perf_counter() - self.started):
            self._explain(self.waiting.pop(0))
        self._progress("searching")

    def _finish_search(self) -> None:
        self.result.seconds = perf_counter() - self.started
        self.result.inside = self.bench.driver.seconds
        self.result.engines = {self.name: Share(self.result.cases, self.result.seconds)}
        self.result.unreached = tuple(name for name in self.in_all if not self.result.goals[name])

    def _explain(self, sighting: Sighting) -> None:
        start = perf_counter()
        if sighting.deviation.kills:  # this process must not be the next
            self._group(self._as_it_is(sighting))
        else:
            self._group(explain(self.bench, sighting.case, sighting.deviation, sighting.how))
        self.explaining += perf_counter() - start

    def _as_it_is(self, sighting: Sighting) -> Finding:
        return Finding(self.target.name, sighting.case, sighting.deviation, (), sighting.how)

    def _group(self, finding: Finding) -> None:
        known = self.groups.get(finding.signature)
        if known is None:
            self.groups[finding.signature] = finding
            self.tell(NewFinding(finding))
        else:
            self.groups[finding.signature] = merged(known, finding)

    def _progress(self, stage: str) -> None:
        reached = sum(1 for name in self.in_all if self.result.goals[name])
        seconds = perf_counter() - self.started
        findings = len(self.groups)
        name = self.target.name
        self.tell(Progress(name, self.result.cases, seconds, findings, reached, len(self.in_all), stage))
        rules = sum(1 for name in self.result.goals if name.startswith("rule: "))
        extend(self.result.curve, Point(seconds, self.result.cases, reached, rules, findings))

    def _report(self) -> None:
        """Explain what waits, fold what follows from something else, shrink the rest, and write files.

        Once the user has said stop, what was found is reported as it is.
        """
        self._explain_rest()
        excused = {known.signature for known in self.target.known}  # last: an excuse covers nothing else
        findings = fold(sorted(self.groups.values(), key=lambda found: (found.signature in excused, found.case.size)))
        deadline = perf_counter() + max(SHRINKING, self.result.seconds)
        for number, finding in enumerate(findings):
            share = (deadline - perf_counter()) / (len(findings) - number)
            self._progress("shrinking")
            small = finding
            if not finding.deviation.kills:
                small = shrink(self.bench, finding, min(3 * share, SECONDS), self.stop)
            self.result.findings.append(self._reported(small))
        self.result.findings.sort(key=rank)
        self.result.engines[self.name].findings = len(self.result.findings)
        self.result.interrupted = self.stop()
        if not self.result.interrupted:
            missed = [known for known in self.target.known if known.signature not in self.groups]
            self.result.gone = tuple(known for known in missed if not self._still_fails(known))

    def _explain_rest(self) -> None:
        while self.waiting:
            sighting = self.waiting.pop(0)
            if self.stop():
                self._group(self._as_it_is(sighting))
            else:
                self._explain(sighting)
                self._progress("looking for causes")

    def _reported(self, finding: Finding) -> Reported:
        known = next((known for known in self.target.known if known.signature == finding.signature), None)
        path = corpus.save(self.folder, corpus.as_file(finding)) if self.folder is not None else None
        status: Status = "new" if known is None else "known" if known.expires >= date.today() else "expired"
        return Reported(finding, str(path) if path is not None else None, status, known, engine=self.name)

    def _still_fails(self, known: Known) -> bool:
        """Whether a kept case of a known deviation still shows it, so that the search only did not come across it."""
        if self.folder is None:
            return False
        for path in corpus.paths([self.folder]):
            with suppress(CaseError):
                file = corpus.open_case(path)
                if file.found is not None and file.found.signature == known.signature:
                    found = (explain(self.bench, file.case, d) for d in self.bench.deviations(file.case))
                    if any(finding.signature == known.signature for finding in found):
                        return True
        return False


def preflight(target: Target) -> None:
    """Call the target once on the plainest stream, to tell a wrong description from a bug.

    Raises:
        UsageError: it cannot be called as its shape says, returns nothing, or gives something of another form.
    """
    if not accepts_one_argument(target.call, target.shape):
        wanted = {"push": "no argument", "iterable": "one argument, the chunks", "async": "one argument, the chunks"}
        raise UsageError(f"target {target.name} must take {wanted[target.shape]}: give a function or class that does")
    run = plain_run(target)
    failure = run.trace.failure
    if failure is not None and failure.type == "WrongForm":
        raise UsageError(f"target {target.name} does not give {target.gives}: {failure.message}")
    if _gave_nothing(run.trace) and run.judgement.accepted:
        raise UsageError(
            f"target {target.name} gave nothing on a plain, complete stream of {target.provider}: return the result, "
            f"or yield it, or say with takes and gives what the target reads and makes"
        )


def _gave_nothing(trace: Trace) -> bool:
    return trace.ending == "incomplete" and not trace.items and trace.failure is None and trace.result == {"text": ""}


def plain_run(target: Target) -> Run:
    """Run the target on the plainest stream of its provider."""
    with Bench(target) as bench:
        return bench.run(plain_case(bench))
