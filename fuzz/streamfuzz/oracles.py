"""The invariants: each oracle holds what a target did against what the stream is worth.

Every oracle is one function over one :class:`Run`; its docstring opens with the invariant.  Oracles that need
more than one run of the target live in :mod:`.probes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

from streamfuzz_strategies.judge import NOT_JSON
from streamfuzz_strategies.providers import Provider
from streamfuzz_strategies.reply import Choice, Json, Reply, choice_view, part_view
from streamfuzz_strategies.rules import Rule
from streamfuzz_strategies.stream import Event, Frame, Raw

from .compare import Difference, same_call, sequences, texts, views
from .deviation import Deviation, Run, Verdict
from .spec import Delta, Final, Form, Release, Snapshot, Target
from .trace import UNENDED, Trace

Oracle: TypeAlias = Callable[[Run], Iterator[Deviation]]


def faithful(run: Run) -> Iterator[Deviation]:
    """A complete stream gives exactly the reference: nothing lost, repeated, reordered, altered or invented."""
    trace, judgement = run.trace, run.judgement
    if trace.ending in UNENDED or (judgement.error is not None and run.target.gives != "frames"):
        return
    if run.target.gives == "frames":
        yield from _faithful_frames(run)
    elif run.target.gives == "events":
        yield from _faithful_events(run)
    elif not judgement.accepted:
        return
    elif trace.ending in ("error", "incomplete"):
        if not judgement.may_refuse and run.reading.conforms(len(judgement.events)):
            yield _refused(run, "the message" if run.target.gives == "reply" else "the value")
    elif run.target.gives == "json":
        value = judgement.events[0].data if judgement.events else None
        if trace.result != value or isinstance(trace.result, bool) != isinstance(value, bool):
            yield Deviation("faithful", "altered", "the value", value, trace.result, _rule(run))
    else:
        found = [views(trace.result, reply) for reply in judgement.accepted]
        if all(found) and not _unfinished_truth(run):
            yield _differs("faithful", found[0], run)


def _faithful_frames(run: Run) -> Iterator[Deviation]:
    trace, judgement = run.trace, run.judgement
    fields = tuple(trace.items[0]) if trace.items else ("data",)
    wanted = [frame_view(frame, fields) for frame in judgement.frames]
    got = list(trace.items)
    broken = bool(judgement.breaches) and run.provider.framing.name != "sse"
    if trace.ending in ("error", "incomplete"):
        if not (broken or run.end == "reset" or _transport(run)):
            yield _refused(run, "the frames")
            return
        if got == wanted[: len(got)]:
            return
    elif run.end == "reset" and got == wanted[: len(got)]:
        return
    difference = sequences(wanted, got, "frame")
    if difference is None:
        return
    if judgement.pending is not None and got == [*wanted, frame_view(judgement.pending, fields)]:
        what = "an event that the end of the stream had cut off"
        yield Deviation("faithful", "delivered", what, None, got[-1], verdict="warn")
        return
    yield _differs("faithful", difference, run)


def _faithful_events(run: Run) -> Iterator[Deviation]:
    trace, judgement, provider = run.trace, run.judgement, run.provider
    wanted, hole = expected_events(run)
    got = [item for item in trace.items if not _ignorable(provider, item)]
    failed = trace.ending in ("error", "incomplete")
    if failed and (hole or judgement.breaches or run.end == "reset" or judgement.may_refuse):
        if got != wanted[: len(got)]:
            difference = sequences(wanted, got, "event")
            if difference is not None and difference.change != "lost":
                yield _differs("faithful", difference, run)
        return
    if failed:
        if run.reading.conforms(len(judgement.events)):
            yield _refused(run, "the events")
        return
    if hole and len(got) >= len(wanted):
        return  # reading over what cannot be read is fail_closed's
    optional = [event for event in wanted if event not in got] if run.judgement.breaches else []
    difference = sequences(wanted, got, "event")
    if difference is None or (optional and _skipped_only_odd(run, wanted, got)):
        return
    yield _differs("faithful", difference, run)


def _skipped_only_odd(run: Run, wanted: Sequence[Json], got: Sequence[Json]) -> bool:
    odd = [run.judgement.events[b.index].data for b in run.judgement.breaches if b.index >= 0 and b.level == "may"]
    return [event for event in wanted if event not in odd] == [event for event in got if event not in odd]


def expected_events(run: Run) -> tuple[list[Json], bool]:
    """The events that a reader of events gives out, and whether an undecodable one stands among them.

    The sentinel ends them; events that carry nothing may be left out and are.
    """
    wanted: list[Json] = []
    hole = any(breach.rule is NOT_JSON for breach in run.judgement.breaches)
    for event in run.judgement.events:
        if isinstance(event.data, Raw):
            if event.data.text == run.provider.sentinel:
                break
            continue
        if run.provider.kind(event) not in run.provider.ignorable:
            wanted.append(event.data)
    return wanted, hole


def _ignorable(provider: Provider, data: Json) -> bool:
    return provider.kind(Event(data)) in provider.ignorable


def fail_closed(run: Run) -> Iterator[Deviation]:
    """A stream without its terminal proof, or with visible damage, never ends as complete."""
    trace, judgement = run.trace, run.judgement
    if trace.ending != "complete" or judgement.error is not None or run.target.gives == "frames":
        return
    if run.target.gives == "events":
        wanted, hole = expected_events(run)
        if hole:
            got = [item for item in trace.items if not _ignorable(run.provider, item)]
            if len(got) >= len(wanted):
                yield Deviation("fail_closed", "trusted", "the stream", rule=_rule(run))
        return
    if judgement.accepted and not _unfinished_truth(run):
        return
    weak = run.target.gives == "reply" and _says_unfinished(trace.result)
    yield Deviation(
        "fail_closed",
        "trusted",
        "the message" if run.target.gives == "reply" else "the value",
        None,
        trace.result,
        _rule(run),
        "warn" if weak else "fail",
    )


def _unfinished_truth(run: Run) -> bool:
    """Whether the target tells what arrived and, by an absent finish alone, that it is not all."""
    result = run.trace.result
    doubtful = bool(run.judgement.breaches) or run.judgement.pending is not None
    if run.target.gives != "reply" or not doubtful or not _says_unfinished(result):
        return False
    if any(views(result, reply) is None for reply in run.judgement.accepted):
        return False
    rest = {name: value for name, value in result.items() if name != "finish"}
    if "choices" in rest:
        rest["choices"] = [{n: v for n, v in choice.items() if n != "finish"} for choice in rest["choices"]]
    return any(views(rest, truth) is None for truth in run.judgement.truths)


def _says_unfinished(result: Json) -> bool:
    choices = result.get("choices", [result]) if isinstance(result, Mapping) else []
    return not choices or any("finish" in choice and not choice["finish"] for choice in choices)


def prefix(run: Run) -> Iterator[Deviation]:
    """What is shown before the end is a prefix of the truth, and is never taken back."""
    if run.target.gives != "reply" or not run.trace.items:
        return
    truths = [choice_view(choice) for reply in _truths(run) for choice in reply.choices[:1]]
    whole = run.provider.told_whole(run.judgement.events)
    if whole:
        truths += [choice_view(_without(choice, whole)) for reply in _truths(run) for choice in reply.choices[:1]]
    for name in sorted({item.field for item in run.trace.items if isinstance(item, Delta)}):
        shown = run.trace.shown(name)
        if not any(truth.get(name, "").startswith(shown) for truth in truths) and shown:
            truth = truths[0].get(name, "") if truths else ""
            difference = texts(truth[: len(shown)], shown, f"the {name} shown on the way")
            if difference is not None:
                yield _differs("prefix", difference, run)
                return
    yield from _taken_back(run, truths)


def _without(choice: Choice, texts: frozenset[str]) -> Choice:
    """The choice as those see it who only see deltas."""
    return replace(choice, parts=tuple(part for part in choice.parts if getattr(part, "text", None) not in texts))


def _truths(run: Run) -> Iterator[Reply]:
    """What a target may show the beginning of; in a damaged stream, also what it said before it was damaged."""
    yield from run.judgement.truths
    if run.judgement.breaches:
        for count in range(len(run.judgement.events), 0, -1):
            yield run.reading.reply(min(count, len(run.reading.events)))


def _taken_back(run: Run, truths: Sequence[Mapping[str, Json]]) -> Iterator[Deviation]:
    before: Mapping[str, Json] = {}
    for item in run.trace.items:
        if not isinstance(item, Snapshot):
            continue
        for name in ("text", "reasoning", "refusal"):
            now, then = item.view.get(name), before.get(name)
            if isinstance(now, str) and isinstance(then, str) and not now.startswith(then):
                yield Deviation("prefix", "taken-back", f"the {name} shown on the way", then, now, _rule(run))
                return
            if isinstance(now, str) and not any(truth[name].startswith(now) for truth in truths) and now:
                truth = truths[0][name] if truths else ""
                difference = texts(truth[: len(now)], now, f"the {name} shown on the way")
                if difference is not None:
                    yield _differs("prefix", difference, run)
                    return
        before = item.view


def no_early_action(run: Run) -> Iterator[Deviation]:
    """No tool call or final message is released before its own terminator; none from a turn that was cut."""
    if run.target.gives != "reply":
        return
    for item, after in zip(run.trace.items, run.trace.after, strict=True):
        if isinstance(item, Release):
            offset = run.offset(after)
            count = run.reading.count(offset)
            pending = 1 if after > len(run.chunks) or run.provider.framing.keeps_pending else 0
            safe = run.reading.released(min(count + pending, len(run.reading.events)))
            if not any(same_call(item.call, part_view(call)) for call in safe):
                yield Deviation("no_early_action", "early", "a tool call", None, item.call, _rule(run))
                return
        elif isinstance(item, Final) and run.judgement.accepted and not run.reading.upto(run.offset(after)).accepted:
            yield Deviation("no_early_action", "early", "the final message", None, item.view, _rule(run))
            return


def once_terminal(run: Run) -> Iterator[Deviation]:
    """Completion is reported at most once, and nothing follows it."""
    finals = [index for index, item in enumerate(run.trace.items) if isinstance(item, Final)]
    if len(finals) > 1:
        yield Deviation("once_terminal", "twice", "completion", 1, len(finals), _rule(run))
    elif finals and finals[0] != len(run.trace.items) - 1:
        late = run.trace.items[finals[0] + 1]
        yield Deviation("once_terminal", "late", "something shown after completion", None, _json(late), _rule(run))


def surfaced_error(run: Run) -> Iterator[Deviation]:
    """A provider error reaches the caller as an error with its cause."""
    cause, trace = run.judgement.error, run.trace
    if cause is None or trace.ending in UNENDED or run.target.gives in ("frames", "json"):
        return
    if run.target.gives == "events" and any(cause in str(item) for item in trace.items):
        return
    damaged_before = any(breach.rule.id != "stream.error" for breach in run.judgement.breaches)
    if trace.ending == "complete" or (trace.ending == "incomplete" and not damaged_before):
        kind = "swallowed"
        yield Deviation("surfaced_error", kind, "an error that the provider reported", cause, None, _rule(run))
    elif damaged_before:
        return  # refusing at the damage is right, and the error was never reached
    elif trace.failure is not None and cause not in trace.failure.message:
        if not run.reading.conforms(len(run.judgement.events)):
            return  # what an error says is only known where it is documented
        got = f"{trace.failure.type}: {trace.failure.message}"
        yield Deviation("surfaced_error", "masked", "the cause of the provider's error", cause, got, _rule(run))


def typed_error(run: Run) -> Iterator[Deviation]:
    """Errors are of the target's declared types, never a stray IndexError."""
    failure = run.trace.failure
    if failure is None or run.trace.ending != "error" or failure.declared or failure.transport:
        return
    lawful = not run.judgement.may_refuse and run.judgement.accepted
    if lawful and run.reading.conforms(len(run.judgement.events)):
        return  # refusing a lawful stream is the deviation, whatever the type
    words = f"{failure.type}: {failure.message}" if failure.message else failure.type
    what = f"a stray {failure.type} in {failure.where.rpartition(' in ')[2]}"
    got = f"{words}, at {failure.where.partition(' in ')[0]}"
    yield Deviation("typed_error", "undeclared", what, None, got, error=failure.type)


