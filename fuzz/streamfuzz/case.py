"""One self-contained experiment: a stream in chunks, how it ends, and what is asked of the target with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

import msgspec

from streamfuzz_strategies import providers
from streamfuzz_strategies.judge import End
from streamfuzz_strategies.reply import Json
from streamfuzz_strategies.stream import Event, Frame, Raw, parse_json

from .spec import TAKES, Form, UsageError

FORMAT = 1
"""The version of the case file that this version writes and reads."""

PROBES = ("", "isolated", "released", "resliced", "parity", "growth-long", "growth-many", "leak")
"""What is asked of the target: a plain run, or one of the experiments in :mod:`.probes`."""


@dataclass(frozen=True, slots=True)
class Case:
    """A stream and what to do with it; all that is needed to run the experiment again.

    Attributes:
        provider: whose stream it is.
        takes: the form of the chunks.
        chunks: bytes, text, frames or events, in order.
        end: how the source ends.
        probe: the kind of experiment, one of :data:`PROBES`.
        other: the chunks of the second stream, for the probes that need two.
    """

    provider: str
    chunks: tuple[Any, ...]
    takes: Form = "bytes"
    end: End = "eof"
    probe: str = ""
    other: tuple[Any, ...] = ()

    @property
    def data(self) -> bytes:
        """All bytes of the stream (only for forms ``bytes`` and ``text``)."""
        return joined(self.chunks, self.takes)

    @property
    def size(self) -> int:
        """How big the case is, in bytes of its stream or streams plus one for each cut."""
        return sum(map(_weight, self.chunks)) + sum(map(_weight, self.other)) + len(self.chunks) + len(self.other)


def joined(chunks: Sequence[Any], takes: Form) -> bytes:
    """The bytes that the chunks make together."""
    if takes == "text":
        return "".join(chunks).encode("utf-8", "surrogatepass")
    return b"".join(chunks)


def _weight(chunk: Any) -> int:
    return len(chunk) if isinstance(chunk, (bytes, str)) else len(str(chunk))


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the judge said of the case when it was written."""

    outcome: str
    rule: str | None = None
    reply: Json = None


@dataclass(frozen=True, slots=True)
class Found:
    """Who failed on the case, and how."""

    target: str
    oracle: str
    signature: str
    sentence: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A case with the reason why it is kept."""

    case: Case
    why: str = ""
    expect: Expectation | None = None
    found: Found | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file name: the hash of the experiment, so that equal cases are one file on every machine."""
        return f"{digest(self.case)}.json"


