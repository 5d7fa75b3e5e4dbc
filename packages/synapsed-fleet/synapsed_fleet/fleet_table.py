"""Reads and writes the fleet's rows in the database.

Rows that belong together are written in one transaction with their task: a task that another host has sent, with its id
there, so that the message is never taken twice; each change of such a task, with the update that is due to that host; a
task for another host, with the row that sends it. All of it survives a power failure.
"""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from synapsed.aio import at_once
from synapsed.interfaces import NewEvent, ReplyRecord, Seal, Store
from synapsed.model.task import Task
from synapsed_fleet.fleet_rows import (
    FleetChange,
    FleetOrigin,
    InRow,
    OutRow,
    Quarantined,
    WorkCandidate,
    update_row,
)

TAKEN_KEPT: Final = 1_000_000
"""Ids of taken messages without a task that are kept: a message that comes again after so many others counts as new."""
DUE_LOOKED_AT: Final = 11_000
"""Rows among which `due` chooses: more than there can be to one host (`outbox.OPEN_MAX`)."""
QUARANTINE_KEPT: Final = 1000
QUARANTINE_TEXT: Final = 2000
"""Characters of a quarantined message's headers that are kept; its body is not kept."""

_PUT: Final = "id, dst, kind, task_id, n, body, state, stream, seq, attempt"
_OUT: Final = f"{_PUT}, at"


def rows_of_task(task: Task) -> Callable[[sqlite3.Connection, bool], None] | None:
    """Returns a function that records, with a task of another host, that it is taken, or that an update to that host is
    due. The function raises IntegrityError if that host's id was taken before. None for a task that no other host has
    sent."""
    if (origin := FleetOrigin.of(task.metadata)) is None:
        return None
    task_id = task.id

    def put(connection: sqlite3.Connection, new: bool) -> None:
        if new:
            connection.execute(
                "INSERT INTO fleet_in (src, id, kind, n, task_id, receipted) VALUES (?, ?, 'msg', 0, ?, 0)",
                (*origin, task_id),
            )
        else:
            owe_update(connection, origin, task_id)

    return put


def owe_update(connection: sqlite3.Connection, origin: FleetOrigin, task_id: str) -> bool:
    """Makes an update with the task's present state due to its host. Returns False if that host's task is not known."""
    found = connection.execute(
        "UPDATE fleet_in SET n = n + 1 WHERE src = ? AND id = ? AND task_id = ? RETURNING n", (*origin, task_id)
    ).fetchall()
    for (n,) in found:
        connection.execute(
            "INSERT OR REPLACE INTO fleet_out (id, dst, kind, task_id, n, state, attempt) "
            "VALUES (?, ?, 'upd', ?, ?, 'new', 0)",
            (update_row(origin), origin.src, task_id, n),
        )
    return bool(found)


def apply(connection: sqlite3.Connection, change: FleetChange, seal: Seal) -> None:
    """Writes the change in the open transaction."""
    for row in change.put:
        body = None if row.body is None else seal(row.body)
        connection.execute(
            f"INSERT OR REPLACE INTO fleet_out ({_PUT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
            (row.id, row.dst, row.kind, row.task_id, row.n, body, row.state, row.stream, row.seq, row.attempt),
        )
    connection.executemany("DELETE FROM fleet_out WHERE id = ? AND n <= ? AND dst = ?", change.closed)
    connection.executemany("DELETE FROM fleet_out WHERE task_id = ?", [(task_id,) for task_id in change.given_up])
    for taken in change.taken:
        connection.execute(
            "INSERT INTO fleet_in (src, id, kind, n, task_id, refused, receipted) VALUES (?, ?, ?, ?, ?, ?, 0) "
            "ON CONFLICT (src, id) DO UPDATE SET n = max(n, excluded.n), receipted = 0, "
            "refused = coalesce(refused, excluded.refused)",
            (taken.src, taken.id, taken.kind, taken.n, taken.task_id, taken.refused),
        )
    for work in change.candidates:
        connection.execute(
            "INSERT OR REPLACE INTO fleet_work (src, id, class, round, body) VALUES (?, ?, ?, ?, ?)",
            (work.src, work.id, work.cls, work.round, seal(work.body)),
        )
    connection.executemany("DELETE FROM fleet_work WHERE src = ? AND id = ?", change.decided)


