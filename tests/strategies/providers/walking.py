"""Walk events through a provider's tables, for tests of providers."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from streamfuzz_strategies.providers import Drawing, Provider, get
from streamfuzz_strategies.rules import Walk
from streamfuzz_strategies.stream import Event, Stream


def breaches(provider: Provider, events: Sequence[Event], *, ended: bool = True) -> list[tuple[str, int]]:
    """The rules that the events break, as (rule id, event index); index -1 is the end of the stream."""
    walk = Walk(provider.machines)
    found = [b for i, event in enumerate(events) for b in walk.step(i, provider.steps(event, walk))]
    if ended:
        found += walk.end()
    return [(b.rule.id, b.index) for b in found]


ANYTHING = Drawing()


@st.composite
def streams(draw, name: str, drawing: Drawing = ANYTHING) -> Stream:
    """Drawn streams of a provider with the reply that they carry."""
    provider = get(name)
    reply = provider.draw_reply(draw, drawing)
    return Stream(name, provider.draw_events(draw, reply, drawing), reply)
