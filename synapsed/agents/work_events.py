"""What a program's channel tells of its work beside its words: its plan, what it changed in files, and how much of its
account's limits is used. Pure: facts in, events out, each once.
"""

from synapsed.clock import iso
from synapsed.interfaces import NewEvent
from synapsed.model.events import DiffUpdated, EventData, PlanStep, PlanUpdated, RateLimitsSeen, RateWindow
from synapsed.model.facts import DiffTold, LimitsTold, PlanTold
from synapsed.model.task import Task

STEPS_MAX = 200
TEXT_MAX = 2000
"""Steps of a plan, and characters of each, that are told."""
DIFF_MAX = 1 << 20
"""Characters of a diff that are told."""
WINDOWS_MAX = 20


class WorkTold:
    """Of one agent. What is the same as before is not told again: channels repeat their reports."""

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self._last: dict[str, EventData] = {}

    def told(self, fact: PlanTold | DiffTold | LimitsTold, task: Task | None) -> list[NewEvent]:
        """The events of one report; `task` is the one that is worked on, whose turn it is of."""
        event: PlanUpdated | DiffUpdated | RateLimitsSeen
        match fact:
            case PlanTold():
                steps = [PlanStep(text=text[:TEXT_MAX], status=status) for text, status in fact.steps[:STEPS_MAX]]
                note = fact.note[:TEXT_MAX] if fact.note else None
                event = PlanUpdated(steps=steps, note=note, turn_id=fact.turn, source=fact.channel)
            case DiffTold():
                event = DiffUpdated(
                    diff=fact.diff[:DIFF_MAX],
                    truncated=len(fact.diff) > DIFF_MAX,
                    turn_id=fact.turn,
                    source=fact.channel,
                )
            case LimitsTold():
                task, event = None, _limits(fact)
        if self._last.get(event.type) == event:
            return []
        self._last[event.type] = event
        return [NewEvent(self._agent_id, event, *((task.id, task.context_id) if task is not None else (None, None)))]


def _limits(fact: LimitsTold) -> RateLimitsSeen:
    windows = [
        RateWindow(
            name=each.name,
            used_percent=max(0.0, each.used),
            minutes=each.minutes,
            resets_at=iso(each.resets_at) if each.resets_at is not None else None,
        )
        for each in fact.windows[:WINDOWS_MAX]
    ]
    return RateLimitsSeen(windows=windows, plan=fact.plan, source=fact.channel)
