"""Decides the end of a program: when to send TERM, when to send KILL, and when to record its exit. Pure: the caller
passes the facts and the time, and performs the returned action.

The steps ("the ladder") after `stop`, and after a program ended by itself and left processes behind::

    stop(grace) ──> term ──grace──> kill, kill, … ──nothing left──> last output ──> record
    exited      ──> output drained ──leftovers?──> term ──> kill …  ─┘

Exit and end of output are unordered: a descendant may hold the terminal open long after the program is gone, so every
wait for the end of output has a limit.
"""

TERM = "term"
KILL = "kill"
RECORD = "record"

DRAIN_S = 0.3
"""Seconds for which output may go on after the program's exit, and again after the sweep (the end of the processes
that it left), if the end of the output is not seen."""

SWEEP_GRACE_S = 0.2
"""Seconds between TERM and KILL for descendants of a program that ended by itself; the kernel sent them HUP already."""

KILL_LIMIT_S = 5.0
"""Seconds of killing after which the remaining processes must be stuck in the kernel; the exit record counts them, and
the keeper waits no longer."""

POLL_S = 0.02
"""Seconds between two looks at the ending processes; a death and the end of the output cause one at once."""

BLOCKED_POLL_S = 0.5
"""Seconds between two looks while a full disk, perhaps for hours, delays the end."""


class Ending:
    """Decides the next step. Call `next` after every event and at `deadline`, until it returns RECORD."""

    __slots__ = ("_exited_at", "_gone_at", "_kill_at", "_kill_until", "_sweep", "_term_due", "deadline", "stopping")

    def __init__(self, *, sweep_on_exit: bool) -> None:
        self.stopping = False
        """A stop was requested."""
        self._sweep = sweep_on_exit
        self._exited_at: float | None = None
        self._gone_at: float | None = None
        self._term_due = False
        self._kill_at: float | None = None
        self._kill_until: float | None = None
        self.deadline: float | None = None
        """Time at which `next` must be called at the latest; None while no end is going on."""

    def stop(self, now: float, grace: float) -> None:
        """Requests a stop; the shortest grace of several requests counts."""
        self.stopping = True
        if self._gone_at is not None:
            return
        self._term_due = self._term_due or self._kill_at is None
        kill_at = now + grace
        self._kill_at = kill_at if self._kill_at is None else min(self._kill_at, kill_at)
        self.deadline = now

    def exited(self, now: float) -> None:
        """Notes that the program itself was reaped."""
        self._exited_at = now
        self.deadline = now

    def look(self, now: float) -> None:
        """Makes `next` due at once, because of an event, if an end is going on."""
        if self.deadline is not None:
            self.deadline = now

    def next(self, now: float, *, drained: bool, blocked: bool, has_survivors: bool) -> str | None:
        """Returns the next action: TERM or KILL for all remaining processes, RECORD the exit, or None: wait. `drained`:
        the end of all output was seen; `blocked`: the disk takes no output; `has_survivors`: the program or a
        descendant lives."""
        if self.deadline is None:
            return None
        self.deadline = now + (BLOCKED_POLL_S if blocked else POLL_S)
        if self._gone_at is None and not self._still_there(now, drained, blocked, has_survivors):
            self._gone_at = now
        if self._gone_at is None:
            return self._next_blow(now)
        # The end waits for a disk that takes no output, unless a stop was requested: a person wants the end.
        waiting = not drained and (now < self._gone_at + DRAIN_S or (blocked and not self.stopping))
        if waiting:
            return None
        self.deadline = None
        return RECORD

    def _still_there(self, now: float, drained: bool, blocked: bool, has_survivors: bool) -> bool:
        if self._kill_until is not None and now >= self._kill_until:
            return False
        if self._exited_at is None or self.stopping:
            return has_survivors or self._exited_at is None
        if not drained and (blocked or now < self._exited_at + DRAIN_S):
            return True
        if not (self._sweep and has_survivors):
            return False
        if self._kill_at is None:
            self._term_due = True
            self._kill_at = now + SWEEP_GRACE_S
        return True

    def _next_blow(self, now: float) -> str | None:
        if self._kill_at is not None and now >= self._kill_at:
            if self._kill_until is None:
                self._kill_until = now + KILL_LIMIT_S
            return KILL
        if self._term_due:
            self._term_due = False
            return TERM
        return None
