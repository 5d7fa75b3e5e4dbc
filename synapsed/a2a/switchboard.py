"""`Control` with the external agents in it: an alias is an address, after all that is local; their tasks are tasks."""

from typing import Any

from synapsed.a2a.externals import Externals
from synapsed.errors import UnknownAgent
from synapsed.interfaces import PERSON, Control, SendRequest
from synapsed.model.events import Origin
from synapsed.model.external import alias_of, host_of
from synapsed.model.sender import Sender, Tier
from synapsed.model.task import Message, Task

__all__ = ["Switchboard"]


class Switchboard:
    """Everything that is not about sending is the supervisor's, and refused by it for agents that are not its own."""

    def __init__(self, control: Control, externals: Externals) -> None:
        self._control = control
        self._externals = externals

    def __getattr__(self, name: str) -> Any:
        return getattr(self._control, name)

    def resolve(self, address: str) -> str:
        try:
            return self._control.resolve(address)
        except UnknownAgent:
            if (found := self._externals.find(address)) is not None:
                return found
            raise

    async def send(self, agent_id: str, request: SendRequest) -> Task:
        if (alias := alias_of(agent_id)) is not None:
            sender = self._name_of(Sender.of(request.metadata)) if host_of(alias) is not None else None
            return await self._externals.send(alias, request, self._control.asking, sender=sender)
        return await self._control.send(agent_id, request)

    def _name_of(self, sender: Sender | None) -> str | None:
        """What the sender is called here; None for a person, and what he has scheduled."""
        if sender is None or sender.tier is Tier.PERSON:
            return None
        try:
            return self._control.view(sender.id).name
        except UnknownAgent:
            return sender.id

    async def cancel(self, task_id: str) -> Task:
        task = await self._control.task(task_id)
        if alias_of(task) is not None:
            return await self._externals.cancel(task)
        return await self._control.cancel(task.id)

    async def provide_input(
        self, task_id: str, text: str, prompt_id: str | None = None, origin: Origin = PERSON
    ) -> Task:
        task = await self._control.task(task_id)
        if alias_of(task) is not None:
            return await self._externals.answer(task, Message.of(text), prompt_id)
        return await self._control.provide_input(task.id, text, prompt_id, origin=origin)
