"""Owns every listener of the daemon: the main one, the Unix socket, one per agent's port."""

import asyncio
import errno
import os
import socket
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from synapsed.aio import stop_listening
from synapsed.api.app import build_agent_app, build_main_app
from synapsed.api.connection_limits import ConnectionLimiter, GuardedConnection
from synapsed.api.context import ApiContext
from synapsed.api.early_refusals import speaking
from synapsed.api.problems import plain_problem
from synapsed.errors import ConfigError
from synapsed.kernel import CountedConnection, PartListener
from synapsed.process.loopback import hold_other, host_port

SHUTDOWN_SECONDS = 2.0
"""Seconds that requests which are being worked on get before they are cancelled; streams end at once."""
BACKLOG = 256
"""Connections that wait to be accepted."""
AT_ONCE = 4
"""Connections that a listener accepts in one turn of the loop: one that is refused is closed in the next."""


class ApiServers:
    """Starts and stops the listeners, whose connections go through `door`. Both applications share one `ApiContext`, so
    that their streams are counted together. The caller has taken the daemon's lock before, so no other process serves a
    socket file that exists."""

    def __init__(self, context: ApiContext, door: ConnectionLimiter) -> None:
        self.context = context
        self._door = door
        self._main = _runner(build_main_app(context))
        self._agents = _runner(build_agent_app(context))
        self._protocols: dict[web.AppRunner, Callable[[], asyncio.Protocol]] = {}
        self._listeners: list[asyncio.Server] = []
        self._ports: dict[int, list[asyncio.Server]] = {}
        self._of_parts: list[PartListener] = []
        self._unix: Path | None = None
        self._ready = False

    async def setup(self) -> None:
        """Prepares the applications; the `start_…` methods do it as well."""
        if not self._ready:
            self._ready = True
            for runner in (self._main, self._agents):
                await runner.setup()
                assert runner.server is not None
                self._protocols[runner] = speaking(runner.server, asyncio.get_running_loop())

    async def start_main(self, address: str, port: int, *, bound: Mapping[str, socket.socket] | None = None) -> str:
        """Listens for TCP, at both addresses of `localhost` if `address` is one of them and the other is free; returns
        `address:port` as a URL has it, with the real port for 0. `bound`: sockets that are bound already (socket
        activation), by their addresses. Raises ConfigError if it is in use."""
        await self.setup()
        there = bound or {}
        try:
            first = there.get(address) or _bind(address, port)
            port = int(first.getsockname()[1])
            second, host = hold_other(address, port, lambda twin, port: there.get(twin) or _bind_if_free(twin, port))
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {address}:{port}: {os.strerror(error.errno) if error.errno else error}; "
                "free the port, or set another with 'listen' under [api] of config.toml",
                key="api.listen",
            ) from error
        context = self.context
        for sock in (first, second):
            if sock is not None:
                await self._listen(self._main, sock)
                context.listening.append(host_port(sock.getsockname()[0], port))
        context.place = host_port(host, port)
        return context.listening[0]

    # --- for listeners of parts (`kernel.Serving`) ---

    @property
    def head(self) -> float:
        return self._door.limits.head

    @property
    def handshakes(self) -> int:
        return self._door.limits.handshakes

    def bind(self, address: str, port: int) -> list[socket.socket]:
        sockets: list[socket.socket] = []
        try:
            for one in ("0.0.0.0", "::") if address == "::" else (address,):  # noqa: S104 - the user has asked for it
                sockets.append(_bind(one, int(sockets[0].getsockname()[1]) if sockets else port))
            second, _ = hold_other(address, int(sockets[0].getsockname()[1]), _bind_if_free)
        except OSError:
            for sock in sockets:
                sock.close()
            raise
        return sockets if second is None else [*sockets, second]

    def admit(self, peer: Any, own: Any, listener: str) -> CountedConnection | None:
        counted = self._door.admit_tcp(peer, own, listener)
        make = self._protocols[self._main]
        return None if counted is None else GuardedConnection(self._door, make, listener, counted=counted)

    def is_host(self, host: str) -> bool:
        return self.context.security.is_host(host)

    def refusal(self, message: str) -> bytes:
        body = plain_problem(400, "INVALID_REQUEST", message).body
        return body if isinstance(body, bytes) else b""

    def add(self, listener: PartListener) -> None:
        self._of_parts.append(listener)

    async def _listen(self, runner: web.AppRunner, sock: socket.socket) -> asyncio.Server:
        unix = sock.family == socket.AF_UNIX
        name = "control socket" if unix else f"port {sock.getsockname()[1]}"
        make = self._door.at(self._protocols[runner], name, unix=unix)
        server = await asyncio.get_running_loop().create_server(make, backlog=AT_ONCE, sock=sock)
        sock.listen(BACKLOG)  # asyncio has only one number for both
        self._listeners.append(server)
        return server

    async def start_unix(self, path: Path) -> None:
        """Listens on the control socket: 0600, in a directory 0700 of its own. Raises ConfigError if it is not."""
        await self.setup()
        _own_directory(path.parent)
        path.unlink(missing_ok=True)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # the socket must never be open to others, not even between bind and chmod
        try:
            sock.bind(str(path))
        except OSError as error:
            sock.close()
            raise ConfigError(f"{path}: cannot bind the control socket: {error.strerror or error}") from error
        finally:
            os.umask(before)
        self._unix = path
        await self._listen(self._main, sock)

    async def start_unix_on(self, sock: socket.socket) -> None:
        """Listens on a Unix socket that is bound already (socket activation); its file is not ours to remove."""
        await self.setup()
        await self._listen(self._main, sock)

    async def open_agent_port(self, sock: socket.socket) -> int:
        """Serves an agent's routes on `sock`, which is bound; returns its port. The socket belongs to this object from
        now on. A port has two of them if both addresses of `localhost` are held."""
        await self.setup()
        port = int(sock.getsockname()[1])
        self._ports.setdefault(port, []).append(await self._listen(self._agents, sock))
        return port

    async def close_agent_port(self, port: int) -> None:
        """Stops listening at an agent's port; open connections end by themselves. Does nothing for an unknown port."""
        for server in self._ports.pop(port, []):
            self._listeners.remove(server)
            await stop_listening(server)

    def alert(self, message: str) -> None:
        """Adds an error of the daemon itself, which `status` shows from now on."""
        if message not in self.context.alerts:
            self.context.alerts.append(message)

    def settle(self, message: str) -> None:
        """Withdraws an error of `alert`."""
        if message in self.context.alerts:
            self.context.alerts.remove(message)

    def end_streams(self) -> None:
        """Ends every stream and terminal, with a message that the daemon ends. Call it before the agents are released,
        so that the daemon's end is not reported as theirs."""
        self.context.streams.closing.set()

    async def close(self) -> None:
        """Ends the streams, then the listeners; requests that are being worked on get a moment (`SHUTDOWN_SECONDS`)."""
        self.end_streams()
        self._ports.clear()
        while self._of_parts:
            await self._of_parts.pop().close()
        while self._listeners:
            await stop_listening(self._listeners.pop())
        await self._agents.cleanup()
        await self._main.cleanup()
        self._door.close()
        if self._unix is not None:
            self._unix.unlink(missing_ok=True)


def _runner(app: web.Application) -> web.AppRunner:
    return web.AppRunner(app, shutdown_timeout=SHUTDOWN_SECONDS, handle_signals=False)


def _bind(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=BACKLOG)


def _bind_if_free(address: str, port: int) -> socket.socket | None:
    try:
        return _bind(address, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return None
        raise


def _own_directory(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = directory.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise ConfigError(f"{directory}: must be a directory of your own, for the control socket", file=str(directory))
    if stat.S_IMODE(info.st_mode) != 0o700:
        directory.chmod(0o700)
