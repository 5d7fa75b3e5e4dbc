"""Agents that speak A2A as it was first: found out by a request, and spoken to with `tasks/send`."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from aiohttp import web

from synapsed.errors import TaskNotCancelable, Unreachable
from synapsed.model.task import DataPart, Message, TaskState, TextPart
from synapsed.parts.elsewhere import first_a2a
from synapsed.parts.elsewhere.credentials import NONE, Credentials
from synapsed.parts.elsewhere.external_agent import FIRST, SEEDS, ExternalAgent
from synapsed.parts.elsewhere.first_a2a_json import event_of, params_of, task_of
from tests.fakes.clock import until
from tests.parts.elsewhere.here import Here
from tests.parts.elsewhere.rpc_agent import RpcAgent, rpc_agent

FAR = "far.example"
NAIVE = "2026-11-29T19:40:02.803123"
CARD = {"name": "first", "version": "1.0.0", "capabilities": {"streaming": False}, "skills": [{"id": "e", "name": "e"}]}
STREAMS = CARD | {"capabilities": {"streaming": True}}
LARGE = 2048
UNKNOWN = {"code": -32001, "message": "Task not found"}


class Server:
    """As Google's samples are: tasks by the ids that are sent, each answered at once."""

    def __init__(self, agent: RpcAgent) -> None:
        self.agent = agent
        self.tasks: dict[str, dict[str, Any]] = {}
        self.said: list[str] = []
        agent.methods = {
            "tasks/send": self.send,
            "tasks/get": lambda params: self.tasks.get(params["id"], UNKNOWN),
            "tasks/cancel": lambda params: {"code": -32002, "message": "Task cannot be canceled"},
            "tasks/sendSubscribe": self.subscribe,
        }

    def send(self, params: dict[str, Any]) -> dict[str, Any]:
        if "id" not in params or "message" not in params:
            return {"code": -32600, "message": "Request payload validation error"}
        text = params["message"]["parts"][0]["text"]
        self.said.append(text)
        state = "input-required" if text == "ask" else "completed"
        parts = [{"type": "text", "text": "which?" if text == "ask" else f"echo: {text}"}]
        task = {
            "id": params["id"],
            "sessionId": params["sessionId"],
            "status": {"state": state, "message": {"role": "agent", "parts": parts}, "timestamp": NAIVE},
            "artifacts": [{"parts": parts, "index": 0}],
        }
        self.tasks[params["id"]] = task
        return task

    def subscribe(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        task = self.send(params)
        working = {"id": task["id"], "status": {"state": "working", "timestamp": NAIVE}, "final": False}
        artifacts = [{"id": task["id"], "artifact": one} for one in task["artifacts"]]
        return [working, *artifacts, {"id": task["id"], "status": task["status"], "final": True}]


@pytest.fixture(params=[CARD, STREAMS], ids=["whole", "streamed"])
async def far(request, here: Here):
    async with rpc_agent(request.param) as agent:
        server = Server(agent)
        added = await here.externals.discover(agent.url, "far", headers=None)
        assert (added.protocol_version, added.binding) == (FIRST, "JSONRPC")
        assert server.said == [], "nothing was done by asking"
        yield server


async def test_a_message_and_its_answer(far: Server, here: Here) -> None:
    task = await here.over(await here.send("hello"))
    assert (task.status, task.answer, far.said) == (TaskState.COMPLETED, "echo: hello", ["hello"])
    assert task.id in far.tasks, "its id is the key"
    sent = "tasks/sendSubscribe" if far.agent.card is STREAMS else "tasks/send"
    assert [params["message"] for method, params in far.agent.calls if method == sent and params] == [
        {"role": "user", "parts": [{"type": "text", "text": "hello"}]}
    ]


async def test_a_large_answer_is_made_beside_the_loop(far: Server, here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[threading.Thread] = []

    def noting(make: Callable[..., Any]) -> Callable[..., Any]:
        def noted(told: Any, *others: Any) -> Any:
            if len(str(told)) > LARGE:
                made.append(threading.current_thread())
            return make(told, *others)

        return noted

    for name in ("task_of", "event_of"):
        monkeypatch.setattr(first_a2a, name, noting(getattr(first_a2a, name)))
    text = "x" * (2 * LARGE)
    assert (await here.over(await here.send(text))).answer == f"echo: {text}"
    assert made
    assert threading.main_thread() not in made


async def test_it_asks_and_is_answered(far: Server, here: Here) -> None:
    task = await here.until(await here.send("ask"), lambda now: now.status is TaskState.INPUT_REQUIRED)
    assert task.prompt is not None
    assert (task.prompt.prompt, task.prompt.own_words) == ("which?", True)
    await here.externals.answer(task, Message.of("red"))
    task = await here.over(task)
    assert (task.answer, far.said) == ("echo: red", ["ask", "red"])


async def test_two_persons_who_answer_at_once_are_not_both_heard(far: Server, here: Here) -> None:
    task = await here.until(await here.send("ask"), lambda now: now.status is TaskState.INPUT_REQUIRED)
    taken = await here.answered_by_two(task, "red", "blue")
    assert (await here.over(task)).answer == f"echo: {taken}"
    assert far.said == ["ask", taken]


async def test_an_answer_that_failed_may_be_given_again(here: Here) -> None:
    async with rpc_agent(CARD) as agent:
        server = Server(agent)
        await here.externals.discover(agent.url, "far", headers=None)
        task = await here.until(await here.send("ask"), lambda now: now.status is TaskState.INPUT_REQUIRED)
        agent.methods["tasks/send"] = lambda params: web.json_response({"detail": "later"}, status=429)
        with pytest.raises(Unreachable):
            await here.externals.answer(task, Message.of("red"))
        agent.methods["tasks/send"] = server.send
        await here.externals.answer(task, Message.of("red"))
        assert (await here.over(task)).answer == "echo: red"


@pytest.mark.parametrize("card", [CARD, STREAMS], ids=["whole", "streamed"])
@pytest.mark.parametrize("status", [429, 503])
async def test_one_that_is_not_ready_gets_the_message_when_it_is(here: Here, card: dict[str, Any], status: int) -> None:
    """A proxy before it answers in a JSON of its own."""
    async with rpc_agent(card) as agent:
        server = Server(agent)
        await here.externals.discover(agent.url, "far", headers=None)
        method = "tasks/sendSubscribe" if card is STREAMS else "tasks/send"
        taken, refused = agent.methods[method], web.json_response({"error": {"message": "busy"}}, status=status)

        def once(params: dict[str, Any]) -> Any:
            agent.methods[method] = taken
            return refused

        agent.methods[method] = once
        task = await here.over(await here.send("hello"))
        assert (task.answer, server.said) == ("echo: hello", ["hello"])


@pytest.mark.parametrize("status", [401, 403])
async def test_credentials_that_are_refused_are_told_as_that(here: Here, status: int) -> None:
    async with rpc_agent(CARD) as agent:
        Server(agent)
        await here.externals.discover(agent.url, "far", headers=None)
        agent.methods["tasks/send"] = lambda params: web.json_response(
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "Unauthorized"}}, status=status
        )
        task = await here.over(await here.send("hello"))
        assert task.error is not None
        assert task.error.code == "AUTH_REQUIRED"


