"""Attaches a person's terminal to an agent: passes keys to the agent and its output back, until the person detaches or
the agent's program ends.

The program lives in its keeper: when the daemon goes away, this waits for the next daemon and goes on with a redraw.
"""

import os
import re
import select
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from synapsectl.ahead import BegunAttach
from synapsectl.client import Client
from synapsectl.display import Display, over_last_row
from synapsectl.endings import DaemonLost, Detached, Ending, Hopped, Killed, ProgramExited
from synapsectl.errors import CtlError
from synapsectl.framed import TerminalConnection, parse_news
from synapsectl.leases import CHECK_S, KEPT_S, LeasedKeys, clock
from synapsectl.outer_terminal import NOT_ASKED, SCHEME, TerminalAnswers
from synapsectl.signals import TerminalSignals
from synapsectl.statusline import WHEEL_ON
from synapsectl.terminal_keys import COMMANDS, HeldKey, Key, KeyFilter, parse_commands
from synapsectl.tty import Terminal
from synapsectl.way import Attempt, OpenedWay, Way
from synapsed.shared.attach_frames import EARLIER, NEWS, OUTPUT, SCREEN
from synapsed.shared.counts import counted

if TYPE_CHECKING:
    from synapsectl.earlier import Pieces
    from synapsectl.lookback import Lookback

RECONNECT = 60.0
"""Seconds that the daemon may be away: a killed one is back within two seconds, on a busy machine much later. A person
who does not want to wait can detach."""

RETRY = 0.1
"""Seconds between two attempts to reach the daemon."""

CLOSE_DEADLINE = 0.5
"""Seconds for the daemon to take the last keys and our goodbye; it notices a closed connection anyway."""

INPUT_MAX = 1024 * 1024
"""Bytes typed or pasted that wait for the agent; while there are more, the terminal is not read, or, on a line to
another host, further keys are dropped and counted."""

_MOUSE = re.compile(rb"\x1b\[<(\d+);\d+;\d+[Mm]")
_WHEEL_UP = b"64"
_CLEAR = b"\x1b[H\x1b[2J"


