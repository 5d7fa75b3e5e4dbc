"""The tables, and how a database of an older program becomes one of this program.

`PRAGMA user_version` counts the migrations that a database has had; each runs in one transaction with the new count, so
that a kill leaves the old form or the new one. A migration that was released is never edited. Whoever changes a model
that is kept as JSON adds a migration too (an empty string will do where old rows still parse), because an older
program must refuse the newer rows instead of tripping over one of them.

What the tables owe to later needs: `events.id` and `tasks.seq` are AUTOINCREMENT, so that deleting the newest row never
gives its number away again, and the file is in incremental auto-vacuum, so that space is returned in small steps.
"""

import sqlite3

from synapsed.errors import StoreError

__all__ = ["APPLICATION_ID", "MIGRATIONS", "migrate"]

APPLICATION_ID = 0x73796E64
"""`synd` in SQLite's application id (32 bits of the header): tells our files from other programs'."""

_FIRST = """
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,               -- seconds since the epoch
  agent_id TEXT NOT NULL,
  task_id TEXT,
  type TEXT NOT NULL,
  data TEXT NOT NULL              -- JSON of EventData
);
CREATE INDEX events_task ON events (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX events_agent ON events (agent_id);

CREATE TABLE tasks (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of arrival
  id TEXT NOT NULL UNIQUE,
  agent_id TEXT NOT NULL,
  context_id TEXT NOT NULL,
  status TEXT NOT NULL,
  open INTEGER NOT NULL,          -- 0 once the status is terminal
  updated_at TEXT NOT NULL,       -- RFC 3339 in UTC, milliseconds: sorts as text
  data TEXT NOT NULL              -- JSON of Task
);
-- `status` is in these so that a page and its count by state are settled without reading the rows themselves.
CREATE INDEX tasks_recent ON tasks (updated_at, id, status);
CREATE INDEX tasks_agent ON tasks (agent_id, updated_at, id, status);
CREATE INDEX tasks_context ON tasks (context_id, updated_at, id, agent_id, status);
CREATE INDEX tasks_open ON tasks (seq) WHERE open = 1;

CREATE TABLE turns (
  task_id TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
  data TEXT NOT NULL              -- JSON of TurnRecord
);

CREATE TABLE agents (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  data TEXT NOT NULL              -- JSON of AgentRecord
);

CREATE TABLE checkpoints (
  agent_id TEXT PRIMARY KEY REFERENCES agents (id) ON DELETE CASCADE,
  data TEXT NOT NULL,             -- JSON of Checkpoint without `redraw`
  redraw BLOB NOT NULL
);
"""

MIGRATIONS = (_FIRST,)
"""In order; the n-th brings a database from `user_version` n-1 to n."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the database to the newest form. Raises StoreError for another program's or a newer program's file."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    _check_ours(connection, version)
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        # One transaction with its number. PRAGMA takes no parameters; both values are integers of ours.
        marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number}"
        connection.executescript(f"BEGIN IMMEDIATE; {script}; {marks}; COMMIT;")


def _check_ours(connection: sqlite3.Connection, version: int) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreError("this database belongs to another program", reason="foreign", application_id=application)
    if version > len(MIGRATIONS):
        raise StoreError(
            f"this database has schema {version}, made by a newer synapsed; this one knows schemas up to "
            f"{len(MIGRATIONS)}: run the newer version, or move the database away",
            reason="newer",
            schema=version,
            known=len(MIGRATIONS),
        )
