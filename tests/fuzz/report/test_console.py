"""What is printed for people says what was found and covered, and nothing in it can paint the terminal."""

from __future__ import annotations

import io
import re
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from streamfuzz.case import Case
from streamfuzz.deviation import Deviation
from streamfuzz.finding import Finding
from streamfuzz.happenings import NewFinding, Progress
from streamfuzz.report import console as module
from streamfuzz.report.console import Console, headline, progress_line
from streamfuzz.result import Reported, Result
from streamfuzz.spec import Known

CASE = Case("openai-chat", (b": hi\ndata: \xe4", b"\xbd\xa0\n\n"))
KNOWN = Known("faithful.lost: a comment", "waits for upstream", date(2030, 1, 2))
HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]x[/bold red]\u202e:smile:\r\n"


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


class Latin(io.StringIO):
    encoding = "latin-1"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def finding(
    verdict="fail", *, target="t", causes=("a comment",), count=1, expected="a", got="", case=CASE, flaky=False
):
    kind = "lost" if got == "" else "altered"
    return Finding(
        target, case, Deviation("faithful", kind, "the text", expected, got, None, verdict), causes, "", count, flaky
    )


def result(*findings, **more):
    more = {"goals": Counter({"reached": 2}), "unreached": ("never met",), **more}
    return Result("t", "openai-chat", 7, more.pop("cases", 1000), 2.0, 1.0, list(findings), **more)


def printed(found, stream=None, **options):
    stream = stream if stream is not None else io.StringIO()
    Console(stream, **options).finish(found, replay=lambda reported: f"streamfuzz replay t {reported.path}")
    return stream.getvalue()


def test_a_finding_is_told_with_its_bytes_its_file_and_how_to_replay_it():
    assert printed(result(Reported(finding(count=1200), "c/1.json"))).splitlines() == [
        "t: 1 failure",
        "",
        "1. FAIL  t loses the text 'a' because of a comment.",
        "   faithful.lost: a comment, met 1,200 times",
        "",
        "     chunk  byte",
        "         1     0  : hi\\n",
        "                  ^^^^^^ here",
        "                  data: \\xE4┃",
        "                            ^ cut inside a 3-byte character: 你 is E4 ┃ BD A0",
        "         2    12  \\xBD\\xA0\\n",
        "                  \\n",
        "       end    16  end of stream",
        "",
        "   file    c/1.json",
        "   replay  streamfuzz replay t c/1.json",
        "",
        "Judged    1,000 cases in 2.0 s: 500 a second, 50% of the time inside the target",
        "Streams   of openai-chat, seed 7",
        "Goals     1 of 2 reached",
        "Unmet     never met",
    ]


def test_a_finding_without_a_file_has_no_replay_line():
    assert "replay" not in printed(result(Reported(finding())))


def test_every_verdict_has_its_word():
    known = Reported(finding(), None, "known", KNOWN)
    text = printed(result(Reported(finding()), Reported(finding("warn")), Reported(finding(flaky=True)), known))
    assert re.findall(r"^\d\. (\w+)", text, re.MULTILINE) == ["FAIL", "warn", "flaky", "known"]
    assert "known until 2030-01-02: waits for upstream" in text


def test_the_headline_counts_by_verdict():
    two = (Reported(finding()), Reported(finding()))
    assert headline(result(*two, Reported(finding("warn")))) == "t: 2 failures, 1 warning"
    known = Reported(finding(), None, "known", KNOWN)
    assert headline(result(known, Reported(finding(flaky=True)))) == "t: 1 known, 1 flaky"


def test_nothing_found_is_one_line_with_what_was_covered():
    lines = printed(result()).splitlines()
    assert lines[0] == "t: nothing found in 1,000 cases, 1 of 2 goals."
    assert "Unmet     never met" in lines


def test_nothing_judged_is_not_called_nothing_found():
    text = printed(result(cases=0))
    assert "Nothing was judged" in text
    assert "nothing found" not in text


def test_a_search_that_reached_no_goal_has_found_nothing_out():
    text = printed(result(cases=1, goals=Counter(), unreached=("a", "b")))
    assert text.startswith("t: next to nothing was tried in 1 case: give the search more time.\n")
    assert "nothing found" not in text
    assert "Goals     0 of 2 reached\nUnmet     all of them\n" in text


def test_known_deviations_that_are_gone_are_told():
    text = printed(result(gone=(KNOWN,)))
    assert "Gone      faithful.lost: a comment was known (waits for upstream) and did not occur" in text


def test_an_interrupted_search_says_so():
    assert "Interrupted" in printed(result(interrupted=True))
    assert "Interrupted" not in printed(result())


