"""A person's terminal as frames on the Unix socket."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from synapsed.api import attached_terminals
from synapsed.api.connection_limits import ConnectionLimits
from synapsed.api.framed_terminal import IN_FLIGHT_MAX, FramedConnection
from synapsed.model.outer_terminal import OuterTerminal
from synapsed.shared.attach_frames import (
    COMMAND,
    EARLIER,
    FRAME_MAX,
    KEYS,
    NEWS,
    OUTPUT,
    SCREEN,
    FrameReader,
    frame,
)
from tests.api.serving import Api, serving
from tests.fakes.control import FakeAttachment, FakeControl
from tests.support.patience import PATIENCE_S

AGENT = "synapse-claude-8100"


class Frames:
    """An open terminal, read frame by frame."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._parser = FrameReader(1 << 20)
        self._came: list[tuple[int, bytes]] = []

    async def next(self) -> tuple[int, bytes]:
        """The next frame. Raises EOFError at the end."""
        async with asyncio.timeout(PATIENCE_S):
            while not self._came:
                data = await self.reader.read(65536)
                if not data:
                    raise EOFError
                self._came = [found for found in self._parser.feed(data) if not _is_attention(found)]
        return self._came.pop(0)

    def send(self, kind: int, payload: bytes) -> None:
        self.writer.write(frame(kind, payload))

    def command(self, **document: object) -> None:
        self.send(COMMAND, json.dumps(document).encode())


@asynccontextmanager
async def opened(api: Api, query: str = "", upgrade: str = "synapse-terminal") -> AsyncIterator[tuple[bytes, Frames]]:
    """The head of the answer, and the frames behind it."""
    reader, writer = await asyncio.open_unix_connection(str(api.path))
    try:
        writer.write(
            f"GET /agents/claude/terminal{query} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
            f"Upgrade: {upgrade}\r\n\r\n".encode()
        )
        async with asyncio.timeout(PATIENCE_S):
            head = await reader.readuntil(b"\r\n\r\n")
        yield head, Frames(reader, writer)
    finally:
        writer.close()


def _is_attention(found: tuple[int, bytes]) -> bool:
    """Told by itself, whenever it is known."""
    return found[0] == NEWS and json.loads(found[1])["type"] == "attention"


async def greeted(frames: Frames) -> None:
    kind, said = await frames.next()
    greeting = {"type": "attached", "id": AGENT, "name": "claude", "settings": {"status": True}, "one_screen": False}
    greeting["leases"] = True
    assert (kind, json.loads(said)) == (NEWS, greeting)
    assert await frames.next() == (SCREEN, b"\x1b[H\x1b[2Jscreen")


async def test_bytes_both_ways_and_commands(api: Api) -> None:
    async with opened(api, "?cols=100&rows=30") as (head, frames):
        assert head.startswith(b"HTTP/1.1 101")
        assert b"upgrade: synapse-terminal" in head.lower()
        await greeted(frames)
        (attachment,) = api.control.attachments
        assert (attachment.size, attachment.read_only) == ((100, 30), False)
        for data in (b"ls\r", b"\x00\xff\x1b[A", b"k" * 200_000):
            frames.send(KEYS, data)
            echo = b""
            while len(echo) < len(data):
                kind, piece = await frames.next()
                assert kind == OUTPUT
                echo += piece
            assert echo == data
        frames.send(0x7F, b"of a later version")
        frames.command(type="resize", cols=80, rows=25)
        frames.command(type="signal", signal="SIGINT")
        assert await frames.next() == (OUTPUT, b"\x03")
        assert attachment.size == (80, 25)
        frames.command(type="terminal", background=[250, 240, 230], cell=[11, 23], keyboard=True)
        frames.command(type="terminal", background="\x1b]11;rm\r")
        kind, said = await frames.next()
        assert (kind, "background must be" in said.decode()) == (NEWS, True)
        assert attachment.outer == OuterTerminal(None, (250, 240, 230), (11, 23), keyboard=True)
        frames.command(type="detach")
        with pytest.raises(EOFError):
            await frames.next()
    async with asyncio.timeout(PATIENCE_S):
        while not attachment.closed:
            await asyncio.sleep(0)