def incremental(run: Run) -> Iterator[Deviation]:
    """An event is out by the time the bytes of the next one are in: no silent buffering to the end."""
    trace = run.trace
    if not trace.streaming or trace.ending != "complete" or not run.judgement.accepted or run.judgement.breaches:
        return
    if run.target.gives == "frames" or run.target.gives == "events":
        yield from _late_items(run)
    elif not run.provider.told_whole(run.judgement.events):
        yield from _late_text(run)


def _late_items(run: Run) -> Iterator[Deviation]:
    ends = run.reading.ends
    if len(run.trace.items) > len(ends):
        return
    for index, after in enumerate(run.trace.after[:-1]):
        # What was out only when a later pull had been answered must have been decided by that pull.
        if run.offset(after - 1) >= ends[min(index + 1 + len(ends) - len(run.trace.items), len(ends) - 1)]:
            yield Deviation("incremental", "late", f"{run.target.gives[:-1]} {index + 1}", None, None)
            return


def _late_text(run: Run) -> Iterator[Deviation]:
    shown = 0
    timeline = []
    for item, after in zip(run.trace.items, run.trace.after, strict=True):
        if isinstance(item, Delta) and item.field == "text":
            shown += len(item.text)
            timeline.append((after, shown))
    if not timeline:
        return
    for count in range(1, len(run.reading.events) - 1):
        reply = run.reading.reply(count)
        due = len(choice_view(reply.choices[0])["text"]) if reply.choices else 0
        if not due:
            continue
        limit = run.reading.ends[count]  # by the end of the event after it
        by_then = max((total for after, total in timeline if run.offset(after - 1) < limit), default=0)
        if by_then < due:
            yield Deviation("incremental", "late", f"the text of event {count}", None, None)
            return


