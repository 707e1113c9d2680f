"""A job is shown while it runs and summed up when it has ended, and nothing in it can paint the terminal."""

from __future__ import annotations

import io
import re
import time
from collections import Counter
from dataclasses import replace

import pytest

from streamfuzz.happenings import Began, Ended, NewFinding, Progress, Settled, Trouble, WorkerLost
from streamfuzz.report import night_console as module
from streamfuzz.report.night_console import NightConsole, goals_reached
from streamfuzz.result import Night, Result

from .samples import (
    HOSTILE,
    KNOWN,
    STARTED,
    big_night,
    empty_night,
    finding,
    findings,
    happenings,
    night,
    reported,
)


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
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    return now


def shown(*told, stream=None, **options):
    stream = stream if stream is not None else io.StringIO()
    console = NightConsole(stream, **options)
    for each in told:
        console(each)
    return stream.getvalue()


def job(*results, **more):
    return Ended(Night("batch", STARTED, 61.0, results, **more))


def result(*found, **more):
    return Result("t", "sse", 1, **{"cases": 1000, "seconds": 2.0, "goals": Counter({"g": 1}), **more}, findings=found)


PROGRESS = Progress("reader", 12_345, 4.0, 2, 3, 10, "searching", 125.0)
BEGAN = Began("batch", STARTED, ["reader", "clean"], 180.0, 4)


