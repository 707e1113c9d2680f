"""What libFuzzer does beside searching: merge folders of inputs, make a deadly input small, leave artifacts."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

import msgspec

from ..bench import Bench
from ..spec import UsageError
from .coverage import PLAIN, Setup, command, folder_of, job, last_words, require_atheris

PREFIXES = ("crash-", "timeout-", "oom-", "leak-", "slow-unit-", "minimized-from-")
"""How the names of artifacts begin."""


def read(path: Path) -> bytes:
    """The input that an artifact holds.

    Raises:
        UsageError: it is no artifact, or cannot be read.
    """
    if not path.name.startswith(PREFIXES):
        raise UsageError(
            f"{path} is no artifact of libFuzzer: the name of one begins with {', '.join(PREFIXES)}; "
            f"to run a case file, use `streamfuzz replay`"
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def merge(bench: Bench, setup: Setup, folders: Sequence[Path] = ()) -> tuple[int, int]:
    """Keep the fewest inputs that reach all that those in the target's folder and in the others reach.

    The folder is replaced when all is done, and the others are left as they are.

    Returns:
        How many inputs there were, and how many are kept.

    Raises:
        UsageError: a folder does not exist or cannot be written to, or libFuzzer fails; then nothing is changed.
    """
    kept = setup.folder or folder_of(bench.target)
    for folder in (kept, *folders):
        if not folder.is_dir():
            raise UsageError(f"no such folder: {folder}")
    before = sum(len(list(folder.iterdir())) for folder in (kept, *folders))
    try:
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".merge-") as scratch:
            small = Path(scratch) / "small"
            small.mkdir()
            places = (str(folder.absolute()) for folder in (small, kept, *folders))
            code, words = _run(bench, setup, *PLAIN, "-merge=1", *places)
            if code:
                raise UsageError(f"libFuzzer could not merge {kept}, which stays as it is: {words}")
            after = len(list(small.iterdir()))
            os.replace(kept, Path(scratch) / "old")
            os.replace(small, kept)
    except OSError as error:
        raise UsageError(f"cannot write beside {kept}: {error.strerror or error}") from None
    return before, after


def minimise(bench: Bench, setup: Setup, raw: bytes, seconds: float) -> bytes:
    """The smallest input found on which the process dies of a signal as on this one; if it does not, the same one."""
    ends = monotonic() + seconds
    # libFuzzer has to catch the signals itself here.  It is asked for one step at a time, because the loop that it
    # has around them (-minimize_crash) mistakes the file that it wants to write for a folder.
    asked = ("-timeout=0", "-rss_limit_mb=0", "-minimize_crash_internal_step=1")
    with tempfile.TemporaryDirectory(prefix="streamfuzz-") as scratch:
        given = Path(scratch) / "given"
        while (left := ends - monotonic()) > 1:
            given.write_bytes(raw)
            _run(bench, setup, *asked, f"-max_total_time={left:.0f}", f"-artifact_prefix={scratch}{os.sep}", str(given))
            found = min((path.read_bytes() for path in Path(scratch).iterdir()), key=len)
            if len(found) >= len(raw):
                break
            raw = found
    return raw


def _run(bench: Bench, setup: Setup, *arguments: str) -> tuple[int, str]:
    """Run libFuzzer to its end: its return code, and the last of what it said."""
    require_atheris()
    with tempfile.TemporaryDirectory(prefix="streamfuzz-") as scratch:
        path = Path(scratch) / "job"
        path.write_bytes(msgspec.json.encode(job(bench, setup, setup.folder or folder_of(bench.target))))
        line, environment = command(path, *arguments)
        done = subprocess.run(line, env=environment, stdin=subprocess.DEVNULL, capture_output=True, cwd=scratch)
        return done.returncode, last_words(done.stderr)