def fragmentation(run: Run) -> Iterator[Deviation]:
    """The same bytes, cut anywhere, give the same trace."""
    if run.baseline is None or run.trace.outcome() == run.baseline.outcome():
        return
    if run.trace.ending in UNENDED or run.baseline.ending in UNENDED:
        return  # bounded has it
    if run.trace.ending != run.baseline.ending:
        if run.trace.failure is not None:
            got = f"{run.trace.failure.type}: {run.trace.failure.message}"
            yield Deviation("fragmentation", "refused", "the stream", run.baseline.ending, got, _rule(run))
        elif run.baseline.failure is not None:
            yield Deviation("fragmentation", "trusted", "the stream", run.baseline.failure.type, run.trace.ending)
        else:
            yield Deviation("fragmentation", "altered", "the ending", run.baseline.ending, run.trace.ending, _rule(run))
        return
    yield _differs("fragmentation", _between(run.baseline, run.trace, run.target.gives), run)


def _between(one: Trace, other: Trace, gives: str) -> Difference:
    found: Difference | None = None
    if gives in ("frames", "events"):
        found = sequences(one.items, other.items, gives[:-1])
    elif isinstance(one.result, Mapping) and isinstance(other.result, Mapping):
        for name in one.result:
            mine, theirs = one.result[name], other.result.get(name)
            if mine != theirs:
                if isinstance(mine, str) and isinstance(theirs, str):
                    found = texts(mine, theirs, f"the {name}")
                return found or Difference("altered", f"the {name}", mine, theirs)
    if found is None and one.result == other.result:
        found = texts(one.shown(), other.shown(), "the text shown on the way")
    return found or Difference("altered", "the result", _json(one.result), _json(other.result))


