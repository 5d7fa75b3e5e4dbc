"""Asks the operating system if the processes in the foreground of a terminal read it, rest, or work.

A terminal in line mode is read by a process that is blocked in `read` on it; a process that waits for one of several
things, or has a thread that reads, may read it too (`polls`); all others in its foreground work, even if they sleep or
wait for a child. For a terminal in another mode (a line editor, a full-screen program) the only known fact is if a
process of its foreground computes: such a program waits for many things at once. Only Linux has this information
(proc(5)); elsewhere, and for processes of others, nothing is known.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from synapsed.terminal.line_prompts.evidence import Reads, Word

PROC = Path("/proc")
MEMBERS_MAX = 64
"""Processes of a foreground group that are looked at."""

RESTING_SHARE = 0.05
"""Share of a processor that a program uses at most while it waits for keys."""

_WAITS: Final = frozenset({"wait_woken", "n_tty_read", "tty_read"})
"""Kernel functions in which processes are blocked that read a terminal; some sockets too."""
_POLLS: Final = ("do_poll", "do_select", "do_sys_poll", "do_epoll_wait", "ep_poll", "poll_schedule_timeout")
"""Kernel functions in which processes are that wait for one of several things."""
_TICK: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    ticks: int
    waits: bool
    """True if it is blocked in a function for readers of a terminal."""


class Foreground:
    """Foreground of one terminal. `look` is called again and again, with a monotonic time, in a thread: it reads
    files."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._before: tuple[int, float, int] | None = None

    def look(self, group: int | None, *, line_mode: bool | None, now: float) -> Word | None:
        """Returns the activity of process group `group`, which has the terminal in the foreground; None if it is not
        known."""
        members = self._members(group) if group is not None and line_mode is not None else []
        if not members or group is None:
            self._before = None
            return None
        if line_mode:
            self._before = None
            if any(one.waits and self._has_terminal(one.pid) for one in members):
                return "reads"
            return "polls" if self._reads(group) in ("yes", "maybe") and not self.computes(group) else "works"
        ticks = sum(one.ticks for one in members)
        before, self._before = self._before, (group, now, ticks)
        if before is None or before[0] != group or now <= before[1]:
            return None
        share = (ticks - before[2]) / _TICK / (now - before[1])
        return "rests" if share < RESTING_SHARE else "works"

    def computes(self, group: int) -> bool:
        """Returns True if a process of the group is on a processor, waits for one, or for a disk: it may still have to
        handle its input. False if that is not known. It reads files."""
        return any(state in "RD" for one in self._members(group) for state in self._threads(one.pid))

    def acts(self, group: int, since: float) -> bool:
        """Returns True if the group may still act on a key that it got at `since` (seconds, CLOCK_BOOTTIME): it
        computes, or a process that its leader has begun since then lives, in whatever group, such as a hook for which
        it waits. False if that is not known. It reads files."""
        tick = int(since * _TICK)
        new = ((begun := self._begun(pid)) is not None and begun >= tick for pid in self._tree(group)[1:])
        return self.computes(group) or any(new)

    def describe(
        self, group: int | None, *, line_mode: bool | None
    ) -> tuple[tuple[str, ...], str | None, Reads | None]:
        """Returns the names of the leader of `group`, its working directory, and whether a process of the group reads
        the terminal, in line mode; None for unknown values. It reads files."""
        if group is None:
            return (), None, None
        names, cwd = self._names(group)
        return names, cwd, self._reads(group) if line_mode else None

    def _names(self, pid: int) -> tuple[tuple[str, ...], str | None]:
        """Returns names and working directory of a process; psutil knows them on systems other than Linux."""
        home = self._proc / str(pid)
        names: list[str] = []
        cwd = None
        with contextlib.suppress(OSError):
            names.append((home / "exe").readlink().name.removesuffix(" (deleted)"))
        with contextlib.suppress(OSError):
            names.append((home / "comm").read_text().strip())
        with contextlib.suppress(OSError):
            cwd = str((home / "cwd").readlink())
        if not names and not self._proc.is_dir():
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(pid)
                names, cwd = [process.name()], process.cwd()
        return tuple(dict.fromkeys(names)), cwd

    def _reads(self, group: int) -> Reads | None:
        found: set[Reads | None] = set()
        for one in self._members(group):
            found.update(self._thread_reads(one.pid))
        if not found:
            return None
        return next(word for word in ("yes", None, "maybe", "no") if word in found)

    def _thread_reads(self, pid: int) -> set[Reads | None]:
        """Returns the activity of each thread of `pid`; None for one that sleeps if the kernel does not say where."""
        found: set[Reads | None] = set()
        for task in (self._proc / str(pid) / "task").glob("*"):
            with contextlib.suppress(OSError, IndexError):
                state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                at = (task / "wchan").read_text().strip()
                if at in _WAITS and self._has_terminal(pid, task):
                    found.add("yes")
                elif state == "S" and at in ("", "0"):
                    found.add(None)
                else:
                    found.add("maybe" if at.startswith(_POLLS) else "no")
        return found

    def _threads(self, pid: int) -> list[str]:
        """Returns the letter of each thread's state."""
        states = []
        for stat in (self._proc / str(pid) / "task").glob("*/stat"):
            with contextlib.suppress(OSError, IndexError):
                states.append(stat.read_text().rpartition(")")[2].split()[0])
        return states

    def _members(self, group: int) -> list[_Process]:
        """Returns the group's leader and its descendants in the group."""
        found = (self._process(pid, group) for pid in self._tree(group))
        return [process for process in found if process is not None]

    def _tree(self, leader: int) -> list[int]:
        """Returns the leader, then its descendants."""
        found, due, seen = list[int](), [leader], {leader}
        while due and len(seen) <= MEMBERS_MAX:
            found.append(pid := due.pop())
            children = [child for child in self._children(pid) if child not in seen]
            seen.update(children)
            due += children
        return found

    def _begun(self, pid: int) -> int | None:
        """Returns the time at which a process was begun, in ticks of CLOCK_BOOTTIME; None if it is gone."""
        try:
            return int((self._proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[19])
        except (OSError, ValueError, IndexError):
            return None

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

    def _has_terminal(self, pid: int, task: Path | None = None) -> bool:
        """Returns True if the process (or its thread `task`) waits to read a terminal: it may be blocked on a
        socket."""
        try:
            at = ((task or self._proc / str(pid)) / "syscall").read_text().split()
            number = int(at[1], 16) if len(at) > 1 else 0
        except (OSError, ValueError):  # only processes that may trace it can read that
            number = 0
        try:
            return (self._proc / str(pid) / "fd" / str(number)).readlink().parts[:2] == ("/", "dev")
        except OSError:
            return False
