"""Whose end of a loopback connection is it? Asked of the Linux kernel (sock_diag), for one socket.

/proc/net/tcp tells the same (`peers`), in a line for each connection of the machine: too slow where somebody opens a
thousand.
"""

import socket
import struct
import sys
from ipaddress import ip_address
from typing import Any

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_ESTABLISHED = 1
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI")
_ID = struct.Struct("!HH16s16s")
_NO_COOKIE = b"\xff" * 8
_UID_AT = 16 + 4 + 48 + 12
"""Of the answer: after its header, family and state, the socket's id, and three counters."""
_ANSWER_MAX = 4096


def client_uid(peername: tuple[Any, ...], sockname: tuple[Any, ...]) -> int | None:
    """The uid of the process at `peername` that has connected to `sockname`; None where that is not told: on other
    systems, or where the connection is closed by now."""
    if not sys.platform.startswith("linux"):
        return None
    family = socket.AF_INET6 if ":" in peername[0] else socket.AF_INET
    try:
        source, target = (_packed(name[0]) for name in (peername, sockname))
        wanted = _ID.pack(peername[1], sockname[1], source, target) + b"\0\0\0\0" + _NO_COOKIE
        body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 1 << _ESTABLISHED) + wanted
        head = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _NETLINK_SOCK_DIAG) as diag:
            diag.send(head + body)
            answer = diag.recv(_ANSWER_MAX)
    except (OSError, ValueError, struct.error):
        return None
    if len(answer) < _UID_AT + 4 or struct.unpack_from("=H", answer, 4)[0] != _SOCK_DIAG_BY_FAMILY:
        return None
    if answer[17] != _ESTABLISHED:
        return None
    return int(struct.unpack_from("=I", answer, _UID_AT)[0])


def _packed(address: str) -> bytes:
    return ip_address(address.partition("%")[0]).packed.ljust(16, b"\0")
