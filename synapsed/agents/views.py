"""Views of an agent for others: the row of `list`, the page of `status`, the registry's entry, and its numbers
(`model.figures`). Read-only."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from synapsed.agents.lifecycle import LIVE_STATES
from synapsed.agents.live_agent import Agent
from synapsed.channels.past_conversations import PastConversation
from synapsed.clock import iso
from synapsed.interfaces import NewEvent
from synapsed.model.agent import (
    Activity,
    AgentDetail,
    AgentRef,
    AgentView,
    Conversation,
    ConversationAnswer,
    ProcessState,
    ProfileAnswer,
    RegistryEntry,
    Testimony,
    seed_status,
)
from synapsed.model.events import AgentAlert
from synapsed.model.figures import AgentFigures
from synapsed.model.records import AgentRecord
from synapsed.model.task import Task, TaskState, WaitsBehind
from synapsed.profiles.profile import Profile
from synapsed.shared.choices import telling
from synapsed.shared.counts import counted

COMES_UP = "comes up by itself"
"""The evidence for an agent whose program will be started without a request; 'synapsectl up' waits for such agents."""
NOT_SEEN = "not looked at yet"
"""`evidence` between the start of a program and the first judgement of its screen."""

GIST = 200
"""Characters of a question, or of a message, in a row about its agent."""


def activity_of(agent: Agent) -> tuple[Activity, str]:
    """Returns the activity and its evidence; for a program that does not run, the reason."""
    if (seen := agent.seen) is not None:
        if seen.activity not in (Activity.BUSY, Activity.WAITING) and (hold := agent.hold.hold()) and hold.evidence:
            return Activity.LIMITED, hold.evidence
        return seen.activity, seen.evidence
    if agent.state in (ProcessState.STARTING, ProcessState.RUNNING):
        return Activity.STARTING, NOT_SEEN
    if agent.comes_up:
        return Activity.UNKNOWN, COMES_UP
    return Activity.UNKNOWN, agent.process.reason or agent.state.value


def taken_up(stray: AgentRecord) -> NewEvent:
    """Returns the event about an agent whose program lives, but which was not in the database."""
    message = (
        "it runs but was not in the database: its settings were read from its own files, its earlier tasks are missing"
    )
    return NewEvent(stray.id, AgentAlert(code="TAKEN_UP", message=message))


def view_of(agent: Agent, endpoint: str) -> AgentView:
    return AgentView(**_fields(agent, endpoint))


def detail_of(agent: Agent, endpoint: str, attributes: str | None = None) -> AgentDetail:
    """Returns the details. `attributes`: unusual attributes of its process."""
    return AgentDetail(
        **_fields(agent, endpoint),
        attributes=attributes,
        alerts=agent.alerts.standing,
        conversation=_conversation(agent),
        prompt=agent.prompt,
        error=agent.record.failure,
    )


def _conversation(agent: Agent) -> Conversation:
    record = agent.record
    return Conversation(
        id=record.conversation,
        context_id=record.context_id,
        said=record.said,
        resumed=record.launch is not None and record.launch.resumed,
        note=record.conversation_note,
    )


async def explanation_of(agent: Agent) -> list[Testimony]:
    """Returns the chain of evidence: the process first (one that has exited does nothing), then its link's."""
    link = agent.process.link
    told = await link.explain() if link is not None and agent.state is ProcessState.RUNNING else []
    says = agent.state.value
    if agent.process.pid is not None:
        says += f", pid {agent.process.pid}"
    elif reason := agent.process.reason:
        says = reason if reason.startswith(says) else f"{says}: {reason}"
    return [Testimony(channel="process", says=says, since=iso(agent.record.changed_at), decides=not told), *told]


def ref_of(agent: Agent) -> AgentRef:
    record = agent.record
    return AgentRef(
        name=record.name,
        id=record.id,
        type=record.profile,
        port=record.port,
        running=is_reachable(agent) or agent.comes_up,
        folder=Path(record.cwd).name,
    )


def is_reachable(agent: Agent) -> bool:
    """Returns whether a message to its address reaches a program: one runs, or soon will, or the message starts it."""
    return agent.state in LIVE_STATES or agent.state is ProcessState.PARKED


def entry_of(agent: Agent, endpoint: str) -> RegistryEntry:
    record = agent.record
    return RegistryEntry(
        agent_id=record.id,
        agent_type=record.profile,
        name=record.name,
        port=record.port,
        status=seed_status(agent.state, activity_of(agent)[0], asks=agent.prompt is not None),
        pid=agent.process.pid,
        working_dir=record.cwd,
        endpoint=endpoint,
    )


def queued(task: Task, agents: Mapping[str, Agent]) -> Task:
    """Returns the task as it is shown: a waiting one together with the cause of the wait."""
    agent = agents.get(task.agent_id) if task.status is TaskState.SUBMITTED else None
    ahead = agent.turns.ahead(task.id) if agent is not None else None
    if agent is None or ahead is None:
        return task
    current = agent.turns.current
    behind = WaitsBehind(task=current.id if current else None, ahead=ahead, prompt=agent.prompt)
    return task.model_copy(update={"waits_behind": behind})


