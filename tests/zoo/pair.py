"""A planted bug: a parser as an ordinary developer would write it, its one fault, and its repaired twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamfuzz.spec import Target, target


@dataclass(frozen=True)
class Pair:
    """One planted bug.

    ``faulty`` and ``repaired`` are targets of the same shape (a callable over an iterable of chunks, an async
    one, or a push class).  ``trigger`` is the shortest stream, in chunks, on which ``faulty`` goes wrong, made
    by hand; ``oracle`` is the invariant that it breaks there, ``rule`` the rule of the stream that is at stake
    where there is one.
    """

    name: str
    url: str
    bug: str
    provider: str
    gives: str
    oracle: str
    faulty: Callable[..., Any]
    repaired: Callable[..., Any]
    trigger: tuple[Any, ...]
    takes: str = "bytes"
    end: str = "eof"
    rule: str = ""
    errors: tuple[type[BaseException], ...] = ()

    def target(self, which: str) -> Target:
        """One of the twins as a target of the harness."""
        return target(
            getattr(self, which),
            name=f"{self.name}-{which}",
            provider=self.provider,
            takes=self.takes,
            gives=self.gives,
            errors=self.errors,
            closes_source=self.oracle == "released",
        )
