"""Times without an offset, as fasta2a (and pydantic-ai) writes them: they are UTC, and no task is lost over one."""

from typing import Any

import pytest

from synapsed.a2a_types.snapshots import snapshot_from
from synapsed.errors import RemoteRefused
from synapsed.model.task import TaskState
from tests.parts.elsewhere.elsewhere import card_03, card_10
from tests.parts.elsewhere.here import Here
from tests.parts.elsewhere.rpc_agent import rpc_agent

NAIVE = "2026-11-29T19:40:02.803123"


def task_at(timestamp: str) -> dict[str, Any]:
    return {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED", "timestamp": timestamp}}


@pytest.mark.parametrize(
    "timestamp", [NAIVE, "2026-11-29T19:40:02", "2026-11-29T19:40:02Z", "2026-11-29T20:40:02+01:00"]
)
def test_a_time_with_and_without_an_offset_is_read(timestamp: str) -> None:
    assert snapshot_from(task_at(timestamp)).state is TaskState.COMPLETED


@pytest.mark.parametrize("timestamp", ["", "now", "2026-11-29", "2026-13-29T19:40:02", f"{NAIVE}1234"])
def test_what_is_no_time_is_refused(timestamp: str) -> None:
    with pytest.raises(RemoteRefused, match="not A2A"):
        snapshot_from(task_at(timestamp))


async def test_a_task_of_1_0_is_taken(here: Here) -> None:
    done = task_at(NAIVE) | {"artifacts": [{"artifactId": "a", "parts": [{"text": "hello"}]}]}
    async with rpc_agent({}, SendMessage=lambda _: {"task": done}, GetTask=lambda _: done) as agent:
        agent.card = card_10(f"{agent.url}/") | {"capabilities": {}}
        await here.externals.discover(agent.url, "far", headers=None)
        assert (await here.over(await here.send("hi"))).answer == "hello"


async def test_a_task_of_0_3_is_taken(here: Here) -> None:
    done = {
        "kind": "task",
        "id": "t",
        "contextId": "c",
        "status": {"state": "completed", "timestamp": NAIVE},
        "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "hello"}]}],
    }
    async with rpc_agent({}, message__send=lambda _: done, tasks__get=lambda _: done) as agent:
        agent.card = card_03(f"{agent.url}/") | {"capabilities": {}}
        await here.externals.discover(agent.url, "far", headers=None)
        assert (await here.over(await here.send("hi"))).answer == "hello"
        sent = next(params for method, params in agent.calls if method == "message/send")
        assert sent["configuration"]["acceptedOutputModes"] == ["text/plain"], "fasta2a of pydantic-ai 1 wants it"


async def test_an_answer_that_cannot_be_read_is_no_message_that_did_not_arrive(here: Here) -> None:
    bad = task_at("yesterday")
    async with rpc_agent({}, SendMessage=lambda _: {"task": bad}) as agent:
        agent.card = card_10(f"{agent.url}/") | {"capabilities": {}}
        await here.externals.discover(agent.url, "far", headers=None)
        task = await here.over(await here.send("hi"))
        assert task.error is not None
        assert (task.error.code, "was given the message" in task.error.message) == ("MODEL_ERROR", True)
        assert agent.count("SendMessage") == 1
