"""The link to a program in a terminal: what it begins with, and how it ends."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.errors import KeeperLost, LaunchError, StoreError
from synapsed.model.agent import Activity
from synapsed.model.link import LinkEvent
from synapsed.model.records import Checkpoint
from synapsed.pty import pty_link as link_module
from synapsed.pty import window
from synapsed.pty.pty_link import PtyLink
from synapsed.pty.shared_timer import BEAT_S, PULSE_BEATS
from synapsed.terminal.screen_messages import Incomplete
from tests.fakes.clock import until
from tests.pty.conftest import Opens, prints


@pytest.mark.parametrize(("offset", "shown"), [(99, ""), (100, ""), (105, "hello")])
async def test_a_checkpoint_of_an_earlier_launch_is_not_this_launch_s_screen(
    offset: int, shown: str, opens: Opens
) -> None:
    link, _ = opens(b"hello", offset=offset)
    assert await link.screen_text() == shown


async def test_a_link_whose_screen_cannot_be_kept_lets_go_all_the_same(opens: Opens) -> None:
    link, _ = opens()
    client = link._program.client = SimpleNamespace(closed=False, close=lambda: setattr(client, "closed", True))
    prints(link, b"more")
    link._store.refuse = StoreError("the disk is full", reason="full")
    await link.close()
    assert client.closed


async def test_a_link_that_is_given_up_opens_without_a_look_for_no_longer(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process of screens may hang: whoever stops the program meanwhile waits for so long and no longer."""
    link, _ = opens(b"> text")

    async def never(*_: object) -> None:
        await asyncio.get_running_loop().create_future()

    look = link._stage.look
    monkeypatch.setattr(link._stage, "look", never)
    monkeypatch.setattr(link_module, "FIRST_LOOK_S", 0.01)
    for early in (True, False):
        link._program.given_up.clear()
        if early:
            link.give_up()
        beginning = asyncio.ensure_future(link._begin())
        await asyncio.sleep(0)
        assert not beginning.done()
        link.give_up()
        await until(beginning.done)
        with pytest.raises(KeeperLost, match="not drawn"):
            beginning.result()
    monkeypatch.setattr(link._stage, "look", look)
    monkeypatch.setattr(link_module, "FIRST_LOOK_S", 60.0)
    await link._begin()
    link.give_up()


