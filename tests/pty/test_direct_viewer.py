"""A viewer's direct way: when text may pass the daemon, and what ends it."""

import asyncio
import socket
from collections.abc import Callable, Iterator

import pytest

from synapsed.errors import KeeperLost
from synapsed.keepers.keeper_messages import TerminalKeys
from synapsed.pty import viewers as viewers_module
from synapsed.pty.direct_viewer import Way
from synapsed.pty.viewers import Viewer
from tests.pty.test_viewers import COLS, ROWS, Program


class Keeper:
    """What is asked of it."""

    path = "/none"

    def __init__(self, *, terminals: bool = True) -> None:
        self.hello = self
        self.terminals = terminals
        self.did: list[tuple[str, object]] = []

    def dealt_with(self, terminal: str, count: int, *, opens: bool, offset: int | None = None) -> None:
        self.did.append(("opens" if opens else "shut", count if offset is None else (count, offset)))

    async def shut_terminal(self, terminal: str, *, end: bool = False) -> None:
        self.did.append(("ends" if end else "shuts", terminal))

    @property
    def last(self) -> tuple[str, object]:
        return self.did[-1]


class Person:
    """`interfaces.DirectTerminal`."""

    def __init__(self) -> None:
        self.told: list[tuple[bytes, bool]] = []
        self.holds = False
        self.overs = 0

    def typed(self, data: bytes) -> None:
        self.told.append((data, True))

    def handed(self, data: bytes) -> None:
        self.told.append((data, False))

    def may_begin(self) -> bool:
        return not self.holds

    def may_type(self) -> bool:
        return True

    def over(self) -> None:
        self.overs += 1


