"""`POST …/message`: a text, the seeds' simple way; a task is made of it."""

from aiohttp import web

from synapsed.api.answers import MessageSent
from synapsed.api.body import json_response, read_model
from synapsed.api.context import CONTEXT, agent_id_of
from synapsed.api.describe import Response, describe
from synapsed.api.schemas import MessageBody
from synapsed.api.sending import SEND_ERRORS, send
from synapsed.interfaces import SendRequest
from synapsed.model.task import Message


def routes(prefix: str) -> list[web.RouteDef]:
    return [web.post(f"{prefix}/message", message)]


@describe("Send a text", Response("it is in the mailbox", MessageSent), body=MessageBody, errors=SEND_ERRORS)
async def message(request: web.Request) -> web.Response:
    agent_id = agent_id_of(request)
    body = await read_model(request, MessageBody)
    wanted = SendRequest(message=Message.of(body.content), priority=body.priority)
    task = await send(request, request.app[CONTEXT].control, agent_id, wanted)
    return json_response({"status": "sent", "priority": body.priority, "task_id": task.id})
