"""Holds a port at both addresses of `localhost`, 127.0.0.1 and ::1: clients may try either of them first.

If a program holds a port at one of them only, any user of this machine can take the other. So both are held before the
port is published; if another program holds the other one already, our address is published in place of the name.
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
    """Returns the other address of `localhost`; None for an address that is neither, such as 127.0.0.2."""
    return _OTHER.get(address)


def hold_other(
    address: str, port: int, bind: Callable[[str, int], socket.socket | None]
) -> tuple[socket.socket | None, str]:
    """Returns the socket that `bind` makes at the other address, and the host to publish for `port`; `address` is held
    already. `bind` returns None for a port that another program holds. On a machine without the other address (no IPv6)
    no program could listen at it, and `localhost` means `address`."""
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
    """Returns a socket that can be bound to `address`; a socket for IPv6 takes no connections over IPv4."""
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    if ":" in address:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return sock


def host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
