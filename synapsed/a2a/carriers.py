"""Who carries a task to an agent elsewhere: couriers (HTTP, over a socket that ssh brings or over the network), or the
fleet. A task stays with the carrier that it began with; an address is asked of the fleet first."""

from typing import Protocol

from synapsed.clock import Clock
from synapsed.errors import TaskNotCancelable, UnknownAgent
from synapsed.interfaces import Elsewhere, OutboundQuestion, SendRequest, Store
from synapsed.model.external import carried_by_fleet, is_any
from synapsed.model.task import Message, Task
from synapsed.tasks import transitions


class Carrier(Elsewhere, Protocol):
    """One way to agents elsewhere: it finds them, sends to them, and cancels and answers what it has sent."""


class Carriers:
    """All of them as one (`interfaces.Elsewhere`). `fleet` is put there by the daemon, where there is one."""

    def __init__(self, couriers: Carrier, store: Store, clock: Clock) -> None:
        self._couriers = couriers
        self._store = store
        self._clock = clock
        self.fleet: Carrier | None = None
        self.problem: str | None = None
        """Why this host takes no part in the fleet that it is configured for."""

    def find(self, address: str) -> str | None:
        if self.fleet is not None and (found := self.fleet.find(address)) is not None:
            return found
        if is_any(address.removeprefix("@")) and self.problem is not None:
            raise UnknownAgent(f"this host takes no part in its fleet: {self.problem}", address=address[:80])
        if is_any(address.removeprefix("@")):
            raise UnknownAgent(
                f"{address[:80]!r} means an agent of a fleet, and this host is in none: 'synapsectl fleet create' "
                "makes one, 'synapsectl fleet join LINE' joins one",
                address=address[:80],
            )
        try:
            return self._couriers.find(address)
        except UnknownAgent as error:
            if self.fleet is None:
                raise
            raise UnknownAgent(
                f"{error.message}; whom this host knows of its fleet: 'synapsectl fleet hosts'", **error.details
            ) from None

    async def send(
        self, alias: str, request: SendRequest, asking: OutboundQuestion, *, sender: str | None = None
    ) -> Task:
        by_fleet = self.fleet is not None and self.fleet.find(alias) is not None
        carrier = self.fleet if self.fleet is not None and by_fleet else self._couriers
        return await carrier.send(alias, request, asking, sender=sender)

    async def cancel(self, task: Task) -> Task:
        """A task of a fleet that this host has left is canceled here; whether the other host does it nobody can say."""
        if carried_by_fleet(task) and self.fleet is None:
            return await self._given_up(task)
        return await self._of(task).cancel(task)

    async def _given_up(self, task: Task) -> Task:
        now = await self._store.task(task.id) or task
        if now.terminal:
            raise TaskNotCancelable(f"task {now.id} is {now.status.value} already", task=now.id)
        commit = transitions.canceled(now, reason="canceled", now=self._clock.wall())
        await self._store.commit(
            events=commit.events,
            tasks=[commit.task],
            turn_ended=commit.turn_ended,
            also=[lambda connection, _: connection.execute("DELETE FROM fleet_out WHERE task_id = ?", (now.id,))],
            durable=True,
        )
        return commit.task

    async def answer(self, task: Task, message: Message, prompt_id: str | None = None) -> Task:
        return await self._of(task).answer(task, message, prompt_id)

    def _of(self, task: Task) -> Carrier:
        if not carried_by_fleet(task):
            return self._couriers
        if self.fleet is None:
            raise UnknownAgent(
                f"{task.agent_id} is reached by the fleet: {self.problem or 'this host is in none any more'}",
                agent=task.agent_id,
            )
        return self.fleet
