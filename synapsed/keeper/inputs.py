"""The input of the program: a bounded queue of the inputs that wait, and a journal of those that were written, so that
each is written exactly once.

The journal has one JSON object a line. The first line names the launch; `{"id", "length", "at"}` says that an input is
about to be written, `{"id", "written", "offset"}` that it was written, or how many bytes of it were. The former is on
disk before the first byte reaches the program. Nothing is fsynced: the page cache outlives the keeper, and a crash of
the machine that loses it ends the program too. A torn last line is dropped on loading.

Memory and file are bounded: the newest REMEMBERED inputs are known, older ones are forgotten. Answers to the program's
queries, which can come by the thousand, are kept apart: their ids are `query.N`, where N is the query's offset in the
output, and grows. Only the newest is remembered; those before it count as written.
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
        self._answers: dict[str, Entry] = {}  # the newest answer to a query, if there was any
        self._answered = -1  # the highest offset of a query that was answered
        self._lines = 0
        self._fd = -1
        self._load()
        self._rewrite()

    def __len__(self) -> int:
        return len(self._entries) + len(self._answers)

    def get(self, input_id: str) -> Entry | None:
        """Returns the entry of an input that was begun, if it is still remembered; of an answer to a query that is not,
        an entry without bytes."""
        offset = _query_offset(input_id)
        if offset is None:
            return self._entries.get(input_id)
        known = self._answers.get(input_id)
        return Entry(0, offset, offset=offset) if known is None and offset <= self._answered else known

    def begin(self, input_id: str, length: int, at: int) -> Entry:
        """Records that an input is about to be written. Raises OSError: then the input must not be written."""
        if self._lines >= 4 * REMEMBERED or self._fd < 0:
            self._rewrite()
        self._append({"id": input_id, "length": length, "at": at})
        return self._remember(input_id, Entry(length, at))

    def finish(self, input_id: str, entry: Entry, offset: int) -> None:
        """Records that no further byte of the input will be written; `entry.written` says how many were.

        Never raises: the program has the bytes already. The next `begin` writes a line that cannot be stored now.
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
        known, limit = self._entries, REMEMBERED
        if (offset := _query_offset(input_id)) is not None:
            known, limit = self._answers, 1
            self._answered = max(self._answered, offset)
        known[input_id] = entry
        while len(known) > limit:
            del known[next(iter(known))]
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
        for input_id, entry in (*self._entries.items(), *self._answers.items()):
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
        elif isinstance(written, int) and isinstance(offset, int):
            entry = self._entries.get(input_id) or self._answers.get(input_id)
            if entry is not None:
                entry.written, entry.offset = written, offset


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
    """Watches for lines that a terminal in canonical mode would cut, over several inputs.

    The length is never too small: an erase key takes back one byte here, and a whole character or word there. Keys that
    interrupt or erase pass at any length, as they do in the kernel.
    """

    __slots__ = ("_fd", "_ignored", "_kinds", "_open", "_quote", "_quoted", "hides")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._kinds = b""  # a table: what begins a new line is NL, what erases is CR; empty while there are no lines
        self._ignored = b""  # keys that neither are in a line nor change it
        self._quote = b""  # the key whose next one is text, whichever it is
        self._quoted = b""  # this key, if an earlier input ended with it
        self._open = 0  # bytes of the line that earlier inputs began and did not end
        self.hides = False
        """True if the terminal was in canonical mode without echo at the last look: the text is meant to be secret."""

    def refuses(self, data: bytes) -> int | None:
        """Returns the length of the longest line if the terminal would cut it, else None."""
        import termios

        self._kinds = b""
        try:
            attributes = termios.tcgetattr(self._fd)
        except termios.error:
            return None
        self.hides = attributes[3] & (termios.ICANON | termios.ECHO) == termios.ICANON
        if not attributes[3] & termios.ICANON:
            self._open, self._quoted = 0, b""
            return None
        self._look(attributes[0], attributes[3], attributes[6])
        longest, _ = self._lengths(data)
        return longest if longest > MAX_LINE else None

    def wrote(self, data: bytes) -> None:
        """Notes that so much was written of the input that was asked about last."""
        if self._kinds and data:
            _, self._open = self._lengths(data)
            self._quoted = self._quote if self._quote and data.endswith(self._quote) else b""
            self._open -= len(self._quoted)  # it is counted with the next key

    def _look(self, input_flags: int, flags: int, keys: list[bytes]) -> None:
        """Notes what each key does now. A key that is 0 is switched off."""
        import termios as t

        kinds = bytearray(range(256))
        begins = [t.VEOL, t.VEOL2, t.VEOF, t.VKILL]
        ignored = [t.VSTART, t.VSTOP] if input_flags & t.IXON else []
        if flags & t.ISIG:  # with the signal, the terminal drops the line, unless it must not flush
            (ignored if flags & t.NOFLSH else begins).extend((t.VINTR, t.VQUIT, t.VSUSP))
        kinds[13] = 10 if input_flags & (t.ICRNL | t.IGNCR) == t.ICRNL else _TEXT[0]
        for index in begins:
            kinds[keys[index][0]] = 10
        for index in (t.VERASE, t.VWERASE) if flags & t.IEXTEN else (t.VERASE,):
            kinds[keys[index][0]] = 13
        kinds[0] = _TEXT[0]
        self._kinds = bytes(kinds)
        self._ignored = b"".join(keys[index] for index in ignored).replace(b"\0", b"")
        self._quote = keys[t.VLNEXT].replace(b"\0", b"") if flags & t.IEXTEN else b""

    def _lengths(self, data: bytes) -> tuple[int, int]:
        """Returns the greatest length of a line while `data` is written, and the length of the last one, which stays
        open."""
        if self._quote:
            first, *others = (self._quoted + data).split(self._quote)
            data = first + b"".join(_TEXT + text[1:] for text in others)
        longest = length = self._open
        for number, line in enumerate(data.translate(self._kinds, self._ignored).split(b"\n")):
            length = 0 if number else length
            for erased, text in enumerate(line.split(b"\r")):
                length = max(0, length - 1 if erased else length) + len(text)
                longest = max(longest, length)
        return longest, length


_TEXT = b"x"
"""Stands for any byte of a line."""
