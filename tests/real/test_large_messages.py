"""Long messages and files: typed whole, or in the inbox, where the program can read them."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.real.agents import EVERY, MAIN, RealAgent, StartAgent, nonce
from tests.real.script import unwrapped

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

TYPED = 48 << 10

READ = {
    "claude": "[[tool:Read:{}]]",
    "codex": "[[tool:shell:head -c 2000 {}]]",
    "gemini": "[[tool:shell:head -c 2000 {}]]",
    "opencode": "[[tool:read:{}]]",
}
KEYS = {"claude": "file_path", "opencode": "filePath"}
ASKS = ("gemini", "opencode")
"""These ask a person: there is no option that would let them read the inbox and leave the user's own settings be."""


def text_of(size: int, word: str) -> str:
    """Exactly `size` bytes in many lines, which begin with `word`."""
    lines = "".join(f"{word} line {n:05d}: the quick brown fox\n" for n in range(size // 20))
    return lines[: size - 1] + "."


def digest(text: str) -> str:
    """Of the message, without the marks that claude puts around a large paste."""
    text = re.sub(r"</?pasted_content[^>\n]*>\n?", "", text)
    return hashlib.sha256(unwrapped(text).encode()).hexdigest()


@pytest.mark.parametrize("cli", MAIN)
def test_48_kib_are_typed_exactly(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    word = nonce()
    message = text_of(TYPED, word)
    task_id = _send(agent, [{"type": "text", "text": message}])
    done = agent.daemon.task_in(task_id, "completed", "failed", "canceled")
    assert done["status"] == "completed", done["error"]
    (request,) = agent.model.turns(word)
    assert digest(request.user) == digest(message)


@pytest.mark.parametrize("cli", EVERY)
def test_300_kb_and_a_file_are_read_from_the_inbox(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    if cli in ASKS:
        agent.allow_tools()
    word, inside = nonce(), nonce()
    message = text_of(300_000, word)
    content = f"{inside} in a file\n".encode()
    file = {"name": "../notes 1.txt", "mimeType": "text/plain", "bytes": base64.b64encode(content).decode()}
    task_id = _send(agent, [{"type": "text", "text": "See:"}, {"type": "file", "file": file}])
    long_id = _send(agent, [{"type": "text", "text": message}])
    for one in (task_id, long_id):
        done = _done(agent, one)
        assert done["status"] == "completed", done["error"]
    inbox = agent.daemon.home / "state" / "agents" / agent.daemon.agent(agent.name)["id"] / "inbox"
    path, long_path = inbox / f"{task_id[:8]}-notes_1.txt", inbox / f"{long_id[:8]}-message.txt"
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o600
    assert long_path.read_text() == message
    users = "\n".join(text for request in agent.model.requests() for text in request.users)
    assert "See:\nAttached file" in users
    assert str(path) in users
    assert str(long_path) in users
    for wanted, marker in ((path, inside), (long_path, word)):
        _read(agent, wanted, marker)


def _done(agent: RealAgent, task_id: str) -> dict[str, Any]:
    try:
        return agent.daemon.task_in(task_id, "completed", "failed", "canceled")
    except AssertionError:
        raise AssertionError(f"{agent.daemon.agent(agent.name)}\n{agent.screen()}") from None


def _read(agent: RealAgent, path: Path, marker: str) -> None:
    cli, word = agent.prepared.cli, nonce()
    key = KEYS.get(cli)
    tool = READ[cli].replace("{}", json.dumps({key: str(path), "limit": 20}) if key else str(path))
    task_id = agent.send(f"{word} {tool} say: Read.")
    states = (
        ("completed", "failed", "canceled") if cli in ASKS else ("completed", "failed", "canceled", "input_required")
    )
    done = agent.daemon.task_in(task_id, *states)
    assert done["status"] == "completed", agent.screen()
    told = str([request.all_results for request in agent.model.turns(word)])
    assert marker in told, told


def _send(agent: RealAgent, parts: list[dict[str, object]]) -> str:
    answer = agent.daemon.post(f"/agents/{agent.name}/tasks/send", {"message": {"parts": parts}})
    assert answer.status == 200, answer.json
    task_id: str = answer.json["task"]["id"]
    return task_id
