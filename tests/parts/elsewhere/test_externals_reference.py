"""The SDK's own reference server as an external agent, in both versions and bindings that it has."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncGenerator

import pytest

from synapsed.clock import SystemClock
from synapsed.interfaces import SendRequest
from synapsed.model.task import Message, Task, TaskState
from synapsed.parts.elsewhere.addressbook import AddressBook
from synapsed.parts.elsewhere.externals import Externals
from tests.fakes.store import MemoryStore
from tests.parts.elsewhere.elsewhere import card_03, card_10, elsewhere
from tests.support.patience import PATIENCE_S

uvicorn = pytest.importorskip("uvicorn")


def _application():
    from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
    from a2a.server.routes.rest_routes import create_rest_routes
    from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
    from a2a.types import AgentCapabilities, AgentCard, AgentInterface, Role
    from starlette.applications import Starlette

    class Player(AgentExecutor):
        async def execute(self, context, event_queue):
            said = context.get_user_input()
            if said == "message":
                await event_queue.enqueue_event(new_text_message("no task at all", role=Role.ROLE_AGENT))
                return
            task = context.current_task or new_task_from_user_message(context.message)
            if context.current_task is None:
                await event_queue.enqueue_event(task)
            updater = TaskUpdater(event_queue, task.id, task.context_id)
            await updater.start_work()
            if said == "ask":
                await updater.requires_input(updater.new_agent_message([new_text_part("Which one?")]))
            elif said == "refuse":
                await updater.reject(updater.new_agent_message([new_text_part("not that")]))
            else:
                await updater.add_artifact([new_text_part(f"echo: {said}")], name="output")
                await updater.add_artifact([new_text_part("and more")], name="notes")
                await updater.complete()

        async def cancel(self, context, event_queue):
            raise NotImplementedError

    card = AgentCard(
        name="player",
        version="1",
        supported_interfaces=[AgentInterface(url="http://x/", protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True),
    )
    handler = DefaultRequestHandler(Player(), InMemoryTaskStore(), card)
    routes = [*create_jsonrpc_routes(handler, "/a2a", enable_v0_3_compat=True), *create_rest_routes(handler)]
    return Starlette(routes=routes)


@pytest.fixture
async def reference() -> AsyncGenerator[str]:
    logging.getLogger("a2a").setLevel(logging.CRITICAL)
    sock = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(_application(), log_level="critical", access_log=False, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([sock]))
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(serving, PATIENCE_S)


CARDS = {
    "1.0": lambda url: card_10(f"{url}/a2a"),
    "1.0 without streams": lambda url: card_10(f"{url}/a2a", capabilities={}),
    "1.0 HTTP+JSON": lambda url: card_10(
        "", supportedInterfaces=[{"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]
    ),
    "0.3": lambda url: card_03(f"{url}/a2a"),
}


@pytest.fixture(params=CARDS)
async def externals(request, reference: str, tmp_path) -> AsyncGenerator[Externals]:
    store = MemoryStore()
    found = Externals(store=store, book=AddressBook(tmp_path), clock=SystemClock())
    async with elsewhere(CARDS[request.param](reference)) as place:
        await found.discover(place.url, "far", headers=None)
        yield found
    await found.close()


async def until(externals: Externals, task: Task, *states: TaskState) -> Task:
    async with asyncio.timeout(PATIENCE_S):
        while (now := await externals.task("far", task.id)).status not in states:
            await asyncio.sleep(0.01)
    return now


async def send(externals: Externals, text: str) -> Task:
    return await externals.send("far", SendRequest(message=Message.of(text)))


async def test_an_answer_of_two_artifacts(externals: Externals):
    task = await until(externals, await send(externals, "hi"), TaskState.COMPLETED)
    assert task.answer == "echo: hi\n\nand more"
    assert [(artifact.artifact_id, artifact.name) for artifact in task.artifacts] == [
        ("answer", "output"),
        ("answer.1", "output"),
        ("answer.2", "notes"),
    ]


async def test_an_answer_without_a_task(externals: Externals):
    task = await until(externals, await send(externals, "message"), TaskState.COMPLETED)
    assert task.answer == "no task at all"


async def test_a_question(externals: Externals):
    task = await until(externals, await send(externals, "ask"), TaskState.INPUT_REQUIRED)
    assert task.prompt is not None
    assert task.prompt.prompt == "Which one?"
    await externals.answer(task, Message.of("that one"))
    task = await until(externals, task, TaskState.COMPLETED)
    assert task.answer is not None
    assert task.answer.startswith("echo: that one")


async def test_a_refusal(externals: Externals):
    task = await until(externals, await send(externals, "refuse"), TaskState.REJECTED)
    assert task.error is not None
    assert task.error.message == "not that"