def screen(text):
    """What a terminal shows in the end: the text without the sequences, and without what was erased again."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n")


# -- while it runs ----------------------------------------------------------------------------------------------


def test_a_job_begins_with_one_line():
    assert shown(BEGAN) == "batch: 2 targets for 3 min 0 s on 4 workers\n"
    assert shown(Began("replay", STARTED, ["t"])) == "replay: 1 target on 1 worker\n"


def test_where_there_is_no_terminal_progress_is_a_line_now_and_then(clock):
    stream = io.StringIO()
    console = NightConsole(stream)
    console(BEGAN)
    for second in range(0, 70, 5):
        clock[0] = float(second)
        console(PROGRESS)
        console(replace(PROGRESS, target="clean", cases=100, findings=0))
    assert stream.getvalue().splitlines()[1:] == [
        "30 s  2 min 5 s left  12,445 cases  415/s  2 findings  goals 6 of 20",
        "1 min 0 s  2 min 5 s left  12,445 cases  207/s  2 findings  goals 6 of 20",
    ]


def test_where_there_is_no_terminal_each_new_finding_is_a_line():
    assert shown(NewFinding(finding())) == "found  reader loses the text '\u4f60\U0001f600' because of a comment.\n"


def test_lost_workers_and_troubles_are_told_at_once():
    text = shown(WorkerLost("reader", "hung for 30 s, killed"), Trouble("the store is full"))
    assert (
        text == "A worker on reader was lost (hung for 30 s, killed); another one takes its place.\nthe store is full\n"
    )


def test_on_a_terminal_a_table_is_redrawn(clock):
    stream = Terminal()
    console = NightConsole(stream, colour=False)
    console(BEGAN)
    console(NewFinding(finding()))
    console(Settled(reported(finding())))
    clock[0] = 1.0
    console(PROGRESS)
    lines = screen(stream.getvalue()).split("\n")
    assert [line.rstrip() for line in lines] == [
        "batch: 2 targets for 3 min 0 s on 4 workers",
        "target   cases  cases/s   findings  goals",
        "reader  12,345    3,086  2 (1 new)   3/10  searching",
        "clean                                      waiting",
        "2 min 5 s left",
        "newest: reader loses the text '\u4f60\U0001f600' because of a comment.",
    ]
    before = stream.getvalue()
    clock[0] = 1.01
    console(PROGRESS)
    assert stream.getvalue() == before
    console.close()
    console.close()
    assert stream.getvalue().endswith("\x1b[2K")


def test_new_findings_are_bold(clock):
    stream = Terminal()
    console = NightConsole(stream)
    console(Settled(reported(finding())))
    clock[0] = 1.0
    console(PROGRESS)
    console.close()
    assert "\x1b[1;31m2 (1 new)\x1b[0m" in stream.getvalue()


def test_troubles_stand_above_the_table(clock):
    stream = Terminal()
    console = NightConsole(stream, colour=False)
    clock[0] = 1.0
    console(PROGRESS)
    console(Trouble("the store is full"))
    clock[0] = 2.0
    console(PROGRESS)
    console.close()
    assert "the store is full\n" in screen(stream.getvalue())


def test_the_table_fits_a_narrow_terminal(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    console = NightConsole(stream, colour=False)
    clock[0] = 1.0
    console(NewFinding(finding(target=HOSTILE)))
    console(replace(PROGRESS, target=HOSTILE))
    console.close()
    assert max(map(len, screen(stream.getvalue()).split("\n"))) <= 60


# -- when it has ended ------------------------------------------------------------------------------------------


def test_the_summary_tells_news_first_and_what_was_covered():
    lines = shown(Ended(night())).splitlines()
    tally = "batch, 3 min 2 s: 3 new, 1 back, 1 expired, 1 warning, 2 flaky, 2 again, 2 known, 2 fixed"
    assert lines[1] == tally
    titles = [line for line in lines if re.fullmatch(r"[A-Z][a-z ]+ \(\d+\)", line)]
    parts = ["News (5)", "No longer excused (1)", "Flaky (2)", "Known (2)", "Reported before (2)", "Fixed (2)"]
    assert titles == parts
    assert lines[-1] == "Exit code 1: 7 findings to act on."


def test_news_is_drawn_in_full_and_the_rest_in_short():
    text = shown(job(result(*findings())))
    news, _, rest = text.partition("Flaky (1)")
    assert news.count("chunk  byte") == 4
    assert "chunk  byte" not in rest
    assert "replay  streamfuzz replay reader corpus/reader/1f.json" in news
    assert rest.count("corpus/reader/1f.json") == 4


def test_each_finding_says_what_is_known_of_it():
    text = shown(job(result(*findings())))
    for note in (
        "had been fixed and is back",
        "no longer excused: was known until 2026-08-31: was to be mended by summer",
        "failed in 3 of 10 runs",
        "known until 2030-01-02: waits for upstream",
        "seen since 2026-11-02, last 2026-11-30",
        "met once by coverage",
    ):
        assert note in text


def test_at_most_ten_are_drawn_and_fifty_of_a_kind_told():
    text = shown(Ended(big_night(600)))
    assert text.count("chunk  byte") == 10
    assert "News (240)" in text
    assert text.count("and 190 more, which the report files tell") == 1
    assert "50. FAIL" in text


def test_a_big_night_is_summed_up_quickly():
    started = time.perf_counter()
    shown(Ended(big_night(10_000)))
    assert time.perf_counter() - started < 10


def test_targets_are_told_in_a_table():
    text = shown(Ended(night()))
    rows = [line.split() for line in text.splitlines() if re.match(r"(target|reader|clean|idle) ", line)]
    assert rows == [
        ["target", "cases", "cases/s", "findings", "goals", "found", "by"],
        ["reader", "812,345", "6,741", "9", "(5", "new)", "2/4", "coverage", "1,", "sweep", "8"],
        ["clean", "500,000", "8,333", "0", "2/2", "sweep", "0"],
        ["idle", "0", "0", "0/0"],
    ]


def test_what_was_not_covered_and_what_went_wrong_is_told():
    text = " ".join(shown(Ended(night())).split())
    for fact in (
        "Unmet reader: a tool call in pieces, two choices at once",
        "Gone reader: faithful.lost: a byte order mark was known (waits for upstream) and did not occur",
        "More reader: 321 more cases failed in ways seen before",
        "Workers 1 worker of 4 lost and replaced",
        "Trouble corpus/x.json was skipped: it has format 9, this version reads 1",
    ):
        assert fact in text
    assert "Stopped" not in text
    assert "Stopped interrupted: this is" in " ".join(shown(job(result(interrupted=True))).split())


def test_a_target_that_reached_no_goal_misses_all_of_them():
    assert "Unmet     t: all of them\n" in shown(job(result(goals=Counter(), unreached=("a", "b"))))


def test_a_clean_night_is_short():
    assert shown(Ended(empty_night())).splitlines() == [
        "",
        "batch, 2 s: nothing found",
        "",
        "target  cases  cases/s  findings  goals  found by",
        "clean   1,000      500         0    1/1  sweep 0 ",
        "",
        "Exit code 0: nothing to act on.",
    ]


def test_goals_are_counted_without_rules():
    assert goals_reached(night().results[0]) == (2, 4)


def test_a_known_one_that_is_gone_explains_the_exit_code():
    assert shown(job(result(gone=(KNOWN,)))).endswith(
        "Exit code 4: 1 known deviation gone, to be taken off the list.\n"
    )


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_what_a_target_says_cannot_paint_the_terminal(stream):
    text = shown(*happenings(), WorkerLost(HOSTILE, HOSTILE), stream=stream(), colour=False)
    assert all(line.isprintable() for line in screen(text).split("\n"))
    assert "[bold red]x[/bold red]" in text


def test_colour_is_only_on_a_terminal(monkeypatch):
    assert "\x1b[" in shown(Ended(night()), stream=Terminal())
    assert "\x1b" not in shown(Ended(night()))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in shown(Ended(night()), stream=Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in shown(*happenings(), stream=Terminal())


def test_a_stream_that_cannot_encode_the_signs_gets_ascii():
    assert shown(*happenings(), stream=Latin()).isascii()
