"""What the tests of the command line and of what surrounds it share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

READERS = '''
"""Readers of chat streams, right and wrong."""

import os
import subprocess
import sys

from streamfuzz.demo import StreamError, parse as faulty, repaired
from streamfuzz.spec import target

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


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out.count("\n") == 1
        assert self.out.endswith("\n")
        return json.loads(self.out)


Command = Callable[..., Done]


@pytest.fixture
def streamfuzz(project: Path, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a command line in an empty project."""
    from streamfuzz.cli import main  # importing this takes what Hypothesis forbids while conftests are loaded

    def run(*arguments: str | Path) -> Done:
        capfd.readouterr()
        with pytest.raises(SystemExit) as left:
            main(list(map(str, arguments)), prog_name="streamfuzz")
        assert isinstance(left.value.code, int)
        return Done(left.value.code, *capfd.readouterr())

    return run
