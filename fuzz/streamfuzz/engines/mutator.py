"""How inputs are changed on the way through libFuzzer: edits of events, of one value, of bytes, and of cuts.

Raw byte mutations seldom leave a stream a stream.  So a stream that parses is mostly changed as one: the same
edits that the sweep enumerates are drawn here, and what an edit does not touch keeps its bytes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import chain, pairwise
from random import Random
from typing import TypeAlias

from streamfuzz_strategies import cuts, mutations
from streamfuzz_strategies.judge import Reading
from streamfuzz_strategies.mutations import BYTE_EDITS, EVENT_EDITS, Mutation
from streamfuzz_strategies.providers import Provider, get
from streamfuzz_strategies.stream import Event, Stream
from streamfuzz_strategies.wire import Wire

from .fuzz_input import Input, decode, encode

Mutate: TypeAlias = Callable[[bytes, int], bytes]
"""libFuzzer's own mutations: bytes, and the most that may come of them."""

RESTYLE = "write it in another style"

_STRING = re.compile(rb'"((?:[^"\\]|\\.)+)"', re.DOTALL)

_IN_STRINGS = 0.8
"""How often a mutated value is a JSON string, where there is one, rather than all of its line."""

_CROSSED = 0.25
"""How often two inputs are crossed when libFuzzer asks for it."""

_AT_START = 0.6
"""How often a word is written at the beginning of a value rather than anywhere in it."""

_TRAIL = 8
"""How many words are remembered that were written last, and of those that led to new code."""

_FOLLOWED = 0.5
"""How often a word is written behind one of those."""

_ROOM = 16
"""Bytes by which a value may grow at once, beside doubling."""

_MOST_CUTS = 32
"""Cuts from which on a new one takes the place of all others."""


def spans(provider: Provider, data: bytes) -> tuple[bytes, ...]:
    """The bytes of each frame with all lines before it, and last those after the last frame, if there are any."""
    stops: dict[int, int] = {}
    for line in provider.framing.lines(data):
        stops[line.frame] = line.stop
    return tuple(data[start:stop] for start, stop in pairwise((0, *stops.values())))


@lru_cache(maxsize=256)
def _menu(name: str, count: int) -> tuple[Mutation, ...]:
    """Everything that the menus offer for a stream of so many events."""
    provider, stream = get(name), Stream(name, tuple(Event({}) for _ in range(count)))
    return tuple(chain(mutations.rewritings(provider, stream), mutations.damage(provider, stream)))


