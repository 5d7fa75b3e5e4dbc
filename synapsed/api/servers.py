"""Owns every listener of the daemon: the main one, the Unix socket, one per agent's port."""

import os
import socket
import stat
from pathlib import Path

import structlog
from aiohttp import web

from synapsed.api.app import build_agent_app, build_main_app
from synapsed.api.context import ApiContext
from synapsed.errors import ConfigError

__all__ = ["ApiServers"]

SHUTDOWN_SECONDS = 2.0
"""What requests at work get before they are cancelled; streams end at once."""
BACKLOG = 256

log = structlog.get_logger("synapsed.api")


class ApiServers:
    """Starts and stops the listeners. Both applications share one `ApiContext`, so their streams are counted together.

    The owner has taken the daemon's lock before: a socket file that is there is nobody's.
    """

    def __init__(self, context: ApiContext) -> None:
        self._context = context
        self._main = _runner(build_main_app(context))
        self._agents = _runner(build_agent_app(context))
        self._ports: dict[int, web.SockSite] = {}
        self._unix: Path | None = None
        self._ready = False

    async def setup(self) -> None:
        """Make the applications ready; the `start_…` methods do it as well."""
        if not self._ready:
            self._ready = True
            await self._main.setup()
            await self._agents.setup()

    async def start_main(self, host: str, port: int) -> str:
        """Listen for TCP; gives `address:port` as a URL has it, the port a free one for 0. Raises ConfigError where it
        cannot be had."""
        await self.setup()
        site = web.TCPSite(self._main, host, port, backlog=BACKLOG)
        try:
            await site.start()
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {host}:{port}: {os.strerror(error.errno) if error.errno else error}; "
                "free the port, or set another with 'listen' under [api] of config.toml",
                key="api.listen",
            ) from error
        addresses = self._main.addresses
        bound = int(next(address[1] for address in reversed(addresses) if isinstance(address, tuple)))
        return self._listens(host, bound)

    async def start_main_on(self, sock: socket.socket) -> str:
        """Listen on a TCP socket that is bound already (socket activation); gives `address:port` as a URL has it."""
        await self.setup()
        await web.SockSite(self._main, sock, backlog=BACKLOG).start()
        host, port = sock.getsockname()[:2]
        return self._listens(str(host), int(port))

    def _listens(self, host: str, port: int) -> str:
        listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._context.listening.append(listen)
        return listen

    async def start_unix(self, path: Path) -> None:
        """Listen on the control socket: 0600, in a directory 0700 of one's own. Raises ConfigError where it is not."""
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
        await web.SockSite(self._main, sock, backlog=BACKLOG).start()

    async def start_unix_on(self, sock: socket.socket) -> None:
        """Listen on a Unix socket that is bound already (socket activation); its file is not ours to remove."""
        await self.setup()
        await web.SockSite(self._main, sock, backlog=BACKLOG).start()

    async def open_agent_port(self, sock: socket.socket) -> int:
        """Serve an agent's routes on `sock`, which is bound; gives its port. The site owns the socket from here on."""
        await self.setup()
        port = int(sock.getsockname()[1])
        site = web.SockSite(self._agents, sock, backlog=BACKLOG)
        await site.start()
        self._ports[port] = site
        return port

    async def close_agent_port(self, port: int) -> None:
        """Stop listening there; connections that are open end by themselves. Nothing happens for an unknown port."""
        if (site := self._ports.pop(port, None)) is not None:
            await site.stop()

    def end_streams(self) -> None:
        """End every stream and terminal, with word that the daemon goes. To be called before the agents are let go of:
        what they end with then is no news of theirs."""
        self._context.streams.close()

    async def close(self) -> None:
        """End the streams, then the listeners; requests at work get a moment."""
        self.end_streams()
        self._ports.clear()
        await self._agents.cleanup()
        await self._main.cleanup()
        if self._unix is not None:
            self._unix.unlink(missing_ok=True)


def _runner(app: web.Application) -> web.AppRunner:
    return web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS, handle_signals=False)


def _own_directory(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = directory.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise ConfigError(f"{directory}: must be a directory of your own, for the control socket", file=str(directory))
    if stat.S_IMODE(info.st_mode) != 0o700:
        directory.chmod(0o700)
