"""The main listener and the control socket of the daemon. Each is served on a socket that the service manager has
bound, or on the daemon's own."""

import asyncio
import contextlib
import socket
from pathlib import Path

import structlog

from synapsed.api.servers import ApiServers
from synapsed.config.config import ApiConfig, Config
from synapsed.config.paths import Paths
from synapsed.config.sockets import why_not_our_folder
from synapsed.errors import ConfigError
from synapsed.process.loopback import other

PORT_RETRY_S = 1.0
"""Seconds between two attempts to get the main port."""

log = structlog.stdlib.get_logger("synapsed.daemon")


class Listeners:
    """Listeners of one daemon. `late_port`: a main port that is in use is waited for, and everything else is served
    meanwhile; otherwise it is an error."""

    def __init__(self, servers: ApiServers, config: Config, paths: Paths, *, late_port: bool) -> None:
        self._servers = servers
        self._api = config.api
        self._paths = paths
        self._late_port = late_port
        self._bound: dict[str, socket.socket] = {}
        """Sockets that the service manager has bound, by address."""

    async def main(self, inherited: list[socket.socket]) -> str:
        """Serves the main listener: on the service manager's socket, if that is the wanted address, else on a socket of
        our own. Returns its address, or an empty text if the port is to be taken later. Raises ConfigError."""
        address, port = self._api.address, self._api.port
        for sock in inherited:
            at = sock.getsockname()
            if at[0] in (address, other(address)) and at[1] == port:
                self._bound[at[0]] = sock
            else:
                log.warning(
                    "the service's HTTP socket is not what the configuration says: 'synapsectl install' writes it again"
                )
                sock.close()
        try:
            return await self._servers.start_main(address, port, bound=self._bound)
        except ConfigError as error:
            if not self._late_port:
                raise
            log.error("the main port is not served yet", why=error.message)  # noqa: TRY400 - said in words
            self._servers.alert(_without_port(self._api))
            return ""

    async def main_later(self) -> None:
        """Listens at the main port as soon as it is free."""
        while True:
            await asyncio.sleep(PORT_RETRY_S)
            try:
                listen = await self._servers.start_main(self._api.address, self._api.port, bound=self._bound)
            except ConfigError:
                continue
            self._servers.settle(_without_port(self._api))
            log.info("the main port is served now", listen=listen)
            return

    async def control(self, inherited: list[socket.socket]) -> None:
        """Serves the control socket: on the service manager's socket, if that is at the expected place."""
        for sock in inherited:
            await self._servers.start_unix_on(sock)
        if not inherited or not await asyncio.to_thread(_answers, self._paths.control_socket):
            await self._servers.start_unix(self._paths.control_socket)


def lead_here(before: Path, paths: Paths) -> None:
    """Makes clients of the former daemon, whose control socket was `before`, find this one's sockets, by symbolic
    links: the agents of the former daemon live on, and know its paths. Does nothing if the folders are the same, or if
    a process listens at `before`."""
    folder = before.parent
    if folder == paths.sockets or not folder.is_dir() or why_not_our_folder(str(folder)) or _answers(before):
        return
    for place in (paths.control_socket, paths.hooks_socket, paths.decide_socket):
        with contextlib.suppress(OSError):  # then reports wait for a sweep, and questions go to a person
            link = folder / place.name
            link.unlink(missing_ok=True)
            link.symlink_to(place)


def _without_port(api: ApiConfig) -> str:
    return (
        f"{api.listen} cannot be listened on: the control socket and the agents' ports are served without it, "
        "and it is taken once it is free; or set another with 'listen' under [api] of config.toml, and restart"
    )


def _answers(path: Path) -> bool:
    """Returns True if a process listens there. None does if a daemon that was started by hand has replaced the service
    manager's socket by its own, and is gone."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:  # its queue is full
            return True
        except OSError:
            return False
    return True
