"""Decides the outcome of a task from its link's report of the turn. Pure."""

from synapsed.agents.interruption import PendingInterrupt
from synapsed.model.link import (
    LinkEvent,
    LinkTurnFailed,
    LinkTurnInterrupted,
    LinkTurnProgress,
    LinkUndelivered,
)
from synapsed.model.task import Task
from synapsed.tasks import transitions
from synapsed.tasks.transitions import Commit

INTERRUPTED = "interrupted"
"""`reason` of a turn that was stopped through its link, and of a task that was stopped for another one."""


def outcome(
    event: LinkEvent, task: Task, *, asked: PendingInterrupt | None, keys: str = "", now: float
) -> Commit | None:
    """Returns the commit for `task`; None if nothing changes, and for an answer (LinkTurnEnded), which `AgentTurns`
    itself commits, with the artifacts in it. `asked` is the interruption that is under way. `keys` is a text about key
    bindings that the person has changed; it is added to the reason if a message was not delivered."""
    match event:
        case LinkTurnProgress():
            return transitions.progressed(task, message_id=event.message_id, text=event.text, now=now)
        case LinkTurnFailed():
            return transitions.failed(task, code=event.code, message=event.message, now=now)
        case LinkTurnInterrupted():
            if asked is not None and event.reason == INTERRUPTED:
                return transitions.stopped(task, reason=asked.reason, failure=asked.failure, now=now)
            return transitions.stopped(task, reason=event.reason, failure="", now=now)
        case LinkUndelivered():
            reason = f"{event.reason}; {keys}" if keys else event.reason
            return transitions.undelivered(task, reason=reason, screen=event.screen, now=now)
        case _:
            return None
