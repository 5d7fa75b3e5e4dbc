"""Brings the history up to the log, in a thread of its own: a follower with a durable cursor.

A step reads some events, makes documents of them, and writes these with the new cursor in one transaction: a kill in
between costs a step, and nothing is in twice. An existing database is followed from its first event, after an upgrade
too. Data that retention has removed are found by its notes in the database, and leave the history in small steps.
"""

import sqlite3
import time
from pathlib import Path

import structlog

from synapsed.parts.history.file import Connections, discard, open_file, open_source
from synapsed.parts.history.reading import Doc, Row, Used, docs_of, read_events, used_of

EVENTS = 500
"""Events that a step looks at."""

STEP_S = 0.05
"""Seconds after which a step takes no further event. One document of full size takes about as long."""

SWEEP_ROWS = 500
"""Documents that a step of tidying looks at."""

VACUUM_PAGES = 256

log = structlog.stdlib.get_logger("synapsed.history")


class Indexer(Connections):
    """Builds the index. `database` is the store's, `path` the history's. All but the constructor and `cursor` belongs
    to one thread."""

    def __init__(self, database: Path, path: Path) -> None:
        super().__init__(database, path)
        self._tidied = 0
        """Documents up to this one were looked at since `_to_tidy` was noted."""
        self._to_tidy: str | None = None
        self.cursor = 0
        """The last event that was looked at."""

    def open(self) -> None:
        """Opens both files. Raises StoreError, sqlite3.Error."""
        self.close()
        self._source = open_source(self._database)
        self._file = open_file(self._path)
        self.cursor = self._restored()

    def step(self) -> bool:
        """Reads some more of the log; returns True if there is more of it."""
        source = self._connected(self._source)
        newest = _newest(source)
        rows = read_events(source, self.cursor, EVENTS)
        if not rows:
            self.cursor = max(self.cursor, newest)  # events in between have been removed
            return False
        docs: list[Doc] = []
        used: list[Used] = []
        done, until = rows[0], time.monotonic() + STEP_S
        for row in rows:
            self._read(row, docs, used)
            done = row
            if time.monotonic() > until:
                break
        self._write(docs, used, done)
        self.cursor = done[0]
        return done is not rows[-1] or len(rows) == EVENTS

    def tidy(self) -> bool:
        """Removes some documents that the database no longer has; returns True if there may be more of them."""
        source, file = self._connected(self._source), self._connected(self._file)
        if self._to_tidy is None:
            removed = _removed(source)
            if file.execute("SELECT removed FROM progress").fetchone() == (removed,):
                return False
            self._to_tidy, self._tidied = removed, 0
        rows = file.execute(
            "SELECT id FROM docs WHERE id > ? UNION SELECT 2 * id FROM used WHERE id > ? / 2 ORDER BY 1 LIMIT ?",
            (self._tidied, self._tidied, SWEEP_ROWS),
        ).fetchall()
        kept = there(source, [doc_id // 2 for (doc_id,) in rows])
        gone = [doc_id for (doc_id,) in rows if doc_id // 2 not in kept]
        self._begin(file)
        try:
            for doc_id in gone:
                _remove(file, "id = ?", (doc_id,))
                file.execute("DELETE FROM used WHERE id = ? / 2", (doc_id,))
            if not rows:
                file.execute("UPDATE progress SET removed = ?", (self._to_tidy,))
            file.execute("COMMIT")
        except BaseException:
            _roll_back(file)
            raise
        if rows:
            self._tidied = rows[-1][0]
            return True
        file.execute(f"PRAGMA incremental_vacuum({VACUUM_PAGES})").fetchall()
        tidied, self._to_tidy = self._to_tidy, None
        return _removed(source) != tidied

    def _restored(self) -> int:
        """Returns the cursor. If the database is a different one, an older copy of it for example, it begins at the
        first event."""
        source, file = self._connected(self._source), self._connected(self._file)
        cursor, at = file.execute("SELECT cursor, at FROM progress").fetchone()
        there_now = source.execute("SELECT at FROM events WHERE id = ?", (cursor,)).fetchone()
        if cursor and (_newest(source) < cursor or (there_now is not None and there_now[0] != at)):
            log.info("the database is not the one that the history was made of: it is made again")
            self.close()
            discard(self._path)
            self._source, self._file = open_source(self._database), open_file(self._path)
            return 0
        return int(cursor)

    def _read(self, row: Row, docs: list[Doc], used: list[Used]) -> None:
        source = self._connected(self._source)
        try:
            docs += docs_of(source, row)
            if (usage := used_of(source, row)) is not None:
                used.append(usage)
        except sqlite3.OperationalError as error:
            if "malformed JSON" not in str(error):
                raise
            log.warning("an event is not in the history: its JSON cannot be read", id=row[0])

    def _write(self, docs: list[Doc], used: list[Used], done: Row) -> None:
        file = self._connected(self._file)
        self._begin(file)
        try:
            for doc in docs:
                self._put(file, doc)
            for one in used:
                file.execute(
                    "INSERT OR IGNORE INTO used VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (one.id, one.at, one.agent_id, one.task_id, one.context_id, one.turn_id, *one.figures),
                )
            file.execute("UPDATE progress SET cursor = ?, at = ?", (done[0], done[1]))
            file.execute("COMMIT")
        except BaseException:
            _roll_back(file)
            raise

    def _put(self, file: sqlite3.Connection, doc: Doc) -> None:
        if doc.task_id is not None and doc.kind == "answer":  # a corrected answer replaces the former one
            _remove(file, "task_id = ? AND kind = 'answer'", (doc.task_id,))
        elif doc.task_id is not None and doc.kind == "message":  # typed again: the first document stays
            known = file.execute("SELECT 1 FROM docs WHERE task_id = ? AND kind = 'message'", (doc.task_id,))
            if known.fetchone() is not None:
                return
        file.execute(
            "INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                doc.id, doc.at, doc.kind, doc.agent_id, doc.task_id, doc.context_id, self._thread(file, doc),
                doc.author, doc.recipient, doc.tool, doc.state, doc.cut, doc.text,
            ),
        )  # fmt: skip
        file.execute("INSERT INTO found (rowid, text) VALUES (?, ?)", (doc.id, doc.text))

    def _thread(self, file: sqlite3.Connection, doc: Doc) -> str | None:
        """Returns the thread. An agent's message belongs to the thread of the message that the agent was working on,
        all other texts of a task to the thread of its message."""
        if doc.kind != "message":
            found = file.execute(
                "SELECT thread FROM docs WHERE task_id = ? AND kind = 'message'", (doc.task_id,)
            ).fetchone()
            return found[0] if found is not None else self._own_thread(file, doc)
        if doc.author is None:
            return doc.context_id
        source = self._connected(self._source)
        asked = source.execute("SELECT context_id FROM tasks WHERE id = ?", (doc.asked_with,)).fetchone()
        last = file.execute(
            "SELECT thread, context_id FROM docs WHERE agent_id = ? AND kind = 'message' AND id < ? "
            "AND task_id IS NOT NULL ORDER BY id DESC LIMIT 1",
            (doc.author, doc.id),
        ).fetchone()
        if last is not None and (asked is None or asked[0] == last[1]):
            return str(last[0])
        return asked[0] if asked is not None else doc.context_id

    def _own_thread(self, file: sqlite3.Connection, doc: Doc) -> str | None:
        """Returns the thread of an agent's reply in its own words: that of the task that was asked."""
        if doc.author == doc.agent_id or doc.kind != "answer":
            return doc.context_id
        found = file.execute(
            "SELECT thread FROM docs WHERE author = ? AND recipient = ? AND kind = 'message' AND id < ? "
            "ORDER BY id DESC LIMIT 1",
            (doc.agent_id, doc.author, doc.id),
        ).fetchone()
        return found[0] if found is not None else doc.context_id

    @staticmethod
    def _begin(file: sqlite3.Connection) -> None:
        if file.in_transaction:  # the disk failed so badly that the last transaction could not be rolled back
            file.execute("ROLLBACK")
        file.execute("BEGIN IMMEDIATE")

    @staticmethod
    def _connected(connection: sqlite3.Connection | None) -> sqlite3.Connection:
        assert connection is not None, "opened by open()"
        return connection


def _newest(source: sqlite3.Connection) -> int:
    """Returns the id of the newest event there ever was."""
    row = source.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    return 0 if row is None else int(row[0])


def _removed(source: sqlite3.Connection) -> str:
    """Returns retention's notes about removed events, as a text that differs when there are more of them."""
    return repr(source.execute("SELECT agent_id, upto FROM removed ORDER BY agent_id").fetchall())


def there(source: sqlite3.Connection, event_ids: list[int]) -> set[int]:
    """Returns the ids among `event_ids` that the database still has."""
    if not event_ids:
        return set()
    marks = ", ".join("?" * len(event_ids))
    rows = source.execute(f"SELECT id FROM events WHERE id IN ({marks})", event_ids)  # noqa: S608 - question marks
    return {event_id for (event_id,) in rows}


def _remove(file: sqlite3.Connection, where: str, values: tuple[object, ...]) -> None:
    """Removes documents, and their texts from the index, which needs exactly the text that it holds."""
    for doc_id, text in file.execute(f"SELECT id, text FROM docs WHERE {where}", values).fetchall():  # noqa: S608
        file.execute("INSERT INTO found (found, rowid, text) VALUES ('delete', ?, ?)", (doc_id, text))
        file.execute("DELETE FROM docs WHERE id = ?", (doc_id,))


def _roll_back(file: sqlite3.Connection) -> None:
    if file.in_transaction:
        file.execute("ROLLBACK")
