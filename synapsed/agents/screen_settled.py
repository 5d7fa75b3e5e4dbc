"""When a screen has come to rest, told once for each thing that it shows then. Pure."""

from hashlib import blake2b

from synapsed.model.agent import Activity
from synapsed.model.events import ScreenRested

RESTS = frozenset({Activity.READY, Activity.WAITING, Activity.UNKNOWN})
DIGEST_SIZE = 8


class Resting:
    def __init__(self) -> None:
        self._told = ""

    def screen(self, text: str) -> list[ScreenRested]:
        """What is to be told of the screen, now that its program is in one of `RESTS`."""
        digest = blake2b(text.encode("utf-8", "replace"), digest_size=DIGEST_SIZE).hexdigest()
        before, self._told = self._told, digest
        return [ScreenRested(digest=digest)] if digest != before else []
