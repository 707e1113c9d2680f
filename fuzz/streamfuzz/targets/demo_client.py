"""The demo parser and the repaired one, see :mod:`..demo`."""

from __future__ import annotations

from ..demo import StreamError, parse, repaired
from .made import Made

MADE = {"demo": Made(parse), "demo-repaired": Made(repaired, errors=(StreamError,))}
