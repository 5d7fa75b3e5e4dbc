"""`POST …/message`: makes a task of a plain text."""

from aiohttp import web

from synapsed.api.operation import operation
from synapsed.api.request_models import MessageBody
from synapsed.api.response_models import MessageSent
from synapsed.api.sending import SEND_ERRORS, addressed, send_to
from synapsed.interfaces import Control, SendRequest
from synapsed.model.task import Message


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.post(f"{prefix}/message", message)]


@operation("Send a text", "it is in the mailbox", allowed=addressed, errors=SEND_ERRORS)
async def message(request: web.Request, body: MessageBody, control: Control) -> MessageSent:
    wanted = SendRequest(message=Message.of(body.content), priority=body.priority)
    task = await send_to(request, control, wanted)
    return MessageSent(status="sent", priority=body.priority, task_id=task.id)