def bounded(run: Run) -> Iterator[Deviation]:
    """Time and memory grow linearly with the stream; nothing hangs, leaks, or takes the process down."""
    if run.trace.ending in UNENDED:
        yield unended(run.trace, run.target, _rule(run))


def unended(trace: Trace, target: Target, rule: Rule | None = None) -> Deviation:
    """What is wrong with a run that came to no end of its own."""
    failure = trace.failure
    assert failure is not None
    if trace.ending == "memory":
        got = failure.message if failure.lost else f"{failure.type} at {failure.where}"
        return Deviation("bounded", "memory", "the stream", None, got, rule)
    if trace.ending == "died":
        return Deviation("bounded", "crashed", "the stream", None, failure.message, rule, error=failure.type)
    if failure.lost:
        return Deviation("bounded", "hung", "the target", None, failure.message, rule, error=failure.type)
    got = f"still running after {target.timeout:g} s, at {failure.where}"
    return Deviation("bounded", "hung", "the target", None, got, rule)


ORACLES: Mapping[str, Oracle] = {
    oracle.__name__: oracle
    for oracle in (
        bounded,
        surfaced_error,
        fail_closed,
        faithful,
        typed_error,
        once_terminal,
        no_early_action,
        prefix,
        incremental,
    )
}
"""The oracles of a single run, in the order in which they are asked; ``fragmentation`` is asked of pairs."""

