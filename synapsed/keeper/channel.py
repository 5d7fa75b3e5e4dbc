"""An output channel: the fd that the program writes to and the spool that keeps it."""

import os

from .spool import Spool

BATCH = 64 * 1024
"""Bytes read in one go: a PTY gives 4,095 at a time, and one spool write for sixteen of them is cheaper."""


class OutputChannel:
    """Reads without blocking, stores everything, holds back what the disk refuses."""

    __slots__ = ("closed", "fd", "held", "name", "spool")

    def __init__(self, name: str, fd: int, spool: Spool) -> None:
        self.name = name
        self.fd = fd
        self.spool = spool
        self.held = b""
        """Output read but refused by the disk. While there is any, nothing more is read: the program blocks."""
        self.closed = False
        """Nobody has the other end open: EIO on a PTY, end of file on a pipe."""

    @property
    def drained(self) -> bool:
        """All output there ever was is stored."""
        return self.closed and not self.held

    def pull(self) -> bool:
        """Reads and stores what is there, up to BATCH bytes. True when something was stored."""
        if self.held or self.fd < 0:
            return False
        chunks = []
        size = 0
        while size < BATCH:
            try:
                data = os.read(self.fd, BATCH - size)
            except BlockingIOError:
                self.closed = False
                break
            except OSError:  # EIO: no process has the terminal open
                data = b""
            if not data:
                self.closed = True
                break
            self.closed = False
            chunks.append(data)
            size += len(data)
        return size > 0 and self._store(b"".join(chunks))

    def retry(self) -> bool:
        """Stores what the disk refused before. True when all of it is stored now."""
        held, self.held = self.held, b""
        return not held or (self._store(held) and not self.held)

    def _store(self, data: bytes) -> bool:
        done = self.spool.append(data)
        self.held = data[done:]
        return done > 0
