"""Persons' terminals that are joined to the keeper directly: bytes in are keys, bytes out are the program's output.

The daemon joins such a connection and lends it to the person's tool; from then on it has no frames. Which keys the
program is given is still the daemon's to say: while a terminal is open, text passes, and the daemon is told of it; any
other key, and each one while it is shut, is handed to the daemon, which deals with it and opens it again.
"""

from __future__ import annotations

import socket

from . import frames
from .inputs import Pending
from .spool import Spool

MYPY = False
if MYPY:  # what type checkers know as true: the keeper imports no typing at run time
    from collections.abc import Callable

    from .inputs import InputQueue
    from .requests import Connection

MAX_TERMINALS = 8
"""Terminals at once; of further ones everything goes by way of the daemon."""

READ_MAX = 4096
"""Bytes of keys taken at a time."""

HANDED_MAX = 64 * 1024
"""Bytes that are handed to the daemon and not dealt with, at which no more are read."""

DRAIN_READS = 256
"""Reads after which a terminal counts as drained though it goes on sending: whoever types has sent far less."""

LAG_MAX = 1024 * 1024
"""Bytes of output that a terminal may be behind; then it is let go, and the daemon draws its screen again."""

FILLS_PER_TURN = 8
"""Pieces of output given to one terminal before others, and the program, get their turn."""


def is_text(data: bytes) -> bool:
    """Whether no key in `data` can submit a line or begin a sequence."""
    return b"\r" not in data and b"\x1b" not in data


class JoinedTerminal:
    """One of them. Raises nothing on a broken socket: `gone` is set, and it is dropped."""

    __slots__ = (
        "_cursor",
        "_dealt",
        "_handed",
        "_head",
        "_put",
        "_queue",
        "blocked",
        "ended",
        "gone",
        "name",
        "open",
        "owner",
        "registered",
        "sock",
    )

    def __init__(self, sock: socket.socket, name: str, queue: InputQueue, put: Callable[[Pending], bool]) -> None:
        """`put` gives input to the program; False where it takes none any more."""
        self.sock = sock
        self.name = name
        self.owner: Connection | None = None
        """Who opened it, and is told of its keys; until then none are read."""
        self.open = False
        """Text passes to the program."""
        self.ended = False
        """It gets no more output; what it has still sent is read to the end."""
        self.gone = False
        self.blocked = False
        """Its socket takes no output now."""
        self.registered = 0
        """The event mask under which the selector knows this socket."""
        self._cursor: int | None = None
        self._handed = self._dealt = 0
        """Bytes that were handed to the owner, and that it has dealt with."""
        self._head = b'{"id":"%b"}' % name.encode("ascii")
        self._queue = queue
        self._put = put

    @property
    def wants_reading(self) -> bool:
        room = self._queue.has_room(READ_MAX) and self._handed - self._dealt < HANDED_MAX
        return room and self.owner is not None and self.owner.has_room

    @property
    def wants_writing(self) -> bool:
        return self.blocked and not self.ended

    def dealt(self, owner: Connection, dealt: int, *, opens: bool, offset: int | None) -> None:
        """`owner` has dealt with `dealt` of the bytes that were handed to it; text may pass, if it `opens`, and nothing
        more was handed over since. Output begins at `offset`, if it has not begun."""
        self.owner = owner
        self._dealt = dealt
        if self._cursor is None:
            self._cursor = offset
        self.open = opens and dealt == self._handed and not self.ended

    def shut(self, *, end: bool) -> None:
        """What was sent until now is dealt with as before; from now on every key is handed over."""
        for _ in range(DRAIN_READS):
            if self.owner is None or not self.receive():
                break
        self.open = False
        if end:
            self.end()

    def end(self) -> None:
        """It gets no more output, and learns that. It may still have sent keys, which it will not send twice."""
        if not self.ended:
            self.ended, self.open = True, False
            try:
                self.sock.shutdown(socket.SHUT_WR)
            except OSError:
                self.gone = True

    def receive(self) -> bool:
        """Deals with the keys that came; whether there were any."""
        try:
            data = self.sock.recv(READ_MAX)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self.gone = True
            return False
        assert self.owner is not None
        if self.open and is_text(data) and self._put(Pending(data, None)):
            self.owner.send_late(frames.encode_as(frames.TYPED, self._head, data))
        else:
            self.open = False
            self._handed += len(data)
            self.owner.send_encoded(frames.encode_as(frames.KEYS, self._head, data))
        return True

    def pump(self, spool: Spool, *, over: bool) -> bool:
        """Sends the output that can be sent; `over`: there will be no more. True when there is more to send and the
        socket would take it."""
        if self._cursor is None or self.ended:
            return False
        for _ in range(FILLS_PER_TURN):
            behind = spool.end - self._cursor
            if behind == 0:
                if over:
                    self.end()
                return False
            start, data = spool.read(self._cursor, frames.MAX_OUTPUT)
            if behind > LAG_MAX or start != self._cursor:
                self.end()
                return False
            try:
                count = self.sock.send(data)
            except BlockingIOError:
                count = 0
            except OSError:
                self.gone = True
                return False
            self._cursor += count
            self.blocked = count < len(data)
            if self.blocked:
                return False
        return True
