"""Writes the log, with secrets masked: a line of JSON per event on standard error or in a rotating file, or fields of
systemd's journal.

All records go through the standard library's loggers, so that records of libraries have the same form. On a terminal
the lines have a form for people.

Records for systemd's journal use its own protocol: a key of the JSON line is a field there.

    journalctl --user -u synapsed SYNAPSED_AGENT=NAME          records of one agent
    journalctl --user -u synapsed -p warning -o json

One datagram per record, `NAME=value` lines; a value of several lines is preceded by its length (systemd's "Native
Journal Protocol"). A record that the journal does not take goes to standard error as it is.
"""

import json
import logging
import logging.handlers
import os
import socket
import struct
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

from synapsed.model import masking
from synapsed.model.masking import MASK
from synapsed.shared.regex import regex

SOCKET = Path("/run/systemd/journal/socket")

PREFIX = "SYNAPSED_"
"""Prefix of our fields, which distinguishes them from the journal's own."""

VALUE_MAX = 32 * 1024
"""Characters of one field; a datagram has to fit into a socket's buffer."""

_TOLD_OTHERWISE = frozenset({"event", "level", "timestamp", "exception"})
_NO_FIELD_NAME = regex(r"[^A-Z0-9_]")
_NAME_MAX = 64

_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
"""Syslog's priorities, which the journal uses; lower levels are 7."""


def is_journal(environ: Mapping[str, str], fd: int = 2) -> bool:
    """Returns True if `fd` leads to the journal: JOURNAL_STREAM names it by device and inode."""
    try:
        told = os.fstat(fd)
    except OSError:
        return False
    return environ.get("JOURNAL_STREAM") == f"{told.st_dev}:{told.st_ino}"


class JournalHandler(logging.Handler):
    """Sends records to the journal. Its formatter has to make JSON objects."""

    def __init__(self, path: Path = SOCKET) -> None:
        super().__init__()
        self._path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        # A journal that is stuck must not block the event loop.
        self._socket.setblocking(False)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
            try:
                self._socket.sendto(_datagram(json.loads(line), record.levelno), self._path)
            except OSError:
                sys.stderr.write(line + "\n")
        except Exception:  # noqa: BLE001 - like every handler: logging reports the error and goes on
            self.handleError(record)

    def close(self) -> None:
        self._socket.close()
        super().close()


def _datagram(entry: Mapping[str, Any], level: int) -> bytes:
    told = {key: _text(value) for key, value in entry.items() if key not in _TOLD_OTHERWISE and value is not None}
    words = " ".join(
        [str(entry.get("event", "")), *(f"{key}={value}" for key, value in told.items() if key != "logger")]
    )
    fields = {
        "MESSAGE": "\n".join(text for text in (words, str(entry.get("exception") or "")) if text),
        "PRIORITY": str(next((priority for least, priority in _PRIORITIES if level >= least), 7)),
        "SYSLOG_IDENTIFIER": "synapsed",
    }
    fields |= {f"{PREFIX}{_NO_FIELD_NAME.sub('_', key.upper())}"[:_NAME_MAX]: value for key, value in told.items()}
    return b"".join(
        _field(name.encode(), value[:VALUE_MAX].encode("utf-8", "replace")) for name, value in fields.items()
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _field(name: bytes, value: bytes) -> bytes:
    if b"\n" not in value:
        return b"%b=%b\n" % (name, value)
    return b"%b\n%b%b\n" % (name, struct.pack("<Q", len(value)), value)


FILE_BYTES = 4 * 1024 * 1024
FILES = 3
"""Older files kept."""

AGENT_LOG = "agent.log"
"""Log in an agent's directory, with its lifecycle and its turns."""

AGENT_FILE_BYTES = 1024 * 1024
"""Bytes at which an agent's log is rotated; one older file is kept."""

AGENT_FILES_MAX = 64
"""Logs of agents that are open at the same time."""

_AGENT_ID = regex(r"synapse-[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")

REPEATED_EVERY_S = 1.0
"""Seconds between two equal warnings in the log."""

REPEATS_KNOWN = 256

_TEXT_MAX = 10_000
"""Characters of one value; a longer one is cut."""


def configure(level: str = "info", *, file: Path | None = None, agents: Path | None = None) -> None:
    """Sends all logging to `file` (0600, rotated); if that is None, to standard error, or directly to the journal if
    standard error leads there. Records about one agent (`agent_id`) also go to `agent.log` in its directory below
    `agents`, if that directory exists."""
    handler: logging.Handler
    if file is not None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handler = _PrivateFile(file, maxBytes=FILE_BYTES, backupCount=FILES, encoding="utf-8")
    elif is_journal(os.environ):
        handler = JournalHandler()
    else:
        handler = logging.StreamHandler(sys.stderr)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        mask,
    ]
    for_people = file is None and sys.stderr.isatty()
    as_json: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        mask_late,
        structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
    ]
    on_screen: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        mask_late,
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
    handler.setFormatter(_formatter(shared, on_screen if for_people else as_json))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    handler.addFilter(Repeats())
    root.addHandler(handler)
    if agents is not None:
        per_agent = _PerAgent(agents)
        per_agent.setFormatter(_formatter(shared, as_json))
        root.addHandler(per_agent)
    root.setLevel(level.upper())
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _formatter(
    shared: list[structlog.typing.Processor], last: Sequence[structlog.typing.Processor]
) -> structlog.stdlib.ProcessorFormatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
    )


