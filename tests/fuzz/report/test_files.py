"""A report is written whole, and a place that cannot be written to is told before the search."""

from __future__ import annotations

import pytest

from streamfuzz.report.files import claim, write
from streamfuzz.spec import UsageError


def test_a_claimed_file_has_a_folder_and_is_not_made_yet(tmp_path):
    claim(tmp_path / "a" / "b" / "report.xml")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UsageError, match="it is a folder; name a file in it"):
        claim(tmp_path)


def test_a_file_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for do in (claim, lambda path: write(path, b"x")):
        with pytest.raises(UsageError, match=r"cannot write .*file/report.xml: .*; choose another file"):
            do(tmp_path / "file" / "report.xml")


def test_a_report_replaces_the_one_before(tmp_path):
    path = tmp_path / "report.xml"
    write(path, b"old")
    write(path, b"new")
    assert (path.read_bytes(), len(list(tmp_path.iterdir()))) == (b"new", 1)
