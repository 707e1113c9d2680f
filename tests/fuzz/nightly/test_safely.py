"""A kept case that kills its process is replayed like any other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from streamfuzz import corpus
from streamfuzz.case import Case, CaseFile, Found
from tests.fuzz.conftest import Command

HEAD = b'data: {"id":"i","object":"chat.completion.chunk","created":1,"model":"m","choices":'
SOUND = Case(
    "openai-chat",
    (HEAD + b'[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',),
)
DEADLY = replace(SOUND, chunks=(b"\xef\xbb\xbf", *SOUND.chunks))
CRASHES = """
import ctypes
from streamfuzz.demo import repaired


def read(chunks):
    whole = b"".join(chunks)
    if whole.startswith(b"\\xef\\xbb\\xbf"):
        ctypes.string_at(0)
    return repaired([whole])
"""


def test_a_deadly_case_fails_and_the_others_are_still_run(streamfuzz: Command, project: Path) -> None:
    (project / "crashing.py").write_text(CRASHES)
    found = Found("read", "bounded", "bounded.crashed: a byte order mark", "read crashes")
    files = [CaseFile(DEADLY, found=found), CaseFile(SOUND)]
    for file in files:
        corpus.save(project / "kept", file)
    done = streamfuzz("replay", "crashing:read", project / "kept", "--json")
    assert done.code == 1
    rows = {Path(row["file"]).name: row for row in done.json["cases"]}
    assert [rows[file.name]["status"] for file in files] == ["fail", "pass"]
    assert "SIGSEGV" in rows[files[0].name]["sentence"]


def test_once_mended_it_passes(streamfuzz: Command, project: Path) -> None:
    (project / "mended.py").write_text(CRASHES.replace("ctypes.string_at(0)", "whole = whole[3:]"))
    file = CaseFile(DEADLY, found=Found("read", "bounded", "bounded.crashed: a byte order mark", "read crashes"))
    corpus.save(project / "kept", file)
    assert streamfuzz("replay", "mended:read", project / "kept").code == 0
