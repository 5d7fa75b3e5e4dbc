"""One process of screens, from the daemon's side: starts it, exchanges messages with it, supervises it and ends it."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple

import psutil
import structlog

from synapsed import aio, own_python
from synapsed.screens import checked_replies
from synapsed.screens.protocol import VERSION, FrameKind, ScreenFrame, ScreenFrameError, ScreenFrameReader, encode

HANGS_CPU_S = 2.0
"""CPU seconds without a message after which a process is ended: a call in it does not return."""

BEGINS_CPU_S = 30.0
"""The same until the process has sent its greeting."""

ALIVE_CPU_S = 60.0
"""CPU seconds after which a process is ended that reports to be alive, but finishes no work."""

CLOSED_S = 1.0
"""Seconds that a process may live after it has closed its socket."""

WAITS_CHECKS = 4
"""Number of checks in a row after which a process is ended that has work, but neither computes nor waits for a
processor: it is stopped, or waits for something that never comes."""

SOON_BYTES = 64 * 1024
SOON_S = 0.001
"""Output and notes wait for SOON_S seconds, or until there are SOON_BYTES, or until a request; then they are sent in
one piece. A process that woke up for each key and each echo would take a processor from the keeper and the program."""

_WAITS = frozenset({FrameKind.FEED, FrameKind.NOTE})

BUFFER_BYTES = 1 << 20
"""Bytes of the socket's buffer in each direction."""

log = structlog.stdlib.get_logger("synapsed.screens")