class Stand:
    """A program with a viewer who types, whose way has begun."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keeper, self.person, self.busy = Keeper(), Person(), False
        self.program = Program()
        self.typed: list[bytes] = []
        group = self.program.viewers
        self.program.client = self.keeper  # as much of it as is used
        self.program.busy = lambda: self.busy  # type: ignore[method-assign]
        group.typed_direct = self.typed.append  # type: ignore[method-assign]
        self._ours: list[socket.socket] = []

        async def join(_path: object, _name: str) -> socket.socket:
            lent, ours = socket.socketpair()
            self._ours.append(ours)
            return lent

        monkeypatch.setattr(viewers_module, "join_terminal", join)

    async def viewer(self) -> Viewer:
        viewer = await self.program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
        await viewer.redraw()
        return viewer

    async def way(self, viewer: Viewer) -> Way:
        way = await viewer.direct(self.person)
        assert way is not None
        return way

    def keys(self, way: Way, data: bytes, *, typed: bool) -> None:
        self.program.viewers.pressed_direct(TerminalKeys(way.name, data, typed))

    def close(self) -> None:
        for each in self._ours:
            each.close()


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    made = Stand(monkeypatch)
    yield made
    made.close()


async def settle(until: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not until():
            await asyncio.sleep(0)


async def test_output_goes_on_from_where_it_was_and_keys_are_known(stand: Stand) -> None:
    viewer = await stand.viewer()
    way = await stand.way(viewer)
    passed: list[bytes] = []
    viewer.pass_to(passed.append, lambda: True)
    stand.program.prints(b"by the daemon")
    assert way.begin(lambda: passed.append(b"|"))
    stand.program.prints(b"past it")
    assert passed == [b"by the daemon", b"|"]
    assert stand.keeper.last == ("opens", (0, len("by the daemon")))
    stand.keys(way, b"a", typed=True)
    stand.keys(way, b"\x1b[A", typed=False)
    assert stand.typed == [b"a"]
    assert stand.person.told == [(b"a", True), (b"\x1b[A", False)]
    way.dealt(2)
    assert stand.keeper.last == ("shut", 2)  # one more byte was handed over
    way.dealt(1)
    assert stand.keeper.last == ("opens", 3)
    await viewer.close()


async def test_it_begins_only_where_nothing_is_held_back(stand: Stand) -> None:
    viewer = await stand.viewer()
    way = await stand.way(viewer)
    viewer.pass_to(lambda _data: None, lambda: True)
    stand.program.prints(b"half a sequence \x1b[3")
    assert not way.begin(lambda: pytest.fail("it has begun"))
    stand.program.prints(b"1m")
    stand.person.holds = True
    assert not way.begin(lambda: pytest.fail("it has begun"))
    stand.person.holds = False
    assert way.begin(lambda: None)
    await viewer.close()


async def test_text_does_not_pass_while_something_else_is_typed(stand: Stand) -> None:
    viewer = await stand.viewer()
    way = await stand.way(viewer)
    way.begin(lambda: None)
    await stand.program.viewers.shut_direct()
    assert stand.keeper.last == ("shuts", way.name)
    did = len(stand.keeper.did)
    await stand.program.viewers.shut_direct()
    assert len(stand.keeper.did) == did, "it is shut"
    stand.busy = True
    stand.keys(way, b"x", typed=False)
    way.dealt(1)
    assert stand.keeper.last == ("shut", 1)
    stand.busy = False
    stand.keys(way, b"y", typed=False)
    way.dealt(1)
    assert stand.keeper.last == ("opens", 2)
    await viewer.close()


async def test_another_terminal_that_is_used_shuts_it_first(stand: Stand) -> None:
    viewer = await stand.viewer()
    way = await stand.way(viewer)
    await viewer.write(b"mine")
    way.begin(lambda: None)
    other = await stand.viewer()
    assert stand.keeper.last == ("shuts", way.name)
    stand.keys(way, b"x", typed=False)
    way.dealt(1)
    assert stand.keeper.last == ("shut", 1), "the other one was used last"
    await viewer.close()
    await other.close()


async def test_what_has_to_be_drawn_again_ends_it_and_late_keys_are_not_lost(stand: Stand) -> None:
    viewer = await stand.viewer()
    way = await stand.way(viewer)
    way.begin(lambda: None)
    viewer.notice("look here", stays=True)
    assert stand.person.overs == 1
    stand.keys(way, b"late", typed=False)
    assert stand.person.told == [(b"late", False)]
    await way.end()
    assert stand.keeper.last == ("ends", way.name)
    stand.keys(way, b"never", typed=False)
    assert stand.person.told == [(b"late", False)]
    assert b"look here" in await anext(viewer.output())
    assert await viewer.direct(stand.person) is not None, "another one may follow"
    await viewer.close()
    await settle(lambda: stand.keeper.last[0] == "ends")


async def test_what_went_there_is_drawn_where_it_ends_for_a_key_that_came_by_the_daemon(stand: Stand) -> None:
    """The person's tool leaves it at once, with what was not read, and until the next one the daemon showed nothing."""
    viewer = await stand.viewer()
    way = await stand.way(viewer)
    way.begin(lambda: None)
    stand.program.prints(b"past it")
    await way.end()
    stand.program.prints(b" and after")
    async with asyncio.timeout(30):
        assert b"past it and after" in await anext(viewer.output())
    assert stand.person.overs == 1
    await way.end()
    stand.program.prints(b", not drawn again")
    async with asyncio.timeout(30):
        assert await anext(viewer.output()) == b", not drawn again"
    await viewer.close()


async def test_whoever_only_looks_and_an_older_keeper_have_none(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    looker = await stand.program.viewers.join(cols=COLS, rows=ROWS, read_only=True)
    assert await looker.direct(stand.person) is None
    viewer = await stand.viewer()
    stand.keeper.terminals = False
    assert await viewer.direct(stand.person) is None
    stand.keeper.terminals = True

    async def refuse(_path: object, _name: str) -> socket.socket:
        raise KeeperLost("as many terminals are joined as may be")

    monkeypatch.setattr(viewers_module, "join_terminal", refuse)
    assert await viewer.direct(stand.person) is None
