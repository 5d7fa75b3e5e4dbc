"""Builds the history of a task (`Life`) from its events: times of waiting, of typing, of work, and of questions. Pure.

::

    submitted ─▸ QUEUED ─▸ DELIVERING ─▸ TURN ⇄ ASKING ─▸ over
                    ▴───────────┴───────────┘            (its program ended, or reached a limit: it waits again)

Times are the log's, seconds since the epoch. A clock that was set back makes no negative time.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from synapsed.model.events import Event, TaskDelivered, TaskStatusChanged, TokensUsed, ToolExecution
from synapsed.model.external import alias_of
from synapsed.model.task import INTERRUPTED_STATES, TERMINAL_STATES, TaskState

TYPES = frozenset({"taskStatus", "taskDelivered", "toolExecution", "usage"})
"""Types of the events that a task's history is made of."""

PERIODS_MAX = 1000
"""Periods, and tool calls, of one task that are remembered; a program may ask, or call a tool, in a loop."""

OTHER = "OTHER"
"""Replacement for an invalid code."""

NAME_MAX = 100
"""Characters of a tool's name."""

OPEN_MAX = 50_000
"""Most tasks that are followed at once; beyond that the oldest are forgotten, and not measured."""


class TaskPhase(StrEnum):
    """Phase of a task."""

    QUEUED = "queue"
    """It waits in the mailbox."""
    DELIVERING = "deliver"
    """It is being typed."""
    TURN = "turn"
    """The program has it."""
    ASKING = "input"
    """The program asks a person; the turn goes on meanwhile."""
    WHOLE = "task"
    """The whole task, from its first event to its last."""


def _code(code: str) -> str:
    """Returns the code if it is valid, since an agent elsewhere may send anything."""
    return code if re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", code) else OTHER


@dataclass(slots=True)
class Period:
    """A phase of a task from `begin` to `end`; None: it has not ended."""

    stage: TaskPhase
    begin: float
    end: float | None = None

    @property
    def seconds(self) -> float:
        return max((self.end or self.begin) - self.begin, 0.0)


@dataclass(slots=True)
class ToolLife:
    """One call of a tool. For a call that was not allowed, `status` is `failed` and `denied` is True."""

    name: str
    call_id: str | None
    begin: float
    end: float | None = None
    status: str = "started"
    denied: bool = False
    exact: bool = True

    @property
    def seconds(self) -> float:
        return max((self.end or self.begin) - self.begin, 0.0)


