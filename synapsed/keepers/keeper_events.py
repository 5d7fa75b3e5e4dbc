"""What a keeper says: its greeting, its events, what came of a write, and why it refused (docs/keeper-protocol.md)."""

from dataclasses import dataclass
from typing import Any, Literal

from synapsed.errors import KeeperLost, SynapsedError


class KeeperRefused(SynapsedError):
    """The keeper understood the request and did not do it; `reason` is its code (docs/keeper-protocol.md).

    For a write, `details["written"]` says how many bytes had reached the program, 0 where it is missing.
    """

    code = "KEEPER_REFUSED"

    def __init__(self, message: str, *, reason: str, **details: Any) -> None:
        super().__init__(message, reason=reason, **details)
        self.reason = reason


class KeeperSilent(KeeperLost):
    """It did not answer in time. It may live, on a machine that has no time for it."""


class KeeperBusy(KeeperRefused):
    """The program does not read and the keeper's bounded input queue is full: try later."""


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """How the program ended. `code` or `signal` is set; neither where the program could not be killed."""

    launch_id: str
    pid: int
    code: int | None
    signal: int | None
    stopped: bool
    """A stop had been asked for."""
    leftover: int
    """Descendants that could not be ended."""
    output_lost: int
    """Bytes that a full disk refused although a stop could not wait; 0 otherwise, always."""
    final_offset: int
    started_at: float
    exited_at: float

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "ExitRecord":
        """From the record of an EXITED frame or of `exit.json`; unknown fields are ignored. Raises KeyError."""
        return cls(**{name: record[name] for name in cls.__slots__})

    @property
    def exit_code(self) -> int | None:
        """The code, or the signal as a negative number."""
        return self.code if self.signal is None else -self.signal


@dataclass(frozen=True, slots=True)
class Hello:
    """What the keeper said of itself when the connection was made."""

    version: int
    launch_id: str
    keeper_pid: int
    keeper_start: int | None
    pid: int
    pid_start: int | None
    """None once the program has ended."""
    transport: Literal["pty", "pipes"]
    cols: int
    rows: int
    spool_start: int
    """Offset of the oldest byte kept."""
    spool_end: int
    launch_start: int
    """Offset at which this launch's output begins."""
    alert: str | None
    started_at: float
    exit: ExitRecord | None
    unread: int
    """Bytes of input that the program has not read, as far as that can be told."""
    line_mode: bool | None = None
    """Whether the terminal gives the program whole lines: then no line editor is up."""
    echo: bool | None = None
    """Whether it shows what is typed."""
    foreground: int | None = None
    """The process group that reads the terminal."""
    terminals: bool = False
    """Whether persons' terminals can be joined to it."""

    @classmethod
    def from_json(cls, header: dict[str, Any]) -> "Hello":
        """From the header of WELCOME, or of the answer to PING. Raises KeyError."""
        exit_record = header["exit"]
        later = ("exit", "unread", "line_mode", "echo", "foreground", "terminals")
        plain = {name: header[name] for name in cls.__slots__ if name not in later}
        return cls(
            exit=None if exit_record is None else ExitRecord.from_json(exit_record),
            unread=header["input_pending"] + (header.get("input_unread") or 0),  # keepers of before did not look
            line_mode=header.get("line_mode"),
            echo=header.get("echo"),
            foreground=header.get("foreground"),
            terminals=header.get("terminals") is True,
            **plain,
        )


@dataclass(frozen=True, slots=True)
class Output:
    """Bytes that the program wrote, at `offset` of its channel."""

    offset: int
    data: bytes
    channel: str = "pty"
    continues: bool = False
    """It came with what came before, and was cut off that here (`keeper_connection`)."""

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


@dataclass(frozen=True, slots=True)
class OutputGap:
    """Output from `start` to `end` is gone: retention overwrote it before it was read."""

    start: int
    end: int
    channel: str = "pty"


@dataclass(frozen=True, slots=True)
class Exited:
    """The program ended; all its output was told before."""

    record: ExitRecord


@dataclass(frozen=True, slots=True)
class Alert:
    """The keeper needs a person (`code` "disk": its disk is full), or no more (`active` false)."""

    code: str
    active: bool
    message: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection broke: the keeper ended, was killed, or broke the protocol. Always the last event."""

    reason: str


@dataclass(frozen=True, slots=True)
class TerminalKeys:
    """Keys that were pressed at a joined terminal: `typed`, so that the program has them; else they are to be dealt
    with, and the terminal is shut until they are."""

    terminal: str
    data: bytes
    typed: bool


KeeperEvent = Output | OutputGap | Exited | Alert | TerminalKeys | Lost


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The input is with the program: now (`written`), or since an earlier request with this id (`duplicate`)."""

    status: Literal["written", "duplicate"]
    at: int
    """Spool end just before the first byte was written: output below it is older than the input."""
    offset: int
    """Spool end when the last byte was written."""
    written: int
    """Bytes that reached the program: less than `length` only for a duplicate that was cut short by `discard`."""
    length: int
    hidden: bool = False
    """The terminal took lines and echoed nothing of them: a password was asked for. Not known of a duplicate."""
