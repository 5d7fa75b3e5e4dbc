"""Push notification configs: rows of the database that are deleted with their task. Their credentials are stored
encrypted; the file has mode 0600."""

import sqlite3

from synapsed.interfaces import Seal, Store
from synapsed.parts.a2a.push.push_record import PushRecord


class PushTable:
    """The table of the configs. Every method may raise StoreError; a change that has begun completes even if the caller
    is cancelled."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, record: PushRecord) -> None:
        """Adds the record, or replaces the one with its id. The task must be known."""
        data, active = record.model_dump_json(), record.state == "active"

        def write(connection: sqlite3.Connection, seal: Seal) -> None:
            connection.execute(
                "INSERT INTO pushes (task_id, id, active, data) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (task_id, id) DO UPDATE SET active = excluded.active, data = excluded.data",
                (record.task_id, record.id, active, seal(data)),
            )

        await self._store.commit(also=[write])

    async def update(self, record: PushRecord) -> bool:
        """Replaces the record; returns False if it does not exist any more."""
        data, active = record.model_dump_json(), record.state == "active"

        there = False

        def write(connection: sqlite3.Connection, seal: Seal) -> None:
            nonlocal there
            done = connection.execute(
                "UPDATE pushes SET active = ?, data = ? WHERE task_id = ? AND id = ?",
                (active, seal(data), record.task_id, record.id),
            )
            there = done.rowcount > 0

        await self._store.commit(also=[write])
        return there

    async def delete(self, task_id: str, push_id: str) -> None:
        """Deletes a config; does nothing if there is no such config."""

        def write(connection: sqlite3.Connection, _: Seal) -> None:
            connection.execute("DELETE FROM pushes WHERE task_id = ? AND id = ?", (task_id, push_id))

        await self._store.commit(also=[write])

    async def of_task(self, task_id: str) -> list[PushRecord]:
        """Returns the configs of a task in the order in which they were first put."""
        return await self._records("SELECT data FROM pushes WHERE task_id = ? ORDER BY seq", task_id)

    async def active(self) -> list[PushRecord]:
        """Returns the configs whose receivers have not got everything yet."""
        return await self._records("SELECT data FROM pushes WHERE active = 1 ORDER BY seq")

    async def _records(self, query: str, *values: str) -> list[PushRecord]:
        return await self._store.read(
            lambda connection: [PushRecord.model_validate_json(data) for (data,) in connection.execute(query, values)]
        )
