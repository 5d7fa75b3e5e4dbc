"""The agents' ports: an agent owns its port because the daemon binds it.

A claimed port is bound on 127.0.0.1 and on ::1 (`loopback`) and does not listen: no other program can get it, and
connections are refused until it is announced. On Linux SO_REUSEADDR has two effects: without the option, a port that
has connections in TIME_WAIT (the last daemon was killed) cannot be bound; with it, a second program that sets it too
can bind the same port as long as no program listens. So a port is bound without the option first, which excludes all
others; if that fails, it is bound with the option and listens at once, which only one program can. `announceable` sets
the option before the port is handed to a server, so that the connections accepted there do not prevent the next daemon
from binding it.
"""

import errno
import socket
from collections.abc import Iterable, Mapping
from itertools import chain

from synapsed.errors import AgentError, PortsExhausted
from synapsed.process.loopback import LOOPBACK, hold_other, tcp_socket

COMMON = range(8200, 9000)
"""Ports that an agent of any profile may get if the profile's range has no free one left."""

_BACKLOG = 128
_NAMED_MAX = 10
"""Largest number of holders of ports that an error's message names; its details have all of them."""


class Ports:
    """The ports of one daemon's agents. With `listen` false nothing is bound: they only differ."""

    def __init__(self, *, listen: bool) -> None:
        self._listen = listen
        self._owners: dict[int, str] = {}
        self._sockets: dict[int, list[socket.socket]] = {}
        self._hosts: dict[int, str] = {}

    def owner(self, port: int) -> str | None:
        """Returns the name of the agent that has `port`."""
        return self._owners.get(port)

    def host(self, port: int) -> str | None:
        """Returns the host to publish for `port`, whose sockets were bound: `localhost`, or 127.0.0.1 if another
        program has it at ::1. None if another program has it."""
        return self._hosts.get(port)

    def claim(self, name: str, wanted: Iterable[int], *, listed: str) -> int:
        """Returns the first free port of `wanted`, for agent `name`: at both addresses of `localhost`, if there is one.
        `listed` describes the wanted ports, for the error. Raises PortsExhausted with the holder of each."""
        holders: dict[int, str] = {}
        half: int | None = None
        for port in wanted:
            if (other := self._owners.get(port)) is not None:
                holders[port] = other
            elif not self._listen:
                self._owners[port] = name
                return port
            elif not self._hold(port):
                holders[port] = "another program"
            elif self._hosts[port] != LOOPBACK:
                if half is not None:
                    self.release(half)
                self._owners[port] = name
                return port
            elif half is None:
                half = port
            else:
                self.release(port)
        if half is not None:
            self._owners[half] = name
            return half
        which = f"no port is left for {name} of {listed}" if len(holders) != 1 else f"{name} cannot have port {listed}"
        raise PortsExhausted(
            f"{which}: {_who(holders)}; name another with --port, start it without one (--no-port), or free one with "
            "'synapsectl stop AGENT --remove'",
            ports=listed,
            holders={str(port): name for port, name in sorted(holders.items())},
        )

    def reclaim(self, name: str, port: int) -> None:
        """Takes the port that `name` had under the last daemon. It stays the agent's (its id holds the number) even if
        another program has it now; in that case there is no socket."""
        self._owners[port] = name
        if self._listen and port not in self._hosts:
            self._hold(port)

    def _hold(self, port: int) -> bool:
        """Binds `port`; returns False if another program has it."""
        if (sock := _bind(LOOPBACK, port)) is None:
            return False
        try:
            second, self._hosts[port] = hold_other(LOOPBACK, port, _bind)
        except BaseException:
            sock.close()
            raise
        self._sockets[port] = [sock] if second is None else [sock, second]
        return True

    def rename(self, port: int, name: str) -> None:
        """Changes the name under which the port was claimed."""
        self._owners[port] = name

    def release(self, port: int) -> None:
        """Frees the port. Its sockets are closed, unless they were taken."""
        self._owners.pop(port, None)
        self._hosts.pop(port, None)
        for sock in self.take(port):
            sock.close()

    def take(self, port: int) -> list[socket.socket]:
        """Returns the bound sockets of `port`, which belong to the caller from now on; an empty list if no socket is
        bound (any more)."""
        return self._sockets.pop(port, [])

    def close(self) -> None:
        for sock in chain.from_iterable(self._sockets.values()):
            sock.close()
        self._sockets.clear()


def announceable(sock: socket.socket) -> socket.socket:
    """Returns `sock`, ready to listen."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return sock


def _bind(address: str, port: int) -> socket.socket | None:
    """Returns a socket that owns `port` at `address`; None if another program owns it. Raises AgentError, OSError for
    other refusals."""
    for reuse in (False, True):
        sock = tcp_socket(address)
        try:
            sock.setblocking(False)
            if reuse:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address, port))
            if reuse:
                sock.listen(_BACKLOG)
        except OSError as error:
            sock.close()
            if error.errno == errno.EADDRINUSE:
                continue
            if error.errno == errno.EACCES:
                raise AgentError(f"port {port} may not be bound: {error.strerror}", port=port) from None
            raise
        return sock
    return None


def _who(holders: Mapping[int, str]) -> str:
    first = [f"{name} has {port}" for port, name in sorted(holders.items())[:_NAMED_MAX]]
    more = [f"and {len(holders) - _NAMED_MAX} more are taken"] if len(holders) > _NAMED_MAX else []
    return ", ".join([*first, *more]) or "the range is empty"
