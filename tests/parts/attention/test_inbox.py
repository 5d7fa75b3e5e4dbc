"""Who needs a person, on scripted agents: opened and closed with the log, the same after a daemon was killed."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.clock import iso
from synapsed.config.config import AgentConfig, RestartPolicy
from synapsed.errors import NotInInbox, NotWaiting
from synapsed.interfaces import NewEvent, TaskFilter
from synapsed.model.agent import Activity, AgentView
from synapsed.model.attention import AttentionItem
from synapsed.model.events import AttentionChanged, Event, Origin, ToolExecution
from synapsed.model.facts import PermissionAsked, ToolBegan, ToolOver
from synapsed.model.link import LinkExited, LinkTold, LinkTurnEnded, LinkTurnFailed
from synapsed.model.task import Prompt, Task, TaskState
from synapsed.parts.attention.consequences import GRACE_S, STABLE_S
from synapsed.parts.attention.inbox import LOOK_EVERY_S, PersonInbox
from synapsed.parts.work_events.reporting import WorkEvents
from tests.fakes.clock import PATIENCE_S, POLL_S, until
from tests.support.world import PERMISSION, World

AGENT = "synapse-fake-8190"


class Home(World):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.provides |= WorkEvents(self.store, self.clock).provides
        self.inboxes: list[PersonInbox] = []

    async def up(self) -> PersonInbox:
        """The inbox of a daemon that comes up."""
        await self.daemon()
        return await self.inbox()

    async def inbox(self) -> PersonInbox:
        inbox = PersonInbox(
            directory=self.manager.directory,
            terminals=self.manager.terminals,
            store=self.store,
            clock=self.clock,
            timers=self.clock,
        )
        await inbox.restore()
        inbox.start()
        self.inboxes.append(inbox)
        return inbox

    async def kill(self) -> None:
        """As by a signal: nothing is saved that was not."""
        for inbox in self.inboxes:
            for task in (inbox._keeper._running, inbox._conclusions._running, inbox._looking):
                if task is not None:
                    task.cancel()
            inbox._looking = None

    async def asks(self) -> Task:
        task = await self.send(AGENT)
        await self.delivered()
        self.link.submit()
        self.link.observe_as(Activity.WAITING, prompt=PERMISSION)
        return await self.task_is(task.id, TaskState.INPUT_REQUIRED)

    async def ends(self, *, code: str = "") -> Task:
        task = await self.send(AGENT)
        await self.delivered()
        self.link.submit()
        if code:
            self.link.emit(LinkTurnFailed(task.id, code, "it broke", "fake"))
        else:
            self.link.emit(LinkTurnEnded(task.id, "All done.", True, "fake"))
        self.link.ready()
        return await self.task_is(task.id, TaskState.FAILED if code else TaskState.COMPLETED)

    async def close(self) -> None:
        for inbox in self.inboxes:
            await inbox.close()
        await super().close()


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(tmp_path)
    yield home
    await home.close()


async def turns() -> None:
    """Everybody has their turns of the loop."""
    for _ in range(50):
        await asyncio.sleep(0)


async def kinds(home: Home, inbox: PersonInbox, *wanted: str) -> list[AttentionItem]:
    """Turns the clock, by at most 50 s, until these are in the inbox, and nothing else."""
    deadline, ends = time.monotonic() + PATIENCE_S, home.clock.monotonic() + 50
    while time.monotonic() < deadline:
        await turns()
        if [item.kind for item in inbox.items()] == list(wanted):
            return inbox.items()
        if home.clock.monotonic() < ends:
            home.clock.advance(0.25)
        else:
            await asyncio.sleep(POLL_S)  # what is read and written in threads
    raise AssertionError(f"in the inbox: {inbox.items()}, not {wanted}")


async def settled(home: Home, seconds: float = GRACE_S + LOOK_EVERY_S) -> None:
    """That time has passed, and what follows from it is done."""
    upto = home.store.events.last_id
    for _ in range(int(seconds / 0.25) + 1):
        home.clock.advance(0.25)
        await turns()
    await until(lambda: home.inboxes[-1]._conclusions.cursor >= upto)


async def test_a_permission_until_it_is_answered(home: Home) -> None:
    inbox = await home.up()
    await home.start()
    task = await home.asks()
    home.link.emit(LinkTold(ToolBegan(channel="hooks", at_ns=1, call="c", tool="Bash", input={"command": "Run it?"})))
    (item,) = await kinds(home, inbox, "permission")
    assert (item.agent, item.agent_id, item.cwd, item.task) == ("fake", AGENT, "/", task.id)
    assert (item.question, item.prompt_id, item.prompt_type) == ("Run it?", "p1", "permission")
    await until(lambda: inbox.items()[0].command == "Run it?")
    assert [(option.key, option.label) for option in item.options] == [("1", "Yes"), ("2", "No")]
    with pytest.raises(NotWaiting):
        await inbox.put_away(item.id, Origin("person"))
    moved = inbox.moved
    await home.manager.tasks.provide_input(task.id, "1")
    await until(moved.is_set, "it tells of the change")
    await kinds(home, inbox)


async def test_the_same_items_after_a_kill(home: Home) -> None:
    inbox = await home.up()
    await home.start()
    await home.ends()
    await kinds(home, inbox, "finished")
    await home.asks()
    before = await kinds(home, inbox, "finished", "permission")
    await home.kill()
    again = await home.inbox()
    assert await kinds(home, again, "finished", "permission") == before
    await settled(home)
    opened = [event.data.id for event in home.store.events.all if isinstance(event.data, AttentionChanged)]
    assert len(opened) == len(set(opened)), "nothing is opened twice"


async def test_what_asks_nothing_and_stands_for_long_costs_no_reading_of_calls_and_other_items(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = await home.up()
    await home.start()
    await home.ends(code="MODEL_ERROR")
    before = await kinds(home, inbox, "failure")
    call = ToolExecution(tool_name="Bash", status="started", call_id="c", input={"command": "ls"})
    over = AttentionChanged(id="over", state="gone", kind="failure")
    await home.store.commit(events=[NewEvent(AGENT, call), NewEvent(AGENT, over)] * 5)
    await home.kill()
    found, read = list[object](), home.store.events.read

    async def spy(*args: Any, **more: Any) -> list[Event]:
        batch = await read(*args, **more)
        found.extend(event.data for event in batch)
        return batch

    monkeypatch.setattr(home.store.events, "read", spy)
    again = await home.inbox()
    assert found
    assert not any(isinstance(data, ToolExecution | AttentionChanged) for data in found)
    assert await kinds(home, again, "failure") == before


async def test_a_conclusion_that_was_not_drawn_is_drawn_by_the_next_daemon(home: Home) -> None:
    await home.up()
    await home.start()
    task = await home.ends()
    await home.kill()
    again = await home.inbox()
    (item,) = await kinds(home, again, "finished")
    assert (item.task, item.question) == (task.id, "All done.")


@pytest.mark.parametrize("code", ["", "MODEL_ERROR"])
async def test_a_task_is_over_once_it_was_read(home: Home, code: str) -> None:
    inbox = await home.up()
    await home.start()
    task = await home.ends(code=code)
    await kinds(home, inbox, {"": "finished", "MODEL_ERROR": "failure"}[code])
    await home.manager.tasks.find(task.id)
    await kinds(home, inbox)


async def test_a_task_that_somebody_waited_for(home: Home) -> None:
    inbox = await home.up()
    await home.start()
    task = await home.ends()
    async for event in home.store.events.follow(0, task_id=task.id, upto=home.store.events.last_id):
        assert event.task_id == task.id
    await settled(home)
    assert inbox.items() == []


async def test_reading_many_tasks_is_not_reading_one(home: Home) -> None:
    inbox = await home.up()
    await home.start()
    await home.ends()
    await home.manager.tasks.page(TaskFilter(agent_id=AGENT))
    await kinds(home, inbox, "finished")


async def test_what_became_of_a_removed_agent_is_no_other_s_with_its_id(home: Home) -> None:
    inbox = await home.up()
    await home.start()
    await home.asks()
    await home.manager.stop(AGENT, remove=True)
    await home.start()
    await settled(home)
    assert inbox.items() == []
    await home.ends()
    await kinds(home, inbox, "finished")
    await home.manager.stop(AGENT, remove=True)
    await home.start()
    await settled(home)
    assert inbox.items() == []
    await home.ends()
    await home.manager.stop(AGENT, remove=True)
    await home.start()
    await settled(home)
    assert inbox.items() == [], "what follows from its end is told a moment later"
    await home.kill()
    assert (await home.up()).items() == []


async def test_who_looks_at_the_agent_sees_what_became_of_its_tasks(home: Home) -> None:
    inbox = await home.up()
    await home.start()
    await home.ends()
    await kinds(home, inbox, "finished")
    home.link.attached = 1  # it only looks on
    await settled(home)
    assert len(inbox) == 1
    home.link.writers = 1
    await kinds(home, inbox)
    await home.ends()
    await settled(home)
    assert inbox.items() == []


async def test_what_is_asked_stays_while_somebody_looks_at_it(home: Home) -> None:
    inbox = await home.up()
    await home.start()
    await home.asks()
    home.link.writers = 1
    (item,) = await kinds(home, inbox, "permission")
    assert item.looked_at


async def test_a_crash_loop(home: Home) -> None:
    home.agents["fake"] = AgentConfig(autostart=True, cwd="/", restart=RestartPolicy(limit=2, window=600))
    inbox = await home.up()
    for number in range(1, 4):
        await until(lambda: home.manager.directory.view(AGENT).state == "running")
        home.link.emit(LinkExited(1, "boom"))
        while len(home.factory.links) == number and home.manager.directory.view(AGENT).state != "failed":
            home.clock.advance(0.5)
            await turns()
    (item,) = await kinds(home, inbox, "crash_loop")
    assert "3 times" in item.question
    while home.manager.directory.view(AGENT).state != "running":
        home.clock.advance(30)
        await turns()
    home.link.ready()
    await settled(home)
    assert [item.kind for item in inbox.items()] == ["crash_loop"]
    await settled(home, STABLE_S)
    assert inbox.items() == []


async def test_a_limit_with_its_end(home: Home) -> None:
    inbox = await home.up()
    await home.start()
    agent = home.manager.directory.all()[0]
    limit = AttentionChanged(
        id="l1", state="opened", kind="limit", question="You've hit your limit", until=iso(home.clock.wall() + 3600)
    )
    await agent._actor.call(agent.keep_hold, {}, limit)
    (item,) = await kinds(home, inbox, "limit")
    assert item.until is not None
    assert item.question == "You've hit your limit"
    await inbox.put_away(item.id, Origin("person", where="control"))
    assert inbox.items() == []
    with pytest.raises(NotInInbox):
        await inbox.put_away(item.id, Origin("person"))
    await agent._actor.call(agent.keep_hold, None, limit.model_copy(update={"state": "gone"}))
    await settled(home)
    assert inbox.items() == []


async def test_a_limit_of_an_agent_that_is_stopped(home: Home) -> None:
    inbox = await home.up()
    await home.start()
    agent = home.manager.directory.all()[0]
    limit = AttentionChanged(id="l1", state="opened", kind="limit", question="limit")
    await agent._actor.call(agent.keep_hold, {}, limit)
    await kinds(home, inbox, "limit")
    await home.manager.stop(AGENT)
    await kinds(home, inbox)


async def test_an_agent_that_is_removed(home: Home) -> None:
    inbox = await home.up()
    await home.start()
    await home.ends()
    await kinds(home, inbox, "finished")
    await home.manager.stop(AGENT, remove=True)
    await kinds(home, inbox)


async def test_of_a_thousand_items_only_what_has_changed_is_made(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = await home.up()
    await home.start()
    told = [AttentionChanged(id=f"i{n}", state="opened", kind="alert", question="It is full.") for n in range(999)]
    await home.store.commit(events=[NewEvent(AGENT, one) for one in told])
    await until(lambda: len(inbox) == 999)
    first = inbox.items()
    await home.asks()
    await until(lambda: len(inbox) == 1000)
    views = 0
    view = home.manager.directory.view

    def counted(agent_id: str) -> AgentView:
        nonlocal views
        views += 1
        return view(agent_id)

    monkeypatch.setattr(home.manager.directory, "view", counted)
    again = inbox.items()
    assert all(one is before for one, before in zip(again, first, strict=False))
    assert (len(again), again[-1].kind, views) == (1000, "permission", 1)
    home.link.emit(LinkTold(ToolBegan(channel="hooks", at_ns=1, call="c", tool="Bash", input={"command": "Run it?"})))
    await until(lambda: inbox.items()[-1].command == "Run it?")
    assert all(one is before for one, before in zip(inbox.items(), again[:-1], strict=False))
    monkeypatch.setattr(home.manager.terminals, "looked_at", lambda agent_id: True)
    assert all(one.looked_at for one in inbox.items())


async def test_items_of_an_agent_that_is_gone_are_forgotten(home: Home) -> None:
    inbox = await home.up()
    await home.start()
    await home.ends()
    await kinds(home, inbox, "finished")
    await home.manager.stop(AGENT, remove=True)
    await kinds(home, inbox)
    assert not inbox._made


async def test_dialogs_that_look_alike_say_which_edit_each_is(home: Home) -> None:
    """Three edits of one file under one dialog: the one that the program asks about by a hook, another when that is
    over, and none while it is not clear which of two it is."""
    inbox = await home.up()
    await home.start()
    await home.asks()
    dialog = Prompt(prompt_id="d", type="permission", prompt="Edit f.txt\n1 - old line\n…\nMake this edit?")
    given = [{"file_path": "/f.txt", "old_string": "old line", "new_string": text} for text in ("one", "two", "three")]

    def tell(kind: type[ToolBegan | ToolOver], number: int) -> None:
        home.link.emit(LinkTold(kind(channel="hooks", at_ns=1, call=f"c{number}", tool="Edit", input=given[number])))

    def diffs() -> list[str | None]:
        return [item.diff.rpartition("+")[2] if item.diff else None for item in inbox.items()]

    tell(ToolBegan, 0)
    home.link.observe_as(Activity.WAITING, prompt=dialog)
    await until(lambda: diffs() == ["one"])
    tell(ToolBegan, 1)
    await until(lambda: diffs() == [None], "it may be either")
    home.link.emit(LinkTold(PermissionAsked(channel="hooks", at_ns=1, tool="Edit", input=given[1])))
    await until(lambda: diffs() == ["two"])
    tell(ToolOver, 1)
    await until(lambda: diffs() == ["one"])
    (item,) = inbox.items()
    assert item.command is None
    (task,), _ = await home.store.tasks(TaskFilter())
    assert task.prompt is not None
    assert task.prompt.diff == item.diff
