"""The input queue: what waits to be written to the program, bounded, in order, each named input once."""

import os
import sys
from collections import deque

from .connection import Connection
from .input_journal import Entry, Journal

QUEUE_LIMIT = 1024 * 1024
"""Bytes that may wait for a program that does not read; beyond it a write is answered `busy`."""

MAX_LINE = 4095 if sys.platform == "linux" else 1023
"""Bytes of a line that a terminal in line (canonical) mode takes; the kernel drops the rest without a word."""

_CHUNK = 16 * 1024  # a PTY takes at most about 20 KB at once


class Pending:
    """One input on its way."""

    __slots__ = ("at", "data", "done", "entry", "hidden", "input_id", "waiters")

    def __init__(self, data: bytes, input_id: str | None) -> None:
        self.data = data
        self.input_id = input_id
        self.done = 0
        self.at = 0
        self.hidden = False
        """The terminal took lines and showed nothing of them when this was begun: it answers a password prompt."""
        self.entry: Entry | None = None
        self.waiters: list[tuple[Connection, int]] = []
        """(connection, request number) of everyone who waits for the outcome: a repeated id joins the first."""

    @property
    def begun(self) -> bool:
        return self.done > 0 or self.entry is not None


class InputQueue:
    """Pending inputs of one program."""

    __slots__ = ("_journal", "_queue", "size")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._queue: deque[Pending] = deque()
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._queue)

    def head(self) -> Pending:
        return self._queue[0]

    def has_room(self, size: int) -> bool:
        return self.size + size <= QUEUE_LIMIT

    def known(self, input_id: str) -> tuple[Pending | None, Entry | None]:
        """What is known of an input: it waits (Pending), or it was written (Entry), or neither."""
        for pending in self._queue:
            if pending.input_id == input_id:
                return pending, None
        return None, self._journal.get(input_id)

    def put(self, pending: Pending) -> None:
        self._queue.append(pending)
        self.size += len(pending.data)

    def begin(self, pending: Pending, at: int) -> None:
        """Journals the head before its first byte is written. Raises OSError: then it must not be written."""
        pending.at = at
        if pending.input_id is not None:
            pending.entry = self._journal.begin(pending.input_id, len(pending.data), at)

    def write(self, fd: int) -> bool:
        """Writes of the head what `fd` takes now; True when all of it is out. Raises OSError other than EAGAIN."""
        pending = self._queue[0]
        view = memoryview(pending.data)
        while pending.done < len(view):
            try:
                count = os.write(fd, view[pending.done : pending.done + _CHUNK])
            except BlockingIOError:
                return False
            pending.done += count
            if pending.entry is not None:
                pending.entry.written = pending.done
        return True

    def take(self, offset: int) -> Pending:
        """Removes the head; what was written of it, perhaps all, is journalled with the spool's end `offset`."""
        pending = self._queue.popleft()
        self.size -= len(pending.data)
        if pending.entry is not None and pending.input_id is not None:
            self._journal.finish(pending.input_id, pending.entry, offset)
        return pending


class LineCheck:
    """Watches for lines that a terminal in canonical mode would cut, over several inputs."""

    __slots__ = ("_fd", "_open", "hides")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._open = 0  # bytes of the line that earlier inputs began and did not end
        self.hides = False
        """At the last look the terminal was in canonical mode without echo: what is typed is meant to be secret."""

    def refuses(self, data: bytes) -> int | None:
        """Length of the longest line when the terminal would cut it; else None, and `data` counts as written.

        A line ends with NL, CR, or the terminal's own end-of-line characters.
        """
        import termios

        try:
            attributes = termios.tcgetattr(self._fd)
        except termios.error:
            return None
        self.hides = attributes[3] & (termios.ICANON | termios.ECHO) == termios.ICANON
        if not attributes[3] & termios.ICANON:
            self._open = 0
            return None
        ends = {attributes[6][index] for index in (termios.VEOL, termios.VEOL2, termios.VEOF)} | {b"\r"}
        for end in ends - {b"\0", b"\n"}:
            data = data.replace(end, b"\n")
        first, *others = data.split(b"\n")
        longest = max(self._open + len(first), *(len(line) for line in others), 0)
        if longest > MAX_LINE:
            return longest
        self._open = len(others[-1]) if others else self._open + len(first)
        return None