_OF_REPLIES = frozenset({"once_terminal", "no_early_action", "prefix"})
_NOT_OF_FRAMES = frozenset({"surfaced_error", "fail_closed", *_OF_REPLIES})


@cache
def applicable(gives: Form, names: tuple[str, ...]) -> tuple[Oracle, ...]:
    """Those of the named oracles that have something to say about a target that gives this form."""
    silent = {"frames": _NOT_OF_FRAMES, "events": _OF_REPLIES, "json": _OF_REPLIES}.get(gives, frozenset())
    return tuple(ORACLES[name] for name in names if name in ORACLES and name not in silent)


def check(run: Run, names: Sequence[str]) -> list[Deviation]:
    """Ask the named oracles; a run cut at different places is first held against its whole run."""
    found = [deviation for oracle in applicable(run.target.gives, tuple(names)) for deviation in oracle(run)]
    if run.baseline is None or "fragmentation" not in names:
        return found
    known = {(d.oracle, d.kind, d.what, str(d.got)) for d in run.baseline_deviations}
    new = [d for d in found if (d.oracle, d.kind, d.what, str(d.got)) not in known]
    if not new and run.baseline_deviations:
        return found
    differs = list(fragmentation(run))
    if not differs:
        return found
    # The whole run was right about this, so what the cut run got wrong is the cut's doing.
    about_message = ("faithful", "fail_closed", "prefix")
    changed = [replace(d, oracle="fragmentation") for d in new if d.oracle in about_message]
    kept = [d for d in found if d not in new or d.oracle not in (*about_message, "typed_error")]
    return (changed[:1] or differs) + kept


def frame_view(frame: Frame, fields: Sequence[str]) -> dict[str, Json]:
    """The frame as a target with these fields gives it."""
    return {name: getattr(frame, name) for name in fields}


def _refused(run: Run, what: str) -> Deviation:
    failure = run.trace.failure
    got = f"{failure.type}: {failure.message}" if failure is not None else run.trace.ending
    error = failure.type if failure is not None else ""
    verdict: Verdict = "warn" if _has_blank_lines(run) else "fail"
    return Deviation("faithful", "refused", what, None, got, _rule(run), verdict, error)


def _has_blank_lines(run: Run) -> bool:
    """Whether an NDJSON stream has blank lines, which a parser may skip but need not (ndjson-spec, section 3.2)."""
    framing = run.provider.framing
    return framing.name == "ndjson" and any(line.kind == "blank" for line in framing.lines(run.reading.data))


def _differs(oracle: str, difference: Difference | None, run: Run) -> Deviation:
    assert difference is not None
    return Deviation(oracle, difference.change, difference.what, difference.expected, difference.got, _rule(run))


def _rule(run: Run) -> Rule | None:
    worst = run.judgement.worst
    return worst.rule if worst is not None else None


def _transport(run: Run) -> bool:
    return run.trace.failure is not None and run.trace.failure.transport


def _json(value: Any) -> Json:
    if isinstance(value, Reply | Delta | Snapshot | Final | Release):
        return str(value)
    return value
