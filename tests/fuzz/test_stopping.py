from __future__ import annotations

import signal
import threading

import pytest

from streamfuzz.stopping import on_signals

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@BOTH
def test_the_first_signal_asks_and_the_second_does_what_it_did_before(number: signal.Signals) -> None:
    heard: list[int] = []
    before = signal.signal(number, lambda number, frame: heard.append(number))
    try:
        with on_signals() as stop:
            assert not stop()
            signal.raise_signal(number)
            assert (stop(), heard) == (True, [])
            signal.raise_signal(number)
            assert heard == [number]
    finally:
        signal.signal(number, before)


@BOTH
def test_handlers_are_put_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with on_signals():
        assert signal.getsignal(number) is not before
    assert signal.getsignal(number) is before


def test_off_the_main_thread_only_a_call_can_ask() -> None:
    seen = []

    def elsewhere() -> None:
        with on_signals() as stop:
            seen.append(stop())
            stop.ask()
            seen.append(stop())

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [False, True]
    assert signal.getsignal(signal.SIGINT) is before
