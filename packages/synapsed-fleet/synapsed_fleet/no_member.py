"""Refuses agents that only a fleet reaches, on a host that is in no fleet, or takes no part in its own."""

from synapsed.clock import Clock
from synapsed.errors import TaskNotCancelable, UnknownAgent
from synapsed.interfaces import PERSON, OutboundQuestion, SendRequest, Store
from synapsed.model.events import Origin
from synapsed.model.external import is_any
from synapsed.model.task import Message, Task
from synapsed.tasks import transitions
from synapsed_fleet.fleet_rows import FleetChange, carried_by_fleet
from synapsed_fleet.fleet_table import FleetTable


class NoMember:
    """A carrier (`interfaces.Carrier`) that sends nothing. `problem`: why this host takes no part in the fleet that it
    is configured for."""

    hint = ""

    def __init__(self, store: Store, table: FleetTable, clock: Clock, problem: str | None) -> None:
        self._store = store
        self._table = table
        self._clock = clock
        self._problem = problem

    def find(self, address: str) -> str | None:
        """Returns None. Raises UnknownAgent for an address of any agent of a class."""
        if not is_any(address.removeprefix("@")):
            return None
        if self._problem is not None:
            raise UnknownAgent(f"this host takes no part in its fleet: {self._problem}", address=address[:80])
        raise UnknownAgent(
            f"{address[:80]!r} means an agent of a fleet, and this host is in none: 'synapsectl fleet create' "
            "makes one, 'synapsectl fleet join LINE' joins one",
            address=address[:80],
        )

    def carries(self, task: Task) -> bool:
        return carried_by_fleet(task)

    async def send(
        self, alias: str, request: SendRequest, asking: OutboundQuestion, *, sender: str | None = None
    ) -> Task:
        """Refuses the message. Raises UnknownAgent."""
        raise self._away(alias)

    async def cancel(self, task: Task) -> Task:
        """Cancels a task of a fleet that this host has left, here only: it is unknown whether the other host cancels
        it."""
        now = await self._store.task(task.id) or task
        if now.terminal:
            raise TaskNotCancelable(f"task {now.id} is {now.status.value} already", task=now.id)
        commit = transitions.canceled(now, reason="canceled", now=self._clock.wall())
        change = FleetChange(given_up=(now.id,))
        await self._table.commit(commit.task, change, events=commit.events, turn_ended=commit.turn_ended)
        return commit.task

    async def answer(self, task: Task, message: Message, prompt_id: str | None = None, origin: Origin = PERSON) -> Task:
        """Refuses the answer. Raises UnknownAgent."""
        raise self._away(task.agent_id)

    def _away(self, agent: str) -> UnknownAgent:
        why = self._problem or "this host is in none any more"
        return UnknownAgent(f"{agent} is reached by the fleet: {why}", agent=agent)
