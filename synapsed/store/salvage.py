"""Saves the readable rows of a damaged database. Blocks, and must be alone: no daemon may run.

A new database is made beside the damaged one, which is kept. It gets the rows of `TABLES` that can still be read, and
the missing ones of `FROM_COPIES` from the daily copies, newest first.

Nothing is taken from a copy that could make an action happen a second time: a task that was open in a copy counts as
failed, a schedule begins at the repair, and rows about outstanding actions are not taken. A row that the person has
removed since the copy must not act again: `ACTING`.
"""

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from synapsed.clock import iso
from synapsed.errors import StoreError
from synapsed.model.task import TaskError, TaskState
from synapsed.store.schema import FIND_OPEN, migrate
from synapsed.store.task_rows import parse_task

TABLES = (
    *("agents", "tasks", "events", "turns", "replies", "pushes", "removed", "checkpoints"),
    *("schedules", "occurrences", "followers"),
    *("fleet_out", "fleet_in", "fleet_work", "fleet_pub", "fleet_peer", "fleet_quarantine"),
)
"""Tables that are saved; those that others refer to come first."""
LEFT: Mapping[str, str] = {"open_attention": "it is made of the events again"}
"""Tables that are not saved, and the reason."""
NOT_FROM_COPIES: Mapping[str, str] = {
    "turns": "its message would be typed again",
    "replies": "it would be sent again",
    "pushes": "clients would be told again",
    "checkpoints": "the screen has changed since",
    "followers": "rules and webhooks would handle all events since the copy again; without a row they begin at the end",
    "fleet_out": "it would be sent again",
    "fleet_work": "the work may have been taken since",
    "fleet_pub": "the events since the copy would be published again",
    "fleet_quarantine": "it is there for people to look at, and may be incomplete",
}
"""Tables whose rows are not taken from copies, and the reason."""
ACTING = ("agents", "schedules")
"""Tables whose rows cause actions. They are taken from a copy only if no newer source could be read completely: rows
that are missing in such a source were removed."""
KEYS = {
    "agents": "seq",
    "tasks": "seq",
    "events": "id",
    "pushes": "seq",
    "occurrences": "seq",
    "fleet_out": "seq_no",
    "fleet_in": "seq_no",
    "fleet_quarantine": "seq_no",
}
"""Tables whose rows have numbers that only grow, and the column of the number."""
NEWEST = """
SELECT coalesce(max(n), 0) FROM (
  SELECT max(id) AS n FROM events
  UNION ALL SELECT CAST(upto AS INTEGER) FROM removed
  UNION ALL SELECT CAST(data ->> '$.cursor' AS INTEGER) FROM followers WHERE json_valid(data)
  UNION ALL SELECT CAST(cursor AS INTEGER) FROM fleet_pub
) WHERE n < 1 << 53 -- a greater one was damaged
"""
"""Finds the greatest id of an event that is known, also of one that was lost."""
DOCUMENTS = {"schedules": 2, "followers": 1}
"""Tables whose last columns, so many, are JSON that is read as a whole table."""
LAST = (1 << 63) - 1
"""The greatest number of a row."""
UNKNOWN_END = 1 << 22
"""Number up to which rows are searched if the greatest number of a table cannot be read."""
CHUNK = 1 << 10
"""Numbers of rows that are read at once; after a failure, half as many."""
AFTER_LOSS = 100_000
"""Distance of the next number from the greatest one that was read, if the number given last is not known: no number may
be given twice."""


type Row = dict[str, object]
type Change = Callable[[Row], tuple[object, ...] | None]
"""A function that returns a row as it is taken from a copy; None if it is not taken."""


@dataclass(slots=True)
class Salvaged:
    """Result of saving a damaged database."""

    damaged: Path
    """Present path of the damaged file."""
    rows: dict[str, int] = field(default_factory=dict)
    """Number of rows saved from the damaged database, by table."""
    filled: dict[str, int] = field(default_factory=dict)
    """Number of rows taken from copies, by table."""
    lost: int = 0
    """Number of places (rows, or runs of them) that could not be read."""


def is_sound(path: Path) -> bool:
    """Returns True if SQLite finds nothing wrong with the database at `path`."""
    try:
        with closing(_open(path)) as connection:
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            return bool(found == "ok")
    except sqlite3.DatabaseError:
        return False


