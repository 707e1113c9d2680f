"""Every planted bug as a target with a name, so that another process can make it: ``tests.zoo.named:NAME``.

``faulty_lossy_chunks`` is the faulty twin of the pair ``lossy-chunks``, ``repaired_lossy_chunks`` the other.
"""

from __future__ import annotations

from streamfuzz.spec import Target

from .hunt import PAIRS


def name_of(pair: str, which: str) -> str:
    """The name of a twin in this module."""
    return f"{which}_{pair}".replace("-", "_").replace(" ", "_")


_TARGETS = {name_of(pair.name, which): pair.target(which) for pair in PAIRS for which in ("faulty", "repaired")}


def __getattr__(name: str) -> Target:
    try:
        return _TARGETS[name]
    except KeyError:
        raise AttributeError(name) from None