class AttachedTerminal:
    """One attached terminal. `agent` is the address that a person gave; once connected, the agent's id takes its place,
    which stays the same over a restart of the daemon."""

    def __init__(
        self,
        *,
        client: Client,
        agent: str,
        terminal: Terminal,
        detach: Sequence[Key],
        read_only: bool,
        begun: BegunAttach | None = None,
        far: bool = False,
        held: bytes = b"",
    ) -> None:
        """`far`: the agent is on another host. `held`: the key with which the person came to this agent."""
        self._client = client
        self.agent = agent
        self._display = Display(terminal, read_only=read_only)
        self._display.name = agent
        self._terminal = terminal
        self._begun = begun
        """The first connection, if it has begun already."""
        self._drawn = False
        """True if the next screen is shown already."""
        self._detach = detach
        self._filter = KeyFilter(())
        self._held = HeldKey(held)
        self._settings: dict[str, Any] = {}
        self._outer = TerminalAnswers(terminal.cell)
        self._outer_told: dict[str, Any] | None = None
        """Properties of the terminal that the daemon knows."""
        self._pieces: Pieces | None = None
        """Earlier output, as far as it has come: for the terminal's own scrollback if `_own` is set, else to be
        shown."""
        self._own = False
        self._lookback: Lookback | None = None
        self._read_only = read_only
        self._ending: Ending | None = None
        self._signals = TerminalSignals()
        self._way = Way(client, read_only=read_only, begun=begun, far=far)
        self._attempt: Attempt | None = None
        """An attempt to open another connection."""
        self._typed = bytearray()
        self._typed_at = 0.0
        """Time at which the oldest key of `_typed` was typed."""
        self._lost, self._silent = 0, False
        """Number of typed bytes that are not known to have arrived; and True if the person was notified that the line
        is silent."""
        self._window = (0, 0)
        """The size that the daemon got."""
        self._resized = False
        self._flush_at: float | None = None
        self._away_since = 0.0
        self._retry_at = 0.0
        self._reason = ""

    @property
    def lost(self) -> int:
        """Number of typed bytes that are not known to have arrived; they do not arrive any more."""
        leased = self._way.leased
        return self._lost + (len(self._typed) + leased.unsure if leased is not None else 0)

    @property
    def name(self) -> str:
        """Name of the agent, once the daemon has sent it."""
        return self._display.name

    def run(self, opened: Callable[[str], None]) -> Ending:
        """Attaches, and returns how it ended; the terminal is then the person's again. `opened` gets the agent's name
        before the terminal is taken.

        Raises ApiError, NoDaemon or TimedOut if the first connection fails: nothing was touched then. Raises
        TerminalGone if there is no terminal any more."""
        with self._signals:
            if self._begun is not None:
                self._go_on(self._begun)
            try:
                self._connect()
            except BaseException:
                self._terminal.give_back()
                raise
            try:
                if not self._drawn:
                    opened(self._display.name)
                with self._terminal:
                    status = self._display.status
                    self._resized = self._terminal.size() != status.size or self._window != status.window()
                    if self._settings.get("scrollback"):
                        self._look_back(own=True)
                    self._send()
                    self._ask()
                    self._take(self._way.frames)
                    self._held.begin(time.monotonic())
                    while self._ending is None:
                        self._step()
                    if isinstance(self._ending, ProgramExited):
                        # The program's last output.
                        with suppress(OSError):
                            self._terminal.write_out(self._display.waiting)
                    self._hear_out()
                # The daemon gets the message after the person has the terminal back, since it may take time.
                if isinstance(self._ending, Detached | Hopped):
                    self._way.command({"type": "detach"})
                    self._hear_last()
                return self._ending
            finally:
                self._way.close(CLOSE_DEADLINE)

    def _go_on(self, begun: BegunAttach) -> None:
        """Goes on with a begun connection: the screen may be drawn already, and the signals that were blocked are
        handled from here on."""
        self._drawn = self._terminal.go_on(begun)
        self._display.waiting += begun.unshown
        self._signals.unblock()

    def _end(self, ending: Ending) -> None:
        """Ends the loop; the first ending counts."""
        self._ending = self._ending or ending

    # --- the loop ---------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        """Waits for the next event, and handles it."""
        daemon = self._way.daemon
        more = daemon is not None and daemon.has_more and self._display.has_room
        readable, writable = self._wait(0 if more else self._patience())
        if self._signals.fd in readable:
            self._signals.drain()
        if self._signals.ended is not None:
            self._end(Killed(self._signals.ended))
            return
        if self._signals.suspended:
            self._suspend()
            return
        if self._terminal.fileno() in readable:
            self._read_keys()
        if daemon is not None and (more or daemon.fd in readable) and daemon is self._way.daemon:
            self._read_output(daemon)
        if self._terminal.fileno() in writable:
            self._display.show(b"")
        self._on_time()
        self._send()
        if self._display.gone:
            self._end(Killed(signal.SIGHUP))

    def _wait(self, seconds: float | None) -> tuple[list[int], list[int]]:
        """Returns the descriptors that can be read now, and written to."""
        daemon, terminal = self._way.daemon, self._terminal.fileno()
        reads, writes = [self._signals.fd], []
        if len(self._typed) < INPUT_MAX or self._way.leased is not None:
            reads.append(terminal)
        if self._display.waiting:
            writes.append(terminal)
        if daemon is not None and self._display.has_room:
            reads.append(daemon.fd)
        if daemon is not None and daemon.unsent:
            writes.append(daemon.fd)
        readable, writable, _ = select.select(reads, writes, [], seconds)
        return readable, writable

    def _suspend(self) -> None:
        """Gives the terminal back and stops this process, as the person's shell expects; takes the terminal again when
        the process goes on."""
        self._display.waiting.clear()
        self._hear_out()
        self._terminal.give_back()
        self._signals.stop()
        self._terminal.take()
        self._back_to_live()
        self._ask()

    def _patience(self) -> float | None:
        """Returns the seconds until the next timed event."""
        retry = self._retry_at if self._way.daemon is None else None
        look = time.monotonic() + CHECK_S if self._way.leased is not None else None
        due = [at for at in (self._flush_at, retry, self._display.hint_over or None, look) if at is not None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _on_time(self) -> None:
        now = time.monotonic()
        if self._flush_at is not None and now >= self._flush_at:
            self._flush_at = None
            passed = self._filter.expire()
            self._type(passed.data)
            if passed.detached:
                self._end(Detached())
        if self._display.expire(now):
            self._resized = True  # the daemon draws again the row under the words
        if self._way.leased is not None:
            self._look_at_line(self._way.leased)
        if self._way.daemon is None and now >= self._retry_at:
            self._reconnect(now)

    def _look_at_line(self, leased: LeasedKeys) -> None:
        """Reports that the line is dead, or is back; drops keys that were typed long ago, and those after them."""
        now = clock()
        oldest = leased.oldest if leased.oldest is not None else self._typed_at if self._typed else now
        if now - oldest > KEPT_S:
            self._drop(leased)
        silent = leased.silent(now) is not None
        if silent:
            self._display.show(
                over_last_row(f"no word from there for {now - leased.heard_at:.0f} s: keys wait{self._told_lost()}")
            )
        elif self._silent:
            self._resized = True  # the daemon draws again the row under the words
        self._silent = silent

    def _drop(self, leased: LeasedKeys) -> None:
        lost = len(self._typed) + leased.forget()
        self._lost += lost
        self._typed.clear()
        self._way.command(leased.again(gone=True))
        self._display.say(f"{counted(lost, 'byte')} that you typed may not have arrived: the line was dead")

    def _told_lost(self) -> str:
        return f", {counted(self._lost, 'byte')} that you typed may not have arrived" if self._lost else ""

    def _hear_last(self) -> None:
        """Waits a short time for the confirmation that the last keys have arrived."""
        deadline = time.monotonic() + CLOSE_DEADLINE
        daemon, leased = self._way.daemon, self._way.leased
        if daemon is None or leased is None or not leased.may_send(clock()):
            return
        with suppress(CtlError):
            while leased.unsure and (left := deadline - time.monotonic()) > 0:
                daemon.flush()
                if daemon.has_more or select.select([daemon.fd], [], [], left)[0]:
                    self._hear_only(leased, daemon.receive())

    def _hear_only(self, leased: LeasedKeys, frames: list[tuple[int, bytes]]) -> None:
        """Handles confirmations, and shows nothing: the terminal is the person's again."""
        for kind, payload in frames:
            match parse_news(payload) if kind == NEWS else None:
                case {"type": "lease", "lease": int(lease), "taken": int(taken)}:
                    leased.heard(lease, taken, clock())

    # --- the person's side ------------------------------------------------------------------------------------------

    def _read_keys(self) -> None:
        data = self._terminal.read()
        if data is None:
            return
        if not data:
            self._end(Killed(signal.SIGHUP))
            return
        if data := self._held.rest(data, time.monotonic()):
            self._take_keys(data)

    def _take_keys(self, data: bytes) -> None:
        if self._lookback is not None:
            data = self._lookback.feed(data)
            if not self._lookback.over:
                self._display.show(self._lookback.draw())
                return
            self._filter.take_last()
            self._back_to_live()
        elif self._settings.get("wheel") and b"\x1b[<" in data and not self._display.status.takes_mouse:
            if _WHEEL_UP in _MOUSE.findall(data):
                self._look_back(own=False)
            data = _MOUSE.sub(b"", data)  # the program has not asked for mouse reports
        passed = self._filter.feed(data)
        self._type(passed.data)
        if passed.detached:
            self._end(Detached())
        if passed.action:
            self._act(passed.action)
        if passed.rest and self._ending is None:
            self._take_keys(passed.rest)
            return
        hold = self._filter.hold
        self._flush_at = None if hold is None else time.monotonic() + hold

    def _ask(self) -> None:
        """Queries the terminal's properties, but not while the person looks back, when its input is read by
        `Lookback`."""
        if self._lookback is None and os.environ.get("TERM") not in NOT_ASKED:
            self._display.show(self._outer.ask(time.monotonic()))

    def _hear_out(self) -> None:
        """Reads the terminal's answers that are on their way: its next reader would take them for keys."""
        while (wait := self._outer.wait(time.monotonic())) and select.select([self._terminal], [], [], wait)[0]:
            data = self._terminal.read()
            if data == b"":
                return
            self._filter.feed(data or b"")

    def _type(self, data: bytes) -> None:
        if self._outer.tells_colors and b"\x1b[?997;" in data:
            # The daemon reports the change to the program once it has the new colours, for which the program will ask.
            data = SCHEME.sub(b"", data)
            self._ask()
        if self._read_only or not data:
            return
        if not self._typed:
            self._typed_at = clock()
        if len(self._typed) < INPUT_MAX:
            self._typed += data
        else:
            self._lost += len(data)

    # --- what the keys after the first one do -----------------------------------------------------------------------

    def _act(self, action: str) -> None:
        match action:
            case "scrollback":
                self._look_back(own=False)
            case "next" | "previous":
                self._hop(1 if action == "next" else -1)
            case "inbox" | "list":
                self._end(Hopped(action))
            case "status":
                self._display.toggle_status()
                self._resized = True
            case _:
                keys = self._settings.get("keys") or {}
                self._display.say("  ".join(f"{keys.get(name, key)} {name}" for name, key in COMMANDS.items()))

    def _hop(self, step: int) -> None:
        """Goes to another agent, in this terminal."""
        from synapsectl.next_agent import next_agent

        before = self.agent
        self._way.type(self._typed, self._typed_at)  # keys typed until now belong to the first one
        try:
            found = next_agent(self._client, before, step)
            if found is None:
                self._display.say("there is no other agent")
                return
            self.agent = found
            self._connect()
        except CtlError as error:
            self.agent = before
            self._display.say(str(error))
            return
        self._lost = self.lost
        self._typed.clear()
        self._held = HeldKey(self._filter.pressed, time.monotonic())
        self._begin()

    def _look_back(self, *, own: bool) -> None:
        """Requests earlier output: to be shown, or for the terminal's `own` scrollback."""
        from synapsectl.earlier import BYTES, Pieces

        if self._way.daemon is not None and self._pieces is None:
            self._own = own
            self._pieces = Pieces(0, 0, [])
            self._way.command({"type": "earlier", "bytes": BYTES})

    def _show_earlier(self, pieces: "Pieces") -> None:
        """Shows the earlier output, once all of it has come."""
        from synapsectl.earlier import lines
        from synapsectl.lookback import Lookback

        self._pieces = None
        try:
            found = lines(pieces)
        except (OSError, ValueError) as error:
            self._display.say(f"what was printed before cannot be drawn: {error}")
            return
        if self._own:
            rows = self._terminal.size()[1]
            above = found[: max(0, len(found) - pieces.rows)][-self._settings["scrollback"] :]
            drawn = "\r\n".join([*above, *[""] * rows]).encode("utf-8", "replace")
            self._display.show(self._terminal.reset + _CLEAR + drawn)
            self._back_to_live()
            return
        self._lookback = Lookback(found, self._terminal.size())
        self._display.covered = True
        self._display.show(self._terminal.reset + WHEEL_ON + self._lookback.draw())

    def _back_to_live(self) -> None:
        """Shows the agent's screen again, drawn as a whole: its output was not shown meanwhile."""
        self._lookback = None
        self._display.uncover()
        try:
            self._connect(same=True)
        except CtlError as error:
            self._lose(str(error))
            return
        self._begin()

    # --- the daemon's side ------------------------------------------------------------------------------------------

    def _connect(self, *, same: bool = False) -> None:
        """Connects; `same`: the agent is the same, so keys that were not sent yet are kept. Raises CtlError, and leaves
        the present connection as it is."""
        begun, self._begun = self._begun, None
        self._display.status.size = self._terminal.size() if begun is None else begun.size
        self._window = cols, rows = self._display.status.window()
        way = self._way.ask(self.agent, cols=cols, rows=rows)
        if same:
            self._keep_untyped()
        self._have(way)

    def _keep_untyped(self) -> None:
        """Keeps the keys that this connection did not get, for the next connection."""
        if untyped := self._way.untyped():
            self._typed[:0] = untyped

    def _have(self, way: OpenedWay) -> None:
        self._way.begin(way)
        greeting = way.greeting
        self.agent, self._display.name = greeting["id"], greeting["name"]
        self._display.told = {}
        self._outer_told = None
        if change := self._terminal.show_on(alternate=bool(greeting.get("one_screen"))):
            self._display.show(change)  # the next daemon may draw on the other screen
        if not self._settings:
            self._configure(greeting.get("settings") or {})

    def _configure(self, settings: dict[str, Any]) -> None:
        """Applies the settings of `[attach]`, once; an invalid configuration is ignored."""
        self._settings = settings
        self._display.configure(settings)
        self._filter = KeyFilter(self._detach, parse_commands(settings.get("keys") or {}), self._outer.hear)

    def _begin(self) -> None:
        """Begins a screen, in a terminal that may show anything."""
        self._display.begin()
        self._take(self._way.frames)

    def _reconnect(self, now: float) -> None:
        """Connects again while keys are handled: a person who does not want to wait can leave."""
        if self._attempt is None:
            self._window = cols, rows = self._display.status.window()
            self._attempt = Attempt(lambda: self._way.ask(self.agent, cols=cols, rows=rows))
        self._retry_at = time.monotonic() + RETRY
        if not self._attempt.over(RETRY / 4):
            return
        attempt, self._attempt = self._attempt, None
        try:
            self._have(attempt.result())
            self._begin()
        except CtlError as error:
            # Refusals too: a daemon that has just begun may not know its agents yet.
            self._reason = str(error)
            self._retry_at = time.monotonic() + RETRY
            if now - self._away_since > RECONNECT:
                self._end(DaemonLost(self._reason))

    def _read_output(self, daemon: TerminalConnection) -> None:
        try:
            frames = daemon.receive()
        except CtlError as error:
            self._lose(str(error))
            return
        self._take(frames)

    def _lose(self, reason: str) -> None:
        """Notes that the daemon is away."""
        if (leased := self._way.leased) is not None and leased.unsure:
            self._lost += len(self._typed) + leased.forget()  # it is unknown if they were typed
            self._typed.clear()
        self._keep_untyped()
        self._way.leave()
        self._pieces = self._lookback = None
        self._display.covered = False
        self._reason = reason
        self._away_since = time.monotonic()
        # Not at once, so that a daemon that has just closed the connection does not get attempt after attempt.
        self._retry_at = self._away_since + RETRY
        # Over the last line of the screen; the next redraw takes it away.
        self._display.show(over_last_row(f"the daemon is away; waiting for it{self._told_lost()}"))

    def _take(self, frames: list[tuple[int, bytes]]) -> None:
        for kind, payload in frames:
            if kind == OUTPUT:
                self._display.output(payload)
            elif kind == SCREEN:
                self._display.screen(payload, drawn=self._drawn)
                self._drawn = False
            elif kind == NEWS:
                self._take_news(payload)
            elif kind == EARLIER and self._pieces is not None:
                self._pieces.came.append(payload)
                if self._pieces.whole:
                    self._show_earlier(self._pieces)

    def _take_news(self, text: bytes) -> None:
        match parse_news(text):
            case {"type": "exit", **rest}:
                code = rest.get("exit_code")
                self._end(ProgramExited(code if isinstance(code, int) else None))
            case {"type": "attention", "needs": int(needs), **rest}:
                bell = bool(self._settings.get("bell"))
                self._display.attention(needs, here=rest.get("here"), doing=rest.get("doing", ""), bell=bell)
            case {"type": "lease", "lease": int(lease), "taken": int(taken)} if self._way.leased is not None:
                self._way.leased.heard(lease, taken, clock())
                self._way.command({"type": "lease", "lease": lease})
            case {"type": "late", "late": int(number), "taken": int(taken)} if self._way.leased is not None:
                self._type_again(self._way.leased, number, taken)
            case {"type": "earlier", "cols": int(cols), "rows": int(rows)} if self._pieces is not None:
                self._pieces = self._pieces._replace(cols=cols, rows=rows)
            case {"type": "error"} if self._pieces is not None:
                self._pieces = None
                self._display.say("what was printed before cannot be had")

    def _type_again(self, leased: LeasedKeys, number: int, taken: int) -> None:
        """Types keys that came late once more, if that is not long ago."""
        keys, typed = leased.late(number, taken)
        if typed is not None:
            self._typed[:0], self._typed_at = keys, typed
        if self._typed and clock() - self._typed_at > KEPT_S:
            self._drop(leased)
        else:
            self._way.command(leased.again(gone=not keys))

    def _send(self) -> None:
        """Sends everything that waits for the daemon: the size, the terminal's properties, and keys, also those that
        were typed while no daemon was there."""
        daemon = self._way.daemon
        if daemon is None:
            return
        if daemon.unsent:
            daemon.flush()
        if self._resized or self._signals.resized:
            self._resized = self._signals.resized = False
            status = self._display.status
            status.size = self._terminal.size()
            self._window = cols, rows = status.window()
            daemon.command({"type": "resize", "cols": cols, "rows": rows})
            self._ask()  # a new size may come from another font
            if self._lookback is not None:
                self._lookback.resize(status.size)
                self._display.show(_CLEAR + self._lookback.draw())
            elif status.kept:
                self._display.show(b"\x1b7" + status.begin() + b"\x1b8")
        if self._outer.told is not None and self._outer.told != self._outer_told:
            self._outer_told = self._outer.told
            daemon.command({"type": "terminal", **self._outer.told})
        if self._display.status.strays():
            daemon.command({"type": "redraw"})
        self._way.type(self._typed, self._typed_at)
