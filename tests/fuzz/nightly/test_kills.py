"""A job that is killed, again and again, leaves only whole files and loses nothing that it had found before."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from streamfuzz.nightly.store import Store

ROOT = Path(__file__).parents[3]
KILLS = 100
AT_ONCE = 2
LONGEST = 0.8
"""Seconds that a job may search before it is killed."""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kill -9 is POSIX")


def signatures(store: Store) -> set[str]:
    found = {file.found.signature for _, file in store.cases("sseclient-py") if file.found is not None}
    assert store.skipped == ()
    return found


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            time.sleep(0.001)


def test_a_hundred_kills_leave_whole_files_and_lose_nothing(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    chance = random.Random(1)
    known: set[str] = set()
    command = [sys.executable, "-m", "tests.fuzz.nightly.victim", str(corpus)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as victims:
        assert victims.stdin is not None
        assert victims.stdout is not None
        for number in range(0, KILLS, AT_ONCE):
            for seed in range(number, number + AT_ONCE):
                print(seed, file=victims.stdin, flush=True)
            begun = [int(victims.stdout.readline()) for _ in range(AT_ONCE)]
            time.sleep(chance.uniform(0.0, LONGEST))
            for pid in begun:
                kill(pid)
            store = Store.open(corpus)
            now = signatures(store)
            assert known <= now
            known = now
            store.nights()
            assert store.skipped == ()
    assert len(known) >= 2
    assert all(not record.finished for record in Store.open(corpus).nights())
