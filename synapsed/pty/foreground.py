"""What the kernel tells of those who have a terminal: do they read it, rest, or work?

A terminal in line mode is read by whoever is blocked in `read` on it; everybody else in its foreground works, be it
that they sleep or wait for a child. Of a terminal that a program has taken into its own hands (a line editor, a
full-screen program) all that can be told is whether anybody of its foreground computes: such a program waits for many
things at once. Linux alone tells (proc(5)); elsewhere, and of processes of others, nothing is known.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from synapsed.clock import Clock
from synapsed.model.agent import Activity
from synapsed.model.link import LinkObserved
from synapsed.profiles import Profile
from synapsed.pty.input_backlog import Unread
from synapsed.pty.session import Session

type Word = Literal["reads", "rests", "works"]

PROC = Path("/proc")
ASK_AFTER_S = 2.0
"""What moves on the screen needs no other witness."""

ASK_EVERY_S = 1.0

MEMBERS_MAX = 64
"""Processes of a foreground group that are looked at."""

RESTING_SHARE = 0.05
"""Of a processor: what a program uses that waits for keys."""

_WAITS: Final = frozenset({"wait_woken", "n_tty_read", "tty_read"})
"""Where the kernel has those who are blocked reading a terminal; some sockets too."""
_TICK: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    ticks: int
    waits: bool
    """It is blocked where readers of a terminal are."""


class Foreground:
    """One terminal's. `look` is called again and again, with a monotonic time, in a thread: it reads files."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._before: tuple[int, float, int] | None = None

    def look(self, group: int | None, *, line_mode: bool | None, now: float) -> Word | None:
        """What process group `group` does, which has the terminal in the foreground; None where that is not known."""
        members = self._members(group) if group is not None and line_mode is not None else []
        if not members or group is None:
            self._before = None
            return None
        if line_mode:
            self._before = None
            return "reads" if any(one.waits and self._has_terminal(one.pid) for one in members) else "works"
        ticks = sum(one.ticks for one in members)
        before, self._before = self._before, (group, now, ticks)
        if before is None or before[0] != group or now <= before[1]:
            return None
        share = (ticks - before[2]) / _TICK / (now - before[1])
        return "rests" if share < RESTING_SHARE else "works"

    def computes(self, group: int) -> bool:
        """Whether anybody of the group is on a processor, waits for one, or for a disk: what it has read it may still
        have before it. False where that is not known. It reads files."""
        return any(state in "RD" for one in self._members(group) for state in self._threads(one.pid))

    def _threads(self, pid: int) -> list[str]:
        """The letter of each thread's state."""
        states = []
        for stat in (self._proc / str(pid) / "task").glob("*/stat"):
            with contextlib.suppress(OSError, IndexError):
                states.append(stat.read_text().rpartition(")")[2].split()[0])
        return states

    def _members(self, group: int) -> list[_Process]:
        """The group's leader and those below it that are of the group."""
        found: list[_Process] = []
        due, seen = [group], {group}
        while due and len(seen) <= MEMBERS_MAX:
            pid = due.pop()
            process = self._process(pid, group)
            if process is not None:
                found.append(process)
            children = [child for child in self._children(pid) if child not in seen]
            seen.update(children)
            due += children
        return found

    def _process(self, pid: int, group: int) -> _Process | None:
        try:
            fields = (self._proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
            waits = (self._proc / str(pid) / "wchan").read_text().strip() in _WAITS
            of_group, ticks = int(fields[2]) == group, int(fields[11]) + int(fields[12])
        except (OSError, ValueError, IndexError):
            return None
        return _Process(pid, ticks, waits) if of_group else None

    def _children(self, pid: int) -> list[int]:
        try:
            return [int(word) for word in (self._proc / str(pid) / "task" / str(pid) / "children").read_text().split()]
        except (OSError, ValueError):
            return []

    def _has_terminal(self, pid: int) -> bool:
        """Whether what it reads first is a terminal: it may be blocked on a socket."""
        try:
            at = (self._proc / str(pid) / "syscall").read_text().split()
            number = int(at[1], 16) if len(at) > 1 else 0
        except (OSError, ValueError):  # that is only told to who may trace it
            number = 0
        try:
            return (self._proc / str(pid) / "fd" / str(number)).readlink().parts[:2] == ("/", "dev")
        except OSError:
            return False


class KernelWitness:
    """Asks the kernel about a line-oriented program that shows no prompt and is quiet, and tells the observer."""

    def __init__(
        self,
        profile: Profile,
        clock: Clock,
        session: Session,
        unread: Unread,
        look_soon: Callable[[], None],
    ) -> None:
        self._wanted = profile.composer.at_cursor
        self._clock = clock
        self._session = session
        self._unread = unread
        self._look_soon = look_soon
        self._foreground = Foreground()
        self._asked_at = 0.0

    @property
    def _changed_at(self) -> float:
        return self._session.last.changed_at if self._session.last is not None else 0.0

    def _needless(self, told: LinkObserved, now: float) -> bool:
        """The screen itself says what the program does."""
        return told.activity is Activity.READY or now - self._changed_at < ASK_AFTER_S

    def is_due(self, told: LinkObserved | None) -> bool:
        """Whether `ask` would do anything. Called twice a second."""
        if not self._wanted or told is None:
            return False
        now = self._clock.monotonic()
        if self._needless(told, now):
            return self._session.kernel is not None
        return now - self._asked_at >= ASK_EVERY_S

    async def ask(self, told: LinkObserved | None) -> None:
        """Raises KeeperLost."""
        if told is None or not self.is_due(told):
            return
        now = self._clock.monotonic()
        if self._needless(told, now):
            self._session.kernel = None
            return
        self._asked_at = now
        await self._unread.ask()
        group, line_mode = self._unread.foreground, self._unread.line_mode
        word = await asyncio.to_thread(self._foreground.look, group, line_mode=line_mode, now=now)
        if word is not None and word != self._session.kernel:
            self._session.kernel = word
            self._look_soon()
