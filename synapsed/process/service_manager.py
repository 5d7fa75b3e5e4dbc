"""The service manager that runs the daemon: sends reports to it, and takes the sockets that it passes on.

Both use variables of the environment: `NOTIFY_SOCKET`, `WATCHDOG_USEC` (microseconds) and `LISTEN_*`. Without them no
report is sent and no socket is found, so that callers need not know whether there is a service manager.
"""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import sdnotify

FIRST_INHERITED_FD = 3
"""SD_LISTEN_FDS_START."""

BEAT_S = 5.0
"""Seconds between two reports, unless the watchdog wants them more often."""

WATCHDOG_SHARE = 0.4
"""Share of the watchdog's time between two signs of life."""

EXTENSION_S = 20.0
"""Seconds by which each report extends a start or a stop: a few beats of a busy machine."""


class ServiceNotifier:
    """Reports the daemon's life. `beating` sends signs of life from inside the event loop, so that a loop that is stuck
    sends none; while the daemon starts or stops, these signs ask for more time as well."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._notifier = sdnotify.SystemdNotifier() if environ.get("NOTIFY_SOCKET") else None
        watchdog = _number(environ, "WATCHDOG_USEC") / 1e6
        if _number(environ, "WATCHDOG_PID") not in (0, os.getpid()):
            watchdog = 0.0
        self._watched = watchdog > 0
        self._interval = min(BEAT_S, watchdog * WATCHDOG_SHARE) if self._watched else BEAT_S
        self._status: Callable[[], str] = str
        self._told = ""
        self._settled = False

    def ready(self, status: Callable[[], str]) -> None:
        """Reports that the daemon serves. `status` returns a line about the daemon for every sign of life."""
        self._status = status
        self._settled = True
        self._send("READY=1", *self._status_lines())

    def stopping(self) -> None:
        """Reports that the daemon ends. That may take longer than is usually waited for, as long as the loop runs."""
        self._settled = False
        self._send("STOPPING=1", "STATUS=ending", _extension())

    def close(self) -> None:
        if self._notifier is not None:
            self._notifier.socket.close()
            self._notifier = None

    @contextlib.contextmanager
    def reloading(self) -> Iterator[None]:
        """Reports that the configuration is read again; then the service is ready again, even after an error."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            yield
        finally:
            self._send("READY=1")

    @contextlib.asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Sends signs of life for as long as the block runs."""
        if self._notifier is None:
            yield
            return
        task = asyncio.get_running_loop().create_task(self._beat())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _beat(self) -> None:
        while True:
            signs = ["WATCHDOG=1"] if self._watched else []
            signs += self._status_lines() if self._settled else [_extension()]
            self._send(*signs)
            await asyncio.sleep(self._interval)

    def _status_lines(self) -> list[str]:
        status = self._status().replace("\n", " ")
        if status == self._told:
            return []
        self._told = status
        return [f"STATUS={status}"]

    def _send(self, *assignments: str) -> None:
        if self._notifier is not None and assignments:
            self._notifier.notify("\n".join(assignments))


def _extension() -> str:
    return f"EXTEND_TIMEOUT_USEC={int(EXTENSION_S * 1e6)}"


def inherited_sockets(environ: Mapping[str, str]) -> dict[str, list[socket.socket]]:
    """Returns the sockets that the service manager bound for this process, by the name in their unit
    (`FileDescriptorName=`). Call it once; the caller has to close them, and no child inherits them."""
    if _number(environ, "LISTEN_PID") != os.getpid():
        return {}
    names = environ.get("LISTEN_FDNAMES", "").split(":")
    found: dict[str, list[socket.socket]] = {}
    for index in range(_number(environ, "LISTEN_FDS")):
        name = names[index] if index < len(names) else "unknown"
        os.set_inheritable(FIRST_INHERITED_FD + index, False)
        found.setdefault(name, []).append(socket.socket(fileno=FIRST_INHERITED_FD + index))
    return found


def _number(environ: Mapping[str, str], name: str) -> int:
    value = environ.get(name, "")
    return int(value) if value.isascii() and value.isdecimal() else 0
