"""Output that is not drawn: nobody who ends or interrupts the program waits for it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.errors import KeeperLost
from synapsed.keepers.keeper_messages import Exited, Output
from synapsed.pty import pty_link as link_module
from synapsed.pty import undrawn_output
from synapsed.pty.pty_link import PtyLink
from synapsed.pty.undrawn_output import END_KEPT, END_LEAST, EXIT_DRAWN_S, MEASURED_S, UNDRAWN_MAX
from tests.fakes.clock import until
from tests.pty.conftest import Opens

FLOOD = 3 * UNDRAWN_MAX


class FloodedKeeper:
    """A keeper with `end` bytes of output in its spool. What is not subscribed to does not come, and the word of the
    program's end comes after the output."""

    def __init__(self, link: PtyLink, end: int) -> None:
        self.link, self.end = link, end
        self.paused = False
        self.exit: Any = None
        self.lost = None
        self.subscribed: list[int] = []
        self.stopped: list[float] = []
        self.typed: list[bytes] = []

    def pause_output(self) -> None:
        self.paused = True

    def resume_output(self) -> None:
        self.paused = False
        self._tell_exit()

    def _tell_exit(self) -> None:
        if not self.paused and self.subscribed and self.exit is not None and self.link.output >= self.end - END_KEPT:
            self.link._on_event(Exited(self.exit))

    async def ping(self, *, timeout: float = 10) -> Any:
        return SimpleNamespace(spool_end=self.end, exit=self.exit, unread=0, line_mode=None, echo=None, foreground=None)

    async def ping_briefly(self, *, timeout: float = 10) -> None:
        """It answers."""

    async def subscribe(self, offset: int) -> int:
        self.subscribed.append(offset)
        return offset

    async def write(self, data: bytes) -> Any:
        self.typed.append(data)
        return SimpleNamespace(hidden=False)

    async def stop(self, grace: float) -> int:
        self.stopped.append(grace)
        self.exit = SimpleNamespace(exit_code=-15)
        self._tell_exit()
        return 0

    async def signal(self, number: int) -> None:
        self.exit = SimpleNamespace(exit_code=-number)


@pytest.fixture
async def flooded(opens: Opens, monkeypatch: pytest.MonkeyPatch) -> tuple[PtyLink, FloodedKeeper]:
    """A link whose screen nobody draws, and a program that has written more than that waits for."""
    link, _ = opens(b"> text")
    keeper = FloodedKeeper(link, FLOOD)
    monkeypatch.setattr(link._program, "client", keeper)

    as_drawn = {name: getattr(link._stage, name) for name in ("text", "shown", "explain")}

    async def never(*_: object, **__: object) -> Any:
        await asyncio.get_running_loop().create_future()

    def never_all(name: str) -> Any:
        return lambda *args, **options: (as_drawn[name] if options.get("as_drawn") else never)(*args, **options)

    monkeypatch.setattr(link._stage, "look", never)
    for name in as_drawn:
        monkeypatch.setattr(link._stage, name, never_all(name))
    monkeypatch.setattr(link._stage, "feed", lambda *_, **__: None)
    for name in ("LEAVE_LOOK_S", "INTERRUPT_LOOK_S", "OBSERVE_S", "FRESH_LOOK_S", "SHOWN_S"):
        monkeypatch.setattr(link_module, name, 0.01)
    monkeypatch.setattr(undrawn_output, "KEEP_UP_S", 0.01)
    while not keeper.paused:
        link._on_event(Output(link.output, b"x" * 4096))
    assert link._undrawn.far_behind
    return link, keeper


async def test_a_stop_does_not_wait_for_output_to_be_drawn(flooded: tuple[PtyLink, FloodedKeeper]) -> None:
    link, keeper = flooded
    exited = await link.stop(5)
    assert (exited.exit_code, keeper.stopped, keeper.typed) == (-15, [5], [])
    assert keeper.subscribed == [FLOOD - END_KEPT], "the end of what was written comes all the same"


@pytest.mark.parametrize("killed", [True, False])
async def test_the_end_of_a_program_does_not_wait_for_output_to_be_drawn(
    killed: bool, flooded: tuple[PtyLink, FloodedKeeper]
) -> None:
    link, keeper = flooded
    if killed:
        await link.signal(9)
    else:
        keeper.exit = SimpleNamespace(exit_code=3)
    link.visit()
    await until(link._undrawn._asking.done)  # type: ignore[union-attr]  # it asks, as so much is not drawn
    assert keeper.subscribed == [], "a burst has its moment to be drawn"
    link._clock.advance(EXIT_DRAWN_S)  # type: ignore[attr-defined]  # it is a fake
    link.visit()
    assert (await link._program.exited).exit_code == (-9 if killed else 3)


