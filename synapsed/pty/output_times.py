"""Stores the times of the output, in a file of marks beside the spool, because the spool has nothing but output.

A mark is written for output that comes at least `MARK_EVERY_S` after the last mark: so a busy program costs ten small
writes a second, and a quiet one none. Output from a time without a daemon gets the time at which the next daemon read
it.
"""

import os
import struct
from pathlib import Path

from synapsed.shared.files import write_whole

TIMES_FILE = "times"
"""File in the agent's directory."""

MARK_EVERY_S = 0.1

MARKS_MAX = 65_536
"""Largest number of marks that are kept, 1 MiB; when it is reached, the older half is dropped."""

_MARK = struct.Struct("<Qd")


class OutputTimes:
    """Times of one agent's output. Errors of the file are ignored: only times are lost."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count: int | None = None
        self._last_offset, self._last_at = -1, float("-inf")

    def note(self, offset: int, at: float) -> None:
        """Notes that output from `offset` on came at `at`, in Unix seconds. Output that is read again after a restart
        is ignored: it has its mark already."""
        if self._count is None:
            self._count, self._last_offset, self._last_at = self._known()
        if offset <= self._last_offset or 0 <= at - self._last_at < MARK_EVERY_S:
            return
        self._last_offset, self._last_at = offset, at
        try:
            if self._count >= MARKS_MAX:
                self._count = self._drop_older()
            if self._append(_MARK.pack(offset, at)):
                self._count += 1
        except OSError:
            return

    def read(self) -> list[tuple[int, float]]:
        """Returns all marks, each as (offset, time)."""
        try:
            raw = self._path.read_bytes()
        except OSError:
            return []
        return list(_MARK.iter_unpack(_complete_marks(raw)))

    def _known(self) -> tuple[int, int, float]:
        """Returns the number of marks, and the last mark. It does not read the whole file, because output waits."""
        try:
            with self._path.open("rb") as file:
                count = file.seek(0, os.SEEK_END) // _MARK.size
                file.seek(max(0, count - 1) * _MARK.size)
                last = file.read(_MARK.size)
        except OSError:
            return 0, -1, float("-inf")
        return (count, *_MARK.unpack(last)) if count else (0, -1, float("-inf"))

    def _append(self, mark: bytes) -> bool:
        """Returns True if the whole mark is stored. A part, of which a full disk takes no more, is cut off by the next
        one: all later marks would be read across their bounds."""
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(fd).st_size
            if torn := size % _MARK.size:
                os.ftruncate(fd, size - torn)
            return os.write(fd, mark) == _MARK.size
        finally:
            os.close(fd)

    def _drop_older(self) -> int:
        kept = _complete_marks(self._path.read_bytes())[-MARKS_MAX // 2 * _MARK.size :]
        write_whole(self._path, kept, durable=False)
        return len(kept) // _MARK.size


def _complete_marks(raw: bytes) -> bytes:
    """Returns the marks without a torn one at their end."""
    return raw[: len(raw) - len(raw) % _MARK.size]
