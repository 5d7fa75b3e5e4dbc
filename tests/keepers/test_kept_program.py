"""The end of a program, by whoever is the first to tell of it; and a keeper that stands still."""

import asyncio
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.errors import KeeperLost, LaunchError
from synapsed.keepers.keeper_messages import Alert, Exited, ExitRecord, KeeperRefused, Lost, WriteResult
from synapsed.keepers.kept_program import KeptProgram
from synapsed.model.link import LinkAlert, LinkEvent, LinkExited
from tests.fakes.clock import until
from tests.fakes.program import FakeOwner, kept_by
from tests.support.patience import PATIENCE_S

ENDED = Exited(
    ExitRecord(
        launch_id="l",
        pid=2,
        code=3,
        signal=None,
        stopped=False,
        leftover=0,
        output_lost=0,
        final_offset=0,
        started_at=0.0,
        exited_at=0.0,
    )
)
LOST = Lost("the connection broke")


class Kept:
    """A program, what it tells, and what is swept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.silent = False
        self.stops: list[float] = []
        self.signals: list[int] = []
        self.swept: list[str] = []
        self.events: list[LinkEvent] = []
        self.owner = FakeOwner()
        keeper: Any = SimpleNamespace(ping_briefly=self.ping, stop=self.stop, signal=self.signal, lost=None)
        self.program: KeptProgram = kept_by(keeper, self.owner)
        self.program.emit = self.events.append
        monkeypatch.setattr("synapsed.keepers.kept_program.sweep_launch", self.sweep)

    async def ping(self, *, timeout: float | None) -> None:
        if self.silent and timeout is None:
            await asyncio.Event().wait()
        if self.silent:
            raise KeeperLost("no answer")

    async def stop(self, grace: float) -> None:
        self.stops.append(grace)
        self.program.told(ENDED)

    async def signal(self, signum: int) -> None:
        self.signals.append(signum)

    async def sweep(self, launch_id: str) -> int:
        self.swept.append(launch_id)
        raise LaunchError("one cannot be ended")

    async def leave(self) -> None:
        self.owner.told.append("leave")

    @property
    def exits(self) -> list[LinkExited]:
        return [event for event in self.events if isinstance(event, LinkExited)]


@pytest.fixture
async def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    return Kept(monkeypatch)


@pytest.mark.parametrize("order", [(ENDED, LOST), (LOST, ENDED), (LOST, LOST), (ENDED, ENDED)])
async def test_an_end_is_told_once_whoever_tells_it(kept: Kept, order: tuple[Exited | Lost, ...]) -> None:
    """A keeper ends right after its program; and it may be found gone by two who ask it."""
    for event in order:
        kept.program.told(event)
    assert kept.owner.told == ["finishing"], "at once: nothing is typed any more"
    await until(lambda: not kept.program.tasks)
    assert [exited.exit_code for exited in kept.exits] == [3 if order[0] is ENDED else None]
    assert kept.swept == ([] if order[0] is ENDED else ["l"])
    assert kept.owner.told == ["finishing", "last words"]
    assert kept.program.exited.result() is kept.exits[0]


async def test_a_keeper_that_was_never_reached_is_not_lost(kept: Kept) -> None:
    """Whoever tried is told."""
    kept.program.client = None
    kept.program.told(LOST)
    assert kept.owner.told == []
    kept.program.told(Alert(active=True, code="DISK_FULL", message="the disk is full"))
    assert [event.code for event in kept.events if isinstance(event, LinkAlert)] == ["DISK_FULL"]


async def test_one_whose_keeper_is_let_go_is_left_to_the_next_daemon(kept: Kept) -> None:
    kept.program.closing = True
    kept.program.told(LOST)
    await asyncio.sleep(0)
    assert (kept.swept, kept.events) == ([], [])


async def test_one_that_is_to_stop_leaves_first_and_is_stopped(kept: Kept) -> None:
    assert (await kept.program.stop(5.0, leave=kept.leave)).exit_code == 3
    assert kept.owner.told == ["leave", "finishing", "last words"]
    assert (await kept.program.stop(5.0, leave=kept.leave)).exit_code == 3, "it is over"
    assert kept.stops == [5.0]


async def test_one_that_ended_meanwhile_is_stopped(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stop(_grace: float) -> None:
        kept.program.told(ENDED)
        raise KeeperRefused("the program has ended", reason="exited")

    monkeypatch.setattr(kept.program.client, "stop", stop)
    assert (await kept.program.stop(5.0, leave=kept.leave)).exit_code == 3


@pytest.mark.parametrize("error", [KeeperRefused("the program has ended", reason="exited"), KeeperLost("not drawn")])
async def test_one_that_cannot_be_told_to_leave_is_stopped(kept: Kept, error: Exception) -> None:
    """It may end at the first exit key, while its end is reported later; the screen may be lost, and the keeper not."""

    async def leave() -> None:
        raise error

    assert (await kept.program.stop(5.0, leave=leave)).exit_code == 3
    assert (kept.stops, kept.swept) == ([5.0], [])


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_a_keeper_that_stands_still_is_ended_with_its_program(kept: Kept, how: str) -> None:
    kept.silent = True
    if how == "stop":
        await kept.program.stop(5.0, leave=kept.leave)
    else:
        await kept.program.signal(signal.SIGKILL)
    assert (kept.swept, kept.stops, kept.signals) == (["l"], [], [])
    assert kept.owner.told == ["silent", "finishing", "last words"], "it is not asked to leave"


async def test_other_signals_are_the_keeper_s_even_if_it_stands_still(kept: Kept) -> None:
    kept.silent = True
    await kept.program.signal(signal.SIGCONT)
    assert kept.signals == [signal.SIGCONT]


async def test_a_keeper_that_is_late_is_subscribed_to_until_it_is_given_up(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No time limit ends a program whose keeper lives; whoever gives it up waits no longer for it."""
    asked: list[tuple[int | None, str | None]] = []
    answer = asyncio.Event()

    async def subscribe(offset: int | None, *, channel: str | None = None) -> int:
        asked.append((offset, channel))
        await answer.wait()
        return 7

    kept.program.keeper().subscribe = subscribe  # type: ignore[method-assign]
    kept.silent = True
    late = asyncio.create_task(kept.program.subscribe(7, channel="stderr"))
    await until(lambda: kept.program.silent)
    assert not late.done()
    answer.set()
    await late
    answer.clear()
    monkeypatch.setattr("synapsed.keepers.kept_program.GIVEN_UP_S", 0.0)
    late = asyncio.create_task(kept.program.subscribe(None))
    await until(lambda: len(asked) == 2)
    kept.program.give_up()
    with pytest.raises(KeeperLost, match="was given up"):
        await late
    with pytest.raises(KeeperLost, match="was given up"):
        await kept.program.subscribe(None)
    assert asked == [(7, "stderr"), (None, None), (None, None)]


async def test_an_input_that_waits_for_its_program_to_read_is_had_by_the_keeper(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper tells of such a one when it is written: with a program that reads nothing, never."""

    async def recall(name: str) -> WriteResult | None:
        if name == "waits":
            await asyncio.Event().wait()
        await asyncio.sleep(0)  # it asks a second time
        if name == "discarded":
            raise KeeperRefused("it is discarded", reason="discarded")
        return WriteResult("duplicate", 0, 0, 1, 1) if name == "written" else None

    keeper: Any = kept.program.keeper()
    keeper.recall = recall
    names = ["waits", "discarded", "written", "unknown"]
    assert await asyncio.wait_for(kept.program.has_inputs(names), PATIENCE_S) == {"waits", "written"}
    monkeypatch.setattr("synapsed.keepers.kept_program.GIVEN_UP_S", 0.0)
    kept.silent = True
    late = asyncio.create_task(kept.program.has_inputs(names))
    await until(lambda: kept.program.silent)
    assert not late.done()
    kept.program.give_up()
    with pytest.raises(KeeperLost, match="was given up"):
        await late
