"""What ends a loop of rules: one whose own message leads to the event that it is for, or two that wake each other.

- **depth**: a task that a rule has sent says how many rules stand behind it; from DEPTH_MAX on none acts on its
  events but to tell of them;
- **rate**: a rule acts RATE_MAX times within RATE_S seconds, and not again before the first of these is over.
"""

from collections import deque
from typing import Any

FIRED = "fired"
"""Key of a task's metadata: the rule that has sent it, the event that it was for, and how deep it is. No client sets
it."""

DEPTH_MAX = 3
RATE_MAX = 20
RATE_S = 60.0


def depth_of(metadata: dict[str, Any]) -> int:
    """How many rules stand behind the task."""
    told = metadata.get(FIRED)
    depth = told.get("depth") if isinstance(told, dict) else None
    return depth if isinstance(depth, int) and not isinstance(depth, bool) else 0


class Rate:
    """Of one rule; `now` is monotonic."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=RATE_MAX)
        self._told = False

    def allows(self, now: float) -> bool:
        """Whether it may act now, and then it has."""
        if len(self._times) == RATE_MAX and now - self._times[0] < RATE_S:
            return False
        self._times.append(now)
        self._told = False
        return True

    def tell(self) -> bool:
        """Whether its being held back is to be told: once, until it acts again."""
        told, self._told = self._told, True
        return not told
