"""The process in which libFuzzer drives a target; :mod:`.coverage` starts it and reads what it tells.

``python -m streamfuzz.engines.coverage_child JOB ARGUMENT...``: a job file, and arguments of libFuzzer.  libFuzzer
never returns, and starts this program again by itself to merge or to minimise, so all there is to know is in the
job file.  What happens is told on a pipe, one JSON object a line; what runs just now stands in a box that outlives
the process.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
from collections import Counter
from collections.abc import Callable
from hashlib import sha1
from pathlib import Path
from time import monotonic

import msgspec

from streamfuzz_strategies.wire import Wire

from .. import drive
from ..bench import Bench
from ..box import Box, Recorder
from ..deviation import Deviation
from ..oracles import check
from ..spec import Target
from .dictionary import constants
from .fuzz_input import Input, decode, to_case
from .mutator import Mutator

KEPT = 2
"""How often a deviation of one sort is told at once; after that, only with an input that reaches new code."""

TOLD = 40
"""How often a deviation of one sort is told in all."""

TALLIED = 0.25
"""Seconds between two tallies."""

LOOKED = 16
"""Where a cut falls costs more to tell than a run does, so it is looked up for one run in so many."""


class Job(msgspec.Struct, frozen=True):
    """What the process is asked to do.

    Attributes:
        packages: top-level packages whose code is watched.
        oracles: the invariants to hold the target to.
        made: a pickle of the target, or of a recipe and a provider.
        kept: the folder where libFuzzer puts inputs that reach new code.
        box: the path of a :class:`~..nightly.box.Box` in which to note what runs.
        pipe: the file descriptor on which to tell what happens.
        cases: how many cases to judge; ``None``: no limit.
        avoid: a pickle of the cases that are known to be deadly.
        memory: bytes that the target may use.
    """

    packages: tuple[str, ...]
    oracles: tuple[str, ...]
    made: bytes
    kept: str = ""
    box: str = ""
    pipe: int | None = None
    cases: int | None = None
    avoid: bytes = pickle.dumps(())
    memory: int | None = None


class Seen(msgspec.Struct, frozen=True, tag=True):
    """An input on which the target deviates, and how; ``new``: it reaches code that none before it reached."""

    input: bytes
    oracle: str
    kind: str
    what: str
    rule: str
    verdict: str
    error: str
    new: bool


class Tally(msgspec.Struct, frozen=True, tag=True):
    """What was done since the last tally; ``inside``: seconds in the target; ``last``: there is none after it."""

    cases: int
    inside: float
    repeats: dict[str, int]
    goals: dict[str, int]
    last: bool = False


Told = Seen | Tally
TELL = msgspec.json.Encoder()
HEAR: msgspec.json.Decoder[Told] = msgspec.json.Decoder(Told)


class Explorer:
    """Judges one input after another, and tells what was found and how much was done.

    Args:
        bench: the target, and the oracles asked of it.
        tell: takes what there is to tell.
        is_kept: whether libFuzzer keeps an input that was run, because it reached new code.
        kept: is told of those inputs.
        cases: how many to judge.
    """

    def __init__(
        self,
        bench: Bench,
        tell: Callable[[Told], None],
        is_kept: Callable[[bytes], bool] = lambda raw: False,
        kept: Callable[[bytes], None] = lambda raw: None,
        cases: int | None = None,
    ) -> None:
        self.bench, self.tell, self.is_kept, self.kept = bench, tell, is_kept, kept
        self.left = cases
        self.seen: Counter[tuple[str, ...]] = Counter()
        self.before = b""
        self.waiting: list[Deviation] = []
        self.told = monotonic()
        self.runs = self.cases = 0
        self.inside = 0.0
        self.repeats: Counter[str] = Counter()
        self.goals: Counter[str] = Counter()

    def __call__(self, raw: bytes) -> bool:
        """Run and judge an input; says whether there is anything left to do."""
        self._look_back(raw)
        given = decode(raw)
        run = self.bench.run(to_case(given, self.bench.target))
        self.runs += 1
        self.cases += 1 if run.baseline is None else 2
        self._note_goals(given, [breach.rule.id for breach in run.judgement.breaches])
        for deviation in check(run, self.bench.oracles):
            self._note(raw, deviation)
        over = self.left is not None and self.cases >= self.left
        if over or monotonic() - self.told >= TALLIED:
            self.tally(last=over)
        return not over

    def tally(self, *, last: bool = False) -> None:
        """Tell what was done since the last time."""
        inside, self.inside = self.bench.driver.seconds - self.inside, self.bench.driver.seconds
        self.tell(Tally(self.cases, inside, dict(self.repeats), dict(self.goals), last))
        if self.left is not None:
            self.left -= self.cases
        self.cases = 0
        self.repeats.clear()
        self.goals.clear()
        self.told = monotonic()

    def _note(self, raw: bytes, deviation: Deviation) -> None:
        sort = sort_of(deviation)
        self.seen[sort] += 1
        if self.seen[sort] <= KEPT:
            self.tell(_seen(raw, deviation, new=False))
            return
        self.repeats[f"{deviation.oracle}.{deviation.kind}"] += 1
        if self.seen[sort] <= TOLD:
            self.waiting.append(deviation)

    def _look_back(self, raw: bytes) -> None:
        """See whether libFuzzer kept the last input: what fails behind a new branch may fail for a new reason."""
        before, deviations = self.before, self.waiting
        self.before, self.waiting = raw, []
        if self.is_kept(before):
            self.kept(before)
            for deviation in deviations:
                self.tell(_seen(before, deviation, new=True))

    def _note_goals(self, given: Input, broken: list[str]) -> None:
        for rule in broken:
            self.goals[f"rule: {rule}"] += 1
        if given.end == "reset":
            self.goals["connection reset"] += 1
        if len(given.cuts) == 1 and self.runs % LOOKED == 0 and 0 < given.cuts[0] < len(given.data):
            self.goals["cut " + Wire(given.data, self.bench.provider.framing).place(given.cuts[0])] += 1


def sort_of(deviation: Deviation) -> tuple[str, ...]:
    """What makes deviations alike before their causes are known."""
    what = deviation.what if deviation.kind == "undeclared" else ""
    rule = deviation.rule.id if deviation.rule is not None else ""
    return deviation.oracle, deviation.kind, rule, deviation.verdict, deviation.error, what


def _seen(raw: bytes, deviation: Deviation, *, new: bool) -> Seen:
    oracle, kind, rule, verdict, error, _ = sort_of(deviation)
    return Seen(raw, oracle, kind, deviation.what, rule, verdict, error, new)


def digest(raw: bytes) -> str:
    """The name that libFuzzer gives to the file of an input."""
    return sha1(raw, usedforsecurity=False).hexdigest()


def make(pickled: bytes) -> Target:
    """The target of a job."""
    found = pickle.loads(pickled)
    if isinstance(found, Target):
        return found
    recipe, provider = found
    made: Target = recipe.target(provider)
    return made


def main(path: str, arguments: list[str]) -> None:
    """Run libFuzzer on the target of a job file; does not return."""
    import atheris  # type: ignore[import-untyped]

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    _end_with_parent()
    job = msgspec.json.decode(Path(path).read_bytes(), type=Job)
    recorder = None
    if job.box:
        drive.recorder = recorder = Recorder(Box(job.box), job.memory)
        recorder.avoid = pickle.loads(job.avoid)
    with atheris.instrument_imports(include=list(job.packages)):
        target = make(job.made)
        with Bench(target, job.oracles) as bench:  # its timer is set first, so that libFuzzer leaves it alone
            words = constants(job.packages)
            mutator = Mutator(bench.provider, lambda data, limit: bytes(atheris.Mutate(data, limit)), words)
            program = f"{sys.executable} -P -m {__spec__.name} {path}"
            atheris.Setup(
                [program, *arguments],
                judging(job, bench, recorder, mutator.kept),
                custom_mutator=mutator.change,
                custom_crossover=mutator.cross,
            )
            atheris.Fuzz()


def judging(
    job: Job, bench: Bench, recorder: Recorder | None, kept: Callable[[bytes], None]
) -> Callable[[bytes], None]:
    """What libFuzzer is to call with each input; it ends the process when there is nothing left to do."""
    folder = job.kept

    def tell(told: Told) -> None:
        line = TELL.encode(told) + b"\n"
        while line and job.pipe is not None:
            line = line[os.write(job.pipe, line) :]

    explorer = Explorer(bench, tell, lambda raw: os.path.exists(f"{folder}/{digest(raw)}"), kept, job.cases)

    def one(raw: bytes) -> None:
        if not explorer(raw):
            os._exit(0)
        if recorder is not None and recorder.stopped():  # with little memory left; a new process goes on
            explorer.tally()
            os._exit(0)

    return one


def _end_with_parent() -> None:
    """Have Linux end this process when the one that started it is gone, even if the target hangs in C."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