@dataclass(slots=True)
class Life:
    """The history of one task, from its first event to its last."""

    task_id: str
    agent_id: str
    begin: float
    by_reply: bool = False
    """True if the task is not typed: another agent's answer completes it."""
    end: float | None = None
    state: TaskState = TaskState.SUBMITTED
    code: str | None = None
    """Code of its failure."""
    periods: list[Period] = field(default_factory=list)
    tools: list[ToolLife] = field(default_factory=list)
    dropped: int = 0
    """Number of periods and calls beyond PERIODS_MAX."""
    context_id: str | None = None
    model: str | None = None
    """The last reported model."""
    tokens: Counter[str] = field(default_factory=Counter)
    """Tokens by kind: input, output, cache_read, cache_write."""
    _open: list[Period] = field(default_factory=list)
    """The phases that the task is in, the inner one last."""

    def apply(self, event: Event) -> Iterator[Period | ToolLife]:
        """Yields the periods, and the calls of tools, that ended with `event`."""
        match event.data:
            case TaskStatusChanged() as told:
                yield from self._goes(told, event.at)
            case TaskDelivered():
                if self._open and self._open[-1].stage is TaskPhase.DELIVERING:
                    yield from self._leave(event.at)
                    self._enter(TaskPhase.TURN, event.at)
            case ToolExecution() as told:
                yield from self._call(told, event.at)
            case TokensUsed() as used:
                self.model = used.model or self.model
                self.tokens.update(tokens_of(used))

    def _call(self, told: ToolExecution, at: float) -> Iterator[ToolLife]:
        """Begins a call, or ends the last open one with the same id and name. A call without a reported beginning gets
        one from the duration that its program reports."""
        name = told.tool_name[:NAME_MAX]
        if told.status == "started":
            self._note(ToolLife(name, told.call_id, at, exact=told.exact))
            return
        unended = (call for call in reversed(self.tools) if call.end is None)
        call = next((one for one in unended if (one.call_id, one.name) == (told.call_id, name)), None)
        if call is None:
            call = ToolLife(name, told.call_id, at - (told.duration_ms or 0) / 1000, exact=told.exact)
            self._note(call)
        elif told.duration_ms is not None:
            call.begin = at - told.duration_ms / 1000
        call.end, call.status, call.denied = at, told.status, told.denied
        yield call

    def _note(self, call: ToolLife) -> None:
        if len(self.tools) < PERIODS_MAX:
            self.tools.append(call)
        else:
            self.dropped += 1

    def _goes(self, told: TaskStatusChanged, at: float) -> Iterator[Period]:
        state = told.state
        if state in TERMINAL_STATES:
            if state is TaskState.COMPLETED:
                self._had_it()
            yield from self._leave(at)
            self.end, self.state = at, state
            self.code = _code(told.error.code) if told.error is not None else None
            yield Period(TaskPhase.WHOLE, self.begin, at)
            return
        self.state = state
        if state is TaskState.SUBMITTED:
            yield from self._leave(at)
            self._enter(TaskPhase.QUEUED, at)
        elif state in INTERRUPTED_STATES:
            self._had_it()
            yield from self._leave(at, above=TaskPhase.TURN)
            self._enter(TaskPhase.ASKING, at)
        elif TaskPhase.TURN in self.stages:
            yield from self._leave(at, above=TaskPhase.TURN)
        else:
            yield from self._leave(at)
            elsewhere = alias_of(self.agent_id) is not None or self.by_reply
            self._enter(TaskPhase.TURN if elsewhere else TaskPhase.DELIVERING, at)

    def _had_it(self) -> None:
        """Notes that the program answers or asks, so it has the message, even without a report of that (an older daemon
        wrote none)."""
        if self._open and self._open[-1].stage is TaskPhase.DELIVERING:
            self._open[-1].stage = TaskPhase.TURN

    @property
    def stages(self) -> list[TaskPhase]:
        return [period.stage for period in self._open]

    def _enter(self, stage: TaskPhase, at: float) -> None:
        period = Period(stage, at)
        self._open.append(period)
        if len(self.periods) < PERIODS_MAX:
            self.periods.append(period)
        else:
            self.dropped += 1

    def _leave(self, at: float, *, above: TaskPhase | None = None) -> Iterator[Period]:
        """Ends the phases above `above`; all of them if the task is not in `above`."""
        while self._open and self._open[-1].stage is not above:
            period = self._open.pop()
            period.end = at
            yield period


class Lives:
    """The unfinished tasks, by id."""

    def __init__(self) -> None:
        self._lives: dict[str, Life] = {}

    def __len__(self) -> int:
        return len(self._lives)

    def knows(self, task_id: str) -> bool:
        """Returns True if the task is followed; if not, `apply` its earlier events first, unless the event `begins` the
        task."""
        return task_id in self._lives

    def apply(self, task_id: str, event: Event) -> tuple[Life, list[Period | ToolLife]]:
        """Returns the task after `event`, and the periods and calls that ended. A finished task is not kept."""
        life = self._lives.get(task_id)
        if life is None:
            life = Life(task_id, event.agent_id, event.at, by_reply=not begins(event), context_id=event.context_id)
            self._lives[task_id] = life
            if len(self._lives) > OPEN_MAX:
                del self._lives[next(iter(self._lives))]
        ended = list(life.apply(event))
        if life.end is not None:
            self._lives.pop(task_id, None)
        return life, ended


def begins(event: Event) -> bool:
    """Returns True for the first event of a task that is typed to an agent. An event of a task that waits again has a
    reason."""
    told = event.data
    return isinstance(told, TaskStatusChanged) and told.state is TaskState.SUBMITTED and told.reason is None


def tokens_of(used: TokensUsed) -> Mapping[str, int]:
    """Returns the reported tokens by kind."""
    told = {
        "input": used.input_tokens,
        "output": used.output_tokens,
        "cache_read": used.cache_read_tokens,
        "cache_write": used.cache_write_tokens,
    }
    return {kind: count for kind, count in told.items() if count}
