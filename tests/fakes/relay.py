"""In place of ssh or docker exec: runs a program on a terminal of its own, and passes everything on late.

    python -S -E -I relay.py DELAYS KEYS COMMAND …

DELAYS is a file with two numbers, the seconds that keys and output take, and perhaps a third, by how much each piece
may come later still. It is read for each piece: the way can become slow while it is used. No piece overtakes another.
KEYS is a file that gets a line for each piece of keys when it reaches the program: the keys, as Python writes bytes.
Each piece is stamped with the time at which it is due; all of them pass in one loop.
"""

import fcntl
import os
import pty
import random
import select
import signal
import sys
import termios
import time
import tty
from collections import deque

PIECE = 65536


class Way:
    """One direction: `number` is the place of its delay in the file."""

    def __init__(self, delays: str, number: int, to: int) -> None:
        self._delays = delays
        self._number = number
        self._to = to
        self._last = 0.0
        self._pieces: deque[tuple[float, bytes]] = deque()

    def put(self, piece: bytes) -> None:
        with open(self._delays) as file:
            delays = [*map(float, file.read().split()), 0.0]
        due = time.monotonic() + delays[self._number] + random.random() * delays[2]
        self._last = max(self._last, due)
        self._pieces.append((self._last, piece))

    def pass_due(self) -> list[bytes]:
        passed = []
        while self._pieces and self._pieces[0][0] <= time.monotonic():
            passed.append(piece := self._pieces.popleft()[1])
            while piece:
                piece = piece[os.write(self._to, piece) :]
        return passed

    def wait(self) -> float:
        """Seconds until the next piece is due."""
        return max(0.0, self._pieces[0][0] - time.monotonic()) if self._pieces else 3600.0


def main(delays: str, keys: str, command: list[str]) -> int:
    child, there = pty.fork()
    if child == 0:
        os.execvp(command[0], command)

    def resized(*_: object) -> None:
        fcntl.ioctl(there, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))

    signal.signal(signal.SIGWINCH, resized)
    resized()
    tty.setraw(0)
    into, back = Way(delays, 0, there), Way(delays, 1, 1)
    while True:
        ready, _, _ = select.select([0, there], [], [], min(into.wait(), back.wait()))
        for fd, way in ((0, into), (there, back)):
            try:
                piece = os.read(fd, PIECE) if fd in ready else None
            except OSError:  # the program has ended
                piece = b""
            if piece:
                way.put(piece)
            elif piece is not None:
                return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if fd == there else 0
        for passed in into.pass_due():
            with open(keys, "a") as file:
                file.write(f"{passed!r}\n")
        back.pass_due()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
