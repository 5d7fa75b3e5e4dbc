"""Asks the operating system if the processes in the foreground of a terminal read it, rest, or work.

If a terminal is in line mode, a process that is blocked in `read` on it reads it ("reads"). A process that waits for
one of several events, or has a thread that reads, may read it too ("polls"). All others in the foreground work, even if
they sleep or wait for a child ("works"). If the terminal is in another mode (a line editor, a full-screen program),
programs always wait for many events at once, so only their use of the processor is known ("rests", "works"). Only Linux
has this information (proc(5)); on other systems, and for processes of other users, the result is None.
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
"""Largest number of processes of a foreground group that are examined."""

RESTING_SHARE = 0.05
"""Largest share of a processor that a program uses while it waits for keys."""

_WAITS: Final = frozenset({"wait_woken", "n_tty_read", "tty_read"})
"""Kernel functions in which a process is blocked while it reads a terminal, or some kinds of sockets."""
_POLLS: Final = ("do_poll", "do_select", "do_sys_poll", "do_epoll_wait", "ep_poll", "poll_schedule_timeout")
"""Kernel functions in which a process waits for one of several events."""
_RELAYS: Final = frozenset(
    """abduco coder docker dtach et expect flyctl gcloud gh incus kubectl lxc lxc-attach machinectl minicom mosh-client
    multipass nerdctl oc picocom podman rlwrap screen script session-manager-plugin socat ssh sudo systemd-nspawn
    systemd-run telnet tmux tsh unbuffer vagrant zellij""".split()  # noqa: SIM905 - a list would take a line for each
)
"""Names of programs that read a terminal for another program, which has a terminal of its own."""
_WRAPPERS: Final = frozenset({"bash", "dash", "env", "nice", "nohup", "sh", "stdbuf", "time", "timeout", "zsh"})
"""Names of programs that only start another one, which may be a relay."""
_TICK: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    ticks: int
    waits: bool
    """True if it is blocked in a function for readers of a terminal."""


class Foreground:
    """The foreground of one terminal. Call `look` repeatedly, in a thread: it reads files."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._before: tuple[int, float, int] | None = None

    def look(self, group: int | None, *, line_mode: bool | None, now: float) -> Word | None:
        """Returns the activity of process group `group`, which is in the terminal's foreground; None if it is unknown.
        `now` is a monotonic time. Outside line mode the result is about the time since the last call."""
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
        """Returns True if a process of the group is known to run, or to wait for a processor or disk. Reads files."""
        return any(state in "RD" for one in self._members(group) for state in self._threads(one.pid))

    def computes_or_relays(self, group: int) -> tuple[bool, bool]:
        """Returns `computes`, and True if the group's leader is a relay, or only starts one. Reads files."""
        pid, names = group, set(self._names(group)[0])
        while names & _WRAPPERS and len(children := self._children(pid)) == 1:
            pid, names = children[0], set(self._names(children[0])[0])
        return self.computes(group), bool(names & _RELAYS)

    def acts(self, group: int, since: float) -> bool:
        """Returns True if the group may still act on a key that it got at `since` (seconds, CLOCK_BOOTTIME): it
        computes, or a descendant of its leader lives, in any group, that was started since then, such as a hook for
        which it waits. False if this is unknown. Reads files."""
        tick = int(since * _TICK)
        new = ((begun := self._begun(pid)) is not None and begun >= tick for pid in self._tree(group)[1:])
        return self.computes(group) or any(new)

    def describe(
        self, group: int | None, *, line_mode: bool | None
    ) -> tuple[tuple[str, ...], str | None, Reads | None]:
        """Returns the names of the leader of `group`, its working directory, and, in line mode, if a process of the
        group reads the terminal; None for unknown values. Reads files."""
        if group is None:
            return (), None, None
        names, cwd = self._names(group)
        return names, cwd, self._reads(group) if line_mode else None

    def _names(self, pid: int) -> tuple[tuple[str, ...], str | None]:
        """Returns the names and the working directory of a process, by psutil on systems other than Linux."""
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
        """Returns if the threads of `pid` read the terminal: each value that occurs. None is for a thread that sleeps
        in a kernel function that the system does not show."""
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
        """Returns those of the group's leader and its descendants that are in the group."""
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
        """Returns the time at which a process was started, in ticks of CLOCK_BOOTTIME; None if it is gone."""
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
        """Returns True if the blocked process (or its thread `task`) reads a file below /dev, and no socket."""
        try:
            at = ((task or self._proc / str(pid)) / "syscall").read_text().split()
            number = int(at[1], 16) if len(at) > 1 else 0
        except (OSError, ValueError):  # only a process that may trace it can read this file: assume standard input
            number = 0
        try:
            return (self._proc / str(pid) / "fd" / str(number)).readlink().parts[:2] == ("/", "dev")
        except OSError:
            return False
