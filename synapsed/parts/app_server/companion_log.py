"""Keeps the log of a companion (the app server's process) small while the companion writes it: its end stays, and the
text before is removed.

The companion appends (`O_APPEND`), so that its output after a cut follows the kept part. Output that is written at the
moment of a cut may be lost.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import structlog

LOG_MAX = 1 << 20
"""Bytes at which the log is cut."""
LOG_KEPT = 64 << 10
"""Bytes of its end that stay, without an incomplete first line."""
LOOK_S = 60.0
"""Seconds between two looks, in which it may grow beyond the limit."""

_log = structlog.get_logger(__name__)


async def keep_small(path: Path, *, every_s: float = LOOK_S) -> None:
    """Cuts the log whenever it is too long, until this is canceled."""
    while True:
        try:
            await asyncio.to_thread(cut, path)
        except OSError as error:
            _log.warning("the log of a companion cannot be cut", path=str(path), error=str(error))
        await asyncio.sleep(every_s)


def cut(path: Path) -> bool:
    """Cuts the log; returns whether it was too long. Raises OSError if it cannot be read or written; a missing log is
    short enough."""
    with suppress(FileNotFoundError):
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            size = os.fstat(fd).st_size
            if size <= LOG_MAX:
                return False
            end = os.pread(fd, LOG_KEPT, size - LOG_KEPT)
            os.ftruncate(fd, 0)
            os.write(fd, end[end.find(b"\n") + 1 :])
        finally:
            os.close(fd)
        return True
    return False
