"""Findings are drawn first and told in short after that, and are the same text wherever they are drawn."""

from __future__ import annotations

import io

from streamfuzz.report.paper import IN_FULL, Paper, as_text

from .samples import HOSTILE, KNOWN, finding, findings, reported


def test_after_the_first_ones_findings_are_told_in_short():
    stream = io.StringIO()
    found = [reported(finding(f"cause {n}"), "known", known=KNOWN) for n in range(IN_FULL + 2)]
    Paper(stream).findings(found, lambda reported: "the command")
    text = stream.getvalue()
    assert text.count("chunk  byte") == text.count("the command") == IN_FULL
    assert text.endswith(
        "\n"
        "And, in short (`streamfuzz show FILE` draws one):\n"
        "11. known  reader loses the text '\u4f60\U0001f600' because of cause 10.\n"
        "    known until 2030-01-02: waits for upstream\n"
        "    seen since 2026-11-02, last 2026-11-30\n"
        "    corpus/reader/1f.json\n"
        "12. known  reader loses the text '\u4f60\U0001f600' because of cause 11.\n"
        "    known until 2030-01-02: waits for upstream\n"
        "    seen since 2026-11-02, last 2026-11-30\n"
        "    corpus/reader/1f.json\n"
    )


def test_a_finding_is_plain_lines_without_a_number():
    text = as_text(findings()[2])
    assert text.startswith("FAIL  reader reports the text as complete although a payload was not JSON.\nfail_closed.")
    assert text.endswith("\nfile    corpus/reader/1f.json\nreplay  streamfuzz replay reader corpus/reader/1f.json\n")
    assert all(line.isprintable() for line in as_text(reported(finding(HOSTILE))).split("\n"))
    assert "replay" not in as_text(reported(finding(), path=None))


def test_values_that_are_no_text_are_shown_as_json():
    text = as_text(reported(finding(kind="altered", expected={"b": 1, "a": "x" * 80}, got={"a": "x" * 80})))
    assert 'x", "b": 1}\n' in text
