"""The inbox of the person: of this host, as one part knows it, and of others, as whoever reaches them does; and the
agents of other hosts."""

import asyncio
from typing import Protocol

from synapsed.model.agent import AgentView
from synapsed.model.attention import AttentionItem, HostSaid


class WaitingHere:
    """The inbox of this host: empty, where no part keeps one."""

    def items(self) -> list[AttentionItem]:
        """Returns the oldest first."""
        return []

    @property
    def moved(self) -> asyncio.Event:
        """Is set at the next change of what is in it, and is another one then: take hold of it before you look."""
        return asyncio.Event()


class WaitingSource(Protocol):
    """The inboxes of other hosts."""

    async def inboxes(self) -> tuple[list[AttentionItem], list[HostSaid]]:
        """Returns what waits for a person there, and what each host has said of it."""
        ...


class AgentSource(Protocol):
    """The agents of other hosts."""

    async def agents(self) -> list[AgentView]:
        """Returns those of hosts that can be reached, under their addresses here."""
        ...

    async def teams(self) -> dict[str, list[str]]:
        """Returns the members of teams there, as addresses."""
        ...
