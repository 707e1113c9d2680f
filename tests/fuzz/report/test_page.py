"""The report page: one file that needs nothing, shows everything, and lets nothing of a target out of its text."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import re
import zlib
from collections import Counter
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from streamfuzz.case import Case
from streamfuzz.happenings import Ended, Progress
from streamfuzz.report import charts, page_data
from streamfuzz.report.page import TAGS, Page, grid, headline, heat, page
from streamfuzz.report.page_data import BYTES, TEXT, in_order, tags
from streamfuzz.result import Night, Point, Result, Trend
from streamfuzz.spec import Delta, Final, Release, Snapshot, UsageError
from streamfuzz.trace import Failure, Trace
from streamfuzz_strategies.providers import get
from streamfuzz_strategies.stream import Event, Raw
from streamfuzz_strategies.wire import Wire

from .samples import CASE, FRAMES, HOSTILE, STARTED, empty_night, finding, night, reported


def made(of, **more):
    return page(of, lambda target, each: f"again {target} {each.path}", **more)


def unpacked(html):
    """What the findings have in common, and the findings, as the script of the page reads them."""
    packed = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', html)[1]
    common, *entries = map(json.loads, zlib.decompress(base64.b64decode(packed)).splitlines())
    return common, entries


def of(*found, **more):
    return Night("batch", STARTED, 2.0, (Result("reader", "openai-chat", 1, 9, 2.0, 1.0, list(found), **more),))


def entry(*arguments, **more):
    """How a single finding is given to the script of the page."""
    return unpacked(made(of(reported(finding(*arguments, **more)))))[1][0]


class Elements(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.found, self.text = [("", {})], {}
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        tag, attrs = self.found[-1]
        self.text.setdefault((tag, attrs.get("type")), data)


# -- one file, and safe -----------------------------------------------------------------------------------------


def test_the_page_refers_to_nothing_outside_itself():
    outside = [
        value
        for _, attrs in Elements(made(night())).found
        for name, value in attrs.items()
        if name in ("src", "href", "action", "data", "poster") and not value.startswith(("#", "data:,"))
    ]
    assert outside == []


def test_only_its_own_script_and_style_may_run():
    html = made(night())
    elements = Elements(html)
    hashes = [
        base64.b64encode(hashlib.sha256(elements.text[of_].encode()).digest()).decode()
        for of_ in (("style", None), ("script", None))
    ]
    policy = next(attrs["content"] for _, attrs in elements.found if "content-security-policy" in str(attrs).lower())
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}';" in policy
    assert "unsafe" not in policy
    assert [tag for tag, _ in elements.found].count("script") == 2
    assert not [attrs for _, attrs in elements.found if any(name.startswith("on") for name in attrs)]


def test_nothing_from_a_target_gets_out_of_the_text():
    html = made(night())
    tags_of = Counter(tag for tag, _ in Elements(html).found)
    assert "img" not in tags_of
    assert "onerror" in html
    assert all(character.isprintable() or character == "\n" for character in html)


def test_the_file_is_written_when_the_search_has_ended(tmp_path):
    path = tmp_path / "new" / "report.html"
    subscriber = Page(path)
    subscriber(Progress("reader", 1, 1.0, 0, 0, 1))
    assert not path.exists()
    subscriber(Ended(empty_night()))
    assert path.read_text().startswith("<!doctype html>")
    assert os.listdir(path.parent) == ["report.html"]


def test_a_place_that_cannot_be_written_is_told_before_the_search(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="it is a folder; name a file in it"):
        Page(tmp_path)
    with pytest.raises(UsageError, match="choose another"):
        Page(tmp_path / "file" / "report.html")


def test_a_full_disk_leaves_the_old_report(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")
    subscriber = Page(path)

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match=r"cannot write .*: No space left on device; choose another file"):
        subscriber(Ended(empty_night()))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]


# -- findings -----------------------------------------------------------------------------------------------------


def test_every_finding_is_there_in_the_order_in_which_to_read_them():
    told = night()
    entries = unpacked(made(told))[1]
    assert [each["tags"] for each in entries] == [tags(each) for _, each in in_order(told)]
    assert len(entries) == sum(len(result.findings) for result in told.results)
    acting = [each.counts for _, each in in_order(told)]
    assert acting == sorted(acting, reverse=True)
    assert {tag for each in entries for tag in each["tags"]} == set(TAGS)


def test_a_finding_says_all_that_is_known_of_it():
    told = reported(finding("a comment", count=3, how="a rewriting"), "again", failed=3)
    common, (each,) = unpacked(made(of(told)))
    assert each["sentence"] == told.finding.sentence
    assert each["signature"] == "faithful.lost: a comment"
    assert each["causes"] == ["a comment"]
    assert (each["count"], each["failed"], each["runs"], each["how"]) == (3, 3, 10, "a rewriting")
    assert (each["first"], each["last"]) == ("2026-11-02", "2026-11-30")
    assert each["replay"] == "again reader corpus/reader/1f.json"
    assert each["values"] == [["Should be", "\u4f60\U0001f600"], ["Is", "(empty text)"]]
    assert common["oracles"]["faithful"].startswith("A complete stream gives exactly the reference")
    assert each["case"]["judge"] == ["either", "openai-chat.chunk.object"]


def test_a_rule_at_stake_comes_with_its_sentence():
    common, entries = unpacked(made(night()))
    rule = next(each["rule"] for each in entries if each["rule"])
    assert common["rules"][rule]["sentence"] == "a payload was not JSON"
    assert common["rules"][rule]["level"] == "must"


def test_a_finding_without_a_file_has_no_command():
    each = unpacked(made(of(reported(finding(), path=None))))[1][0]
    assert each["path"] is None
    assert each["replay"] is None


def test_the_command_to_replay_is_quoted_for_a_shell(tmp_path):
    path = tmp_path / "report.html"
    Page(path)(Ended(of(reported(finding(), path="my corpus/1f.json"))))
    assert unpacked(path.read_text())[1][0]["replay"] == "streamfuzz replay reader 'my corpus/1f.json'"


def test_long_values_are_shown_from_a_little_before_they_differ():
    same = "s" * 5000
    values = dict(entry(expected=f"{same}right", got=f"{same}wrong")["values"])
    assert values["Should be"] == f"\u2026 {'s' * (TEXT // 4)}right \u2026 (5,005 characters in all)"
    assert "wrong" in values["Is"]


@pytest.mark.parametrize("value", [{1: "a", "b": 2}, {("a",): 1}, {"s": {1, 2}}])
def test_a_value_that_only_looks_like_json_is_shown_all_the_same(value):
    assert dict(entry(got=value)["values"])["Is"]


def test_when_the_page_is_full_findings_lose_their_bytes_but_not_their_sentence(monkeypatch):
    monkeypatch.setattr(page_data, "DRAWN", 0)
    entries = unpacked(made(night()))[1]
    assert not any("case" in each for each in entries)
    assert all(each["sentence"] for each in entries)


def test_a_page_stays_small_however_different_the_streams(monkeypatch):
    monkeypatch.setattr(page_data, "DRAWN", 100_000)
    draw = random.Random(7)
    found = [
        reported(finding(f"cause {n}", case=Case("openai-chat", (b"data: ", draw.randbytes(400))))) for n in range(600)
    ]
    html = made(of(*found))
    bytes_shown = ["case" in each for each in unpacked(html)[1]]
    assert bytes_shown == sorted(bytes_shown, reverse=True)
    assert 50 < sum(bytes_shown) < 300
    assert len(html) < 200_000


# -- streams ------------------------------------------------------------------------------------------------------


def stream_of(case, *causes, **more):
    return entry(*causes, case=case, **more)["case"]["streams"][0]


def expanded(runs):
    return [number for number, count in runs for _ in range(count)]


def test_a_stream_comes_with_its_bytes_chunks_and_marks():
    stream = stream_of(CASE, "a comment")
    assert stream["bytes"].encode("latin-1") == CASE.data
    assert expanded(stream["chunks"]) == list(map(len, CASE.chunks))
    assert stream["marks"] == [0, 1, 2, 3, 4]


def test_a_stream_comes_with_the_map_of_its_bytes():
    stream = stream_of(CASE)
    wire = Wire(CASE.data, get("openai-chat").framing)
    assert [page_data.PLACE_NAMES[number] for number in expanded(stream["places"])] == list(wire.places())
    assert [line[0] for line in stream["lines"]] == [line.kind for line in wire.lines]


def test_of_a_long_stream_the_part_around_its_cut_is_shown():
    before = b": " + b"x" * 9000 + b"\n"
    case = Case("openai-chat", (before + b"data: {}", b"\n\n" + before))
    stream = stream_of(case, "")
    cut = len(case.chunks[0])
    assert len(stream["bytes"]) == BYTES
    assert stream["start"] < cut < stream["start"] + BYTES
    assert stream["bytes"][cut - stream["start"] - 2 :].startswith("{}\n\n: x")
    places = expanded(stream["places"])
    assert page_data.PLACE_NAMES[places[cut - stream["start"] - 1]] == "before a line end"


def test_frames_and_events_are_shown_without_what_they_do_not_say():
    assert stream_of(FRAMES)["items"] == [
        '{"data": "{\\"type\\":\\"message_start\\"}", "event": "message_start"}',
        '{"data": "{\\"type\\":\\"message_stop\\"}", "event": "message_stop"}',
    ]
    case = Case("anthropic", (Event({"b": 1}, "ping"), Event(Raw("torn\u202e"))), "events")
    assert stream_of(case)["items"] == ['ping {"b": 1}', "torn\\u{202E}"]


def test_a_probe_is_drawn_with_both_streams_and_what_is_done_with_them():
    case = Case("openai-chat", (b"data: 1\n\n",), probe="isolated", other=(b"data: 2\n\n",))
    drawn = entry(case=case)["case"]
    assert drawn["probe"].startswith("Two streams:")
    assert [stream["bytes"] for stream in drawn["streams"]] == ["data: 1\n\n", "data: 2\n\n"]
    assert "judge" not in drawn
    growth = entry(case=Case("sse", (), probe="growth-long"))["case"]
    assert growth["streams"] == []
    assert growth["probe"].startswith("One long event")


# -- what the target gave out ----------------------------------------------------------------------------------


def trace(*items, after, ending="complete", **more):
    return Trace(items, after, ending, more.get("result"), more.get("failure"), 7, True, 0.0)


def traced(told):
    return unpacked(made(of(reported(finding())), trace_of=lambda target, case: told))[1][0]["trace"]


def test_what_a_target_gave_out_is_told_by_chunk():
    call = {"name": "f"}
    items = (Delta("a"), Delta("\u202e"), Delta("c"), Snapshot({"text": "ab"}), Release(call), Final({}), {"data": "x"})
    told = traced(trace(*items, after=(1, 1, 2, 2, 3, 3, 4), result={"text": "ab"}))
    assert told["moments"] == [
        [1, "text", "a\\u{202E}"],
        [2, "text", "c"],
        [2, "the whole so far", '{"text": "ab"}'],
        [3, "a tool call to act on", '{"name": "f"}'],
        [3, "the final message", "{}"],
        [4, "item", '{"data": "x"}'],
    ]
    assert (told["end"], told["result"], told["taken"]) == ("ended as complete", '{"text": "ab"}', 7)


def test_equal_frames_are_not_joined():
    told = traced(trace({"data": "x"}, {"data": "x"}, after=(1, 1)))
    assert told["moments"] == [[1, "item", '{"data": "x"}']] * 2


def test_an_error_and_a_hang_are_told():
    failure = Failure("KeyError", HOSTILE, "a.py:1", declared=False, transport=False)
    assert traced(trace(after=(), ending="error", failure=failure))["end"].startswith("ended with KeyError: \\x1B[2J")
    assert traced(trace(after=(), ending="hang"))["end"] == "did not end"


def test_a_target_that_cannot_be_run_leaves_no_trace():
    assert traced(None) is None


def test_targets_are_run_again_until_patience_is_over(monkeypatch):
    monkeypatch.setattr(page_data, "PATIENCE", 0.0)
    assert traced(trace(after=())) is None


# -- the whole --------------------------------------------------------------------------------------------------


def test_the_headline_says_what_is_to_be_done():
    assert headline(night()) == "7 failures to act on in 2 of 4 targets."
    assert headline(empty_night()) == "Nothing to act on in 1,000 cases."
    assert headline(of(reported(finding()))) == "1 failure to act on in reader."
    assert headline(of(reported(finding(), "again"))) == "No failure is news in 9 cases."


def test_what_else_a_reader_must_know_stands_at_the_top():
    told = night()
    told.results[1].interrupted = True
    html = made(told)
    head = html[: html.index("<main>")]
    assert "The job was stopped before its time" in head
    assert "faithful.lost: a byte order mark was known (waits for upstream) and did not occur" in head
    assert "corpus/x.json was skipped: it has format 9" in head


def test_goals_and_rules_stand_in_a_grid():
    told = (
        Result("a", "sse", 1, 9, goals=Counter({"cut inside CRLF": 2, "one byte a chunk": 1})),
        Result("b", "openai-chat", 1, 9, goals=Counter({"cut inside CRLF": 7, "rule: stream.reset": 4})),
        Result("idle", "sse", 1),
    )
    told[0].unreached = ("style: BOM",)
    groups = {title: {row.name: row for row in rows} for title, rows in grid(told)}
    assert groups["Where streams were cut"]["inside CRLF"].counts == (2, 7, None)
    assert groups["What else was tried"]["one byte a chunk"].counts == (1, None, None)
    assert groups["How streams were spelled"]["BOM"].unmet
    rules = groups["Rules that streams broke"]
    assert rules["stream.reset"].counts == (0, 4, None)
    assert rules["stream.reset"].about
    assert rules["openai-chat.choice.unfinished"].counts == (None, 0, None)


def test_a_count_is_shaded_by_its_size():
    assert list(map(heat, (0, 1, 40, 2_000, 10**9))) == [0, 1, 2, 3, 4]


CURVE = [Point(n * 1.0, n * n, n, 0, n // 9) for n in range(1, 500)]


def test_rates_add_up_to_the_cases():
    rates = charts.rates(CURVE)
    stretch = CURVE[-1].seconds / charts.STRETCHES
    assert sum(rate for _, rate in rates) * stretch == pytest.approx(CURVE[-1].cases)
    assert rates[-1][0] == CURVE[-1].seconds
    assert charts.rates([Point(0, 0, 0, 0, 0)]) == []


def test_a_thinned_curve_keeps_its_ends():
    few = charts.thinned(CURVE, 12)
    assert len(few) == 12
    assert (few[0], few[-1]) == (CURVE[0], CURVE[-1])
    assert charts.thinned(CURVE[:3], 12) == CURVE[:3]


def test_the_charts_of_a_search_say_their_highest_value():
    assert [(name, most) for name, most, _ in charts.curves(CURVE)][:3] == [
        ("Findings", "55"),
        ("Goals reached", "499"),
        ("Rules broken", "0"),
    ]


def test_past_jobs_are_shown_with_this_one_last():
    past = [Trend(datetime(2026, 11, day, tzinfo=UTC), 1000, 10.0, day, 0, 0, 0) for day in range(1, 29)]
    html = made(night(), past=past)
    assert html.index("2026-11-30 01:02</th>") < html.index("2026-11-28 01:00</th>")
    assert "The last 29 jobs" in html
    assert Trend.of(night()) == Trend(STARTED, 1_312_352, 181.5, 8, 2, 2, 2)
