"""The carriers of all open parts behind one object: they bring tasks to agents that are not this daemon's."""

from collections.abc import Mapping

from synapsed.clock import Clock
from synapsed.errors import NotKnownYet, TaskNotCancelable, UnknownAgent
from synapsed.interfaces import PERSON, Carrier, OutboundQuestion, SendRequest, Store
from synapsed.model.events import Origin
from synapsed.model.external import alias_of, part_of, part_of_task
from synapsed.model.released_names import missing
from synapsed.model.task import Message, Task
from synapsed.tasks import transitions


class Carriers:
    """Chooses the carrier for each task and address. A task stays with the carrier that it began with. An address is
    looked up in reverse order of the list: if several carriers reach a host, the last one is used."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._carriers: dict[str, Carrier] = {}

    def become(self, carriers: Mapping[str, Carrier]) -> None:
        """Sets the carriers from now on, by the names of their parts."""
        self._carriers = dict(carriers)

    def find(self, address: str) -> str | None:
        """Returns the id of the agent elsewhere that `address` means; None if it means none. Raises UnknownAgent for an
        unknown host, and for an address of a missing part; NotKnownYet if one of the carriers may know it soon."""
        hints: list[str] = []
        yet: NotKnownYet | None = None
        for carrier in reversed(self._carriers.values()):
            try:
                found = carrier.find(address)
            except NotKnownYet as error:
                yet = error
                continue
            except UnknownAgent as error:
                raise yet or UnknownAgent("; ".join([error.message, *hints]), **error.details) from None
            if found is not None:
                return found
            hints += [carrier.hint] if carrier.hint else []
        if yet is not None:
            raise yet
        if (part := part_of(address)) is not None and part not in self._carriers:
            raise _unreached(repr(address[:80]), part)
        return None

    async def send(
        self, alias: str, request: SendRequest, asking: OutboundQuestion, *, sender: str | None = None
    ) -> Task:
        """Sends to the agent elsewhere, or answers the question of its task. Raises UnknownAgent."""
        task = None if request.task_id is None else await self._store.task(request.task_id)
        if task is not None and alias_of(task) == alias:
            carrier: Carrier | None = self._of(task)
        else:
            carrier = next((one for one in reversed(self._carriers.values()) if _reaches(one, alias)), None)
        if carrier is None:
            raise UnknownAgent(f"no part that is open reaches the agent {alias[:80]!r} elsewhere", alias=alias[:80])
        return await carrier.send(alias, request, asking, sender=sender)

    async def cancel(self, task: Task) -> Task:
        """Cancels a task. If its part is missing, it is canceled only here; the other host's result is unknown."""
        if (carrier := self._find(task)) is not None:
            return await carrier.cancel(task)
        now = await self._store.task(task.id) or task
        if now.terminal:
            raise TaskNotCancelable(f"task {now.id} is {now.status.value} already", task=now.id)
        commit = transitions.canceled(now, reason="canceled", now=self._clock.wall())
        await self._store.commit(events=commit.events, tasks=[commit.task], turn_ended=commit.turn_ended)
        return commit.task

    async def answer(self, task: Task, message: Message, prompt_id: str | None = None, origin: Origin = PERSON) -> Task:
        """Answers the question of a task on another host. Raises UnknownAgent if its part is missing."""
        return await self._of(task).answer(task, message, prompt_id, origin)

    def held(self, task: Task) -> str | None:
        """Returns why the task, which is under way elsewhere, makes no progress; None if a carrier has it."""
        if task.terminal or self._find(task) is not None:
            return None
        return f"part {part_of_task(task)} is not there"

    def _find(self, task: Task) -> Carrier | None:
        return next((one for one in self._carriers.values() if one.carries(task)), None)

    def _of(self, task: Task) -> Carrier:
        if (carrier := self._find(task)) is None:
            raise _unreached(task.agent_id, part_of_task(task))
        return carrier


def _reaches(carrier: Carrier, alias: str) -> bool:
    try:
        return carrier.find(alias) is not None
    except NotKnownYet:
        return False


def _unreached(who: str, part: str) -> UnknownAgent:
    return UnknownAgent(f"{who} is reached by the part {part}, which {missing(part, 'is not there')}", part=part)
