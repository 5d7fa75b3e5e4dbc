"""A mark for each agent that says where the emulator is at work on its output: memory that outlives the process.

The emulator is native code, and may end the daemon (or never return). A mark that was left tells the next daemon at
which output: it tries that in a process of its own first (`probe`), and where that ends too, or the daemon was ended
there over and over, the agent goes on without its screen up to there (`quarantine`). A daemon that was killed while it
fed good output has the cost of the trial, and nothing else.

Setting and clearing a mark is a store to shared memory: no call of the system.
"""

import asyncio
import json
import mmap
import os
import struct
import sys
from pathlib import Path
from typing import NamedTuple

import structlog

from synapsed.keeper.spool import SpoolReader
from synapsed.model.records import Checkpoint
from synapsed.terminal.look import Harm

MARK_FILE, ANSWER_MARK_FILE = "feed", "feed-answer"
"""In the agent's directory: of its screen, and of reading answers off its output."""

TRIES_MAX = 2
"""Trials that output may pass although a daemon was ended at it; then it is believed to be the cause all the same."""

QUARANTINES_MAX = 2
"""Times that a launch's screen is begun once more; then the launch goes on without one."""

PROBE_CPU_S = 30
"""For output that takes a second at the most: an emulator that goes round in circles. By the clock on the wall the
output would be blamed for a machine that is busy."""

PROBE_TIMEOUT_S = 600.0
"""For an emulator that waits for something."""

SEARCH_CPU_S = 2
"""For each trial of the search for where the harm ends: of a doubtful one more is passed over, which does no harm."""

SEARCH_TIMEOUT_S = 120.0
"""For the whole of it; then all of the output is passed over. An agent is not held up for longer."""

_PYTHONS = ("PYTHON", "LD_LIBRARY_PATH", "DYLD_")
"""Variables by which Python finds its modules and libraries."""

_FORMAT = struct.Struct("<8sQQQQQQQ")
_BUSY, _START, _END, _TRIED, _TRIES, _SKIP_TO, _QUARANTINES = range(1, 8)

log = structlog.stdlib.get_logger("synapsed.feed")


class FeedMark:
    """The mark of one launch. Where its file cannot be had, there is no mark, and nothing else changes."""

    def __init__(self, path: Path, launch_id: str) -> None:
        self._depth = 0
        tag = bytes.fromhex(launch_id[:16]).ljust(8, b"\0") if _is_hex(launch_id[:16]) else launch_id.encode()[:8]
        try:
            self._memory: mmap.mmap | bytearray = _mapped(path)
        except OSError as error:
            log.warning("no mark of what is fed can be kept", path=str(path), error=str(error))
            self._memory = bytearray(_FORMAT.size)
        if self._memory[:8] != tag.ljust(8, b"\0"):
            self._memory[: _FORMAT.size] = _FORMAT.pack(tag, 0, 0, 0, 0, 0, 0, 0)
        self._words = memoryview(self._memory).cast("Q")

    def at(self, start: int, end: int) -> None:
        """What is given to the emulator from now on is the output from `start` to `end`, or a look at it."""
        self._words[_START], self._words[_END] = start, end

    def begins(self) -> None:
        """The emulator is about to work."""
        self._depth += 1
        self._words[_BUSY] = 1

    def ends(self) -> None:
        """It has returned."""
        self._depth -= 1
        if not self._depth:
            self._words[_BUSY] = 0

    @property
    def left(self) -> tuple[int, int] | None:
        """Where a daemon was ended while the emulator worked; None where that was not so."""
        return (self._words[_START], self._words[_END]) if self._words[_BUSY] and not self._depth else None

    def passed(self) -> bool:
        """What the mark was left at did no harm in a trial. Whether that may be believed."""
        start, end = self._words[_START], self._words[_END]
        again = self._words[_TRIES] and start <= self._words[_TRIED] <= end
        self._words[_TRIES] = self._words[_TRIES] + 1 if again else 1
        self._words[_TRIED] = end
        self._words[_BUSY] = 0
        return self._words[_TRIES] <= TRIES_MAX

    def quarantine(self, behind: int = 0) -> None:
        """The output up to the end of what the mark was left at is not fed again, but for the `behind` bytes at its
        end."""
        self._words[_SKIP_TO] = max(self._words[_END] - behind, self._words[_SKIP_TO])
        self._words[_QUARANTINES] += 1
        self._words[_BUSY] = 0

    @property
    def harm(self) -> Harm | None:
        """What is known of the launch's output; None where all of it may be fed."""
        if not self._words[_QUARANTINES]:
            return None
        return Harm(skip_to=self._words[_SKIP_TO], blind=self._words[_QUARANTINES] > QUARANTINES_MAX)

    def close(self) -> None:
        self._words.release()
        if isinstance(self._memory, mmap.mmap):
            self._memory.close()
        self._memory = bytearray(_FORMAT.size)
        self._words = memoryview(self._memory).cast("Q")


