"""A job that is meant to be killed: the real one on a corpus given on the command line, its tasks done in its process.

``python -m tests.fuzz.nightly.victim CORPUS SEED`` prints a line once it has begun to search.
"""

from __future__ import annotations

import sys

from streamfuzz.nightly import job
from streamfuzz.nightly.history import History
from streamfuzz.nightly.keeper import Keeper
from streamfuzz.nightly.settings import settings
from streamfuzz.nightly.store import Store
from streamfuzz.stopping import Stop

from .hands import Hands


def main(corpus: str, seed: int) -> None:
    """Search a decoder that has some bugs until killed."""
    job.SHARD = job.SHORTEST = 0.2
    store = Store.open(corpus)
    asked = settings("batch", targets=["sseclient-py"], corpus=corpus, time="600s", seed=seed)
    print("begun", flush=True)
    job.Job(asked, Keeper(store), History(store.nights()), Hands(), lambda happening: None, Stop()).run()  # type: ignore[arg-type]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
