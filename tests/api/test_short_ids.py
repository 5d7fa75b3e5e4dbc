"""The beginning of a task's id, as agents and people give it: agents name only their own tasks by it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from synapsed.model.task import Message, Prompt, Task, TaskState
from tests.api.serving import TOKEN, Api, serving
from tests.fakes.control import FakeControl

CLAUDE, CODEX = "synapse-claude-8100", "synapse-codex-8120"
SHORT = "0a1b2c3d"
OURS, OTHERS, ALSO = (f"{SHORT}-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))
"""Of codex from claude; of codex, and of claude, both from a person."""
UNSEEN = "4e5f6a7b-0000-4000-8000-000000000004"
"""Of codex from a person, with a beginning of its own."""
SEND = {"message": {"role": "user", "parts": [{"type": "text", "text": "1"}]}}


@dataclass
class House:
    api: Api

    async def ask(self, who: str, method: str, path: str, **options: object) -> tuple[int, str]:
        """With the token of `who`, over the Unix socket where only that has the route; the answer as it is written."""
        headers = {"Authorization": f"Bearer {who}"}
        client = self.api.unix if path.startswith("/control/") else self.api.http
        async with client.request(method, path, headers=headers, **options) as response:
            return response.status, await response.text()


@pytest.fixture
async def house(control: FakeControl, tmp_path: Path):
    control.tokens |= {"claude-token": CLAUDE, "codex-token": CODEX}
    control.rights |= {CLAUDE: frozenset({"answer_prompts"})}
    sent = {"sender": {"sender_id": CLAUDE, "verified": True, "tier": "agent"}}
    of = {OURS: (CODEX, sent), OTHERS: (CODEX, {}), ALSO: (CLAUDE, {}), UNSEEN: (CODEX, {})}
    await control.store.commit(
        tasks=[
            Task(
                id=task_id,
                agent_id=agent_id,
                message=Message.of("do it"),
                metadata=metadata,
                created_at=f"2026-01-01T00:00:0{number}Z",
                updated_at=f"2026-01-01T00:00:0{number}Z",
            )
            for number, (task_id, (agent_id, metadata)) in enumerate(of.items())
        ]
    )
    async with serving(control, tmp_path) as api:
        yield House(api)


ROUTES = [
    ("GET", "/agents/codex/tasks/{}"),
    ("GET", "/agents/codex/tasks/{}/subscribe"),
    ("POST", "/agents/codex/tasks/{}/cancel"),
    ("POST", "/agents/codex/tasks/{}/input"),
    ("POST", "/agents/codex/tasks/{}/artifacts"),
    ("GET", "/control/tasks/{}"),
    ("GET", "/control/tasks/{}/wait"),
    ("POST", "/control/tasks/{}/cancel"),
    ("POST", "/control/tasks/{}/input"),
    ("POST", "/control/tasks/{}/collected"),
]
BODIES = {"input": {"input": "1"}, "artifacts": {"parts": [{"type": "text", "text": "made"}]}}


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_an_agent_finds_no_task_of_others(house: House, method: str, path: str) -> None:
    body = BODIES.get(path.rpartition("/")[2])
    status, text = await house.ask("claude-token", method, path.format(UNSEEN[:8]), json=body)
    assert (status, "TASK_NOT_FOUND" in text, UNSEEN in text) == (404, True, False)
    status, text = await house.ask("claude-token", method, path.format(UNSEEN), json=body)
    assert (status, "FORBIDDEN" in text) == (403, True), "who has the whole id is told why"


@pytest.mark.parametrize("path", ["/agents/codex/tasks/{}", "/control/tasks/{}"])
async def test_others_tasks_make_no_beginning_ambiguous(house: House, path: str) -> None:
    token, expected = ("claude-token", OURS) if path.startswith("/agents") else ("codex-token", None)
    status, text = await house.ask(token, "GET", path.format(SHORT))
    if expected is not None:
        assert (status, expected in text) == (200, True)
    else:  # codex does two of the three
        assert (status, "AMBIGUOUS" in text) == (409, True)
        assert (OURS in text, OTHERS in text, ALSO in text) == (True, True, False)
    status, text = await house.ask(TOKEN, "GET", path.format(SHORT))
    assert (status, OURS in text, OTHERS in text) == (409, True, True), "a person is told of all"
    assert (ALSO in text) is path.startswith("/control"), "of another agent than the path's it is not"


async def test_an_agent_cancels_what_it_has_sent_by_the_beginning_of_its_id(house: House) -> None:
    status, text = await house.ask("claude-token", "POST", f"/agents/codex/tasks/{SHORT}/cancel")
    assert (status, OURS in text) == (200, True)
    for task_id in (OTHERS, ALSO):
        task = await house.api.control.store.task(task_id)
        assert task is not None
        assert task.status is TaskState.SUBMITTED


async def test_an_answer_by_an_agent_that_may_answer(house: House) -> None:
    """`answer_prompts` lets it answer what another agent asks, not learn of others' tasks by guessing at ids."""
    control = house.api.control
    for task_id in (OURS, OTHERS, UNSEEN):
        await control.ask(task_id, Prompt(prompt_id="p", type="text", prompt="Which?"))
    status, text = await house.ask(
        "claude-token", "POST", "/agents/codex/tasks/send", json=SEND | {"task_id": UNSEEN[:8]}
    )
    assert (status, UNSEEN in text) == (404, False)
    status, _ = await house.ask("claude-token", "POST", "/agents/codex/tasks/send", json=SEND | {"task_id": SHORT})
    assert status == 200
    (sent,) = [call[2] for call in control.calls if call[0] == "send"]
    assert sent.task_id == OURS


async def test_who_is_not_known_needs_the_whole_id(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synapsed.api.peer_lookup.LINUX", False)
    http = house.api.http
    assert (await house.api.json(http, "GET", f"/agents/codex/tasks/{UNSEEN}"))[0] == 200
    for short in (SHORT, UNSEEN[:8]):
        status, body = await house.api.json(http, "GET", f"/agents/codex/tasks/{short}")
        assert (status, body["error"]["code"]) == (404, "TASK_NOT_FOUND")


async def test_the_events_of_tasks_by_the_beginning_of_their_id(house: House) -> None:
    path = "/agents/claude/events?stream=sse&until=newest&tasks={}"
    assert (await house.ask("claude-token", "GET", path.format(UNSEEN[:8])))[0] == 404
    status, text = await house.ask("claude-token", "GET", path.format(SHORT))
    assert (status, OTHERS in text) == (409, False)
    status, text = await house.ask(TOKEN, "GET", path.format(SHORT))
    assert (status, OTHERS in text) == (409, True)
