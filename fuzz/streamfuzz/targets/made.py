"""What an adapter makes: code in the shape that a target calls, with what the library says about its errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..spec import Shape


@dataclass(frozen=True, slots=True)
class Made:
    """An adapter, without what the table of ready targets says about it; see :class:`~..target.Target`."""

    call: Callable[..., Any]
    errors: tuple[type[BaseException], ...] = ()
    shape: Shape = "iterable"
    whole: Callable[[Any], Any] | None = None
    closes_source: bool = False