class Mutator:
    """Changes inputs; which change is made depends on the seed alone, and on libFuzzer's own mutations.

    Args:
        provider: whose streams the inputs are.
        mutate: libFuzzer's own mutations.
        words: what may be worth writing into a value.
    """

    def __init__(self, provider: Provider, mutate: Mutate, words: Sequence[bytes] = ()) -> None:
        self.provider = provider
        self.mutate = mutate
        self.words = tuple(words)
        # The last inputs into which a word was written, each with where the word ends.
        self.written: deque[tuple[bytes, int]] = deque(maxlen=_TRAIL)
        self.trail: deque[tuple[bytes, int]] = deque(maxlen=_TRAIL)
        word = (self._word,) * 3 if words else ()
        self.changes = (self._bytes, self._bytes, *word, self._value, self._value, self._edit, self._cut)
        self.cuttings = (
            self._fewer,
            self._everywhere,
            self._other_end,
            self._aside,
            self._anywhere,
            self._where_readers_break,
            self._empty,
        )

    def change(self, raw: bytes, limit: int, seed: int) -> bytes:
        """Another input, of at most ``limit`` bytes."""
        random = Random(seed)
        given = decode(raw)
        with suppress(ValueError):  # an edit that this framing cannot spell
            return encode(random.choice(self.changes)(given, limit, random))[:limit]
        return self.mutate(raw, limit)

    def cross(self, raw: bytes, other: bytes, limit: int, seed: int) -> bytes:
        """The beginning of one stream and the end of another, joined between frames if they have any.

        libFuzzer would cross as often as it changes, which is far too often, so most of the time it is a change.
        """
        random = Random(seed)
        if random.random() >= _CROSSED:
            return self.change(raw, limit, seed)
        one, two = decode(raw), decode(other)
        head, tail = spans(self.provider, one.data), spans(self.provider, two.data)
        if len(head) > 1 and len(tail) > 1:
            kept, added = head[: random.randrange(len(head))], tail[random.randrange(len(tail)) :]
            data = b"".join((*kept, *added))
        else:
            data = one.data[: random.randint(0, len(one.data))] + two.data[random.randint(0, len(two.data)) :]
        return encode(_with(random.choice((one, two)), data))[:limit]

    def _bytes(self, given: Input, limit: int, random: Random) -> Input:
        return _with(given, self.mutate(given.data, max(limit, 1)))

    def _value(self, given: Input, limit: int, random: Random) -> Input:
        """Let libFuzzer mutate one value; all around it stays."""
        data = given.data
        start, stop = self._place(data, random)
        changed = self.mutate(data[start:stop], 2 * (stop - start) + _ROOM)
        return _with(given, data[:start] + changed + data[stop:])

    def _word(self, given: Input, limit: int, random: Random) -> Input:
        """Write a word into a value: in place of all of it, at its beginning, or anywhere in it.

        Or right behind a word that led to new code, for what compares one thing will compare the next.
        """
        word = random.choice(self.words)
        if self.trail and random.random() < _FOLLOWED:
            raw, start = random.choice(self.trail)
            given = decode(raw)
            stop = min(len(given.data), start + len(word))
            at = start
        else:
            start, stop = self._place(given.data, random)
            at = start if random.random() < _AT_START else random.randint(start, stop)
        data = given.data
        after = random.choice((stop, min(stop, at + len(word)), at))
        changed = _with(given, data[:at] + word + data[after:])
        self.written.append((encode(changed), at + len(word)))
        return changed

    def kept(self, raw: bytes) -> None:
        """Learn that libFuzzer keeps an input because it reached new code."""
        self.trail += [place for place in self.written if place[0] == raw and place not in self.trail]

    def _place(self, data: bytes, random: Random) -> tuple[int, int]:
        """Where some value begins and ends: that of a line, each kind of line as often, or a JSON string in it."""
        kinds: dict[str, list[tuple[int, int]]] = {}
        for line in self.provider.framing.lines(data):
            if line.value < line.end:
                kinds.setdefault(line.kind, []).append((line.value, line.end))
        if not kinds:
            return 0, len(data)
        start, stop = random.choice(random.choice(list(kinds.values())))
        strings = [match.span(1) for match in _STRING.finditer(data, start, stop)]
        return random.choice(strings) if strings and random.random() < _IN_STRINGS else (start, stop)

    def _edit(self, given: Input, limit: int, random: Random) -> Input:
        """One edit of the menus: a rewriting, or damage."""
        data, events = given.data, Reading(self.provider, given.data).events
        mutation = random.choice(_menu(self.provider.name, len(events)))
        if mutation.name in BYTE_EDITS:
            return _with(given, BYTE_EDITS[mutation.name](data, *mutation.args))
        edited = EVENT_EDITS[mutation.name](self.provider, Stream(self.provider.name, events), *mutation.args)
        parts = spans(self.provider, data)
        rest = b"".join(parts[len(events) :])
        if mutation.name == RESTYLE:
            return _with(given, mutations.encode(self.provider, edited) + rest)
        kept = dict(zip(map(id, events), parts, strict=False))
        written = (kept[id(event)] if id(event) in kept else self._written(event) for event in edited.events)
        return _with(given, b"".join((*written, rest)))

    def _written(self, event: Event) -> bytes:
        return mutations.encode(self.provider, Stream(self.provider.name, (event,)))

    def _cut(self, given: Input, limit: int, random: Random) -> Input:
        """Other cuts, or another end; the bytes stay."""
        return random.choice(self.cuttings)(given, random)

    def _fewer(self, given: Input, random: Random) -> Input:
        return replace(given, cuts=given.cuts[:: random.randint(2, 8)] if random.random() < 0.5 else cuts.WHOLE)

    def _everywhere(self, given: Input, random: Random) -> Input:
        return replace(given, cuts=cuts.every_byte(len(given.data)))

    def _other_end(self, given: Input, random: Random) -> Input:
        return replace(given, end="reset" if given.end == "eof" else "eof")

    def _aside(self, given: Input, random: Random) -> Input:
        size, by = len(given.data), random.choice((-2, -1, 1, 2))
        moving = random.randrange(len(given.cuts) or 1)
        moved = (min(size, max(0, at + by)) if i == moving else at for i, at in enumerate(given.cuts))
        return replace(given, cuts=tuple(sorted(moved)))

    def _anywhere(self, given: Input, random: Random) -> Input:
        return self._cut_at(given, random.randint(0, len(given.data)))

    def _where_readers_break(self, given: Input, random: Random) -> Input:
        spots = cuts.hostile(Wire(given.data, self.provider.framing))
        return self._cut_at(given, random.choice(spots)) if spots else given

    def _empty(self, given: Input, random: Random) -> Input:
        return self._cut_at(given, random.choice(given.cuts)) if given.cuts else given

    def _cut_at(self, given: Input, offset: int) -> Input:
        kept = given.cuts if len(given.cuts) < _MOST_CUTS else cuts.WHOLE
        return replace(given, cuts=tuple(sorted((*kept, offset))))


def _with(given: Input, data: bytes) -> Input:
    """The input with other bytes; its cuts stay where they are, as far as there is something to cut."""
    if given.cuts and given.cuts == cuts.every_byte(len(given.data)):
        return replace(given, data=data, cuts=cuts.every_byte(len(data)))
    return replace(given, data=data, cuts=tuple(offset for offset in given.cuts if offset <= len(data)))
