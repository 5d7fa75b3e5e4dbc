"""Decision to restart a broker: one whose disk was full does not heal by itself once there is room.

Pure: what was seen goes in, with the time; whether to start it again comes out.
"""

from dataclasses import dataclass
from typing import Final

UNHEALTHY_S: Final = 30.0
"""It says so for so long."""
OF_OTHERS: Final = ("meta leader", "meta layer", "is not current")
"""In what a broker of three says while the others are not there, elect a leader, or have what it has yet to fetch: a
start of it heals none of that, and has it begin again. With a thousand hosts it fetches for minutes."""
OF_OTHERS_S: Final = 600.0
"""Until such a broker is started again all the same."""
FREE_MIN: Final = 1 << 30
"""With less room a start would end where the last one did."""
FREE_WARN: Final = 2 << 30
PAUSE_S: Final = 120.0
"""Between two starts of the watchdog's."""


@dataclass(frozen=True)
class BrokerHealth:
    """One look. `told`: what the broker says of itself, None where it does not answer; `free`: bytes of its disk."""

    healthy: bool
    told: str | None
    free: int


@dataclass
class Watchdog:
    """Health of the broker so far. Times are monotonic seconds. `free_min`: with less room nothing is started again."""

    free_min: int = FREE_MIN
    since: float | None = None
    """Since when it says that it is not healthy."""
    last: float | None = None
    """Time of the last restart."""

    def seen(self, health: BrokerHealth, *, now: float) -> bool:
        """Takes the broker's health; returns True if the broker is to be started again. A broker that does not answer
        at all is not judged here: it may be starting, and one that has ended is started again anyway."""
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