def mask(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Replaces secrets, which it recognises by their keys and by their form, nested ones too; cuts long values."""
    return {key: value if key == "exc_info" else _masked(key, value) for key, value in event.items()}


def mask_late(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Masks values that were no text yet when the rest was masked: the message's arguments, stacks and tracebacks."""
    return {**event, **{key: _masked(key, event[key]) for key in ("event", "exception", "stack") if key in event}}


def masked(value: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `value` with its secrets masked, and long values cut."""
    return {key: _masked(key, item) for key, item in value.items()}


def _masked(key: str, value: Any) -> Any:
    return MASK if key == "env" and value else masking.mask(_cut(value), key=key)


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _TEXT_MAX else f"{value[:_TEXT_MAX]}… ({len(value)} characters)"
    if isinstance(value, Mapping):
        return {name: MASK if name == "env" else _cut(item) for name, item in value.items()}
    return [_cut(item) for item in value] if isinstance(value, list | tuple) else value


class Repeats(logging.Filter):
    """Lets equal warnings and errors through once a second: a warning in a loop would fill the disk. The next record
    says how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._last: OrderedDict[tuple[str, int, str], tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        key = (record.name, record.levelno, _message_of(record))
        at, left_out = self._last.pop(key, (0.0, 0))
        if 0 <= record.created - at < REPEATED_EVERY_S:
            self._last[key] = at, left_out + 1
            return False
        self._last[key] = record.created, 0
        if len(self._last) > REPEATS_KNOWN:
            self._last.popitem(last=False)
        told: object = record.msg
        if left_out and isinstance(told, dict):
            record.msg = {**told, "left_out": left_out}
        elif left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} more like it)", ()
        return True


def _message_of(record: logging.LogRecord) -> str:
    """Returns the text of the record, without the time."""
    told: object = record.msg
    if isinstance(told, dict):
        return repr({key: value for key, value in told.items() if key not in ("timestamp", "_record")})
    return record.getMessage()


class _PrivateFile(logging.handlers.RotatingFileHandler):
    """A log file that only its owner can read, whatever the umask."""

    def _open(self) -> Any:
        fd = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return os.fdopen(fd, "a", encoding=self.encoding)


class _PerAgent(logging.Handler):
    """Writes records about one agent into its own directory; a missing directory is not made."""

    def __init__(self, agents: Path) -> None:
        super().__init__()
        self._agents = agents
        self._open: dict[str, _PrivateFile] = {}

    def emit(self, record: logging.LogRecord) -> None:
        told: object = record.msg
        agent_id = told.get("agent_id") if isinstance(told, dict) else None
        if not isinstance(agent_id, str) or not _AGENT_ID.fullmatch(agent_id):
            return
        directory = self._agents / agent_id
        try:
            if not directory.is_dir():
                self._close(agent_id)
                return
            self._file(agent_id, directory / AGENT_LOG).emit(record)
        except OSError:
            self.handleError(record)

    def _file(self, agent_id: str, path: Path) -> "_PrivateFile":
        file = self._open.pop(agent_id, None)
        if file is None:
            if len(self._open) >= AGENT_FILES_MAX:
                self._close(next(iter(self._open)))
            file = _PrivateFile(path, maxBytes=AGENT_FILE_BYTES, backupCount=1, encoding="utf-8")
            file.setFormatter(self.formatter)
        self._open[agent_id] = file  # the log that was used last comes last, so the first one is closed first
        return file

    def _close(self, agent_id: str) -> None:
        if (file := self._open.pop(agent_id, None)) is not None:
            file.close()

    def close(self) -> None:
        for agent_id in list(self._open):
            self._close(agent_id)
        super().close()
