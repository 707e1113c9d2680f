"""Goals: everything that a search should have tried on a target before its silence means something."""

from __future__ import annotations

from collections.abc import Mapping

from streamfuzz_strategies.mutations import BYTE_EDITS, EVENT_EDITS
from streamfuzz_strategies.styles import SINGLE_STYLES
from streamfuzz_strategies.wire import PLACES

from ..bench import Bench
from ..case import PROBES
from ..spec import Target


def goals(bench: Bench) -> tuple[str, ...]:
    """Everything that a sweep of this target can reach, by name."""
    provider, target = bench.provider, bench.target
    named = [f"probe: {probe}" for probe in PROBES if probe and fits(bench, probe)]
    one_event = provider.framing.name == "json"
    edits = (*EVENT_EDITS, *BYTE_EDITS) if target.takes in ("bytes", "text") else tuple(EVENT_EDITS)
    names = [name for name in edits if name in _DAMAGES]
    named += [f"damage: {name}" for name in names if not (one_event and name == "swap two events")]
    named += [f"dialect: {name}" for name in dialects_of(target)]
    if target.takes in ("bytes", "text"):
        named += [f"cut {place}" for place in PLACES[provider.framing.name] if _can_cut(place, bench)]
        named += [f"style: {name}" for name, _ in SINGLE_STYLES[provider.framing.name]]
        named += ["rewriting: insert an event that means nothing"] if provider.noise else []
        named += ["empty chunks", "one byte a chunk", "truncated", "connection reset"]
    return tuple(named)


def dialects_of(target: Target) -> Mapping[str, tuple[str, ...]]:
    """The dialects that a target is tried in: each by its name, and all of them as one."""
    alone = {name: (name,) for name in target.dialects}
    return {**alone, "all together": target.dialects} if len(alone) > 1 else alone


_DAMAGES = ("drop an event", "repeat an event", "swap two events", "cut a payload short", "send something else")


def _can_cut(place: str, bench: Bench) -> bool:
    """Whether lawful streams for the target have such a place."""
    if bench.target.takes == "text" and place.endswith("character"):
        return False
    provider = bench.provider
    lacking = {
        "inside a broken character": True,
        "inside a blank line": True,
        "inside a text value": not provider.text_payloads,
        "inside the [DONE] sentinel": provider.sentinel is None,
        "inside the byte order mark": provider.framing.name != "sse",
        "after the byte order mark": provider.framing.name != "sse",
    }
    return not lacking.get(place, False)


def fits(bench: Bench, probe: str) -> bool:
    """Whether an experiment can be made with a target."""
    target, provider = bench.target, bench.provider
    if target.takes not in ("bytes", "text"):
        return False
    if probe == "parity":
        return target.whole is not None and provider.body is not None
    if probe == "resliced":
        return target.gives == "reply"
    if probe == "released":
        return target.shape == "iterable"
    return True
