"""Starts the server that a program's terminal is attached to, then becomes that terminal program.

    python -S -E -I companion.py PLAN

PLAN is a JSON file, 0600: `{"socket", "companion": [argv], "attached": [argv], "alone": [argv], "wait_s", "failed",
"log"}`.
The server (`companion`) is started in a session of its own, without a terminal, so that no key of a person's reaches
it, and listens on `socket`, whose directory only this user may enter. When it listens this process becomes `attached`,
so that pid, exit code and terminal are the terminal program's. The keeper (the process that holds the terminal) ends
the server when the terminal program has ended: both belong to one launch.

A person gets their program in spite of any failure: this process becomes `alone`, and the file `failed` says why.
"""

import _socket  # not `socket`, which imports enum and selectors
import json
import os
import sys
import time

PAUSE_S = 0.01
"""Seconds between two looks for the server."""


def main() -> None:
    with open(sys.argv[1], "rb") as file:
        plan = json.load(file)
    reason = _start(plan)
    if reason is None:
        os.execv(plan["attached"][0], plan["attached"])
    try:
        fd = os.open(plan["failed"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(fd, reason.encode("utf-8", "replace"))
        os.close(fd)
    except OSError:
        pass  # reported as a server that cannot be reached
    os.execv(plan["alone"][0], plan["alone"])


def _start(plan: dict) -> "str | None":  # type: ignore[type-arg]  # plain JSON; typing costs at every start
    """Starts the server; returns the reason why it cannot be used, None if it can."""
    socket, argv = plan["socket"], plan["companion"]
    try:
        _private(os.path.dirname(socket))
        if os.path.lexists(socket):
            os.unlink(socket)
        pid = _spawn(argv, plan["log"])
    except OSError as error:
        return f"{argv[0]} could not be started: {error}"
    until = time.monotonic() + plan["wait_s"]
    while time.monotonic() < until:
        if _listens(socket):
            return None
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return f"{argv[0]} ended at once, with {os.waitstatus_to_exitcode(status)}"
        time.sleep(PAUSE_S)
    try:
        os.killpg(pid, 9)
    except OSError:  # it has not made its session yet, and is no group
        os.kill(pid, 9)
    os.waitpid(pid, 0)
    return f"{argv[0]} did not listen within {plan['wait_s']} s"


def _private(folder: str) -> None:
    """Makes `folder` one that only this user can enter. Raises OSError if it is another user's, or no folder."""
    os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        found = os.lstat(folder)
        if found.st_uid != os.getuid() or not os.path.isdir(folder) or os.path.islink(folder):
            raise PermissionError(f"{folder} is not a folder of this user's") from None
        os.chmod(folder, 0o700)


def _spawn(argv: "list[str]", log: str) -> int:
    """Returns the pid, also the process group and the session, of a process without a terminal."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)  # the daemon truncates it
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        os.dup2(errors, 2)
        os.execv(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error}\n".encode())
    finally:
        os._exit(127)


def _listens(path: str) -> bool:
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sock.connect(path)
    except OSError:
        return False
    finally:
        sock.close()
    return True


if __name__ == "__main__":
    main()
