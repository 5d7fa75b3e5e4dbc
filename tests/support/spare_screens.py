"""The first process of screens of a forked daemon: forked, too, without the quarter of a second that its start takes.

It is a child of its daemon, and waits for its socket: then it is what `synapsed.screens.worker` is, gives up the same
rights, and ends with its daemon. Each further one is started by its command line, and so are all of tests/screens and
those of daemons that are started by hand (`cold`).
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

from synapsed import own_python
from synapsed.screens import screen_process, worker

__all__ = ["prepare"]

_PROGRAM = own_python.command("synapsed.screens.worker")


def prepare() -> None:
    """Forks it: to be called in a process of one thread, which becomes a daemon."""
    ours, theirs = socket.socketpair()
    if pid := os.fork():
        theirs.close()
        screen_process.asyncio = _Asyncio(pid, ours)  # type: ignore[attr-defined, assignment]
        return
    try:
        ours.close()
        _, files, _, _ = socket.recv_fds(theirs, 1, 1)
        if files:
            os.dup2(files[0], 0)
            os.close(files[0])
            theirs.close()
            sys.argv = [*_PROGRAM, str(os.getppid())]
            worker.main()
    finally:
        os._exit(0)


class _Asyncio:
    """`asyncio`, as the module that begins processes of screens sees it."""

    def __init__(self, pid: int, waits: socket.socket) -> None:
        self._spare: tuple[int, socket.socket] | None = pid, waits

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def create_subprocess_exec(self, *command: str, stdin: int, **options: Any) -> Any:
        if self._spare is None or not _is_for_it(command):
            return await asyncio.create_subprocess_exec(*command, stdin=stdin, **options)
        (pid, waits), self._spare = self._spare, None
        with waits:
            socket.send_fds(waits, [b"."], [stdin])
        return _Spare(pid)


def _is_for_it(command: Sequence[str]) -> bool:
    return list(command) == [*_PROGRAM, str(os.getpid())]


class _Spare:
    """As much of `asyncio.subprocess.Process` as is used of one of screens."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        loop = asyncio.get_running_loop()
        self._code = loop.create_future()
        self._pidfd = os.pidfd_open(pid)
        loop.add_reader(self._pidfd, self._ended)

    def _ended(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._code.set_result(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]))

    async def wait(self) -> int:
        code: int = await asyncio.shield(self._code)
        return code

    def kill(self) -> None:
        if self._code.done():
            raise ProcessLookupError
        os.kill(self.pid, signal.SIGKILL)
