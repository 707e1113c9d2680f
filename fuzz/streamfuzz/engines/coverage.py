"""The engine for long searches: libFuzzer drives the target, and keeps every input that reaches new code.

Drawing alone does not get behind a branch that wants four certain bytes.  libFuzzer sees which branches an input
takes and how near a comparison came to be true, and goes on from there.  It never returns and has its own signal
handlers, so it runs in processes of its own (:mod:`.coverage_child`), whose code alone is instrumented.
"""

from __future__ import annotations

import os
import pickle
import re
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

from streamfuzz_strategies import cuts
from streamfuzz_strategies.draw import drawing
from streamfuzz_strategies.mutations import encode
from streamfuzz_strategies.providers import Drawing, Provider
from streamfuzz_strategies.stream import Stream
from streamfuzz_strategies.styles import SINGLE_STYLES, styles
from streamfuzz_strategies.text import FAMILIES
from streamfuzz_strategies.wire import Wire

from ..bench import Bench, read
from ..box import Box, Deadly
from ..case import Case
from ..config import Recipe
from ..deviation import Deviation
from ..oracles import unended
from ..spec import Target, UsageError
from . import Batch, Budget, Sighting, fuzz_input
from .coverage_child import HEAR, Job, Seen, Tally, Told, digest, sort_of
from .dictionary import words, written
from .fuzz_input import Input
from .sweep import draw_batch

EXTRA = "atheris"
PYTHONS = "3.11 to 3.14 on Linux, x86-64"
"""Where the package index has Atheris ready to install (3.0.0: 3.11 to 3.13; 3.1.0: 3.12 to 3.14)."""

FOLDER = Path(".streamfuzz/coverage")
"""Where, below the working directory, the inputs that reached new code are kept, a folder for each target."""

DRAWN = 48
"""How many streams are drawn to begin with."""

ROOM = 4096
"""Bytes that an input may always have; if the longest to begin with has more, as many as that one."""

MEMORY = 2 << 30
"""Bytes that a target may use, beside what it takes when it is loaded."""

HOW, NEW = "coverage", "coverage, in code that nothing before reached"
"""How a case came about; the second is one of a sort that was told before."""

PATIENCE = 10.0
"""Seconds beyond its timeout that a run may take before the process is killed: then it hangs where Python cannot."""

PLAIN = (
    *(f"-handle_{name}=0" for name in ("abrt", "bus", "fpe", "ill", "int", "segv", "term", "xfsz")),
    "-timeout=0",
    "-rss_limit_mb=0",
    "-close_fd_mask=3",
    "-verbosity=0",
)
"""libFuzzer is to leave signals, time and memory to us, who know what they mean, and to say no more than it must."""

DEATHS = 5
"""How many processes a search may lose before it ends; a target that dies everywhere has nothing more to tell."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How to search with coverage, beside the budget.

    Attributes:
        recipe: how to make the target in another process; without it, the target must be importable.
        packages: top-level packages whose code is watched; by default that of the target.
        cases: kept cases to begin with, beside drawn streams.
        folder: where inputs that reached new code are kept for the next search; by default below :data:`FOLDER`.
        jobs: how many processes search at once; they share what they find.
    """

    recipe: Recipe | None = None
    packages: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    folder: Path | None = None
    jobs: int = 1


def coverage(bench: Bench, budget: Budget, setup: Setup = Setup()) -> Iterator[Batch]:
    """Search until the budget is spent; yields a batch after every stretch of work.

    Raises:
        UsageError: there is no Atheris for this Python, or the target cannot be made in another process.
    """
    require_atheris()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamfuzz-")))
        search = _Search(bench, budget, setup, scratch)
        stack.callback(search.close)
        yield from search.batches()


def require_atheris() -> None:
    """Make sure that Atheris is there.

    Raises:
        UsageError: it is not; the message says how to get it, and where there is none.
    """
    if find_spec("atheris") is None:
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise UsageError(
            f"the coverage engine needs Atheris, which this Python {here} does not have: "
            f"pip install 'streamfuzz[{EXTRA}]'; it is made for Python {PYTHONS}"
        )


def folder_of(target: Target) -> Path:
    """Where the inputs for a target are kept unless the user says otherwise."""
    return FOLDER / re.sub(r"[^\w.-]+", "-", f"{target.name}-{target.provider}")


def packages_of(target: Target) -> tuple[str, ...]:
    """The top-level packages of the target's code.

    Of an adapter of ours, these are ours and all those that the adapter's module uses; of ours then only modules
    are watched that nothing but the target needs, so the judge is not.
    """
    call: Any = target.call
    while isinstance(call, partial):
        call = call.func
    name = str(getattr(call, "__module__", None) or type(call).__module__)
    top = name.partition(".")[0]
    if top not in _OURS:
        return (top,)
    used = {str(getattr(value, "__module__", None) or getattr(value, "__name__", "")) for value in _named_in(name)}
    foreign = {module.partition(".")[0] for module in used} - set(sys.stdlib_module_names) - {*_OURS, ""}
    return ("streamfuzz", *sorted(foreign))


