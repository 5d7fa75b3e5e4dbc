"""`synapsectl mcp`, asked by an MCP client: in a process of its own beside a real daemon, and in this one."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from synapsectl.client import Client as Asking
from synapsectl.mcp_server import server_of
from tests.fakes.served import Served
from tests.support.daemon import Daemon, eventually
from tests.support.served_world import ServedWorld, served_world

pytestmark = pytest.mark.timeout(120)

EVERYBODYS = ["list_agents", "send_message", "reply", "get_task", "cancel_task", "search_history", "report_event"]


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path / "home")
    yield daemon.start()
    daemon.end()


@pytest.fixture
def below(tmp_path: Path) -> Iterator[ServedWorld]:
    with served_world(tmp_path) as world:
        yield world


@pytest.fixture
def daemon(below: ServedWorld) -> Served:
    return below.daemon


class Tools:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def names(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """What is told, and whether that is an error."""
        result = await self.client.call_tool(tool, arguments)
        return "".join(part.text for part in result.content), bool(result.is_error)

    async def told(self, tool: str, **arguments: Any) -> Any:
        text, wrong = await self.call(tool, **arguments)
        assert not wrong, text
        return json.loads(text)


@asynccontextmanager
async def tools_of(daemon: Daemon, agent: dict[str, Any] | None) -> AsyncIterator[Tools]:
    """The server as the program of `agent` starts it, where there are programs; None: as no agent's."""
    env = dict(daemon.env)
    if isinstance(daemon, Served):
        of_agent = None if agent is None else daemon.token_of(agent["id"])
        async with Client(server_of(Asking(str(daemon.socket), token=of_agent))) as client:
            yield Tools(client)
        return
    if agent is not None:
        env = {
            **{key: value for key, value in env.items() if key != "SYNAPSED_HOME"},
            "SYNAPSE_CONTROL_SOCKET": str(daemon.socket),
            "SYNAPSE_AGENT_TOKEN": daemon.token_of(agent["id"]),
        }
    server = StdioServerParameters(command=sys.executable, args=["-m", "synapsectl", "mcp"], env=env)
    async with Client(server) as client:
        yield Tools(client)


async def test_a_message_its_answer_and_its_sender(real: Daemon) -> None:
    asks, answers = (
        real.start_agent(profile="dummy", name="asks"),
        real.start_agent(profile="dummy", name="answers"),
    )
    real.ready("answers")
    async with tools_of(real, asks) as tools:
        assert await tools.names() == EVERYBODYS
        listed = {agent["name"]: agent for agent in await tools.told("list_agents")}
        assert listed["asks"]["you"] is True
        assert "you" not in listed["answers"]
        text, wrong = await tools.call("send_message", to="answers", message="hello there")
        assert (wrong, "hello there" in text) == (False, True)
        (task,) = real.get("/control/tasks?agent=answers").json
        assert task["metadata"]["sender"]["sender_id"] == asks["id"]
        assert task["metadata"]["sender"]["verified"] is True
        assert answers["id"] != asks["id"]

        sent = await tools.told("send_message", to="answers", message="later", wait=False, response=False)
        real.task_in(sent["task_id"], "completed")
        text, wrong = await tools.call("get_task", task_id=sent["task_id"][:8])
        assert (wrong, "later" in text) == (False, True)


@pytest.mark.night
async def test_agents_elsewhere_are_colleagues_too(real: Daemon) -> None:
    asks, _ = real.start_agent(profile="dummy", name="asks"), real.start_agent(profile="dummy", name="answers")
    added = real.ctl("external", "add", f"http://127.0.0.1:{real.port}/agents/answers", "--as", "far")
    assert added.code == 0, added.err
    async with tools_of(real, asks) as tools:
        (far,) = [agent for agent in await tools.told("list_agents") if agent["name"] == "far"]
        assert far["type"] == "external"
        text, wrong = await tools.call("send_message", to="far", message="hello there")
        assert (wrong, "hello there" in text) == (False, True), text
    (task,) = [task for task in real.get("/control/tasks").json if task["agent_id"] == "external:far"]
    assert task["metadata"]["sender"]["sender_id"] == asks["id"]


