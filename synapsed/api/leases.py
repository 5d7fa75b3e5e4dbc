"""Leases for keys over a connection that may be dead: keys are typed only if they come in time. Pure.

A dead connection keeps the keys that were sent, and delivers them when it works again, to an agent whose person may
have left long ago. So the daemon grants a new lease again and again, and keys carry the number of their sender's last
lease. Keys are late if their lease is older than the delay of the connection, to the client and back, explains. Late
keys, and all that follow, are dropped until the sender has said that the person is still there, and sends them once
more.
"""

from collections import deque
from typing import Final, NamedTuple

GRANT_S: Final = 0.5
"""Seconds from one lease to the next."""
LEASE_S: Final = 1.5
"""Seconds for which a lease holds, in addition to the connection's delay."""
AGES_MAX: Final = 20
"""Number of last answers, of which the quickest gives the connection's delay."""
GRANTED_MAX: Final = 256
PASTE_MAX: Final = 1024 * 1024
"""Bytes of a paste that wait for its end."""
_PASTE: Final = b"\x1b[200~"
_PASTE_END: Final = b"\x1b[201~"
HEAD: Final = 8
"""Bytes before the keys: the number of the lease, and the piece's own."""


class KeyPiece(NamedTuple):
    """Keys as they are sent, with their sender's lease, and a number that grows."""

    lease: int
    number: int
    keys: bytes

    @classmethod
    def read(cls, data: bytes) -> "KeyPiece":
        return cls(int.from_bytes(data[:4]), int.from_bytes(data[4:HEAD]), data[HEAD:])


class Leases:
    """Leases of one open terminal. `now` is the time of a clock that also runs while the machine sleeps."""

    def __init__(self) -> None:
        self._granted: dict[int, float] = {}
        self._number = 0
        self._ages: deque[float] = deque(maxlen=AGES_MAX)
        self._late = 0
        """Number of times that keys came late."""
        self._refuses = False
        self._told = 0
        self._pasted = b""
        self.taken = 0
        """The number of the last piece that came in time."""

    def grant(self, now: float) -> dict[str, object]:
        """Makes a new lease; returns the message about it for the sender."""
        self._number += 1
        self._granted[self._number] = now
        if len(self._granted) > GRANTED_MAX:
            del self._granted[next(iter(self._granted))]
        return {"type": "lease", "lease": self._number, "taken": self.taken}

    def heard(self, lease: int, now: float) -> None:
        """Notes that the sender has got that lease, and has said so at once."""
        if (granted := self._granted.get(lease)) is not None:
            self._ages.append(now - granted)

    def take(self, piece: KeyPiece, now: float) -> bytes | None:
        """Returns the keys to type, or None for a piece that is late. A paste is typed whole, or not at all."""
        granted = self._granted.get(piece.lease)
        longest = LEASE_S + 2 * min(self._ages, default=0.0)
        if self._refuses:
            return None
        if granted is None or not 0 <= now - granted <= longest:
            self._refuses = True
            self._late += 1
            return None
        self.taken = piece.number
        keys, self._pasted = self._pasted + piece.keys, b""
        begun = keys.rfind(_PASTE)
        if begun > keys.rfind(_PASTE_END) and len(keys) - begun <= PASTE_MAX:
            keys, self._pasted = keys[:begun], keys[begun:]
        return keys

    def late(self) -> dict[str, object] | None:
        """Returns the message that keys came late, once each time: pieces that were sent before the sender has got it
        are dropped."""
        if self._told == self._late:
            return None
        self._told = self._late
        return {"type": "late", "late": self._late, "taken": self.taken}

    def again(self, late: int, *, gone: bool) -> None:
        """Notes that the sender has got the message of that number, and will send the late keys once more. With `gone`
        it will send neither these nor the end of its paste."""
        if late == self._late:
            self._refuses = False
        if gone:
            self._pasted = b""

    @property
    def unfinished(self) -> int:
        """Returns the bytes of a paste whose end did not come."""
        return len(self._pasted)
