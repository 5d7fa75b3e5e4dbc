"""The paths of the daemon's sockets, from the environment alone, and checks of their owners.

The module is apart from `synapsed.config.paths`, and has no pathlib: the person's tool needs one path, and importing
pathlib would take an eighth of its time.
"""

import os
import stat
import sys
import time

TYPE_CHECKING = False
"""Same as in `typing`, which takes longer to import than this whole module."""
if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from typing import Any

PATH_MAX = 103
"""Bytes of a Unix socket's path that every supported system accepts (macOS 103, Linux 107)."""

FULL_PAUSE_S = 0.01
"""Seconds between two attempts while a listener's queue is full: there is no event for room in it."""

_LINUX = os.uname().sysname == "Linux"
_SOL_SOCKET, _SO_PEERCRED = 1, 17  # <sys/socket.h> of Linux
_SOL_LOCAL, _LOCAL_PEERCRED = 0, 1  # <sys/un.h> of macOS: struct xucred

_LONGEST = os.path.join("keepers", "k" * 24 + ".sock")


class NoHome(Exception):
    """The place of this user's files is unknown; the message is for people."""


XDG = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")
"""Variables that the specification of the base directories ignores without an absolute path."""


def settle_home(environ: "MutableMapping[str, str]") -> None:
    """Sets HOME from the system if it is missing. A user that the system does not know has no home: with a
    SYNAPSED_HOME it becomes `/`, as in containers. Makes all paths absolute, because the daemon, and a tool in another
    folder, would read relative ones differently. Raises NoHome, also if the current folder is needed, and gone."""
    for name in XDG:
        if not environ.get(name, "/").startswith("/"):
            del environ[name]
    for name in ("SYNAPSED_HOME", "SYNAPSED_A2A_HOME", "HOME"):
        if (path := environ.get(name)) and not path.startswith("/"):
            try:
                environ[name] = os.path.join(os.getcwd(), path)
            except OSError:
                raise NoHome(
                    f"{name} is the relative path {path!r}, and the current folder is gone: go to another folder ('cd')"
                ) from None
    if not environ.get("HOME") and not os.path.expanduser("~").startswith("/"):
        if not environ.get("SYNAPSED_HOME"):
            raise NoHome(f"HOME is not set, and the system does not know uid {os.getuid()}: set HOME, or SYNAPSED_HOME")
        environ["HOME"] = "/"
    _check_text(environ)


def _check_text(environ: "Mapping[str, str]") -> None:
    """Raises NoHome if a path cannot be encoded in UTF-8: answers are JSON."""
    home = environ.get("HOME", "/")
    places = [state_directory(environ), runtime_directory(environ), environ.get("SYNAPSED_A2A_HOME") or home]
    for place in places if environ.get("SYNAPSED_HOME") else [*places, environ.get("XDG_CONFIG_HOME") or home]:
        try:
            place.encode()
        except UnicodeEncodeError:
            others = "name others with SYNAPSED_HOME and SYNAPSED_A2A_HOME"
            raise NoHome(f"the name of the folder {place!r} is not UTF-8: {others}") from None


def control_socket(environ: "Mapping[str, str]") -> str:
    """Returns the path of the daemon's Unix socket."""
    return os.path.join(socket_directory(runtime_directory(environ)), "control.sock")


def lock_file(environ: "Mapping[str, str]") -> str:
    """Returns the path of the daemon's lock, which says where it listens (`synapsed.process.lock_record`)."""
    return os.path.join(state_directory(environ), "daemon.lock")


def state_directory(environ: "Mapping[str, str]") -> str:
    """Returns the folder for files that outlive the daemon."""
    if home := environ.get("SYNAPSED_HOME"):
        return _plain(os.path.join(_absolute(home), "state"))
    user_home = environ.get("HOME") or os.path.expanduser("~")
    state = environ.get("XDG_STATE_HOME") or os.path.join(user_home, ".local", "state")
    return _plain(os.path.join(state, "synapsed"))


