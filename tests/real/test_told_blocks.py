"""A block of code is told when its fence closes, while the real programs still say the rest."""

from typing import Any

import pytest

from tests.real.agents import StartAgent, nonce
from tests.real.script import expected_answer

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

TELLING = ("claude", "opencode")
"""Those that tell their Markdown while they write it. The screens of the others show it drawn, without fences and
languages: of what they say, code is told at the turn's end."""

CODE = 'import sys\n\nfor line in sys.stdin:\n    print(line.upper(), end="")'
PYTHON = {"language": "python", "mimeType": "text/x-python"}


def text_of(artifact: dict[str, Any]) -> str:
    return "".join(part["text"] for part in artifact["parts"])


@pytest.mark.parametrize("cli", TELLING)
def test_code_is_told_while_the_rest_is_still_said(cli: str, start_agent: StartAgent) -> None:
    """The model stops in the middle until it was told, so that the turn's end cannot tell of it."""
    agent = start_agent(cli)
    word = nonce()
    message = f"{word} [[slow:60]] [[hold-mid:{word}]] [[answer:coded]]"
    told: dict[str, list[dict[str, Any]]] = {}
    task_id = agent.send(message)
    path = f"/agents/{agent.name}/tasks/{task_id}"
    with agent.daemon.sse(f"{path}/subscribe") as events:
        for data in (event["data"] for event in events if event["event"] == "artifact"):
            artifact = data["artifact"]
            told.setdefault(artifact["artifact_id"], []).append(artifact)
            if artifact["type"] == "code":
                agent.model.release(word)
    kept = {artifact["artifact_id"]: artifact for artifact in agent.daemon.get(path).json["artifacts"]}
    assert {name: text_of(told[name][-1]) for name in told if name != "answer"} == {
        name: text_of(kept[name]) for name in kept if name != "answer"
    }
    assert "".join(map(text_of, told["answer"])) == text_of(kept["answer"]) == expected_answer(message)
    assert (kept["answer.2"]["type"], text_of(kept["answer.2"]), kept["answer.2"]["metadata"]) == ("code", CODE, PYTHON)
    assert text_of(told["answer.2"][0]) == CODE
