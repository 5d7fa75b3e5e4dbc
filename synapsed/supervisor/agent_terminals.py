"""Screens of the agents, and keys that are typed to them outside of tasks: implements `interfaces.Terminals`."""

from collections.abc import Mapping, Sequence
from typing import Any

from synapsed.agents.live_agent import Agent, agent_of
from synapsed.agents.part_doors import PartDoors
from synapsed.interfaces import PERSON, Attachment, LineRouting, OutputPiece, ScreenWatch
from synapsed.model.events import Origin
from synapsed.model.picture import ScreenForm, Shown
from synapsed.supervisor.roster import Roster

_TOLD = "[{name} would set the clipboard here: not passed on, see 'clipboard' under [attach] of config.toml]"


class AgentTerminals:
    """Implements `interfaces.Terminals`. `agents` are all agents, by id. A part may take the lines that a person types
    at their terminals."""

    def __init__(self, agents: Mapping[str, Agent], *, roster: Roster, doors: PartDoors) -> None:
        self._agents = agents
        self._roster = roster
        self._doors = doors

    async def screen(self, agent_id: str, fmt: ScreenForm) -> Shown:
        return await agent_of(self._agents, agent_id).screen.shown(fmt)

    async def visible(self, agent_id: str) -> str:
        return await agent_of(self._agents, agent_id).screen.text()

    async def context(self, agent_id: str, limit: int = 2000) -> str:
        return await agent_of(self._agents, agent_id).screen.text(limit)

    async def output(self, agent_id: str, start: int | None, limit: int) -> OutputPiece:
        return await agent_of(self._agents, agent_id).screen.output(start, limit)

    async def recording(self, agent_id: str, limit: int) -> str:
        return await agent_of(self._agents, agent_id).screen.recording(limit)

    async def attach(
        self,
        agent_id: str,
        *,
        cols: int,
        rows: int,
        read_only: bool,
        keep_size: bool = False,
        reach: frozenset[str] | None = None,
    ) -> Attachment:
        agent, wanted = agent_of(self._agents, agent_id), self._roster.config.attach
        attachment = await agent.attach(cols=cols, rows=rows, read_only=read_only, keep_size=keep_size)
        denied = wanted.clipboard == "deny"
        attachment.keep_clipboard(_TOLD.format(name=agent.record.name) if denied else None)
        routing: LineRouting | None = None if read_only else self._doors.first(LineRouting)
        if routing is not None and (line := routing.line(attachment, agent_id, reach)) is not None:
            attachment.follow(line)
        return attachment

    def watch(self, agent_id: str) -> ScreenWatch:
        return agent_of(self._agents, agent_id).watch()

    def settings(self) -> dict[str, Any]:
        return self._roster.config.attach.model_dump(mode="json")

    def looked_at(self, agent_id: str) -> bool:
        agent = self._agents.get(agent_id)
        link = agent.process.link if agent is not None else None
        return link is not None and link.terminal.has_person

    def hands_at(self) -> float | None:
        links = (agent.process.link for agent in self._agents.values())
        return max(
            (link.terminal.hands_at for link in links if link is not None and link.terminal.writers), default=None
        )

    async def press(self, agent_id: str, keys: Sequence[str]) -> None:
        await agent_of(self._agents, agent_id).press(keys)

    async def answer(self, agent_id: str, text: str, prompt_id: str | None = None, origin: Origin = PERSON) -> None:
        await agent_of(self._agents, agent_id).answer(text, prompt_id, origin)

    async def interrupt(self, agent_id: str, *, background: bool = False) -> bool:
        stops = agent_of(self._agents, agent_id).stops
        return await (stops.stop_background() if background else stops.interrupt())

    async def decide(self, agent_id: str, event: str, told: dict[str, Any]) -> dict[str, Any] | None:
        return await agent_of(self._agents, agent_id).decide(event, told)
