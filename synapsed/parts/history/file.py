"""The file of the history, `history.db`, beside the database that it is made of.

All of it is made from the database, so it can be removed at any time, and is then made again. So the file is in no
backup, no older program reads it, and a file of another form, or a damaged one, is removed instead of being migrated.
"""

import sqlite3
from contextlib import suppress
from pathlib import Path

from synapsed.errors import StoreError
from synapsed.store.database import create_private, store_error

FORM = 1
"""`user_version` of a file of this form. Increase it with every change below, and of the file's content."""

_TABLES = """
CREATE TABLE docs (
  id INTEGER PRIMARY KEY,         -- twice the id of its event; one more for the answer of a turn
  at REAL NOT NULL,               -- seconds since the epoch
  kind TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  task_id TEXT,
  context_id TEXT,
  thread TEXT,
  author TEXT,
  recipient TEXT,
  tool TEXT,
  state TEXT,
  cut INTEGER NOT NULL,
  text TEXT NOT NULL              -- last: whoever reads the others does not read it
);
CREATE INDEX docs_agent ON docs (agent_id, id);
CREATE INDEX docs_context ON docs (context_id, id) WHERE context_id IS NOT NULL;
CREATE INDEX docs_thread ON docs (thread, id) WHERE thread IS NOT NULL;
CREATE INDEX docs_task ON docs (task_id, kind) WHERE task_id IS NOT NULL;
CREATE VIRTUAL TABLE found USING fts5 (text, content = 'docs', content_rowid = 'id', tokenize = 'trigram');

CREATE TABLE used (
  id INTEGER PRIMARY KEY,         -- of its event
  at REAL NOT NULL,
  agent_id TEXT NOT NULL,
  task_id TEXT,
  context_id TEXT,
  turn_id TEXT,
  input_tokens INTEGER,
  output_tokens INTEGER,
  cache_read_tokens INTEGER,
  cache_write_tokens INTEGER,
  cost_usd REAL
);
CREATE UNIQUE INDEX used_turn ON used (agent_id, turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE progress (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  cursor INTEGER NOT NULL,        -- the last event that was looked at
  at REAL NOT NULL,               -- its time: a database that was put back has another event of that id
  removed TEXT NOT NULL           -- what the database had removed when the history was tidied last
);
INSERT INTO progress VALUES (1, 0, 0, '[]');
"""


def connect(path: Path, *, mode: str) -> sqlite3.Connection:
    """Returns a connection that another thread may interrupt. Text that is no UTF-8 is read all the same."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, autocommit=True, check_same_thread=False)
    connection.execute("PRAGMA busy_timeout = 5000")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.text_factory = lambda read: read.decode(errors="replace")
    return connection


def open_source(path: Path) -> sqlite3.Connection:
    """Opens the database for reading only. Secrets in it stay sealed."""
    return connect(path, mode="ro")


def open_file(path: Path) -> sqlite3.Connection:
    """Opens the file for writing; a new one if no file of this form is there. Raises StoreError, with the reason
    `no-fts` if this SQLite has no full text by trigrams."""
    create_private(path)
    connection = connect(path, mode="rw")
    try:
        if connection.execute("PRAGMA user_version").fetchone() != (FORM,):
            connection.close()
            discard(path)
            create_private(path)
            connection = connect(path, mode="rw")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {FORM}; COMMIT;")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {16 * 1024 * 1024}")
    except sqlite3.Error as error:
        connection.close()
        if "no such module" in str(error) or "no such tokenizer" in str(error):
            message = f"SQLite {sqlite3.sqlite_version} has no full text by trigrams; it takes 3.34 with FTS5"
            raise StoreError(message, reason="no-fts") from error
        raise store_error(error, path) from error
    return connection


class Connections:
    """Connections of one thread: to the database, which is only read, and to the history."""

    def __init__(self, database: Path, path: Path) -> None:
        self._database = database
        self._path = path
        self._source: sqlite3.Connection | None = None
        self._file: sqlite3.Connection | None = None

    def close(self) -> None:
        """Closes both; may be called again. The file may be another one from now on."""
        for connection in (self._source, self._file):
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()
        self._source = self._file = None


def discard(path: Path) -> None:
    """Removes the file with all that belongs to it."""
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)
