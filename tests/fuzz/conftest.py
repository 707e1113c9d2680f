"""What the tests of the command line and of what surrounds it share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

READERS = '''
"""Readers of chat streams, right and wrong."""

import os
import subprocess
import sys

from streamfuzz.demo import StreamError, parse as faulty, repaired
from streamfuzz.target import target

VALUE = 3


def wrong_finish(chunks):
    return {**repaired(chunks), "finish": "never"}


def chatty(chunks):
    print("printed")
    print("printed around", file=sys.__stdout__)
    os.write(1, b"written\\n")
    subprocess.run([sys.executable, "-S", "-c", "print('from a child')"]) if chatty.first else None
    chatty.first = False
    return wrong_finish(chunks)


chatty.first = True


def hangs(chunks):
    while True:
        pass


def nothing(chunks):
    pass


def number(chunks):
    return 7


def two(one, other):
    return {}


class Reader:
    def whole(self, chunks):
        return repaired(chunks)


reader = Reader()
described = target(repaired, name="mine", errors=(StreamError,))
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty project as the working directory, with a module ``readers`` that can be imported there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "readers.py").write_text(READERS)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
