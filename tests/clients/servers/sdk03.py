"""A server of A2A 0.3 on the SDK's own 0.3, run by an interpreter that has it: prints its port, ends with its stdin.

What it does is what the message says: `count N` sends N pieces of one artifact, `ask` asks first, `again` the same
twice where the answer is `again`, `message` answers without a task, `hold` works until it is canceled, `files` hands
over a file and data, and `weigh` says which files came with the message. After piece `break N` of a count the server
closes all connections that it has, once. With `read FOLDER` a count goes on after pieces 0 and 9 when there is a file
of that number in the folder. Started with a key, it lets in only who has it as `key` in the query of whatever is
posted, and shows them its extended card.
"""

import asyncio
import base64
import socket
import sys
from pathlib import Path

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    APIKeySecurityScheme,
    DataPart,
    FilePart,
    FileWithBytes,
    In,
    Part,
    SecurityScheme,
    TextPart,
)
from a2a.utils import new_agent_text_message, new_task
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import Response

servers = []


def parts(text):
    return [Part(root=TextPart(text=text))]


class Player(AgentExecutor):
    async def execute(self, context, queue):
        words = context.get_user_input().split()
        if words[0] == "message":
            await queue.enqueue_event(new_agent_text_message("no task at all"))
            return
        task = context.current_task or new_task(context.message)
        if context.current_task is None:
            await queue.enqueue_event(task)
        updater = TaskUpdater(queue, task.id, task.context_id)
        await updater.start_work()
        if words[0] == "hold":
            await asyncio.Event().wait()
        if words[0] == "files":
            file = FilePart(file=FileWithBytes(bytes="aGVsbG8=", name="a.txt", mime_type="text/plain"))
            await updater.add_artifact([Part(root=file), Part(root=DataPart(data={"n": 1}))], name="out")
            await updater.complete()
            return
        if words[0] == "weigh":
            files = [part.root.file for part in context.message.parts if part.root.kind == "file"]
            said = ", ".join(f"{file.name} {len(base64.b64decode(file.bytes))}" for file in files)
            await updater.add_artifact(parts(said), name="out")
            await updater.complete()
            return
        if words[0] in ("ask", "again"):
            await updater.requires_input(updater.new_agent_message(parts("How many?")), final=True)
            return
        count = int(words[1])
        for n in range(count):
            await asyncio.sleep(0.02)  # pieces, not one burst
            await updater.add_artifact(
                parts(f"piece {n}, "), artifact_id="a", name="out", append=n > 0, last_chunk=n == count - 1
            )
            while words[2:3] == ["read"] and n in (0, 9) and not Path(words[3], str(n)).exists():
                await asyncio.sleep(0.02)
            if words[2:] == ["break", str(n)]:
                for connection in list(servers[0].server_state.connections):
                    connection.transport.abort()
        await updater.complete()

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


class LetIn(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        if request.method == "POST" and request.query_params.get("key") != sys.argv[1]:
            return Response(status_code=401)
        return await call_next(request)


async def main():
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    card = AgentCard(
        name="player",
        description="It counts",
        url=f"http://127.0.0.1:{port}/",
        version="1",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="count", name="Count", description="Counts", tags=["count"])],
    )
    more = None
    if sys.argv[1:]:
        scheme = APIKeySecurityScheme(name="key", in_=In.query)
        card.security_schemes, card.security = {"q": SecurityScheme(root=scheme)}, [{"q": []}]
        card.supports_authenticated_extended_card = True
        ask = AgentSkill(id="ask", name="Ask", description="Asks", tags=["ask"])
        more = card.model_copy(update={"skills": [*card.skills, ask]})
    handler = DefaultRequestHandler(Player(), InMemoryTaskStore())
    app = A2AStarletteApplication(card, handler, extended_agent_card=more).build()
    if sys.argv[1:]:
        app.add_middleware(LetIn)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off", ws="none"))
    servers.append(server)
    serving = asyncio.create_task(server.serve([sock]))
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving


asyncio.run(main())
