"""Keeps keys on their way over a line that may be dead. The daemon there grants leases, and types only keys that reach
it while their lease holds (`synapsed.api.leases`). Pure.

Keys that were sent and are not known to be typed are kept here: if the daemon reports that they came late, they are
sent once more, as long as they are not old. After the person has left nothing more is typed.
"""

import time
from collections import deque
from typing import NamedTuple

SILENT_S = 3.0
"""Seconds of silence after which nothing more is sent, and the person is notified."""
KEPT_S = 20.0
"""Seconds for which keys wait for the line. Later the person would not understand their effect."""
CHECK_S = 0.5
"""Seconds between two looks at the line."""
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock() -> float:
    """Returns seconds that run on while the machine sleeps."""
    return time.clock_gettime(_BOOT)


class SentKeys(NamedTuple):
    number: int
    typed: float
    keys: bytes


class LeasedKeys:
    """Keys of one connection."""

    def __init__(self, now: float) -> None:
        self._lease: int | None = None
        self.heard_at = now
        """Time of the last message from that daemon."""
        self._number = 0
        self._late = 0
        self._sent: deque[SentKeys] = deque()

    def heard(self, lease: int, taken: int, now: float) -> None:
        """Takes a new lease; the pieces up to the number `taken` were typed."""
        self._lease, self.heard_at = lease, now
        self._take(taken)

    def silent(self, now: float) -> float | None:
        """Returns the seconds of silence if they are too many, else None."""
        silent = now - self.heard_at
        return silent if silent > SILENT_S else None

    def may_send(self, now: float) -> bool:
        return self._lease is not None and self.silent(now) is None

    def piece(self, keys: bytes, typed: float) -> bytes:
        """Returns the next piece, with `keys`; the oldest of them was `typed` then."""
        assert self._lease is not None
        self._number += 1
        self._sent.append(SentKeys(self._number, typed, keys))
        return self._lease.to_bytes(4) + self._number.to_bytes(4) + keys

    def late(self, number: int, taken: int) -> tuple[bytes, float | None]:
        """Handles the report that keys came late, for the `number`th time. Returns the keys to type once more, and the
        time of the oldest of them."""
        self._late = number
        self._take(taken)
        keys, typed = b"".join(one.keys for one in self._sent), self.oldest
        self._sent.clear()
        return keys, typed

    def again(self, *, gone: bool) -> dict[str, object]:
        """Returns the command that makes the daemon go on; `gone`: nothing is typed once more."""
        return {"type": "again", "late": self._late, "gone": gone}

    @property
    def oldest(self) -> float | None:
        """Time at which the oldest key was typed that is not known to have arrived."""
        return self._sent[0].typed if self._sent else None

    @property
    def unsure(self) -> int:
        """Number of bytes that were sent, and are not known to have arrived."""
        return sum(len(one.keys) for one in self._sent)

    def forget(self) -> int:
        """Forgets those bytes, so that none is sent once more; returns their number."""
        unsure = self.unsure
        self._sent.clear()
        return unsure

    def _take(self, taken: int) -> None:
        while self._sent and self._sent[0].number <= taken:
            self._sent.popleft()