async def test_one_that_cannot_be_canceled_says_so(far: Server, here: Here) -> None:
    task = await here.until(await here.send("ask"), lambda now: now.status is TaskState.INPUT_REQUIRED)
    with pytest.raises(Exception, match="cannot be canceled"):
        await here.externals.cancel(task)
    done = await here.over(await here.send("hello"))
    with pytest.raises(TaskNotCancelable):
        await here.externals.cancel(done)


@pytest.mark.parametrize("status", [502, 504])
async def test_a_message_whose_answer_was_lost_is_found_and_not_sent_again(here: Here, status: int) -> None:
    async with rpc_agent(CARD) as agent:
        server = Server(agent)
        await here.externals.discover(agent.url, "far", headers=None)

        def lost(params: dict[str, Any]) -> Any:
            if "message" in params:
                server.send(params)
            return web.Response(status=status)

        agent.methods["tasks/send"] = lost
        task = await here.over(await here.send("hello"))
        assert (task.answer, server.said) == ("echo: hello", ["hello"])


@pytest.mark.parametrize("status", [502, 504])
async def test_one_that_is_not_known_there_is_not_sent_again(here: Here, status: int) -> None:
    async with rpc_agent(CARD) as agent:
        server = Server(agent)
        await here.externals.discover(agent.url, "far", headers=None)
        agent.methods["tasks/send"] = lambda params: web.Response(status=status)
        task = await here.over(await here.send("hello"))
        assert task.error is not None
        assert (task.error.code, server.said) == ("UNDELIVERED", [])
        assert agent.count("tasks/send") == 2, "once by which it was found out what is spoken"


async def test_one_of_0_3_without_a_version_is_taken_for_that(here: Here) -> None:
    refused = {"code": -32602, "message": "Invalid parameters"}
    async with rpc_agent(CARD, message__send=lambda params: refused) as agent:
        added = await here.externals.discover(agent.url, "far", headers=None)
        assert added.protocol_version.startswith("0.3")


async def test_one_that_says_the_same_to_everything_is_taken_for_0_3(here: Here) -> None:
    async with rpc_agent(CARD) as agent:
        added = await here.externals.discover(agent.url, "far", headers=None)
        assert added.protocol_version.startswith("0.3")


