"""Being asked to stop: the first Ctrl-C or SIGTERM sets a flag, and the work ends at the next safe place.

An exception out of a signal handler comes up anywhere: inside Hypothesis, which may take it for a failure, or
inside a callback of the garbage collector, where Python drops it.  A flag does neither.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """A flag that is set once; calling it tells whether it is."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        """Say whether someone asked."""
        return self.asked

    def ask(self) -> None:
        """Ask to stop."""
        self.asked = True


@contextmanager
def on_signals() -> Iterator[Stop]:
    """Turn the first SIGINT or SIGTERM into a flag; the second does what it did before.

    Elsewhere than on the main thread no signal can be handled, so the flag is only ever set by :meth:`Stop.ask`.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def handle(number: int, frame: FrameType | None) -> None:
        stop.ask()
        restore()

    def restore() -> None:
        for number, handler in before.items():
            # A handler that was not installed from Python cannot be put back.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    for number in numbers:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        restore()