async def test_what_is_refused_is_told_and_the_terminal_goes_on(api: Api) -> None:
    async with opened(api, "?read_only=1") as (_, frames):
        await greeted(frames)
        frames.send(KEYS, b"x")
        frames.command(type="nonsense")
        for code in ("FORBIDDEN", "INVALID_REQUEST"):
            kind, said = await frames.next()
            assert (kind, json.loads(said)["error"]["code"]) == (NEWS, code)
        api.control.attachments[0].show(b"still there")
        assert await frames.next() == (OUTPUT, b"still there")


async def test_the_end_of_the_program(api: Api) -> None:
    async with opened(api) as (_, frames):
        await greeted(frames)
        api.control.attachments[0].show(b"bye")
        api.control.attachments[0].end()
        assert await frames.next() == (OUTPUT, b"bye")
        kind, said = await frames.next()
        assert (kind, json.loads(said)) == (NEWS, {"type": "exit", "exit_code": None})
        with pytest.raises(EOFError):
            await frames.next()


async def test_a_client_that_leaves_lets_go_of_the_agent(api: Api) -> None:
    async with opened(api) as (_, frames):
        await greeted(frames)
    (attachment,) = api.control.attachments
    async with asyncio.timeout(PATIENCE_S):
        while not attachment.closed:
            await asyncio.sleep(0)


async def test_each_terminal_gives_its_connection_s_place_back(control: FakeControl, tmp_path: Path) -> None:
    """Else the control socket refuses everybody after so many."""
    door = ConnectionLimits(tcp=12, listener=3)
    async with serving(control, tmp_path, door=door) as api:
        for count in range(1, door.listener + 2):
            async with opened(api) as (_, frames):
                await greeted(frames)
            async with asyncio.timeout(30):
                while not (len(control.attachments) == count and control.attachments[-1].closed):
                    await asyncio.sleep(0)
        async with api.unix.get("/healthz") as answer:
            assert answer.status == 200


async def _never(_: bytes) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("framed", [True, False])
async def test_one_that_leaves_while_the_program_reads_no_keys_lets_go_of_it(
    api: Api, monkeypatch: pytest.MonkeyPatch, framed: bool
) -> None:
    """The program hangs, says nothing, and takes no key: else its window would be that of a client that is gone."""
    monkeypatch.setattr(attached_terminals, "UNREAD_S", 0.5)
    monkeypatch.setattr(attached_terminals, "BEAT_S", 0.01)
    monkeypatch.setattr(FakeAttachment, "write", lambda _, data: _never(data))
    if framed:
        async with opened(api) as (_, frames):
            await greeted(frames)
            frames.send(KEYS, b"x")
    else:
        patience = aiohttp.ClientWSTimeout(ws_close=0.1)
        async with api.http.ws_connect("/agents/claude/terminal", timeout=patience) as terminal:
            await terminal.send_bytes(b"x")
    (attachment,) = api.control.attachments
    async with asyncio.timeout(PATIENCE_S):
        while not attachment.closed:
            await asyncio.sleep(0)


async def test_a_frame_that_is_too_long_ends_it(api: Api) -> None:
    async with opened(api) as (_, frames):
        await greeted(frames)
        frames.writer.write(bytes((KEYS,)) + (FRAME_MAX + 1).to_bytes(4))
        with pytest.raises((EOFError, ConnectionError)):
            await frames.next()


async def test_over_tcp_it_is_refused(api: Api) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "synapse-terminal"}
    async with api.http.get("/agents/claude/terminal", headers=headers) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["code"] == "INVALID_REQUEST"
    assert all(attachment.closed for attachment in api.control.attachments)


async def test_what_was_printed_before(api: Api) -> None:
    async with opened(api) as (_, frames):
        await greeted(frames)
        frames.command(type="earlier", bytes=1000)
        kind, said = await frames.next()
        assert (kind, json.loads(said)) == (NEWS, {"type": "earlier", "cols": 80, "rows": 24, "pieces": 2})
        assert await frames.next() == (EARLIER, b"above and here")
        assert (await frames.next())[0] == EARLIER
        frames.command(type="earlier", bytes=1 << 40)
        kind, said = await frames.next()
        assert (kind, json.loads(said)["error"]["code"]) == (NEWS, "INVALID_REQUEST")


