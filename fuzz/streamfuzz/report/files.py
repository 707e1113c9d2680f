"""Files that reports are written to: tried before a search, because hours of work are to end in them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..corpus import write_whole
from ..spec import UsageError


def claim(path: Path) -> None:
    """Make sure that a file can be written; its folder is made.

    Raises:
        UsageError: it cannot.
    """
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder; name a file in it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix="."):
            pass
    except OSError as error:
        raise unwritable(path, error) from None


def write(path: Path, content: bytes) -> None:
    """Write a report, whole or not at all.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        write_whole(path, content)
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> UsageError:
    """What to tell when a file cannot be written."""
    return UsageError(f"cannot write {path}: {error.strerror or error}; choose another file")
