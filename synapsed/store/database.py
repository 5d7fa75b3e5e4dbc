"""Opens the database file safely, writes to it in groups by one thread, and reads it by another. It does not know the
file's contents.

A third thread copies the write-ahead log back into the file, because that waits for the disk (nothing else does in WAL
mode with `synchronous = NORMAL`), and neither a commit nor a query should wait for it.

Group commit without locks: all bookkeeping happens in the event loop. Writes wait in a queue; one group at a time is
handed to the writer's thread, which runs its jobs in one transaction, and whatever arrived meanwhile is the next group.
So a single write costs one transaction, and many at the same time share one.

If anything in a group fails, the transaction is rolled back and each job runs again in a transaction of its own: the
failing one fails alone. (Savepoints would not do: a full disk makes SQLite roll back the whole transaction by itself.)
So a job may run twice, and must have no effect except on the database.
"""

import asyncio
import os
import sqlite3
import stat
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, Self

from pydantic import BaseModel

from synapsed.errors import StoreError
from synapsed.model.figures import FAST_S, Histogram
from synapsed.store.encoding import Sealer, load_key
from synapsed.store.schema import migrate

WRITES_MAX = 1024
"""Largest number of writes in the queue; further callers wait in `write`, in order, until there is room."""

GROUP_MAX = 256
"""Largest number of writes in one transaction: limits how long the first of them waits for the last."""

BUSY_TIMEOUT = 5000
"""Milliseconds to wait for another process (a person's `sqlite3`, a backup) that holds the lock."""

CHECKPOINT_ROWS = 1000
"""Rows written between two checkpoints: some 10 MB of write-ahead log when each commit is alone."""

WAL_PAGES_MAX = 16_384
"""Pages (of 4 KiB) in the write-ahead log at which the writer itself makes a checkpoint: the limit if writes never
pause long enough for the third thread to reach the end."""

WAL_SIZE_MAX = WAL_PAGES_MAX * 4096
"""Bytes to which the write-ahead log is cut back when it starts over."""

CACHE_SIZE = 4096
"""KiB of pages that a connection keeps."""


@dataclass(frozen=True, slots=True)
class _Write:
    job: Callable[[sqlite3.Connection], Any]
    done: Callable[[Any], None] | None
    future: asyncio.Future[Any]
    durable: bool = False


@dataclass(frozen=True, slots=True)
class _Outcome:
    value: Any = None
    error: Exception | None = None


