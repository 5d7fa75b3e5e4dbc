"""The transcript of a program without a terminal, drawn on a screen as a terminal program's output would be.

It is kept in a spool of its own beside the program's, so that the screen can be drawn again from it, by this daemon and
by the next; `told_to` is up to where the program's output is in it.
"""

import contextlib
import os
from pathlib import Path

from synapsed.keeper.spool import Spool

RETENTION = 4 * 1024 * 1024
"""Bytes of the transcript that are kept."""

SHOWN = 128 * 1024
"""Bytes of it that a screen is drawn from when a daemon takes it up."""

_DIGITS = 20


class TranscriptSpool:
    """Blocks on the disk: some hundred bytes at a time. Raises OSError from `__init__` alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "spool-transcript"
        self._spool = Spool(str(self.folder), retention=RETENTION, segment_size=RETENTION // 4)
        self._place = os.open(folder / "transcript-told", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.begin = max(self._spool.start, self._spool.end - SHOWN)
        """Where a screen begins that is drawn from it."""

    def earlier(self) -> tuple[int, bytes]:
        """What a screen is to be drawn from at first."""
        pieces, at = [], self.begin
        while at < self._spool.end:
            start, data = self._spool.read(at, self._spool.end - at)
            if not data:
                break
            pieces.append(data)
            at = start + len(data)
        return self.begin, b"".join(pieces)

    def append(self, data: bytes) -> int:
        """The offset of what was stored; what a full disk refuses is not shown again later."""
        at = self._spool.end
        self._spool.append(data)
        return at

    def told_to(self, launch: str) -> int:
        """Up to where the output of that launch is in it; 0 for another launch's."""
        try:
            kept = os.pread(self._place, 256, 0).decode("ascii", "replace").split()
        except OSError:
            return 0
        return int(kept[0]) if len(kept) == 2 and kept[1] == launch and kept[0].isdecimal() else 0

    def note(self, offset: int, launch: str) -> None:
        with contextlib.suppress(OSError):  # then some lines are told once more
            os.pwrite(self._place, f"{offset:0{_DIGITS}d} {launch}\n".encode(), 0)

    def close(self) -> None:
        self._spool.close()
        os.close(self._place)