async def test_a_program_that_goes_on_is_drawn_however_far_behind_that_is(
    flooded: tuple[PtyLink, FloodedKeeper],
) -> None:
    link, keeper = flooded
    for _ in range(2):
        link.visit()
        await until(link._undrawn._asking.done)  # type: ignore[union-attr]  # the same
        link._clock.advance(EXIT_DRAWN_S)  # type: ignore[attr-defined]  # it is a fake
    assert keeper.subscribed == []
    assert not (await link.observe()).can_receive, "its screen is an old one"


@pytest.mark.parametrize(("drawn", "passes"), [(0, True), (FLOOD // 8, True), (FLOOD, False)])
async def test_what_would_be_drawn_too_late_is_passed_over(
    drawn: int, passes: bool, flooded: tuple[PtyLink, FloodedKeeper]
) -> None:
    """As fast as it was drawn until then."""
    link, keeper = flooded

    async def visit() -> None:
        link.visit()
        await until(link._undrawn._asking.done)  # type: ignore[union-attr]  # the same

    await visit()
    keeper.end += 4 * FLOOD
    link._undrawn._drawn += drawn
    for _ in range(2):
        await visit()
        assert keeper.subscribed == [], "it is measured for a while"
        link._clock.advance(MEASURED_S / 2)  # type: ignore[attr-defined]  # it is a fake
    await visit()
    assert keeper.subscribed == ([keeper.end - END_KEPT] if passes else [])
    assert not keeper.paused or not passes


async def test_who_asks_for_the_screen_gets_it_as_far_as_it_is_drawn(flooded: tuple[PtyLink, FloodedKeeper]) -> None:
    link, keeper = flooded
    assert await link.screen_text() == "> text"
    assert await link.screen_text(4) == "text"
    assert await link.screen_as("text") == "> text"
    assert [row.channel for row in await link.explain()]
    assert keeper.subscribed == [], "nothing is passed over for that"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await link.screen_as("rows")  # whoever follows a screen gets the one of which it was told


async def test_an_interrupt_presses_nothing_where_the_screen_is_not_drawn(
    flooded: tuple[PtyLink, FloodedKeeper],
) -> None:
    """The key that stops a turn may mean something else to what stands there now."""
    link, keeper = flooded
    with pytest.raises(KeeperLost, match="not drawn"):
        await link.interrupt()
    assert keeper.typed == []
    assert keeper.subscribed == [FLOOD - END_KEPT]


async def test_an_interrupt_sees_a_screen_that_keeps_up(
    flooded: tuple[PtyLink, FloodedKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look at a screen waits for what is to be drawn before it; what is passed over is not."""
    link, keeper = flooded
    passed = asyncio.Event()
    pass_over, look = link._stage.pass_over, type(link._stage).look

    def passes(offset: int) -> None:
        pass_over(offset)
        passed.set()

    async def looks(ask: Any) -> Any:
        await passed.wait()
        return await look(link._stage, ask)

    monkeypatch.setattr(link_module, "INTERRUPT_LOOK_S", 60.0)
    monkeypatch.setattr(link._stage, "pass_over", passes)
    monkeypatch.setattr(link._stage, "look", looks)
    assert not await link.interrupt(), "nothing runs in the fake"
    assert not keeper.paused


async def test_as_long_as_nothing_is_drawn_less_and_less_of_the_end_is_kept(
    flooded: tuple[PtyLink, FloodedKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that is busy with other work may take long for the 64 KiB, and somebody waits."""
    link, _ = flooded
    passed: list[int] = []
    monkeypatch.setattr(link._stage, "pass_over", passed.append)
    async with link._undrawn.passed_over():
        await until(lambda: bool(passed))
        link._on_event(Output(link.output, b"x" * (FLOOD - link.output)))
        await until(lambda: passed[-1] == FLOOD - END_LEAST)
    assert [FLOOD - at for at in passed] == [END_KEPT, END_KEPT // 2, END_KEPT // 4, END_KEPT // 8, END_LEAST]


async def test_a_program_that_floods_from_its_start_is_opened(
    flooded: tuple[PtyLink, FloodedKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    link, _ = flooded
    await link._begin_fresh()
    assert link._session.last is None
    await until(lambda: link._undrawn._task is None or link._undrawn._task.done())


async def test_viewers_are_drawn_what_they_were_not_sent(flooded: tuple[PtyLink, FloodedKeeper]) -> None:
    link, _ = flooded
    viewer = await link._viewers.join(cols=80, rows=24, read_only=True)
    link._passed_over(FLOOD)
    assert viewer._behind
    assert link.output == FLOOD
