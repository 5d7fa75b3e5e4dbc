"""Persons' terminals that are joined to a real keeper: what passes, what is handed over, and what ends them."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from synapsed.errors import KeeperLost
from synapsed.keeper import terminals
from synapsed.keepers.client import KeeperClient
from synapsed.keepers.keeper_messages import Output, TerminalKeys
from synapsed.keepers.launchers import LaunchedKeeper
from synapsed.pty.direct_viewer import join_terminal
from tests.keeper.conftest import DEADLINE_S, Lab, Watcher

RAW = "import os,tty\ntty.setraw(0)\nos.write(1,b'ready ')\nwhile True: os.write(1,os.read(0,4096))"
"""Gives back what it reads."""


@pytest.fixture
async def join(lab: Lab) -> AsyncIterator[Callable[..., Awaitable["Joined"]]]:
    """Joins a terminal to a keeper, and closes it in the end."""
    opened: list[Joined] = []

    async def join(keeper: LaunchedKeeper) -> Joined:
        opened.append(await Joined.to(lab, keeper))
        return opened[-1]

    yield join
    for each in opened:
        each.close()


Join = Callable[[LaunchedKeeper], Awaitable["Joined"]]


class Joined:
    """A terminal that is joined, and the connection of the daemon that it belongs to."""

    def __init__(self, lent: socket.socket, owner: Watcher, name: str) -> None:
        self.lent, self.owner, self.name = lent, owner, name
        self.shown = b""

    @classmethod
    async def to(cls, lab: Lab, keeper: LaunchedKeeper, name: str = "t1") -> "Joined":
        owner = await lab.watch(keeper)
        await owner.until_output(b"ready ")
        return cls(await join_terminal(keeper.socket_path, name), owner, name)

    def begin(self, offset: int = 0, *, opens: bool = True) -> None:
        self.client.dealt_with(self.name, 0, opens=opens, offset=offset)

    def close(self) -> None:
        self.lent.close()

    @property
    def client(self) -> KeeperClient:
        return self.owner.client

    def type(self, data: bytes) -> None:
        self.lent.setblocking(True)
        self.lent.sendall(data)
        self.lent.setblocking(False)

    async def shows(self, wanted: bytes) -> None:
        while wanted not in self.shown:
            data = await self._read()
            assert data, f"over after {self.shown!r}"
            self.shown += data

    async def rest(self) -> bytes:
        while data := await self._read():
            self.shown += data
        return self.shown

    async def _read(self) -> bytes:
        async with asyncio.timeout(DEADLINE_S):
            return await asyncio.get_running_loop().sock_recv(self.lent, 65536)

    @property
    def keys(self) -> list[tuple[bytes, bool]]:
        """What was told, runs of the same kind as one: in which pieces they come is the kernel's."""
        told: list[tuple[bytes, bool]] = []
        for event in self.owner.events:
            if isinstance(event, TerminalKeys):
                assert event.terminal == self.name
                if told and told[-1][1] == event.typed:
                    told[-1] = (told[-1][0] + event.data, event.typed)
                else:
                    told.append((event.data, event.typed))
        return told

    async def told(self, *wanted: tuple[bytes, bool]) -> None:
        await self.owner.until(lambda: self.keys == list(wanted))


async def test_text_passes_and_is_told_and_output_comes_as_bytes(lab: Lab, join: Join) -> None:
    joined = await join(await lab.python(RAW))
    assert joined.client.hello.terminals
    joined.begin(2)
    joined.type("añ\x03\x7f".encode())
    await joined.shows("ady añ\x03\x7f".encode())
    assert joined.shown.startswith(b"ady ")
    await joined.told(("añ\x03\x7f".encode(), True))
    await joined.owner.until_output(b"\x7f")
    first = next(n for n, event in enumerate(joined.owner.events) if isinstance(event, TerminalKeys))
    before = b"".join(event.data for event in joined.owner.events[:first] if isinstance(event, Output))
    assert before == b"ready ", "word of a key comes before its echo"


async def test_any_other_key_is_handed_over_and_nothing_overtakes_it(lab: Lab, join: Join) -> None:
    joined = await join(await lab.python(RAW))
    joined.begin()
    joined.type(b"x")
    await joined.shows(b"x")
    joined.type(b"\r")
    await joined.told((b"x", True), (b"\r", False))
    joined.type(b"b")  # behind the Enter
    await joined.told((b"x", True), (b"\rb", False))
    await joined.client.write(b"<enter>")
    joined.client.dealt_with(joined.name, 1, opens=True)  # of two bytes: it stays shut
    joined.type(b"c")
    await joined.told((b"x", True), (b"\rbc", False))
    await joined.client.write(b"<b><c>")
    joined.client.dealt_with(joined.name, 3, opens=True)
    await joined.client.ping()
    joined.type(b"d")
    await joined.shows(b"x<enter><b><c>d")


