"""A network namespace that has only loopback: the real agent programs run in nothing else.

    python -m tests.real.netns COMMAND [ARGUMENT…]     # runs the command inside

`enter` moves the calling process (and so its children) into a new one; root needs no more, others get a user namespace
of their own in which they keep their uid. `require` is called before any real program is started.
"""

import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

__all__ = ["NotIsolatedError", "enter", "interfaces_up", "require"]

_SIOCGIFFLAGS = 0x8913  # <linux/sockios.h>
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
_IFREQ = struct.Struct("16sh22x")  # name, flags; the union is 24 bytes


class NotIsolatedError(RuntimeError):
    """This process can reach, or cannot be kept from, a network beyond loopback."""


def enter() -> None:
    """Moves this process into a new namespace in which only ``lo`` is up. NotIsolatedError where the system refuses.

    Call it while the process has one thread, before anything that it starts.
    """
    if not hasattr(os, "unshare"):
        raise NotIsolatedError("network namespaces need Linux")
    uid, gid = os.getuid(), os.getgid()
    try:
        os.unshare(os.CLONE_NEWNET if uid == 0 else os.CLONE_NEWNET | os.CLONE_NEWUSER)
        if uid != 0:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        _raise_loopback()
    except OSError as error:
        raise NotIsolatedError(f"no network namespace of its own for uid {uid}: {error}") from error
    require()


def require() -> None:
    """NotIsolatedError unless ``lo``, and nothing else, is up."""
    up = interfaces_up()
    if up != ["lo"]:
        raise NotIsolatedError(f"interfaces up here: {', '.join(up) or 'none'}; there must be lo alone")


def interfaces_up() -> list[str]:
    """Names of this namespace's interfaces that are up, sorted. Kernels may add tunnels, which stay down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return sorted(name for _, name in socket.if_nameindex() if _flags(probe, name) & _IFF_UP)


def _flags(probe: socket.socket, name: str) -> int:
    answer = fcntl.ioctl(probe, _SIOCGIFFLAGS, _IFREQ.pack(name.encode(), 0))
    flags: int = _IFREQ.unpack(answer)[1]
    return flags


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, _SIOCSIFFLAGS, _IFREQ.pack(b"lo", _flags(probe, "lo") | _IFF_UP))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m tests.real.netns COMMAND [ARGUMENT…]")
    try:
        enter()
    except NotIsolatedError as refused:
        sys.exit(f"netns: {refused}")
    os.execvp(sys.argv[1], sys.argv[1:])
