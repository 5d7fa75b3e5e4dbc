"""The tables, and the migrations from the databases of older programs.

`PRAGMA user_version` counts the migrations that a database has had; each runs in one transaction with the new count, so
that a kill leaves the old form or the new one. A migration that was released is never edited.

An upgrade can be taken back: the program of the version before works on the database as it is, as long as migrations
only add. They may add a table, a column with a default, a field with a default in a model that is kept as JSON (older
programs ignore it, and lose it when they write the row again), a kind of event (older programs show it as an alert),
and a state of an agent in which no program lives (older programs take it for stopped). If older programs cannot work
with a change, the migration that makes it raises `OLDEST` (an empty migration, if rows keep their form): then older
programs refuse the database.

`events.id` and `tasks.seq` are AUTOINCREMENT, so that the number of a deleted newest row is never given again, and the
file is in incremental auto-vacuum, so that space is returned in small steps.
"""

import sqlite3

from synapsed.errors import StoreError

APPLICATION_ID = 0x73796E64
"""`synd` in SQLite's application id (32 bits of the header), which marks the files of synapsed."""

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

_PUSHES = """
CREATE TABLE pushes (
  seq INTEGER PRIMARY KEY,        -- order of creation
  task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  active INTEGER NOT NULL,        -- 0 once there is nothing more to tell
  data TEXT NOT NULL,             -- JSON of PushRecord, credentials included
  UNIQUE (task_id, id)
);
CREATE INDEX pushes_active ON pushes (seq) WHERE active = 1;
"""

_RETENTION = """
CREATE INDEX events_outside ON events (id) WHERE task_id IS NULL;
CREATE TABLE removed (
  agent_id TEXT PRIMARY KEY,
  upto INTEGER NOT NULL           -- id of the agent's newest event that was removed
) WITHOUT ROWID;
"""

_REPLIES = """
CREATE TABLE replies (
  task_id TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
  data TEXT NOT NULL              -- JSON of ReplyRecord
);
"""

_STATES = """
-- For pages and counts of one state: the few failed among many are not looked for one by one.
CREATE INDEX tasks_agent_status ON tasks (agent_id, status, updated_at, id);
"""

_CONTEXTS = """
ALTER TABLE events ADD COLUMN context_id TEXT;
CREATE INDEX events_attention ON events (agent_id, id) WHERE type = 'attention';
"""

_SEALED = ""
"""The migration from which on secrets in rows are sealed (encrypted), and redraws as a whole: an older program would
deliver the marks that replace them."""

_SCHEDULES = """
CREATE TABLE schedules (
  id TEXT PRIMARY KEY,
  data TEXT,                      -- JSON of Schedule; null for one of the configuration
  state TEXT NOT NULL             -- JSON of ScheduleState
) WITHOUT ROWID;

CREATE TABLE occurrences (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  schedule TEXT NOT NULL,
  at TEXT NOT NULL,               -- RFC 3339 in UTC
  task_id TEXT NOT NULL,
  told INTEGER NOT NULL DEFAULT 0, -- 1 once the log has its event
  UNIQUE (schedule, at)
);
"""

_FOLLOWERS = """
CREATE TABLE followers (
  name TEXT PRIMARY KEY,
  data TEXT NOT NULL              -- JSON of FollowerState: how far rules and webhooks have come in the log
) WITHOUT ROWID;
"""

FIND_OPEN = """
INSERT INTO open_attention (agent_id, id, event)
SELECT agent_id, coalesce(data ->> '$.id', ''), max(id) FROM events WHERE type = 'attention' AND json_valid(data)
GROUP BY 1, 2 HAVING data ->> '$.state' = 'opened'; -- of a group with max(), SQLite gives that row's columns
"""
"""Fills `open_attention` from all events of that kind. Triggers do this for later events."""

_OPEN_ATTENTION = """
-- A daemon that starts takes up what is open, and does not read all that ever was. By triggers: an older program keeps
-- it, too.
CREATE TABLE open_attention (
  agent_id TEXT NOT NULL,
  id TEXT NOT NULL,
  event INTEGER NOT NULL,         -- the one that opened it
  PRIMARY KEY (agent_id, id)
) WITHOUT ROWID;
CREATE TRIGGER attention_told AFTER INSERT ON events WHEN new.type = 'attention' AND json_valid(new.data) BEGIN
  DELETE FROM open_attention WHERE agent_id = new.agent_id AND id = coalesce(new.data ->> '$.id', '');
  INSERT INTO open_attention (agent_id, id, event)
    SELECT new.agent_id, coalesce(new.data ->> '$.id', ''), new.id WHERE new.data ->> '$.state' = 'opened';
END;
CREATE TRIGGER attention_removed AFTER DELETE ON events WHEN old.type = 'attention' AND json_valid(old.data) BEGIN
  DELETE FROM open_attention
    WHERE agent_id = old.agent_id AND id = coalesce(old.data ->> '$.id', '') AND event = old.id;
END;
"""

