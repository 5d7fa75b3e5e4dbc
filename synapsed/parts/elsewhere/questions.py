"""Questions that agents elsewhere ask a person, reported as those of agents here: in the inbox, and in notices
everywhere.

It follows the states of their tasks, whoever changes these. The open questions are stored together with the position in
the log, in one commit with the events that report them: even after a kill nothing is opened twice, and a question that
is over is closed. Agents of the user's other hosts are not included: their questions are in the inbox of their host.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, TypeAdapter

from synapsed.clock import iso
from synapsed.interfaces import Activity, AgentView, EventFilter, FollowerState, NewEvent, ProcessState, Store
from synapsed.model.events import (
    AttentionChanged,
    Event,
    InputAnswered,
    InputRequired,
    Origin,
    TaskStatusChanged,
    kind_of,
)
from synapsed.model.external import alias_of, is_aliased
from synapsed.model.task import INTERRUPTED_STATES, Prompt
from synapsed.store.follower import Changes, DurableFollower

QUESTION_MAX: Final = 500
"""Most characters of a question in a notification; the prompt has the whole text."""


class AskedElsewhere(BaseModel):
    """The question for which one task waits, as it was reported."""

    agent_id: str
    context_id: str | None = None
    told: AttentionChanged
    """The event that opened the question."""
    since: str
    """RFC 3339, UTC."""
    said: str = ""
    """Digest of the prompt, by which a changed prompt is noticed; empty if an older daemon reported it."""


Open = Mapping[str, AskedElsewhere]
"""Open questions, by task."""
_OPEN: Final = TypeAdapter(dict[str, AskedElsewhere])


def follows(event: Event, known: Open) -> tuple[list[NewEvent], Open] | None:
    """Returns the events to add because of `event`, and the questions that are open then; None if nothing changes.
    Pure."""
    if event.task_id is None or not is_aliased(event.agent_id):
        return None
    asked = known.get(event.task_id)
    match event.data:
        case InputAnswered() as given if asked is not None and given.prompt_id == asked.told.prompt_id:
            origin = Origin(given.by, who=given.who, where=given.where) if given.by is not None else None
            return _closed(event.task_id, known, origin)
        case TaskStatusChanged(state=state, prompt=Prompt() as prompt) if state in INTERRUPTED_STATES:
            if asked is not None and asked.told.prompt_id == prompt.prompt_id:
                return _more(event.task_id, known, asked, prompt)
            over, rest = _closed(event.task_id, known, None)
            begun = opened(event.agent_id, event.context_id, prompt, mark=str(event.id), since=iso(event.at))
            return [*over, *events_of(event.task_id, begun, prompt)], {**rest, event.task_id: begun}
        case TaskStatusChanged() if asked is not None:
            return _closed(event.task_id, known, None)
    return None


def opened(agent_id: str, context_id: str | None, prompt: Prompt, *, mark: str, since: str) -> AskedElsewhere:
    """Returns the question that is open from now on. Its id is made of `mark`: the same, however often the event is
    read."""
    event = AttentionChanged(
        id=f"asked-{mark}",
        state="opened",
        kind=kind_of(prompt.type),
        question=prompt.prompt[:QUESTION_MAX],
        prompt_id=prompt.prompt_id,
    )
    return AskedElsewhere(agent_id=agent_id, context_id=context_id, told=event, since=since, said=_digest(prompt))


def _more(task_id: str, known: Open, asked: AskedElsewhere, prompt: Prompt) -> tuple[list[NewEvent], Open] | None:
    """Returns the event for a prompt of which more is known now, its command say, and the open questions."""
    if (digest := _digest(prompt)) == asked.said:
        return None
    event = NewEvent(asked.agent_id, InputRequired(prompt=prompt), task_id, asked.context_id)
    return [event], {**known, task_id: asked.model_copy(update={"said": digest})}


def _digest(prompt: Prompt) -> str:
    return hashlib.sha256(prompt.model_dump_json().encode()).hexdigest()[:16]


def events_of(task_id: str, begun: AskedElsewhere, prompt: Prompt) -> list[NewEvent]:
    """Returns the events that open the question."""
    data = (InputRequired(prompt=prompt), begun.told)
    return [NewEvent(begun.agent_id, one, task_id, begun.context_id) for one in data]


def _closed(task_id: str, known: Open, by: Origin | None) -> tuple[list[NewEvent], Open]:
    if (asked := known.get(task_id)) is None:
        return [], known
    rest = {key: one for key, one in known.items() if key != task_id}
    who = {} if by is None else {"by": by.by, "who": by.who, "where": by.where}
    event = asked.told.model_copy(update={"state": "gone" if by is None else "answered", **who})
    return [NewEvent(asked.agent_id, event, task_id, asked.context_id)], rest


class ElsewhereAsking(DurableFollower):
    """Reports the questions of agents elsewhere as events."""

    name = "asked_elsewhere"
    wants = EventFilter(types=frozenset({"taskStatus", "inputAnswered"}))

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._open: Open = {}

    async def restore(self) -> None:
        if await self._store.follower(self.name) is None:
            await self._begin()
        await super().restore()
        self._open = _OPEN.validate_json(self.state.secret) if self.state.secret else {}

    async def handle(self, event: Event) -> Changes | None:
        if (change := follows(event, self._open)) is None:
            return None
        events, self._open = change
        return Changes(events)

    def agents(self) -> list[AgentView]:
        """Returns the agents that wait for a person, for the list of agents, with the first question of each."""
        asking: dict[str, AgentView] = {}
        for task_id, one in sorted(self._open.items(), key=lambda pair: pair[1].since):
            asking.setdefault(one.agent_id, _shown(task_id, one))
        return list(asking.values())

    async def keep(self, event_id: int, changes: Changes) -> None:
        state = FollowerState(cursor=event_id, secret=_written(self._open))
        await self.keep_state(state, events=changes.events)

    async def _begin(self) -> None:
        """Reports the questions that are already open, if no earlier daemon has done so."""
        cursor, begun, events = self._events.last_id, dict[str, AskedElsewhere](), list[NewEvent]()
        for task in await self._store.open_tasks():
            if task.status in INTERRUPTED_STATES and task.prompt is not None and is_aliased(task.agent_id):
                begun[task.id] = opened(
                    task.agent_id, task.context_id, task.prompt, mark=task.id, since=task.updated_at
                )
                events += events_of(task.id, begun[task.id], task.prompt)
        await self.keep_state(FollowerState(cursor=cursor, secret=_written(begun)), events=events)


def _shown(task_id: str, one: AskedElsewhere) -> AgentView:
    return AgentView(
        name=alias_of(one.agent_id) or one.agent_id,
        id=one.agent_id,
        type="external",
        port=None,
        pid=None,
        state=ProcessState.RUNNING,
        activity=Activity.WAITING,
        since=one.since,
        evidence="its task waits for a person",
        held=None,
        queue=0,
        task=task_id,
        restarts=0,
        cwd="",
        endpoint="",
        asks=" ".join(one.told.question.split()),
    )


def _written(known: Open) -> str:
    """Returns the open questions as JSON; empty without any, as this text is sealed."""
    if not known:
        return ""
    return json.dumps({task_id: one.model_dump(mode="json", exclude_none=True) for task_id, one in known.items()})