async def test_a_program_whose_screen_is_incomplete_is_asked_to_draw_it_again(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else would: who attaches to a program that rests saw what is left of its screen."""
    link, _ = opens(b"> text")
    await link.observe()
    asked: list[object] = []
    monkeypatch.setattr(link, "_redraw", lambda: asked.append(link))
    link._on_stage(Incomplete())
    assert asked == [link]


@pytest.mark.parametrize("computes", [True, False])
async def test_a_program_that_is_about_to_draw_keeps_its_window(
    computes: bool, opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that gets little of a busy machine draws for the size that it knows, and hears of two changes as of none."""
    link, _ = opens(b"a warning stands where its composer was")
    await link.observe()
    sizes: list[tuple[int, int]] = []

    async def resize(cols: int, rows: int) -> None:
        sizes.append((cols, rows))

    kept: list[tuple[int, int]] = []

    async def save(_agent_id: str, checkpoint: Checkpoint) -> None:
        kept.append((checkpoint.cols, checkpoint.rows))

    async def ping(*, timeout: float = 10) -> Any:
        return SimpleNamespace(unread=0, line_mode=None, echo=None, foreground=7)

    monkeypatch.setattr(link._store, "save_checkpoint", save)
    monkeypatch.setattr(link._program.client, "resize", resize, raising=False)
    monkeypatch.setattr(link._program.client, "ping", ping, raising=False)
    monkeypatch.setattr(link._driver.kernel._foreground, "computes", lambda _group: computes)
    monkeypatch.setattr(window, "NUDGE_S", 0.0)
    link._window.size = (80, 24)
    link._program.caught_up.set()
    link._clock.advance(60.0)  # type: ignore[attr-defined]  # it is a fake
    await link._redraw_if_defaced()
    await until(lambda: not link._driver._program.tasks)
    assert sizes == ([] if computes else [(79, 24), (80, 24)])
    assert kept == ([] if computes else [(80, 24)]), "so that the next daemon, should this one be killed, knows it"


@pytest.mark.parametrize(("cols", "becomes"), [(79, [(80, 24)]), (80, []), (78, [])])
async def test_a_window_that_a_killed_daemon_left_narrower_gets_its_size_again(
    cols: int, becomes: list[tuple[int, int]], opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was killed over a redraw; the keeper knows no other size."""
    link, _ = opens(b"> text")
    sizes: list[tuple[int, int]] = []

    async def resize(cols: int, rows: int) -> None:
        sizes.append((cols, rows))

    async def subscribe(_offset: int, *, channel: str | None = None) -> None:
        link._program.caught_up.set()

    keeper = SimpleNamespace(hello=SimpleNamespace(cols=cols, rows=24, sizes=()), resize=resize, subscribe=subscribe)

    async def reach(_told: object) -> Any:
        link._program.client = keeper  # type: ignore[assignment]  # of a keeper that is what the test needs of one
        return keeper

    monkeypatch.setattr(link._program, "reach", reach)
    await link.open(lambda _event: None)
    await until(lambda: sizes == becomes)
    assert link._window.size == (becomes[0] if becomes else (cols, 24))
    await link._program.tasks.cancel()
    link._rounds.leave(link)


async def test_a_program_that_reads_none_of_many_ctrl_z_is_waited_for_once(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its keeper is not asked for each key that somebody pressed."""
    monkeypatch.setattr("synapsed.pty.keyboard.CONTINUE_AFTER_S", (0.0, 0.0))
    monkeypatch.setattr("synapsed.pty.screen_looks.ASK_AGAIN_S", 0.001)
    link, _ = opens(b"> ")
    unread, signals = 1, []

    async def ping() -> Any:
        return SimpleNamespace(unread=unread, line_mode=None, echo=None, foreground=None)

    async def signal(signum: int) -> None:
        signals.append(signum)

    monkeypatch.setattr(link._program.client, "ping", ping, raising=False)
    monkeypatch.setattr(link._program.client, "signal", signal, raising=False)
    for _ in range(20):
        await link._person_keys.type(b"\x1a")
        await asyncio.sleep(0)
    unread = 0
    await until(lambda: not link._driver._program.tasks)
    assert len(signals) == 2


async def test_a_keeper_that_stands_still_when_it_is_to_stop_is_ended(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would never tell of the end, and its agent would be stopping for ever."""
    link, _ = opens(b"> text")
    swept = []

    async def stop(_grace: float) -> int:
        raise KeeperLost("the keeper did not answer within 20 s")

    async def sweep(launch_id: str) -> int:
        swept.append(launch_id)
        raise LaunchError("one cannot be ended")

    monkeypatch.setattr(link._program.client, "stop", stop, raising=False)
    monkeypatch.setattr("synapsed.keepers.kept_program.sweep_launch", sweep)
    stopping = asyncio.ensure_future(link.stop(5))
    await until(stopping.done)
    assert (stopping.result().exit_code, swept) == (None, ["l"])


async def test_a_program_whose_screen_nobody_draws_can_be_stopped(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process of screens may not come to begin: what is asked waits for it, and a stop does not."""
    link, _ = opens(b"> text")
    stopped = []

    async def never(*_: object) -> None:
        await asyncio.get_running_loop().create_future()

    async def stop(grace: float) -> None:
        stopped.append(grace)
        link._program._finish(0, "the program ended")

    monkeypatch.setattr(link._stage, "look", never)
    monkeypatch.setattr(link._program.client, "stop", stop, raising=False)
    monkeypatch.setattr(link_module, "LEAVE_S", 0.01)
    stopping = asyncio.ensure_future(link.stop(5))
    await until(stopping.done)
    assert (stopping.result().exit_code, stopped) == (0, [5])


async def test_a_program_whose_screen_nobody_draws_is_given_nothing(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its agent does nothing else while it waits for a look; the next one that comes is told."""
    link, _ = opens(b"> ")
    told: list[LinkEvent] = []
    link._program.emit = told.append
    seen = await link.observe()
    assert seen.can_receive
    look = link._stage.look

    async def never(*_: object) -> None:
        await asyncio.get_running_loop().create_future()

    with monkeypatch.context() as hung:
        hung.setattr(link._stage, "look", never)
        hung.setattr(link_module, "OBSERVE_S", 0.01)
        asked = asyncio.ensure_future(link.observe())
        await until(asked.done)
        assert asked.result() == replace(seen, can_receive=False)
        assert told == [seen]
    assert link._stage.look == look
    await link._driver.looks.judge()
    assert told == [seen, seen]
    link._session.observations.last = None
    assert link._session.observations.unseen().activity is Activity.UNKNOWN


async def test_a_link_whose_screen_nobody_draws_lets_go_all_the_same(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, _ = opens()
    client = link._program.client = SimpleNamespace(closed=False, close=lambda: setattr(client, "closed", True))
    prints(link, b"more")

    async def never() -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(link._stage, "checkpoint", never)
    monkeypatch.setattr(link_module, "SAVE_S", 0.01)
    closing = asyncio.ensure_future(link.close())
    await until(closing.done)
    assert client.closed


async def test_a_link_that_is_closed_while_it_reaches_its_keeper_ends(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would close what it begins then."""
    link, _ = opens()
    reached = asyncio.get_running_loop().create_future()
    client = SimpleNamespace(closed=False, close=lambda: setattr(client, "closed", True))

    async def reach(*_: object) -> Any:
        return await reached

    monkeypatch.setattr(link._program, "client", None)
    monkeypatch.setattr(link._program._pulse, "reach", reach)
    opening = asyncio.ensure_future(link.open(lambda _event: None))
    await asyncio.sleep(0)
    await link.close()
    reached.set_result(client)
    await asyncio.wait({opening})
    assert opening.cancelled()
    assert client.closed
    assert not link._driver._program.tasks
    assert link._clock.pending() == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("given_up", [False, True])
async def test_a_keeper_that_stands_still_is_left_to_the_next_daemon_unless_it_was_given_up(
    opens: Opens, monkeypatch: pytest.MonkeyPatch, given_up: bool
) -> None:
    link, _ = opens()
    tries = 0

    async def connect(*_: object, **__: object) -> Any:
        nonlocal tries
        tries += 1
        raise KeeperLost("it does not answer")

    monkeypatch.setattr(link._program, "client", None)
    monkeypatch.setattr("synapsed.keepers.client.KeeperClient.connect", connect)
    monkeypatch.setattr("synapsed.keepers.heartbeat.lives", lambda _: True)
    monkeypatch.setattr("synapsed.keepers.heartbeat.call_keeper", lambda _: False)
    monkeypatch.setattr("synapsed.keepers.heartbeat.CONNECT_AGAIN_S", 0.001)
    opening = asyncio.ensure_future(link.open(lambda _event: None))
    await until(lambda: tries >= 2)
    if given_up:
        link.give_up()
    link.leave_unreached()
    await asyncio.wait({opening})
    assert opening.cancelled() is not given_up
    await link.close()


async def test_a_link_that_was_reached_is_not_left(opens: Opens) -> None:
    link, _ = opens()
    link.leave_unreached()
    assert not link._program.closing, "the loss of its keeper is told while it is let go"


async def test_a_visit_waits_until_the_one_before_is_over(opens: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    link, _ = opens()
    clock: Any = link._clock
    asked, answer = [], asyncio.get_running_loop().create_future()

    async def ping(**_: object) -> Any:
        asked.append(clock.monotonic())
        return await answer

    monkeypatch.setattr(link._program.client, "ping", ping, raising=False)
    link._rounds.join(link)
    clock.advance(BEAT_S)
    await until(lambda: not link._driver._program.tasks)
    assert not asked, "nothing was due"
    link._driver.unread.now = True
    clock.advance(BEAT_S)
    await until(lambda: asked)
    clock.advance(BEAT_S)
    await asyncio.sleep(0)
    assert len(asked) == 1
    answer.set_result(SimpleNamespace(unread=1, line_mode=None, echo=None, foreground=None))
    await until(lambda: not link._driver._program.tasks)
    clock.advance(BEAT_S)
    await until(lambda: len(asked) == 2)
    link._rounds.leave(link)


async def test_a_keeper_that_stops_is_noticed_by_its_pulse(opens: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    link, _ = opens()
    clock: Any = link._clock
    asked, told = [], []

    async def ping_briefly(**_: object) -> None:
        asked.append(clock.monotonic())
        if len(asked) < 5:
            raise KeeperLost("the keeper did not answer")

    monkeypatch.setattr(link._program.client, "ping_briefly", ping_briefly, raising=False)
    monkeypatch.setattr(link._program.client, "lost", None, raising=False)
    link._driver._program.emit = told.append
    link._rounds.join(link)
    clock.advance(PULSE_BEATS * BEAT_S)
    await until(lambda: len(told) == 2)
    assert [(alert.code, alert.state) for alert in told] == [("KEEPER_SILENT", "begins"), ("KEEPER_SILENT", "over")]
    link._rounds.leave(link)


def resizes_of(link: PtyLink, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Returns the sizes that the keeper is asked for from now on."""
    sizes: list[tuple[int, int]] = []

    async def resize(cols: int, rows: int) -> None:
        sizes.append((cols, rows))

    monkeypatch.setattr(link._program.client, "resize", resize, raising=False)
    return sizes


async def test_a_program_has_the_size_of_who_types_and_its_own_when_they_have_left(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a window as narrow as its prompt it would seem to hold a person's draft, also when they have gone."""
    link, _ = opens(b"> ")
    sizes = resizes_of(link, monkeypatch)
    link._window.size = (80, 24)
    narrow = await link.attach(cols=3, rows=2, read_only=False)
    other = await link.attach(cols=100, rows=30, read_only=False)
    looks_on = await link.attach(cols=60, rows=20, read_only=True)
    await other.close()
    await until(lambda: not link._program.tasks)
    assert sizes == [(20, 5), (100, 30), (20, 5)]
    await narrow.close()
    await until(lambda: len(sizes) == 4)
    assert sizes[3:] == [(80, 24)], "who only looks on has no size to give"
    await looks_on.close()


async def test_who_looks_on_and_does_not_come_to_be_there_is_not_counted(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, _ = opens(b"> ")

    async def resize(_cols: int, _rows: int) -> None:
        raise KeeperLost("the keeper is gone")

    monkeypatch.setattr(link._program.client, "resize", resize, raising=False)
    link._window._rows, link._window.size = 24, (80, 24)
    with pytest.raises(KeeperLost):
        await link.attach(cols=60, rows=20, read_only=True)
    assert link.attached == 0


async def test_a_window_that_the_last_daemon_s_terminal_left_is_given_back(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, _ = opens(b"> ")
    sizes = resizes_of(link, monkeypatch)
    monkeypatch.setattr(link_module, "RETURN_S", 0.0)
    link._window.size = (8, 24)
    await link._give_back_window()
    await until(lambda: bool(sizes))
    assert sizes == [(80, 24)]
