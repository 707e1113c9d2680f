"""A case as sentences, one for each chunk, for those who hear it or read it in Braille: no columns, no signs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import accumulate, pairwise
from typing import Any

from streamfuzz_strategies import providers
from streamfuzz_strategies.wire import Wire

from ..case import Case
from ..legible import exact, halved, standing
from ..trace import Trace
from . import PROBES
from .items import item
from .tokens import Spelling, Token, boundary, divided
from .told import by_chunk, ended, given

LONGEST = 400
"""Characters of one chunk, or of one thing given out, that are told before its middle is left out."""

CHUNKS = 100
"""Chunks that are told before those in the middle are left out."""


def sentences(
    case: Case,
    *,
    trace: Trace | None = None,
    marks: Sequence[int] = (),
    ascii: bool = False,  # noqa: A002 - the word for it
    whole: bool = False,
) -> list[str]:
    """Tell a case.

    Args:
        case: what to tell.
        trace: what the target did with it; what it gave out is then told with each chunk.
        marks: what to point at, as for :func:`.draw`.
        ascii: use nothing but ASCII.
        whole: leave nothing out.

    Returns:
        Sentences without line ends and as long as they need to be, free of control characters.
    """
    teller = _Teller(case, trace, frozenset(marks), ascii, whole)
    lines = [PROBES[case.probe]] if case.probe else []
    if case.other:
        lines += ["The first stream:", *teller.stream(case.chunks, ran=True), "The second stream:"]
        return [*lines, *teller.stream(case.other, ran=False)]
    return lines if case.probe and not case.chunks else [*lines, *teller.stream(case.chunks, ran=True)]


class _Teller:
    def __init__(self, case: Case, trace: Trace | None, marks: Set[int], plain: bool, whole: bool) -> None:
        self.case, self.trace, self.marks, self.plain, self.whole = case, trace, marks, plain, whole
        self.given = by_chunk(trace)

    def stream(self, chunks: Sequence[Any], *, ran: bool) -> Iterator[str]:
        """The sentences of a stream; ``ran``: it is the one that the target was given."""
        told = list(self._chunks(chunks) if self._cuttable else self._items(chunks))
        left_out = range(0) if self.whole else range(CHUNKS * 2 // 3, len(told) - CHUNKS // 3)
        one = "chunk" if self._cuttable else self.case.takes[:-1]
        yield from self._gave(0, f"Before the first {one}") if ran else ()
        for index, sentence in enumerate(told):
            if index == left_out.start and left_out:
                yield f"{len(left_out)} {one}s are left out here."
            if index not in left_out:
                yield sentence
                yield from self._gave(index + 1, f"After {one} {index + 1}") if ran else ()
        yield from self._end(chunks, ran)

    @property
    def _cuttable(self) -> bool:
        return self.case.takes in ("bytes", "text")

    def _chunks(self, chunks: Sequence[Any]) -> Iterator[str]:
        pieces = [chunk if isinstance(chunk, bytes) else chunk.encode("utf-8", "surrogatepass") for chunk in chunks]
        data = b"".join(pieces)
        starts = [0, *accumulate(map(len, pieces))]
        cuts = frozenset(at for at in starts[1:] if 0 < at < len(data))
        spelling = Spelling(cuts, self.case.takes == "text", self.plain, "")
        wire = Wire(data, providers.get(self.case.provider).framing)
        for number, (start, stop) in enumerate(pairwise(starts), 1):
            if start == stop:
                yield f"Chunk {number}, at byte {start}, is empty."
                continue
            where = f"byte {start}" if stop == start + 1 else f"bytes {start} to {stop - 1}"
            ends = f", cut off {wire.place(stop)}{self._divided(data, cuts, stop)}" if stop in cuts else ""
            here = sorted(mark for mark in self.marks if start <= mark < stop)
            points = f", marked at {', '.join(map(str, here))}" if here else ""
            yield f"Chunk {number}, {where}{ends}{points}: {self._spelled(spelling, data, start, stop)}"

    def _spelled(self, spelling: Spelling, data: bytes, start: int, stop: int) -> str:
        if self.whole or stop - start <= LONGEST:
            return "".join(map(_unmistakable, spelling.tokens(data, start, stop)))
        first, last = boundary(data, start + LONGEST // 2), boundary(data, stop - LONGEST // 2)
        head, tail = self._spelled(spelling, data, start, first), self._spelled(spelling, data, last, stop)
        return f"{head} ({last - first} bytes are left out here) {tail}"

    def _divided(self, data: bytes, cuts: Set[int], offset: int) -> str:
        parts = divided(data, cuts, offset)
        return f" ({standing(parts[0], self.plain)} is {', then '.join(parts[1])})" if parts is not None else ""

    def _items(self, items: Sequence[Any]) -> Iterator[str]:
        for index, one in enumerate(items):
            here = ", marked" if index in self.marks else ""
            text = exact(item(one, self.plain), self.plain)
            yield f"{self.case.takes[:-1].capitalize()} {index + 1}{here}: {self._cropped(text)}"

    def _gave(self, after: int, when: str) -> list[str]:
        told = ", then ".join(exact(given(one, self.plain), self.plain) for one in self.given.get(after, ()))
        return [f"{when}, the target had given out: {self._cropped(told)}"] if told else []

    def _end(self, chunks: Sequence[Any], ran: bool) -> Iterator[str]:
        length = sum(map(_length, chunks)) if self._cuttable else len(chunks)
        marked = ", marked" if ran and length in self.marks else ""
        how = {"eof": "The stream ends", "reset": "The connection is reset"}[self.case.end]
        yield f"{how} after {length} {'bytes' if self._cuttable else self.case.takes}{marked}."
        if self.trace is None or not ran:
            return
        yield from self._gave(len(chunks) + 1, "After that")
        if not self.given:
            yield "The target gave out nothing on the way."
        yield f"The target {self._cropped(exact(ended(self.trace, self.case, self.plain), self.plain))}"

    def _cropped(self, text: str) -> str:
        return cropped(text, self.whole)


def cropped(text: str, whole: bool) -> str:
    """A text without its middle where that is long, unless the whole is wanted."""
    head, out, tail = halved(text, LONGEST)
    return text if whole or not out else f"{head} ({out} characters are left out here) {tail}"


def _unmistakable(token: Token) -> str:
    r"""A token as it is told: line ends by their bytes, since nothing but a row tells them from the ``\n`` of JSON."""
    if token.role != "escape" or token.text[1] not in "rn":
        return token.text
    return token.text.replace(r"\r", r"\x0D").replace(r"\n", r"\x0A")


def _length(chunk: bytes | str) -> int:
    return len(chunk if isinstance(chunk, bytes) else chunk.encode("utf-8", "surrogatepass"))
