"""Decides when to restart a broker: one whose disk was full does not recover by itself once there is room.

Pure: the caller gives what it saw, and the time, and gets the decision.
"""

from dataclasses import dataclass
from typing import Final

UNHEALTHY_S: Final = 30.0
"""Seconds for which the broker must report a fault before a restart."""
OF_OTHERS: Final = ("meta leader", "meta layer", "is not current")
"""Words in the report of a broker of three while the others are not there, elect a leader, or have data that it still
fetches: a restart repairs none of that, and makes it begin again. With a thousand hosts it fetches for minutes."""
OF_OTHERS_S: Final = 600.0
"""Seconds after which such a broker is restarted all the same."""
FREE_MIN: Final = 1 << 30
"""Least free bytes for a restart: with less, the new start would end like the last."""
FREE_WARN: Final = 2 << 30
PAUSE_S: Final = 120.0
"""Seconds between two restarts by the watchdog."""


@dataclass(frozen=True)
class BrokerHealth:
    """One look at the broker. `told`: its own report, None if it does not answer; `free`: free bytes of its disk."""

    healthy: bool
    told: str | None
    free: int


@dataclass
class Watchdog:
    """Health of the broker so far. Times are monotonic seconds. `free_min`: free bytes below which the broker is not
    restarted."""

    free_min: int = FREE_MIN
    since: float | None = None
    """Time since which the broker reports that it is not healthy."""
    last: float | None = None
    """Time of the last restart."""

    def seen(self, health: BrokerHealth, *, now: float) -> bool:
        """Notes the broker's health; returns True if the broker is to be started again. A broker that does not answer
        at all is left alone: it may be starting, and its keeper restarts one that has ended anyway."""
        if health.healthy:
            self.since = None
            return False
        if health.told is None:
            return False
        if self.since is None:
            self.since = now
        patience = OF_OTHERS_S if any(word in health.told for word in OF_OTHERS) else UNHEALTHY_S
        if health.free < self.free_min or now - self.since < patience:
            return False
        if self.last is not None and now - self.last < PAUSE_S:
            return False
        self.since, self.last = None, now
        return True
