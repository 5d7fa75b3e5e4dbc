"""A keeper that does not answer is told as such, and one that answers again too."""

import asyncio
import os
from typing import Any

import pytest

from synapsed.errors import KeeperLost
from synapsed.keeper.processes import start_mark
from synapsed.keepers.heartbeat import Pulse
from synapsed.keepers.keeper_messages import KeeperSilent
from synapsed.model.records import LaunchRecord


class Keeper:
    """Answers while it is awake."""

    lost: str | None = None

    def __init__(self) -> None:
        self.awake = asyncio.Event()
        self.awake.set()
        self.asked: list[float] = []

    async def ping_briefly(self, *, timeout: float) -> None:
        self.asked.append(timeout)
        if self.lost is None and not self.awake.is_set():
            if len(self.asked) < 4:
                raise KeeperLost("the keeper did not answer")
            await self.awake.wait()
        if self.lost is not None:
            raise KeeperLost(self.lost)


def pulse_of(keeper: Any) -> tuple[Pulse, list[bool]]:
    told: list[bool] = []
    return Pulse(lambda: keeper, told.append), told


async def test_a_keeper_that_answers_changes_nothing() -> None:
    pulse, told = pulse_of(Keeper())
    assert await pulse.answers()
    assert told == []


async def test_silence_is_told_once_and_so_is_its_end() -> None:
    keeper = Keeper()
    pulse, told = pulse_of(keeper)
    keeper.awake.clear()
    assert not await pulse.answers()
    assert not await pulse.answers()  # known: it is not asked again
    assert told == [True]
    assert len(keeper.asked) == 2
    running = asyncio.create_task(pulse.beat())
    while len(keeper.asked) < 4:
        await asyncio.sleep(0)
    keeper.awake.set()
    while pulse.silent:
        await asyncio.sleep(0)
    await running
    assert told == [True, False]


async def test_one_that_answers_is_asked_once_a_beat() -> None:
    keeper = Keeper()
    pulse, _ = pulse_of(keeper)
    await pulse.beat()
    assert len(keeper.asked) == 1


async def test_one_answer_that_is_late_is_no_silence() -> None:
    keeper = Keeper()

    async def ping_briefly(*, timeout: float) -> None:
        keeper.asked.append(timeout)
        if len(keeper.asked) == 1:
            raise KeeperLost("late")

    keeper.ping_briefly = ping_briefly  # type: ignore[method-assign]
    pulse, told = pulse_of(keeper)
    assert await pulse.answers()
    assert told == []


async def test_a_connection_that_is_gone_is_told_otherwise() -> None:
    keeper = Keeper()
    keeper.lost = "closed"
    pulse, told = pulse_of(keeper)
    assert not await pulse.answers()
    await pulse.beat()
    assert told == []


def launch_by(pid: int) -> LaunchRecord:
    return LaunchRecord(
        launch_id="l",
        socket="/none",
        keeper_pid=pid,
        keeper_start=start_mark(pid) or 0,
        pid=pid,
        pid_start=0,
        spool_start=0,
        started_at=0,
    )


async def reached(pulse: Pulse, launch: LaunchRecord, answers: list[Any], given_up: asyncio.Event) -> Any:
    async def connect() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, KeeperLost):
            raise answer
        return answer

    return await pulse.reach(connect, launch, given_up, lambda: False)


async def test_a_keeper_that_lives_and_is_late_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program would be ended for a machine that is short of time."""
    monkeypatch.setattr("synapsed.keepers.heartbeat.CONNECT_AGAIN_S", 0.0)
    client = Keeper()
    pulse, told = pulse_of(client)
    answers = [KeeperSilent("late"), KeeperSilent("late"), client]
    assert await reached(pulse, launch_by(os.getpid()), answers, asyncio.Event()) is client
    assert told == [True, False]


@pytest.mark.parametrize("lost", [KeeperSilent("late"), KeeperLost("no socket"), KeeperLost("refused")])
async def test_a_keeper_that_lives_is_never_lost(lost: KeeperLost, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket that somebody has removed does not mean that its program is gone."""
    monkeypatch.setattr("synapsed.keepers.heartbeat.CONNECT_AGAIN_S", 0.0)
    called: list[int] = []
    monkeypatch.setattr("synapsed.keepers.heartbeat.call_keeper", lambda pid: called.append(pid) is None)
    client = Keeper()
    pulse, told = pulse_of(client)
    assert await reached(pulse, launch_by(os.getpid()), [lost, client], asyncio.Event()) is client
    late = isinstance(lost, KeeperSilent)
    assert called == ([] if late else [os.getpid()])
    assert told == ([True, False] if late else []), "a moment without a socket is no silence"


@pytest.mark.parametrize("why", ["gone", "given up"])
async def test_a_keeper_that_will_not_answer_is_lost(why: str) -> None:
    launch, given_up = launch_by(os.getpid()), asyncio.Event()
    if why == "gone":
        launch = launch.model_copy(update={"keeper_start": 1})
    if why == "given up":
        given_up.set()
    lost = KeeperSilent("late")
    with pytest.raises(KeeperLost, match=lost.message):
        await reached(pulse_of(Keeper())[0], launch, [lost], given_up)