@pytest.mark.parametrize(("binding", "version"), [(SEEDS, ""), ("JSONRPC", FIRST), ("JSONRPC", "1.0")])
async def test_a_name_server_that_does_not_answer_holds_up_no_other_thread(
    here: Here, monkeypatch: pytest.MonkeyPatch, binding: str, version: str
) -> None:
    looked_up, answers, real = threading.Event(), threading.Event(), socket.getaddrinfo

    def dead(host: Any, *others: Any, **options: Any) -> Any:
        if host not in (FAR, FAR.encode()):
            return real(host, *others, **options)
        looked_up.set()
        answers.wait(300)
        raise socket.gaierror(socket.EAI_AGAIN, "no name server answers")

    monkeypatch.setattr(socket, "getaddrinfo", dead)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    agent = ExternalAgent(
        alias="far", name="far", description="", url=f"http://{FAR}", card_url=f"http://{FAR}",
        endpoint=f"http://{FAR}", binding=binding, protocol_version=version, streaming=False, skills=[],
        authenticated=False, added_at="", last_seen="",
    )  # fmt: skip
    connection = await here.externals._connected(agent, NONE)
    asks = connection.get("t"), connection.look(), here.externals.discover(f"http://{FAR}", headers=None)
    asking: list[asyncio.Task[Any]] = []
    try:
        for ask in asks:
            looked_up.clear()
            asking.append(asyncio.create_task(ask))
            await until(looked_up.is_set, "the name is looked up")
            async with asyncio.timeout(30):
                await asyncio.to_thread(lambda: None)
    finally:
        answers.set()
        told = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(error) for error in told] == [Unreachable] * 3
    await connection.close()


async def test_credentials_for_a_new_address_go_to_no_old_one(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message makes the connection just while a person changes the address."""
    async with rpc_agent(CARD) as old, rpc_agent(CARD) as new:
        Server(old), Server(new)
        told = {"headers": {"Authorization": "Bearer old-word"}}, {"headers": {"Authorization": "Bearer new-word"}}
        await here.externals.discover(old.url, "far", **told[0])
        read, entered, released = here.book.secret, threading.Event(), threading.Event()

        def slow(alias: str) -> Credentials:
            entered.set()
            released.wait(300)
            return read(alias)

        monkeypatch.setattr(here.book, "secret", slow)
        asking = asyncio.create_task(here.externals.remote("far"))
        await until(entered.is_set, "the credentials are read")
        try:
            await here.externals.discover(new.url, "far", **told[1])
        finally:
            released.set()
        await asking
        old.seen.clear()
        assert (await here.over(await here.send("hello"))).answer == "echo: hello"
        assert old.seen == []


async def test_no_connection_is_made_between_new_credentials_and_their_address(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rpc_agent(CARD) as old, rpc_agent(CARD) as new:
        Server(old), Server(new)
        await here.externals.discover(old.url, "far", headers=None)
        save, entered, released = here.book.save, threading.Event(), threading.Event()

        def slow(agent: ExternalAgent) -> None:
            entered.set()
            released.wait(300)
            save(agent)

        monkeypatch.setattr(here.book, "save", slow)
        changing = asyncio.create_task(here.externals.discover(new.url, "far", headers={"X-Word": "new"}))
        await until(entered.is_set, "the new credentials are saved")
        asking = asyncio.create_task(here.externals.remote("far"))
        for _ in range(1000):
            await asyncio.sleep(0)
        made = dict(here.externals._remotes)
        released.set()
        await changing
        assert made == {}
        assert (await asking)._agent.endpoint.startswith(new.url)  # type: ignore[attr-defined]  # of every dialect


# --- pure ------------------------------------------------------------------------------------------------------------


def test_pieces_are_put_together_by_their_number() -> None:
    pieces = [
        {"index": 0, "parts": [{"type": "text", "text": "a"}]},
        {"index": 1, "parts": [{"type": "data", "data": {"n": 1}}]},
        {"index": 0, "append": True, "parts": [{"type": "text", "text": "b"}]},
        {"index": 0, "parts": [{"type": "text", "text": "another"}]},
    ]
    told = task_of({"id": "t", "status": {"state": "completed"}, "artifacts": pieces})
    assert told.artifacts is not None
    assert [one.text for one in told.artifacts] == ["ab", "", "another"]
    assert told.artifacts[1].parts == [DataPart(data={"n": 1})]


@pytest.mark.parametrize("told", [None, [], "x", {}, {"id": ""}, {"id": 7}, {"id": "t", "artifacts": [{}] * 3000}])
def test_what_is_no_task_is_refused(told: Any) -> None:
    with pytest.raises(ValueError, match=r"no task|more than"):
        task_of(told)


@pytest.mark.parametrize(
    "told", [None, {}, {"id": "other", "status": {}}, {"id": "t"}, {"artifact": "x"}, {"id": 1, "artifact": {}}]
)
def test_what_is_no_event_of_it_is_refused(told: Any) -> None:
    with pytest.raises(ValueError, match=r"another task|neither"):
        event_of(told, "t")


@pytest.mark.parametrize("status", [None, 7, "x", [], {"state": 7}, {"state": "unknown"}, {"message": {"parts": "x"}}])
def test_a_status_of_another_shape_is_a_task_that_works(status: Any) -> None:
    assert task_of({"id": "t", "status": status}).state is TaskState.WORKING


def test_a_session_of_its_own_where_none_goes_on() -> None:
    message = Message(parts=[TextPart(text="hi")], message_id="1")
    assert json.loads(json.dumps(params_of(message, {"k": 1}, "t", ""))) == {
        "id": "t",
        "sessionId": "t",
        "message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
        "metadata": {"k": 1},
    }
    assert params_of(message, {}, "t", "s")["sessionId"] == "s"
