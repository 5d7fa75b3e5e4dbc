"""A person's terminal on an agent: keys there, output here, until one of them leaves.

The agent lives in its keeper: when the daemon goes away the viewer waits for the next one and goes on with a redraw.
"""

import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NamedTuple

from synapsectl.client import Client, agent_path
from synapsectl.errors import BadAnswer, CtlError, TimedOut
from synapsectl.framed import TerminalConnection
from synapsectl.keys import Key, KeyFilter
from synapsectl.tty import Terminal
from synapsed.attachwire import NEWS, OUTPUT, SCREEN

RECONNECT = 10.0
"""Seconds that the daemon may be away: one that was killed is back within two."""

RETRY = 0.1
"""Seconds between two attempts to reach it."""

GREETING = 5.0
"""Seconds for the daemon's first word."""

CLOSE_DEADLINE = 0.5
"""Seconds for the daemon to take our leave; it notices ours anyway."""

FRAME_MAX = 32 * 1024
"""Bytes of keys in one frame."""

INPUT_MAX = 1024 * 1024
"""Bytes typed or pasted that wait for the agent; beyond them the terminal waits."""

OUTPUT_MAX = 1024 * 1024
"""Bytes that wait for the terminal; beyond them the daemon waits, which then sends a redraw instead."""

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


class Detached(NamedTuple):
    """The person left; the agent goes on."""


class ProgramExited(NamedTuple):
    """The program ended for good; `code` is negative for a signal, None where it is not known."""

    code: int | None


class DaemonLost(NamedTuple):
    """The daemon stayed away."""

    reason: str


class Killed(NamedTuple):
    """This process was told to end, or its terminal hung up."""

    signum: int


Ending = Detached | ProgramExited | DaemonLost | Killed


def open_terminal(client: Client, agent: str, *, cols: int, rows: int, read_only: bool) -> TerminalConnection:
    """The agent's terminal; its first output is the redraw. Raises ApiError, NoDaemon, TimedOut."""
    query = {"cols": cols, "rows": rows} | ({"read_only": 1} if read_only else {})
    return TerminalConnection.open(client, agent_path(agent, "terminal"), query)


def read_greeting(terminal: TerminalConnection) -> tuple[dict[str, Any], list[tuple[int, bytes]]]:
    """What the daemon says first (`attached`), and what came with it. Raises BadAnswer, TimedOut."""
    deadline = time.monotonic() + GREETING
    frames: list[tuple[int, bytes]] = []
    while not frames:
        if not terminal.has_more and not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimedOut(f"the daemon said nothing within {GREETING:g} s")
        frames = terminal.receive()
    greeting = _parse(frames[0][1]) if frames[0][0] == NEWS else None
    if not isinstance(greeting, dict):
        raise BadAnswer("the daemon opened a terminal without a word")
    return greeting, frames[1:]


class AttachedTerminal:
    """One attached terminal on `agent`, by whatever address a person gave; from then on by its id, which stays the same
    over a restart of the daemon."""

    def __init__(
        self, *, client: Client, agent: str, terminal: Terminal, detach: Sequence[Key], read_only: bool
    ) -> None:
        self._client = client
        self._agent = agent
        self.name = agent
        """The agent's name, once the daemon has told it."""
        self._frames: list[tuple[int, bytes]] = []
        self._terminal = terminal
        self._filter = KeyFilter(detach)
        self._read_only = read_only
        self._ending: Ending | None = None
        self._socket: TerminalConnection | None = None
        self._typed = bytearray()
        self._shown = bytearray()
        """Output that the terminal has not taken yet."""
        self._told_size = (0, 0)
        self._resized = False
        self._flush_at: float | None = None
        self._away_since = 0.0
        self._retry_at = 0.0
        self._reason = ""

    def run(self, opened: Callable[[str], None]) -> Ending:
        """Attach, until it ends; the terminal is the person's again when this returns. `opened` is told the agent's
        name before the terminal is taken.

        Raises ApiError, NoDaemon or TimedOut where the first connection fails: nothing was touched then. TerminalGone
        where there is no terminal any more."""
        with self._signals() as woken:
            self._socket = self._connect()
            try:
                opened(self.name)
                with self._terminal:
                    self._resized = self._terminal.size() != self._told_size
                    self._take(self._frames)
                    while self._ending is None:
                        self._step(woken)
                    if isinstance(self._ending, ProgramExited):
                        # The program's last words.
                        with suppress(OSError):
                            self._terminal.write_out(self._shown)
                # Only now, that the person has the terminal back, the daemon is told, which may take its time.
                if isinstance(self._ending, Detached) and self._socket is not None:
                    self._socket.command({"type": "detach"})
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
        reads: list[int | Terminal | TerminalConnection] = [woken]
        writes: list[Terminal | TerminalConnection] = []
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

    def _connect(self) -> TerminalConnection:
        self._told_size = cols, rows = self._terminal.size()
        terminal = open_terminal(self._client, self._agent, cols=cols, rows=rows, read_only=self._read_only)
        try:
            greeting, self._frames = read_greeting(terminal)
        except BaseException:
            terminal.close(0)
            raise
        self._agent, self.name = greeting["id"], greeting["name"]
        return terminal

    def _reconnect(self, now: float) -> None:
        try:
            self._socket = self._connect()
            self._take(self._frames)
        except CtlError as error:
            # Refusals too: a daemon that has just begun may not know its agents yet.
            self._reason = str(error)
            self._retry_at = time.monotonic() + RETRY
            if now - self._away_since > RECONNECT:
                self._end(DaemonLost(self._reason))

    def _read_output(self, socket: TerminalConnection) -> None:
        try:
            frames = socket.receive()
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
        self._take(frames)

    def _take(self, frames: list[tuple[int, bytes]]) -> None:
        for kind, payload in frames:
            if kind in (OUTPUT, SCREEN):
                self._show(payload)
            elif kind == NEWS:
                self._take_news(payload)

    def _take_news(self, text: bytes) -> None:
        match _parse(text):
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
            self._told_size = cols, rows = self._terminal.size()
            socket.command({"type": "resize", "cols": cols, "rows": rows})
        while self._typed and not socket.unsent:
            socket.keys(bytes(self._typed[:FRAME_MAX]))
            del self._typed[:FRAME_MAX]


def _parse(text: bytes) -> object:
    """A text frame; what is no JSON says nothing, like what a newer daemon may say."""
    try:
        return json.loads(text)
    except ValueError:
        return None
