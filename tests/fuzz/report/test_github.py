"""What GitHub is told can be nothing but what was meant: no command, no markup, no page that is too long."""

from __future__ import annotations

import io
import re
from collections import Counter

import pytest
from markdown_it import MarkdownIt

from streamfuzz.happenings import Began, Ended, Trouble
from streamfuzz.report.github import ROOM, SHOWN, GitHub, commands, markdown
from streamfuzz.result import Night, Result
from streamfuzz.spec import UsageError

from .samples import HOSTILE, STARTED, big_night, empty_night, finding, happenings, night, reported


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)


def read(command):
    """A command as the runner reads it: a line that begins with ``::`` behind spaces."""
    found = re.fullmatch(r"\s*::([\w-]+) ?(.*?)::(.*)", command)
    assert found is not None
    properties = dict(pair.split("=", 1) for pair in found[2].split(",") if pair)
    return found[1], {name: meant(value) for name, value in properties.items()}, meant(found[3])


def meant(text):
    for escape, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, character)
    return text


def test_a_finding_is_an_error_on_the_line_of_its_target():
    name, properties, text = read(next(commands(night())))
    assert name == "error"
    assert properties == {"file": "src/mine/reader.py", "line": "42", "title": "reader: faithful"}
    assert text == "reader loses the text '\u4f60\U0001f600' because of a comment.\ncorpus/reader/1f.json"


def test_what_is_flaky_or_only_warns_is_a_warning_and_what_is_no_news_is_nothing():
    made = [read(command) for command in commands(night())]
    assert [name for name, _, _ in made] == ["error"] * 5 + ["warning"] * 3
    assert sum("failed in 3 of 10 runs" in text for _, _, text in made) == 1
    assert not any("a byte order mark" in text for _, _, text in made)


def test_a_job_that_failed_otherwise_is_an_error_that_says_why():
    assert [read(command) for command in commands(Night("batch", STARTED, 1.0, ()))] == [
        ("error", {"title": "streamfuzz"}, "Exit code 4: nothing was judged for any target.")
    ]
    assert list(commands(empty_night())) == []


def test_without_a_definition_there_is_no_line():
    made = Result("t", "sse", 1, 1, goals=Counter({"g": 1}), findings=[reported(finding(), path=None)])
    (command,) = commands(Night("batch", STARTED, 1.0, (made,)))
    assert read(command)[1] == {"title": "t: faithful"}


def test_no_more_than_github_shows():
    assert len(list(commands(big_night(100)))) == SHOWN


def test_hostile_text_is_one_command_a_line():
    for command in commands(night()):
        assert "\n" not in command
        assert "\r" not in command
        name, properties, text = read(command)
        assert name in ("error", "warning")
        assert set(properties) <= {"file", "line", "title"}
        assert all(line.isprintable() for line in text.split("\n"))


def test_commands_are_stopped_while_what_a_target_says_is_printed():
    stream = io.StringIO()
    github = GitHub(stream)
    for happening in happenings():
        if isinstance(happening, Trouble):
            stream.write(f"   {happening.message}\n")
        github(happening)
    lines = stream.getvalue().split("\n")
    assert lines[0] == f"::stop-commands::{github.token}"
    resumed = lines.index(f"::{github.token}::")
    injected = next(n for n, line in enumerate(lines) if line.startswith("::error::injected"))
    assert 0 < injected < resumed
    assert GitHub(stream).token != github.token
    assert all(line.startswith(("::error ", "::warning ")) for line in lines[resumed + 1 : -1])


# -- the summary ----------------------------------------------------------------------------------------------------


def rendered(text):
    """The summary as HTML, as a renderer makes it that knows tables and bare addresses and lets HTML through."""
    return MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(text)


def test_the_summary_tells_the_night():
    html = rendered(markdown(night()))
    assert "<h2>streamfuzz batch: 3 new, 1 back, 1 expired" in html
    assert "Exit code 1: 7 findings to act on. 3 min 2 s on 4 workers." in html
    assert html.count("<tr>") == 5
    assert re.search(r"<td>reader</td>\s*<td[^>]*>812,345</td>\s*<td[^>]*>6,741</td>", html)
    assert html.count("<details") == html.count("</details>") == 7
    assert html.count("<details open>") == 1
    assert "replay  streamfuzz replay reader corpus/reader/1f.json" in html
    assert "reader: never reached: a tool call in pieces, two choices at once" in html
    assert "known: reader loses the text" in html
    assert "<h3>Fixed</h3>" in html


def test_a_clean_night_is_short():
    text = markdown(empty_night())
    assert text.startswith("## streamfuzz batch: nothing found\n\nExit code 0")
    assert len(text) < 400


def test_hostile_text_is_text():
    html = rendered(markdown(night()))
    tags = set(re.findall(r"<(\w+)", html))
    used = {"h2", "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "details", "summary", "b"}
    assert tags <= used | {"pre", "code"}
    assert "<strong>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert all(line.isprintable() for line in markdown(night()).split("\n"))


def test_a_fence_is_longer_than_any_in_the_bytes():
    ticks = "`" * 9
    found = reported(finding(f"a{ticks}\n{ticks}b"))
    made = Result("t", "sse", 1, 1, goals=Counter({"g": 1}), findings=[found])
    html = rendered(markdown(Night("batch", STARTED, 1.0, (made,))))
    assert html.count("<pre>") == 1
    assert f"a{ticks}\\n{ticks}b" in html


def test_no_address_or_name_becomes_a_link():
    text = "www.example.com https://example.com a@example.com @someone #12 gh-12 <b>"
    made = Result(text, "sse", 1, 1, goals=Counter({"g": 1}), unreached=(text,))
    summary = markdown(Night("batch", STARTED, 1.0, (made,)))
    assert not re.search(r"www\.|://|@|(?<!&)#\d|<b>", summary)


@pytest.mark.parametrize("room", [0, 10, 60, 500, 5000, 50_000, ROOM])
def test_the_summary_fits(room):
    text = markdown(big_night(60), room)
    assert len(text.encode()) <= room
    assert room < 60 or room > 5000 or text.endswith("The rest had no room here; the other reports have it.\n")
    assert text.count("<details") == text.count("</details>")


def test_a_big_night_fits():
    assert len(markdown(big_night(1200), 200_000).encode()) <= 200_000


def test_the_summary_is_appended_to_what_the_step_wrote_before(tmp_path, monkeypatch):
    path = tmp_path / "summary.md"
    path.write_text("x" * (ROOM - 2000))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    github = GitHub(io.StringIO())
    github(Began("batch", STARTED, ["t"]))
    assert path.stat().st_size == ROOM - 2000
    github(Ended(night()))
    assert path.read_text().startswith("x" * (ROOM - 2000) + "## streamfuzz batch")
    assert path.stat().st_size <= ROOM


def test_a_summary_that_cannot_be_written_is_told_before_the_search(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    with pytest.raises(UsageError, match="cannot write"):
        GitHub(io.StringIO())


def test_without_a_summary_file_only_annotations_are_told():
    stream = io.StringIO()
    GitHub(stream)(Ended(night()))
    assert "::error " in stream.getvalue()
    assert HOSTILE not in stream.getvalue()