_OURS = ("streamfuzz", "streamfuzz_strategies")


def _named_in(module: str) -> list[Any]:
    return [value for name, value in vars(sys.modules[module]).items() if name[:1].isalpha()]


def job(bench: Bench, setup: Setup, kept: Path) -> Job:
    """What a process that runs libFuzzer has to know.

    Raises:
        UsageError: the target cannot be made in another process.
    """
    target = bench.target
    made = target if setup.recipe is None else (setup.recipe, target.provider)
    try:
        pickled = pickle.dumps(made)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"the coverage engine runs the target {target.name} in another process, where it cannot be had "
            f"({error}): make it a function or class at the top of a module"
        ) from None
    packages = setup.packages or packages_of(target)
    return Job(packages, bench.oracles, pickled, kept=str(kept.absolute()), memory=MEMORY)


def command(path: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """The command line of a process for a job file, and its environment."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "0"}
    module = f"{__package__}.coverage_child"
    return [sys.executable, "-P", "-m", module, str(path), *arguments], environment


# -- what to begin with -----------------------------------------------------------------------------------------


@st.composite
def _streams(draw: st.DrawFn, provider: Provider, asked: Drawing) -> Stream:
    reply = provider.draw_reply(draw, asked)
    events = provider.draw_events(draw, reply, asked)
    return Stream(provider.name, events, reply, draw(styles(provider.framing.name)))


def seeds(provider: Provider, budget: Budget, cases: Sequence[Case] = ()) -> Iterator[bytes]:
    """Inputs to begin with: kept cases, and drawn streams, whole and cut, the simplest in every style.

    Raises:
        UsageError: the budget asks for tools or an alphabet that are none.
    """
    for case in cases:
        with suppress(ValueError):
            yield fuzz_input.encode(fuzz_input.of_case(case))
    try:
        asked = drawing(budget.tools, budget.alphabet)
    except InvalidArgument as error:
        raise UsageError(str(error)) from None
    if budget.family is not None:
        asked = Drawing(asked.tools, FAMILIES[budget.family])
    drawn = draw_batch(_streams(provider, asked), DRAWN, budget.seed)
    for stream in drawn:
        yield from _cut(provider, encode(provider, stream))
    simplest = min(drawn, key=lambda stream: len(stream.events))
    for _, style in SINGLE_STYLES[provider.framing.name]:
        yield encode(provider, Stream(provider.name, simplest.events, style=style))


def _cut(provider: Provider, data: bytes) -> Iterator[bytes]:
    spots = cuts.hostile(Wire(data, provider.framing))
    for offsets in (cuts.WHOLE, cuts.every_byte(len(data)), spots[:1], spots[len(spots) // 2 :][:1]):
        yield fuzz_input.encode(Input(data, offsets))


# -- processes --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Process:
    """A process that runs libFuzzer, and what it has told so far."""

    running: subprocess.Popen[bytes]
    pipe: int
    box: Box
    log: Path
    rest: bytes = b""
    told: bool = False
    hung: bool = False
    last: bool = False
    run: int | None = None
    since: float = 0.0

    def hear(self) -> list[Told]:
        """What it told since the last time."""
        *lines, self.rest = (self.rest + os.read(self.pipe, 1 << 20)).split(b"\n")
        found = [HEAR.decode(line) for line in lines]
        self.told = self.told or bool(found)
        self.last = self.last or any(isinstance(each, Tally) and each.last for each in found)
        return found

    def watch(self, patience: float) -> None:
        """Kill it if it has been at one and the same run for too long."""
        run = self.box.running
        if run is None or run != self.run:
            self.run, self.since = run, monotonic()
        elif monotonic() - self.since > patience:
            self.hung = True
            self.running.kill()

    def death(self) -> Deadly | None:
        """How it ended, if a run is to blame."""
        case, code = self.box.case, self.running.returncode
        if case is None:
            return None
        if self.hung:
            how = f"still running after {monotonic() - self.since:.0f} s, and had to be killed"
            return Deadly(case, "hang", "killed", how, however_cut=True)
        if code >= 0:
            return Deadly(case, "died", f"exit {code}", f"exited with code {code}", however_cut=True)
        name = signal.Signals(-code).name
        return Deadly(case, "died", name, f"killed by signal {-code} ({name})", however_cut=True)

    def close(self) -> None:
        """End it, whatever it does."""
        self.running.kill()
        self.running.wait()
        os.close(self.pipe)
        self.box.close()


class _Search:
    def __init__(self, bench: Bench, budget: Budget, setup: Setup, scratch: Path) -> None:
        self.bench, self.budget, self.setup, self.scratch = bench, budget, setup, scratch
        self.started = monotonic()
        self.kept = setup.folder or folder_of(bench.target)
        self.job = job(bench, setup, self.kept)
        self.left = budget.cases
        self.avoid: list[Deadly] = []
        self.processes: list[_Process] = []
        self.begun = 0
        self.selector = selectors.DefaultSelector()
        self._prepare()

    def _prepare(self) -> None:
        try:
            self.kept.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write to {self.kept}: {error.strerror or error}; choose another folder") from None
        first = {digest(raw): raw for raw in seeds(self.bench.provider, self.budget, self.setup.cases)}
        for name, raw in first.items():
            (self.scratch / name).write_bytes(raw)
        (self.scratch / "list").write_text(",".join(str(self.scratch / name) for name in first))
        self.room = max(ROOM, *map(len, first.values()))
        (self.scratch / "words").write_text(written(words(self.bench.provider.name)), encoding="ascii")

    def batches(self) -> Iterator[Batch]:
        for _ in range(self.setup.jobs):
            self._begin()
        while self.processes and not self._spent():
            batch = self._wait()
            if batch.cases or batch.sightings:
                yield batch

    def close(self) -> None:
        """End every process."""
        for process in self.processes:
            process.close()
        self.selector.close()

    def _spent(self) -> bool:
        seconds = self.budget.seconds
        return self.budget.stopped() or (seconds is not None and monotonic() - self.started >= seconds)

    def _begin(self) -> None:
        """Start one more process."""
        self.begun += 1
        place = self.scratch / str(self.begun)
        place.mkdir()
        ours, theirs = os.pipe()
        share = None if self.left is None else -(-self.left // self.setup.jobs)
        box, log = Box.make(), place / "log"
        avoid = pickle.dumps(tuple(self.avoid))
        asked = msgspec.structs.replace(self.job, box=box.path, pipe=theirs, cases=share, avoid=avoid)
        (place / "job").write_bytes(msgspec.json.encode(asked))
        line, environment = command(place / "job", *self._arguments(place))
        with log.open("wb") as errors:
            running = subprocess.Popen(
                line,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=(theirs,),
            )
        os.close(theirs)
        process = _Process(running, ours, box, log)
        self.processes.append(process)
        self.selector.register(ours, selectors.EVENT_READ, process)

    def _arguments(self, place: Path) -> list[str]:
        seed = (self.budget.seed + self.begun - 1) % (2**31 - 1) + 1  # 0 would mean any
        return [
            f"-seed={seed}",
            f"-max_len={self.room}",
            "-len_control=0",
            "-reduce_inputs=0",
            f"-dict={self.scratch / 'words'}",
            f"-artifact_prefix={place}{os.sep}",
            f"-reload={int(self.setup.jobs > 1)}",
            *PLAIN,
            f"-seed_inputs=@{self.scratch / 'list'}",  # and not the folder, which is read in no certain order
            str(self.kept),
        ]

    def _wait(self) -> Batch:
        """Wait a moment for news, and look after the processes."""
        batch = Batch()
        for key, _ in self.selector.select(0.1):
            process: _Process = key.data
            found = process.hear()
            for told in found:
                self._take(batch, told)
            if not found and process.running.poll() is not None:
                self._ended(batch, process)
        patience = self.bench.target.timeout + PATIENCE
        for process in self.processes:
            process.watch(patience)
        return batch

    def _take(self, batch: Batch, told: Told) -> None:
        if isinstance(told, Tally):
            batch.cases += told.cases
            batch.goals.update(told.goals)
            batch.repeats.update(told.repeats)
            self.bench.driver.seconds += told.inside
            if self.left is not None:
                self.left -= told.cases
        else:
            batch.sightings.append(self._sighting(told))

    def _sighting(self, told: Seen) -> Sighting:
        """Judge an input again here; a deviation that does not show is passed on as told, and will come out flaky."""
        case = fuzz_input.to_case(fuzz_input.decode(told.input), self.bench.target)
        sort = (told.oracle, told.kind, told.rule, told.verdict, told.error)
        verdict: Any = told.verdict
        claimed = Deviation(told.oracle, told.kind, told.what, verdict=verdict, error=told.error)
        same = (deviation for deviation in self.bench.deviations(case) if sort_of(deviation)[:5] == sort)
        return Sighting(case, next(same, claimed), NEW if told.new else HOW)

    # -- when a process ends before its time --------------------------------------------------------------------

    def _ended(self, batch: Batch, process: _Process) -> None:
        death, last, code = process.death(), process.last, process.running.returncode
        self.processes.remove(process)
        self.selector.unregister(process.pipe)
        process.close()
        if last:
            return
        if death is not None:
            self.avoid.append(death)
            worst = read(death.case).judge(death.case.end).worst
            deviation = unended(death.trace, self.bench.target, worst.rule if worst is not None else None)
            batch.cases += 1
            batch.sightings.append(Sighting(death.case, deviation, HOW))
        elif code or not process.told:
            raise self._failed(process)
        if len(self.avoid) < DEATHS:
            self._begin()

    def _failed(self, process: _Process) -> Exception:
        """Why a process ended without any run being at fault."""
        said = process.log.read_bytes()
        if process.told:
            return RuntimeError(f"the coverage process failed:\n{said.decode(errors='replace')[-4000:]}")
        return UsageError(f"the coverage engine cannot run {self.bench.target.name}: {last_words(said)}")


def last_words(said: bytes) -> str:
    """The last line of what a process said."""
    lines = said.decode(errors="replace").strip().splitlines() or ["it said nothing"]
    return lines[-1].strip()
