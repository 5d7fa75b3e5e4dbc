"""Decides about replies that agents wait for (S20), and checks for waits that would never end. Pure; `TRANSITIONS` is
the table.

The agent that asks has a task of its own, which the reply completes; it is made before the question is sent. ::

    open ──asked──► asked ──replied, ended, expired, canceled──► over ──told, collected──► (nothing is kept)
      └──replied, expired, canceled───────────────────────────────┘

- `asked`: another agent has the request; this state is stored together with the request.
- `replied`: the asked agent replied in words of its own; `ended`: its turn (its work on the request) ended without a
  reply, so its answer counts as the reply, and its failure as the failure.
- `over`: the task is at its end. If no caller waits, the agent is notified in the same commit, by a message (`told`);
  else a message is sent when the caller has not fetched the reply in time.

Each change is a `Settlement`: the content of one transaction. `supervisor.reply_broker` performs it; no other code
changes these tasks and records.

An edge `(a, b)` says that agent a goes on only when b has answered. A wait that closes a circle never ends, nor does a
wait for itself.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from synapsed.clock import iso
from synapsed.errors import NotWaiting, WouldDeadlock
from synapsed.model.events import NewEvent, TaskArtifactAdded
from synapsed.model.records import ReplyRecord
from synapsed.model.sender import KEY, Sender
from synapsed.model.task import ANSWER_ID, Artifact, Message, Part, Task, TaskState, TextPart
from synapsed.tasks import transitions
from synapsed.tasks.prompt_text import REPLY_TO, RESPONSE_EXPECTED
from synapsed.tasks.transitions import handed_back

type State = Literal["open", "asked", "over"]
type Step = Literal["asked", "replied", "ended", "expired", "canceled", "told", "collected"]

TRANSITIONS: Final[dict[tuple[State, Step], State | None]] = {
    ("open", "asked"): "asked",
    ("open", "replied"): "over",
    ("open", "expired"): "over",
    ("open", "canceled"): "over",
    ("asked", "replied"): "over",
    ("asked", "ended"): "over",
    ("asked", "expired"): "over",
    ("asked", "canceled"): "over",
    ("over", "told"): None,
    ("over", "collected"): None,
}
"""None: the record is removed. Steps that are not here are refused."""

LIMIT_S = 24 * 3600.0
"""Seconds that a reply may take by default."""

UNASKED_S = 600.0
"""Seconds that a task waits for its question to be sent: its maker may have ended before that."""

COLLECT_S = 15.0
"""Seconds that a reply is kept for the caller that waits for it: clients wait for a killed daemon for 10 s."""

DIRECTION = "direction"
OUTGOING = "outgoing"
"""`metadata.direction` of a task that a reply completes: it is typed to no program."""

IN_REPLY_TO = "in_reply_to"
"""Key of a message's metadata: the task to which the message is the reply."""

REPLY = "reply"
"""Key of the task's metadata: the replying agent, its task, and `implicit`, which is false if the words are its own."""

HOPS = "hops"
"""Key of a task's metadata: the number of agents that the message has passed through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """One transaction: the task, the message to its agent (`notice`), the new record; None if no more is awaited."""

    task: Task
    record: ReplyRecord | None
    events: tuple[NewEvent, ...] = ()
    notice: Task | None = None


def moved(record: ReplyRecord, step: Step) -> State | None:
    """Returns the state after `step`. Raises NotWaiting for a step that the table does not have."""
    try:
        return TRANSITIONS[record.state, step]
    except KeyError:
        raise NotWaiting(
            f"the reply to task {record.task_id[:8]} is {record.state}: it cannot be {step}", task=record.task_id
        ) from None


def awaits(task: Task) -> bool:
    """Returns True if it is a task that a reply completes."""
    return task.metadata.get(DIRECTION) == OUTGOING


def made(task: Task, *, wait: bool, limit: float, now: float) -> Settlement:
    """Makes the agent's own task, before the question is sent."""
    task = task.model_copy(
        update={
            "status": TaskState.WORKING,
            "metadata": {**task.metadata, DIRECTION: OUTGOING, RESPONSE_EXPECTED: True},
        }
    )
    record = ReplyRecord(task_id=task.id, asker=task.agent_id, wait=wait, limit=limit, due=now + UNASKED_S)
    return Settlement(task=task, record=record, events=transitions.submitted(task).events)