class FeedMarks(NamedTuple):
    """Those of one launch: answers are read in a thread, by emulators of their own."""

    screen: FeedMark
    answers: FeedMark

    @classmethod
    def of(cls, agent_dir: Path, launch_id: str) -> "FeedMarks":
        return cls(FeedMark(agent_dir / MARK_FILE, launch_id), FeedMark(agent_dir / ANSWER_MARK_FILE, launch_id))

    def close(self) -> None:
        self.screen.close()
        self.answers.close()


def _is_hex(text: str) -> bool:
    return len(text) % 2 == 0 and all(character in "0123456789abcdef" for character in text)


def _mapped(path: Path) -> mmap.mmap:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if os.fstat(fd).st_size != _FORMAT.size:
            os.ftruncate(fd, 0)
            os.write(fd, bytes(_FORMAT.size))  # written, not a hole: a full disk is told here and not by a signal
        return mmap.mmap(fd, _FORMAT.size)
    finally:
        os.close(fd)


async def examine(marks: FeedMarks, spool: Path, checkpoint: Checkpoint | None, launch_start: int, agent: str) -> None:
    """Decide what marks that were left mean; nothing if no mark was left."""
    await _examine(marks.screen, spool, checkpoint, launch_start, agent)
    if (left := marks.answers.left) is not None:  # an answer is read from no checkpoint
        await _examine(marks.answers, spool, None, left[0], agent)


async def _examine(mark: FeedMark, spool: Path, checkpoint: Checkpoint | None, launch_start: int, agent: str) -> None:
    if (left := mark.left) is None:
        return
    usable = checkpoint if checkpoint is not None and checkpoint.offset > launch_start else None
    harm = mark.harm
    if harm is not None and usable is not None and usable.offset <= harm.skip_to:
        usable = None
    start = max(usable.offset if usable is not None else launch_start, harm.skip_to if harm is not None else 0)
    output = await asyncio.to_thread(_output, spool, start, left[1])
    told = {"agent": agent, "start": left[0], "end": left[1]}
    behind = 0
    if not await survives(usable, output):
        behind = len(output) - await harm_end(usable, output)
    elif mark.passed():
        log.info("a daemon was ended while it read output that does no harm", **told)
        return
    mark.quarantine(behind)
    log.error("output that ends the terminal emulator is passed over", **told, behind=behind)


def _output(spool: Path, start: int, end: int) -> bytes:
    reader = SpoolReader(str(spool))
    pieces: list[bytes] = []
    offset = max(start, reader.start)
    while offset < min(end, reader.end):
        at, data = reader.read(offset, end - offset)
        if not data:
            break
        pieces.append(data)
        offset = at + len(data)
    return b"".join(pieces)


async def survives(
    checkpoint: Checkpoint | None, output: bytes, *, cpu_s: int = PROBE_CPU_S, timeout: float = PROBE_TIMEOUT_S
) -> bool:
    """Whether a process that draws `checkpoint`, then feeds `output`, looks at it and resizes it, ends well."""
    return await _probe(checkpoint, output, timeout, cpu_s=cpu_s) is not None


async def harm_end(checkpoint: Checkpoint | None, output: bytes) -> int:
    """How many bytes of `output`, which does not survive, are to be passed over: what is behind them survives. A
    program that writes lines does not draw its prompt again, so none of that is given up that does no harm."""
    found = await _probe(checkpoint, output, SEARCH_TIMEOUT_S, cpu_s=SEARCH_CPU_S, search=True)
    return int(found) if found else len(output)


async def _probe(checkpoint: Checkpoint | None, output: bytes, timeout: float, **options: int) -> bytes | None:
    """What a process that tries this wrote; None if it did not end well."""
    drawn = checkpoint.redraw if checkpoint is not None else b""
    size = {"cols": checkpoint.cols, "rows": checkpoint.rows} if checkpoint is not None else {"cols": 80, "rows": 24}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "synapsed.terminal.probe"),
        env={name: value for name, value in os.environ.items() if name.startswith(_PYTHONS)},  # no secret among them
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE if "search" in options else asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    header = json.dumps({**size, "drawn": len(drawn), **options}).encode() + b"\n"
    try:
        async with asyncio.timeout(timeout):
            told, _ = await process.communicate(header + drawn + output)
    except TimeoutError:
        process.kill()
        await process.wait()
        return None
    return (told or b"") if process.returncode == 0 else None
