"""When work passes from one agent to another, and back (`agentTransition`). Pure."""

from synapsed.model.events import AgentTransition, NewEvent
from synapsed.model.external import alias_of, external_id
from synapsed.model.records import ReplyRecord
from synapsed.model.sender import SYSTEM, Tier, sender_of
from synapsed.model.task import Task
from synapsed.tasks.sender_mark import SENDER_TASK

REASON_SHOWN = 200
"""Characters of a message that are given as the reason."""
_ID_MAX = 128


def passed_on(task: Task) -> tuple[NewEvent, ...]:
    """A new task: from the agent that sent it; nothing for a person's, or one of synapsed's own."""
    sender = sender_of(task)
    if sender is None or sender.id == SYSTEM or sender.tier is Tier.PERSON:
        return ()
    outside = sender.tier is Tier.EXTERNAL
    named = outside and alias_of(sender.id) is None
    from_task = task.metadata.get(SENDER_TASK)
    told = AgentTransition(
        from_agent=external_id(sender.id) if named else sender.id,
        to_agent=task.agent_id,
        reason=_beginning(task.message.text) or None,
        kind="external" if outside or alias_of(task) is not None else "message",
        from_task=from_task if isinstance(from_task, str) and len(from_task) <= _ID_MAX else None,
    )
    return (NewEvent.of(task, told),)


def handed_back(record: ReplyRecord, task: Task, *, own_words: bool) -> tuple[NewEvent, ...]:
    """`task`, the asker's own, has its reply."""
    if record.asked is None:
        return ()
    end = task.status.value if task.error is None else f"{task.status.value}, {task.error.code}"
    reason = "it replied" if own_words else f"its turn ended: {end}"
    told = AgentTransition(
        from_agent=record.asked, to_agent=record.asker, reason=reason, kind="reply", from_task=record.request
    )
    return (NewEvent.of(task, told),)


def _beginning(text: str) -> str:
    words = " ".join(text[: 4 * REASON_SHOWN].split())
    return words if len(words) <= REASON_SHOWN else f"{words[: REASON_SHOWN - 1]}…"
