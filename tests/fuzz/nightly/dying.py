"""Targets that take their process down, written into a project of their own by the tests."""

from __future__ import annotations

SOURCE = '''
"""Readers of chat streams, each with a way to end its process."""

import collections
import ctypes
import itertools
import os
import sys
import threading
import time

from streamfuzz.demo import StreamError, repaired
from streamfuzz.spec import Release, target

KEPT = []
CALLS = []


def spin():
    """Runs in C, where no signal of Python's is heard, and holds on to the interpreter."""
    collections.deque(itertools.repeat(0), maxlen=0)


def at_a_line_end(end, last=False):
    def parser(chunks):
        chunks = list(chunks)
        if len(chunks) == 2 and (chunks[1] == b"\\n" if last else chunks[1][:1] == b"\\n"):
            end()
        return repaired(chunks)

    return target(parser, name="mine", errors=(StreamError,))


segfaults = at_a_line_end(lambda: ctypes.string_at(0))
exits = at_a_line_end(lambda: os._exit(3))
exits_at_the_last = at_a_line_end(lambda: os._exit(3), last=True)
spins = at_a_line_end(spin, last=True)
eats = at_a_line_end(lambda: bytearray(10**10))
hides = at_a_line_end(lambda: os.closerange(3, 1000))


def always_dies(chunks):
    os._exit(4)


def dies_after_a_while(chunks):
    CALLS.append(1)
    if len(CALLS) == 150:
        os._exit(5)
    return repaired(chunks)


def loses_text_and_dies(chunks):
    chunks = list(chunks)
    if len(chunks) == 2 and chunks[1][:1] == b"\\n":
        os._exit(3)
    return {**repaired(chunks), "text": ""}


def keeps_everything(chunks):
    KEPT.append(b"".join(chunks) * 30)
    return repaired([KEPT[-1][: len(KEPT[-1]) // 30]])


def chatty(chunks):
    print("printed")
    print("warned", file=sys.stderr)
    os.write(1, b"written")
    return repaired(chunks)


def sound(chunks):
    return repaired(chunks)


class Odd:
    def __reduce__(self):
        raise TypeError("never sent")

    def __repr__(self):
        raise ValueError("never shown")


def odd(chunks):
    return {**repaired(chunks), "text": "x", "usage": Odd(), "id": Odd()}
'''
