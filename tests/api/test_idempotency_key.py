"""What is typed under a key: once, answered alike, whoever comes again and whenever the daemon is killed."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from synapsed.errors import NotTaken, PromptChanged, RemoteRefused, Unreachable
from synapsed.store import acts
from synapsed.store.acts import KEPT, KEPT_S, ActLog
from tests.api.serving import Api, serving
from tests.fakes.clock import FakeClock
from tests.fakes.control import FakeControl, hold

AGENT = "synapse-claude-8100"
PRESS = "/control/agents/claude/keys"


@pytest.fixture
def control() -> FakeControl:
    control = FakeControl(hold)
    control.add("claude", "claude", 8100)
    control.add("codex", "codex", 8120)
    return control


@pytest.fixture
async def api(control: FakeControl, tmp_path: Path) -> AsyncGenerator[Api]:
    async with serving(control, tmp_path) as api:
        yield api


class Presses:
    """What reached the terminal; `gate` holds it up, `fails` are what the next ones raise."""

    def __init__(self, control: FakeControl) -> None:
        self.typed: list[tuple[str, tuple[str, ...]]] = []
        self.fails: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.begun = asyncio.Event()
        control.terminals.press = self.press  # type: ignore[method-assign]

    async def press(self, agent_id: str, keys: Any) -> None:
        self.begun.set()
        await self.gate.wait()
        if self.fails:
            raise self.fails.pop(0)
        self.typed.append((agent_id, tuple(keys)))


@pytest.fixture
def presses(control: FakeControl) -> Presses:
    return Presses(control)


async def press(api: Api, key: str, keys: str = "Enter", path: str = PRESS) -> tuple[int, Any]:
    return await api.json(api.unix, "POST", path, json={"keys": [keys]}, headers={"Idempotency-Key": key})


async def test_the_same_again_is_typed_once(api: Api, presses: Presses) -> None:
    answers = [await press(api, "a"), await press(api, "a"), await press(api, "a")]
    assert answers == [(200, {"status": "pressed"})] * 3
    assert presses.typed == [(AGENT, ("Enter",))]
    await press(api, "b")
    await press(api, "a", path="/control/agents/codex/keys")
    assert len(presses.typed) == 3, "another key, another agent"
    assert (await api.json(api.unix, "POST", PRESS, json={"keys": ["x"]}))[0] == 200
    assert (await api.json(api.unix, "POST", PRESS, json={"keys": ["x"]}))[0] == 200
    assert len(presses.typed) == 5, "without a key nothing is the same"


async def test_two_at_once_are_one(api: Api, presses: Presses) -> None:
    presses.gate.clear()
    both = [asyncio.create_task(press(api, "a")) for _ in range(5)]
    await presses.begun.wait()
    presses.gate.set()
    assert [answer for answer, _ in await asyncio.gather(*both)] == [200] * 5
    assert len(presses.typed) == 1


async def test_a_client_that_leaves_in_the_middle(api: Api, presses: Presses) -> None:
    presses.gate.clear()
    one = asyncio.create_task(press(api, "a"))
    await presses.begun.wait()
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one
    presses.gate.set()
    assert await press(api, "a") == (200, {"status": "pressed"})
    assert len(presses.typed) == 1


async def test_another_body_under_the_same_key(api: Api, presses: Presses) -> None:
    await press(api, "a")
    status, told = await press(api, "a", "Esc")
    assert (status, told["error"]["code"]) == (400, "INVALID_REQUEST")
    assert "another body" in told["error"]["message"]
    assert len(presses.typed) == 1


async def test_a_key_must_be_one(api: Api, presses: Presses) -> None:
    status, told = await press(api, "k" * 300)
    assert (status, told["error"]["details"]["field"]) == (400, "Idempotency-Key")
    assert presses.typed == []


async def test_what_was_refused_may_be_tried_again(api: Api, presses: Presses) -> None:
    presses.fails = [PromptChanged("it asks something else")]
    assert (await press(api, "a"))[0] == 409
    assert (await press(api, "a"))[0] == 200
    assert len(presses.typed) == 1


async def test_what_may_have_been_typed_is_not_typed_again(api: Api, presses: Presses) -> None:
    presses.fails = [NotTaken("it still asks the same")]
    first, again = await press(api, "a"), await press(api, "a")
    assert first == again
    assert first[1]["error"]["code"] == "NOT_TAKEN"
    assert presses.typed == []


@pytest.mark.parametrize("error", [Unreachable("no way to it", sent=False), RemoteRefused("no", remote="HTTP_401")])
async def test_what_did_not_reach_an_agent_elsewhere_may_be_sent_again(
    api: Api, presses: Presses, error: Exception
) -> None:
    presses.fails = [error]
    assert (await press(api, "a"))[0] == 502
    assert (await press(api, "a"))[0] == 200
    assert len(presses.typed) == 1


async def test_what_may_have_arrived_elsewhere_is_not_sent_again(api: Api, presses: Presses) -> None:
    presses.fails = [Unreachable("cut off", sent=True)]
    first, again = await press(api, "a"), await press(api, "a")
    assert (first[0], first[1]["error"]["code"], presses.typed) == (409, "OUTCOME_UNKNOWN", [])
    assert again == first


async def test_answers_under_a_key(api: Api, control: FakeControl) -> None:
    _, told = await api.json(api.unix, "POST", "/agents/claude/tasks/send", json={"message": "hello"})
    task = told["task"]["id"]
    await control.ask(task, prompt_of("p1"))
    headers = {"Idempotency-Key": "tap"}
    body = {"input": "1"}
    first = await api.json(api.unix, "POST", f"/agents/claude/tasks/{task}/input", json=body, headers=headers)
    assert first == (200, {"status": "input_provided", "task_id": task})
    await control.ask(task, prompt_of("p2"))
    again = await api.json(api.unix, "POST", f"/agents/claude/tasks/{task}/input", json=body, headers=headers)
    over_there = await api.json(api.unix, "POST", f"/control/tasks/{task}/input", json=body, headers=headers)
    assert again == over_there == first, "the next question is not answered by a tap on the last one"
    assert len([call for call in control.calls if call[0] == "input"]) == 1


def prompt_of(key: str) -> Any:
    from synapsed.model.task import Prompt

    return Prompt(prompt_id=key, type="text", prompt="Which?", own_words=True)


async def test_over_a_restart(control: FakeControl, tmp_path: Path) -> None:
    presses = Presses(control)
    async with serving(control, tmp_path) as api:
        assert await press(api, "a") == (200, {"status": "pressed"})
    async with serving(control, tmp_path) as api:
        assert await press(api, "a") == (200, {"status": "pressed"})
        assert (await press(api, "b"))[0] == 200
    assert len(presses.typed) == 2
    path = tmp_path / "state" / "acts.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "Enter" not in path.read_text(), "what was typed is not written down"


async def test_another_body_after_a_restart(control: FakeControl, tmp_path: Path) -> None:
    """It is refused as before it, and the key stays the first one's."""
    presses = Presses(control)
    async with serving(control, tmp_path) as api:
        await press(api, "a")
    async with serving(control, tmp_path) as api:
        for _ in range(2):
            status, told = await press(api, "a", "Esc")
            assert (status, told["error"]["code"]) == (400, "INVALID_REQUEST")
        assert await press(api, "a") == (200, {"status": "pressed"})
    assert len(presses.typed) == 1
    path = tmp_path / "state" / "acts.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({k: v for k, v in line.items() if k != "body"}) + "\n" for line in lines))
    async with serving(control, tmp_path) as api:
        assert await press(api, "a") == (200, {"status": "pressed"}), "an older version wrote no body"
    assert len(presses.typed) == 1


