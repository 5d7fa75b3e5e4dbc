"""The official SDK's own client, from the card on."""

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import A2AError

from tests.api.serving import Api
from tests.fakes.control import hold


@pytest.fixture(params=[(where, binding) for where in ("main", "agent's port") for binding in ("JSONRPC", "HTTP+JSON")])
async def connect(request, api: Api):
    where, binding = request.param
    base = f"{api.url}/agents/claude" if where == "main" else f"http://localhost:{api.agent_port}"
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, base).get_agent_card()

        def client(streaming: bool):
            config = ClientConfig(httpx_client=http, streaming=streaming, supported_protocol_bindings=[binding])
            return ClientFactory(config).create(card)

        yield client


def request(text: str, **configuration) -> SendMessageRequest:
    message = Message(message_id="m1", role=Role.ROLE_USER, parts=[Part(text=text)])
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(**configuration))


async def test_send(connect):
    (answer,) = [event async for event in connect(False).send_message(request("看て ```x```"))]
    assert answer.task.status.state == TaskState.TASK_STATE_COMPLETED
    assert answer.task.artifacts[0].parts[0].text == "echo: 看て ```x```"


async def test_stream(connect):
    events = [event async for event in connect(True).send_message(request("hi"))]
    assert events[0].HasField("task")
    assert events[-1].task.status.state == TaskState.TASK_STATE_COMPLETED


async def test_get_list_cancel_subscribe(connect, api: Api):
    api.control.script = hold
    client = connect(False)
    (answer,) = [event async for event in client.send_message(request("hi", return_immediately=True))]
    task_id = answer.task.id
    assert (await client.get_task(GetTaskRequest(id=task_id))).id == task_id
    assert [task.id for task in (await client.list_tasks(ListTasksRequest())).tasks] == [task_id]
    events = connect(True).subscribe(SubscribeToTaskRequest(id=task_id))
    assert (await anext(events)).task.id == task_id
    assert (await client.cancel_task(CancelTaskRequest(id=task_id))).status.state == TaskState.TASK_STATE_CANCELED
    rest = [event async for event in events]
    assert rest[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED


async def test_errors_are_the_sdks(connect):
    with pytest.raises((A2AError, A2AClientError), match="no task"):
        await connect(False).get_task(GetTaskRequest(id="nope"))


async def test_filters_and_history_reach_it(connect, api: Api):
    client = connect(False)
    tasks = [(await anext(client.send_message(request("hi")))).task for _ in range(3)]
    page = await client.list_tasks(ListTasksRequest(page_size=2, include_artifacts=True, history_length=0))
    assert [task.id for task in page.tasks] == [task.id for task in reversed(tasks)][:2]
    assert page.tasks[0].artifacts
    assert not page.tasks[0].history
    rest = await client.list_tasks(ListTasksRequest(page_size=2, page_token=page.next_page_token))
    assert ([task.id for task in rest.tasks], rest.total_size) == ([tasks[0].id], 3)
    none = await client.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_FAILED))
    assert not none.tasks


async def test_it_fetches_the_extended_card(connect):
    card = await connect(False).get_extended_agent_card(GetExtendedAgentCardRequest())
    assert card.name == "claude"
