"""Takes mail from each sender in turn, so that no sender delays the others. Pure.

The broker delivers mail in the order in which it came, whoever sent it; behind ten thousand messages of one member all
others would wait until those are done. So the mail of each sender, by its kind, is a line of its own, and the lines are
worked on side by side. A message that would wait in a line for over TURN_S is put back: the broker delivers it again
when its turn is near, and in the meantime the mail of others, which it has after that one.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from synapsed.errors import QueueFull

TURN_S: Final = 0.25
"""Seconds of work that a line holds at most; a line whose first message waits for less is left alone."""
FIRST_PACE_S: Final = 0.02
"""Seconds that a message is assumed to take before one of its line is done."""
PACE_SHARE: Final = 0.1
"""Weight of the newest measurement in the mean. It counts for PACE_MOST_S at most: one very long message says little
about the others."""
PACE_MOST_S: Final = 1.0
BACK_LEAST_S: Final = 0.25
BACK_MOST_S: Final = 60.0
"""Most seconds until a message that is put back comes again."""
LATER_MAX: Final = 256
"""Most messages of one host that are put off because agents take no more; a further one is refused."""
WAITS_S: Final = 60.0
"""Seconds after which a message that was put off, and has not come again, is forgotten: it was canceled, or lost at the
broker."""


@dataclass(frozen=True, slots=True)
class Back[T]:
    """A message that is put back, and the seconds after which it is to come again."""

    what: T
    after: float


class MailLine[T]:
    """The messages of one kind of one sender. Times are of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[T, float]] = deque()
        self._pace = FIRST_PACE_S
        self._back_until = 0.0
        self.busy = False
        """True while a worker works on the line."""

    def put(self, what: T, now: float, *, first: bool) -> list[Back[T]]:
        """Adds a message at the end; `first`: it comes for the first time. Returns what is put back."""
        if first and now < self._back_until:  # messages that were put back come first
            return [self._put_back(what, now)]
        self._waiting.append((what, now))
        return self.look(now)

    def look(self, now: float) -> list[Back[T]]:
        """Returns what is put back by now: the end of a line that does not move, or of which messages were put back."""
        if not self._waiting or (now - self._waiting[0][1] < TURN_S and now >= self._back_until):
            return []
        keep = max(1, int(TURN_S / self._pace))
        ending = [self._waiting.pop()[0] for _ in range(len(self._waiting) - keep)]
        return [self._put_back(what, now) for what in reversed(ending)]

    def _put_back(self, what: T, now: float) -> Back[T]:
        """Chooses when a message comes again: one after the other, as fast as they are done. A message whose turn is
        later than BACK_MOST_S comes then, and is put back once more."""
        behind = max(self._back_until, now + len(self._waiting) * self._pace)
        self._back_until = min(now + BACK_MOST_S, behind + self._pace)
        return Back(what, max(BACK_LEAST_S, self._back_until - now))

    def next(self) -> T | None:
        """Removes and returns the first message that waits."""
        return self._waiting.popleft()[0] if self._waiting else None

    def done(self, took: float) -> None:
        """Notes that a message was done within `took` seconds."""
        self._pace += PACE_SHARE * (min(took, PACE_MOST_S) - self._pace)

    def idle(self, now: float) -> bool:
        """Returns True if the line can be forgotten."""
        return not self.busy and not self._waiting and now >= self._back_until


class PutOffMail:
    """Messages that wait until their agents' mailboxes have room, by host and id. Among hosts that wait for the same
    agent, the one that was served longest ago is next."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], tuple[str, float]] = {}
        self._served: dict[tuple[str, str], int] = {}
        self._turn = 0

    def add(self, origin: tuple[str, str], agent: str, now: float) -> bool:
        """Notes that a message waits; returns False if its host has too many waiting ones."""
        self._waiting = {one: (to, at) for one, (to, at) in self._waiting.items() if now - at < WAITS_S}
        others = sum(1 for one in self._waiting if one[0] == origin[0] and one != origin)
        if others < LATER_MAX:
            self._waiting[origin] = agent, now
        return others < LATER_MAX

    def check(self, src: str, agent: str, now: float) -> None:
        """Raises QueueFull if another host that was served longer ago waits for the agent."""
        mine = self._served.get((agent, src), 0)
        for (other, _), (to, at) in self._waiting.items():
            if to == agent and now - at < WAITS_S and self._served.get((agent, other), 0) < mine:
                raise QueueFull("a message of another host is next", agent=agent)

    def taken(self, origin: tuple[str, str], agent: str) -> None:
        """Notes that a message has become a task of the agent, or is refused."""
        self._waiting.pop(origin, None)
        if not self._waiting:
            self._served.clear()
            return
        self._turn += 1
        self._served[agent, origin[0]] = self._turn