class ScreenProcess(asyncio.Protocol):
    """The process. `program` is its command line, without the last argument (our pid). `came` is called with its
    frames; if it raises ScreenFrameError, the process is ended. `over` is called once, with the reason."""

    def __init__(
        self,
        program: Sequence[str],
        came: Callable[[ScreenFrame], None],
        over: Callable[[str], None],
        delay: float = 0.0,
    ) -> None:
        self._program = program
        self._came = came
        self._over = over
        self._decoder = ScreenFrameReader()
        self._waiting: list[bytes] = []
        """Frames that wait to be sent."""
        self._size = 0
        self._soon: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._reason = ""
        self.pid: int | None = None
        self.began = False
        """True after the greeting of the process, which comes after it has given up its rights."""
        self.ended = False
        self.ended_from_outside = False
        """True if the process was killed or stopped from outside: output is not the cause."""
        self._called_off = asyncio.Event()
        self._heard = self._done = 0
        self._watched: _Watched | None = None
        self.task = aio.at_once(self._begin(delay))

    async def _begin(self, delay: float) -> None:
        await asyncio.sleep(0)  # no callback before the creator has the object
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._called_off.wait(), delay)
        if self._called_off.is_set():
            return
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:  # too many open files: the pool tries again, and each failure is logged
            self._end(f"it cannot be begun: {error}")
            return
        try:
            for end in (ours, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
            self._process = await asyncio.create_subprocess_exec(
                *(*self._program, str(os.getpid())),
                env=own_python.bare_environment(),
                stdin=theirs.fileno(),
                stdout=asyncio.subprocess.DEVNULL,
            )  # it keeps our standard error at first: so a failed start is explained in the daemon's log
            self.pid = self._process.pid
        except OSError as error:
            ours.close()
            self._end(f"it cannot be begun: {error}")
            return
        finally:
            theirs.close()
        if self.ended:
            ours.close()
            self._kill()
        else:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: self, ours)
        code = await self._process.wait()
        self.ended_from_outside |= code == -signal.SIGKILL and not self._reason
        self._end(self._reason or (f"it was ended by signal {-code}" if code < 0 else f"it ended with {code}"))

    def say(self, frame: ScreenFrame, agent: int = 0) -> None:
        """Sends the frame of `agent`. Output and notes wait a little, so that several go in one piece (`SOON_S`)."""
        self._waiting.append(encode(frame, agent))
        self._size += len(frame.blob)
        if frame.kind not in _WAITS or self._size > SOON_BYTES:
            self._flush()
        elif self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(SOON_S, self._flush)

    def _flush(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._transport is None:
            return
        waiting, self._waiting, self._size = self._waiting, [], 0
        # On a closing transport, `writelines` would register an fd with the selector that is closed a moment later; the
        # next file with this fd could then not be registered (CPython, `_SelectorSocketTransport`).
        if not self._transport.is_closing():
            self._transport.writelines(waiting)

    def end(self, reason: str) -> None:
        """Kills the process at once, and calls `over`."""
        if not self.ended:
            self._reason = self._reason or reason
            self._kill()
            self._end(reason)

    async def wait(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def _end(self, reason: str) -> None:
        if self.ended:
            return
        self.ended = True
        self._called_off.set()
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        self._waiting = []
        if self._transport is not None:
            self._transport.abort()
        self._over(reason)

    # --- its messages ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if self.ended:
            transport.abort()
            return
        self._transport = transport
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._heard += 1
        try:
            for frame in self._decoder.feed(data):
                if self.ended:
                    return
                match frame.kind:
                    case FrameKind.HELLO:
                        self._greet(frame)
                    case FrameKind.FAILED:
                        self.end(f"it failed: {checked_replies.read_failure(frame)}")
                    case FrameKind.ALIVE:
                        pass
                    case _:
                        self._done += 1
                        self._came(frame)
        except ScreenFrameError as error:
            self.end(f"it broke the protocol: {error}")

    def _greet(self, frame: ScreenFrame) -> None:
        told = checked_replies.read_hello(frame)
        if told["version"] != VERSION:
            raise ScreenFrameError(f"its version is {told['version']}, and this is {VERSION}: restart the daemon")
        self.began = True
        log.info("a process draws screens", pid=self.pid, without=told["rights"])

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        # If the process has ended, `_begin` reports it; if it has only closed its socket, it is of no use any more.
        asyncio.get_running_loop().call_later(CLOSED_S, self.end, "it has closed its socket")

    # --- supervision ---

    def check(self, *, work: bool) -> None:
        """Ends the process if it has `work` and makes no progress. Must be called about twice a second."""
        if self.ended or self.pid is None:
            return
        if self.began and not work:
            self._watched = None
            return
        try:
            process = psutil.Process(self.pid)
            cpu, status = sum(process.cpu_times()[:2]), process.status()
        except (psutil.Error, OSError):
            return  # the process is ending, or too many files are open to read /proc: the next check sees
        before = self._watched or _Watched(cpu, self._heard, cpu, self._done, cpu)
        said, done = self._heard != before.heard, self._done != before.done
        idle = status == psutil.STATUS_STOPPED or (status == psutil.STATUS_SLEEPING and cpu == before.cpu)
        now = self._watched = _Watched(
            cpu=cpu,
            heard=self._heard,
            heard_cpu=cpu if said else before.heard_cpu,
            done=self._done,
            done_cpu=cpu if done else before.done_cpu,
            waits=before.waits + 1 if idle and not said else 0,
        )
        silent, busy = cpu - now.heard_cpu, cpu - now.done_cpu
        if silent >= (HANGS_CPU_S if self.began else BEGINS_CPU_S):
            self.end(f"it has computed for {silent:.1f} s and said nothing")
        elif busy >= ALIVE_CPU_S:
            self.end(f"it has computed for {busy:.0f} s and done nothing")
        elif now.waits >= WAITS_CHECKS:
            self.ended_from_outside = status == psutil.STATUS_STOPPED
            self.end("it has work, and does nothing")


class _Watched(NamedTuple):
    """An observation of a process: its CPU time, and its CPU time at its last message and at its last finished work."""

    cpu: float
    heard: int
    heard_cpu: float
    done: int
    done_cpu: float
    waits: int = 0
