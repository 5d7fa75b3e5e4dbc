"""One-time codes, which a person carries to a device, in a link or a picture of one, to pair it.

A code is good for two minutes, once, and not after the end of this daemon; it is kept as a hash. There are at most
CODES_MAX; one more takes the place of the oldest.
"""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Final

from synapsed.interfaces import Right

CODE_S: Final = 120.0
CODES_MAX: Final = 20
CODE_BYTES: Final = 16
CODE_LENGTH_MAX: Final = 128
"""Characters of the longest text that is taken for a code."""


@dataclass(frozen=True, slots=True)
class PairingCode:
    """Properties of the device that brings the code. `here`: it is for a browser of this machine only, which no proxy
    brings."""

    rights: frozenset[Right]
    name: str | None
    until: float
    here: bool = False


class Codes:
    """The open codes. Times are those of the boot clock, in seconds: sleep of the machine does not prolong a code."""

    def __init__(self) -> None:
        self._open: dict[str, PairingCode] = {}

    def __len__(self) -> int:
        return len(self._open)

    def make(self, rights: frozenset[Right], name: str | None, *, now: float, here: bool = False) -> str:
        code = secrets.token_urlsafe(CODE_BYTES)
        self._forget(now)
        while len(self._open) >= CODES_MAX:
            del self._open[next(iter(self._open))]
        self._open[digest(code)] = PairingCode(rights, name, now + CODE_S, here)
        return code

    def take(self, code: str, *, now: float, here: bool) -> PairingCode | None:
        """Returns the properties of the code; None for one that is unknown, used, or too old, or that is for this
        machine's browser and does not come from `here`: then it stays valid."""
        self._forget(now)
        found = self._open.get(key := digest(code))
        if found is None or (found.here and not here):
            return None
        return self._open.pop(key)

    def _forget(self, now: float) -> None:
        self._open = {key: one for key, one in self._open.items() if now < one.until}


def digest(secret: str) -> str:
    """Returns the hash under which secrets are kept here: they have 128 random bits and more, so that no salt and no
    slowness is needed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
