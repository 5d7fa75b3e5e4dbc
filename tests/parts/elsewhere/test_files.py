"""Files and data that an agent elsewhere hands over: the text once, and what else there is beside it."""

import base64

from synapsed.model.task import FilePart
from tests.parts.elsewhere.elsewhere import card_10
from tests.parts.elsewhere.here import Here
from tests.parts.elsewhere.rpc_agent import rpc_agent

RAW = base64.b64encode(b"%PDF-1.7 report").decode()
DONE = {
    "id": "t",
    "contextId": "c",
    "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-01-01T00:00:00Z"},
    "artifacts": [
        {"artifactId": "a", "name": "answer", "parts": [{"text": "Here it is."}]},
        {
            "artifactId": "b",
            "name": "report",
            "parts": [{"text": "And a note."}, {"raw": RAW, "filename": "../r.pdf", "mediaType": "application/pdf"}],
        },
        {"artifactId": "c", "name": "figures", "parts": [{"data": {"n": 1}}]},
    ],
}


async def test_the_text_is_there_once(here: Here) -> None:
    async with rpc_agent({}, SendMessage=lambda _: {"task": DONE}, GetTask=lambda _: DONE) as agent:
        agent.card = card_10(f"{agent.url}/") | {"capabilities": {}}
        await here.externals.discover(agent.url, "far", headers=None)
        task = await here.over(await here.send("hi"))
    assert task.answer == "Here it is.\n\nAnd a note."
    assert [one.name for one in task.artifacts] == ["output", "report", "figures"]
    assert [one.text for one in task.artifacts[1:]] == ["", ""]
    (part,) = task.artifacts[1].parts
    assert isinstance(part, FilePart)
    assert (part.file.name, part.file.mime_type, part.file.bytes) == ("../r.pdf", "application/pdf", RAW)
