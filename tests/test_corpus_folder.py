"""The kept cases are what they say they are, and our own reading passes every one of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from streamfuzz import corpus, targets
from streamfuzz.case import CaseFile, dump
from streamfuzz.replay import replay

CORPUS = Path(__file__).parents[1] / "corpus"
PATHS = sorted(CORPUS.glob("[!.]*/*"))
LARGEST = 4096
"""Bytes of a kept file: a larger one is not shrunk yet."""

every_case = pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(CORPUS)))


@cache
def kept(path: Path) -> CaseFile:
    return corpus.open_case(path)


@every_case
def test_a_file_is_named_by_its_content_and_written_as_we_write(path: Path) -> None:
    assert path.name == kept(path).name
    assert path.read_bytes() == dump(kept(path))
    assert path.stat().st_size <= LARGEST


@every_case
def test_the_judge_says_today_what_it_said_then(path: Path) -> None:
    assert kept(path).expect == corpus.expectation(kept(path).case)


@every_case
def test_a_file_says_why_it_is_kept_and_who_fails(path: Path) -> None:
    file = kept(path)
    assert len(file.why.split()) > 3
    assert file.found is not None
    assert path.parent == CORPUS / file.found.target
    found = {row.name: row for row in targets.describe()}[file.found.target]
    assert (found.provider, found.takes) == (file.case.provider, file.case.takes)
    assert file.found.signature.startswith(f"{file.found.oracle}.")


@pytest.mark.parametrize("name", [name for name in targets.NAMES if name.startswith("reference-")])
def test_our_own_reading_passes(name: str) -> None:
    reference = targets.ready(name)
    form = (reference.provider, reference.takes)
    mine = [(path, file) for path in PATHS if ((file := kept(path)).case.provider, file.case.takes) == form]
    assert {str(r.path): r.findings for r in replay(reference, mine) if r.status != "pass"} == {}
