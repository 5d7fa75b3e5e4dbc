"""A person's terminal on an agent: keys there, output here, until one of them leaves.

The agent lives in its keeper: when the daemon goes away the viewer waits for the next one and goes on with a redraw.
"""

import asyncio
import json
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import aiohttp

from synapsectl.client import Client, agent_path
from synapsectl.keys import Key, KeyFilter
from synapsectl.tty import Terminal

__all__ = [
    "RECONNECT",
    "Detached",
    "Ending",
    "Exited",
    "HandshakeRefused",
    "Killed",
    "Lost",
    "Viewer",
    "open_session",
    "open_socket",
]

RECONNECT = 10.0
"""Seconds that the daemon may be away: one that was killed is back within two (DESIGN §9)."""

RETRY = 0.1
"""Seconds between two attempts to reach it."""

CLOSE_DEADLINE = 0.5
"""Seconds for the daemon to take our leave; it notices ours anyway."""

FRAME_MAX = 32 * 1024
"""Bytes of keys in one frame."""

INPUT_MAX = 1024 * 1024
"""Bytes typed or pasted that wait for the agent; beyond them the terminal waits."""

MESSAGE_MAX = 64 * 1024 * 1024
"""Bytes of one message of the daemon's."""

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


@dataclass(frozen=True, slots=True)
class Detached:
    """The person left; the agent goes on."""


@dataclass(frozen=True, slots=True)
class Exited:
    """The program ended for good; `code` is negative for a signal, None where it is not known."""

    code: int | None


@dataclass(frozen=True, slots=True)
class Lost:
    """The daemon stayed away."""

    reason: str


@dataclass(frozen=True, slots=True)
class Killed:
    """This process was told to end."""

    signum: int


Ending = Detached | Exited | Lost | Killed


class HandshakeRefused(Exception):
    """The daemon did not open the terminal."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


async def open_socket(
    session: aiohttp.ClientSession, agent: str, *, cols: int, rows: int, read_only: bool
) -> aiohttp.ClientWebSocketResponse:
    """The WebSocket of the agent's terminal. Raises aiohttp.ClientError."""
    query = {"cols": str(cols), "rows": str(rows)} | ({"read_only": "1"} if read_only else {})
    return await session.ws_connect(
        f"http://localhost{agent_path(agent, 'terminal')}",
        params=query,
        max_msg_size=MESSAGE_MAX,
        timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_DEADLINE),
    )


def open_session(client: Client) -> aiohttp.ClientSession:
    """A session on the daemon's Unix socket."""
    headers = {"Authorization": f"Bearer {client.token}"} if client.token else {}
    return aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=client.socket_path), headers=headers)


