"""`localhost` is two addresses, 127.0.0.1 and ::1, and which of them a client tries first is not ours to say.

Whoever holds a port at one of them leaves the other to any user of this machine. So both are held before the port is
told to anybody; where the other one is held by another program already, the address that is ours is told in place of
the name.
"""

import errno
import socket
from collections.abc import Callable
from typing import Final

LOOPBACK: Final = "127.0.0.1"
NAME: Final = "localhost"
_OTHER: Final = {LOOPBACK: "::1", "::1": LOOPBACK}
_ABSENT: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


def other(address: str) -> str | None:
    """The other address of `localhost`; None for an address that is neither, such as 127.0.0.2."""
    return _OTHER.get(address)


def hold_other(
    address: str, port: int, bind: Callable[[str, int], socket.socket | None]
) -> tuple[socket.socket | None, str]:
    """Returns what `bind` makes of the other address, and the host under which `port` is told; `address` is held.

    `bind` returns None for a port that is another program's. A machine without the other address (no IPv6) has nobody
    who could listen there, and its `localhost` is `address`.
    """
    if (twin := other(address)) is None:
        return None, address
    try:
        sock = bind(twin, port)
    except OSError as error:
        if error.errno in _ABSENT:
            return None, NAME
        raise
    return sock, address if sock is None else NAME


def tcp_socket(address: str) -> socket.socket:
    """A socket that can be bound to `address`; one of IPv6 is for nothing else."""
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    if ":" in address:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return sock


def host_port(host: str, port: int) -> str:
    """As a URL has it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
