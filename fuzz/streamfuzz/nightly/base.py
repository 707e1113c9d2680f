"""The code before a change: whether a case fails there too, asked in a process that imports from there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..spec import UsageError

PATIENCE = 300.0
"""Seconds that running all cases on the base may take."""


def failing_on(base: Path, spec: str, files: Sequence[str]) -> set[str]:
    """Run case files on the code of another checkout.

    Args:
        base: the checkout; it is the working directory of the process, and it and its folder ``src`` come first
            where Python looks for modules.
        spec: the target, as a user writes it.
        files: paths of the case files.

    Returns:
        The signatures that show there.  None if the target cannot be made there: then it is new.

    Raises:
        UsageError: the process prints no result, or takes too long.
    """
    path = [str(base), str(base / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, path))}
    absolute = [str(Path(file).resolve()) for file in files]
    command = [sys.executable, "-m", "streamfuzz", "replay", "--json", spec, *absolute]
    try:
        done = subprocess.run(
            command, cwd=base, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"{spec} took more than {PATIENCE:.0f} s on the code in {base}; its findings are told as new"
        ) from None
    if done.returncode == 2 and not done.stdout:
        return set()
    try:
        rows = json.loads(done.stdout)["cases"]
    except (ValueError, KeyError, TypeError):
        words = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        raise UsageError(
            f"{spec} could not be run on the code in {base} ({words}); its findings are told as new"
        ) from None
    return {signature for row in rows for signature in row["signatures"]}
