"""The keeper itself: one loop over the program, the clients and the clock. Everything happens in one thread around one
selector. Nothing in the loop blocks but the disk."""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
import time

from . import ending, frames
from .clients import Clients, Listener
from .ending import Ending
from .inputs import InputQueue, Journal, Pending
from .processes import descendants, has_descendants, start_mark
from .requests import Connection, Requests
from .spawn import Program
from .spec import LaunchRefused, Spec
from .spool import OutputChannel
from .writer import InputWriter

RETRY_S = 0.5
"""Seconds between two attempts: after a full disk, without descriptors, at a terminal whose other side is closed."""

FAREWELL_S = 1.0
"""Seconds for which an ending keeper goes on sending unread data to its clients."""

SIZES_MAX = 64
"""Number of window sizes that are remembered, for drawing older output."""

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Keeper:
    """Keeps one program. `run` returns when the keeper has nothing left to do."""

    def __init__(
        self,
        *,
        spec: Spec,
        program: Program,
        listener: Listener,
        channels: dict[str, OutputChannel],
        journal: Journal,
        lock: int,
        started_at: float,
    ) -> None:
        """`lock`: the fd whose lock keeps other keepers from the state directory; closed when the exit is recorded."""
        self.spec = spec
        self.program = program
        self.channels = channels
        self.exit_record: dict[str, object] | None = None
        self.sizes = [(0, spec.cols, spec.rows)]
        """The last sizes of the window, as (offset, cols, rows): the size holds from that offset of the output on."""
        self._primary = channels[spec.channels[0]]
        self.input = InputWriter(program, InputQueue(journal), self._primary.spool, lambda: self._pull(self._primary))
        self._lock = lock
        self._started_at = started_at
        self._launch_starts = {name: channel.spool.end for name, channel in channels.items()}
        self._marks = (start_mark(os.getpid()), start_mark(program.pid))
        self._selector = selectors.DefaultSelector()
        self._masks: dict[int, int] = {}
        self._listener = listener
        self._clients = Clients(self._selector, Requests(self))
        self._clients.listen(listener.sock)
        self._ending = Ending(sweep_on_exit=spec.sweep_on_exit)
        self._stop_waiters: list[tuple[Connection, int]] = []
        self._status: int | None = None
        self._exited_at = 0.0
        self._record_stored = False
        self._alert: str | None = None
        self._retry_at: float | None = None
        self._leave_at: float | None = None
        self._ends_with_program = False

    # --- the loop

    def run(self) -> None:
        wake = self._watch_signals()
        self._selector.register(wake, READ, lambda _mask: self._signals(wake))
        self._reap()
        self._watch_program()
        while True:
            now = time.monotonic()
            self._advance(now)
            more = self._clients.serve(self.channels, self.exit_record)
            if self._leave_at is not None and (
                now >= self._leave_at or (self._ends_with_program and not self._clients)
            ):
                return
            for key, mask in self._selector.select(0 if more else self._patience()):
                key.data(mask)

    def close(self) -> None:
        """Closes the socket and every connection."""
        self._clients.close()
        self._listener.close()

    def _patience(self) -> float | None:
        times = [at for at in (self._ending.deadline, self._retry_at, self._leave_at) if at is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _advance(self, now: float) -> None:
        if self._retry_at is not None and now >= self._retry_at:
            self._retry_at = None
            self._retry()
        if self._clients.full:
            self._retry_later()
        if (deadline := self._ending.deadline) is not None and now >= deadline:
            self._end(now)

    def resized(self, cols: int, rows: int) -> None:
        """Notes that the window has this size from the present end of the output on."""
        if self.sizes[-1][1:] != (cols, rows):
            self.sizes = [*self.sizes[1 - SIZES_MAX :], (self._primary.spool.end, cols, rows)]

    def describe(self) -> dict[str, object]:
        """Returns the facts of WELCOME and of the answer to PING."""
        line_mode, echo = self.input.modes()
        return {
            "launch_id": self.spec.launch_id,
            "keeper_pid": os.getpid(),
            "keeper_start": self._marks[0],
            "pid": self.program.pid,
            "pid_start": self._marks[1],
            "transport": self.spec.transport,
            "cols": self.sizes[-1][1],
            "rows": self.sizes[-1][2],
            "sizes": self.sizes,
            "spool_start": self._primary.spool.start,
            "spool_end": self._primary.spool.end,
            "launch_start": self._launch_starts[self._primary.name],
            "channels": {
                name: {"start": channel.spool.start, "end": channel.spool.end, "launch": self._launch_starts[name]}
                for name, channel in self.channels.items()
            },
            "input_pending": self.input.queue.size,
            "input_unread": self.input.unread(),
            "line_mode": line_mode,
            "echo": echo,
            "foreground": self.input.foreground(),
            "alert": self._alert,
            "started_at": self._started_at,
            "exit": self.exit_record,
            "withheld": self.program.withheld,
        }

    # --- signals

    def _watch_signals(self) -> int:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.signal(signal.SIGHUP, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)
        return reader

    def _signals(self, wake: int) -> None:
        numbers = os.read(wake, 512)
        if signal.SIGTERM in numbers:
            self.terminate()
        if signal.SIGHUP in numbers:
            self._listen_again()
        if signal.SIGCHLD in numbers:
            self._reap()

    def _listen_again(self) -> None:
        """Handles SIGHUP: the daemon does not find the socket of this keeper. Keepers before 0.2 ignore the signal."""
        try:
            if self._listener.renew():
                self._clients.listen(self._listener.sock)
        except LaunchRefused as error:
            sys.stderr.write(f"{error}\n")

    def terminate(self) -> None:
        """Ends the program, and the keeper without waiting for a client to acknowledge the exit: a service manager has
        sent SIGTERM, or nobody knows of the launch."""
        self._ends_with_program = True
        if self.exit_record is not None:
            self.leave()
        else:
            self.stop(self.spec.term_grace_s, None)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid == self.program.pid:
                self._status = status
                self._exited_at = time.time()
                self._ending.exited(time.monotonic())
        self._ending.look(time.monotonic())

    def signal_program(self, number: int, *, foreground: bool) -> None:
        """Sends the signal to the program, or to the terminal's foreground process group. Raises ProcessLookupError if
        there is no such process or group, PermissionError if the system does not allow it."""
        if self._status is not None:
            raise ProcessLookupError
        if not foreground:
            os.kill(self.program.pid, number)
        elif self.program.terminal:
            if (group := self.input.foreground()) is None:
                raise ProcessLookupError
            os.killpg(group, number)
        else:
            os.killpg(self.program.pid, number)

    # --- the end

    def stop(self, grace: float, waiter: tuple[Connection, int] | None) -> None:
        """Ends the program by the steps of `ending`; `waiter` gets its answer when all processes are gone."""
        if waiter is not None:
            self._stop_waiters.append(waiter)
        self._ending.stop(time.monotonic(), grace)

    def leave(self) -> None:
        """Ends the keeper as soon as its clients have their remaining data, and after FAREWELL_S at the latest."""
        self._ends_with_program = True
        self._leave_at = time.monotonic() + FAREWELL_S
        self._clients.dismiss()

    def _end(self, now: float) -> None:
        self._retry()  # a terminal whose other side was closed may have been opened again, and has more to read
        action = self._ending.next(
            now,
            drained=all(channel.drained for channel in self.channels.values()),
            blocked=any(channel.held for channel in self.channels.values()),
            has_survivors=has_descendants(self.program.pid),
        )
        if action == ending.TERM:
            self._strike(signal.SIGTERM)
            self._strike(signal.SIGCONT)  # a stopped process would never see the TERM
        elif action == ending.KILL:
            self._strike(signal.SIGKILL)
        elif action == ending.RECORD:
            self._record_exit()

    def _strike(self, number: int) -> None:
        for pid in descendants(self.program.pid):
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                continue  # it is gone, or has changed its uid: then the exit record counts it as left over

    def _record_exit(self) -> None:
        swept = self.spec.sweep_on_exit or self._ending.stopping
        leftover = len(descendants(self.program.pid)) if swept else 0
        status = self._status
        self.exit_record = {
            "format": 1,
            "launch_id": self.spec.launch_id,
            "pid": self.program.pid,
            "code": os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None,
            "stopped": self._ending.stopping,
            "leftover": leftover,
            "output_lost": sum(len(channel.held) for channel in self.channels.values()),
            "final_offset": self._primary.spool.end,
            "final_offsets": {name: channel.spool.end for name, channel in self.channels.items()},
            "started_at": self._started_at,
            "exited_at": self._exited_at or time.time(),
        }
        self._let_go()
        self._store_record()
        for client, request in self._stop_waiters:
            client.send(frames.REPLY, {"req": request, "status": "stopped", "leftover": leftover})
        self._leave_at = time.monotonic() + self.spec.linger_s
        if self._ends_with_program:
            self.leave()

    def _let_go(self) -> None:
        """Closes the program's terminal or pipes and the spool, and gives up the lock, so that the keeper of the next
        launch may write to the spool."""
        self.input.discard("exited", "the program has ended")
        fds = {self.program.input, *self.program.outputs.values()}
        if self.input.closed:
            fds.discard(self.program.input)
        self.input.closing = self.input.closed = True
        for fd in fds:
            self._watch(fd, 0, None)
            os.close(fd)
        for channel in self.channels.values():
            channel.fd = -1
            channel.held = b""
            channel.spool.close()
        os.close(self._lock)

    def _store_record(self) -> None:
        """Stores the exit record on disk before any client gets it. If the disk is full, the clients get it first and
        `_retry` stores it as soon as possible."""
        path = self.spec.file("exit.json")
        try:
            fd = os.open(path + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(json.dumps(self.exit_record).encode("ascii") + b"\n")
                file.flush()
                os.fsync(fd)
            os.rename(path + ".tmp", path)
        except OSError as error:
            self._raise_alert(f"the exit record cannot be stored: {error.strerror}")
        else:
            self._record_stored = True
            self._clear_alert()

    # --- the program's fds

    @property
    def takes_input(self) -> bool:
        return self._status is None and not self.input.closing

    def put_input(self, pending: Pending) -> None:
        self.input.put(pending)
        if self.input.stalled:
            self._watch_program()

    def discard_input(self) -> int:
        """Drops the waiting input, which is refused `discarded`. Returns the number of bytes dropped."""
        dropped = self.input.discard("discarded", "the input was discarded on request")
        self._watch_program()
        return dropped

    def close_input(self) -> None:
        """Closes the program's input, on pipes, after the waiting input is written: the program reads end of file."""
        self.input.closing = True
        self._watch_program()

    def _watch_program(self) -> None:
        """Registers with the selector the events of the program's fds that matter now. Must be called after each change
        of the input's or a channel's state."""
        masks = {
            channel.fd: 0 if channel.held or channel.closed else READ
            for channel in self.channels.values()
            if channel.fd >= 0
        }
        fd = self.program.input
        if self.input.wants_closing:
            self.input.closed = True
            self._watch(fd, 0, None)
            os.close(fd)
        if not self.input.closed:
            masks[fd] = masks.get(fd, 0) | (WRITE if self.input.stalled else 0)
        for fd, mask in masks.items():
            self._watch(fd, mask, lambda ready, fd=fd: self._program_ready(fd, ready))

    def _watch(self, fd: int, mask: int, callback: object) -> None:
        known = self._masks.get(fd, 0)
        if mask == known:
            return
        if not known:
            self._selector.register(fd, mask, callback)
        elif mask:
            self._selector.modify(fd, mask, callback)
        else:
            self._selector.unregister(fd)
        self._masks[fd] = mask

    def _program_ready(self, fd: int, mask: int) -> None:
        if mask & READ:
            for channel in self.channels.values():
                if channel.fd == fd:
                    self._pull(channel)
        if mask & WRITE:
            self.input.resume()
        self._watch_program()

    def _pull(self, channel: OutputChannel) -> None:
        channel.pull()
        if channel.held:
            fault = channel.spool.fault
            self._raise_alert(f"the output of the program cannot be stored: {fault.strerror if fault else 'unknown'}")
        elif not channel.closed:
            return
        elif self._status is not None:
            self._ending.look(time.monotonic())
        elif self.program.terminal:
            self._retry_later()  # every process closed the terminal; the program may open it again

    # --- a full disk

    def _retry(self) -> None:
        if self._clients.full:
            self._clients.listen(self._listener.sock)
        for channel in self.channels.values():
            if channel.fd >= 0 and channel.retry():
                self._pull(channel)
        if self.exit_record is not None and not self._record_stored:
            self._store_record()
        elif any(channel.held for channel in self.channels.values()):
            self._retry_later()
        else:
            self._clear_alert()
        if self.exit_record is None:
            self._watch_program()

    def _retry_later(self) -> None:
        if self._retry_at is None:
            self._retry_at = time.monotonic() + RETRY_S

    def _raise_alert(self, message: str) -> None:
        self._retry_later()
        if self._alert != message:
            self._alert = message
            self._clients.tell(frames.ALERT, {"code": "disk", "active": True, "message": message})

    def _clear_alert(self) -> None:
        if self._alert is not None:
            self._alert = None
            self._clients.tell(
                frames.ALERT, {"code": "disk", "active": False, "message": "the disk takes output again"}
            )
