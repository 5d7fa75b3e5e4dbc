"""Records for systemd's journal, in its own protocol: what is a key of a JSON line elsewhere is a field there.

    journalctl --user -u synapsed SYNAPSED_AGENT=NAME          what concerns one agent
    journalctl --user -u synapsed -p warning -o json

One datagram per record, `NAME=value` lines; a value of several lines is told by its length (systemd's "Native Journal
Protocol"). What the journal does not take goes to standard error as it is.
"""

import json
import logging
import os
import re
import socket
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOCKET = Path("/run/systemd/journal/socket")

PREFIX = "SYNAPSED_"
"""Of our fields, so that none is taken for one of the journal's own."""

VALUE_MAX = 32 * 1024
"""Characters of one field; a datagram has to fit into a socket's buffer."""

_TOLD_OTHERWISE = frozenset({"event", "level", "timestamp", "exception"})
_NO_FIELD_NAME = re.compile(r"[^A-Z0-9_]")
_NAME_MAX = 64

_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
"""syslog's, of which the journal's are; what is below is 7."""


def is_journal(environ: Mapping[str, str], fd: int = 2) -> bool:
    """Whether what is written to `fd` ends up in the journal: JOURNAL_STREAM names it by device and inode."""
    try:
        told = os.fstat(fd)
    except OSError:
        return False
    return environ.get("JOURNAL_STREAM") == f"{told.st_dev}:{told.st_ino}"


class JournalHandler(logging.Handler):
    """Its formatter has to make JSON objects."""

    def __init__(self, path: Path = SOCKET) -> None:
        super().__init__()
        self._path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        # A journal that is stuck must not hold up the event loop.
        self._socket.setblocking(False)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
            try:
                self._socket.sendto(_datagram(json.loads(line), record.levelno), self._path)
            except OSError:
                sys.stderr.write(line + "\n")
        except Exception:  # noqa: BLE001 - as every handler: logging says so and goes on
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
