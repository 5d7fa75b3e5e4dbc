"""Locks on files, as the kernel knows them: a test for a holder, which takes the lock for a moment only; and the record
in `daemon.lock`, beside the database: the daemon that has this state, its machine, and its socket.

The record has a line for each of these: pid, host, boot id, control socket, PID namespace, the daemon's start (seconds
since the epoch), and the machine's id. It is empty if the daemon has ended and left no agent behind. Like `sockets`,
the module does not import pathlib: the person's tool reads the record if its own place has no socket.
"""

import fcntl
import os
import stat
import struct
import sys
import time
from typing import NamedTuple

WAL_OPEN_BYTE = 128
"""Byte of a database's `-shm`: each connection in WAL mode holds a shared lock on it (SQLite, `walformat.html`)."""

_LINUX = sys.platform.startswith("linux")
_FLOCK = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, pid


def is_locked(path: str) -> bool:
    """Returns True if a process holds an exclusive flock on the file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks reports no lock
        return False
    finally:
        os.close(fd)
    return False


def database_user(database: str) -> int | None:
    """Returns the pid of a process that has the database open, 0 if that process cannot be seen from here; None if the
    database is not open. A process that has it open itself must not call this: the test would release its own locks.
    On other systems than Linux it returns None."""
    if not _LINUX:
        return None
    try:
        fd = os.open(f"{database}-shm", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, WAL_OPEN_BYTE, 1, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    except OSError:
        return None
    finally:
        os.close(fd)
    return None if kind == fcntl.F_UNLCK else max(0, pid)


LINES = 7
NEWLINE = "\0"
"""Stands for a line break in the path of the socket; paths have no NUL."""
LOCK_MAX = 4096
"""Bytes of the record that are read."""
KEEPER_LOCK = "keeper.lock"
"""File in an agent's directory: flocked while its keeper (the process that holds its terminal) has a program."""


class RunningPlace(NamedTuple):
    """The place in which the pids and sockets of a process are valid."""

    host: str
    boot: str
    namespace: str
    """The namespace of pids; empty if the system has no namespaces."""
    machine: str = ""
    """Id of the machine, because two hosts may have the same name; empty if the system has no id."""


class LockRecord(NamedTuple):
    """Facts of the daemon that has the lock, or had it last."""

    pid: int
    place: RunningPlace
    socket: str
    since: float

    @classmethod
    def parse(cls, text: str) -> "LockRecord | None":
        """Returns the record; None for an empty text, or for one of a daemon that wrote its pid only."""
        lines = text.split("\n")
        try:
            pid, host, boot, socket, namespace, since, machine = lines[:LINES]
            place = RunningPlace(host, boot, namespace, machine)
            return cls(int(pid), place, socket.replace(NEWLINE, "\n"), float(since))
        except ValueError:
            return None

    def text(self) -> str:
        place = self.place
        socket = self.socket.replace("\n", NEWLINE)
        lines = (self.pid, place.host, place.boot, socket, place.namespace, f"{self.since:.0f}", place.machine)
        return "".join(f"{line}\n" for line in lines)

    def is_at(self, here: RunningPlace) -> bool:
        """Returns True if the record was written in the place `here`: in the same boot and namespace, or on the same
        host before a restart of it."""
        if here.boot and self.place.boot == here.boot:
            return self.place.namespace == here.namespace
        machines = {self.place.machine, here.machine} - {""}
        return self.place.host == here.host and len(machines) < 2

    def describe(self, here: RunningPlace) -> str:
        """Returns a description for people of the daemon that has this state, with its start."""
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.since))
        beside = here.boot and self.place.boot == here.boot and self.place.namespace != here.namespace
        where = f"host {self.place.host}" + (" (another PID namespace of this machine)" if beside else "")
        return f"the daemon on {where}, pid {self.pid} there, since {since}"


def here() -> RunningPlace:
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return RunningPlace(os.uname().nodename, _boot_id(), namespace, _line("/etc/machine-id"))


def _boot_id() -> str:
    if found := _line("/proc/sys/kernel/random/boot_id"):
        return found
    import ctypes  # macOS

    size, value = ctypes.c_size_t(64), ctypes.create_string_buffer(64)
    try:
        failed = ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", value, ctypes.byref(size), None, 0)
    except AttributeError:
        return ""
    return "" if failed else value.value.decode("ascii", "replace")


def _line(path: str) -> str:
    """Returns the line of the file; empty if there is no such file."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def read_record(path: str) -> LockRecord | None:
    """Returns the record at `path`, if this user wrote it, else None."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            return None
        return LockRecord.parse(os.read(fd, LOCK_MAX).decode("utf-8", "replace"))
    finally:
        os.close(fd)


def recorded_socket(lock: str) -> str | None:
    """Returns the control socket of the lock's daemon; None without a record, or if it is in another place."""
    record = read_record(lock)
    return record.socket if record is not None and record.is_at(here()) else None


def elsewhere(lock: str) -> LockRecord | None:
    """Returns the record of a daemon in another place that has this state, or whose agents may live in that place. None
    if there is no such daemon."""
    record, place = read_record(lock), here()
    if record is None or record.is_at(place):
        return None
    over = is_over(record, place, os.path.dirname(lock)) and not is_locked(lock)
    return None if over else record


def is_over(record: LockRecord, place: RunningPlace, state: str) -> bool:
    """Returns True if it is certain that no program of the other place lives: that place is on this machine, on which
    the kernel knows every lock, and no keeper holds one. Locks of another machine may be unknown."""
    return bool(place.boot) and record.place.boot == place.boot and not programs(state)


def whose(state: str, record: LockRecord) -> str:
    """Returns a sentence that names the daemon that has this state."""
    return f"the state in {state} is that of {record.describe(here())}"


def advice(state: str) -> str:
    """Returns advice for a state that belongs to another place."""
    return (
        "end that one there ('synapsectl shutdown'), or give this place a state of its own with SYNAPSED_HOME=/dir, "
        f"or, where it will never come back, take over what is in {state}: 'synapsectl up --take-over'"
    )


def programs(state: str) -> list[str]:
    """Returns the directories of the agents whose keepers have a program."""
    agents = os.path.join(state, "agents")
    try:
        folders = [os.path.join(agents, name) for name in sorted(os.listdir(agents))]
    except OSError:
        return []
    return [folder for folder in folders if is_locked(os.path.join(folder, KEEPER_LOCK))]