def runtime_directory(environ: "Mapping[str, str]") -> str:
    """Returns the folder for files that are of use only while the daemon runs."""
    if home := environ.get("SYNAPSED_HOME"):
        return _plain(os.path.join(_absolute(home), "run"))
    runtime = environ.get("XDG_RUNTIME_DIR")
    if runtime and _is_ours_alone(runtime):
        return _plain(os.path.join(runtime, "synapsed"))
    before = _plain(os.path.join(environ.get("TMPDIR") or "/tmp", f"synapsed-{os.getuid()}"))
    if why_not_our_folder(before) is None and os.path.exists(os.path.join(before, "lock")):
        return before  # a daemon of an older version has used it: its successor takes the same lock, or two could run
    return os.path.join(state_directory(environ), "run")


def connect(sock: "Any", path: str, seconds: float) -> None:
    """Connects the Unix socket `sock`; if many connect at once, it waits for room in the listener's queue, where the
    kernel would refuse a socket that has a timeout (EAGAIN). Raises TimeoutError after `seconds`, OSError."""
    deadline = time.monotonic() + seconds
    sock.settimeout(seconds)
    while True:
        try:
            sock.connect(path)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise TimeoutError("the queue of its listener is full") from None
            time.sleep(FULL_PAUSE_S)
        else:
            return


def _is_ours_alone(folder: str) -> bool:
    """Returns False for a runtime directory that the specification forbids: `su` leaves the last user's in place, and
    WSL has one for everybody. A missing one, or one reached by a link, is accepted."""
    try:
        found = os.stat(folder)
    except OSError:
        return True
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return own and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def why_not_our_folder(folder: str) -> str | None:
    """Returns a sentence that says why the content of `folder` may come from other users; None if only this user can
    have put it there. A missing folder has no content."""
    try:
        found = os.lstat(folder)
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is no directory but {'a link' if stat.S_ISLNK(found.st_mode) else 'a file'}"
    if found.st_uid != os.getuid():
        return f"{folder} belongs to uid {found.st_uid}, and you are uid {os.getuid()}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{folder} can be written to by others (mode {stat.S_IMODE(found.st_mode):04o})"
    return None


def why_not_our_peer(sock: "Any") -> str | None:
    """Returns a sentence that says why the process at the other end of a connected Unix socket is not this user's; None
    if it is this user's or root's, who has all rights anyway, or if the system does not report its user."""
    uid = peer_uid(sock)
    return None if uid in (os.getuid(), 0, None) else f"uid {uid} listens there, and you are uid {os.getuid()}"


def peer_uid(sock: "Any") -> int | None:
    """Returns the uid of the process at the other end of a connected Unix socket: the listener, or the client."""
    try:
        if _LINUX:
            return int.from_bytes(sock.getsockopt(_SOL_SOCKET, _SO_PEERCRED, 12)[4:8], sys.byteorder)
        found = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76)
    except OSError:
        return None
    version, uid = found[:4], found[4:8]
    return None if any(version) or len(uid) < 4 else int.from_bytes(uid, sys.byteorder)


def _absolute(path: str) -> str:
    """Returns the absolute path. The current folder, which may be gone, is read only if it is needed."""
    return path if path.startswith("/") else os.path.join(os.getcwd(), path)


def _plain(path: str) -> str:
    """Returns the path in pathlib's form, so that one path has one hash."""
    steps = "/".join(step for step in path.split("/") if step not in ("", "."))
    return f"/{steps}" if path.startswith("/") else steps


def socket_directory(run: str) -> str:
    """Returns the runtime directory `run` itself, or a short stand-in derived from it: longer paths cannot be bound."""
    if len(os.fsencode(os.path.join(run, _LONGEST))) <= PATH_MAX:
        return run
    return f"/tmp/synapsed-{os.getuid()}-{_hash(run):012x}"


def _hash(path: str) -> int:
    """Returns a stable 48-bit number (FNV-1a), the same in every process and run."""
    value = 0xCBF29CE484222325
    for byte in os.fsencode(path):
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value & 0xFFFFFFFFFFFF
