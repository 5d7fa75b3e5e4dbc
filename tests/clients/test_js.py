"""The official JavaScript clients, 0.3 and 1.3, run by node against the API."""

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from synapsed.model.task import Prompt
from synapsed.parts.elsewhere.signatures import keys_of, signed
from tests.api.serving import Api, serving
from tests.clients.programs import CACHE
from tests.fakes.control import FakeControl, echo
from tests.parts.elsewhere.elsewhere import card_10

PATIENCE_S = 90.0
SCRIPTS = Path(__file__).with_name("js")
QUESTION = Prompt(prompt_id="p1", type="text", prompt="Shall I?")

NODE = shutil.which("node")
MISSING = CACHE.missing() if NODE else "node is not on PATH"

pytestmark = pytest.mark.skipif(MISSING is not None, reason=f"*** JAVASCRIPT CLIENTS NOT TRIED: {MISSING} ***")


async def act(control: FakeControl, task) -> None:
    if task.message.text == "ask":
        await control.work(task.id)
        await control.ask(task.id, QUESTION)
    elif task.message.text != "hold":
        await echo(control, task)


@pytest.fixture
async def api(tmp_path):
    control = FakeControl(act)
    control.add("claude", "claude", 8100)
    async with serving(control, tmp_path) as api:
        yield api


async def run(script: str, *arguments: str) -> Any:
    """What the script told of all it did."""
    assert NODE is not None
    env = {"NODE_PATH": str(CACHE.folder / "node_modules"), "PATH": os.defpath}
    process = await asyncio.create_subprocess_exec(
        NODE, str(SCRIPTS / script), *arguments, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


async def test_0_3(api: Api):
    told = await run("sdk03.cjs", f"{api.url}/agents/claude/")
    assert told["name"] == "claude"
    assert (told["sent"]["kind"], told["sent"]["status"]["state"]) == ("task", "completed")
    assert told["sent"]["artifacts"][0]["parts"] == [{"kind": "text", "text": "echo: hi"}]
    assert told["streamed"][0]["kind"] == "task"
    assert told["held"]["status"]["state"] == "submitted"
    assert told["canceled"]["status"]["state"] == "canceled"
    last = told["followed"][-1]
    assert (told["followed"][0]["kind"], last["kind"], last["final"]) == ("task", "status-update", True)
    assert [(one["kind"], one["status"]["state"]) for one in told["late"]] == [("task", "canceled")]
    assert told["asked"]["status"]["state"] == "input-required"
    assert told["asked"]["status"]["message"]["parts"][0]["text"] == "Shall I?"
    assert (told["answered"]["id"], told["answered"]["status"]["state"]) == (told["asked"]["id"], "completed")
    assert "TaskNotFound" in told["unknown"]
    assert "TaskNotCancelable" in told["over"]


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_1_3(api: Api, binding):
    told = await run("sdk10.cjs", f"{api.url}/agents/claude/", binding)
    assert (told["name"], told["version"]) == ("claude", "1.0")
    completed, canceled, submitted, asked = 3, 5, 1, 6
    assert told["sent"]["status"]["state"] == completed
    assert told["sent"]["artifacts"][0]["parts"][0]["content"] == {"$case": "text", "value": "echo: hi"}
    assert told["streamed"][0]["payload"]["$case"] == "task"
    assert told["held"]["status"]["state"] == submitted
    assert told["canceled"]["status"]["state"] == canceled
    assert told["followed"][-1]["payload"]["value"]["status"]["state"] == canceled
    assert told["asked"]["status"]["state"] == asked
    assert (told["answered"]["id"], told["answered"]["status"]["state"]) == (told["asked"]["id"], completed)
    assert told["listed"] == 4
    assert "TaskNotFound" in told["unknown"]
    assert "TaskNotCancelable" in told["over"]


async def test_a_card_that_it_signs():
    schemes = {"b": {"httpAuthSecurityScheme": {"scheme": "bearer"}}}
    for more in ({}, {"securitySchemes": schemes}):
        told = await run("sign.cjs", json.dumps(card_10("http://127.0.0.1:1/", name="看て", **more)))
        card, kid = signed(told["card"], keys_of(json.dumps(told["key"])))
        assert (card["name"], kid) == ("看て", "js")
