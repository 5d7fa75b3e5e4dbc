"""Writes input to the program: in order, without blocking, with an answer for each write."""

from __future__ import annotations

import os
import struct

from . import frames
from .inputs import Entry, InputQueue, LineCheck, Pending
from .requests import outcome, refuse

MYPY = False
if MYPY:  # true for type checkers: the keeper imports no typing at run time
    from collections.abc import Callable

    from .spawn import Program
    from .spool import Spool


class InputWriter:
    """Writes the queued inputs to the program. `stalled` is True while the program takes no more: call `resume` when
    its input is writable."""

    __slots__ = ("_catch_up", "_lines", "_program", "_spool", "closed", "closing", "queue", "stalled")

    def __init__(self, program: Program, queue: InputQueue, spool: Spool, catch_up: Callable[[], None]) -> None:
        """`catch_up` stores in `spool` the output that the program has written so far."""
        self.queue = queue
        self.stalled = False
        self.closing = False
        """True if no more input is accepted; waiting input is still written."""
        self.closed = False
        """True if the program's input is closed."""
        self._program = program
        self._lines = LineCheck(program.input) if program.terminal else None
        self._spool = spool
        self._catch_up = catch_up

    @property
    def wants_closing(self) -> bool:
        """True if the program, on pipes, has got all its input: the pipe may be closed."""
        return self.closing and not self.closed and not self.queue and not self._program.terminal

    def unread(self) -> int | None:
        """Returns the number of bytes that were written and that the program has not read; None if it is unknown."""
        import fcntl
        import select
        import termios

        if self.closed:
            return None
        other = None
        try:
            if self._program.terminal:  # only the program's side of the terminal reports this
                other = os.open(self._program.tty, os.O_RDONLY | os.O_NOCTTY)
                # Linux brings written bytes to the program's side by a work queue, late on a busy machine, and counts
                # only those that are there. A poll waits for that queue.
                poll = select.poll()
                poll.register(other, select.POLLIN)
                poll.poll(0)
            fd = self._program.input if other is None else other
            return int(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0])
        except OSError:  # the program is ending
            return None
        finally:
            if other is not None:
                os.close(other)

    def modes(self) -> tuple[bool | None, bool | None]:
        """Returns two values: True if the terminal gives the program whole lines (canonical mode), not single keys; and
        True if the terminal echoes typed text. Each is None if it is unknown."""
        import termios

        if self.closed or not self._program.terminal:
            return None, None
        try:
            flags = termios.tcgetattr(self._program.input)[3]
        except termios.error:  # the program is ending
            return None, None
        return bool(flags & termios.ICANON), bool(flags & termios.ECHO)

    def foreground(self) -> int | None:
        """Returns the process group that reads the terminal; None if no group does, or it is unknown."""
        if self.closed or not self._program.terminal:
            return None
        try:
            return os.tcgetpgrp(self._program.input) or None  # 0 would mean the keeper's own group
        except OSError:
            return None

    def put(self, pending: Pending) -> None:
        self.queue.put(pending)
        if not self.stalled:
            self.resume()

    def resume(self) -> None:
        """Writes until the queue is empty or the program takes no more."""
        self.stalled = False
        while self.queue and not self.closed:
            pending = self.queue.head()
            if not pending.begun and not self._begin(pending):
                continue
            try:
                finished = self.queue.write(self._program.input)
            except OSError:  # EIO, EPIPE: no process will ever read it
                self.discard("exited", "the program has closed its input")
                break
            if not finished:
                self.stalled = True
                return
            self._finish()

    def discard(self, code: str, message: str) -> int:
        """Drops all waiting inputs; each is refused with `code`. Returns the number of bytes dropped."""
        dropped = 0
        while self.queue:
            dropped += len(self.queue.head().data) - self.queue.head().done
            self._refuse(code, message)
        self.stalled = False
        return dropped

    def _begin(self, pending: Pending) -> bool:
        """Begins the first input of the queue. Returns False if the input was refused instead."""
        if pending.waiters:  # output from before this input must be below the offset in the answers to it
            self._catch_up()
        length = None if self._lines is None else self._lines.refuses(pending.data)
        if length is not None:
            self._refuse("line_too_long", f"the terminal is in line mode and would cut a line of {length} bytes")
            return False
        pending.hidden = self._lines is not None and self._lines.hides
        try:
            self.queue.begin(pending, self._spool.end)
        except OSError as error:
            self._refuse("journal_failed", f"the input cannot be recorded: {error.strerror}")
            return False
        return True

    def _finish(self) -> None:
        # Without `_catch_up`: the program's response to this input must not be below the offset.
        pending = self._take()
        entry = pending.entry or Entry(len(pending.data), pending.at, pending.done, self._spool.end)
        for client, request in pending.waiters:
            client.send(frames.REPLY, {"req": request, **outcome("written", entry), "hidden": pending.hidden})

    def _refuse(self, code: str, message: str) -> None:
        pending = self._take()
        for client, request in pending.waiters:
            refuse(client, request, code, message, written=pending.done)

    def _take(self) -> Pending:
        """Removes the head, and counts the part of it that was written."""
        pending = self.queue.take(self._spool.end)
        if self._lines is not None:
            self._lines.wrote(pending.data[: pending.done])
        return pending
