"""The reports that were asked for are made, tried at once, and one that fails takes no other along."""

from __future__ import annotations

import io

import pytest

from streamfuzz.happenings import Ended, Trouble
from streamfuzz.report.event_log import EventLog
from streamfuzz.report.github import GitHub
from streamfuzz.report.junit import JUnit
from streamfuzz.report.outputs import subscribers, together
from streamfuzz.report.sarif import Sarif
from streamfuzz.spec import UsageError

from .samples import empty_night, happenings


@pytest.fixture(autouse=True)
def no_workflow(monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def test_nothing_asked_for_is_nothing_made():
    assert subscribers() == []


def test_what_is_asked_for_is_made(tmp_path):
    made = subscribers(
        junit=tmp_path / "j.xml",
        sarif=tmp_path / "s.sarif",
        events=tmp_path / "e.ndjson",
        github=True,
        stream=io.StringIO(),
    )
    assert [type(each) for each in made] == [EventLog, JUnit, Sarif, GitHub]
    for happening in happenings():
        for each in made:
            each(happening)
    assert all((tmp_path / name).stat().st_size for name in ("j.xml", "s.sarif", "e.ndjson"))


def test_annotations_go_to_stdout_if_nothing_else_is_said(capsys):
    (made,) = subscribers(github=True)
    for happening in happenings():
        made(happening)
    assert "::error " in capsys.readouterr().out


def test_a_page_is_made(tmp_path):
    made = subscribers(html=tmp_path / "page.html")
    assert len(made) == 1


@pytest.mark.parametrize("name", ["junit", "sarif", "events", "html"])
def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError):
        subscribers(**{name: tmp_path / "file" / "report"})


def test_one_that_fails_takes_no_other_along():
    told, tries = [], []

    def full(happening):
        tries.append(happening)
        raise UsageError("cannot write x: No space left on device")

    def closed(happening):
        raise BrokenPipeError(32, "Broken pipe")

    tell = together([full, closed, told.append])
    tell(Trouble("a"))
    tell(Trouble("b"))
    ended = Ended(empty_night())
    with pytest.raises(UsageError, match="No space left"):
        tell(ended)
    assert told == [Trouble("a"), Trouble("b"), ended]
    assert tries == [Trouble("a")]


def test_a_closed_stream_is_told_at_the_end():
    def closed(happening):
        raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(UsageError, match=r"cannot print: .*Broken pipe"):
        together([closed])(Ended(empty_night()))
