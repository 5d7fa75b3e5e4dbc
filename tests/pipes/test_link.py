"""The link of a program on pipes: a keeper's refusal is told, and nothing comes between a message and its record."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.errors import KeeperLost, NotTaken
from synapsed.interfaces import Delivery
from synapsed.keepers.keeper_messages import Exited, ExitRecord, KeeperBusy, KeeperRefused, Output, WriteResult
from synapsed.model.facts import ChannelFact, PermissionAsked
from synapsed.model.link import LinkEvent, LinkTold, LinkTurnAccepted, LinkTurnInterrupted, LinkTurnRecord
from synapsed.model.records import TurnRecord
from synapsed.pipes.acp_link import AcpLink
from synapsed.pipes.acp_opening import SessionOpening
from synapsed.pipes.rpc import encode
from synapsed.pipes.transcript import TranscriptSpool
from synapsed.pty.shared_timer import Rounds
from tests.fakes.clock import FakeClock, until
from tests.fakes.program import LAUNCH
from tests.fakes.stage import LocalStage
from tests.fakes.store import MemoryStore
from tests.pipes.test_pure import PROFILE, asks

SIZE = (80, 24)


class Keeper:
    """`fails`: what it answers to whoever writes next."""

    def __init__(self) -> None:
        self.written: list[str | None] = []
        self.fails: Exception | None = None
        self.end = 0

    async def write(self, data: bytes, input_id: str | None = None) -> WriteResult:
        if self.fails is not None:
            raise self.fails
        self.written.append(input_id)
        return WriteResult("written", self.end, self.end, len(data), len(data))

    def close(self) -> None:
        """Nothing is open."""


class Linked:
    def __init__(self, folder: Path) -> None:
        self.clock, self.keeper = FakeClock(), Keeper()
        self.told: list[LinkEvent] = []
        self.link = AcpLink(
            agent_id="a",
            folder=folder,
            cwd="/work",
            profile=PROFILE,
            launch=LAUNCH,
            conversation=None,
            opening=SessionOpening(),
            transcript=TranscriptSpool(folder),
            stage=LocalStage(PROFILE, LAUNCH, SIZE, None, 0.0),
            size=SIZE,
            store=MemoryStore(),
            clock=self.clock,
            rounds=Rounds(self.clock),
        )
        program: Any = self.link._program
        program.client, program.emit = self.keeper, self._hear
        self.link._live = True
        program.tasks.spawn(self.link._turns.run())
        self.link._perform(self.link._session.begin())
        self.said({"id": "initialize", "result": {}}, {"id": "session", "result": {"sessionId": "s"}})
        self.link._perform(self.link._session.take_up())

    def _hear(self, event: LinkEvent) -> None:
        self.told.append(event)
        if isinstance(event, LinkTurnRecord):
            self.link.recorded(event.record)

    def said(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            data = encode(message)
            self.link._on_output(Output(self.keeper.end, data))
            self.keeper.end += len(data)

    @property
    def facts(self) -> list[ChannelFact]:
        return [event.fact for event in self.told if isinstance(event, LinkTold)]

    def prepared(self, task: str = "t") -> Delivery:
        record = self.link.prepare(TurnRecord(task_id=task, launch_id=LAUNCH.launch_id))
        return Delivery(task_id=task, text="hello", command=False, record=record, fresh=True)

    async def prompts(self, count: int) -> list[str]:
        """The ids of all prompts, once there are so many."""

        def given() -> list[str]:
            return [name for name in self.keeper.written if name and name.startswith(("t.", "person."))]

        await until(lambda: len(given()) == count)
        return given()


@pytest.fixture
async def linked(tmp_path: Path) -> AsyncIterator[Linked]:
    one = Linked(tmp_path)
    yield one
    await one.link._program.tasks.cancel()
    one.link._spool.close()


BUSY = KeeperBusy("the program does not read", reason="busy")


@pytest.mark.parametrize("why", [BUSY, KeeperLost("it is gone")])
async def test_whoever_answers_is_told_that_the_program_did_not_take_it(linked: Linked, why: Exception) -> None:
    await linked.link.type(b"hello\r")
    await linked.prompts(1)
    linked.said(asks())
    asked = (await linked.link.observe()).prompt
    assert asked is not None
    linked.keeper.fails = why
    with pytest.raises(NotTaken):
        await linked.link.answer("yes", asked.prompt_id)
    linked.keeper.fails = None
    if why is BUSY:
        assert (await linked.link.observe()).prompt == asked
        await linked.link.answer("yes", asked.prompt_id)
        assert sum(name is not None and name.startswith("answer.") for name in linked.keeper.written) == 1


async def test_a_rule_whose_decision_is_not_taken_leaves_it_to_the_person(linked: Linked) -> None:
    await linked.link.type(b"hello\r")
    linked.said(asks())
    (asked,) = [fact for fact in linked.facts if isinstance(fact, PermissionAsked)]
    linked.keeper.fails = BUSY
    assert await linked.link.reply(asked, {"kind": "allow_once"}) is False
    assert (await linked.link.observe()).prompt is not None


async def test_a_persons_line_does_not_come_between_a_message_and_its_record(linked: Linked) -> None:
    delivery = linked.prepared()
    await linked.link.type(b"mine\r")
    await linked.link.deliver(delivery)
    assert (await linked.prompts(1))[0].startswith("t.")
    linked.said({"id": linked.keeper.written[-1], "result": {"stopReason": "end_turn"}})
    await until(lambda: linked.link._turns.turn is None)
    await linked.link.type(b"mine\r")
    assert (await linked.prompts(2))[1].startswith("person.")


async def test_a_message_waits_for_a_persons_that_came_before_it(linked: Linked) -> None:
    await linked.link.type(b"mine\r")
    (persons,) = await linked.prompts(1)
    giving = asyncio.create_task(linked.link.deliver(linked.prepared()))
    await asyncio.sleep(0)
    assert not giving.done()
    linked.said({"id": persons, "result": {"stopReason": "end_turn"}})
    await giving
    assert (await linked.prompts(2))[1].startswith("t.")


async def test_a_persons_turn_is_stopped_as_a_tasks_is(linked: Linked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the program has begun with it that is waited for, and it is told to stop again."""
    monkeypatch.setattr("synapsed.pipes.acp_link.CONFIRM_S", 0.01)
    monkeypatch.setattr("synapsed.pipes.speech.CANCEL_AGAIN_S", 0.0)
    monkeypatch.setattr("synapsed.pty.stopping.STOP_AGAIN_S", 0.001)
    await linked.link.type(b"mine\r")
    (persons,) = await linked.prompts(1)
    stop = asyncio.create_task(linked.link.interrupt())

    def told() -> int:
        return sum(name is not None and name.startswith("stop.") for name in linked.keeper.written)

    await until(lambda: told() == 1)
    await asyncio.wait({stop}, timeout=0.1)
    assert not stop.done()
    monkeypatch.setattr("synapsed.pipes.acp_link.CONFIRM_S", 60.0)
    update = {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "mine"}}
    linked.said({"method": "session/update", "params": {"update": update}})
    await until(lambda: told() == 2)
    linked.said({"id": persons, "result": {"stopReason": "cancelled"}})
    assert await stop is True


