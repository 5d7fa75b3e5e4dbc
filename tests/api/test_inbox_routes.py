"""`/inbox`: what waits for a person, and for nobody else."""

from pathlib import Path

import pytest

from synapsed.interfaces import NewEvent
from synapsed.model.events import AttentionChanged, InputRequired
from synapsed.model.task import Prompt, PromptOption
from tests.api.serving import TOKEN, serving
from tests.fakes.clock import until
from tests.fakes.control import FakeControl

PROMPT = Prompt(
    prompt_id="p1", type="permission", prompt="Run ls?", options=[PromptOption(key="1", label="Yes")], own_words=True
)
PERSON = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def control() -> FakeControl:
    control = FakeControl()
    control.add("dummy")
    return control


async def ask(control: FakeControl) -> None:
    (view,) = control.views.values()
    opened = AttentionChanged(id="i1", state="opened", kind="permission", question="Run", prompt_id="p1")
    events = [NewEvent(view.id, data) for data in (InputRequired(prompt=PROMPT), opened)]
    await control.store.commit(events=events)


async def test_what_waits_and_who_may_read_it(control: FakeControl, tmp_path: Path) -> None:
    await ask(control)
    control.tokens["t" * 43] = next(iter(control.views))
    async with serving(control, tmp_path) as api:
        status, (item,) = await api.json(api.unix, "GET", "/inbox")
        assert status == 200
        assert {name: item[name] for name in ("id", "agent", "cwd", "kind", "question", "command", "prompt_id")} == {
            "id": "i1", "agent": "dummy", "cwd": "/tmp", "kind": "permission", "question": "Run ls?", "command": None,
            "prompt_id": "p1",
        }  # fmt: skip
        assert item["options"] == [{"key": "1", "label": "Yes"}]
        assert (item["host"], item["own_words"], item["looked_at"]) == (None, True, False)
        assert (await api.json(api.http, "GET", "/inbox", headers=PERSON))[0] == 200
        agents = {"Authorization": "Bearer " + "t" * 43}
        for method, path in (("GET", "/inbox"), ("POST", "/inbox/i1/seen")):
            status, told = await api.json(api.http, method, path, headers=agents, json={})
            assert (status, told["error"]["code"]) == (403, "FORBIDDEN")


async def test_what_asks_nothing_is_put_away(control: FakeControl, tmp_path: Path) -> None:
    async with serving(control, tmp_path) as api:
        failure = AttentionChanged(id="f1", state="opened", kind="failure", question="it broke")
        await control.store.commit(events=[NewEvent(next(iter(control.views)), failure)])
        await ask(control)
        inbox = api.servers.context.waiting
        await until(lambda: len(inbox) == 2)
        assert await api.json(api.unix, "POST", "/inbox/f1/seen", json={}) == (200, {"status": "seen", "id": "f1"})
        status, told = await api.json(api.unix, "POST", "/inbox/f1/seen", json={})
        assert (status, told["error"]["code"]) == (404, "NOT_IN_INBOX")
        status, told = await api.json(api.unix, "POST", "/inbox/i1/seen", json={})
        assert (status, told["error"]["code"]) == (400, "NOT_WAITING")
        _, items = await api.json(api.unix, "GET", "/inbox")
        assert [item["id"] for item in items] == ["i1"]
        closed = control.store.events.all[-1].data
        assert isinstance(closed, AttentionChanged)
        assert (closed.id, closed.state, closed.by, closed.where) == ("f1", "answered", "person", "control")