async def test_killed_in_the_middle(control: FakeControl, tmp_path: Path) -> None:
    presses = Presses(control)
    presses.gate.clear()
    async with serving(control, tmp_path) as api:
        one = asyncio.create_task(press(api, "a"))
        await presses.begun.wait()
        kept = (tmp_path / "state" / "acts.jsonl").read_bytes()
        presses.gate.set()
        await one
    (tmp_path / "state" / "acts.jsonl").write_bytes(kept)  # as a kill in that moment leaves it
    async with serving(control, tmp_path) as api:
        for _ in range(2):
            status, told = await press(api, "a")
            assert (status, told["error"]["code"]) == (409, "OUTCOME_UNKNOWN")
        assert (await press(api, "b"))[0] == 200
    assert len(presses.typed) == 2


async def test_nothing_is_typed_where_nothing_can_be_noted(
    api: Api, presses: Presses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, raw: bytes) -> None:
        raise acts.StoreError(f"{path} cannot be written: No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(acts, "_append", full)
        status, _ = await press(api, "a")
        assert status >= 500
        assert presses.typed == []
    assert (await press(api, "a"))[0] == 200
    assert len(presses.typed) == 1


# --- the file --------------------------------------------------------------------------------------------------------


async def test_it_is_bounded_and_forgets(tmp_path: Path) -> None:
    clock = FakeClock()
    kept = ActLog(tmp_path / "acts", clock)
    for number in range(KEPT + 10):
        await kept.begin(f"k{number}")
        await kept.done(f"k{number}", {"n": number})
    for _ in range(3 * KEPT):
        await kept.begin("again")
        await kept.undone("again")
    lines = (tmp_path / "acts").read_text().splitlines()
    assert len(lines) <= acts.LINES_MAX + 1
    again = ActLog(tmp_path / "acts", clock)
    assert await again.get("k0") is None
    assert await again.get("again") is None
    found = await again.get(f"k{KEPT + 9}")
    assert found is not None
    assert found.answer == {"n": KEPT + 9}
    clock.advance(KEPT_S + 1)
    assert await again.get(f"k{KEPT + 9}") is None


async def test_long_answers_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the file is rewritten: it would be longer than what is read of it."""
    monkeypatch.setattr(acts, "LINES_MAX", 50)
    clock = FakeClock()
    kept = ActLog(tmp_path / "acts", clock)
    for number in range(20):
        await kept.begin(f"long{number}", "body")
        await kept.done(f"long{number}", {"text": "x" * acts.LINE_MAX})
    for _ in range(20):
        await kept.begin("again")
        await kept.undone("again")
    await kept.begin("last", "body")
    assert (tmp_path / "acts").read_text().count("again") < 40, "it was rewritten"
    assert all(len(line) < acts.LINE_MAX for line in (tmp_path / "acts").read_bytes().splitlines())
    again = ActLog(tmp_path / "acts", clock)
    for number in range(20):
        here, there = await kept.get(f"long{number}"), await again.get(f"long{number}")
        assert here is not None
        assert here.answer is not None
        assert there is not None
        assert (there.answer, there.body) == (None, "body"), "it is known that it was begun"
    assert await again.get("last") is not None


@pytest.mark.parametrize("torn", [b'{"key": "b", "sta', b"\x00\xff\n[]\nnull\n{}\n", b'{"key": 1}\n'])
async def test_a_file_that_is_not_whole(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "acts"
    await ActLog(path, FakeClock()).begin("a")
    path.write_bytes(path.read_bytes() + torn)
    kept = ActLog(path, FakeClock())
    assert await kept.get("a") is not None
    await kept.begin("c")
    assert await ActLog(path, FakeClock()).get("c") is not None
    assert json.loads(path.read_text(errors="replace").splitlines()[0])["key"] == "a"


async def test_a_file_that_others_can_write_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "acts"
    path.write_text("")
    path.chmod(0o666)
    with pytest.raises(acts.StoreError, match="chmod 600"):
        await ActLog(path, FakeClock()).get("a")
