"""Removes finished tasks that are too many or too old, in steps so small that no commit waits noticeably for a step.

A task goes with its events, and by its foreign keys with everything else that is its own. Events of agents outside of
tasks are kept as long as the tasks are. The log keeps, for each agent, the last removed id: from it a reader that
resumes further back learns that there is a gap.
"""

import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from synapsed.model.task import TERMINAL_STATES

STEP_ROWS = 200
"""Largest number of rows that one step removes."""

STEP_S = 0.002
"""Seconds after which a step begins no further row: long rows cost more than many short ones."""

SPARE_PAGES = 1024
"""Free pages (of 4 KiB) that stay in the file for the next writes."""

_FINISHED = ", ".join(f"'{state.value}'" for state in sorted(TERMINAL_STATES))


@dataclass(frozen=True, slots=True)
class Cut:
    """The newest task that is removed; tasks before it, by (`updated_at`, `id`), are removed too."""

    updated_at: str
    task_id: str = ""


@dataclass(slots=True)
class Pruned:
    """Result of a step. `tasks`: id and agent of the tasks that are completely removed."""

    rows: int = 0
    tasks: list[tuple[str, str]] = field(default_factory=list)
    upto: dict[str, int] = field(default_factory=dict)
    """The newest removed event of each agent."""


def find_cut(connection: sqlite3.Connection, *, keep: int, oldest: str | None, newest: str) -> Cut | None:
    """Returns the cut after which at most `keep` finished tasks stay (0: any number), and none from before `oldest`;
    but no task is removed that was updated since `newest`. None if there is nothing to remove."""
    cuts = [] if oldest is None else [(oldest, "")]
    if keep:
        row = connection.execute(
            f"SELECT updated_at, id FROM tasks WHERE status IN ({_FINISHED}) "  # noqa: S608 - constants
            "ORDER BY updated_at DESC, id DESC LIMIT 1 OFFSET ?",
            (keep,),
        ).fetchone()
        if row is not None:
            cuts.append((row[0], row[1]))
    return Cut(*min(max(cuts), (newest, ""))) if cuts else None


def prune(connection: sqlite3.Connection, cut: Cut) -> Pruned:
    """Does one step, in the open transaction. `rows` is 0 when everything is done."""
    step = _Step(connection)
    while step.more():
        if (victim := _victim(connection, cut)) is None:
            step.remove_events(_outside_of_tasks(connection, cut))
            break
        task_id, agent_id = victim
        events = connection.execute("SELECT id FROM events WHERE task_id = ? ORDER BY id LIMIT ?", (task_id, STEP_ROWS))
        step.remove_events([(event_id, agent_id) for (event_id,) in events.fetchall()])
        if step.more():
            connection.execute("DELETE FROM tasks WHERE id = ?", (task_id,))
            step.pruned.tasks.append(victim)
            step.pruned.rows += 1
    connection.executemany(
        "INSERT INTO removed (agent_id, upto) VALUES (?, ?) "
        "ON CONFLICT (agent_id) DO UPDATE SET upto = max(upto, excluded.upto)",
        list(step.pruned.upto.items()),
    )
    return step.pruned


def shrink(connection: sqlite3.Connection, pages: int) -> bool:
    """Gives up to `pages` free pages back to the disk. Returns True if there are more to give."""
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    surplus = free - SPARE_PAGES
    if surplus > 0:
        connection.execute(f"PRAGMA incremental_vacuum({min(pages, surplus)})").fetchall()
    return bool(surplus > pages)


def removed_ids(connection: sqlite3.Connection) -> dict[str, int]:
    """Returns, by agent, the newest event that was ever removed."""
    return dict(connection.execute("SELECT agent_id, upto FROM removed"))


class _Step:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.pruned = Pruned()
        self._connection = connection
        self._until = time.monotonic() + STEP_S

    def more(self) -> bool:
        """Returns True if there is room for one more row; a first row always has room."""
        return self.pruned.rows == 0 or (self.pruned.rows < STEP_ROWS and time.monotonic() < self._until)

    def remove_events(self, events: Iterable[tuple[int, str]]) -> None:
        """Removes events, given as ids and agents in the order of the ids; as many as there is room for."""
        for event_id, agent_id in events:
            if not self.more():
                return
            self._connection.execute("DELETE FROM events WHERE id = ?", (event_id,))
            self.pruned.upto[agent_id] = max(event_id, self.pruned.upto.get(agent_id, 0))
            self.pruned.rows += 1


def _victim(connection: sqlite3.Connection, cut: Cut) -> tuple[str, str] | None:
    """Returns id and agent of the oldest task to remove. A task stays while a push to a receiver is active, because the
    receiver does not have everything yet."""
    row: tuple[str, str] | None = connection.execute(
        "SELECT id, agent_id FROM tasks "  # noqa: S608 - constants
        f"WHERE (updated_at, id) <= (?, ?) AND status IN ({_FINISHED}) "
        "AND NOT EXISTS (SELECT 1 FROM pushes WHERE pushes.task_id = tasks.id AND active = 1) "
        "ORDER BY updated_at, id LIMIT 1",
        (cut.updated_at, cut.task_id),
    ).fetchone()
    return row


def _outside_of_tasks(connection: sqlite3.Connection, cut: Cut) -> list[tuple[int, str]]:
    horizon = datetime.fromisoformat(cut.updated_at).timestamp()
    rows = connection.execute(
        "SELECT id, agent_id, at FROM events WHERE task_id IS NULL ORDER BY id LIMIT ?", (STEP_ROWS,)
    )
    found = []
    for event_id, agent_id, at in rows:
        if at >= horizon:
            break
        found.append((event_id, agent_id))
    return found
