"""The tool calls of one agent's program: the open ones, how each ended, and the events about them. Pure.

A call begins when the program reports it and ends once: by the program's report, by a denial, or together with its turn
or its program, when no report can come any more. The program's own id identifies the call of a report; without an id,
it is the oldest open call of that tool with the same input, else the oldest of that tool. Calls that were reported
before are not reported again: channels repeat their reports to a new daemon.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from synapsed.interfaces import NewEvent
from synapsed.model.about import about
from synapsed.model.events import Event, ToolExecution
from synapsed.model.facts import ToolBegan, ToolOver
from synapsed.model.task import Prompt, Task
from synapsed.parts.work_events.dialog_subject import shown_by

KEPT_BYTES = 1 << 20
"""Most bytes of JSON of a call's input, and of its output, that are kept."""
ERROR_MAX = 10_000
"""Most characters of the reason for a failure."""
KNOWN_MAX = 2000
"""Most ended calls that are remembered, so that they are not reported twice."""
OPEN_MAX = 500
"""Most open calls; beyond that the oldest one is ended."""
AT_THE_TERMINAL = "denied at its terminal, which stopped the turn"
UNHEARD_MAX = 50
"""Most remembered calls whose end was published and whose report may still come."""
DENIALS_MAX = 50
"""Most denials that wait for the report of their call's start."""


@dataclass(frozen=True, slots=True)
class _Open:
    id: str
    tool: str
    input: dict[str, Any]
    source: str
    at_ns: int | None
    """None if this daemon has no report of its start: an earlier daemon saw that, or none came."""
    turn: str | None
    task_id: str | None = None
    context_id: str | None = None
    own_id: bool = False
    """True if the id is the program's own."""
    ended: bool = False
    """True if its end was published before: this is a repeated report of its start."""
    asked: bool = False
    """True if a person is being asked for permission, or was."""
    exact: bool = True
    """False if it was read off the screen."""


@dataclass(frozen=True, slots=True)
class _Denial:
    tool: str
    texts: tuple[str, ...]
    reason: str


