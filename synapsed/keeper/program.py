"""The keeper itself: one loop over the program, the clients and the clock.

Everything happens in one thread around one selector. Nothing in the loop blocks but the disk.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import time

from . import ending, frames
from .channel import OutputChannel
from .connection import Connection
from .ending import Ending
from .frames import ProtocolError
from .inputs import InputQueue, LineCheck, Pending
from .journal import Entry, Journal
from .processes import descendants, peer_uid, start_mark
from .requests import Requests, outcome, refuse
from .spawn import Program
from .spec import Spec

__all__ = ["Keeper"]

MAX_CLIENTS = 16
"""Connections at once; the daemon needs one, its successor another."""

RETRY_S = 0.5
"""Between two attempts at something that failed for want of disk space, or at a terminal that everybody closed."""

FAREWELL_S = 1.0
"""How long a keeper that ends goes on sending what its clients have not read."""

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Keeper:
    """Keeps one program. `run` returns when the keeper has nothing left to do."""

    def __init__(
        self,
        *,
        spec: Spec,
        program: Program,
        listener: socket.socket,
        channels: dict[str, OutputChannel],
        journal: Journal,
        started_at: float,
    ) -> None:
        self.spec = spec
        self.program = program
        self.channels = channels
        self.inputs = InputQueue(journal)
        self.exit_record: dict[str, object] | None = None
        self.size = (spec.cols, spec.rows)
        self._listener = listener
        self._requests = Requests(self)
        self._started_at = started_at
        self._spool_starts = {name: channel.spool.end for name, channel in channels.items()}
        self._marks = (start_mark(os.getpid()), start_mark(program.pid))
        self._lines = LineCheck(program.input)
        self._selector = selectors.DefaultSelector()
        self._masks: dict[int, int] = {}
        self._closed: set[int] = set()
        self._clients: list[Connection] = []
        self._ending = Ending(sweep_on_exit=spec.sweep_on_exit)
        self._stop_waiters: list[tuple[Connection, int]] = []
        self._status: int | None = None
        self._exited_at = 0.0
        self._leftover = 0
        self._record_stored = False
        self._input_open = True
        self._input_stalled = False
        self._alert: str | None = None
        self._retry_at: float | None = None
        self._leave_at: float | None = None
        self._ends_with_program = False

    # --- the loop

    def run(self) -> None:
        wake = self._watch_signals()
        self._selector.register(self._listener, READ, self._accept)
        self._selector.register(wake, READ, lambda _mask: self._signals(wake))
        self._reap()
        for channel in self.channels.values():
            self._watch_channel(channel)
        while True:
            now = time.monotonic()
            self._advance(now)
            more = self._serve_clients()
            if self._leave_at is not None and (now >= self._leave_at or self._farewell_done()):
                return
            for key, mask in self._selector.select(0 if more else self._patience()):
                key.data(mask)

    def close(self) -> None:
        """Gives up the socket and every connection."""
        for client in self._clients:
            client.sock.close()
        self._listener.close()
        try:  # noqa: SIM105 - contextlib stays unimported
            os.unlink(self.spec.socket)
        except OSError:
            pass  # somebody removed it: nothing is left to clean up

    def _patience(self) -> float | None:
        times = [at for at in (self._ending.deadline(), self._retry_at, self._leave_at) if at is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _advance(self, now: float) -> None:
        if self._retry_at is not None and now >= self._retry_at:
            self._retry_at = None
            self._retry()
        if self.inputs and not self._input_stalled:
            self._write_input()
        if self.exit_record is None and self._ending.deadline() is not None:
            self._end(now)

    def _serve_clients(self) -> bool:
        more = False
        for client in tuple(self._clients):
            if not client.broken and client.pump(self.channels, self.exit_record):
                more = True
            if client.broken or (client.closing and not client.wants_writing):
                self._drop(client)
            else:
                self._watch_client(client)
        return more

    # --- signals and the end

    def _watch_signals(self) -> int:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: None)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)
        return reader

    def _signals(self, wake: int) -> None:
        numbers = os.read(wake, 512)
        if signal.SIGTERM in numbers:
            self._terminated()
        if signal.SIGCHLD in numbers:
            self._reap()

    def _terminated(self) -> None:
        """SIGTERM to the keeper, by a service manager: end the program and do not wait for anybody."""
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
                return
            if pid == 0:
                return
            if pid == self.program.pid:
                self._status = status
                self._exited_at = time.time()
                self._ending.exited(time.monotonic())

    def stop(self, grace: float, waiter: tuple[Connection, int] | None) -> None:
        """Climbs the ladder of `ending`; `waiter` is answered when everything is gone."""
        if waiter is not None:
            self._stop_waiters.append(waiter)
        self._ending.stop(time.monotonic(), grace)

    def leave(self) -> None:
        """The exit is known to whom it matters: say farewell and end."""
        if self._leave_at is None or self._leave_at > time.monotonic() + FAREWELL_S:
            self._leave_at = time.monotonic() + FAREWELL_S
        for client in self._clients:
            client.closing = True

    def _farewell_done(self) -> bool:
        return not self._clients

    def _end(self, now: float) -> None:
        survivors = self._survivors()
        action = self._ending.next(
            now,
            drained=all(channel.drained for channel in self.channels.values()),
            blocked=any(channel.held for channel in self.channels.values()),
            has_survivors=bool(survivors),
        )
        if action == ending.TERM:
            self._strike(survivors, signal.SIGTERM)
            self._strike(survivors, signal.SIGCONT)  # a stopped process would never see the TERM
        elif action == ending.KILL:
            self._strike(survivors, signal.SIGKILL)
        elif action == ending.RECORD:
            self._leftover = len(survivors) if self.spec.sweep_on_exit or self._ending.stopping else 0
            self._record_exit()

    def _survivors(self) -> list[int]:
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            if hasattr(signal, "pidfd_send_signal"):  # Linux, so a subreaper: no children, no descendants
                return []
        return descendants(os.getpid(), self.program.pid)

    def _strike(self, pids: list[int], number: int) -> None:
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
            except PermissionError:
                pass  # it changed its uid (sudo): reported as left over in the end

    def _record_exit(self) -> None:
        status = 0 if self._status is None else self._status
        signaled = os.WIFSIGNALED(status)
        known = self._status is not None
        self.exit_record = {
            "format": 1,
            "launch_id": self.spec.launch_id,
            "pid": self.program.pid,
            "code": os.WEXITSTATUS(status) if known and not signaled else None,
            "signal": os.WTERMSIG(status) if known and signaled else None,
            "stopped": self._ending.stopping,
            "leftover": self._leftover,
            "output_lost": sum(len(channel.held) for channel in self.channels.values()),
            "final_offset": self.channels[self.spec.channels[0]].spool.end,
            "final_offsets": {name: channel.spool.end for name, channel in self.channels.items()},
            "started_at": self._started_at,
            "exited_at": self._exited_at or time.time(),
        }
        self.discard_input("exited", "the program has ended")
        self._let_go()
        self._store_record()
        for client, request in self._stop_waiters:
            client.send(frames.REPLY, {"req": request, "status": "stopped", "leftover": self._leftover})
        self._stop_waiters.clear()
        self._leave_at = time.monotonic() + self.spec.linger_s
        if self._ends_with_program:
            self.leave()

    def _let_go(self) -> None:
        """The program's terminal is closed, and a successor may write to the spool."""
        self._input_open = False
        fds = {self.program.input, *self.program.outputs.values()}
        for fd in fds:
            self._close_fd(fd)
        for channel in self.channels.values():
            channel.fd = -1
            channel.held = b""
            channel.spool.close()

    def _store_record(self) -> None:
        """Durable before it is told, except where the disk is full: then it is told, and stored as soon as possible."""
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

    # --- output

    def _watch_channel(self, channel: OutputChannel) -> None:
        reading = READ if channel.fd >= 0 and not channel.held and not channel.closed else 0
        if channel.fd == self.program.input and self._input_stalled:
            reading |= WRITE
        self._watch(channel.fd, reading, lambda mask: self._channel_ready(channel, mask))

    def _channel_ready(self, channel: OutputChannel, mask: int) -> None:
        if mask & WRITE:
            self._input_stalled = False
        if mask & READ:
            self._pull(channel)
        self._watch_channel(channel)

    def _pull(self, channel: OutputChannel) -> None:
        channel.pull()
        if channel.held:
            fault = channel.spool.fault
            self._raise_alert(f"the output of the program cannot be stored: {fault.strerror if fault else 'unknown'}")
        elif channel.closed and channel.name == "pty" and self._status is None:
            self._retry_later()  # everybody closed the terminal; the program may open it again

    def _retry(self) -> None:
        for channel in self.channels.values():
            if channel.fd >= 0 and channel.retry():
                self._pull(channel)
                self._watch_channel(channel)
        blocked = any(channel.held for channel in self.channels.values())
        if self.exit_record is not None and not self._record_stored:
            self._store_record()
        elif blocked:
            self._retry_later()
        else:
            self._clear_alert()
        if self._input_stalled:
            self._input_stalled = False

    def _retry_later(self) -> None:
        if self._retry_at is None:
            self._retry_at = time.monotonic() + RETRY_S

    def _raise_alert(self, message: str) -> None:
        self._retry_later()
        if self._alert != message:
            self._alert = message
            self._tell(frames.ALERT, {"code": "disk", "active": True, "message": message})

    def _clear_alert(self) -> None:
        if self._alert is not None:
            self._alert = None
            self._tell(frames.ALERT, {"code": "disk", "active": False, "message": "the disk takes output again"})

    # --- input

    @property
    def takes_input(self) -> bool:
        return self._input_open and self._status is None

    def put_input(self, pending: Pending) -> None:
        self.inputs.put(pending)
        if not self._input_stalled:
            self._write_input()

    def close_input(self) -> None:
        """End of file on the program's standard input, after what waits for it."""
        self._input_open = False
        if not self.inputs:
            self._close_fd(self.program.input)

    def discard_input(self, code: str, message: str) -> int:
        """Drops every input that waits; each is refused with `code`. Bytes dropped."""
        dropped = 0
        while self.inputs:
            dropped += len(self.inputs.head().data) - self.inputs.head().done
            self._refuse_head(code, message)
        return dropped

    def signal_program(self, number: int, *, foreground: bool) -> None:
        """Raises ProcessLookupError when there is nobody to signal, PermissionError when that is not allowed."""
        if self._status is not None:
            raise ProcessLookupError
        if not foreground:
            os.kill(self.program.pid, number)
        elif self.program.terminal:
            os.killpg(os.tcgetpgrp(self.program.input), number)
        else:
            os.killpg(self.program.pid, number)

    def _write_input(self) -> None:
        while self.inputs:
            pending = self.inputs.head()
            if not pending.begun and not self._begin_input(pending):
                continue
            try:
                finished = self.inputs.write(self.program.input)
            except OSError:
                self.discard_input("exited", "the program has closed its input")
                return
            if not finished:
                self._stall()
                return
            self._finish_input()
        if not self._input_open and self.program.input not in self.program.outputs.values():
            self._close_fd(self.program.input)

    def _begin_input(self, pending: Pending) -> bool:
        """False when the head was refused instead."""
        channel = self.channels[self.spec.channels[0]]
        # What the program wrote before this input must be below the offset that the answer names.
        channel.pull()
        if channel.held or channel.closed:
            self._pull(channel)
            self._watch_channel(channel)
        length = self._lines.refuses(pending.data) if self.program.terminal else None
        if length is not None:
            self._refuse_head("line_too_long", f"the terminal is in line mode and would cut a line of {length} bytes")
            return False
        try:
            self.inputs.begin(pending, channel.spool.end)
        except OSError as error:
            self._refuse_head("journal_failed", f"the input cannot be recorded: {error.strerror}")
            return False
        return True

    def _finish_input(self) -> None:
        offset = self.channels[self.spec.channels[0]].spool.end
        pending = self.inputs.take(offset)
        entry = pending.entry or Entry(len(pending.data), pending.at, pending.done, offset)
        for client, request in pending.waiters:
            client.send(frames.REPLY, {"req": request, **outcome("written", entry)})

    def _refuse_head(self, code: str, message: str) -> None:
        pending = self.inputs.take(self.channels[self.spec.channels[0]].spool.end)
        for client, request in pending.waiters:
            refuse(client, request, code, message, written=pending.done)

    def _stall(self) -> None:
        """The program does not read: go on when its terminal or pipe takes more."""
        self._input_stalled = True
        for channel in self.channels.values():
            if channel.fd == self.program.input:
                self._watch_channel(channel)
                return
        self._watch(self.program.input, WRITE, self._input_ready)

    def _input_ready(self, _mask: int) -> None:
        self._input_stalled = False
        self._watch(self.program.input, 0, None)

    def _close_fd(self, fd: int) -> None:
        self._watch(fd, 0, None)
        if fd not in self._closed:
            self._closed.add(fd)
            os.close(fd)

    # --- clients

    def describe(self) -> dict[str, object]:
        """The facts of WELCOME and of the answer to PING."""
        primary = self.channels[self.spec.channels[0]].spool
        return {
            "launch_id": self.spec.launch_id,
            "keeper_pid": os.getpid(),
            "keeper_start": self._marks[0],
            "pid": self.program.pid,
            "pid_start": self._marks[1],
            "transport": self.spec.transport,
            "cols": self.size[0],
            "rows": self.size[1],
            "spool_start": primary.start,
            "spool_end": primary.end,
            "launch_start": self._spool_starts[self.spec.channels[0]],
            "channels": {
                name: {"start": channel.spool.start, "end": channel.spool.end, "launch": self._spool_starts[name]}
                for name, channel in self.channels.items()
            },
            "input_pending": self.inputs.size,
            "alert": self._alert,
            "started_at": self._started_at,
            "exit": self.exit_record,
        }

    def _accept(self, _mask: int) -> None:
        try:
            sock, _address = self._listener.accept()
        except OSError:
            return  # the client gave up
        if len(self._clients) >= MAX_CLIENTS or peer_uid(sock) not in (os.getuid(), None):
            sock.close()
            return
        sock.setblocking(False)
        self._clients.append(Connection(sock))

    def _client_ready(self, client: Connection, mask: int) -> None:
        if not mask & READ or client.closing:
            return
        try:
            for frame in client.receive():
                self._requests.serve(client, frame)
        except ProtocolError as error:
            client.send(frames.REFUSED, {"req": None, "code": error.code, "message": str(error)})
            client.closing = True

    def _drop(self, client: Connection) -> None:
        if client.registered:
            self._selector.unregister(client.sock)
        client.registered = 0
        client.sock.close()
        self._clients.remove(client)

    def _watch_client(self, client: Connection) -> None:
        mask = (READ if client.wants_reading else 0) | (WRITE if client.wants_writing else 0)
        if mask == client.registered:
            return
        if not client.registered:
            self._selector.register(client.sock, mask, lambda ready: self._client_ready(client, ready))
        elif mask:
            self._selector.modify(client.sock, mask, self._selector.get_key(client.sock).data)
        else:
            self._selector.unregister(client.sock)
        client.registered = mask

    def _tell(self, kind: int, header: dict[str, object]) -> None:
        for client in self._clients:
            if client.version:
                client.send(kind, header)

    def _watch(self, fd: int, mask: int, callback: object) -> None:
        """Registers `fd` for `mask`, or forgets it when that is 0."""
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
