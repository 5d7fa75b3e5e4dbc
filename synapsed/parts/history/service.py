"""The history as a part of the daemon: one thread that brings it up to the log, one that answers questions.

The event loop only waits for them. Events are indexed a moment later, several together, so that a turn does not share
the interpreter with it; a question starts this at once, and waits for it for a limited time.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

import structlog

from synapsed.aio import cancel_all
from synapsed.errors import Busy, StoreError
from synapsed.interfaces import EVERY_EVENT, EventLog
from synapsed.kernel import Kernel, Running
from synapsed.parts.history.answers import HistoryPage, HistoryStats, UsageReport
from synapsed.parts.history.face import FILE
from synapsed.parts.history.file import discard
from synapsed.parts.history.indexing import Indexer
from synapsed.parts.history.interface import By, History, HistoryFilter
from synapsed.parts.history.searching import Searcher
from synapsed.store.database import store_error

SETTLE_S = 0.5
"""Seconds between an event and its indexing, without a question."""

BEGIN_S = 2.0
"""Seconds before a daemon that has just started indexes older events: its agents come first."""

TIDY_S = 60.0
"""Seconds between two looks for data that retention has removed."""

RETRY_S = 30.0
"""Seconds after a refusal of the disk, or the file, until the next attempt. A question has it made sooner."""

RETRY_ASKED_S = 1.0
"""Least seconds between two attempts, however many questions come."""

FRESH_S = 2.0
"""Seconds that a question waits for the newest events."""

QUESTIONS_MAX = 16
"""Questions that may wait for an answer."""

OFF = (
    "there is no history: it is switched off ('enabled' under [history] of config.toml), or this SQLite has no full "
    "text by trigrams"
)

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

log = structlog.stdlib.get_logger("synapsed.history")


class _HistoryPart(Running):
    def __init__(self, history: "SqliteHistory | None") -> None:
        self.provides = {} if history is None else {History: history}
        self.off = "" if history is not None else OFF


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncGenerator[Running]:
    """Opens the part. There is no file if it is switched off, or if this SQLite has no full text by trigrams."""
    path = kernel.paths.state / FILE
    if not kernel.config.history.enabled:
        await asyncio.to_thread(discard, path)
        yield _HistoryPart(None)
        return
    history = SqliteHistory(kernel.paths.database, path, kernel.store.events)
    try:
        found: SqliteHistory | None = await history.open()
    except StoreError as error:
        log.warning("there is no history", why=error.message)
        found = None
    try:
        yield _HistoryPart(found)
    finally:
        await history.close()


class SqliteHistory:
    """Implements `History`. First call `open`, and at the end `close`."""

    def __init__(self, database: Path, path: Path, events: EventLog) -> None:
        self._path = path
        self._events = events
        self._indexer = Indexer(database, path)
        self._searcher = Searcher(database, path)
        self._writing = ThreadPoolExecutor(1, "history-writer")
        self._reading = ThreadPoolExecutor(1, "history-reader")
        self._asked = asyncio.Event()
        """Set while a question waits for the newest events."""
        self._moved = asyncio.Event()
        self._questions = 0
        self._running: asyncio.Task[None] | None = None

    async def open(self) -> Self:
        """Makes or opens the file, and begins to follow the log. A file that is damaged, or that the disk refuses, does
        not keep the daemon from starting. Raises StoreError if SQLite lacks a needed feature."""
        opened = await self._opened()
        self._running = asyncio.get_running_loop().create_task(self._run(opened=opened))
        return self

    async def close(self) -> None:
        """Finishes the work under way, or gives it up if it is a question. May be called again."""
        self._searcher.interrupt()
        if self._running is not None:
            await cancel_all([self._running])
        for executor, end in ((self._reading, self._searcher.close), (self._writing, self._indexer.close)):
            with suppress(RuntimeError):  # it was closed before
                await asyncio.get_running_loop().run_in_executor(executor, end)
            executor.shutdown(wait=False)

    async def search(self, which: HistoryFilter) -> HistoryPage:
        return await self._ask(lambda: self._searcher.search(self._of_now(which)))

    async def stats(self, which: HistoryFilter) -> HistoryStats:
        return await self._ask(lambda: self._searcher.stats(self._of_now(which)))

    async def usage(self, which: HistoryFilter, by: By) -> UsageReport:
        return await self._ask(lambda: self._searcher.usage(self._of_now(which), by))

    async def knows(self, agent_id: str) -> bool:
        return await self._answer(lambda: self._searcher.knows(agent_id))

    def _of_now(self, which: HistoryFilter) -> HistoryFilter:
        """Returns the filter without data of former agents that had the same ids."""
        agents = [agent for agent in (which.agent_id, which.visible_to) if agent is not None]
        return replace(which, since_event=max(map(self._events.born, agents), default=0))

    async def _ask[T: (HistoryPage, HistoryStats, UsageReport)](self, question: Callable[[], T]) -> T:
        newest = self._events.last_id
        complete = await self._fresh(newest)
        answer = await self._answer(question)
        return answer if complete else answer.model_copy(update={"complete": False})

    async def _fresh(self, newest: int) -> bool:
        """Returns True if everything up to event `newest` is in the history, after a short wait."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FRESH_S):
                while self._indexer.cursor < newest:
                    self._moved.clear()
                    self._asked.set()
                    await self._moved.wait()
        return self._indexer.cursor >= newest

    async def _answer[T](self, question: Callable[[], T]) -> T:
        if self._questions >= QUESTIONS_MAX:
            raise Busy(f"{QUESTIONS_MAX} questions to the history wait for their answers: ask again later")
        self._questions += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._reading, question)
        except sqlite3.Error as error:
            with suppress(RuntimeError):
                await asyncio.get_running_loop().run_in_executor(self._reading, self._searcher.close)
            raise store_error(error, self._path) from error
        except RuntimeError as error:  # the executor's
            raise StoreError(f"{self._path}: the history is closed", reason="closed") from error
        finally:
            self._questions -= 1

    # --- following the log ---

    async def _run(self, *, opened: bool) -> None:
        """Runs until it is cancelled, or the store is closed."""
        await self._pause(BEGIN_S)
        while True:
            try:
                if not opened and not (opened := await self._opened()):
                    await self._retry_later()
                    continue
                await self._catch_up()
            except (sqlite3.Error, OSError, StoreError) as error:
                log.warning("the history stays behind for now", error=str(error))
                opened = False
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
                    await self._discard()
                await self._retry_later()
                continue
            except Exception:  # a defect: the history is tried again, and does not end without a word
                log.exception("the history stays behind for now")
                opened = False
                await self._retry_later()
                continue
            if not await self._wait_for_work():
                return

    async def _catch_up(self) -> None:
        more = True
        while more:
            begin = time.monotonic()
            more = await self._in_writer(self._indexer.step)
            self._moved.set()
            if not more:
                self._asked.clear()
                more = await self._in_writer(self._indexer.tidy)
            if more:  # half of the time is left to other threads
                await self._pause(time.monotonic() - begin)

    async def _wait_for_work(self) -> bool:
        """Waits until there is work; returns False once the store is closed."""
        try:
            async with asyncio.timeout(TIDY_S):
                if await self._events.changed(self._indexer.cursor, EVERY_EVENT) is None:
                    return False
        except TimeoutError:
            return True
        await self._pause(SETTLE_S)
        return True

    async def _opened(self) -> bool:
        """Returns True if the file could be opened. Raises StoreError if SQLite lacks a needed feature."""
        try:
            await self._in_writer(self._indexer.open)
        except (sqlite3.Error, OSError, StoreError) as error:
            if isinstance(error, StoreError) and error.details.get("reason") == "no-fts":
                raise
            log.warning("the history cannot be opened", error=str(error))
            damaged = isinstance(error, StoreError) and error.details.get("reason") == "corrupt"
            if not damaged and getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
                return False
            await self._discard()
            return False
        await asyncio.get_running_loop().run_in_executor(self._reading, self._searcher.close)
        return True

    async def _discard(self) -> None:
        """Discards a damaged file, which is made again."""
        log.warning("the history is damaged and is made again", path=str(self._path))
        await self._in_writer(self._indexer.close)
        with suppress(OSError):
            await asyncio.to_thread(discard, self._path)
        await asyncio.get_running_loop().run_in_executor(self._reading, self._searcher.close)

    async def _in_writer[T](self, act: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._writing, act)

    async def _retry_later(self) -> None:
        """Waits RETRY_S, or until a question comes. The next attempt is for all questions so far; one that comes while
        it is under way has another."""
        await asyncio.sleep(RETRY_ASKED_S)
        await self._pause(RETRY_S)
        self._asked.clear()

    async def _pause(self, seconds: float) -> None:
        """Waits so many seconds, or until a question comes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._asked.wait()
