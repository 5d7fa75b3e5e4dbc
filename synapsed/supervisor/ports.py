"""The agents' ports: a port is owned by binding it.

A claimed port is bound on 127.0.0.1 and does not listen: it is nobody else's, and connections are refused until it is
announced. On Linux SO_REUSEADDR cuts both ways: without it a port that has connections in TIME_WAIT (the last daemon
was killed) cannot be bound; with it a second program that sets it too can bind the same port as long as nobody
listens. So a port is bound without it first, which excludes everyone; where that fails it is bound with it and listens
at once, which only one can. `announceable` sets it before the port is handed to a server, so that the connections
accepted there will not be in the way of the next daemon.
"""

import errno
import socket
from collections.abc import Iterable, Mapping

from synapsed.errors import AgentError, PortsExhausted

LOOPBACK = "127.0.0.1"

COMMON = range(8200, 9000)
"""The ports of agents for which their profile's range has none left, whatever the profile."""

_BACKLOG = 128
_NAMED_MAX = 10
"""Holders of ports that an error names in words; its details have all of them."""


class Ports:
    """The ports of one daemon's agents. With `listen` false they are only numbers, kept apart here."""

    def __init__(self, *, listen: bool) -> None:
        self._listen = listen
        self._owners: dict[int, str] = {}
        self._sockets: dict[int, socket.socket] = {}

    def owner(self, port: int) -> str | None:
        """The name of the agent that has `port`."""
        return self._owners.get(port)

    def claim(self, name: str, wanted: Iterable[int], *, listed: str) -> tuple[int, socket.socket | None]:
        """The first of the ports `wanted` that can be had, for agent `name`, and its bound socket (None where nothing
        listens). `listed` says what is wanted, for the error. Raises PortsExhausted with who has which."""
        holders: dict[int, str] = {}
        for port in wanted:
            if (other := self._owners.get(port)) is not None:
                holders[port] = other
                continue
            if not self._listen:
                self._owners[port] = name
                return port, None
            if (sock := _bind(port)) is None:
                holders[port] = "another program"
                continue
            self._owners[port] = name
            self._sockets[port] = sock
            return port, sock
        which = f"no port is left for {name} of {listed}" if len(holders) != 1 else f"{name} cannot have port {listed}"
        raise PortsExhausted(
            f"{which}: {_who(holders)}; name another with --port, start it without one (--no-port), or free one with "
            "'synapsectl stop AGENT --remove'",
            ports=listed,
            holders=_json(holders),
        )

    def reclaim(self, name: str, port: int) -> socket.socket | None:
        """The port that `name` had under the last daemon. It stays the agent's (its id holds the number) also where
        another program has it now: then there is no socket."""
        self._owners[port] = name
        if port in self._sockets:
            return self._sockets[port]
        if not self._listen or (sock := _bind(port)) is None:
            return None
        self._sockets[port] = sock
        return sock

    def rename(self, port: int, name: str) -> None:
        """The name under which the port was claimed was not the last word."""
        self._owners[port] = name

    def release(self, port: int) -> None:
        """The port is free again. Its socket is closed, unless it was taken."""
        self._owners.pop(port, None)
        if (sock := self._sockets.pop(port, None)) is not None:
            sock.close()

    def take(self, port: int) -> socket.socket | None:
        """The bound socket of `port`, which is the caller's from here on; None if no socket is bound there (any
        more)."""
        return self._sockets.pop(port, None)

    def close(self) -> None:
        for sock in self._sockets.values():
            sock.close()
        self._sockets.clear()


def announceable(sock: socket.socket) -> socket.socket:
    """`sock`, ready to listen."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return sock


def _bind(port: int) -> socket.socket | None:
    """A socket that owns `port`, None where another program does. Raises AgentError for any other refusal."""
    for reuse in (False, True):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            if reuse:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((LOOPBACK, port))
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


def _json(holders: Mapping[int, str]) -> dict[str, str]:
    return {str(port): name for port, name in sorted(holders.items())}
