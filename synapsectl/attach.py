"""A person's terminal on an agent: keys there, output here, until one of them leaves.

The agent lives in its keeper: when the daemon goes away the viewer waits for the next one and goes on with a redraw.
"""

import json
import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from synapsectl.client import Client, agent_path
from synapsectl.errors import CtlError
from synapsectl.keys import Key, KeyFilter
from synapsectl.tty import Terminal
from synapsectl.websocket import BINARY, WebSocket, WebSocketMessage

RECONNECT = 10.0
"""Seconds that the daemon may be away: one that was killed is back within two."""

RETRY = 0.1
"""Seconds between two attempts to reach it."""

CLOSE_DEADLINE = 0.5
"""Seconds for the daemon to take our leave; it notices ours anyway."""

FRAME_MAX = 32 * 1024
"""Bytes of keys in one frame."""

INPUT_MAX = 1024 * 1024
"""Bytes typed or pasted that wait for the agent; beyond them the terminal waits."""

OUTPUT_MAX = 1024 * 1024
"""Bytes that wait for the terminal; beyond them the daemon waits, which then sends a redraw instead."""

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


@dataclass(frozen=True, slots=True)
class Detached:
    """The person left; the agent goes on."""


@dataclass(frozen=True, slots=True)
class ProgramExited:
    """The program ended for good; `code` is negative for a signal, None where it is not known."""

    code: int | None


@dataclass(frozen=True, slots=True)
class DaemonLost:
    """The daemon stayed away."""

    reason: str


@dataclass(frozen=True, slots=True)
class Killed:
    """This process was told to end, or its terminal hung up."""

    signum: int


Ending = Detached | ProgramExited | DaemonLost | Killed


def open_terminal(client: Client, agent: str, *, cols: int, rows: int, read_only: bool) -> WebSocket:
    """The WebSocket of the agent's terminal; its first message is the redraw. Raises ApiError, NoDaemon, TimedOut."""
    query = {"cols": cols, "rows": rows} | ({"read_only": 1} if read_only else {})
    return WebSocket.connect(client, agent_path(agent, "terminal"), query)