def asked(record: ReplyRecord, request: Task, *, now: float) -> ReplyRecord:
    """Returns the record for the question `request`, which is about to be sent; both are to be stored together."""
    changes = {
        "state": moved(record, "asked"),
        "asked": request.agent_id,
        "request": request.id,
        "due": now + record.limit,
        "hops": _hops(request),
    }
    return record.model_copy(update=changes)


def replied(record: ReplyRecord, task: Task, parts: Sequence[Part], sender: Sender, *, now: float) -> Settlement:
    """Completes the task with the replying agent's own words."""
    commit = _completed(_noted(task, sender, record.request, implicit=False), parts, exact=True, now=now)
    return _over(record, "replied", commit, sender, now)


def ended(record: ReplyRecord, task: Task, request: Task, sender: Sender, *, now: float) -> Settlement:
    """Ends the agent's own task with the result of the request's task: its answer, or its failure."""
    noted = _noted(task, sender, request.id, implicit=True)
    if request.status is TaskState.COMPLETED:
        parts = [part for artifact in request.artifacts if artifact.artifact_id == ANSWER_ID for part in artifact.parts]
        told = noted.model_copy(update={"truncated": request.truncated, "missing_lines": request.missing_lines})
        commit = _completed(told, parts or [TextPart(text="")], exact=request.exact is not False, now=now)
    elif request.error is not None:
        error = request.error
        commit = transitions.failed(noted, code=error.code, message=error.message, details=error.details, now=now)
    else:
        commit = transitions.canceled(noted, reason=str(request.metadata.get("reason", request.status.value)), now=now)
    return _over(record, "ended", commit, sender, now)


def expired(record: ReplyRecord, task: Task, sender: Sender, *, now: float) -> Settlement:
    """Ends the task because no reply came in time. If no question was sent, there is no notice."""
    message = f"no reply came within {record.limit:g} seconds" if record.state == "asked" else "nobody was asked"
    return _over(record, "expired", transitions.failed(task, code="TIMEOUT", message=message, now=now), sender, now)


def canceled(record: ReplyRecord, task: Task, *, reason: str, now: float) -> Settlement:
    """Ends the task without a notice, because its agent does not want the reply any more."""
    moved(record, "canceled")
    commit = transitions.canceled(task, reason=reason, now=now)
    return Settlement(task=commit.task, record=None, events=commit.events)


def told(record: ReplyRecord, task: Task, sender: Sender, *, now: float) -> Settlement:
    """Notifies the agent by a message, because the waiting caller has not fetched the reply."""
    moved(record, "told")
    notice = _notice(task, sender, record.hops, now)
    return Settlement(task=task, record=None, events=transitions.submitted(notice).events, notice=notice)


def gone(record: ReplyRecord, task: Task) -> Settlement:
    """Ends the record, because the waiting caller has the reply."""
    moved(record, "collected")
    return Settlement(task=task, record=None)


def corrected(
    task: Task, parts: Sequence[Part], sender: Sender, *, told_by: ReplyRecord | None, now: float
) -> Settlement:
    """Replaces an answer that counted as the reply by later words of the asked agent's own. The asking agent is
    notified of them, unless a caller still has to fetch the reply (`told_by`). Raises NotWaiting if the asked agent had
    replied before, or failed."""
    reply = task.metadata.get(REPLY)
    if task.status is not TaskState.COMPLETED or not isinstance(reply, dict) or reply.get("implicit") is not True:
        why = f"has its reply already (it is {task.status.value})"
        raise NotWaiting(f"task {task.id[:8]} {why}: send a message instead", task=task.id)
    commit = _completed(_noted(task, sender, reply.get("task_id"), implicit=False), parts, exact=True, now=now)
    settlement = Settlement(task=commit.task, record=told_by, events=commit.events)
    if told_by is not None:
        return settlement
    notice = _notice(commit.task, sender, _hops(task), now)
    return replace(settlement, notice=notice, events=(*commit.events, *transitions.submitted(notice).events))


