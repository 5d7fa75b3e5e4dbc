"""A server of A2A 0.3 on the SDK's own 0.3, run by an interpreter that has it: prints its port, ends with its stdin.

What it does is what the message says: `count N` sends N pieces of one artifact, `ask` asks first, `message` answers
without a task. After piece `break N` of a count the server closes all connections that it has, once. With `read FOLDER`
a count goes on after pieces 0 and 9 when there is a file of that number in the folder.
"""

import asyncio
import socket
import sys
from pathlib import Path

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_agent_text_message, new_task

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
        if words[0] == "ask":
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
        raise NotImplementedError


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
    app = A2AStarletteApplication(card, DefaultRequestHandler(Player(), InMemoryTaskStore())).build()
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off", ws="none"))
    servers.append(server)
    serving = asyncio.create_task(server.serve([sock]))
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving


asyncio.run(main())
