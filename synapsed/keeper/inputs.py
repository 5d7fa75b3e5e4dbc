"""The input of the program: a bounded queue of the inputs that wait, and a journal of those that were written, so that
each is written exactly once.

The journal has one JSON object a line. The first line names the launch; `{"id", "length", "at"}` says that an input is
about to be written, `{"id", "written", "offset"}` that it was written, or how many bytes of it were. The former is on
disk before the first byte reaches the program. Nothing is fsynced: the page cache outlives the keeper, and a crash of
the machine that loses it ends the program too. A torn last line is dropped on loading.

Memory and file are bounded: the newest REMEMBERED inputs are known, older ones are forgotten. Of the answers to queries
of the program (`query.N`; N is the query's offset, and grows) only the highest N is known: those below are written.
"""

import errno
import json
import os
import sys
from collections import deque

MYPY = False
if MYPY:  # true for type checkers: the keeper imports no typing at run time
    from .requests import Connection


REMEMBERED = 512
"""Inputs remembered, to recognize duplicates. A daemon repeats only its last few inputs, if it was killed after it sent
them and before it recorded so."""

_FORMAT = 1


class Entry:
    """One input: its `length`; `at`, the end of the spool when the input was begun; the bytes `written` so far; and
    `offset`, the end of the spool when the last byte was written (None until then)."""

    __slots__ = ("at", "length", "offset", "written")

    def __init__(self, length: int, at: int, written: int = 0, offset: int | None = None) -> None:
        self.length = length
        self.at = at
        self.written = written
        self.offset = offset


def _query_offset(input_id: str) -> int | None:
    """Returns the offset in the id of an answer to a query; None if it is the id of another input."""
    kind, _, offset = input_id.partition(".")
    return int(offset) if kind == "query" and offset.isdecimal() else None


class Journal:
    """The journal of one launch."""

    def __init__(self, path: str, launch_id: str) -> None:
        """Opens the journal of `launch_id`; a journal of an earlier launch is replaced. Raises OSError."""
        self._path = path
        self._launch_id = launch_id
        self._entries: dict[str, Entry] = {}
        self._answered = -1  # the highest offset of a query that was answered
        self._lines = 0
        self._fd = -1
        self._load()
        self._rewrite()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, input_id: str) -> Entry | None:
        """Returns the entry of an input that was begun, if it is still remembered; an empty one of a query's answer."""
        if (offset := _query_offset(input_id)) is not None and offset <= self._answered:
            return Entry(0, offset, offset=offset)
        return self._entries.get(input_id)

    def begin(self, input_id: str, length: int, at: int) -> Entry:
        """Records that an input is about to be written. Raises OSError: then the input must not be written."""
        if self._lines >= 4 * REMEMBERED or self._fd < 0:
            self._rewrite()
        self._append({"id": input_id, "length": length, "at": at})
        return self._remember(input_id, Entry(length, at))

    def finish(self, input_id: str, entry: Entry, offset: int) -> None:
        """Records that no further byte of the input will be written; `entry.written` says how many were. Never raises:
        the program has the bytes already. The next `begin` writes a line that cannot be stored now."""
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
        if (offset := _query_offset(input_id)) is not None:
            self._answered = max(self._answered, offset)
            return entry
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
        if self._answered >= 0:
            lines.append(_line({"id": f"query.{self._answered}", "length": 0, "at": self._answered}))
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


QUEUE_LIMIT = 1024 * 1024
"""Bytes that may wait for a program that does not read; a WRITE that would exceed the limit is refused `busy`."""

MAX_LINE = 4095 if sys.platform == "linux" else 1023
"""Bytes of a line that a terminal in line (canonical) mode takes; the kernel drops the rest without an error."""

_CHUNK = 16 * 1024  # a PTY takes at most about 20 KB at once


