"""Log of actions that type something (answers, keys), by the idempotency keys of their callers, in its own file:
nothing is typed twice even if the process is killed at any moment.

Each state is appended as a line of JSON: `begun` before the action, `done` with the answer, or `not` if nothing was
done. The result of an action that is only `begun` is unknown. At most KEPT actions are kept, for KEPT_S at most; the
file is rewritten when it has four times as many lines. Incomplete lines are ignored.
"""

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from synapsed.clock import Clock, began
from synapsed.errors import ConfigError, StoreError
from synapsed.shared.files import read_private, write_private

KEPT: Final = 1000
KEPT_S: Final = 86_400.0
LINES_MAX: Final = 4 * KEPT
LINE_MAX: Final = 4096
"""Bytes of a line; an answer that would make a longer one is kept in memory only."""

FILE_MAX: Final = (LINES_MAX + 1) * LINE_MAX

log = structlog.stdlib.get_logger("synapsed.store")


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    key: str
    state: Literal["begun", "done", "not"]
    at: float
    body: str | None = None
    answer: dict[str, Any] | None = None

    def written(self) -> bytes:
        return self.model_dump_json(exclude_none=True).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Act:
    """An action, as it was begun under a key."""

    at: float
    """Seconds since the epoch."""
    began: float
    """The same moment by the boot clock."""
    body: str | None
    """Digest of the request; None if an older program wrote none."""
    answer: dict[str, Any] | None
    """None: it was begun, and its result is unknown."""


class ActLog:
    """Keeps the actions for a day. The file has times of the wall clock, which hold over a restart. While the process
    runs, the boot clock decides, so that setting the clock makes no action older."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._acts: dict[str, Act] | None = None
        """The oldest first; None: not read yet."""
        self._lines = 0
        self._writing = asyncio.Lock()

    async def get(self, key: str) -> Act | None:
        acts = await self._known()
        act = acts.get(key)
        return act if act is not None and self._clock.boot() - act.began < KEPT_S else None

    async def begin(self, key: str, body: str | None = None) -> None:
        """Records the beginning of an action, with a digest of its request. Raises StoreError: then do not act."""
        acts = await self._known()
        async with self._writing:
            acts.pop(key, None)
            acts[key] = Act(self._clock.wall(), self._clock.boot(), body, None)
            while len(acts) > KEPT:
                del acts[next(iter(acts))]
            try:
                await self._append(_Line(key=key, state="begun", at=acts[key].at, body=body))
            except BaseException:
                del acts[key]
                raise

    async def done(self, key: str, answer: dict[str, Any]) -> None:
        """Records that the action is done, in memory if the file cannot be written: then a kill loses the result."""
        await self._ended(key, _Line(key=key, state="done", at=self._clock.wall(), answer=answer))

    async def undone(self, key: str) -> None:
        """Records that nothing was done: the action may be tried again."""
        await self._ended(key, _Line(key=key, state="not", at=self._clock.wall()))

    async def _ended(self, key: str, line: _Line) -> None:
        acts = await self._known()
        async with self._writing:
            begun = acts.pop(key, None)
            if line.answer is not None:
                line = line.model_copy(update={"body": begun.body if begun is not None else None})
                acts[key] = Act(line.at, self._clock.boot(), line.body, line.answer)
            try:
                await self._append(line)
            except StoreError as error:
                log.warning("what was done under a key is not written down", error=error.message)

    async def _append(self, line: _Line) -> None:
        """Appends the line. Call it with the lock held."""
        raw = line.written()
        if len(raw) > LINE_MAX:
            return
        if self._lines >= LINES_MAX:
            await self._write_anew()
        await asyncio.to_thread(_append, self._path, raw)
        self._lines += 1

    async def _write_anew(self) -> None:
        acts = self._acts or {}
        lines = [_line(key, act) for key, act in acts.items()]
        await asyncio.to_thread(write_private, self._path, b"".join(lines))
        self._lines = len(lines)

    async def _known(self) -> dict[str, Act]:
        async with self._writing:
            if self._acts is None:
                lines = await asyncio.to_thread(_read, self._path)
                self._acts, self._lines = _folded(lines, self._clock), len(lines)
            return self._acts


def _line(key: str, act: Act) -> bytes:
    """Returns the line of an action in the file that is rewritten. An answer that is kept in memory only is left out,
    as it was before: of such an action the file has the beginning."""
    begun = _Line(key=key, state="begun", at=act.at, body=act.body)
    if act.answer is None:
        return begun.written()
    raw = begun.model_copy(update={"state": "done", "answer": act.answer}).written()
    return raw if len(raw) <= LINE_MAX else begun.written()


def _append(path: Path, raw: bytes) -> None:
    """Appends in one piece: a reader finds the line, or its beginning at the file's end. Raises StoreError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(handle).st_size
            written = os.write(handle, raw)
            if written != len(raw):  # the disk is full: the next line must not be joined to this piece
                os.ftruncate(handle, size)
                raise OSError(28, "No space left on device")
        finally:
            os.close(handle)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}", file=str(path)) from error


def _read(path: Path) -> list[_Line]:
    """Reads the file. Raises StoreError if other users can read or write it: they could fake results."""
    try:
        raw = read_private(path, limit=FILE_MAX)
    except FileNotFoundError:
        return []
    except ConfigError as error:
        raise StoreError(error.message, file=str(path)) from error
    found = []
    for line in raw.splitlines():
        try:
            found.append(_Line.model_validate(json.loads(line)))
        except (ValidationError, ValueError):
            continue
    if raw and not raw.endswith(b"\n"):
        _append(path, b"\n")
    return found


def _folded(lines: list[_Line], clock: Clock) -> dict[str, Act]:
    acts: dict[str, Act] = {}
    for line in lines:
        acts.pop(line.key, None)
        if line.state != "not":
            answer = line.answer if line.state == "done" else None
            acts[line.key] = Act(line.at, began(clock, line.at), line.body, answer)
    for key in list(acts)[:-KEPT]:
        del acts[key]
    return acts
