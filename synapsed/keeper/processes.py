"""Facts about processes for the keeper: identity, descendants, the peer of a socket.

On Linux everything is read from /proc and the keeper is a subreaper, so that every descendant is found below it, also
after a setsid or a double fork. Elsewhere the facts come from `ps`, and orphans are known by their process group.
"""

import os
import socket
import struct
import sys
import time

# Read into variables so that mypy checks both branches on every platform.
_LINUX = sys.platform.startswith("linux")
_DARWIN = sys.platform.startswith("darwin")
_PR_SET_CHILD_SUBREAPER = 36
_DEAD = b"ZXx"
_TICK_BITS = 33  # 2.7 years of uptime at 100 ticks a second
_START_TIME = 19  # index of field 22 of /proc/PID/stat, counted from the state


def start_mark(pid: int) -> int | None:
    """Returns a number that together with the pid names one process for ever; None if the process is gone or a zombie.
    On Linux the number has 20 bits of the boot's id and 33 bits of the start time in ticks since boot, because pids and
    ticks both come again after a reboot. Elsewhere it is the start time in seconds. It is below 2**53, so that every
    JSON reader keeps it exactly."""
    if not _LINUX:
        fields = _ps(["-o", "stat=,lstart=", "-p", str(pid)]).split(None, 1)
        if len(fields) < 2 or fields[0].startswith("Z"):
            return None
        return int(time.mktime(time.strptime(" ".join(fields[1].split()), "%a %b %d %H:%M:%S %Y")))
    stat = _stat(str(pid))
    if stat is None or stat[0] in _DEAD:
        return None
    return _boot_mark() << _TICK_BITS | int(stat[_START_TIME]) & (1 << _TICK_BITS) - 1


def is_before_boot(mark: int) -> bool:
    """Returns True if `mark` is a start mark of an earlier boot. On Linux only."""
    return mark >> _TICK_BITS != _boot_mark()


def lived_s(mark: int) -> float:
    """Returns the seconds since a process of this boot started, by a clock that cannot be set. On Linux only."""
    ticks = mark & (1 << _TICK_BITS) - 1
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def parent_of(pid: int) -> int | None:
    """Returns the pid of the parent of `pid`; None if `pid` is gone or has no parent (the first process)."""
    if not _LINUX:
        return int(_ps(["-o", "ppid=", "-p", str(pid)]) or 0) or None
    stat = _stat(str(pid))
    return None if stat is None else int(stat[1]) or None


def has_descendants(program: int) -> bool:
    """Returns True if `descendants` would find a process, or if a dead one waits to be reaped. On Linux one system call
    is enough: if a subreaper has descendants, at least one of them is its child."""
    if not _LINUX:
        return bool(descendants(program))
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def descendants(program: int) -> list[int]:
    """Returns the pids of the living processes below this one; without subreapers also those of the group `program`."""
    root = os.getpid()
    children: dict[int, list[int]] = {}
    found = []
    for pid, parent, pgrp, dead in _table():
        children.setdefault(parent, []).append(-pid if dead else pid)
        if not _LINUX and pgrp == program and not dead:
            found.append(pid)
    todo = [root]
    while todo:
        for pid in children.pop(todo.pop(), ()):
            if pid > 0:
                found.append(pid)
                todo.append(pid)
    return list(dict.fromkeys(found))


def become_subreaper() -> None:
    """Makes orphaned descendants children of this process from now on. Does nothing on systems without subreapers."""
    if _LINUX:
        import ctypes  # 0.2 MB, and only needed here

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def peer_uid(sock: socket.socket) -> int | None:
    """Returns the uid of the process that connected `sock`, None if the system does not report it."""
    if _LINUX:
        _pid, uid, _gid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(uid)
    if _DARWIN:
        local_peercred, sol_local = 1, 0
        version, uid = struct.unpack_from("II", sock.getsockopt(sol_local, local_peercred, 76))
        return int(uid) if version == 0 else None
    return None


def _table() -> list[tuple[int, int, int, bool]]:
    """Returns (pid, parent, process group, dead) of every process."""
    rows = []
    if not _LINUX:
        for line in _ps(["-A", "-o", "pid=,ppid=,pgid=,stat="]).splitlines():
            pid, parent, pgrp, stat = line.split(None, 3)
            rows.append((int(pid), int(parent), int(pgrp), stat.startswith("Z")))
        return rows
    stats = ((name, _stat(name)) for name in os.listdir("/proc") if name.isdecimal())
    rows += [(int(name), int(stat[1]), int(stat[2]), stat[0] in _DEAD) for name, stat in stats if stat is not None]
    return rows


def _stat(pid: str) -> list[bytes] | None:
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        raw = os.read(fd, 1024)
    except OSError:  # ESRCH: it ended between open and read
        return None
    finally:
        os.close(fd)
    # The program's name may contain spaces and parentheses; the state and the numbers follow the last parenthesis.
    return raw[raw.rindex(b")") + 1 :].split()


def _boot_mark() -> int:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return int(file.read(5), 16)


def _ps(arguments: list[str]) -> str:
    import subprocess  # heavy, and not needed on Linux

    result = subprocess.run(["/bin/ps", *arguments], capture_output=True, text=True, check=False)
    return result.stdout