def salvage(path: Path, copies: Sequence[Path]) -> Salvaged:
    """Replaces the database at `path` by the readable rows of it and of its `copies`, newest first. Raises StoreError
    if the new one cannot be written; then nothing has changed."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    saved = Salvaged(damaged=path.with_name(f"{path.name}.damaged-{stamp}"))
    fresh = path.with_name(f".{path.name}.salvaged")
    fresh.unlink(missing_ok=True)
    try:
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(fresh, autocommit=True)) as target:
            target.execute("PRAGMA auto_vacuum = INCREMENTAL")
            migrate(target)
            target.execute("BEGIN")
            _fill(target, path, copies, saved)
            target.execute("COMMIT")
        with fresh.open("rb") as written:
            os.fsync(written.fileno())
        with suppress(FileNotFoundError):
            try:
                os.link(path, saved.damaged)  # not moved: whoever is killed here, no empty one is made in its place
            except OSError:  # a file system without links
                path.replace(saved.damaged)
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).replace(saved.damaged.with_name(saved.damaged.name + suffix))
        fresh.replace(path)
    except (OSError, sqlite3.Error) as error:
        fresh.unlink(missing_ok=True)
        raise StoreError(f"{path} cannot be repaired: {error}", reason="io", path=str(path)) from error
    return saved


def _fill(target: sqlite3.Connection, path: Path, copies: Sequence[Path], saved: Salvaged) -> None:
    known_end = 0
    whole: set[str] = set()
    with suppress(sqlite3.DatabaseError), closing(_open(path)) as damaged:
        for table in TABLES:
            saved.rows[table], lost = _take(target, damaged, table)
            saved.lost += lost or 0
            whole |= {table} if lost == 0 else set()
        known_end = _sequence(damaged, "events")
    for copy in copies:
        with suppress(sqlite3.DatabaseError), closing(_open(copy)) as source:
            for table, change in FROM_COPIES.items():
                if table in ACTING and table in whole:
                    continue
                filled, lost = _take(target, source, table, change)
                saved.filled[table] = saved.filled.get(table, 0) + filled
                whole |= {table} if lost == 0 else set()
    for table, of in (("turns", "tasks"), ("replies", "tasks"), ("pushes", "tasks"), ("checkpoints", "agents")):
        column = "agent_id" if of == "agents" else "task_id"
        target.execute(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT id FROM {of})")  # noqa: S608 - constants
    target.execute(  # a message is its task; a command to a host has a body of its own
        "DELETE FROM fleet_out WHERE kind IN ('msg', 'work') AND task_id NOT IN (SELECT id FROM tasks)"
    )
    target.execute("DELETE FROM open_attention")  # events of copies were inserted after newer ones
    target.execute(FIND_OPEN)
    (newest,) = target.execute(NEWEST).fetchone()
    target.execute("DELETE FROM sqlite_sequence WHERE name = 'events'")
    end = max(known_end, newest) if known_end else newest + AFTER_LOSS
    target.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ?)", (end,))
    target.execute(  # an agent must begin before the next event and task
        "UPDATE agents SET born = min(born, ?), "
        "born_task = min(born_task, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'tasks'), 0))",
        (end,),
    )


def _open(path: Path) -> sqlite3.Connection:
    """Opens the database for reading. Its write-ahead log must be read as well, so it cannot be opened as immutable."""
    if not path.exists():
        raise sqlite3.DatabaseError("there is no such table")
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, autocommit=True)


def _take(
    target: sqlite3.Connection, source: sqlite3.Connection, table: str, change: Change | None = None
) -> tuple[int, int | None]:
    """Copies the rows of `table` that `target` does not have, as `change` makes them. Returns their number, and the
    number of places that could not be read; None for a source without that table."""
    names = [row[1] for row in target.execute(f"PRAGMA table_info({table})")]
    try:
        known = {row[1] for row in source.execute(f"PRAGMA table_info({table})")}
    except sqlite3.DatabaseError:
        return 0, 1
    if not known:
        return 0, None  # a version without this table
    columns = [name for name in names if name in known]
    listed = ", ".join(columns)
    statement = f"INSERT OR IGNORE INTO {table} ({listed}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
    taken = lost = 0
    for row in _rows(source, table, listed):
        if row is None:
            lost += 1
            continue
        if table in DOCUMENTS and not all(_is_document(value) for value in row[-DOCUMENTS[table] :]):
            lost += 1  # one row of these that cannot be read keeps its part down
            continue
        made = row if change is None else change(dict(zip(columns, row, strict=True)))
        if made is None:
            continue
        try:
            taken += target.execute(statement, made).rowcount
        except sqlite3.IntegrityError:
            lost += 1
    return taken, lost


def _rows(source: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[object, ...] | None]:
    """Yields the rows that can be read, and None for each place where rows cannot be read."""
    if table not in KEYS:
        try:
            yield from source.execute(f"SELECT {columns} FROM {table}")  # noqa: S608 - constants
        except sqlite3.DatabaseError:
            yield None
        return
    key = KEYS[table]
    if not any(_reaches(source, table, key, number) for number in (0, LAST)):
        yield None  # the first page, through which each row is found
        return
    end = _end(source, table, key)
    ranges = [(low, min(low + CHUNK - 1, end)) for low in range(1, end + 1, CHUNK)][::-1]
    while ranges:
        low, high = ranges.pop()
        try:
            found = source.execute(
                f"SELECT {columns} FROM {table} NOT INDEXED WHERE {key} BETWEEN ? AND ?",  # noqa: S608 - constants
                (low, high),
            ).fetchall()
        except sqlite3.DatabaseError:
            if low == high:
                yield None
                continue
            middle = (low + high) // 2
            ranges += [(middle + 1, high), (low, middle)]
        else:
            yield from found


def _is_document(value: object) -> bool:
    try:
        return value is None or isinstance(json.loads(str(value)), dict)
    except (ValueError, RecursionError):
        return False


def _reaches(source: sqlite3.Connection, table: str, key: str, number: int) -> bool:
    """Returns True if the way to the place of that row can be read."""
    try:
        source.execute(f"SELECT 1 FROM {table} NOT INDEXED WHERE {key} = ?", (number,)).fetchall()  # noqa: S608 - constants
    except sqlite3.DatabaseError:
        return False
    return True


def _end(source: sqlite3.Connection, table: str, key: str) -> int:
    """Returns the greatest number that a row of the table may have."""
    try:
        (greatest,) = source.execute(f"SELECT coalesce(max({key}), 0) FROM {table} NOT INDEXED").fetchone()  # noqa: S608
    except sqlite3.DatabaseError:
        return _sequence(source, table) or UNKNOWN_END
    return int(greatest)


def _sequence(source: sqlite3.Connection, table: str) -> int:
    """Returns the number given last in `table`; 0 if it cannot be read."""
    try:
        row = source.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    except sqlite3.DatabaseError:
        return 0
    return int(row[0]) if row else 0


def _unchanged(row: Row) -> tuple[object, ...]:
    return tuple(row.values())


def _ended(row: Row) -> tuple[object, ...] | None:
    """Returns a task's row as it is taken from a copy; None if it cannot be read as a task."""
    if not row["open"]:
        return tuple(row.values())
    try:
        task = parse_task(str(row["data"]))
    except ValidationError:
        return None
    message = "the database was damaged while it was open, and what became of it is not known"
    error = TaskError(code="INTERRUPTED", message=message)
    told = {"status": TaskState.FAILED, "error": error, "prompt": None, "updated_at": iso(time.time())}
    failed = task.model_copy(update=told)
    changed = {
        "status": failed.status.value,
        "open": 0,
        "updated_at": failed.updated_at,
        "data": failed.model_dump_json(),
    }
    return tuple({**row, **changed}.values())


def _from_now(row: Row) -> tuple[object, ...] | None:
    """Returns a schedule without its times until now, because it is not known which of them had a message. A schedule
    of the configuration needs no such row."""
    try:
        state = json.loads(str(row["state"]))
        state["cursor"] = time.time()
    except (ValueError, TypeError):
        return None
    return None if row["data"] is None else tuple({**row, "state": json.dumps(state)}.values())


def _ahead(row: Row) -> tuple[object, ...] | None:
    """Returns the row of a message from another host with a number of updates that was not sent to it yet: that host
    passes over lower ones."""
    if not isinstance(row["n"], int):
        return None
    return tuple({**row, "n": row["n"] + (AFTER_LOSS if row["kind"] == "msg" else 0)}.values())


FROM_COPIES: Mapping[str, Change] = {
    "agents": _unchanged,
    "tasks": _ended,
    "events": _unchanged,
    "removed": _unchanged,
    "schedules": _from_now,
    "occurrences": _unchanged,
    "fleet_in": _ahead,
    "fleet_peer": _unchanged,
}
"""Tables whose missing rows are taken from copies, each with the function that makes a row of a copy harmless."""
