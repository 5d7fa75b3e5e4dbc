"""Records in the journal's own protocol, as a reader of the journal gets them."""

import logging
import os
import socket
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from synapsed.process import logging as log
from synapsed.process.logging import VALUE_MAX, JournalHandler, is_journal


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The journal's socket; logging goes there."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"{folder}/socket")
        sock.setblocking(False)
        monkeypatch.setattr("synapsed.process.logging.is_journal", lambda environ: True)
        monkeypatch.setattr("synapsed.process.logging.JournalHandler", lambda: JournalHandler(Path(folder) / "socket"))
        log.configure("debug")
        yield sock
        for handler in root.handlers:
            handler.close()
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def entry(journal: socket.socket) -> dict[str, str]:
    """The fields of the next datagram, read as the protocol says."""
    data, found = journal.recv(1 << 20), {}
    while data:
        name, mark, rest = data.partition(b"\n")
        if b"=" in name:
            name, _, value = name.partition(b"=")
            data = rest
        else:
            (size,) = struct.unpack("<Q", rest[:8])
            value, data = rest[8 : 8 + size], rest[8 + size :]
            assert data[:1] == b"\n"
            data = data[1:]
        assert mark
        found[name.decode()] = value.decode()
    return found


def test_keys_are_fields(journal: socket.socket) -> None:
    structlog.get_logger("synapsed.agent").info("process", agent="claude", state="running", token="t", pid=7, none=None)
    assert entry(journal) == {
        "MESSAGE": "process agent=claude state=running token=*** pid=7",
        "PRIORITY": "6",
        "SYSLOG_IDENTIFIER": "synapsed",
        "SYNAPSED_LOGGER": "synapsed.agent",
        "SYNAPSED_AGENT": "claude",
        "SYNAPSED_STATE": "running",
        "SYNAPSED_TOKEN": "***",
        "SYNAPSED_PID": "7",
    }


def test_several_lines_names_and_priorities(journal: socket.socket) -> None:
    logging.getLogger("lib").warning("two\nlines")
    told = entry(journal)
    assert (told["MESSAGE"], told["PRIORITY"], told["SYNAPSED_LOGGER"]) == ("two\nlines", "4", "lib")
    structlog.get_logger().debug("odd", **{"a-key.ü": {"x": ["ä\n"]}, "n" * 100: "x" * 100_000})
    told = entry(journal)
    assert told["PRIORITY"] == "7"
    assert told["SYNAPSED_A_KEY__"] == '{"x": ["ä\\n"]}'
    assert len(told["SYNAPSED_" + "N" * 55]) <= VALUE_MAX
    try:
        int("why")
    except ValueError:
        structlog.get_logger().exception("oh")
    told = entry(journal)
    assert told["PRIORITY"] == "3"
    assert told["MESSAGE"].startswith("oh\nTraceback")
    assert "ValueError: invalid literal" in told["MESSAGE"]


def test_what_the_journal_does_not_take_is_not_lost(journal: socket.socket, capsys: pytest.CaptureFixture[str]) -> None:
    while True:  # nobody reads: its queue is full at some time
        structlog.get_logger().info("filling")
        if told := capsys.readouterr().err:
            break
    assert '"event": "filling"' in told


def test_whether_standard_error_is_the_journal(tmp_path: Path) -> None:
    with (tmp_path / "x").open("w") as file:
        told = os.fstat(file.fileno())
        assert is_journal({"JOURNAL_STREAM": f"{told.st_dev}:{told.st_ino}"}, file.fileno())
        assert not is_journal({"JOURNAL_STREAM": f"{told.st_dev}:{told.st_ino + 1}"}, file.fileno())
        assert not is_journal({}, file.fileno())
        number = file.fileno()
    assert not is_journal({"JOURNAL_STREAM": "1:2"}, number)
