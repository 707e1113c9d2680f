"""Jobs that are meant to be killed: real ones on one corpus, their tasks done in their own process.

``python -m tests.fuzz.nightly.victim CORPUS`` forks a job for each seed that it reads, so that a hundred of them
import once; each prints its process id when it begins to search.
"""

from __future__ import annotations

import os
import signal
import sys

from streamfuzz.config import Recipe
from streamfuzz.nightly import job, tasks
from streamfuzz.nightly.history import History
from streamfuzz.nightly.keeper import Keeper
from streamfuzz.nightly.settings import settings
from streamfuzz.nightly.store import Store
from streamfuzz.stopping import Stop

from .hands import Hands


def search(corpus: str, seed: int) -> None:
    """Search a decoder that has some bugs until killed."""
    job.SHARD = job.SHORTEST = 0.1
    store = Store.open(corpus)
    asked = settings("batch", targets=["sseclient-py"], corpus=corpus, time="600s", seed=seed)
    os.write(1, b"%d\n" % os.getpid())  # in one piece
    job.Job(asked, Keeper(store), History(store.nights()), Hands(), lambda happening: None, Stop()).run()  # type: ignore[arg-type]


def main(corpus: str) -> None:
    """Fork a job for each line, a seed, of the standard input."""
    tasks.search(tasks.Shard(tasks.Field(Recipe("sseclient-py"), "sse"), 1, 500, 1e-4), 10.0)  # imports and caches
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for who was killed
    for line in sys.stdin:
        if os.fork() == 0:
            search(corpus, int(line))
            os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