@dataclass(slots=True)
class ToolCalls:
    agent_id: str
    _open: dict[str, _Open] = field(default_factory=dict)
    _ended: dict[str, None] = field(default_factory=dict)
    _denials: list[_Denial] = field(default_factory=list)
    _unheard: list[_Open] = field(default_factory=list)
    """Calls to which the program gives no id, and which were ended without its report; that report may come late."""

    @property
    def open(self) -> int:
        """Returns the number of calls that have begun and not ended."""
        return sum(not call.ended for call in self._open.values())

    def restore(self, events: Iterable[Event]) -> None:
        """Takes this agent's calls from the log, oldest first."""
        for event in events:
            told = event.data
            if not isinstance(told, ToolExecution) or told.call_id is None or told.reported_by is not None:
                continue
            if told.status == "started":
                self._open[told.call_id] = _Open(
                    told.call_id,
                    told.tool_name,
                    told.input or {},
                    told.source or "",
                    None,
                    None,
                    event.task_id,
                    event.context_id,
                    own_id=True,
                    exact=told.exact,
                )
            else:
                self._open.pop(told.call_id, None)
                self._remember(told.call_id)

    def began(self, fact: ToolBegan, task: Task | None) -> list[NewEvent]:
        """Handles the beginning of a call."""
        call = _Open(
            fact.call or f"{fact.channel}.{fact.at_ns}",
            fact.tool,
            fact.input,
            fact.channel,
            fact.at_ns,
            fact.turn,
            task.id if task is not None else None,
            task.context_id if task is not None else None,
            own_id=fact.call is not None,
            exact=fact.exact,
        )
        if call.id in self._ended:
            if not call.own_id:
                self._open[call.id] = replace(call, ended=True)
            return []
        if (known := self._open.get(call.id)) is not None:
            self._open[call.id] = replace(call, task_id=known.task_id, context_id=known.context_id)
            return []
        self._open[call.id] = call
        told = [self._event(call, ToolExecution(**_named(call), status="started", input=cut(call.input)))]
        if (denial := self._denial_of(call)) is not None:
            self._denials.remove(denial)
            told += self._end(call, error=denial.reason, denied=True)
        while len(self._open) > OPEN_MAX:
            told += self._end(next(iter(self._open.values())), error="too many calls are open: its end is not awaited")
        return told

    def over(self, fact: ToolOver, task: Task | None) -> list[NewEvent]:
        """Handles the program's report that a call has ended."""
        if fact.call is not None and fact.call in self._ended:
            return []
        call = self._called(fact)
        if fact.call is None and (call is None or call.input != fact.input):
            late = next((one for one in self._unheard if one.tool == fact.tool and one.input == fact.input), None)
            if late is not None:
                self._unheard.remove(late)
                return []
        if call is None:
            call_id = fact.call or f"{fact.channel}.{fact.at_ns}"
            if call_id in self._ended:
                return []
            call = _Open(call_id, fact.tool, fact.input, fact.channel, None, fact.turn, exact=fact.exact)
            if task is not None:
                call = replace(call, task_id=task.id, context_id=task.context_id)
        if call.ended:
            del self._open[call.id]
            return []
        duration = fact.duration_ms
        if duration is None and call.at_ns is not None and (call.exact or fact.at_ns > call.at_ns):
            duration = max(0, (fact.at_ns - call.at_ns) // 1_000_000)
        return self._end(
            call, output=fact.output, error=fact.error, denied=fact.denied, duration_ms=duration, input=fact.input
        )

    def asked(self, given: Mapping[str, Any]) -> None:
        """Notes that the program asks a person about the call whose input has a text of `given`."""
        if not (texts := set(_texts(given))):
            return
        shared = {call.id: len(texts & set(_texts(call.input))) for call in self._open.values() if not call.ended}
        same = next((call.id for call in self._open.values() if not call.ended and call.input == given), None)
        likest = same or max(shared, key=lambda name: shared[name], default=None)
        if likest is not None and (likest == same or shared[likest]):
            self._open[likest] = replace(self._open[likest], asked=True)

    def about(self, prompt: Prompt) -> Prompt:
        """Returns the prompt of a dialog, with the command or the edit of the call that it shows, as the program
        reported it; unchanged if no call is known, or several that differ."""
        if prompt.type != "permission" or prompt.command is not None or prompt.diff is not None:
            return prompt
        calls = [
            (call, told)
            for call in self._open.values()
            if call.exact and not call.ended and (told := about(call.input))
        ]
        shown = [(call, told) for call, told in calls if shown_by(prompt.prompt, told)]
        asked = {told for call, told in shown if call.asked} or {told for _, told in shown}
        if len(asked) != 1:
            return prompt
        (told,) = asked
        return prompt.model_copy(update={"command": told.command, "diff": told.diff})

    def allowed(self) -> None:
        """Notes that the program was allowed to make the call that it asked about."""
        self._open = {name: replace(call, asked=False) for name, call in self._open.items()}

    def denied(self, tool: str, texts: tuple[str, ...], reason: str) -> list[NewEvent]:
        """Handles the denial of a call of the tool with these texts in its input. The start of the call may not have
        been reported yet."""
        if (call := self._like(tool, texts)) is not None:
            return self._end(call, error=reason, denied=True)
        self._denials = [*self._denials, _Denial(tool, texts, reason)][-DENIALS_MAX:]
        return []

    def refused(self, shown: str, reason: str) -> list[NewEvent]:
        """Handles a person's refusal in the dialog that has `shown`: it ends the open call whose input it shows, else
        the one that the program has asked about, else the only open one."""
        dense = _dense(shown)
        calls = [call for call in self._open.values() if not call.ended]
        fits = [call for call in calls if any(_dense(text) in dense for text in _texts(call.input) if text.strip())]
        asked = [call for call in fits or calls if call.asked]
        chosen = asked or fits or (calls if len(calls) == 1 else [])
        return self._end(chosen[0], error=reason, denied=True) if chosen else []

    def turn_over(self, turn: str | None, reason: str, *, stopped: bool = False) -> list[NewEvent]:
        """Ends the calls of a turn that is over, because no report about them can come any more. Those of another turn
        go on. If the program was asking a person about a call when it `stopped`, that call was denied."""
        self._denials.clear()
        told: list[NewEvent] = []
        for call in list(self._open.values()):
            if turn is None or call.turn in (None, turn):
                denied = stopped and call.asked
                if not call.own_id:
                    self._unheard = [*self._unheard, call][-UNHEARD_MAX:]
                told += self._end(call, error=AT_THE_TERMINAL if denied else reason, denied=denied)
        return told

    def screen_over(self, reason: str) -> list[NewEvent]:
        """Ends the calls that are read off the screen, because their turn is over."""
        shown = [call for call in self._open.values() if not call.exact]
        return [event for call in shown for event in self._end(call, error=reason)]

    def _called(self, fact: ToolOver) -> _Open | None:
        if fact.call is not None:
            return self._open.get(fact.call)
        same = [call for call in self._open.values() if call.tool == fact.tool]
        return next((call for call in same if call.input == fact.input), same[0] if same else None)

    def _like(self, tool: str, texts: tuple[str, ...]) -> _Open | None:
        calls = (call for call in self._open.values() if not call.ended)
        return next((call for call in calls if _is_like(call, tool, texts)), None)

    def _denial_of(self, call: _Open) -> _Denial | None:
        return next((denial for denial in self._denials if _is_like(call, denial.tool, denial.texts)), None)

    def _end(
        self,
        call: _Open,
        *,
        output: dict[str, Any] | None = None,
        error: str | None = None,
        denied: bool = False,
        duration_ms: int | None = None,
        input: dict[str, Any] | None = None,  # noqa: A002 - the field's name
    ) -> list[NewEvent]:
        self._open.pop(call.id, None)
        self._remember(call.id)
        if call.ended:
            return []
        told = ToolExecution(
            **_named(call),
            status="completed" if error is None and not denied else "failed",
            input=cut(call.input or input or {}),
            output=cut(output) if output is not None else None,
            error=error[:ERROR_MAX] if error is not None else None,
            denied=denied,
            duration_ms=duration_ms,
        )
        return [self._event(call, told)]

    def _event(self, call: _Open, told: ToolExecution) -> NewEvent:
        return NewEvent(self.agent_id, told, call.task_id, call.context_id)

    def _remember(self, call_id: str) -> None:
        self._ended[call_id] = None
        while len(self._ended) > KNOWN_MAX:
            del self._ended[next(iter(self._ended))]


def cut(value: dict[str, Any]) -> dict[str, Any]:
    """Returns `value`, or its beginning as `text` if its JSON is larger than KEPT_BYTES."""
    text = json.dumps(value, ensure_ascii=False)
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= KEPT_BYTES:
        return value
    whole = value["text"] if set(value) == {"text"} and isinstance(value["text"], str) else text
    kept = whole.encode("utf-8", "replace")[:KEPT_BYTES].decode("utf-8", "ignore")
    return {"text": kept, "truncated": True, "size": len(encoded)}


def _named(call: _Open) -> dict[str, Any]:
    return {"tool_name": call.tool, "call_id": call.id, "source": call.source or None, "exact": call.exact}


def _is_like(call: _Open, tool: str, texts: tuple[str, ...]) -> bool:
    given = set(_texts(call.input))
    return call.tool.casefold() == tool.casefold() and all(text in given for text in texts)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items: Iterable[Any] = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for item in items for text in _texts(item)]


def _dense(text: str) -> str:
    return "".join(text.split())
