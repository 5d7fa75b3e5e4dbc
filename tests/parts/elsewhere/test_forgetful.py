"""A 1.0 agent with its tasks in memory, cut off while a message is on its way: nothing is done twice unseen."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from synapsed.model.external import KEY
from synapsed.model.task import TaskState
from tests.parts.elsewhere.elsewhere import card_10
from tests.parts.elsewhere.here import Here
from tests.support.listening import listening

NOT_FOUND = {"code": -32001, "message": "Task not found"}


@dataclass
class Forgetful:
    """`taken` are the texts of the messages that it took; at those of `cut` its answer is lost, and it forgets all."""

    url: str = ""
    cut: set[int] = field(default_factory=set)
    taken: list[str] = field(default_factory=list)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def card(self, _request: web.Request) -> web.Response:
        return web.json_response(card_10(f"{self.url}/", capabilities={"streaming": False}))

    async def serve(self, request: web.Request) -> web.Response:
        asked = await request.json()
        method, params = asked["method"], asked.get("params") or {}
        answer: dict[str, Any]
        if method == "SendMessage":
            message = params["message"]
            self.taken.append(message["parts"][0]["text"])
            if len(self.taken) in self.cut:
                self.tasks.clear()
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            name = f"t{len(self.taken)}"
            artifacts = [{"artifactId": "a", "parts": [{"text": "done"}]}]
            self.tasks[name] = {
                "id": name,
                "contextId": "c1",
                "status": {"state": "TASK_STATE_COMPLETED"},
                "history": [message],
                "artifacts": artifacts,
            }
            answer = {"result": {"task": self.tasks[name]}}
        elif method == "ListTasks":
            found = [*self.tasks.values()]
            answer = {"result": {"tasks": found, "totalSize": len(found), "pageSize": len(found), "nextPageToken": ""}}
        elif method == "GetTask":
            task = self.tasks.get(params["id"])
            answer = {"error": NOT_FOUND} if task is None else {"result": task}
        else:
            answer = {"error": {"code": -32601, "message": "?"}}
        return web.json_response({"jsonrpc": "2.0", "id": asked.get("id"), **answer})


@asynccontextmanager
async def forgetful(here: Here, *cut: int) -> AsyncGenerator[Forgetful]:
    """The agent, added as `far`; the messages with the numbers `cut`, from 1 on, are lost by it."""
    agent = Forgetful(cut=set(cut))
    app = web.Application()
    app.router.add_get("/.well-known/agent-card.json", agent.card)
    app.router.add_post("/", agent.serve)
    async with listening(app) as port:
        agent.url = f"http://127.0.0.1:{port}"
        await here.externals.discover(agent.url, "far", headers=None)
        yield agent


async def test_one_that_forgot_its_earlier_tasks_is_not_sent_the_message_again(here: Here) -> None:
    async with forgetful(here, 2) as agent:
        await here.over(await here.send("one"))
        task = await here.over(await here.send("two"))
    assert (agent.taken, task.status) == (["one", "two"], TaskState.FAILED)
    assert task.error is not None
    assert task.error.code == "UNDELIVERED"
    assert "it does not know its earlier tasks any more), and it is not sent again" in task.error.message


async def test_where_nothing_shows_that_it_forgot_the_second_time_is_told(here: Here) -> None:
    """Its list is empty, and it never had a task: it cannot be told from one that the message never reached."""
    async with forgetful(here, 1) as agent:
        task = await here.over(await here.send("one"))
    assert (agent.taken, task.status, task.answer) == (["one", "one"], TaskState.COMPLETED, "done")
    assert task.metadata[KEY]["sent_again"] is True


async def test_one_that_still_knows_its_tasks_is_sent_it_again(here: Here) -> None:
    async with forgetful(here, 2) as agent:
        await here.over(await here.send("one"))
        agent.tasks = Kept(agent.tasks)
        task = await here.over(await here.send("two"))
    assert (agent.taken, task.status) == (["one", "two", "two"], TaskState.COMPLETED)
    assert task.metadata[KEY]["sent_again"] is True


async def test_a_message_that_arrived_at_once_is_not_told_twice(here: Here) -> None:
    async with forgetful(here) as agent:
        task = await here.over(await here.send("one"))
    assert agent.taken == ["one"]
    assert "sent_again" not in task.metadata[KEY]


class Kept(dict[str, dict[str, Any]]):
    """Tasks in a database: a cut line leaves them."""

    def clear(self) -> None:
        pass
