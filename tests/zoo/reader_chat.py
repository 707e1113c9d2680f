"""A reader of OpenAI chat completion streams that is right in every respect."""

from __future__ import annotations

from dataclasses import dataclass, field

from .readers import Call, Event, Message, Reader, StreamError, number, thing, things, words


@dataclass
class ChatChoice:
    """One answer of a chat completion in the making."""

    text: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    calls: dict[int, Call] = field(default_factory=dict)
    finish: str = ""

    def view(self) -> Message:
        return {
            "text": "".join(self.text),
            "refusal": "".join(self.refusal),
            "tool_calls": [self.calls[index].view() for index in sorted(self.calls)],
            "finish": self.finish,
        }


class Chat(Reader):
    """OpenAI chat completions: choices by index, tool calls by index within their choice."""

    def __init__(self) -> None:
        super().__init__()
        self.choices: dict[int, ChatChoice] = {}

    def payload(self, name: str, text: str) -> None:
        if text == "[DONE]":
            self.done = True
        else:
            super().payload(name, text)

    def event(self, event: Event) -> None:
        self.name_itself(event)
        self.count(event.get("usage"), "prompt_tokens", "completion_tokens")
        for entry in things(event, "choices"):
            self.entry(number(entry, "index"), entry)

    def entry(self, index: int, entry: Event) -> None:
        choice = self.choices.setdefault(index, ChatChoice())
        finished = bool(choice.finish)
        grew = self.delta(index, choice, thing(entry, "delta"))
        reason = words(entry, "finish_reason")
        if finished and (grew or reason):
            raise StreamError(f"choice {index} goes on after its end")
        choice.finish = choice.finish or reason

    def delta(self, index: int, choice: ChatChoice, delta: Event) -> bool:
        """Take in a delta; returns whether there was anything in it."""
        text, refusal, pieces = words(delta, "content"), words(delta, "refusal"), things(delta, "tool_calls")
        choice.text.append(text)
        choice.refusal.append(refusal)
        if index == 0:
            self.show(text)
        grew = [self.piece(choice, number(piece, "index"), piece) for piece in pieces]
        if "function_call" in delta:
            # How a call was streamed before there could be several of them: it has neither index nor id.
            grew.append(self.piece(choice, -1, {"function": delta["function_call"]}))
        thinking = words(delta, "reasoning_content") or words(delta, "reasoning")
        return bool(text or refusal or thinking) or any(grew)

    def piece(self, choice: ChatChoice, index: int, piece: Event) -> bool:
        """Take in a fragment of a tool call; returns whether there was anything in it."""
        call = choice.calls.setdefault(index, Call())
        had = (call.id, call.name)
        function = thing(piece, "function")
        self.identify(call, words(piece, "id"), words(function, "name"))
        call.arguments.append(words(function, "arguments"))
        return had != (call.id, call.name) or bool(call.arguments[-1])

    def identify(self, call: Call, id: str, name: str) -> None:  # noqa: A002
        if (call.id and id and call.id != id) or (call.name and name and call.name != name):
            raise StreamError("two tool calls have the same index")
        call.id, call.name = call.id or id, call.name or name

    def check(self) -> None:
        if not self.choices or max(self.choices) >= len(self.choices):
            raise StreamError("the stream was cut: a choice never appeared")
        if not all(choice.finish for choice in self.choices.values()):
            raise StreamError("the stream was cut: a choice has no finish reason")
        if not all(call.name for choice in self.choices.values() for call in choice.calls.values()):
            raise StreamError("a tool call has no name")

    def message(self) -> Message:
        whole = {"id": self.id, "model": self.model, "usage": self.usage}
        return self.choices.get(0, ChatChoice()).view() | whole


class EveryChoice(Chat):
    """The same, for callers that ask for several answers."""

    def message(self) -> Message:
        whole = {"id": self.id, "model": self.model, "usage": self.usage}
        return {"choices": [self.choices[index].view() for index in sorted(self.choices)]} | whole
