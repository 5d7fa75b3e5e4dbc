"""Knows if keys come to a program later than the kernel says. Where it runs in a container, on another machine or as
another user, the process at the terminal may be a relay, which passes keys on to a second terminal: it reads each key
at once and rests, while the key and its effect are on their way. Pure.

A relay is known by its name, or by typed text that is shown long after the process had read it and rested. Only the
program's output proves that a key has arrived. So with a lag each wait for an effect is longer, and no key is pressed a
second time: both might arrive, the second one at something that nobody has seen.
"""

from collections import deque

ASLEEP_S = 1.0
"""Least seconds between the moment when all input was read and the process rested, and the text on the screen."""

UNKNOWN_S = 5.0
"""Assumed seconds from a key to its effect behind a relay whose time has not been measured."""

ON_WAY_S = 60.0
"""Seconds, besides the lag, for which keys without an effect may still be on their way: a connection may stall."""

TOOK_MAX_S = 30.0

ON_WAY = (
    "it runs behind another program (in a container, on another machine, as another user), so the keys may be on their "
    "way, and are not pressed again: see what becomes of them ('synapsectl attach')"
)


class Lag:
    """The lag of one program. Times are monotonic seconds."""

    def __init__(self) -> None:
        self.relayed = False
        """True if the process that reads the terminal is a relay by its name."""
        self._took: deque[float] = deque(maxlen=4)
        """Seconds from the keys of the last messages to the screen; 0.0 for those that are no evidence of a relay."""
        self.unshown: tuple[float, int] | None = None
        """Time at which a message was typed that is not shown yet, and the end of the output then."""
        self._rested_at: float | None = None
        """Time when the process first rested since then, with all input read and nothing printed."""
        self._late = False
        """True if it has rested so for a while: the text must be on its way."""
        self._keys_at = float("-inf")

    @property
    def seconds(self) -> float:
        """Returns the seconds that keys may take to have an effect; 0.0 if no relay is known."""
        assumed = UNKNOWN_S if self._late or (self.relayed and not self._took) else 0.0
        longest = max(self._took, default=0.0)
        return max(assumed, 2 * longest + 1 if longest else 0.0)

    def typed(self, now: float, message_at: int | None = None) -> None:
        """Notes that keys were written; of a message, at which end of the output."""
        self._keys_at = now
        if message_at is not None:
            self.unshown, self._rested_at, self._late = (now, message_at), None, False

    def asked(self, now: float, *, rests: bool, offset: int) -> None:
        """Takes the kernel's answer (has the process read all input, and rests?), and the end of the output."""
        if not rests:
            self._rested_at = None
        elif self.unshown is not None and offset <= self.unshown[1]:
            self._rested_at = self._rested_at or now
            self._late = self._late or now - self._rested_at >= ASLEEP_S

    def shown(self, now: float) -> None:
        """Notes that the typed message is on the screen."""
        if self.unshown is not None:
            late = self._late or (self._rested_at is not None and now - self._rested_at >= ASLEEP_S)
            self._took.append(min(now - self.unshown[0], TOOK_MAX_S) if late or self.relayed else 0.0)
            self.unshown, self._late = None, False

    def left(self, now: float, *, stalls: bool = False) -> float:
        """Returns the seconds in which the last keys may still have an effect; `stalls`: if a connection stalls."""
        lag = self.seconds
        return max(0.0, self._keys_at + lag + (ON_WAY_S if stalls else 0.0) - now) if lag else 0.0
