"""The daemon's part in a terminal that has a direct way to its program: lent to the person's tool, whose keys are dealt
with here where they are no plain text."""

from collections import deque
from collections.abc import Callable

from synapsed.aio import TaskSet
from synapsed.api.framed_terminal import FramedConnection
from synapsed.interfaces import Attachment, DirectWay
from synapsed.shared import attach_frames as wire


class DirectKeys:
    """`interfaces.DirectTerminal` of one open terminal. `take` is called with keys that were handed over, in their
    order; False where they have to wait, in `waiting`."""

    def __init__(
        self, attachment: Attachment, connection: Callable[[], FramedConnection], take: Callable[[bytes], bool]
    ) -> None:
        self._attachment = attachment
        self._connection = connection
        self._take = take
        self.waiting: deque[bytes] = deque()
        self._wanted = False
        """The person's tool takes what is lent, and nothing is."""
        self._way: DirectWay | None = None
        self._taken = False
        self._begun = False
        self._tells = False
        """The person's tool tells when its keys go there. One of before does not."""
        self._awaited = False
        """It has not told yet: what still comes here was pressed before what went there."""
        self.alive = False
        """Keys may be on their way there that are older than any that comes here."""
        self._tasks = TaskSet()

    @property
    def due(self) -> bool:
        """Keys that were handed over are to be dealt with before what came here."""
        return bool(self.waiting) and not self._awaited

    def said(self, *, taken: bool, tells: bool) -> None:
        """The person's tool wants one, or has `taken` what was lent; it `tells` when keys go there."""
        self._tells = self._tells or tells
        if taken:
            self._taken = True
            self._begin()
        else:
            self._wanted = True

    def begun(self) -> None:
        """All keys go there now, and whatever went here has come."""
        if self._awaited:
            self._awaited, self.alive = False, True
            if not self.waiting:
                self.dealt(0)  # which opens it

    def used(self) -> None:
        """A key was dealt with that came here: a direct way is worth it."""
        if self._awaited:
            return
        if self._wanted:
            self._wanted = False
            self._tasks.spawn(self._lend())
        elif self._taken and not self._begun:
            self._begin()

    async def _lend(self) -> None:
        way = await self._attachment.direct(self)
        if way is None:
            return
        self._way = way
        if not self._connection().lend(wire.LENT, way.lent.fileno()):
            self._wanted = True  # at another time
        way.lent.close()

    def _begin(self) -> None:
        if self._way is None:
            return
        self._awaited = self._tells
        if self._way.begin(lambda: self._connection().send(wire.DIRECT, b"")):
            self._begun, self.alive = True, not self._tells
        else:
            self._awaited = False

    async def end(self) -> None:
        """Returns when all keys that went there are here, in `waiting` or taken."""
        if self._way is not None:
            await self._way.end()
        self.alive = False

    def dealt(self, count: int) -> None:
        if self._way is not None:
            self._way.dealt(count)

    async def close(self) -> None:
        await self._tasks.cancel()

    # --- DirectTerminal

    def typed(self, data: bytes) -> None:
        """The program was given these keys."""

    def handed(self, data: bytes) -> None:
        if self._awaited or self.waiting or not self._take(data):
            self.waiting.append(data)
        else:
            self.dealt(len(data))

    def may_begin(self) -> bool:
        return self._connection().has_room()

    def may_type(self) -> bool:
        return not (self._awaited or self.waiting)

    def over(self) -> None:
        self._connection().send(wire.OVER, b"")
        self._taken = self._begun = False
        self._wanted = True
