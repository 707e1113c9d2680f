"""The lawful styles of each framing: drawn together, and one by one.

A *change* is one lawful way to depart from :data:`~.style.PLAIN`; the strategy combines changes and the
menu :data:`SINGLE_STYLES` has each by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from .style import PLAIN, Insert, Style

AFTER_EVERYTHING = 1 << 30
"""A line number past the end of any stream."""

_LONG = 100
"""Lines from which on a group is inserted at one place only, and never drawn together with others."""

Changes = Mapping[str, Mapping[str, Any]]

_JSON_CHANGES: Changes = {
    "JSON with spaces": {"separators": (", ", ": ")},
    "escaped non-ASCII": {"ascii": True},
    "escaped slashes": {"escape_slash": True},
    "members in sorted order": {"sort_keys": True},
    "members in reversed order": {"sort_keys": False},
}

_CHANGES: Mapping[str, Changes] = {
    "sse": {
        "CR line ends": {"eols": ("\r",)},
        "CRLF line ends": {"eols": ("\r\n",)},
        "mixed line ends": {"eols": ("\n", "\r\n", "\r")},
        "LF and CRLF in turn": {"eols": ("\n", "\r\n")},
        "byte order mark": {"bom": True},
        "no space after the colon": {"space": False},
        "field names without a colon": {"bare_names": True},
        "data over several lines": {"fold": True, "indent": 0},
        "pretty JSON over several lines": {"fold": True, "indent": 2, "separators": (",", ": ")},
        "CRLF line ends and data over several lines": {"eols": ("\r\n",), "fold": True, "indent": 0},
        "event name after the data": {"event_last": True},
        **_JSON_CHANGES,
    },
    "ndjson": {
        "CRLF line ends": {"eols": ("\r\n",)},
        "mixed line ends": {"eols": ("\n", "\r\n")},
        "no final line end": {"final_eol": False},
        **_JSON_CHANGES,
    },
    "json": {
        "pretty JSON": {"indent": 2, "separators": (",", ": ")},
        "JSON over several lines": {"indent": 0},
        **_JSON_CHANGES,
    },
}

_INSERTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "sse": {
        "a comment": (": ping",),
        "a bare colon comment": (":",),
        "a comment with a blank line": (": keep-alive", ""),
        "a bare colon comment with a blank line": (":", ""),
        "a comment that looks like data": (": data: x",),
        "a comment without a space": (":data: x",),
        "blank lines": ("", ""),
        "an unknown field": ("foo: bar",),
        "a line without a colon": ("foo",),
        "a field name in capitals": ("Data: x",),
        "an indented field name": (" data: x",),
        "an id field": ("id: 7",),
        "an id field with a blank line": ("id: 8", ""),
        "an empty id field": ("id",),
        "an event name without data": ("event: x", ""),
        "hundreds of keep-alives": (":", "") * 320,
        "a retry field": ("retry: 10",),
        "a retry field with a blank line": ("retry: 10", ""),
        "a retry field that is no number": ("retry: x",),
    },
    "ndjson": {"a blank line": ("",), "blank lines": ("", "")},
    "json": {},
}
"""Groups of whole lines that change no frame's data or name wherever they stand."""

_LINES = (0, 1, 4, AFTER_EVERYTHING)
"""Where the menu inserts: first, inside a frame of two lines or of three, in a later frame, and last."""


def _single(framing_name: str) -> tuple[tuple[str, Style], ...]:
    made = [(name, replace(PLAIN, **change)) for name, change in _CHANGES[framing_name].items()]
    for name, group in _INSERTS[framing_name].items():
        places = _LINES if len(group) < _LONG else _LINES[1:2]
        made.append((name, replace(PLAIN, inserts=tuple((at, line) for at in places for line in group))))
    return tuple(made)


SINGLE_STYLES: Mapping[str, tuple[tuple[str, Style], ...]] = {name: _single(name) for name in _CHANGES}
"""For each framing, every lawful change by itself: its name in plain words and the style."""


@lru_cache(maxsize=64)
def styles(framing_name: str, *, lines: int = 8) -> st.SearchStrategy[Style]:
    """Lawful styles of a framing, most with several changes at once; they shrink to the plain one.

    Args:
        framing_name: ``sse``, ``ndjson`` or ``json``.
        lines: lines are inserted before the lines with the numbers 0 to ``lines`` of the plain stream.

    Raises:
        LookupError: no such framing.
    """
    if framing_name not in _CHANGES:
        raise LookupError(f"unknown framing {framing_name!r}; known: {', '.join(sorted(_CHANGES))}")
    changes = st.lists(st.sampled_from(tuple(_CHANGES[framing_name].values())), max_size=4)
    groups = tuple(group for group in _INSERTS[framing_name].values() if len(group) < _LONG)
    if not groups:
        return changes.map(_styled)
    inserts = st.lists(st.tuples(st.integers(0, lines), st.sampled_from(groups)), max_size=4)
    return st.builds(_styled, changes, inserts)


def _styled(changes: list[Mapping[str, Any]], groups: Sequence[tuple[int, tuple[str, ...]]] = ()) -> Style:
    style = PLAIN
    for change in changes:
        style = replace(style, **change)
    inserts: tuple[Insert, ...] = tuple((at, line) for at, group in groups for line in group)
    return replace(style, inserts=inserts)