class Database:
    """One SQLite file. Make it with `open`; every method belongs to the event loop that did."""

    def __init__(self, path: Path, sealer: Sealer) -> None:
        self.sealer = sealer
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._writer = _Worker("store-writer")
        self._reader = _Worker("store-reader")
        self._checkpointer = _Worker("store-checkpoint")
        self._rows_checkpointed = 0
        self._slots = asyncio.Semaphore(WRITES_MAX)
        self._pending: deque[_Write] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False
        self._closed = False
        self.failed: asyncio.Future[str] = self._loop.create_future()
        """Future that is done when nothing can be written any more, because of a defect in this program: memory and
        disk may differ from then on, and the next daemon has to read the database again."""
        self.commits = Histogram(FAST_S)
        """Seconds from the request of a write until it is durable."""
        self.reads = Histogram(FAST_S)
        """Seconds from the request of a read until its answer."""
        self.refusals: Counter[str] = Counter()
        """Writes and reads that failed, by `StoreError.details["reason"]`."""

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Opens the database at `path`, which is created (0600) or brought to the newest schema; the key of its secrets
        is beside it, `*.key`. Callers seal secrets before writing (`sealer`); reading unseals. Raises StoreError."""
        key = await asyncio.to_thread(load_key, path.with_suffix(".key"), path)
        database = cls(path, Sealer(key))
        try:
            await database._run(database._writer, database._open_writer)
            await database._run(database._reader, database._open_reader)
            await database._run(database._checkpointer, database._open_checkpointer)
        except BaseException:
            await database.close()
            raise
        return database

    async def write[T](
        self, job: Callable[[sqlite3.Connection], T], done: Callable[[T], None] | None = None, *, durable: bool = False
    ) -> T:
        """Runs `job` in a transaction, in the order of the calls, and returns its value once that is committed; with
        `durable` also against power failure. `done` is then called with the value, in the event loop, in the same order
        and before any waiter goes on; also if the caller was cancelled, because a write that has begun completes.
        Raises StoreError."""
        self._check(closed=self._draining)
        begin = self._loop.time()
        await self._slots.acquire()
        try:
            self._check(closed=self._draining)
        except StoreError:
            self._slots.release()
            raise
        future: asyncio.Future[T] = self._loop.create_future()
        self._pending.append(_Write(job, done, future, durable))
        if self._idle.is_set():
            self._idle.clear()
            self._loop.call_soon(self._begin_group)  # soon, not now: all writes of this turn of the loop form one group
        with self._measured(self.commits, begin):
            return await future

    async def read[**P, T](
        self, query: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Returns the value of `query`, run in the reader's thread on one snapshot of the data. Raises StoreError."""
        self._check(closed=self._closed)
        with self._measured(self.reads, self._loop.time()):
            return await self._run(self._reader, self._query, lambda connection: query(connection, *args, **kwargs))

    async def models[M: BaseModel](self, kind: type[M], query: str, *values: str) -> list[M]:
        """Returns the rows of `query`, which has one column: the JSON of a model."""

        def select(connection: sqlite3.Connection) -> list[M]:
            return [kind.model_validate_json(data) for (data,) in connection.execute(query, values)]

        return await self.read(select)

    async def rescue(self) -> None:
        """Writes the whole database and its key again to their paths, from which they were removed. Later writes are
        not included: call it once more at the end. Raises StoreError."""
        self._check(closed=self._closed)
        await self._run(self._reader, self._copy)

    async def drain(self) -> None:
        """Refuses writes from now on, and finishes those that were begun, as far as possible."""
        self._draining = True
        await self._idle.wait()

    async def close(self) -> None:
        """Drains, refuses reads too, closes the file. May be called again."""
        await self.drain()
        self._closed = True
        for worker in (self._reader, self._checkpointer, self._writer):
            await worker.close()

    @contextmanager
    def _measured(self, took: Histogram, begin: float) -> Iterator[None]:
        """Notes the duration, or the reason of a failure."""
        try:
            yield
        except StoreError as error:
            self.refusals[str(error.details["reason"])] += 1
            raise
        took.observe(self._loop.time() - begin)

    def size(self) -> int:
        """Returns the bytes of the database and its log on disk. Waits for the disk."""
        files = (self._path, self._path.with_name(f"{self._path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def _check(self, *, closed: bool) -> None:
        if self.failed.done() and not self._closed:
            raise self._failure()
        if closed:
            raise StoreError(f"{self._path}: the store is closed", reason="closed")

    async def _run[**P, T](self, worker: "_Worker", call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._loop.run_in_executor(worker.executor, lambda: call(*args, **kwargs))
        except sqlite3.Error as error:
            raise store_error(error, self._path) from error

    # --- groups: in the event loop -----------------------------------------------------------------------------------

    def _begin_group(self) -> None:
        group = [self._pending.popleft() for _ in range(min(len(self._pending), GROUP_MAX))]

        def tell(future: Future[list[_Outcome]]) -> None:
            self._loop.call_soon_threadsafe(self._end_group, group, future)

        durable = any(write.durable for write in group)
        self._writer.executor.submit(self._group, [write.job for write in group], durable).add_done_callback(tell)

    def _end_group(self, group: Sequence[_Write], ended: Future[list[_Outcome]]) -> None:
        try:
            self._tell_outcomes(group, ended.result())
            if self._pending:
                self._begin_group()
            else:
                self._idle.set()
        except Exception as error:
            self._fail(group, error)
            raise  # the loop logs it with its traceback

    def _tell_outcomes(self, group: Sequence[_Write], outcomes: Sequence[_Outcome]) -> None:
        for write, outcome in zip(group, outcomes, strict=True):
            self._slots.release()
            # The caller of the write goes on first, then those that `done` wakes: they only follow the log.
            if write.future.done():
                pass
            elif outcome.error is None:
                write.future.set_result(outcome.value)
            else:
                write.future.set_exception(outcome.error)
            if outcome.error is None and write.done is not None:
                write.done(outcome.value)

    def _fail(self, group: Sequence[_Write], error: Exception) -> None:
        """Ends all writing: every waiting writer gets the error."""
        self.failed.set_result(f"{self._path}: the store cannot go on: {error!r}")
        for write in (*group, *self._pending):
            if not write.future.done():
                write.future.set_exception(self._failure())
                self._slots.release()
        self._pending.clear()
        self._idle.set()

    def _failure(self) -> StoreError:
        return StoreError(self.failed.result(), reason="failed", path=str(self._path))

    # --- in the writer's thread --------------------------------------------------------------------------------------

    def _group(self, jobs: Sequence[Callable[[sqlite3.Connection], Any]], durable: bool) -> list[_Outcome]:
        if durable:  # the write-ahead log is synced with each commit then
            self._writer.connection.execute("PRAGMA synchronous = FULL")
        outcomes = self._commit_group(jobs)
        if durable:
            self._writer.connection.execute("PRAGMA synchronous = NORMAL")
        rows = self._writer.connection.total_changes
        if rows - self._rows_checkpointed >= CHECKPOINT_ROWS:
            self._rows_checkpointed = rows
            self._checkpointer.executor.submit(self._checkpoint)
        return outcomes

    def _commit_group(self, jobs: Sequence[Callable[[sqlite3.Connection], Any]]) -> list[_Outcome]:
        try:
            return [_Outcome(value) for value in self._transaction(jobs)]
        except Exception as error:  # noqa: BLE001 - an error of a job goes to the caller of that write
            if len(jobs) == 1:
                return [self._failed(error)]
        return [outcome for job in jobs for outcome in self._commit_group([job])]

    def _transaction(self, jobs: Sequence[Callable[[sqlite3.Connection], Any]]) -> list[Any]:
        connection = self._writer.connection
        if connection.in_transaction:  # the disk failed, and the last one could not be rolled back
            connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        try:
            values = [job(connection) for job in jobs]
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk has rolled it back already
                connection.execute("ROLLBACK")
            raise
        return values

    def _failed(self, error: Exception) -> _Outcome:
        if isinstance(error, sqlite3.Error):
            translated = store_error(error, self._path)
            translated.__cause__ = error
            return _Outcome(error=translated)
        if isinstance(error, UnicodeError | OverflowError):  # a text or number that SQLite cannot hold
            return _Outcome(error=StoreError(f"this cannot be kept: {error}", reason="unencodable"))
        return _Outcome(error=error)

    def _open_writer(self) -> None:
        create_private(self._path)
        connection = self._writer.connect(self._path)
        self.sealer.prepare(connection)
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # heeded only while the file is empty
            _switch_to_wal(connection)
            migrate(connection)
        except StoreError as error:
            raise StoreError(f"{self._path}: {error.message}", **error.details, path=str(self._path)) from None
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES_MAX}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_SIZE_MAX}")

    # --- in the reader's thread --------------------------------------------------------------------------------------

    def _open_reader(self) -> None:
        connection = self._reader.connect(self._path)
        self.sealer.prepare(connection)
        connection.execute("PRAGMA query_only = ON")

    def _query[T](self, query: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._reader.connection
        connection.execute("BEGIN")
        try:
            return query(connection)
        finally:
            if connection.in_transaction:
                connection.execute("COMMIT")

    def _copy(self) -> None:
        copy = self._path.with_name(f".{self._path.name}.rescued")
        try:
            copy.unlink(missing_ok=True)
            create_private(copy)
            with closing(sqlite3.connect(copy)) as target:
                self._reader.connection.backup(target)
            for companion in ("-wal", "-shm"):  # companions of a file that is gone
                self._path.with_name(f"{self._path.name}{companion}").unlink(missing_ok=True)
            copy.replace(self._path)
            self.sealer.keep(self._path.with_suffix(".key"))
        except sqlite3.Error as error:
            raise store_error(error, self._path) from error
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror}", reason="io", path=str(self._path)) from error

    # --- in the checkpointer's thread --------------------------------------------------------------------------------

    def _open_checkpointer(self) -> None:
        self._checkpointer.connect(self._path).execute("PRAGMA synchronous = NORMAL")

    def _checkpoint(self) -> None:
        # A failure here comes again at WAL_PAGES_MAX or when the disk is full, where a caller gets the error.
        with suppress(sqlite3.Error):
            self._checkpointer.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


class _Worker:
    """A thread and its connection, which is used nowhere else."""

    def __init__(self, name: str) -> None:
        self.executor = ThreadPoolExecutor(1, name)
        self._connection: sqlite3.Connection | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        assert self._connection is not None, "connected by open()"
        return self._connection

    def connect(self, path: Path) -> sqlite3.Connection:
        """Opens the connection; runs in the thread."""
        self._connection = sqlite3.connect(path, autocommit=True)
        self._connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT}")
        self._connection.execute(f"PRAGMA cache_size = -{CACHE_SIZE}")
        return self._connection

    async def close(self) -> None:
        """Closes the connection after the queued work, and ends the thread."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await asyncio.get_running_loop().run_in_executor(self.executor, connection.close)
        self.executor.shutdown(wait=False)


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(
            "this file system cannot share memory (is it a network's?): put the state directory on a local disk",
            reason="no-wal",
        )


def create_private(path: Path) -> None:
    """Makes sure, before SQLite opens `path`, that it is a file of this user which no other user can read (its `-wal`
    and `-shm` files get the same mode). Environments of agents are in it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", reason="io", path=str(path)) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise StoreError(f"{path} is not a file of this user", reason="foreign", path=str(path))
        if status.st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


_REPAIR = "'synapsectl doctor --repair' saves what can be read of it and of its copies"
_REASONS = {
    sqlite3.SQLITE_FULL: ("full", "the disk is full; nothing was changed, it will go on when there is space"),
    sqlite3.SQLITE_CORRUPT: ("corrupt", f"the database is damaged; {_REPAIR}"),
    sqlite3.SQLITE_NOTADB: ("corrupt", f"this is not a database, or it is damaged; {_REPAIR}"),
    sqlite3.SQLITE_BUSY: ("busy", "another program holds the database"),
    sqlite3.SQLITE_LOCKED: ("busy", "another program holds the database"),
    sqlite3.SQLITE_READONLY: ("readonly", "the database cannot be written"),
    sqlite3.SQLITE_CANTOPEN: ("io", "the database cannot be opened"),
    sqlite3.SQLITE_IOERR: ("io", "the disk failed, or is full"),
    sqlite3.SQLITE_CONSTRAINT: ("constraint", "what was to be stored contradicts what is there"),
}


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the higher bits only refine it
    reason, message = _REASONS.get(primary, ("other", "the database refused"))
    return StoreError(f"{path}: {message} ({error})", reason=reason, path=str(path))