class Pending:
    """One input in the queue."""

    __slots__ = ("at", "data", "done", "entry", "hidden", "input_id", "waiters")

    def __init__(self, data: bytes, input_id: str | None) -> None:
        self.data = data
        self.input_id = input_id
        self.done = 0
        self.at = 0
        self.hidden = False
        """True if the terminal was in line mode without echo when the input was begun: it answers a password prompt."""
        self.entry: Entry | None = None
        self.waiters: list[tuple[Connection, int]] = []
        """(connection, request number) of every client that waits for the outcome: several, if the id was repeated."""

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
        """Returns the Pending if the input waits, else the Entry if it was written and is remembered, else neither."""
        for pending in self._queue:
            if pending.input_id == input_id:
                return pending, None
        return None, self._journal.get(input_id)

    def put(self, pending: Pending) -> None:
        self._queue.append(pending)
        self.size += len(pending.data)

    def begin(self, pending: Pending, at: int) -> None:
        """Journals the first input of the queue before its first byte is written. Raises OSError: then the input must
        not be written."""
        pending.at = at
        if pending.input_id is not None:
            pending.entry = self._journal.begin(pending.input_id, len(pending.data), at)

    def write(self, fd: int) -> bool:
        """Writes as much of the first input as `fd` takes now. Returns True if all of it is written. Raises OSError,
        but not for EAGAIN."""
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
        """Removes the first input, and journals how much of it was written. `offset`: the spool's end."""
        pending = self._queue.popleft()
        self.size -= len(pending.data)
        if pending.entry is not None and pending.input_id is not None:
            self._journal.finish(pending.input_id, pending.entry, offset)
        return pending


class LineCheck:
    """Watches for lines that a terminal in canonical mode would cut, over several inputs. A line's length is never too
    small: an erase key takes back one byte here, and a whole character or word there."""

    __slots__ = ("_fd", "_ignored", "_kinds", "_open", "_quote", "_quoted", "hides")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._kinds = b""  # a table: what ends or drops a line is NL, what erases is CR; empty while there are no lines
        self._ignored = b""  # keys that are not in the line and do not change it
        self._quote = self._quoted = b""  # the key whose next one is text; the same if an earlier input ended with it
        self._open = 0  # bytes of the line that earlier inputs began and did not end
        self.hides = False
        """True if the terminal was in canonical mode without echo at the last look: the text is meant to be secret."""

    def refuses(self, data: bytes) -> int | None:
        """Returns the length of the longest line if the terminal would cut it. Keys that interrupt or erase pass."""
        import termios as t

        self._kinds = b""
        try:
            inputs, _, _, flags, _, _, keys = t.tcgetattr(self._fd)
        except t.error:
            return None
        self.hides = flags & (t.ICANON | t.ECHO) == t.ICANON
        if not flags & t.ICANON:
            self._open, self._quoted = 0, b""
            return None
        ends = keys[t.VEOL] + keys[t.VEOL2] + keys[t.VEOF] + keys[t.VKILL]
        ignored = keys[t.VSTART] + keys[t.VSTOP] if inputs & t.IXON else b""
        if flags & t.ISIG:  # with the signal, the terminal drops the line, unless it must not flush
            signals = keys[t.VINTR] + keys[t.VQUIT] + keys[t.VSUSP]
            ends, ignored = (ends, ignored + signals) if flags & t.NOFLSH else (ends + signals, ignored)
        extended = bool(flags & t.IEXTEN)
        erases, quote = keys[t.VERASE] + keys[t.VWERASE] * extended, keys[t.VLNEXT] * extended
        enter = b"\n" if inputs & (t.ICRNL | t.IGNCR) == t.ICRNL else b"x"
        kinds = enter + b"\n" * len(ends) + b"\r" * len(erases) + b"x"
        self._kinds = bytes.maketrans(b"\r" + ends + erases + b"\0", kinds)  # a key that is 0 is switched off
        self._ignored, self._quote = ignored.replace(b"\0", b""), quote.replace(b"\0", b"")
        return longest if (longest := self._lengths(data)[0]) > MAX_LINE else None

    def wrote(self, data: bytes) -> None:
        """Notes that so much was written of the input that was asked about last."""
        if self._kinds and data:
            quoted = self._quote if self._quote and data.endswith(self._quote) else b""
            self._open, self._quoted = self._lengths(data)[1] - len(quoted), quoted  # it counts with the next key

    def _lengths(self, data: bytes) -> tuple[int, int]:
        """Returns the greatest length of a line while `data` is written, and that of the line that stays open."""
        if self._quote:
            first, *others = (self._quoted + data).split(self._quote)
            data = first + b"".join(b"x" + text[1:] for text in others)
        longest, length = 0, self._open
        for number, line in enumerate(data.translate(self._kinds, self._ignored).split(b"\n")):
            for erased, text in enumerate(line.split(b"\r")):
                length = max(0, length - 1) if erased else 0 if number else length
                longest = max(longest, length := length + len(text))
        return longest, length