async def test_how_many_need_a_person(api: Api) -> None:
    reader, writer = await asyncio.open_unix_connection(str(api.path))
    writer.write(
        b"GET /agents/claude/terminal HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: synapse-terminal\r\n\r\n"
    )
    parser, told = FrameReader(1 << 20), None
    async with asyncio.timeout(PATIENCE_S):
        await reader.readuntil(b"\r\n\r\n")
        while told is None:
            for kind, said in parser.feed(await reader.read(65536)):
                if _is_attention((kind, said)):
                    told = json.loads(said)
    assert told == {"type": "attention", "needs": 0, "here": False, "doing": "ready"}
    writer.close()
    await writer.wait_closed()


async def test_a_client_that_reads_nothing_is_let_go_of(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was stopped, or hangs: else it would count as attached, and its window as the program's, for ever."""
    monkeypatch.setattr(attached_terminals, "DOING_S", 0.01)
    monkeypatch.setattr(attached_terminals, "BEAT_S", 0.0)
    monkeypatch.setattr(attached_terminals, "UNREAD_S", 0.05)
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, str(api.path))
        await loop.sock_sendall(
            client,
            b"GET /agents/claude/terminal HTTP/1.1\r\nHost: x\r\n"
            b"Connection: Upgrade\r\nUpgrade: synapse-terminal\r\n\r\n",
        )
        async with asyncio.timeout(PATIENCE_S):
            while not (api.control.attachments and api.control.attachments[0].closed):
                await asyncio.sleep(0)


async def test_a_line_that_dies_in_silence_behind_a_tunnel_is_let_go_of(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tunnel reads what it cannot bring to the client; from there no answer to a lease comes any more."""
    monkeypatch.setattr(attached_terminals, "DOING_S", 0.01)
    monkeypatch.setattr(attached_terminals, "UNREAD_S", 0.3)
    async with opened(api) as (_, frames):
        frames.command(type="lease", lease=0)
        with suppress(EOFError, ConnectionError):
            while True:
                await frames.next()
        async with asyncio.timeout(PATIENCE_S):
            while not api.control.attachments[0].closed:
                await asyncio.sleep(0)


@pytest.mark.night
async def test_one_that_answers_its_leases_stays(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """For longer than the daemon waits for an answer, by the number of leases."""
    monkeypatch.setattr(attached_terminals, "DOING_S", 0.01)
    monkeypatch.setattr(attached_terminals, "GRANT_S", 0.1)
    monkeypatch.setattr(attached_terminals, "UNREAD_S", 4.0)
    async with opened(api) as (_, frames):
        frames.command(type="lease", lease=0)
        answered = 0
        while answered < 60:
            kind, payload = await frames.next()
            if kind == NEWS and (told := json.loads(payload))["type"] == "lease":
                frames.command(type="lease", lease=told["lease"])
                answered += 1
        assert not api.control.attachments[0].closed


class Unsent:
    """A transport with `unsent` bytes, which writes all others to a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.unsent = sock, 0

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def get_extra_info(self, _name: str) -> socket.socket:
        return self.sock

    def write(self, data: bytes) -> None:
        self.sock.send(data)


def test_whether_a_client_reads() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = FramedConnection(asyncio.Protocol(), lambda _kind, _payload: None)
        assert not connection.is_read(), "it has left"
        connection._transport = transport = Unsent(ours)  # type: ignore[assignment]  # what of one is asked for
        assert connection.is_read()
        connection.send(NEWS, b"x" * 100)
        assert not connection.is_read()
        theirs.recv(50)
        assert not connection.is_read(), "not all of it, which nothing tells from none"
        theirs.recv(1000)
        assert connection.is_read()
        connection.send(NEWS, b"x")
        connection._sent += IN_FLIGHT_MAX
        assert connection.is_read(), "so much waits nowhere"
        transport.unsent = IN_FLIGHT_MAX
        connection._sent += IN_FLIGHT_MAX
        assert not connection.is_read()
