"""Every way into an agent's mailbox goes through here: who sends is settled, and what cannot be typed is refused."""

from dataclasses import replace

from aiohttp import web

from synapsed.api.context import rights_of, to_the_end
from synapsed.api.rights import Rights
from synapsed.errors import InvalidRequest, NotReady, NotWaiting, QueueFull, SynapsedError, TaskNotFound, UnknownAgent
from synapsed.interfaces import Control, SendRequest
from synapsed.model.task import Task

__all__ = ["SEND_ERRORS", "send", "signed"]

SEND_ERRORS: tuple[type[SynapsedError], ...] = (TaskNotFound, NotWaiting, QueueFull, NotReady)
"""What may come of a send besides what is wrong in the request itself."""


def signed(request: SendRequest, rights: Rights, control: Control) -> SendRequest:
    """The request with its sender. Evidence counts for more than what is claimed: an agent that is known speaks in its
    own name; a person may name a sender (`--from`)."""
    if rights.agent_id is None:
        return request
    sender = {"sender_id": rights.agent_id}
    try:
        view = control.view(rights.agent_id)
        sender |= {"sender_type": view.type, "sender_endpoint": view.endpoint}
    except UnknownAgent:
        pass  # removed while its last words were on the way
    return replace(request, metadata={**request.metadata, "sender": sender})


async def send(request: web.Request, control: Control, agent_id: str, wanted: SendRequest) -> Task:
    """Hand a message to the agent's mailbox. Raises InvalidRequest for a blank one; Forbidden where an agent would
    answer a prompt."""
    rights = rights_of(request)
    if wanted.message.blank:
        raise InvalidRequest("message.parts: the message is blank", field="message.parts")
    if wanted.metadata.get("new_conversation"):
        rights.require_person("begin a new conversation of an agent")
    if wanted.task_id is not None:
        rights.require_person("answer prompts")
    # A client that leaves in the middle must not leave a message half accepted.
    return await to_the_end(control.send(agent_id, signed(wanted, rights, control)))
