"""Finds output that crashes or blocks the terminal emulator, by trials in a process of its own
(`synapsed.terminal.probe`); and records, in the agent's directory, output that must not be drawn again."""

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from synapsed import aio, own_python
from synapsed.model.records import Checkpoint
from synapsed.shared.files import write_whole
from synapsed.terminal.look import Harm

FILE = "harm.json"

QUARANTINES_MAX = 2
"""Number of times that a launch's screen is begun again after harmful output; then it goes on without a screen."""

log = structlog.stdlib.get_logger("synapsed.screens")


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore")

    launch_id: str
    skip_to: int = Field(ge=0)
    quarantines: int = Field(ge=0)


class HarmRecord:
    """The record of one launch. The constructor reads a file; `of` does so in a thread."""

    def __init__(self, path: Path, launch_id: str) -> None:
        self._path = path
        self._known = _Record(launch_id=launch_id, skip_to=0, quarantines=0)
        try:
            told = _Record.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValidationError) as error:
            log.warning("what is known of harmful output cannot be read", path=str(path), error=type(error).__name__)
            return
        if told.launch_id == launch_id:
            self._known = told

    @classmethod
    async def of(cls, agent_dir: Path, launch_id: str) -> "HarmRecord":
        return await asyncio.to_thread(cls, agent_dir / FILE, launch_id)

    @property
    def harm(self) -> Harm | None:
        """The harmful output; None if all output may be drawn."""
        if not self._known.quarantines:
            return None
        return Harm(skip_to=self._known.skip_to, blind=self._known.quarantines > QUARANTINES_MAX)

    async def pass_over(self, upto: int) -> None:
        """Records that the output before `upto` is not drawn again."""
        known = self._known
        known.skip_to = max(upto, known.skip_to)
        known.quarantines += 1
        try:
            await asyncio.to_thread(write_whole, self._path, known.model_dump_json().encode())
        except OSError as error:
            log.warning("what is known of harmful output cannot be kept", path=str(self._path), error=str(error))


CPU_S = 30
"""CPU seconds of a trial; drawing takes one second at most, so after these the emulator is in an endless loop. With
wall-clock time, a busy machine would look like harmful output."""

TIMEOUT_S = 600.0
"""Seconds of wall-clock time for a trial whose emulator waits for something."""

SEARCH_CPU_S = 2
"""CPU seconds for each trial of the search for the end of the harmful output. They are few: it is acceptable to skip
some harmless bytes."""

SEARCH_TIMEOUT_S = 120.0
"""Seconds for the whole search; then all of the output is skipped, because the agent's screen waits."""

ENDED_MAX = 3
"""Number of trials in a row that may be killed from outside (SIGKILL, as on a machine without memory) or stopped: they
prove nothing about the output. After them the output counts as harmful nevertheless."""

STOPPED_ASKED_S = 1.0
"""Seconds between two checks if a trial was stopped from outside (SIGSTOP): the trials of other agents wait for it."""


async def survives(
    checkpoint: Checkpoint | None, output: bytes, *, cpu_s: int = CPU_S, timeout: float = TIMEOUT_S
) -> bool:
    """Returns True if a trial succeeds: a process draws `checkpoint` and `output`, reads the screen, and resizes it."""
    return await _probe(checkpoint, output, timeout, cpu_s=cpu_s) is not None


async def harm_end(checkpoint: Checkpoint | None, output: bytes) -> int:
    """Returns the number of bytes at the beginning of the harmful `output` that have to be skipped: the rest survives a
    trial. The rest is kept because a program that writes lines does not draw its prompt again."""
    found = await _probe(checkpoint, output, SEARCH_TIMEOUT_S, cpu_s=SEARCH_CPU_S, search=True)
    return int(found) if found else len(output)


async def _probe(checkpoint: Checkpoint | None, output: bytes, timeout: float, **options: int) -> bytes | None:
    """Returns the trial's output; None if it failed. A trial that was killed from outside is repeated."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            for _ in range(ENDED_MAX):
                code, told = await _probe_once(checkpoint, output, **options)
                if code != -signal.SIGKILL:
                    return told if code == 0 else None
    return None


async def _probe_once(checkpoint: Checkpoint | None, output: bytes, **options: int) -> tuple[int | None, bytes]:
    """Runs one trial. Returns the exit code of its process, and the output."""
    drawn = checkpoint.redraw if checkpoint is not None else b""
    size = {"cols": checkpoint.cols, "rows": checkpoint.rows} if checkpoint is not None else {"cols": 80, "rows": 24}
    process = await aio.whole(  # a cancellation while it starts would make asyncio leave its pipe open
        asyncio.create_subprocess_exec(
            *own_python.command("synapsed.terminal.probe"),
            env=own_python.bare_environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE if "search" in options else asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        ),
        undo=_end,
    )
    watch = asyncio.create_task(_end_if_stopped(process))
    header = json.dumps({**size, "drawn": len(drawn), **options}).encode() + b"\n"
    try:
        told, _ = await process.communicate(header + drawn + output)
    finally:
        watch.cancel()
        await aio.whole(_end(process))  # this may be cancelled again: by the next end of a process of screens
    return process.returncode, told or b""


async def _end_if_stopped(process: asyncio.subprocess.Process) -> None:
    """Kills the process if it is stopped from outside: then it counts as killed from outside."""
    with contextlib.suppress(ChildProcessError):  # the process has ended and was reaped
        while process.returncode is None and hasattr(os, "waitid"):
            await asyncio.sleep(STOPPED_ASKED_S)
            if os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT):  # noqa: ASYNC222 - WNOHANG
                process.kill()
                return


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kills the process, and returns when it has ended."""
    if process.returncode is None:
        process.kill()
        await process.wait()
