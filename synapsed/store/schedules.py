"""Schedules, and which of their times have had their message.

The row of an occurrence is written in the transaction that makes its task, and never goes with the task: whatever
clocks show later, and whoever asks, there is no second one.
"""

import sqlite3
from typing import NamedTuple

OCCURRENCES_KEPT = 100_000
"""So many are remembered, over all schedules: the newest, by when they had their message and not by the clock."""


class OccurrenceRow(NamedTuple):
    schedule: str
    at: str


def occurrence_row(told: object) -> OccurrenceRow | None:
    """The occurrence in what a task keeps of its schedule; None where it was sent at no time of it."""
    schedule, at = (told.get("schedule"), told.get("at")) if isinstance(told, dict) else (None, None)
    return OccurrenceRow(schedule, at) if isinstance(schedule, str) and isinstance(at, str) else None


def put_occurrence(connection: sqlite3.Connection, row: OccurrenceRow, task_id: str) -> None:
    """Note that it has its task, in the transaction that makes that task. Raises IntegrityError where it had one."""
    done = connection.execute("INSERT INTO occurrences (schedule, at, task_id) VALUES (?, ?, ?)", (*row, task_id))
    assert done.lastrowid is not None
    connection.execute("DELETE FROM occurrences WHERE seq <= ?", (done.lastrowid - OCCURRENCES_KEPT,))


def mark_told(connection: sqlite3.Connection, row: OccurrenceRow) -> None:
    """Its event is in the log, with the transaction that is open."""
    connection.execute("UPDATE occurrences SET told = 1 WHERE schedule = ? AND at = ?", row)


def select_occurrence(connection: sqlite3.Connection, row: OccurrenceRow) -> tuple[str, bool] | None:
    """The task that it has had, and whether that was told; None for none."""
    found = connection.execute("SELECT task_id, told FROM occurrences WHERE schedule = ? AND at = ?", row).fetchone()
    return None if found is None else (str(found[0]), bool(found[1]))