async def test_before_it_is_shut_all_that_was_pressed_is_told(lab: Lab, join: Join) -> None:
    joined = await join(await lab.python(RAW))
    joined.begin()
    await joined.client.ping()
    joined.type(b"abc")
    await joined.client.shut_terminal(joined.name)
    assert joined.keys == [(b"abc", True)]
    joined.type(b"d")
    await joined.client.write(b"<message>")
    await joined.told((b"abc", True), (b"d", False))
    await joined.shows(b"abc<message>")
    assert b"d" not in joined.shown.partition(b"abc")[2]


async def test_no_key_is_read_before_it_has_begun(lab: Lab, join: Join) -> None:
    joined = await join(await lab.python(RAW))
    joined.type(b"early")
    await joined.client.ping()
    assert joined.keys == []
    joined.begin(opens=False)
    await joined.told((b"early", False))


async def test_one_that_ends_loses_no_key(lab: Lab, join: Join) -> None:
    joined = await join(await lab.python(RAW))
    joined.begin()
    await joined.client.ping()
    joined.type(b"before\x1b[A")
    await joined.client.shut_terminal(joined.name, end=True)
    assert b"".join(data for data, _ in joined.keys) == b"before\x1b[A"
    assert b"ready " in await joined.rest()
    joined.type(b"after")  # it has not seen yet that it is over
    joined.lent.close()
    await joined.owner.until(lambda: b"".join(data for data, _ in joined.keys) == b"before\x1b[Aafter")
    assert joined.keys[-1] == (b"\x1b[Aafter" if joined.keys[0][1] else b"before\x1b[Aafter", False)
    await joined.client.shut_terminal(joined.name)  # of one that is gone there is nothing to wait for


async def test_the_end_of_the_program_is_the_end_of_its_output(lab: Lab, join: Join) -> None:
    code = "import os,tty\ntty.setraw(0)\nos.write(1,b'ready ')\nos.read(0,1)\nos.write(1,b'.'*200000+b'last words')"
    joined = await join(await lab.python(code))
    joined.begin()
    joined.type(b"x")
    assert (await joined.rest()).endswith(b"..last words")
    assert len(joined.shown) == len("ready ") + 200_000 + len("last words")


async def test_when_the_daemon_goes_it_ends_and_text_that_was_sent_counts(lab: Lab, join: Join) -> None:
    keeper = await lab.python(RAW)
    joined = await join(keeper)
    joined.begin()
    await joined.client.ping()
    joined.type(b"typed")
    joined.client.close()
    await joined.rest()
    successor = await lab.watch(keeper)
    await successor.until_output(b"ready typed")


async def test_one_that_lags_is_let_go_and_one_whose_program_does_not_read_waits(lab: Lab, join: Join) -> None:
    flood = "import os,sys\nos.write(1,b'ready ')\nsys.stdin.readline()\nfor _ in range(64): os.write(1,b'x'*65536)\n"
    joined = await join(await lab.python(flood))
    joined.begin()
    await joined.client.write(b"go\n")
    await joined.owner.until(lambda: len(joined.owner.output) > 3 * terminals.LAG_MAX)
    assert len(await joined.rest()) < 2 * terminals.LAG_MAX + 300_000


async def test_at_most_so_many(lab: Lab) -> None:
    keeper = await lab.python(RAW)
    lent = [await join_terminal(keeper.socket_path, f"t{n}") for n in range(terminals.MAX_TERMINALS)]
    with pytest.raises(KeeperLost, match="as many terminals are joined as may be"):
        await join_terminal(keeper.socket_path, "more")
    for each in lent:
        each.close()
    with pytest.raises(KeeperLost, match="letters and digits"):
        await join_terminal(keeper.socket_path, "a b")


async def test_a_program_on_pipes_has_no_terminal(lab: Lab) -> None:
    keeper = await lab.shell("exec cat", transport="pipes")
    with pytest.raises(KeeperLost, match="runs on pipes"):
        await join_terminal(keeper.socket_path, "t1")
