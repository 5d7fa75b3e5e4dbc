"""The input journal: which inputs of this launch were written to the program, each exactly once.

One JSON object a line. The first line names the launch; `{"id", "length", "at"}` says that an input is about to be
written, `{"id", "written", "offset"}` that it was (or how far it came). The first is on disk before the first byte
reaches the program. Nothing is fsynced: the page cache outlives the keeper, and what loses it loses the program too.
A torn last line is dropped on loading.

Memory and file are bounded: the newest REMEMBERED inputs are known, older ones are forgotten.
"""

import errno
import json
import os

REMEMBERED = 512
"""Inputs remembered for duplicates. A daemon repeats only its last few, after it was killed between send and record."""

_FORMAT = 1


class Entry:
    """One input: its `length`, the spool offset `at` which it was begun, bytes `written` so far, and `offset`, the
    spool's end when the last of them was written (None until then)."""

    __slots__ = ("at", "length", "offset", "written")

    def __init__(self, length: int, at: int, written: int = 0, offset: int | None = None) -> None:
        self.length = length
        self.at = at
        self.written = written
        self.offset = offset


class Journal:
    """The journal of one launch."""

    def __init__(self, path: str, launch_id: str) -> None:
        """Opens the journal of `launch_id`, or replaces the one of an earlier launch. Raises OSError."""
        self._path = path
        self._launch_id = launch_id
        self._entries: dict[str, Entry] = {}
        self._lines = 0
        self._fd = -1
        self._load()
        self._rewrite()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, input_id: str) -> Entry | None:
        """The entry of an input that was begun, if it is still remembered."""
        return self._entries.get(input_id)

    def begin(self, input_id: str, length: int, at: int) -> Entry:
        """Records that an input is about to be written. Raises OSError: then it must not be written."""
        if self._lines >= 4 * REMEMBERED or self._fd < 0:
            self._rewrite()
        self._append({"id": input_id, "length": length, "at": at})
        return self._remember(input_id, Entry(length, at))

    def finish(self, input_id: str, entry: Entry, offset: int) -> None:
        """Records that no further byte of the input will be written; `entry.written` says how many were.

        Never raises: the bytes are with the program. A line that cannot be stored is written by the next `begin`.
        """
        entry.offset = offset
        try:
            self._append({"id": input_id, "written": entry.written, "offset": offset})
        except OSError:
            self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _remember(self, input_id: str, entry: Entry) -> Entry:
        self._entries[input_id] = entry
        while len(self._entries) > REMEMBERED:
            del self._entries[next(iter(self._entries))]
        return entry

    def _append(self, record: dict[str, object]) -> None:
        line = _line(record)
        size = os.fstat(self._fd).st_size
        try:
            _write_all(self._fd, line, self._path)
        except OSError:
            os.ftruncate(self._fd, size)  # half a line would swallow the next one
            raise
        self._lines += 1

    def _rewrite(self) -> None:
        lines = [_line({"format": _FORMAT, "launch_id": self._launch_id})]
        for input_id, entry in self._entries.items():
            lines.append(_line({"id": input_id, "length": entry.length, "at": entry.at}))
            if entry.offset is not None:
                lines.append(_line({"id": input_id, "written": entry.written, "offset": entry.offset}))
        temporary = self._path + ".tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write_all(fd, b"".join(lines), temporary)
            os.rename(temporary, self._path)
        except OSError:
            os.close(fd)
            raise
        self.close()
        self._fd = fd
        self._lines = len(lines)

    def _load(self) -> None:
        try:
            with open(self._path, "rb") as file:
                complete, _, _torn = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return
        lines = complete.split(b"\n")
        if _record(lines[0]).get("launch_id") != self._launch_id:
            return
        for line in lines[1:]:
            self._replay(_record(line))

    def _replay(self, record: dict[str, object]) -> None:
        input_id, length, at = record.get("id"), record.get("length"), record.get("at")
        written, offset = record.get("written"), record.get("offset")
        if not isinstance(input_id, str):
            return
        if isinstance(length, int) and isinstance(at, int):
            self._remember(input_id, Entry(length, at))
        elif input_id in self._entries and isinstance(written, int) and isinstance(offset, int):
            self._entries[input_id].written = written
            self._entries[input_id].offset = offset


def _write_all(fd: int, data: bytes, path: str) -> None:
    if os.write(fd, data) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def _line(record: dict[str, object]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def _record(line: bytes) -> dict[str, object]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