async def test_one_that_ends_before_it_is_killed_for_its_turn_is_stopped(
    linked: Linked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper refuses the signal, and reports the end a moment later."""
    monkeypatch.setattr("synapsed.pipes.acp_link.CONFIRM_S", 0.01)
    program: Any = linked.link._program
    record = ExitRecord(
        launch_id=LAUNCH.launch_id,
        pid=2,
        code=1,
        signal=None,
        stopped=False,
        leftover=0,
        output_lost=0,
        final_offset=0,
        started_at=0.0,
        exited_at=0.0,
    )

    async def alive(*, timeout: float | None) -> None:
        """Answers a sign of life."""

    async def refuse(_signum: int) -> None:
        asyncio.get_running_loop().call_soon(program.told, Exited(record))
        raise KeeperRefused("the program has ended", reason="exited")

    program.client.ping_briefly, program.client.signal, program.client.lost = alive, refuse, None
    await linked.link.type(b"mine\r")
    await linked.prompts(1)
    update = {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "mine"}}
    linked.said({"method": "session/update", "params": {"update": update}})
    assert await linked.link.interrupt() is True
    assert program.exited.result().exit_code == 1


@pytest.mark.parametrize(("key", "reason"), [(b"\x03", "person"), (b"", "program")])
async def test_who_stopped_a_turn_is_told_by_the_keys(linked: Linked, key: bytes, reason: str) -> None:
    """As of a program at a terminal: keys there, or nobody who is known."""
    await linked.link.deliver(linked.prepared())
    (task,) = await linked.prompts(1)
    await until(lambda: any(isinstance(event, LinkTurnAccepted) for event in linked.told))
    if key:
        await linked.link.type(key)
        await until(lambda: any(name is not None and name.startswith("stop.") for name in linked.keeper.written))
    linked.said({"id": task, "result": {"stopReason": "cancelled"}})
    await until(lambda: linked.link._turns.turn is None)
    assert [event.reason for event in linked.told if isinstance(event, LinkTurnInterrupted)] == [reason]


async def test_a_program_that_has_not_begun_with_a_turn_is_waited_for_when_that_is_stopped(linked: Linked) -> None:
    """Some read nothing for many seconds after their first message. One that has begun, and goes on, is not."""
    for begins in (False, True):
        await linked.link.deliver(linked.prepared())
        key = (await linked.prompts(1 + begins))[-1]
        if begins:
            update = {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "hello"}}
            linked.said({"method": "session/update", "params": {"update": update}})
        stop = asyncio.create_task(linked.link._stopping.stop(0.01, goes_on=False))
        if begins:
            assert await stop is False
        else:
            await asyncio.wait({stop}, timeout=0.1)
            linked.said({"id": key, "result": {"stopReason": "cancelled"}})
            assert await stop is True
            await until(lambda: linked.link._turns.turn is None)
