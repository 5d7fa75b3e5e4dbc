"""The life of a task, as its events tell it: how long it waited, was being typed, was worked on, and asked. Pure.

::

    submitted ─▸ QUEUED ─▸ DELIVERING ─▸ TURN ⇄ ASKING ─▸ over
                    ▴───────────┴───────────┘            (its program ended, or reached a limit: it waits again)

Times are the log's, seconds since the epoch. A clock that was set back makes no negative time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from synapsed.model.events import Event, TaskStatusChanged
from synapsed.model.task import INTERRUPTED_STATES, TERMINAL_STATES, TaskState

__all__ = ["TYPES", "Life", "Lives", "Period", "Stage", "begins"]

TYPES = frozenset({"taskStatus"})
"""Types of the events that a life is made of."""

PERIODS_MAX = 1000
"""Periods of one task that are remembered; a program may ask in a loop."""

OPEN_MAX = 50_000
"""Tasks that are followed at once; beyond that the oldest are forgotten, and nothing is measured of them."""


class Stage(StrEnum):
    """What a task is doing."""

    QUEUED = "queue"
    """It waits in the mailbox."""
    DELIVERING = "deliver"
    """It is being typed."""
    TURN = "turn"
    """The program has it."""
    ASKING = "input"
    """The program asks a person; the turn goes on meanwhile."""
    WHOLE = "task"
    """From its first event to its last."""


@dataclass(slots=True)
class Period:
    """`stage` from `begin` to `end`; None: it has not ended."""

    stage: Stage
    begin: float
    end: float | None = None

    @property
    def seconds(self) -> float:
        return max((self.end or self.begin) - self.begin, 0.0)


@dataclass(slots=True)
class Life:
    """One task. `by_reply`: nothing is typed for it, an answer of somebody else's completes it."""

    task_id: str
    agent_id: str
    begin: float
    by_reply: bool = False
    end: float | None = None
    state: TaskState = TaskState.SUBMITTED
    code: str | None = None
    """Of its failure."""
    periods: list[Period] = field(default_factory=list)
    dropped: int = 0
    """Periods that were too many."""
    _open: list[Period] = field(default_factory=list)
    """The stages that it is in, the inner one last."""

    def take(self, event: Event) -> Iterator[Period]:
        """The periods that ended with `event`."""
        if isinstance(event.data, TaskStatusChanged):
            yield from self._goes(event.data, event.at)

    def _goes(self, told: TaskStatusChanged, at: float) -> Iterator[Period]:
        state = told.state
        if state in TERMINAL_STATES:
            yield from self._leave(at)
            self.end, self.state = at, state
            self.code = told.error.code if told.error is not None else None
            yield Period(Stage.WHOLE, self.begin, at)
            return
        self.state = state
        if state is TaskState.SUBMITTED:
            yield from self._leave(at)
            self._enter(Stage.QUEUED, at)
        elif state in INTERRUPTED_STATES:
            yield from self._leave(at, above=Stage.TURN)
            self._enter(Stage.ASKING, at)
        elif Stage.TURN in self.stages:
            yield from self._leave(at, above=Stage.TURN)
        else:
            yield from self._leave(at)
            self._enter(Stage.TURN, at)

    @property
    def stages(self) -> list[Stage]:
        return [period.stage for period in self._open]

    def _enter(self, stage: Stage, at: float) -> None:
        period = Period(stage, at)
        self._open.append(period)
        if len(self.periods) < PERIODS_MAX:
            self.periods.append(period)
        else:
            self.dropped += 1

    def _leave(self, at: float, *, above: Stage | None = None) -> Iterator[Period]:
        """End the stages above `above`; all of them where it is not entered."""
        while self._open and self._open[-1].stage is not above:
            period = self._open.pop()
            period.end = at
            yield period


class Lives:
    """The tasks that are not over, by id."""

    def __init__(self) -> None:
        self._lives: dict[str, Life] = {}

    def __len__(self) -> int:
        return len(self._lives)

    def knows(self, task_id: str) -> bool:
        """Whether the task is followed; else `take` its earlier events first, unless it `begins`."""
        return task_id in self._lives

    def take(self, task_id: str, event: Event) -> tuple[Life, list[Period]]:
        """The task after `event`, and what of it ended. One that is over is not kept."""
        life = self._lives.get(task_id)
        if life is None:
            life = self._lives[task_id] = Life(task_id, event.agent_id, event.at, by_reply=not begins(event))
            if len(self._lives) > OPEN_MAX:
                del self._lives[next(iter(self._lives))]
        ended = list(life.take(event))
        if life.end is not None:
            self._lives.pop(task_id, None)
        return life, ended


def begins(event: Event) -> bool:
    """Whether it is the first event of a task that is typed to somebody. One that waits again says why."""
    told = event.data
    return isinstance(told, TaskStatusChanged) and told.state is TaskState.SUBMITTED and told.reason is None
