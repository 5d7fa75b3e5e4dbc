"""One process of screens, as the daemon sees it: its start, messages, supervision and end."""

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
"""CPU seconds without a message after which a process is ended: a call does not return."""

BEGINS_CPU_S = 30.0
"""The same until it has begun."""

ALIVE_CPU_S = 60.0
"""The same if it reports work, but finishes nothing."""

CLOSED_S = 1.0
"""Seconds that a process may live after it has closed its socket."""

WAITS_CHECKS = 4
"""Checks in a row with work, but without computing and without waiting for the CPU, after which it is ended: it is
stopped, or waits for something that never comes."""

SOON_BYTES = 64 * 1024
SOON_S = 0.001
"""Seconds for which output and notes wait, or until there are so many bytes, or a request: then they go in one piece. A
process that is woken for each key, and for each echo, would take a processor from those on the way between them."""

_WAITS = frozenset({FrameKind.FEED, FrameKind.NOTE})

BUFFER_BYTES = 1 << 20
"""Bytes of the socket's buffer in each direction."""

log = structlog.stdlib.get_logger("synapsed.screens")


class ScreenProcess(asyncio.Protocol):
    """`program`: its command line, without the last argument (our pid). `came` is given its frames, and raises
    ScreenFrameError for one that ends it; `over` is called once when it has ended, with the reason."""

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
        """True after its greeting, which says that it has no rights."""
        self.ended = False
        self.ended_from_outside = False
        """True if it was ended or stopped from outside: no output does that."""
        self._called_off = asyncio.Event()
        self._heard = self._done = 0
        self._watched: _Watched | None = None
        self.task = aio.at_once(self._begin(delay))

    async def _begin(self, delay: float) -> None:
        await asyncio.sleep(0)  # no event before the creator has the object
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._called_off.wait(), delay)
        if self._called_off.is_set():
            return
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:  # no file may be opened: that passes, or is reported again and again
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
            )  # reasons for a failed start are to be read in the daemon's log; later it has no standard error
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

    def say(self, frame: ScreenFrame) -> None:
        """Sends the frame. Output and notes wait for `SOON_S`, or for a request: they go in one piece."""
        self._waiting.append(encode(frame))
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
        # On a transport that is closing `writelines` would watch a file that is closed a moment later: the next user of
        # the same number could not wait for it (CPython, `_SelectorSocketTransport`).
        if not self._transport.is_closing():
            self._transport.writelines(waiting)

    def end(self, reason: str) -> None:
        """Ends it at once; `over` is called."""
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

    # --- what it says ---

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
        # The code that waits for its end reports it; a process that only has closed its socket is of no use.
        asyncio.get_running_loop().call_later(CLOSED_S, self.end, "it has closed its socket")

    # --- whether it works ---

    def check(self, *, work: bool) -> None:
        """Ends it if it has `work` and makes no progress; to be called about twice a second."""
        if self.ended or self.pid is None:
            return
        if self.began and not work:
            self._watched = None
            return
        try:
            process = psutil.Process(self.pid)
            cpu, status = sum(process.cpu_times()[:2]), process.status()
        except (psutil.Error, OSError):
            return  # it ends just now, or no file may be opened to look: the next check may
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
    """Observations of a process: its own time, and that time at its last message and its last action."""

    cpu: float
    heard: int
    heard_cpu: float
    done: int
    done_cpu: float
    waits: int = 0