def test_values_too_long_for_the_sentence_are_shown_where_they_differ():
    long = "x" * 200
    text = printed(result(Reported(finding(expected=long + "true" + long, got=long + "false" + long))))
    wanted, got = re.search(r"should be  (.*)\n.* is         (.*)\n", text).groups()
    assert "xtrue" in wanted
    assert "xfalse" in got
    assert wanted.index("true") == got.index("false")
    assert wanted.startswith("…x")
    assert wanted.endswith("x…")
    assert " … " not in wanted + got


def test_a_value_that_breaks_off_is_shown_where_it_does():
    text = printed(result(Reported(finding(expected="x" * 200 + "the end", got="x" * 200))))
    assert re.search(r"should be  …x+the end\n.* is         …x+\n", text)


def test_short_values_are_not_shown_twice():
    assert "should be" not in printed(result(Reported(finding(expected="a", got="b"))))


def test_long_words_wrap_under_each_other():
    unreached = tuple(f"a goal with a longer name, number {n}" for n in range(20))
    lines = printed(result(unreached=unreached)).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("Unmet"))
    assert all(line.startswith(" " * 10) and len(line) <= 100 for line in lines[at + 1 :])
    assert " ".join(" ".join(lines[at:]).split()) == f"Unmet {', '.join(unreached[:8])} and 12 more"


def test_a_replay_line_is_never_broken():
    path = Path("/very/long" * 20, "1.json")
    assert f"   replay  streamfuzz replay t {path}\n" in printed(result(Reported(finding(), str(path))))


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_what_a_target_says_cannot_paint_the_terminal(stream):
    causes, known = (HOSTILE,), Known(HOSTILE, HOSTILE, date(2030, 1, 2))
    found = Reported(finding(target=HOSTILE, causes=causes, expected=HOSTILE * 9, got="b"), HOSTILE, "known", known)
    more = result(found, gone=(known,), unreached=(HOSTILE,))
    more.target = HOSTILE
    text = printed(more, stream(), colour=False)
    assert all(line.isprintable() for line in text.split("\n"))
    assert "[bold red]x[/bold red]" in text
    assert ":smile:" in text


def test_colour_is_only_on_a_terminal(monkeypatch):
    found = result(Reported(finding()))
    assert "\x1b[" in printed(found, Terminal())
    assert "\x1b" not in printed(found, io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in printed(found, Terminal())


def test_colour_can_be_asked_for_and_refused(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    found = result(Reported(finding()))
    assert "\x1b[" in printed(found, io.StringIO(), colour=True)
    assert "\x1b" not in printed(found, Terminal(), colour=False)


def test_colours_are_all_that_is_sent():
    text = printed(result(Reported(finding())), Terminal())
    assert "\x1b" not in re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_stream_that_cannot_encode_the_signs_gets_ascii():
    assert printed(result(Reported(finding(expected="é" * 80, got="é"))), Latin()).isascii()


PROGRESS = Progress("t", 12345, 4.0, 1, 3, 10)


def test_progress_is_one_line():
    assert progress_line(PROGRESS) == "searching  4 s  12,345 cases  3,086/s  1 finding  goals 3 of 10"
    assert progress_line(Progress("t", 0, 0.0, 0, 0, 10)) == "searching  0 s  0 cases  0 findings  goals 0 of 10"


def test_progress_has_a_rate_only_while_cases_are_judged():
    line = progress_line(Progress("t", 9, 9.0, 2, 3, 10, "shrinking"))
    assert line == "shrinking  9 s  9 cases  2 findings  goals 3 of 10"


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    return now


def test_progress_is_told_now_and_then_where_there_is_no_terminal(clock):
    stream = io.StringIO()
    console = Console(stream)
    for second in range(25):
        clock[0] = float(second)
        console(PROGRESS)
    console(NewFinding(finding()))
    console.close()
    assert stream.getvalue() == (progress_line(PROGRESS) + "\n") * 2


def test_progress_is_redrawn_on_a_terminal_with_the_latest_finding(clock):
    stream = Terminal()
    console = Console(stream)
    console(NewFinding(finding(target=HOSTILE)))
    assert stream.getvalue() == ""
    clock[0] = 1.0
    console(PROGRESS)
    shown = stream.getvalue()
    assert "12,345 cases" in shown
    assert "latest: \\x1B[2J" in shown
    clock[0] = 1.01
    console(PROGRESS)
    assert stream.getvalue() == shown
    console.close()
    console.close()
    assert stream.getvalue().endswith("\x1b[2K")


def test_progress_fits_a_narrow_terminal(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    console = Console(stream, colour=False)
    clock[0] = 1.0
    console(PROGRESS)
    console.close()
    lines = re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\r", stream.getvalue()))
    assert max(map(len, lines)) < 40


def test_a_dumb_terminal_is_none(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in printed(result(Reported(finding())), Terminal())