def _over(record: ReplyRecord, step: Step, commit: transitions.Commit, sender: Sender, now: float) -> Settlement:
    state = moved(record, step)
    task = commit.task.model_copy(update={"metadata": {**commit.task.metadata, HOPS: record.hops}})
    if step != "expired":
        back = handed_back(record, commit.task, own_words=step == "replied")
        commit = replace(commit, events=(*commit.events, *back))
    if record.state == "open" and step == "expired":
        return Settlement(task=task, record=None, events=commit.events)
    if record.wait:
        over = record.model_copy(update={"state": state, "due": now + COLLECT_S})
        return Settlement(task=task, record=over, events=commit.events)
    notice = _notice(task, sender, record.hops, now)
    return Settlement(
        task=task, record=None, events=(*commit.events, *transitions.submitted(notice).events), notice=notice
    )


def _noted(task: Task, sender: Sender, request: str | None, *, implicit: bool) -> Task:
    note = {"implicit": implicit, "task_id": request, KEY: sender.metadata()}
    return task.model_copy(update={"metadata": {**task.metadata, REPLY: note}})


def _completed(task: Task, parts: Sequence[Part], *, exact: bool, now: float) -> transitions.Commit:
    artifact = Artifact(artifact_id=ANSWER_ID, parts=list(parts))
    task = task.model_copy(
        update={"artifacts": [artifact], "exact": exact, "status": TaskState.COMPLETED, "updated_at": iso(now)}
    )
    added = NewEvent.of(task, TaskArtifactAdded(artifact=artifact))
    return transitions.Commit(task=task, events=(added, *transitions.submitted(task).events))


def _notice(task: Task, sender: Sender, hops: int, now: float) -> Task:
    """Returns the message that brings the reply to the agent."""
    parts: list[Part] = [part for artifact in task.artifacts for part in artifact.parts]
    if task.status is TaskState.FAILED and task.error is not None:
        parts = [TextPart(text=f"There is no reply: {task.error.code}: {task.error.message}")]
    elif task.status is not TaskState.COMPLETED:
        parts = [
            TextPart(text=f"There is no reply: the request was {task.status.value} ({task.metadata.get('reason')})")
        ]
    elif not Message(parts=parts).text.strip() and all(isinstance(part, TextPart) for part in parts):
        parts = [TextPart(text="(the answer was empty)")]
    at = iso(now)
    metadata: dict[str, Any] = {KEY: sender.metadata(), REPLY_TO: task.id, HOPS: hops}
    return Task(
        agent_id=task.agent_id,
        context_id=task.context_id,
        message=Message(role="agent", parts=parts),
        metadata=metadata,
        created_at=at,
        updated_at=at,
    )


def _hops(task: Task) -> int:
    hops = task.metadata.get(HOPS)
    return hops if isinstance(hops, int) else 0


def circle(edges: Iterable[tuple[str, str]], waiter: str, waited: str) -> list[str] | None:
    """Returns the agents in the circle that the wait of `waiter` for `waited` would close, beginning and ending with
    `waiter`; None if it closes no circle."""
    if waiter == waited:
        return [waiter, waiter]
    follows: dict[str, list[str]] = {}
    for one, other in edges:
        follows.setdefault(one, []).append(other)
    ways = deque([[waiter, waited]])
    seen = {waited}
    while ways:
        way = ways.popleft()
        for other in follows.get(way[-1], ()):
            if other == waiter:
                return [*way, waiter]
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return None


def check_wait(edges: Iterable[tuple[str, str]], waiter: str, waited: str) -> None:
    """Raises WouldDeadlock if the wait would close a circle."""
    way = circle(edges, waiter, waited)
    if way is None:
        return
    if len(way) == 2:
        raise WouldDeadlock(f"{waiter} would wait for itself", agents=way)
    raise WouldDeadlock(
        f"{waited} waits for {waiter} already ({' for '.join(way[1:])}), so {waiter} cannot wait for it: answer first, "
        "with the question in the answer, or send without waiting for a reply",
        agents=way,
    )