def conversation_rows(
    found: Iterable[PastConversation], agents: Mapping[tuple[str, str], str]
) -> list[ConversationAnswer]:
    """Returns the rows. `agents`: names by profile and conversation."""
    return [
        ConversationAnswer(
            profile=one.profile,
            id=one.id,
            cwd=one.cwd,
            updated_at=iso(one.updated),
            prompt=one.prompt,
            agent=agents.get((one.profile, one.id)),
        )
        for one in found
    ]


def profile_row(profile: Profile) -> ProfileAnswer:
    return ProfileAnswer(
        name=profile.name,
        description=profile.description,
        command=profile.command,
        ports=list(profile.ports),
        verified=profile.verified,
        unverified=profile.unverified,
        model=profile.model,
        skills=[skill.model_dump() for skill in profile.skills],
        transport=profile.transport,
        commands=[command.model_dump() for command in profile.commands],
        source=str(Path(profile.source)),
    )


def summary_of(agents: Iterable[Agent]) -> str:
    """Counts the agents in each state, and of waiting messages: `3 agents: 2 ready, 1 busy; 4 messages wait`."""
    every = list(agents)
    counts = Counter(
        activity_of(agent)[0].value if agent.state is ProcessState.RUNNING else agent.state.value for agent in every
    )
    waiting = sum(agent.turns.queue for agent in every)
    told = counted(len(every), "agent")
    if counts:
        told += ": " + ", ".join(f"{count} {what}" for what, count in counts.most_common())
    if waiting:
        told += f"; {counted(waiting, 'message waits', 'messages wait')}"
    return told


def _waited_for(agent: Agent) -> str | None:
    if agent.state is not ProcessState.RUNNING:
        return agent.state.value
    activity = activity_of(agent)[0]
    return None if activity is Activity.READY and agent.turns.current is None else activity.value


def _kept_from(agent: Agent) -> str | None:
    restarts = agent.record.restart_pending and not (agent.seen is not None and agent.seen.background)
    from synapsed.pty.readiness import Moment, obstacle  # late: only agents need its modules

    found = obstacle(Moment(hold=agent.hold.hold(), restarting=restarts, link=agent.seen))
    return found.held if found is not None else None


def is_coming_up(agent: Agent) -> bool:
    """Returns whether it runs, or will, and has not been ready yet."""
    if agent.state is ProcessState.RUNNING:
        return activity_of(agent)[0] is Activity.STARTING
    return agent.state in (ProcessState.STARTING, ProcessState.BACKOFF)


def _fields(agent: Agent, endpoint: str) -> dict[str, Any]:
    record = agent.record
    activity, evidence = activity_of(agent)
    hold = agent.hold.hold() if activity is Activity.LIMITED else None
    task = agent.turns.current
    version = record.launch.version if record.launch is not None else None
    withheld = record.launch.withheld if record.launch is not None else []
    background = agent.seen.background if agent.seen is not None else ()
    return {
        "name": record.name,
        "id": record.id,
        "type": record.profile,
        "port": record.port,
        "pid": agent.process.pid,
        "state": agent.state,
        "activity": activity,
        "since": iso(agent.since),
        "evidence": evidence,
        "held": _kept_from(agent) or (_waited_for(agent) if agent.turns.queue else None),
        "queue": agent.turns.queue,
        "task": task.id if task is not None else None,
        "restarts": record.restarts,
        "cwd": record.cwd,
        "endpoint": endpoint,
        "version": version or None,
        "verified": agent.profile.verified,
        "drift": agent.profile.drift(version),
        "withheld": "; ".join(withheld) or None,
        "settings": record.launch.settings if record.launch is not None else [],
        "until": iso(hold.until) if hold is not None and hold.until is not None else None,
        "asks": _gist(telling(agent.prompt.type, agent.prompt.prompt)) if agent.prompt is not None else None,
        "doing": _gist(task.message.text) if task is not None else None,
        "background": len(background),
        "background_tasks": [_gist(each) for each in background],
    }


def _gist(text: str) -> str:
    """Returns the beginning of the text, in one line, with a dot where a line ends."""
    lines = (" ".join(line.split()) for line in text[: 4 * GIST].splitlines())
    return " · ".join(line for line in lines if line)[:GIST]


def figures_of(agents: Iterable[Agent]) -> Iterator[AgentFigures]:
    """Yields the numbers one after the other, so that a caller can pause in between."""
    for agent in agents:
        link, current, oldest = agent.process.link, agent.turns.current, agent.turns.oldest
        yield AgentFigures(
            id=agent.id,
            name=agent.record.name,
            profile=agent.record.profile,
            state=agent.state,
            activity=activity_of(agent)[0],
            restarts=agent.record.restarts,
            queue=agent.turns.queue,
            oldest=None if oldest is None else datetime.fromisoformat(oldest).timestamp(),
            current=None if current is None else current.status,
            output=None if link is None else link.terminal.output,
            terminals=0 if link is None else link.terminal.attached,
            alerts=len(agent.alerts.standing),
        )