class Viewer:
    """One attached terminal. `agent` is the agent's id, which stays the same over a restart of the daemon."""

    def __init__(
        self, *, client: Client, agent: str, terminal: Terminal, detach: Sequence[Key], read_only: bool
    ) -> None:
        self._client = client
        self._agent = agent
        self._terminal = terminal
        self._filter = KeyFilter(detach)
        self._read_only = read_only
        self._typed = bytearray()
        self._resized = False
        self._wake = asyncio.Event()
        self._flush: asyncio.TimerHandle | None = None
        self._reading = False

    async def run(self) -> Ending:
        """Attach, until it ends; the terminal is the person's again when this returns.

        Raises HandshakeRefused, or aiohttp.ClientError where the first connection fails: nothing was touched then."""
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Ending] = loop.create_future()
        for signum in ENDING_SIGNALS:
            loop.add_signal_handler(signum, self._end, Killed(signum))
        async with open_session(self._client) as session:
            socket = await self._connect(session)
            with self._terminal:
                loop.add_signal_handler(signal.SIGWINCH, self._on_resize)
                self._read_on(on=True)
                talk = asyncio.create_task(self._talk(session, socket))
                try:
                    await asyncio.wait({talk, self._ended}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    self._deafen(loop)
            # Only now, that the person has the terminal back, the daemon is told, which may take its time.
            talk.cancel()
            await asyncio.wait({talk})
            return self._ended.result() if self._ended.done() else talk.result()

    # --- the terminal's side ----------------------------------------------------------------------------------------

    def _deafen(self, loop: asyncio.AbstractEventLoop) -> None:
        self._read_on(on=False)
        if self._flush is not None:
            self._flush.cancel()
        loop.remove_signal_handler(signal.SIGWINCH)

    def _read_on(self, *, on: bool) -> None:
        loop = asyncio.get_running_loop()
        if on and not self._reading:
            loop.add_reader(self._terminal.fileno(), self._on_readable)
        elif not on and self._reading:
            loop.remove_reader(self._terminal.fileno())
        self._reading = on

    def _end(self, ending: Ending) -> None:
        if not self._ended.done():
            self._ended.set_result(ending)

    def _on_resize(self) -> None:
        self._resized = True
        self._wake.set()

    def _on_readable(self) -> None:
        data = self._terminal.read()
        if data is None:
            return
        if not data:
            self._end(Killed(signal.SIGHUP))
            return
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        passed = self._filter.feed(data)
        self._type(passed.data)
        if passed.detached:
            self._end(Detached())
        elif self._filter.hold is not None:
            self._flush = asyncio.get_running_loop().call_later(self._filter.hold, self._on_flush)

    def _on_flush(self) -> None:
        self._flush = None
        self._type(self._filter.flush())

    def _type(self, data: bytes) -> None:
        if not data or self._read_only:
            return
        self._typed += data
        self._wake.set()
        if len(self._typed) > INPUT_MAX:
            self._read_on(on=False)

    # --- the daemon's side ------------------------------------------------------------------------------------------

    async def _connect(self, session: aiohttp.ClientSession) -> aiohttp.ClientWebSocketResponse:
        cols, rows = self._terminal.size()
        try:
            return await open_socket(session, self._agent, cols=cols, rows=rows, read_only=self._read_only)
        except aiohttp.WSServerHandshakeError as error:
            raise HandshakeRefused(error.status) from None

    async def _talk(self, session: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse) -> Ending:
        """Converse over `socket`, and over the next one when it breaks, until the agent or the time for that ends."""
        while True:
            try:
                ending = await self._converse(socket)
            finally:
                await socket.close()
            if ending is not None:
                return ending
            again = await self._reconnect(session)
            if isinstance(again, Lost):
                return again
            socket = again

    async def _reconnect(self, session: aiohttp.ClientSession) -> aiohttp.ClientWebSocketResponse | Lost:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RECONNECT
        await self._say("the daemon is away; waiting for it")
        while True:
            # Also before the first attempt: a daemon that just let go of us is not asked again and again.
            await asyncio.sleep(RETRY)
            try:
                return await self._connect(session)
            except (HandshakeRefused, aiohttp.ClientError, ConnectionError) as error:
                if loop.time() > deadline:
                    return Lost(str(error))

    async def _converse(self, socket: aiohttp.ClientWebSocketResponse) -> Ending | None:
        """Both directions, until the daemon ends it; None when the connection broke."""
        keys = asyncio.create_task(self._send_keys(socket))
        try:
            return await self._show_output(socket)
        finally:
            keys.cancel()
            await asyncio.gather(keys, return_exceptions=True)
            if self._ended.done() and isinstance(self._ended.result(), Detached):
                with suppress(TimeoutError, aiohttp.ClientError, ConnectionError):
                    await asyncio.wait_for(socket.send_json({"type": "detach"}), CLOSE_DEADLINE)

    async def _show_output(self, socket: aiohttp.ClientWebSocketResponse) -> Ending | None:
        async for message in socket:
            if message.type is aiohttp.WSMsgType.BINARY:
                await self._show(message.data)
            elif message.type is aiohttp.WSMsgType.TEXT:
                match _parse(message.data):
                    case {"type": "exit", "exit_code": int(code)}:
                        return Exited(code)
                    case {"type": "exit"}:
                        return Exited(None)
        return None

    async def _show(self, data: bytes) -> None:
        try:
            await self._terminal.write(data)
        except OSError:
            # Hung up; or given back already, and this ending comes too late to count.
            self._end(Killed(signal.SIGHUP))

    async def _send_keys(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Keys typed while the daemon was away go to the next one."""
        if self._typed:
            self._wake.set()
        with suppress(aiohttp.ClientError, ConnectionError):
            while True:
                await self._wake.wait()
                self._wake.clear()
                if self._resized:
                    self._resized = False
                    cols, rows = self._terminal.size()
                    await socket.send_json({"type": "resize", "cols": cols, "rows": rows})
                while self._typed:
                    frame = bytes(self._typed[:FRAME_MAX])
                    await socket.send_bytes(frame)
                    del self._typed[: len(frame)]
                    self._read_on(on=not self._ended.done())

    async def _say(self, text: str) -> None:
        """A line over the last one of the screen; the next redraw takes it away."""
        await self._show(b"\x1b7\x1b[999;1H\x1b[0;7m " + text.encode() + b" \x1b[0m\x1b[K\x1b8")


def _parse(text: str) -> object:
    """A text frame; what is no JSON says nothing, like what a newer daemon may say."""
    try:
        return json.loads(text)
    except ValueError:
        return None
