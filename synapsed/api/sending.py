"""Every way into an agent's mailbox goes through here: who sends is settled, and what cannot be typed is refused."""

from dataclasses import replace

from aiohttp import web

from synapsed.api.context import rights_of, to_the_end
from synapsed.api.rights import Rights
from synapsed.errors import InvalidRequest, NotReady, NotWaiting, QueueFull, SynapsedError, TaskNotFound
from synapsed.interfaces import Control, SendRequest
from synapsed.model.agent import AgentView
from synapsed.model.sender import KEY
from synapsed.model.task import Task
from synapsed.supervisor.senders import Caller, settle_sender

__all__ = ["SEND_ERRORS", "send", "signed"]

SEND_ERRORS: tuple[type[SynapsedError], ...] = (TaskNotFound, NotWaiting, QueueFull, NotReady)
"""What may come of a send besides what is wrong in the request itself."""


def signed(request: SendRequest, rights: Rights, control: Control) -> SendRequest:
    """The request with its sender, as the evidence has it. Raises what `settle_sender` raises."""

    def find(address: str) -> AgentView:
        return control.view(control.resolve(address))

    caller = Caller(person=rights.person, agent_id=rights.agent_id, remote=rights.remote)
    sender = settle_sender(caller, request.metadata.get(KEY), find)
    metadata = {key: value for key, value in request.metadata.items() if key != KEY}
    return replace(request, metadata=metadata if sender is None else {**metadata, KEY: sender.metadata()})


async def send(request: web.Request, control: Control, agent_id: str, wanted: SendRequest) -> Task:
    """Hand a message to the agent's mailbox. Raises InvalidRequest for a blank one; Forbidden where an agent would
    answer a prompt or command another's program, or claims to be somebody else."""
    rights = rights_of(request)
    if wanted.message.blank:
        raise InvalidRequest("message.parts: the message is blank", field="message.parts")
    if wanted.metadata.get("new_conversation"):
        rights.require_person("begin a new conversation of an agent")
    if wanted.command:
        rights.require_person("give a program its own commands")
    if wanted.task_id is not None:
        rights.require_person("answer prompts")
    # A client that leaves in the middle must not leave a message half accepted.
    return await to_the_end(control.send(agent_id, signed(wanted, rights, control)))
