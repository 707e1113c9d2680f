"""The code under test, as a value: what it takes, what it gives, and how it is called."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from streamfuzz_strategies import dialects as spoken
from streamfuzz_strategies import providers

Form: TypeAlias = Literal["bytes", "text", "frames", "events", "reply", "json"]
Shape: TypeAlias = Literal["iterable", "async", "push"]

TAKES: tuple[Form, ...] = ("bytes", "text", "frames", "events")
GIVES: tuple[Form, ...] = ("frames", "events", "reply", "json")


class UsageError(Exception):
    """The user asked for something that cannot be done; the message says what to do.  Exit code 2."""


@dataclass(frozen=True, slots=True)
class Incomplete:
    """Return this from a target to say that the stream ended before the message did."""

    view: Any = None


@dataclass(frozen=True, slots=True)
class Delta:
    """Yield this (or a plain ``str``) to show new text: a piece of the view field ``field``."""

    text: str
    field: str = "text"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Yield this to show the whole view so far."""

    view: Any


@dataclass(frozen=True, slots=True)
class Release:
    """Yield this at the moment when a tool call is acted on: a mapping of ``id``, ``name``, ``arguments``."""

    call: Any


@dataclass(frozen=True, slots=True)
class Final:
    """Yield this when the message is reported as complete before the target itself ends."""

    view: Any


@dataclass(frozen=True, slots=True)
class Known:
    """A deviation that is known and lived with: the signature it excuses, why, and until when."""

    signature: str
    reason: str
    expires: date


@dataclass(frozen=True, slots=True)
class Target:
    """Code under test.

    Attributes:
        name: what findings call it.
        call: the code.  ``iterable``: a callable over an iterable of chunks which returns its result, or is a
            generator that yields progress and returns its result.  ``async``: the same over an async iterable.
            ``push``: a class (or factory) of objects with ``feed(chunk)`` and ``close()``.
        provider: name of the provider or plain profile whose streams it reads.
        takes: the form of its chunks.
        gives: the form of its result.
        shape: how it is called.
        errors: the error types that it raises on purpose.  Empty: any error type counts as meant, except those
            that only a programming mistake raises.
        known: deviations that are known, with reason and expiry date.
        whole: the same code for an answer that was not streamed, taking the JSON body (for ``parity``).
        closes_source: whether the target promises to close its source when it is closed itself.
        timeout: seconds after which one run counts as hung.
        dialects: what it reads besides: names of dialects of its provider.
    """

    name: str
    call: Callable[..., Any]
    provider: str = "openai-chat"
    takes: Form = "bytes"
    gives: Form = "reply"
    shape: Shape = "iterable"
    errors: tuple[type[BaseException], ...] = ()
    known: tuple[Known, ...] = ()
    whole: Callable[[Any], Any] | None = None
    closes_source: bool = False
    timeout: float = 2.0
    dialects: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.call):
            raise UsageError(f"target {self.name!r} is not callable but {type(self.call).__name__}")
        if self.provider not in providers.NAMES:
            raise UsageError(f"unknown provider {self.provider!r}; known: {', '.join(providers.NAMES)}")
        _one_of("takes", self.takes, TAKES)
        _one_of("gives", self.gives, GIVES)
        _one_of("shape", self.shape, get_args(Shape))
        if self.gives == "frames" and self.takes not in ("bytes", "text"):
            raise UsageError(f"a target cannot take {self.takes} and give frames; takes: bytes or text")
        if self.gives == "json" and self.provider != "json":
            raise UsageError("a target that gives json reads the plain profile; use provider='json'")
        if self.gives == "reply" and self.provider in ("sse", "ndjson", "json"):
            raise UsageError(
                f"the plain profile {self.provider!r} has no replies; name a provider or give frames or events"
            )
        self._check_dialects()
        if self.timeout <= 0:
            raise UsageError(f"timeout of target {self.name!r} must be more than 0 seconds, not {self.timeout}")
        for error in self.errors:
            if not (isinstance(error, type) and issubclass(error, BaseException)):
                raise UsageError(f"errors of target {self.name!r} must be exception types, not {error!r}")

    def _check_dialects(self) -> None:
        known = spoken.of(self.provider)
        for dialect in self.dialects:
            if dialect not in known:
                names = ", ".join(known) or "none"
                raise UsageError(f"unknown dialect {dialect!r} of {self.provider}; known: {names}")


def target(
    call: Callable[..., Any],
    *,
    name: str | None = None,
    provider: str = "openai-chat",
    takes: Form = "bytes",
    gives: Form | None = None,
    shape: Shape | None = None,
    errors: tuple[type[BaseException], ...] = (),
    known: tuple[Known, ...] = (),
    whole: Callable[[Any], Any] | None = None,
    closes_source: bool = False,
    timeout: float = 2.0,
    dialects: tuple[str, ...] = (),
) -> Target:
    """Describe a parser or reducer as a :class:`Target`, working out what is not given.

    ``shape`` follows from the code: a class with ``feed`` and ``close`` is pushed to, a coroutine function or
    async generator function is async, anything else is called with an iterable.  ``gives`` is ``json`` for the
    profile ``json``, ``frames`` for ``sse`` and ``ndjson``, else ``reply``.

    Raises:
        UsageError: the description contradicts itself; the message says how to mend it.
    """
    return Target(
        name=name or getattr(call, "__qualname__", None) or type(call).__name__,
        call=call,
        provider=provider,
        takes=takes,
        gives=gives or {"json": "json", "sse": "frames", "ndjson": "frames"}.get(provider, "reply"),  # type: ignore[arg-type]
        shape=shape or _shape(call),
        errors=errors,
        known=known,
        whole=whole if whole is not None else getattr(call, "whole", None),
        closes_source=closes_source,
        timeout=timeout,
        dialects=dialects,
    )


def _shape(call: Any) -> Shape:
    if isinstance(call, type):
        if hasattr(call, "feed") and hasattr(call, "close"):
            return "push"
        return "iterable"
    function = call if inspect.isroutine(call) else getattr(call, "__call__", call)  # noqa: B004
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return "async"
    if asyncio.iscoroutinefunction(call):
        return "async"
    return "iterable"


def _one_of(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{what}={value!r} is not known; choose one of: {', '.join(known)}")


def accepts_one_argument(call: Callable[..., Any], shape: Shape) -> bool:
    """Whether the code can be called the way its shape says, as far as its signature tells."""
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*(() if shape == "push" else (None,)))
    except TypeError:
        return False
    return True


def is_mapping(value: Any) -> bool:
    """Whether a result can be read as a view."""
    return isinstance(value, Mapping)


def source_of(call: Any) -> str | None:
    """Where code is defined, as ``path:line`` below the working directory or absolute; ``None``: not in Python."""
    while isinstance(call, partial):
        call = call.func
    found = inspect.unwrap(call) if callable(call) else call
    if not (inspect.isroutine(found) or inspect.isclass(found)):
        found = type(found)
    try:
        path, line = inspect.getsourcefile(found), inspect.getsourcelines(found)[1]
    except (OSError, TypeError):
        return None
    if path is None:
        return None
    absolute, here = Path(path).resolve(), Path.cwd()
    shown = absolute.relative_to(here) if absolute.is_relative_to(here) else absolute
    return f"{shown.as_posix()}:{max(line, 1)}"
