"""Hostile model text, and the many ways to slice it.

Text is drawn from *morsels*: short strings each of which is known to break some reader.  Drawing whole
morsels is far quicker than drawing characters and still shrinks to the plain ``a``.
"""

from __future__ import annotations

from functools import lru_cache

from hypothesis import strategies as st

from .providers.base import Alphabet, Draw, Drawing

WORDS = ("a", "b", " ", "hello", " world", "0", "x y", "\n", "1.5", "the ", "end.")
"""Harmless text."""

UNICODE = (
    "\u00e9",  # 2 bytes
    "\u4f60\u597d",  # 3 bytes each
    "\U0001f600",  # 4 bytes
    "\U0001f469\u200d\U0001f4bb",  # emoji joined by U+200D
    "e\u0301",  # combining accent
    "\u202ereversed\u202c",  # bidirectional override
    "\ufeff",  # a byte order mark that is text
    "\u00a0",
    "\ufffd",  # a real replacement character
    "\x7f",
)
"""Every UTF-8 length, combining and bidirectional characters."""

NOT_LINE_ENDS = ("\u0085", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x00")
"""What str.splitlines takes for a line end and the framings do not, and NUL."""

FRAMING_LOOKALIKES = (
    "data: x",
    "data:",
    "\n\n",
    "\r\n",
    "\r",
    "[DONE]",
    "data: [DONE]\n\n",
    "event: error\n",
    ": comment",
    "id: 7",
    "message_stop",
)
"""Text that looks like the framing which carries it."""

JSON_LOOKALIKES = (
    *('"', "\\", '{"a": [1', "}]", "null", "\\u0041", "\\n", "/", "'", "```json\n{}\n```", "\t"),
    '{"a":"\\ud83d\\ude00\\n"}',
)
"""Text that needs escapes, or is JSON inside JSON."""

EDGES = ("\n", "a", " ", "\t", "a\n", " a", "\n\n")
"""White space, which readers that trim take away at the edges."""

HOSTILE = WORDS + UNICODE + NOT_LINE_ENDS + FRAMING_LOOKALIKES + JSON_LOOKALIKES + EDGES

FAMILIES = {
    "words": WORDS,
    "unicode": WORDS[:3] + UNICODE,
    "not line ends": WORDS[:3] + NOT_LINE_ENDS,
    "framing": WORDS[:3] + FRAMING_LOOKALIKES,
    "edges": EDGES,
    "json": WORDS[:3] + JSON_LOOKALIKES,
    "everything": HOSTILE,
}


@lru_cache(maxsize=64)
def _morsels(alphabet: Alphabet) -> st.SearchStrategy[list[str]]:
    if isinstance(alphabet, tuple):
        return st.lists(st.sampled_from(alphabet), min_size=1, max_size=5)
    if alphabet is not None:
        return st.lists(st.text(alphabet=alphabet, min_size=1, max_size=4), min_size=1, max_size=4)
    return st.one_of(*(st.lists(st.sampled_from(family), min_size=1, max_size=5) for family in FAMILIES.values()))


_ANYTHING = Drawing()


def texts(drawing: Drawing = _ANYTHING, *, min_size: int = 1) -> st.SearchStrategy[str]:
    """Model text: non-empty by default, hostile unless ``drawing.alphabet`` says what it is made of."""
    made = _morsels(drawing.alphabet).map("".join)
    return made if min_size else st.one_of(st.just(""), made)


_SLICING = st.sampled_from(("whole", "few", "few", "characters", "empties"))


def slice_text(draw: Draw, text: str, *, max_pieces: int = 12) -> list[str]:
    """Draw one way to stream ``text``: pieces, some of them perhaps empty, that concatenate to it."""
    how = draw(_SLICING)
    if how == "whole" or not text:
        return [text]
    if how == "characters" and len(text) <= max_pieces:
        return list(text)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), min_size=1, max_size=min(4, max_pieces - 1))))
    if how != "empties":
        cuts = sorted({c for c in cuts if 0 < c < len(text)})
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
