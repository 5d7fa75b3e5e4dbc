"""The tables of schedules, and of occurrences: the times for which a message was sent.

The row of an occurrence is written in the transaction that makes its task, and is not removed with the task: so there
is no second task, even if the clock is set back later.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import NamedTuple

import structlog
from pydantic import ValidationError

from synapsed.interfaces import NewEvent, Seal, Store
from synapsed.model.task import Task
from synapsed.parts.schedules.schedule import SCHEDULED, Occurrence, Schedule, ScheduleState

OCCURRENCES_KEPT = 100_000
"""Occurrences that are remembered, over all schedules: the newest, by the order of their messages, not by the clock."""

log = structlog.stdlib.get_logger("synapsed.parts.schedules")


class _Key(NamedTuple):
    schedule: str
    at: str


def _key(told: object) -> _Key | None:
    """Returns the occurrence in a task's metadata; None if it was not sent at one of the schedule's times."""
    schedule, at = (told.get("schedule"), told.get("at")) if isinstance(told, dict) else (None, None)
    return _Key(schedule, at) if isinstance(schedule, str) and isinstance(at, str) else None


def occurrence_of(task: Task) -> Callable[[sqlite3.Connection, bool], None] | None:
    """Returns the function that records the occurrence's task, in the transaction that makes that task, and raises
    IntegrityError if the occurrence has a task already; None for a task without an occurrence."""
    if (key := _key(task.metadata.get(SCHEDULED))) is None:
        return None
    task_id = task.id

    def put(connection: sqlite3.Connection, new: bool) -> None:
        if new:
            done = connection.execute(
                "INSERT INTO occurrences (schedule, at, task_id) VALUES (?, ?, ?)", (*key, task_id)
            )
            assert done.lastrowid is not None
            connection.execute("DELETE FROM occurrences WHERE seq <= ?", (done.lastrowid - OCCURRENCES_KEPT,))

    return put


class ScheduleTable:
    """The tables in the database. Every method may raise StoreError; a write completes even if the caller is
    cancelled."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def schedules(self) -> dict[str, tuple[Schedule | None, ScheduleState]]:
        """Returns schedules by id; for those of the configuration only their progress. One that cannot be read any
        more, for example because its time zone is gone from the machine's database, is left out and logged."""
        rows = await self._store.read(
            lambda connection: connection.execute("SELECT id, data, state FROM schedules ORDER BY id").fetchall()
        )
        found: dict[str, tuple[Schedule | None, ScheduleState]] = {}
        for schedule_id, data, state in rows:
            try:
                schedule = None if data is None else Schedule.model_validate_json(data)
                found[schedule_id] = schedule, ScheduleState.model_validate_json(state)
            except ValidationError as error:
                why = "; ".join(one["msg"] for one in error.errors(include_url=False, include_input=False))
                log.error("a schedule cannot be read: it sends nothing", schedule=schedule_id, why=why)  # noqa: TRY400
        return found

    async def keep(
        self,
        schedule_id: str,
        state: ScheduleState,
        *,
        schedule: Schedule | None = None,
        told: Occurrence | None = None,
        events: Sequence[NewEvent] = (),
    ) -> None:
        """Stores the progress, with its reports, and that the occurrence `told` is reported; `schedule` is given for a
        new one."""
        data = None if schedule is None else schedule.model_dump_json()
        how_far = state.model_dump_json()
        key = None if told is None else _key(told.metadata())

        def put(connection: sqlite3.Connection, seal: Seal) -> None:
            connection.execute(
                "INSERT INTO schedules (id, data, state) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                "data = coalesce(excluded.data, data), state = excluded.state",
                (schedule_id, None if data is None else seal(data), seal(how_far)),
            )
            if key is not None:
                connection.execute("UPDATE occurrences SET told = 1 WHERE schedule = ? AND at = ?", key)

        await self._store.commit(events=events, also=[put])

    async def remove(self, schedule_id: str) -> None:
        """Removes a schedule; does nothing for an unknown one. The rows of its occurrences stay."""

        def remove(connection: sqlite3.Connection, _: Seal) -> None:
            connection.execute("DELETE FROM schedules WHERE id = ?", (schedule_id,))

        await self._store.commit(also=[remove])

    async def task_of(self, occurrence: Occurrence) -> tuple[str, bool] | None:
        """Returns the id of its task, and True if it was reported; None if no task was made."""
        key = _key(occurrence.metadata())
        assert key is not None

        def select(connection: sqlite3.Connection) -> tuple[str, bool] | None:
            query = "SELECT task_id, told FROM occurrences WHERE schedule = ? AND at = ?"
            found = connection.execute(query, key).fetchone()
            return None if found is None else (str(found[0]), bool(found[1]))

        return await self._store.read(select)
