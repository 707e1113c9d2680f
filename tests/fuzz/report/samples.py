"""Made-up nights for the tests of the reports: every status, several targets, and texts that want to break out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone

from streamfuzz.case import Case
from streamfuzz.deviation import Deviation
from streamfuzz.finding import Finding
from streamfuzz.happenings import (
    Began,
    Ended,
    Happening,
    Mended,
    NewFinding,
    Progress,
    Searched,
    Settled,
    Trouble,
    WorkerLost,
)
from streamfuzz.result import Fixed, Night, Point, Reported, Result, Share
from streamfuzz.spec import Known
from streamfuzz_strategies.judge import NOT_JSON
from streamfuzz_strategies.stream import Event, Frame, Raw

STARTED = datetime(2026, 11, 30, 1, 2, 3, tzinfo=timezone(timedelta(hours=1)))

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07[bold red]x[/bold red] ]]> --> </script><script>alert(1)</script>"
    "<img src=x onerror=alert(2)> & \"double\" 'single' `tick` ```fence``` | **bold** [link](javascript:alert(3))"
    " @someone #1 {{7*7}} 100%0Aoff"
    "\r\n::error::injected\n| a | b |\x00\ufffe\ud83d\u202eleft\u2028\u0085\u200d"
)
"""Text with a trap for each place where a report writes it."""

CASE = Case(
    "openai-chat",
    (
        b": hi\ndata: ",
        b'{"id":"c","object":"chat.completion.chunk","created":1,"model":"m",',
        b'"choices":[{"index":0,"delta":{"role":"assistant","content":"\xe4\xbd',
        b'\xa0\xf0\x9f\x98\x80"},"finish_reason":null}]}\n\n',
        b"",
        b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
        b"data: [DONE]\n\n",
    ),
)
TORN = replace(CASE, chunks=(b'data: {"id":\n\n',), end="reset")
FRAMES = Case(
    "anthropic",
    (
        Frame('{"type":"message_start"}', "message_start"),
        Frame('{"type":"message_stop"}', "message_stop"),
    ),
    takes="frames",
)
EVENTS = Case("openai-responses", (Event({"type": "response.created"}), Event(Raw("{torn"))), takes="events")
TWO = replace(CASE, probe="isolated", other=(b"data: [DONE]\n\n",))
GROWTH = Case("sse", (), probe="growth-long")

KNOWN = Known("faithful.lost: a byte order mark", "waits for upstream", date(2030, 1, 2))
OVER = Known("faithful.lost: CR line ends", "was to be mended by summer", date(2026, 8, 31))


def finding(
    cause: str = "a comment",
    *,
    target: str = "reader",
    oracle: str = "faithful",
    kind: str = "lost",
    verdict: str = "fail",
    case: Case = CASE,
    **more: object,
) -> Finding:
    """A finding; ``more``: members of the finding and of its deviation."""
    of_finding = {name: more.pop(name) for name in ("count", "flaky", "how") if name in more}
    members = {"what": "the text", "expected": "\u4f60\U0001f600", "got": "", "verdict": verdict, **more}
    return Finding(target, case, Deviation(oracle, kind, **members), (cause,) if cause else (), **of_finding)


def reported(found: Finding, status: str = "new", **more: object) -> Reported:
    """A finding as it is reported, with a file and days to fit its status."""
    first = date(2026, 11, 30) if status == "new" else date(2026, 11, 2)
    last = date(2026, 11, 29) if status == "back" else date(2026, 11, 30)
    members = {"path": "corpus/reader/1f.json", "first": first, "last": last, "failed": 10, "runs": 10, **more}
    return Reported(found, status=status, **members)


def findings(target: str = "reader") -> list[Reported]:
    """One finding of each status, a warning, and a flaky one."""
    stray = {"oracle": "typed_error", "kind": "undeclared", "what": "a stray KeyError in feed", "expected": None}
    flaky = {"oracle": "fragmentation", "kind": "altered", "case": TWO, "flaky": True}
    return [
        reported(finding("a comment", target=target, count=1200)),
        reported(finding("a repeated event", target=target, kind="repeated", got="\u4f60" * 80), "back"),
        reported(
            finding("", target=target, oracle="fail_closed", kind="trusted", case=TORN, rule=NOT_JSON, got=None),
            engine="coverage",
        ),
        reported(finding("CR line ends", target=target), "expired", known=OVER),
        reported(finding("an unknown field", target=target, verdict="warn", case=FRAMES)),
        reported(finding("a cut inside a character", target=target, **flaky), failed=3),
        reported(finding("null members", target=target, case=EVENTS), "again"),
        reported(finding("a byte order mark", target=target), "known", known=KNOWN),
        reported(finding("", target=target, case=GROWTH, got="KeyError: 'x', at mine.py:3", **stray), "again"),
    ]


def hostile() -> Result:
    """A target of which every text is hostile."""
    case = replace(CASE, chunks=(f"data: {HOSTILE}\n\n".encode("utf-8", "surrogatepass"), b"\xff\xfe\x00"))
    known = Known(HOSTILE, HOSTILE, date(2030, 1, 2))
    more = {"target": HOSTILE, "what": HOSTILE, "expected": HOSTILE * 9, "case": case}
    found = [
        reported(finding(HOSTILE, got=HOSTILE + "x" * 1000, **more), path=HOSTILE),
        reported(
            finding(HOSTILE, got={HOSTILE: [HOSTILE]}, kind="altered", **more), "known", known=known, path=HOSTILE
        ),
        reported(finding("", got=None, kind="refused", flaky=True, **more), failed=1, path=None, engine=HOSTILE),
    ]
    return Result(
        HOSTILE,
        "openai-chat",
        3,
        7,
        1.0,
        0.5,
        found,
        [Fixed(HOSTILE, HOSTILE, HOSTILE)],
        (known,),
        Counter({HOSTILE: 2}),
        ("a cut inside a character",),
        engines={HOSTILE: Share(7, 1.0, 3)},
        source=f"{HOSTILE}:12",
    )


def night(**more: object) -> Night:
    """A night with everything: findings of all statuses, fixed and gone ones, hostile texts, troubles, lost workers."""
    goals = Counter(
        {"a cut inside a character": 12_000, "a stream without its end": 3, "rule: stream.payload.not-json": 40}
    )
    unmet = ("a tool call in pieces", "two choices at once")
    curve = [Point(n * 4.0, n * n * 900, min(n // 2, 2), n // 4, min(n, 9)) for n in range(31)]
    reader = Result(
        "reader",
        "openai-chat",
        7,
        812_345,
        120.5,
        80.25,
        findings(),
        [
            Fixed(
                "faithful.lost: a retry field",
                "reader loses the text because of a retry field.",
                "corpus/reader/0a.json",
            )
        ],
        (KNOWN,),
        goals,
        unmet,
        more=321,
        curve=curve,
        engines={"sweep": Share(700_000, 100.0, 8), "coverage": Share(112_345, 20.5, 1)},
        source="src/mine/reader.py:42",
    )
    clean = Result("clean", "anthropic", 8, 500_000, 60.0, 50.0, goals=Counter(goals), curve=curve[:16])
    clean.engines["sweep"] = Share(500_000, 60.0)
    idle = Result("idle", "sse", 9)
    members = {
        "workers": 4,
        "lost": 1,
        "troubles": ("corpus/x.json was skipped: it has format 9, this version reads 1", HOSTILE),
        "vacuous": True,
        **more,
    }
    return Night("batch", STARTED, 181.5, (reader, clean, hostile(), idle), **members)


def empty_night() -> Night:
    """A night in which one target was searched and nothing was found."""
    goals = Counter({"a cut inside a character": 3})
    engines = {"sweep": Share(1000, 2.0)}
    return Night("batch", STARTED, 2.0, (Result("clean", "sse", 1, 1000, 2.0, 1.5, goals=goals, engines=engines),))


def big_night(n: int) -> Night:
    """A night with ``n`` different findings of one target."""
    statuses = ("new", "again", "known", "expired", "back")
    found = [
        reported(
            finding(f"cause number {i}"),
            statuses[i % 5],
            path=f"corpus/{i:05}.json",
            known=None if i % 5 < 2 else KNOWN,
        )
        for i in range(n)
    ]
    result = Result("reader", "openai-chat", 7, n * 100, 60.0, 30.0, found, goals=Counter({"a goal": n}))
    result.engines["sweep"] = Share(n * 100, 60.0, n)
    return Night("batch", STARTED, 61.0, (result,), 2)


def happenings(of: Night | None = None) -> list[Happening]:
    """One happening of each kind and more, as a job tells them that ends in this night."""
    told = of if of is not None else night()
    made: list[Happening] = [Began(told.mode, told.started, [r.target for r in told.results], 180.0, told.workers)]
    for result in told.results:
        made.append(Progress(result.target, 10, 0.5, 0, 1, 4, left=179.5))
        made += [NewFinding(each.finding) for each in result.findings]
        made.append(Searched(result.target, "sweep", '{"seed":1}', result.cases, result.seconds, (HOSTILE,)))
        made.append(Progress(result.target, result.cases, result.seconds, len(result.findings), 2, 4, "shrinking", 1.0))
        made += [Settled(each) for each in result.findings]
        made += [Mended(result.target, fixed) for fixed in result.fixed]
    made += [WorkerLost("reader", "killed by signal 11 (SIGSEGV)"), *map(Trouble, told.troubles), Ended(told)]
    return made