_FLEET = """
-- What is under way to other hosts of the fleet: open until the receiver's receipt.
CREATE TABLE fleet_out (
  seq_no INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  dst TEXT NOT NULL,              -- a host, or `any:CLASS`
  kind TEXT NOT NULL,             -- msg, upd, ctl, work
  task_id TEXT NOT NULL,
  n INTEGER NOT NULL DEFAULT 0,
  body TEXT,                      -- JSON, of a ctl
  state TEXT NOT NULL,            -- new, piped
  stream TEXT,                    -- when the broker's stream was made that has it
  seq INTEGER,                    -- and where it stands there
  attempt INTEGER NOT NULL DEFAULT 0,
  at REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0) -- seconds since the epoch
);
CREATE INDEX fleet_out_due ON fleet_out (seq_no) WHERE state = 'new';
CREATE INDEX fleet_out_task ON fleet_out (task_id);
-- What has come: never twice.
CREATE TABLE fleet_in (
  seq_no INTEGER PRIMARY KEY AUTOINCREMENT,
  src TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  n INTEGER NOT NULL DEFAULT 0,   -- of the last update: that came, or that was made of the task
  task_id TEXT,
  refused TEXT,                   -- JSON: code and message
  receipted INTEGER NOT NULL,
  UNIQUE (src, id)
);
CREATE INDEX fleet_in_owed ON fleet_in (src) WHERE receipted = 0;
CREATE TABLE fleet_work (
  src TEXT NOT NULL,
  id TEXT NOT NULL,
  class TEXT NOT NULL,
  round INTEGER NOT NULL,
  body TEXT NOT NULL,             -- JSON
  PRIMARY KEY (src, id)
) WITHOUT ROWID;
CREATE TABLE fleet_pub (name TEXT PRIMARY KEY, cursor INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE fleet_peer (host TEXT PRIMARY KEY, jwt TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE fleet_quarantine (
  seq_no INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  headers TEXT NOT NULL,
  size INTEGER NOT NULL
);
"""

_BORN = """
-- An agent's id comes from its port, so that a new agent may have the id of one that was removed: only events and tasks
-- after these two are its own.
ALTER TABLE agents ADD COLUMN born INTEGER NOT NULL DEFAULT 0;      -- id of the last event before it
ALTER TABLE agents ADD COLUMN born_task INTEGER NOT NULL DEFAULT 0; -- `seq` of the last task before it
"""

MIGRATIONS = (
    *(_FIRST, _PUSHES, _RETENTION, _REPLIES, _STATES, _CONTEXTS, _SEALED, _SCHEDULES, _FOLLOWERS),
    _OPEN_ATTENTION + FIND_OPEN,
    _FLEET,
    _BORN,
)
"""Migrations in order; the n-th brings a database from schema n-1 to n."""

OLDEST = 7
"""The lowest schema that a program must know to work on a database of this form."""

_OLDEST_BIT = 16
"""`user_version` is the schema and, from this bit on, one less than its `OLDEST`."""


def migrate(connection: sqlite3.Connection) -> None:
    """Brings the database to the newest form. Raises StoreError for a file of another program, and for one of a newer
    version that this program cannot work on."""
    (mark,) = connection.execute("PRAGMA user_version").fetchone()
    version, oldest = mark & ((1 << _OLDEST_BIT) - 1), (mark >> _OLDEST_BIT) + 1
    _check_ours(connection, version, oldest)
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        # The script and its number are one transaction. PRAGMA takes no parameters; both values are our own integers.
        mark = number | (min(OLDEST, number) - 1) << _OLDEST_BIT
        marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {mark}"
        connection.executescript(f"BEGIN IMMEDIATE; {script}; {marks}; COMMIT;")


def _check_ours(connection: sqlite3.Connection, version: int, oldest: int) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreError("this database belongs to another program", reason="foreign", application_id=application)
    if version > len(MIGRATIONS) and oldest > len(MIGRATIONS):
        raise StoreError(
            f"this database has schema {version}, made by a newer synapsed, and wants a program that knows schema "
            f"{oldest}; this one knows schemas up to {len(MIGRATIONS)}: run the newer version, or move the database "
            "away",
            reason="newer",
            schema=version,
            known=len(MIGRATIONS),
        )
