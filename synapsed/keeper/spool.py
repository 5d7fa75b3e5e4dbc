"""The spool: a program's output on disk, addressed by ever-growing offsets; and the channel that reads the program's
output and stores it in the spool.

A spool is a directory of files (segments) that hold nothing but output; each is named by the offset of its first byte
(`00000000000004194304.seg`). So every prefix of a segment is valid, no write can leave a broken end, and a spool can be
read while its keeper lives, after it died, and without an index. Retention drops whole segments from the front; a
reader sees a gap in their place. A missing segment in the middle (deleted by hand, lost by a crash) is a gap as well.
"""

import itertools
import os

SEGMENT_SIZE = 4 * 1024 * 1024
"""Bytes per segment: old output is dropped in units of this size."""

RETENTION = 64 * 1024 * 1024
"""Bytes of output kept at least, per channel; at most one segment more is on disk."""

_SUFFIX = ".seg"
_DIGITS = 20


class _Segment:
    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


class SpoolReader:
    """Reads a spool, also while another process writes it (call `refresh` to see the new output)."""

    def __init__(self, directory: str) -> None:
        """Opens the spool in `directory`; a directory that does not exist is an empty spool. Raises OSError."""
        self.directory = directory
        self._segments: list[_Segment] = []
        self.refresh()

    @property
    def start(self) -> int:
        """Offset of the oldest byte kept."""
        return self._segments[0].start if self._segments else 0

    @property
    def end(self) -> int:
        """Offset after the newest byte."""
        return self._segments[-1].end if self._segments else 0

    def refresh(self) -> None:
        """Looks at the directory again. Raises OSError."""
        found = []
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            names = []
        for name in names:
            digits = name.removesuffix(_SUFFIX)
            if name.endswith(_SUFFIX) and len(digits) == _DIGITS and digits.isdecimal():
                try:
                    size = os.stat(os.path.join(self.directory, name)).st_size
                except FileNotFoundError:
                    continue  # retention removed it meanwhile
                found.append(_Segment(int(digits), int(digits) + size))
        found.sort(key=lambda segment: segment.start)
        for before, after in itertools.pairwise(found):
            before.end = min(before.end, after.start)
        self._segments = found

    def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Returns up to `limit` bytes from `offset` as `(start, data)`. `start > offset` means that the bytes between
        them are gone. The end of the output is reached if `data` is empty and `start >= end`, not if `data` is shorter
        than `limit`."""
        for segment in self._from(offset):
            start = max(offset, segment.start)
            data = self._pread(segment, start, min(limit, segment.end - start))
            if data:
                return start, data
        return max(offset, self.end), b""

    def _from(self, offset: int) -> list[_Segment]:
        # From the back: readers are nearly always at the newest segment.
        index = len(self._segments)
        while index and self._segments[index - 1].end > offset:
            index -= 1
        return self._segments[index:]

    def _path(self, start: int) -> str:
        return os.path.join(self.directory, f"{start:0{_DIGITS}d}{_SUFFIX}")

    def _pread(self, segment: _Segment, offset: int, size: int) -> bytes:
        try:
            fd = os.open(self._path(segment.start), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(fd, size, offset - segment.start)
        finally:
            os.close(fd)


class Spool(SpoolReader):
    """The one writer of a spool."""

    def __init__(
        self, directory: str, *, at_least: int = 0, retention: int = RETENTION, segment_size: int = SEGMENT_SIZE
    ) -> None:
        """Opens or creates the spool in `directory` and continues at its end, or at `at_least` if that is later.
        `at_least` is the offset that the caller has already seen: after a crash of the machine the file may be shorter
        than that, and an offset must never come twice with other bytes. Raises OSError."""
        os.makedirs(directory, mode=0o700, exist_ok=True)
        super().__init__(directory)
        self.fault: OSError | None = None
        """Reason why the last `append` stored only a part; None when it stored all."""
        self._retention = retention
        self._segment_size = segment_size
        self._fd = -1
        self._newest = b""
        """The data of the last `append`, kept in memory because every client reads it next."""
        last = self._segments[-1] if self._segments else None
        if last is not None and last.end >= at_least and self._on_disk(last) == last.end:
            self._fd = os.open(self._path(last.start), os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        else:
            self._begin(max(at_least, self.end))

    def append(self, data: bytes) -> int:
        """Stores `data` and returns how many bytes of it are stored: fewer if the disk is full (see `fault`). The
        caller keeps the rest, reads no more from the program, and tries again later."""
        view = memoryview(data)
        done = 0
        self._newest = b""
        try:
            while done < len(view):
                last = self._segments[-1]
                room = self._segment_size - (last.end - last.start)
                if room <= 0:
                    self._begin(last.end)
                    continue
                count = os.write(self._fd, view[done : done + room])
                last.end += count
                done += count
        except OSError as error:
            self.fault = error
        else:
            self.fault = None
            self._newest = data
        return done

    def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        newest = self._newest
        if newest and len(newest) <= limit and self.start <= offset == self._segments[-1].end - len(newest):
            return offset, newest
        return super().read(offset, limit)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _on_disk(self, segment: _Segment) -> int:
        return segment.start + os.stat(self._path(segment.start)).st_size

    def _begin(self, start: int) -> None:
        fd = os.open(self._path(start), os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.close()
        self._fd = fd
        if not self._segments or self._segments[-1].start != start:
            self._segments.append(_Segment(start, start))
        self._retain()

    def _retain(self) -> None:
        kept = sum(segment.end - segment.start for segment in self._segments)
        while len(self._segments) > 1:
            oldest = self._segments[0]
            kept -= oldest.end - oldest.start
            if kept < self._retention:
                return
            try:  # noqa: SIM105 - contextlib stays unimported
                os.unlink(self._path(oldest.start))
            except FileNotFoundError:
                pass
            del self._segments[0]

    def _pread(self, segment: _Segment, offset: int, size: int) -> bytes:
        try:
            if segment is self._segments[-1] and self._fd >= 0:
                return os.pread(self._fd, size, offset - segment.start)
            return super()._pread(segment, offset, size)
        except OSError:  # a gap for one reader; an error would end the keeper, and the program with it
            return b""


BATCH = 64 * 1024
"""Bytes read in one go: a PTY gives 4,095 at a time, and one spool write for sixteen of them is cheaper."""


class OutputChannel:
    """One output of the program (`fd`) and its spool: reads without blocking, stores everything, and holds back the
    data that the disk refuses."""

    __slots__ = ("closed", "fd", "held", "name", "spool")

    def __init__(self, name: str, fd: int, spool: Spool) -> None:
        self.name = name
        self.fd = fd
        self.spool = spool
        self.held = b""
        """Output that was read but refused by the disk. Until it is stored nothing more is read: the program blocks."""
        self.closed = False
        """True if no process has the other end open: EIO on a PTY, end of file on a pipe."""

    @property
    def drained(self) -> bool:
        """True if the output has ended and all of it is stored."""
        return self.closed and not self.held

    def pull(self) -> bool:
        """Reads and stores the present output, up to BATCH bytes. Returns True if a byte was stored."""
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
        """Stores the data that the disk refused before. Returns True if all of it is stored now."""
        held, self.held = self.held, b""
        return not held or (self._store(held) and not self.held)

    def _store(self, data: bytes) -> bool:
        done = self.spool.append(data)
        self.held = data[done:]
        return done > 0