async def test_a_reply_completes_what_was_asked(daemon: Served, below: ServedWorld) -> None:
    asks, answers = below.start("asks"), below.start("answers")
    async with tools_of(daemon, asks) as tools:
        sent = await tools.told("send_message", to="answers", message="hold on", wait=False)
        assert "reply" in sent
    async with tools_of(daemon, answers) as tools:
        assert (await tools.told("reply", message="an explicit reply"))["status"] == "completed"

    def told() -> bool:
        messages = [task["message"]["parts"][0]["text"] for task in daemon.get("/control/tasks?agent=asks").json]
        return any("an explicit reply" in text for text in messages)

    eventually(told, "the asking agent is told")


async def test_an_event_is_in_the_log(daemon: Served, below: ServedWorld) -> None:
    agent = below.start("worker")
    async with tools_of(daemon, agent) as tools:
        await tools.told("report_event", kind="milestone", message="all tests are green")
    with daemon.sse("/events?after=0") as events:
        found = next(event["data"] for event in events if event["event"] == "agentReported")
    assert found["agent"] == agent["id"]
    said = {"kind": "milestone", "message": "all tests are green"}
    assert found["data"] == {**said, "reported_by": agent["id"]}


async def test_a_typed_event_is_reported_too(daemon: Served, below: ServedWorld) -> None:
    agent = below.start("worker")
    tool = {"tool_name": "deploy", "status": "failed", "error": "no such host"}
    async with tools_of(daemon, agent) as tools:
        await tools.told("report_event", event="toolExecution", data=tool)
    with daemon.sse("/events?after=0&types=toolExecution") as events:
        found = next(events)["data"]
    assert (found["agent"], found["data"]["reported_by"]) == (agent["id"], agent["id"])
    assert found["data"].items() >= tool.items()


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("send_message", {"to": "nobody", "message": "x"}, "UNKNOWN_AGENT"),
    ("send_message", {"to": "worker"}, "'message' is a required property"),
    ("send_message", {"to": "worker", "message": "x", "priority": 9}, "$.priority"),
    ("send_message", {"to": "worker", "message": "x", "urgent": True}, "urgent"),
    ("send_message", {"to": "worker", "message": "x"}, "WOULD_DEADLOCK"),
    ("get_task", {"task_id": "00000000"}, "TASK_NOT_FOUND"),
    ("read_screen", {"agent": "other"}, "FORBIDDEN"),
    ("answer_prompt", {"agent": "worker", "prompt_id": "x", "answer": "yes"}, "FORBIDDEN"),
    ("no_such_tool", {}, "list_agents"),
]


async def test_what_is_wrong_is_said_and_does_nothing(
    daemon: Served, below: ServedWorld, subtests: pytest.Subtests
) -> None:
    agent = below.start("worker")
    below.start("other")
    async with tools_of(daemon, agent) as tools:
        for tool, arguments, said in WRONG:
            with subtests.test(tool=tool, arguments=arguments):
                text, wrong = await tools.call(tool, **arguments)
                assert wrong
                assert said in text
    assert daemon.get("/control/tasks").json == []


async def test_what_a_profile_grants(daemon: Served, below: ServedWorld) -> None:
    chief, other = (below.start(name) for name in ("chief", "other"))
    profile = daemon.home / "config" / "profiles" / "dummy.toml"
    profile.parent.mkdir(parents=True)
    profile.write_text('rights = ["answer_prompts", "read_screens"]\n')
    assert daemon.ctl("reload").code == 0
    async with tools_of(daemon, chief) as tools:
        assert await tools.names() == [*EVERYBODYS, "answer_prompt", "read_screen"]
        text, wrong = await tools.call("read_screen", agent="other")
        assert not wrong, text
        text, wrong = await tools.call("answer_prompt", agent=other["name"], prompt_id="gone", answer="yes")
        assert (wrong, "NOT_WAITING" in text) == (True, True), "it may, but nothing is asked"
        text, wrong = await tools.call("answer_prompt", agent=chief["name"], prompt_id="gone", answer="yes")
        assert (wrong, "FORBIDDEN" in text) == (True, True), "its own prompts are never its own to answer"


async def test_nobodys_process_is_told_so(daemon: Served) -> None:
    async with tools_of(daemon, None) as tools:
        text, wrong = await tools.call("list_agents")
    assert wrong
    assert "an agent's program must start it" in text