class _Chunk(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A chunk that is not plain text: bytes in hex, one frame, or one event (``json``, or ``text`` if it is none)."""

    hex: str | None = None
    frame: dict[str, Any] | None = None
    event: dict[str, Any] | None = None


class _Expect(msgspec.Struct, forbid_unknown_fields=True):
    outcome: str
    rule: str | None = None
    reply: Any = None


class _Found(msgspec.Struct, forbid_unknown_fields=True):
    target: str
    oracle: str
    signature: str
    sentence: str
    how: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """A streamfuzz case file."""

    format: int
    provider: str
    takes: str
    chunks: list[str | _Chunk]
    end: str = "eof"
    why: str = ""
    probe: str = ""
    other: list[str | _Chunk] = []
    expect: _Expect | None = None
    found: _Found | None = None


class CaseError(UsageError):
    """A case file cannot be read; the message names the file and says what is wrong with it."""


def schema() -> Json:
    """The JSON Schema (draft 2020-12) of the case file, so that other languages can replay it."""
    made = msgspec.json.schema(_File)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "streamfuzz case, format 1", **made}


def dump(file: CaseFile) -> bytes:
    """Write a case file: JSON with sorted keys, one chunk a line, ending in a line end."""
    case = file.case
    made: dict[str, Json] = {
        "format": FORMAT,
        "provider": case.provider,
        "takes": case.takes,
        "chunks": [_to_json(chunk) for chunk in case.chunks],
        "end": case.end,
        "why": file.why,
    }
    if case.probe:
        made["probe"] = case.probe
    if case.other:
        made["other"] = [_to_json(chunk) for chunk in case.other]
    if file.expect is not None:
        made["expect"] = asdict(file.expect)
    if file.found is not None:
        made["found"] = asdict(file.found)
    text = json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False)
    return (_printable(text) + "\n").encode()


def load(content: bytes, name: str = "case") -> CaseFile:
    """Read a case file.  Nothing in it is executed.

    Raises:
        CaseError: it is empty, no JSON, of another format, or not of this shape; ``name`` is in the message.
    """
    if not content.strip():
        raise CaseError(f"{name} is empty: a case file is a JSON object")
    try:
        version = parse_json(content.decode())  # unlike msgspec's own, it reads half a surrogate pair
    except ValueError as error:
        raise CaseError(f"{name} is not JSON: {error}") from None
    if not isinstance(version, dict) or "format" not in version:
        raise CaseError(f"{name} is not a case file: a JSON object with a 'format' is needed")
    if version["format"] != FORMAT:
        raise CaseError(
            f"{name} has format {version['format']!r}, this version reads {FORMAT}: "
            f"install the streamfuzz that wrote it, or a newer one"
        )
    try:
        raw = msgspec.convert(version, _File)
        takes = _checked("takes", raw.takes, TAKES)
        case = Case(
            provider=raw.provider,
            chunks=tuple(_from_json(chunk, raw.takes) for chunk in raw.chunks),
            takes=takes,  # type: ignore[arg-type]
            end=_checked("end", raw.end, get_args(End)),  # type: ignore[arg-type]
            probe=_checked("probe", raw.probe, PROBES),
            other=tuple(_from_json(chunk, raw.takes) for chunk in raw.other),
        )
        _checked("provider", raw.provider, providers.NAMES)
    except (msgspec.ValidationError, ValueError) as error:
        raise CaseError(f"{name} is not a case file of format {FORMAT}: {error}") from None
    return CaseFile(
        case,
        raw.why,
        Expectation(**msgspec.structs.asdict(raw.expect)) if raw.expect is not None else None,
        Found(**msgspec.structs.asdict(raw.found)) if raw.found is not None else None,
    )


def digest(case: Case) -> str:
    """A short hash of the experiment; reasons and findings do not change it."""
    parts = [FORMAT, case.provider, case.takes, [_to_json(c) for c in case.chunks], case.end, case.probe]
    parts.append([_to_json(c) for c in case.other])
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _checked(what: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise ValueError(f"{what} {value!r} is not known; known: {', '.join(filter(None, known))}")
    return value


def _to_json(chunk: Any) -> Json:
    if isinstance(chunk, bytes):
        try:
            return chunk.decode()
        except UnicodeDecodeError:
            return {"hex": chunk.hex()}
    if isinstance(chunk, Frame):
        return {"frame": asdict(chunk)}
    if isinstance(chunk, Event):
        content = {"text": chunk.data.text} if isinstance(chunk.data, Raw) else {"json": chunk.data}
        return {"event": {**content, "name": chunk.name}}
    return chunk


def _from_json(chunk: str | _Chunk, takes: str) -> Any:
    if isinstance(chunk, str):
        if takes not in ("bytes", "text"):
            raise ValueError(f"a chunk of {takes} is an object, not text")
        return chunk.encode("utf-8", "surrogatepass") if takes == "bytes" else chunk
    kinds = {"bytes": chunk.hex, "frames": chunk.frame, "events": chunk.event}
    content: Any = kinds.get(takes)
    if content is None:
        raise ValueError(
            f"a chunk of {takes} must be text or an object with 'hex', 'frame' or 'event', as 'takes' says"
        )
    if takes == "bytes":
        return bytes.fromhex(content)
    if takes == "frames":
        return msgspec.convert(content, Frame)
    if not set(content) <= {"json", "text", "name"} or ("json" in content) == ("text" in content):
        raise ValueError("an event must have 'json' or 'text', and perhaps 'name'")
    return Event(content["json"] if "json" in content else Raw(content["text"]), content.get("name"))


def _printable(text: str) -> str:
    """Escape what a JSON string may hold but editors and diffs mangle."""
    return "".join(f"\\u{ord(c):04x}" if c in _MANGLED or "\ud800" <= c <= "\udfff" else c for c in text)


_MANGLED = frozenset("\x7f\x85\u00a0\u200d\u202a\u202b\u202c\u202d\u202e\u2028\u2029\u2066\u2067\u2068\u2069\ufeff")
