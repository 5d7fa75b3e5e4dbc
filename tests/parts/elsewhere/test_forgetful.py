"""A 1.0 agent with its tasks in memory, cut off while a message is on its way: nothing is done twice unseen."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from aiohttp import web

from synapsed.model.external import KEY
from synapsed.model.task import TaskState
from synapsed.parts.elsewhere import courier
from synapsed.parts.elsewhere.remote_protocol import of_status
from synapsed.parts.elsewhere.synapse_a2a import _refused
from tests.parts.elsewhere.elsewhere import card_10
from tests.parts.elsewhere.here import Here
from tests.support.listening import listening

NOT_FOUND = {"code": -32001, "message": "Task not found"}


@dataclass
class Forgetful:
    """`taken` are the texts of the messages that it took; at those of `cut` its answer is lost, and it forgets all. A
    gateway before it answers requests of a method with the next of `refused` instead of it, or, once it has done what
    it was asked, with the next of `lost`. A `slow` one works on a message when it answers."""

    url: str = ""
    cut: set[int] = field(default_factory=set)
    taken: list[str] = field(default_factory=list)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, list[web.Response]] = field(default_factory=dict)
    lost: dict[str, list[web.Response]] = field(default_factory=dict)
    slow: bool = False

    async def card(self, _request: web.Request) -> web.Response:
        return web.json_response(card_10(f"{self.url}/", capabilities={"streaming": False}))

    async def serve(self, request: web.Request) -> web.Response:
        method = (await request.json())["method"]
        if self.refused.get(method):
            return self.refused[method].pop(0)
        answer = await self.answer(request)
        return self.lost[method].pop(0) if self.lost.get(method) else answer

    async def answer(self, request: web.Request) -> web.Response:
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
            working = {"status": {"state": "TASK_STATE_WORKING"}, "artifacts": []} if self.slow else {}
            answer = {"result": {"task": self.tasks[name] | working}}
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


@pytest.mark.parametrize("status", [502, 504])
async def test_a_message_whose_answer_the_gateway_lost_is_found_and_not_sent_again(here: Here, status: int) -> None:
    """A gateway says so of an agent that it did not reach, and of one that ended in the middle of its answer."""
    async with forgetful(here) as agent:
        await here.over(await here.send("one"))
        agent.lost["SendMessage"] = [web.Response(status=status, text="<html>Bad Gateway</html>")]
        task = await here.over(await here.send("two"))
    assert (agent.taken, task.status, task.answer) == (["one", "two"], TaskState.COMPLETED, "done")
    assert "sent_again" not in task.metadata[KEY]


INTERNAL = {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "Internal error"}}


@pytest.mark.parametrize("method", ["GetTask", "ListTasks"])
@pytest.mark.parametrize("status", [200, 500, 520])
async def test_one_that_fails_once_at_a_question_is_asked_again(here: Here, method: str, status: int) -> None:
    """It may be setting itself up again. Asking changes nothing there."""
    async with forgetful(here) as agent:
        agent.slow = method == "GetTask"
        agent.lost["SendMessage"] = [] if agent.slow else [web.Response(status=504)]
        agent.refused[method] = [web.json_response(INTERNAL, status=status)]
        task = await here.over(await here.send("one"))
        assert agent.refused[method] == []
    assert (agent.taken, task.status, task.answer) == (["one"], TaskState.COMPLETED, "done")


async def test_one_that_fails_at_every_search_is_not_asked_for_ever(here: Here) -> None:
    async with forgetful(here) as agent:
        agent.lost["SendMessage"] = [web.Response(status=504)]
        agent.refused["ListTasks"] = [web.Response(status=500) for _ in range(99)]
        task = await here.over(await here.send("one"))
    assert (agent.taken, task.error and task.error.code) == (["one"], "UNDELIVERED")


@pytest.mark.parametrize("later", ["0", "Thu, 01 Jan 2026 00:00:00 GMT"])
@pytest.mark.parametrize("status", [429, 503])
async def test_one_that_names_a_time_gets_the_message_then(
    here: Here, monkeypatch: pytest.MonkeyPatch, status: int, later: str
) -> None:
    monkeypatch.setattr(courier, "FIRST_PAUSE_S", 0.01)
    async with forgetful(here) as agent:
        busy = [web.Response(status=status, headers={"Retry-After": later}) for _ in range(2 * courier.CONNECT_TRIES)]
        agent.refused["SendMessage"] = busy
        task = await here.over(await here.send("one"))
    assert (agent.taken, task.answer, busy) == (["one"], "done", [])


@pytest.mark.parametrize("status", [429, 503])
def test_the_time_that_it_names_is_kept_in_every_dialect(status: int) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(minutes=20), usegmt=True)
    seeds = _refused("u", httpx.Response(status, headers={"Retry-After": later}), "", asked=True)
    for error in (of_status("u", status, asked=True, later=later), seeds):
        assert (error.details["sent"], error.details["busy"]) == (False, True)
        assert 600 < error.details["after"] <= 1200


class Kept(dict[str, dict[str, Any]]):
    """Tasks in a database: a cut line leaves them."""

    def clear(self) -> None:
        pass
