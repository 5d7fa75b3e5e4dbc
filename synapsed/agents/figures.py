"""The numbers of each agent (`model.figures`), read off what its rooms keep."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from synapsed.agents.agent import Agent
from synapsed.agents.views import activity_of
from synapsed.model.figures import AgentFigures


def figures_of(agents: Iterable[Agent]) -> Iterator[AgentFigures]:
    """One after the other, so that whoever asks can pause in between."""
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