class AttachedTerminal:
    """One attached terminal. `agent` is the agent's id, which stays the same over a restart of the daemon."""

    def __init__(
        self, *, client: Client, agent: str, terminal: Terminal, detach: Sequence[Key], read_only: bool
    ) -> None:
        self._client = client
        self._agent = agent
        self._terminal = terminal
        self._filter = KeyFilter(detach)
        self._read_only = read_only
        self._ending: Ending | None = None
        self._socket: WebSocket | None = None
        self._typed = bytearray()
        self._shown = bytearray()
        """Output that the terminal has not taken yet."""
        self._resized = False
        self._flush_at: float | None = None
        self._away_since = 0.0
        self._retry_at = 0.0
        self._reason = ""

    def run(self) -> Ending:
        """Attach, until it ends; the terminal is the person's again when this returns.

        Raises ApiError, NoDaemon or TimedOut where the first connection fails: nothing was touched then. TerminalGone
        where there is no terminal any more."""
        with self._signals() as woken:
            self._socket = self._connect()
            try:
                with self._terminal:
                    while self._ending is None:
                        self._step(woken)
                    if isinstance(self._ending, ProgramExited):
                        # The program's last words.
                        with suppress(OSError):
                            self._terminal.write_out(self._shown)
                # Only now, that the person has the terminal back, the daemon is told, which may take its time.
                if isinstance(self._ending, Detached) and self._socket is not None:
                    self._socket.send_json({"type": "detach"})
                return self._ending
            finally:
                if self._socket is not None:
                    self._socket.close(CLOSE_DEADLINE)

    @contextmanager
    def _signals(self) -> Iterator[int]:
        """Signals end the loop, or say that the window changed; the descriptor becomes readable with each."""
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        before = {signum: signal.signal(signum, self._on_ending_signal) for signum in ENDING_SIGNALS}
        before[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, self._on_resize)
        fd_before = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        try:
            yield woken
        finally:
            signal.set_wakeup_fd(fd_before)
            for signum, handler in before.items():
                signal.signal(signum, handler)
            os.close(woken)
            os.close(wake)

    def _on_ending_signal(self, signum: int, frame: FrameType | None) -> None:
        self._end(Killed(signum))

    def _on_resize(self, signum: int, frame: FrameType | None) -> None:
        self._resized = True

    def _end(self, ending: Ending) -> None:
        """The first one counts."""
        self._ending = self._ending or ending

    # --- the loop ---------------------------------------------------------------------------------------------------

    def _step(self, woken: int) -> None:
        """Wait for something to do, and do it."""
        socket, terminal = self._socket, self._terminal
        reads: list[int | Terminal | WebSocket] = [woken]
        writes: list[Terminal | WebSocket] = []
        if len(self._typed) < INPUT_MAX:
            reads.append(terminal)
        if self._shown:
            writes.append(terminal)
        if socket is not None and len(self._shown) < OUTPUT_MAX:
            reads.append(socket)
        if socket is not None and socket.unsent:
            writes.append(socket)
        more = socket is not None and socket in reads and socket.has_more
        readable, writable, _ = select.select(reads, writes, [], 0 if more else self._patience())
        if woken in readable:
            with suppress(BlockingIOError):
                os.read(woken, 4096)
        if terminal in readable:
            self._read_keys()
        if socket is not None and (more or socket in readable):
            self._read_output(socket)
        if terminal in writable:
            self._show(b"")
        self._on_time()
        self._send()

    def _patience(self) -> float | None:
        """Seconds until something is due by itself."""
        due = [at for at in (self._flush_at, self._retry_at if self._socket is None else None) if at is not None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _on_time(self) -> None:
        now = time.monotonic()
        if self._flush_at is not None and now >= self._flush_at:
            self._flush_at = None
            self._type(self._filter.flush())
        if self._socket is None and now >= self._retry_at:
            self._reconnect(now)

    # --- the person's side ------------------------------------------------------------------------------------------

    def _read_keys(self) -> None:
        data = self._terminal.read()
        if data is None:
            return
        if not data:
            self._end(Killed(signal.SIGHUP))
            return
        passed = self._filter.feed(data)
        self._type(passed.data)
        if passed.detached:
            self._end(Detached())
        hold = self._filter.hold
        self._flush_at = None if hold is None else time.monotonic() + hold

    def _type(self, data: bytes) -> None:
        if not self._read_only:
            self._typed += data

    def _show(self, data: bytes) -> None:
        self._shown += data
        try:
            del self._shown[: self._terminal.write(self._shown)]
        except OSError:
            self._end(Killed(signal.SIGHUP))

    # --- the daemon's side ------------------------------------------------------------------------------------------

    def _connect(self) -> WebSocket:
        cols, rows = self._terminal.size()
        return open_terminal(self._client, self._agent, cols=cols, rows=rows, read_only=self._read_only)

    def _reconnect(self, now: float) -> None:
        try:
            self._socket = self._connect()
        except CtlError as error:
            # Refusals too: a daemon that has just begun may not know its agents yet.
            self._reason = str(error)
            self._retry_at = time.monotonic() + RETRY
            if now - self._away_since > RECONNECT:
                self._end(DaemonLost(self._reason))

    def _read_output(self, socket: WebSocket) -> None:
        try:
            messages = socket.receive()
        except CtlError as error:
            socket.close(0)
            self._socket = None
            self._reason = str(error)
            self._away_since = time.monotonic()
            # Not at once: a daemon that just let go of us is not asked again and again.
            self._retry_at = self._away_since + RETRY
            # Over the last line of the screen; the next redraw takes it away.
            self._show(b"\x1b7\x1b[999;1H\x1b[0;7m the daemon is away; waiting for it \x1b[0m\x1b[K\x1b8")
            return
        for message in messages:
            self._take(message)

    def _take(self, message: WebSocketMessage) -> None:
        if message.opcode == BINARY:
            self._show(message.data)
            return
        match _parse(message.data):
            case {"type": "exit", "exit_code": int(code)}:
                self._end(ProgramExited(code))
            case {"type": "exit"}:
                self._end(ProgramExited(None))

    def _send(self) -> None:
        """Keys typed while the daemon was away go to the next one."""
        socket = self._socket
        if socket is None:
            return
        if socket.unsent:
            socket.flush()
        if self._resized:
            self._resized = False
            cols, rows = self._terminal.size()
            socket.send_json({"type": "resize", "cols": cols, "rows": rows})
        while self._typed and not socket.unsent:
            socket.send(BINARY, bytes(self._typed[:FRAME_MAX]))
            del self._typed[:FRAME_MAX]


def _parse(text: bytes) -> object:
    """A text frame; what is no JSON says nothing, like what a newer daemon may say."""
    try:
        return json.loads(text)
    except ValueError:
        return None
