"""Chat completion chunks in, reply out."""

from __future__ import annotations

from collections.abc import Sequence

from ...reply import Choice, Part, Reasoning, Refusal, Reply, Text, ToolCall, Usage, usage_of
from ...stream import Event
from .shape import CUT_FINISHES, MAX_CHOICES, Call, Entry, absorb, entries, error, is_done, joined, string


class _Choice:
    """One choice as far as it has been streamed."""

    __slots__ = ("calls", "finish", "reasoning", "refusal", "text")

    def __init__(self) -> None:
        self.reasoning: list[str] = []
        self.text: list[str] = []
        self.refusal: list[str] = []
        self.calls: list[Call] = []
        self.finish: str | None = None

    def add(self, entry: Entry) -> None:
        """Append what the entry carries.  Of several finish reasons the last holds."""
        self.reasoning.append(entry.reasoning)
        self.text.append(entry.text)
        self.refusal.append(entry.refusal)
        for fragment in entry.fragments:
            absorb(self.calls, fragment)
        self.finish = entry.finish or self.finish

    def tool_calls(self) -> list[ToolCall]:
        """The calls by index; those that share one, in order of arrival."""
        in_order = sorted(self.calls, key=lambda call: call.slot)
        return [ToolCall(call.id or None, call.name, joined(call.arguments)) for call in in_order]

    def choice(self) -> Choice:
        """The choice in normal form."""
        spoken = (
            (Reasoning, "".join(self.reasoning)),
            (Text, "".join(self.text)),
            (Refusal, "".join(self.refusal)),
        )
        parts: list[Part] = [kind(text) for kind, text in spoken if text]
        return Choice((*parts, *self.tool_calls()), self.finish)


class Reducer:
    """Reads one stream of chunks.

    Deltas of different kinds have no order among themselves (an answer's ``content`` and ``tool_calls`` are
    separate members of one message), so the parts of a choice stand in a fixed one: reasoning, text, refusal,
    then the calls by index.  Choices stand at their index, an empty one
    in the place of each that never came.  Nothing counts after ``[DONE]`` or an error.
    """

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._id = ""
        self._model = ""
        self._usage: Usage | None = None
        self._over = False

    def apply(self, event: Event) -> None:
        """Take in one event."""
        if self._over:
            return
        data = event.data
        self._over = is_done(event) or error(event) is not None
        if self._over or not isinstance(data, dict):
            return
        # Azure's first chunk has an empty id and model: the first that says something counts.
        self._id = self._id or string(data.get("id"))
        self._model = self._model or string(data.get("model"))
        self._usage = usage_of(data.get("usage"), "prompt_tokens", "completion_tokens") or self._usage
        for entry in entries(data):
            if entry.number not in self._choices:
                self._choices[entry.number] = _Choice()
            self._choices[entry.number].add(entry)

    def reply(self) -> Reply:
        """The reply so far."""
        top = max(self._choices, default=-1)
        indices = range(top + 1) if top < MAX_CHOICES else sorted(self._choices)
        choices = tuple(self._choices[i].choice() if i in self._choices else Choice() for i in indices)
        return Reply(choices, self._id or None, self._model or None, self._usage)

    def released(self) -> Sequence[ToolCall]:
        """The calls of the choices that finished and were not cut off."""
        finished = (self._choices[index] for index in sorted(self._choices))
        return [
            call
            for choice in finished
            if choice.finish is not None and choice.finish not in CUT_FINISHES
            for call in choice.tool_calls()
        ]
