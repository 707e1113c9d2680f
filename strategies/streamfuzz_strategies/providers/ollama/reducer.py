"""Records in, reply out."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ...reply import Choice, Json, Reasoning, Reply, Text, ToolCall, Usage, usage_of
from ...stream import Event


def canonical(value: Json) -> str:
    """Compact JSON text of a value, its members in the order in which they stand."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits, to be written
        return "null"


def error(event: Event) -> str | None:
    """The message of an error line; of an error object that has none, the object."""
    found = event.data.get("error") if isinstance(event.data, dict) else None
    if not found:
        return None
    if isinstance(found, dict) and isinstance(found.get("message"), str):
        found = found["message"]
    return found if isinstance(found, str) else canonical(found)


class OllamaReducer:
    """Appends what the records bring until one of them is the last."""

    __slots__ = ("_closed", "_finish", "_model", "_parts", "_usage")

    def __init__(self) -> None:
        self._parts: list[ToolCall | tuple[type[Text] | type[Reasoning], list[str]]] = []
        self._model: str | None = None
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._closed = False

    def apply(self, event: Event) -> None:
        """Take in one line."""
        record = event.data
        if self._closed or not isinstance(record, dict):
            return
        if error(event) is not None:
            self._closed = True
            return
        if self._model is None and isinstance(model := record.get("model"), str):
            self._model = model or None
        if isinstance(message := record.get("message"), dict):
            self._append(Reasoning, message.get("thinking"))
            self._append(Text, message.get("content"))
            calls = message.get("tool_calls")
            for call in calls if isinstance(calls, list) else ():
                self._call(call)
        if record.get("done"):
            self._closed = True
            reason = record.get("done_reason")
            self._finish = reason if isinstance(reason, str) and reason else None
            usage = usage_of(record, "prompt_eval_count", "eval_count")
            self._usage = usage if usage != Usage() else None

    def reply(self) -> Reply:
        """The reply so far: always one choice."""
        parts = tuple(part if isinstance(part, ToolCall) else part[0]("".join(part[1])) for part in self._parts)
        return Reply((Choice(parts, self._finish),), None, self._model, self._usage)

    def released(self) -> Sequence[ToolCall]:
        """Every call so far: each arrives whole."""
        return [part for part in self._parts if isinstance(part, ToolCall)]

    def _append(self, of: type[Text] | type[Reasoning], text: Json) -> None:
        if not isinstance(text, str) or not text:
            return
        last = self._parts[-1] if self._parts else None
        if isinstance(last, tuple) and last[0] is of:
            last[1].append(text)
        else:
            self._parts.append((of, [text]))

    def _call(self, call: Json) -> None:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(name := function.get("name"), str):
            return
        id_, arguments = call.get("id"), function.get("arguments")
        if not isinstance(arguments, str):
            arguments = canonical({} if arguments is None else arguments)
        self._parts.append(ToolCall(id_ if isinstance(id_, str) and id_ else None, name, arguments))
