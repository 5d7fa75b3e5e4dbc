"""The scripted agent with a flood in it: full output, a truth of its own about it, and a receipt for every message.

    python -S -E -I tests/faults/flooder.py DIRECTORY

Beyond what `examples/dummy_agent.py` understands:

    flood N TAG     N blocks of 64 KiB as fast as they are taken, then `flooded TAG`
    last TEXT N     say TEXT and end with code N at once
    spawn           leave a process behind that ignores HUP and TERM, in a session of its own, twice forked
    deaf            read nothing any more
    eat N           take N MiB of memory

What is printed is noted before it is written, in `DIRECTORY/<pid>.out`, as what it consists of (a text, or numbers of
blocks), so that a test can say byte by byte what the spool must hold. Each message that was taken is noted in
`DIRECTORY/<pid>.in`. The terminal's own translation of output is switched off: what is written is what is read.
"""

import json
import os
import random
import signal
import sys
import termios
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2] / "examples"))

import dummy_agent

BLOCK = 64 * 1024
MARK = 24
"""Bytes at the front of a block that tell its number."""
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
"""A flood is on the alternate screen, as a program's are that draws all the time."""


def _filler() -> bytes:
    """Text, colours, wide characters and cursor moves, never the same twice within a block."""
    rng = random.Random(4711)
    words = ["flood", "über", "日本語", "\x1b[1;3{0}mred\x1b[0m", "\x1b[{0};{0}H", "\x1b[K", "🌊", "0123456789"]
    pieces: list[bytes] = []
    size = 0
    while size < BLOCK:
        piece = f"{rng.random():.9f} {rng.choice(words).format(rng.randint(1, 7))}"
        piece += "\r\n" if rng.random() < 0.2 else " "
        pieces.append(piece.encode())
        size += len(pieces[-1])
    text = b"".join(pieces)[: BLOCK - MARK - 16]
    # No character and no sequence may be cut at the end of a block.
    text = text[: text.rindex(b" ")]
    return text + b"." * (BLOCK - MARK - len(text))


FILLER = _filler()


def block(number: int) -> bytes:
    """Block `number` of the flood: 64 KiB."""
    return f"\x1b[0m<{number:018d}>".encode() + FILLER


def stream(notes: Path) -> Iterator[bytes]:
    """What the program that noted `notes` has printed, or was about to when it was killed."""
    for line in notes.read_bytes().splitlines():
        try:
            note = json.loads(line)
        except ValueError:
            return  # killed while it wrote this note
        if isinstance(note, str):
            yield note.encode()
        else:
            first, count = note
            for number in range(first, first + count):
                yield block(number)


class Terminal(dummy_agent.Terminal):
    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._notes = (directory / f"{os.getpid()}.out").open("ab", buffering=0)
        self._receipts = (directory / f"{os.getpid()}.in").open("ab", buffering=0)
        self._next = 0

    def __enter__(self) -> "Terminal":
        mode: list[Any] = termios.tcgetattr(0)
        mode[1] &= ~termios.OPOST
        termios.tcsetattr(0, termios.TCSADRAIN, mode)
        super().__enter__()
        return self

    def _note(self, note: object) -> None:
        self._notes.write(json.dumps(note).encode() + b"\n")

    def write(self, text: str) -> None:
        text = text.encode("utf-8", "replace").decode().replace("\n", "\r\n")
        self._note(text)
        super().write(text)

    def flood(self, blocks: int) -> None:
        self.write(ENTER)
        self._note([self._next, blocks])
        for number in range(self._next, self._next + blocks):
            _write_all(block(number))
        self._next += blocks
        self.write(LEAVE)

    def received(self, message: str) -> None:
        self._receipts.write(json.dumps(message).encode() + b"\n")


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def flood(terminal: dummy_agent.Terminal, text: str) -> None:
    assert isinstance(terminal, Terminal)
    blocks, _, tag = text.partition(" ")
    terminal.flood(int(blocks))
    terminal.write(f"flooded {tag}\n")


def last(terminal: dummy_agent.Terminal, text: str) -> None:
    words, _, code = text.rpartition(" ")
    terminal.write(words + "\n")
    os._exit(int(code))


def spawn(terminal: dummy_agent.Terminal, text: str) -> None:
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork():
            os._exit(0)
        while True:
            time.sleep(3600)
    os.wait()
    terminal.write("spawned\n")


def deaf(terminal: dummy_agent.Terminal, text: str) -> None:
    terminal.write("deaf\n")
    while True:
        time.sleep(3600)


HOARD: list[bytes] = []


def eat(terminal: dummy_agent.Terminal, text: str) -> None:
    HOARD.extend(b"x" * (1 << 20) for _ in range(int(text)))
    terminal.write("eaten\n")


dummy_agent.DIRECTIVES.update({"flood": flood, "last": last, "spawn": spawn, "deaf": deaf, "eat": eat})


def messages(terminal: Terminal) -> Iterable[str]:
    while True:
        message = terminal.read(dummy_agent.PROMPT)
        if message.strip():
            terminal.received(message)
            yield message


def main() -> int:
    with Terminal(Path(sys.argv[1])) as terminal:
        terminal.write("flooder\n")
        while True:
            try:
                for message in messages(terminal):
                    dummy_agent.answer(terminal, message)
            except KeyboardInterrupt:
                terminal.write("\n[interrupted]\n")
            except dummy_agent.Ended:
                return 0


if __name__ == "__main__":
    sys.exit(main())