class FleetTable:
    """The fleet's rows. Every method may raise StoreError; a write completes even if the caller is cancelled. Make it
    before any task is put: from then on each task of another host is written with its rows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.on_owed: Callable[[], None] | None = None
        """Called when something may be due to other hosts: tasks of theirs, or for them, have changed."""
        store.with_tasks(rows_of_task, durable=True, after=self._owed)

    async def commit(
        self,
        task: Task,
        change: FleetChange,
        *,
        events: Sequence[NewEvent] = (),
        turn_ended: str | None = None,
        reply: ReplyRecord | None = None,
    ) -> None:
        """Writes the task, with the rows that change with it."""

        async def write() -> None:
            await self._store.commit(
                events=events,
                tasks=[task],
                turn_ended=turn_ended,
                reply=reply,
                also=[lambda connection, seal: apply(connection, change, seal)],
                durable=True,
            )
            self._owed()

        await asyncio.shield(at_once(write()))

    async def change(self, change: FleetChange) -> None:
        """Writes the change without a task."""
        await self._store.commit(also=[lambda connection, seal: apply(connection, change, seal)], durable=True)

    def _owed(self) -> None:
        if self.on_owed is not None:
            self.on_owed()

    async def _write(self, job: Callable[[sqlite3.Connection], object]) -> None:
        await self._store.commit(also=[lambda connection, _: job(connection)])

    # --- what is under way ---

    async def due(self, limit: int, *, without: Iterable[str] = ()) -> list[OutRow]:
        """Returns at most `limit` rows that are to be published, without those to the hosts `without`. It takes the
        oldest of each kind to each host, then the next of each, so that many rows to one host do not delay the
        others."""
        hosts = json.dumps(list(without))
        query = (
            f"SELECT {_OUT} FROM fleet_out WHERE seq_no IN (SELECT seq_no FROM "  # noqa: S608 - a constant
            "(SELECT seq_no, row_number() OVER (PARTITION BY dst, kind ORDER BY seq_no) AS turn FROM "
            "(SELECT seq_no, dst, kind FROM fleet_out WHERE state = 'new' "
            f"AND dst NOT IN (SELECT value FROM json_each(?)) ORDER BY seq_no LIMIT {DUE_LOOKED_AT})) "
            "ORDER BY turn, seq_no LIMIT ?) ORDER BY seq_no"
        )
        return await self._store.read(lambda connection: _rows(connection.execute(query, (hosts, limit))))

    async def piped(self, rows: Sequence[OutRow]) -> None:
        """Notes that the broker has these rows as they were published; a row that was changed meanwhile is published
        again."""

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "UPDATE fleet_out SET state = 'piped', stream = ?, seq = ?, attempt = ? WHERE id = ? AND n = ?",
                [(row.stream, row.seq, row.attempt, row.id, row.n) for row in rows],
            )

        await self._write(write)

    async def open_rows(self, *, state: str | None = None, dst: str | None = None, limit: int = 10_000) -> list[OutRow]:
        """Returns rows that no receipt has closed, oldest first."""
        query = (
            f"SELECT {_OUT} FROM fleet_out WHERE (? IS NULL OR state = ?) AND (? IS NULL OR dst = ?) "  # noqa: S608
            "ORDER BY seq_no LIMIT ?"
        )
        values = (state, state, dst, dst, limit)
        return await self._store.read(lambda connection: _rows(connection.execute(query, values)))

    async def again(self, rows: Sequence[OutRow]) -> None:
        """Marks rows that the broker may have lost for another publication."""

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "UPDATE fleet_out SET state = 'new' WHERE id = ? AND n = ? AND state = 'piped'",
                [(row.id, row.n) for row in rows],
            )

        await self._write(write)

    async def row(self, row_id: str) -> OutRow | None:
        query = f"SELECT {_OUT} FROM fleet_out WHERE id = ?"  # noqa: S608 - a constant
        found = await self._store.read(lambda connection: _rows(connection.execute(query, (row_id,))))
        return found[0] if found else None

    async def over(self) -> list[OutRow]:
        """Returns messages of tasks that have ended: the part would have closed these rows, but was disabled."""
        query = (
            f"SELECT {_OUT} FROM fleet_out WHERE kind IN ('msg', 'work') "  # noqa: S608 - a constant
            "AND task_id IN (SELECT id FROM tasks WHERE open = 0) ORDER BY seq_no"
        )
        return await self._store.read(lambda connection: _rows(connection.execute(query)))

    async def oldest(self) -> float | None:
        """Returns the time since which the oldest row is open, in seconds since the epoch."""
        (found,) = await self._store.read(
            lambda connection: connection.execute("SELECT min(at) FROM fleet_out").fetchone()
        )
        return None if found is None else float(found)

    async def counts(self) -> dict[str, dict[str, int]]:
        """Returns the numbers of open rows, by host and state."""

        def query(connection: sqlite3.Connection) -> dict[str, dict[str, int]]:
            found: dict[str, dict[str, int]] = {}
            for dst, state, count in connection.execute("SELECT dst, state, count(*) FROM fleet_out GROUP BY 1, 2"):
                found.setdefault(dst, {})[state] = count
            return found

        return await self._store.read(query)

    # --- what has come ---

    async def taken(self, src: str, id_: str) -> InRow | None:
        """Returns the row of the message if the message came before, else None."""
        found = await self._store.read(
            lambda connection: connection.execute(
                "SELECT src, id, kind, n, task_id, refused FROM fleet_in WHERE src = ? AND id = ?", (src, id_)
            ).fetchone()
        )
        if found is None:
            return None
        return InRow(src=found[0], id=found[1], kind=found[2], n=found[3], task_id=found[4], refused=found[5])

    async def owed(self, limit: int) -> list[InRow]:
        """Returns rows whose receipt is due."""
        found = await self._store.read(
            lambda connection: connection.execute(
                "SELECT src, id, kind, n, task_id, refused FROM fleet_in WHERE receipted = 0 LIMIT ?", (limit,)
            ).fetchall()
        )
        return [InRow(src=r[0], id=r[1], kind=r[2], n=r[3], task_id=r[4], refused=r[5]) for r in found]

    async def owe(self, src: str, id_: str) -> None:
        """Makes the receipt of a message due again, since the message came again: its receipt was lost, or not sent
        yet."""
        await self._write(
            lambda connection: connection.execute(
                "UPDATE fleet_in SET receipted = 0 WHERE src = ? AND id = ?", (src, id_)
            )
        )

    async def receipted(self, rows: Sequence[InRow]) -> None:
        """Notes that the broker has the receipts of these rows; for an update, only if `n` is still the same."""

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "UPDATE fleet_in SET receipted = 1 WHERE src = ? AND id = ? AND (kind <> 'upd' OR n = ?)",
                [(row.src, row.id, row.n) for row in rows],
            )

        await self._write(write)

    async def tell_again(self, src: str, ids: Sequence[str]) -> list[str]:
        """Makes an update, or the receipt, of each of these tasks due again, because the host `src` asks for them.
        Returns the ids that are not known here."""

        unknown: list[str] = []

        def write(connection: sqlite3.Connection, _: Seal) -> None:
            unknown[:] = [id_ for id_ in ids if not _tell(connection, FleetOrigin(src, id_))]

        await self._store.commit(also=[write], durable=True)
        return unknown

    async def forget_taken(self) -> None:
        """Removes the oldest ids whose tasks are gone, beyond TAKEN_KEPT."""
        await self._write(
            lambda connection: connection.execute(
                "DELETE FROM fleet_in WHERE seq_no <= (SELECT max(seq_no) FROM fleet_in) - ? AND receipted = 1 "
                "AND (task_id IS NULL OR task_id NOT IN (SELECT id FROM tasks))",
                (TAKEN_KEPT,),
            )
        )

    # --- work for any ---

    async def candidates(self) -> list[WorkCandidate]:
        found = await self._store.read(
            lambda connection: connection.execute("SELECT src, id, class, round, body FROM fleet_work").fetchall()
        )
        return [WorkCandidate(src=r[0], id=r[1], cls=r[2], round=r[3], body=r[4]) for r in found]

    # --- cursors, peers, quarantine ---

    async def cursor(self, name: str) -> int | None:
        found = await self._store.read(
            lambda connection: connection.execute("SELECT cursor FROM fleet_pub WHERE name = ?", (name,)).fetchone()
        )
        return None if found is None else int(found[0])

    async def keep_cursor(self, name: str, cursor: int) -> None:
        await self._write(
            lambda connection: connection.execute("INSERT OR REPLACE INTO fleet_pub VALUES (?, ?)", (name, cursor))
        )

    async def peers(self) -> dict[str, str]:
        """Returns the hosts whose certificates are known, each with its certificate."""
        found = await self._store.read(
            lambda connection: connection.execute("SELECT host, jwt FROM fleet_peer").fetchall()
        )
        return dict(found)

    async def keep_peer(self, host: str, jwt: str) -> None:
        await self._write(
            lambda connection: connection.execute("INSERT OR REPLACE INTO fleet_peer VALUES (?, ?)", (host, jwt))
        )

    async def quarantine(self, what: Quarantined) -> None:
        def write(connection: sqlite3.Connection) -> None:
            done = connection.execute(
                "INSERT INTO fleet_quarantine (at, subject, reason, headers, size) VALUES (?, ?, ?, ?, ?)",
                (what.at, what.subject[:300], what.reason, what.headers[:QUARANTINE_TEXT], what.size),
            )
            assert done.lastrowid is not None
            connection.execute("DELETE FROM fleet_quarantine WHERE seq_no <= ?", (done.lastrowid - QUARANTINE_KEPT,))

        await self._write(write)

    async def quarantined(self) -> list[Quarantined]:
        """Returns the quarantined messages, newest first."""
        found: list[Any] = await self._store.read(
            lambda connection: connection.execute(
                "SELECT at, subject, reason, headers, size FROM fleet_quarantine ORDER BY seq_no DESC"
            ).fetchall()
        )
        return [Quarantined(at=r[0], subject=r[1], reason=r[2], headers=r[3], size=r[4]) for r in found]


def _tell(connection: sqlite3.Connection, origin: FleetOrigin) -> bool:
    row = connection.execute("SELECT task_id, refused FROM fleet_in WHERE src = ? AND id = ?", origin).fetchone()
    if row is None:
        return False
    if row[1] is not None:
        connection.execute("UPDATE fleet_in SET receipted = 0 WHERE src = ? AND id = ?", origin)
        return True
    known = connection.execute("SELECT 1 FROM tasks WHERE id = ?", (row[0],)).fetchone()
    return known is not None and owe_update(connection, origin, row[0])


def _rows(cursor: sqlite3.Cursor) -> list[OutRow]:
    return [
        OutRow(
            id=r[0],
            dst=r[1],
            kind=r[2],
            task_id=r[3],
            n=r[4],
            body=r[5],
            state=r[6],
            stream=r[7],
            seq=r[8],
            attempt=r[9],
            at=r[10],
        )
        for r in cursor
    ]
