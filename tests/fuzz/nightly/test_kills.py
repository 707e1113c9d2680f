"""A job that is killed, again and again, leaves only whole files and loses nothing that it had found before."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streamfuzz.nightly.store import Store

ROOT = Path(__file__).parents[3]
KILLS = 100
AT_ONCE = 2

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kill -9 is POSIX")


def signatures(store: Store) -> set[str]:
    found = {file.found.signature for _, file in store.cases("sseclient-py") if file.found is not None}
    assert store.skipped == ()
    return found


def test_a_hundred_kills_leave_whole_files_and_lose_nothing(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    chance = random.Random(1)
    known: set[str] = set()
    for number in range(0, KILLS, AT_ONCE):
        command = [sys.executable, "-m", "tests.fuzz.nightly.victim", str(corpus)]
        started = time.monotonic()
        victims = [
            subprocess.Popen([*command, str(number + i)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for i in range(AT_ONCE)
        ]
        for victim in victims:
            assert victim.stdout is not None
            assert victim.stdout.readline() == b"begun\n"
        slow = time.monotonic() - started  # the machine may be
        time.sleep(chance.uniform(0.0, 1.2 * slow))
        for victim in victims:
            assert victim.poll() is None, victim.communicate()
            victim.send_signal(signal.SIGKILL)
            victim.communicate()
        store = Store.open(corpus)
        now = signatures(store)
        assert known <= now
        known = now
        store.nights()
        assert store.skipped == ()
    assert len(known) >= 4
    assert all(not record.finished for record in Store.open(corpus).nights())
