"""The running part: the known agents elsewhere, the tasks under way to them, and a tunnel to each host."""

import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from synapsed.aio import TaskSet
from synapsed.interfaces import AgentSource, AgentView, WaitingSource
from synapsed.kernel import Kernel, Running
from synapsed.parts.elsewhere.addressbook import AddressBook
from synapsed.parts.elsewhere.externals import Externals
from synapsed.parts.elsewhere.hosts.hosts import HostBook, Hosts
from synapsed.parts.elsewhere.hosts.tunnel import TunnelDeps
from synapsed.parts.elsewhere.questions import ElsewhereAsking


class ElsewherePart(Running):
    """The part after its restore: the external agents and the hosts."""

    def __init__(self, externals: Externals, hosts: Hosts, questions: ElsewhereAsking) -> None:
        self._externals = externals
        self._questions = questions
        self._hosts = hosts
        self._work = TaskSet()
        self.carrier = externals
        self.provides = {Externals: externals, Hosts: hosts, WaitingSource: hosts, AgentSource: self}

    async def agents(self) -> list[AgentView]:
        """Returns the agents of other hosts, and under their aliases the external agents that wait for a person."""
        return [*await self._hosts.agents(), *self._questions.agents()]

    async def teams(self) -> dict[str, list[str]]:
        """Returns the teams of other hosts; see `AgentSource`."""
        return await self._hosts.teams()

    def started(self) -> None:
        """Continues the tasks that were under way, now that all agents are known."""
        self._work.spawn(self._go_on(), name="agents elsewhere")

        self._questions.start()

    async def _go_on(self) -> None:
        await self._externals.resume()
        self._hosts.start()

    async def stopping(self) -> None:
        await self._work.cancel()
        await self._questions.close()


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[ElsewherePart]:
    """Opens the part where the last daemon left it; tasks stay under way until the agents have gone."""
    config, paths = kernel.config, kernel.paths
    means = TunnelDeps(
        ssh=config.hosts.ssh,
        environ=kernel.environ,
        sockets=paths.sockets / "hosts",
        clock=kernel.clock,
        rng=random.random,
    )
    own_name = config.hosts.name or socket.gethostname().partition(".")[0]
    hosts = Hosts(book=HostBook(paths.state / "hosts"), means=means, own_name=own_name)
    externals = Externals(
        store=kernel.store,
        book=AddressBook(paths.a2a / "external"),
        clock=kernel.clock,
        hosts=hosts,
        sampling=kernel.sampling,
        outgoing=config.outgoing,
    )
    await hosts.restore()
    await externals.restore()
    questions = ElsewhereAsking(kernel.store)
    await questions.restore()
    part = ElsewherePart(externals, hosts, questions)
    try:
        yield part
    finally:
        await part.stopping()
        await externals.close()
        await hosts.close()
