"""Reads the version of a program that is about to run, from its package, or else by running the program once for each
version of its file.

The answer is kept by the program's resolved path, with the file's time and size, so that later starts need not wait. A
program is run for this only if its profile says how, with the same environment with which it will be started. If it
does not answer in time, the version is unknown, and the next start asks again.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from synapsed.profiles.releases import package_version
from synapsed.profiles.variants import VersionCheck
from synapsed.shared.files import write_whole

ANSWER_S = 10.0
"""Seconds for the program's answer: some programs start a runtime of their own, perhaps on a busy machine."""

ENDED_S = 1.0
"""Seconds to wait until killed processes are gone."""

PRINTED_MAX = 4096
"""Largest number of bytes of the answer that are read."""

KNOWN_MAX = 256
"""Number of programs whose versions are kept."""

VERSION_MAX = 64

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Identity:
    """One state of a program's file."""

    path: str
    mtime_ns: int
    size: int

    @classmethod
    def of(cls, program: str) -> "_Identity | None":
        try:
            path = os.path.realpath(program)
            found = Path(path).stat()
        except OSError:
            return None
        return cls(path, found.st_mtime_ns, found.st_size)


class VersionReader:
    """Reads versions. `file` keeps the answers for the next daemon; if it cannot be read, programs are asked again."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[_Identity, str | None] = {}
        self._loading: asyncio.Task[None] | None = None
        self._asking: dict[_Identity, asyncio.Task[str | None]] = {}

    async def read(self, check: VersionCheck, program: str, *, env: Mapping[str, str], cwd: str) -> str | None:
        """Returns the version of `program`; None if it reports none in time."""
        identity = await asyncio.to_thread(_Identity.of, program)
        if identity is None:
            return None
        # The package is read each time: the files of npm's packages have the same time in every version.
        if (packaged := await asyncio.to_thread(package_version, program)) is not None:
            return packaged[:VERSION_MAX]
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
        await asyncio.shield(self._loading)
        if identity in self._known:
            return self._known[identity]
        if (asking := self._asking.get(identity)) is None:
            asking = asyncio.create_task(self._ask(identity, check, [program, *check.args], env, cwd))
            self._asking[identity] = asking
            asking.add_done_callback(lambda _: self._asking.pop(identity, None))
        return await asyncio.shield(asking)

    async def _load(self) -> None:
        self._known = await asyncio.to_thread(_load, self._file)

    async def _ask(
        self, identity: _Identity, check: VersionCheck, argv: list[str], env: Mapping[str, str], cwd: str
    ) -> str | None:
        printed = await _printed(argv, env, cwd)
        if printed is None:
            log.info("version not told", program=identity.path)
            return None
        found = check.find(printed)
        version = found[:VERSION_MAX] if found else None
        log.info("version read", program=identity.path, version=version)
        self._known[identity] = version
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]
        rows = [[each.path, each.mtime_ns, each.size, told] for each, told in self._known.items() if told is not None]
        with contextlib.suppress(OSError):  # the next daemon asks again
            await asyncio.to_thread(write_whole, self._file, json.dumps(rows).encode(), durable=False)
        return version


def _load(file: Path) -> dict[_Identity, str | None]:
    try:
        rows: Any = json.loads(file.read_bytes())
        return {_Identity(str(path), int(mtime), int(size)): str(told) for path, mtime, size, told in rows[-KNOWN_MAX:]}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


async def _printed(argv: list[str], env: Mapping[str, str], cwd: str) -> str | None:
    """Returns the program's output, of both streams; None if it cannot be started, or takes longer than `ANSWER_S`.
    Finally kills the program and the processes of its group."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=dict(env),
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            limit=PRINTED_MAX,
        )
    except OSError:  # for the lack of a descriptor, perhaps: the next start asks again
        return None
    assert process.stdout is not None
    printed = b""
    try:
        async with asyncio.timeout(ANSWER_S):
            while len(printed) < PRINTED_MAX and (piece := await process.stdout.read(PRINTED_MAX - len(printed))):
                printed += piece
    except TimeoutError:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):  # processes that have left its session may hold the pipe
            await asyncio.wait_for(process.communicate(), ENDED_S)
    return printed.decode(errors="replace")
