"""Reads and writes the rows of tasks and agents (indexed columns, and JSON), and keeps recently written tasks in
memory.

Recent tasks are kept as JSON or documents, not as objects: each caller gets its own task, which it may change without
an effect on others, and no change is visible before it is durable.

An agent's id has its port in it (`synapse-TYPE-PORT`), so a new agent on the port of a removed one has the same id.
Reads for an agent therefore begin after the last event and the last task before the agent was first written; its row
has these numbers. The row is removed with the agent, so that reads for an id without an agent return everything.
"""

import json
import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import structlog

from synapsed.documents.budget import Budget, Large
from synapsed.documents.writing import Texts
from synapsed.errors import InvalidRequest
from synapsed.interfaces import RowsOfTask, TaskFilter
from synapsed.model.task import EXCERPT_END_MAX, EXCERPT_PARTS_MAX, Said, Task, ends
from synapsed.store.encoding import LARGE_ROW, EncodedModel, Kept, Sealer, share_large, texts_size, weigh_large

BORN: Final = "coalesce((SELECT born FROM agents WHERE agents.id = {0}), 0)"
"""SQL: the id of the last event before the agent {0}."""

BORN_TASK: Final = "coalesce((SELECT born_task FROM agents WHERE agents.id = {0}), 0)"
"""SQL: the `seq` of the last task before the agent {0}."""

log = structlog.stdlib.get_logger("synapsed.store")

_LAST: Final = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{0}'), 0)"
"""SQL: the number given last in table {0}."""


def put_agents(connection: sqlite3.Connection, agents: Sequence[tuple[str, str]], sealer: Sealer) -> None:
    """Writes agents, given as ids and data. A new one begins after all present events and tasks."""
    for agent_id, data in agents:
        connection.execute(
            "INSERT INTO agents (id, data, born, born_task) "  # noqa: S608 - constants
            f"VALUES (?, ?, {_LAST.format('events')}, {_LAST.format('tasks')}) "
            "ON CONFLICT (id) DO UPDATE SET data = excluded.data",
            (agent_id, sealer.seal(data)),
        )


def select_born(connection: sqlite3.Connection) -> dict[str, int]:
    """Returns, by agent, the id of the last event before it."""
    return dict(connection.execute("SELECT id, born FROM agents"))


class PartsRows(NamedTuple):
    """Rows of a part that are written together with tasks (see `Store.with_tasks`)."""

    rows: RowsOfTask
    durable: bool
    after: Callable[[], None] | None


class BesideTask(NamedTuple):
    """Rows of one part for one task."""

    write: Callable[[sqlite3.Connection, bool], object]
    part: PartsRows


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task ready to be written."""

    id: str
    agent_id: str
    context_id: str
    status: str
    open: bool
    updated_at: str
    data: EncodedModel
    beside: Sequence[BesideTask] = ()
    """Rows that parts write with it."""

    @classmethod
    def of(cls, task: Task, texts: Texts, parts: Sequence[PartsRows] = ()) -> Self:
        asked = ((part, part.rows(task)) for part in parts)
        return cls(
            task.id,
            task.agent_id,
            task.context_id,
            task.status.value,
            not task.terminal,
            task.updated_at,
            EncodedModel(task, texts),
            [BesideTask(write, part) for part, write in asked if write is not None],
        )


class RecentTasks:
    """The tasks written last, as JSON or documents, at most `size_max` bytes of JSON: most requests are for live tasks
    and those that have just ended."""

    def __init__(self, size_max: int) -> None:
        self._kept: dict[str, tuple[Kept, int]] = {}  # oldest write first
        self._size = 0
        self._size_max = size_max

    def put(self, row: TaskRow) -> None:
        self.drop(row.id)
        self._kept[row.id] = (row.data.kept, len(row.data))
        self._size += len(row.data)
        while self._size > self._size_max:
            self.drop(next(iter(self._kept)))

    def drop(self, task_id: str) -> None:
        _, size = self._kept.pop(task_id, ("", 0))
        self._size -= size

    def weigh(self, task_id: str) -> list[Large] | None:
        """Returns the large values of the task; None if the task is not in memory."""
        if (found := self._kept.get(task_id)) is None:
            return None
        kept, _ = found
        return [] if isinstance(kept, str) else [Large(task_id, texts_size(kept), id(kept))]

    def document(self, task_id: str) -> dict[str, Any] | None:
        """Returns the task as JSON; do not change it."""
        kept = self._kept.get(task_id)
        if kept is None:
            return None
        document: dict[str, Any] = json.loads(kept[0]) if isinstance(kept[0], str) else kept[0]
        return document

    def get(self, task_id: str) -> Task | None:
        kept = self._kept.get(task_id)
        return None if kept is None else parse_task(_own(kept[0]))


def _own(value: Any) -> Any:
    """Returns a copy that shares only values that cannot be changed."""
    if isinstance(value, dict):
        return {key: _own(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_own(child) for child in value]
    return value


def parse_task(kept: Kept) -> Task:
    """Returns the task of a row. Fields of a newer version are ignored, although clients may send no unknown ones."""
    if isinstance(kept, str):
        return Task.model_validate_json(kept, extra="ignore")
    return Task.model_validate(kept, extra="ignore")


def put_tasks(connection: sqlite3.Connection, rows: Sequence[TaskRow], sealer: Sealer) -> None:
    for row in rows:
        new = bool(row.beside) and not _is_there(connection, row.id)
        for beside in row.beside:
            beside.write(connection, new)
        connection.execute(
            "INSERT INTO tasks (id, agent_id, context_id, status, open, updated_at, data) "
            "VALUES (?, ?, ?, ?, ?, ?, CAST(? AS TEXT)) "
            "ON CONFLICT (id) DO UPDATE SET agent_id = excluded.agent_id, context_id = excluded.context_id, "
            "status = excluded.status, open = excluded.open, updated_at = excluded.updated_at, data = excluded.data",
            (row.id, row.agent_id, row.context_id, row.status, row.open, row.updated_at, row.data.sealed(sealer)),
        )


def _is_there(connection: sqlite3.Connection, task_id: str) -> bool:
    return connection.execute("SELECT 1 FROM tasks WHERE id = ?", (task_id,)).fetchone() is not None


def select_task(connection: sqlite3.Connection, task_id: str, room: Budget) -> Task | None:
    rows = connection.execute(f"SELECT {_ROW} FROM tasks WHERE id = ?", (task_id,))  # noqa: S608 - a constant
    return next((task for task, _ in _tasks(connection, rows, room)), None)


def select_metadata(connection: sqlite3.Connection, task_id: str) -> dict[str, Any]:
    row = connection.execute("SELECT json_extract(data, '$.metadata') FROM tasks WHERE id = ?", (task_id,)).fetchone()
    found = json.loads(row[0]) if row is not None and row[0] is not None else {}
    return found if isinstance(found, dict) else {}


def select_said(connection: sqlite3.Connection, task_id: str) -> Said | None:
    """Returns the excerpt of a task's message; of a large message only the needed text leaves the database."""
    row = connection.execute(
        "SELECT json_extract(data, '$.metadata'), json_extract(data, '$.priority') FROM tasks WHERE id = ?", (task_id,)
    ).fetchone()
    if row is None:
        return None
    texts = connection.execute(
        f"SELECT CASE WHEN length(text) <= {2 * EXCERPT_END_MAX} THEN text "  # noqa: S608 - constants
        f"ELSE substr(text, 1, {EXCERPT_END_MAX}) || char(10) || substr(text, -{EXCERPT_END_MAX}) END FROM "
        "(SELECT part.value ->> '$.text' AS text FROM tasks, json_each(tasks.data, '$.message.parts') AS part "
        f"WHERE tasks.id = ? AND part.value ->> '$.type' = 'text' ORDER BY part.key LIMIT {EXCERPT_PARTS_MAX})",
        (task_id,),
    )
    return Said(ends(text for (text,) in texts), json.loads(row[0] or "{}"), row[1] or 1)


def select_open(connection: sqlite3.Connection, room: Budget) -> list[Task]:
    """Returns open tasks in order of arrival."""
    rows = connection.execute(f"SELECT {_ROW} FROM tasks WHERE open = 1 ORDER BY seq")  # noqa: S608 - a constant
    return [task for task, _ in _tasks(connection, rows, room)]


_ROW = f"seq, id, length(data), CASE WHEN length(data) < {LARGE_ROW} THEN data END"


def _tasks(connection: sqlite3.Connection, rows: sqlite3.Cursor, room: Budget) -> Generator[tuple[Task, int]]:
    """Yields the tasks of `rows`, which have the columns of `_ROW`, and the characters of their JSON. Large ones share
    their texts with all readers that have `room` already. A row that cannot be read is passed over."""
    with closing(rows):
        for seq, task_id, size, small in rows:
            try:
                kept = _own(share_large(connection, "tasks", seq, task_id, room)) if small is None else small
                task = parse_task(kept)
            except ValueError as error:
                log.error("a task cannot be read, and is passed over", task=task_id, kind=type(error).__name__)  # noqa: TRY400
                continue
            yield task, size


def find_ids(
    connection: sqlite3.Connection, prefix: str, limit: int, *, agent_id: str | None, visible_to: str | None
) -> list[str]:
    where = ["id >= ?", "id < ?"]  # a range, which the index serves; LIKE would fold case
    values = [prefix, prefix + "\U0010ffff"]
    if agent_id is not None:
        where.append(f"+agent_id = ? AND {_SINCE}")
        values.extend((agent_id, agent_id))
    if visible_to is not None:
        where.append(f"{_VISIBLE} AND {_SINCE}")
        values.extend((visible_to, visible_to, visible_to))
    rows = connection.execute(
        f"SELECT id FROM tasks WHERE {' AND '.join(where)} ORDER BY id LIMIT ?",  # noqa: S608 - constants
        (*values, max(limit, 0)),
    )
    return [task_id for (task_id,) in rows]


def select_page(connection: sqlite3.Connection, which: TaskFilter, room: Budget) -> tuple[list[Task], int]:
    """Returns a page and how many tasks there are in all. Raises InvalidRequest for a wrong cursor."""
    where, values = _conditions(which)
    total_where = " AND ".join(where) or "1"
    (total,) = connection.execute(f"SELECT count(*) FROM tasks WHERE {total_where}", values).fetchone()  # noqa: S608
    rows = _page(connection, which, _ROW, which.limit)
    tasks, size = [], 0
    with closing(_tasks(connection, rows, room)) as found:
        for task, characters in found:
            tasks.append(task)
            size += characters
            if which.size is not None and size >= which.size:
                break
    return tasks, total


def weigh(connection: sqlite3.Connection, prefix: str) -> list[Large]:
    """Returns the large ones of the first two tasks whose ids begin with `prefix`."""
    rows = connection.execute(
        "SELECT seq, id, length(data) FROM tasks WHERE id >= ? AND id < ? ORDER BY id LIMIT 2",
        (prefix, prefix + "\U0010ffff"),
    )
    return [_large(connection, *row) for row in rows if row[2] >= LARGE_ROW]


def weigh_page(connection: sqlite3.Connection, which: TaskFilter) -> list[Large]:
    """Returns the large tasks of a page. Raises InvalidRequest for a wrong cursor."""
    large, whole = [], 0
    with closing(_page(connection, which, "seq, id, length(data)", which.limit)) as rows:
        for seq, task_id, size in rows:
            whole += size
            if size >= LARGE_ROW:
                large.append(_large(connection, seq, task_id, size))
            if which.size is not None and whole >= which.size:
                break
    return large


def _large(connection: sqlite3.Connection, seq: int, task_id: str, characters: int) -> Large:
    width, digest = weigh_large(connection, "tasks", seq)
    return Large(task_id, width * characters, digest)


def has_tasks(connection: sqlite3.Connection, which: TaskFilter) -> bool:
    """Returns True if there is such a task. Raises InvalidRequest for a wrong cursor."""
    with closing(_page(connection, which, "id", 1)) as rows:
        return rows.fetchone() is not None


def _page(connection: sqlite3.Connection, which: TaskFilter, columns: str, limit: int) -> sqlite3.Cursor:
    where, values = _conditions(which)
    if which.before is not None:
        where.append("(updated_at, id) < (?, ?)")
        values.extend(_parse_cursor(which.before))
    return connection.execute(
        f"SELECT {columns} FROM tasks WHERE {' AND '.join(where) or '1'} "  # noqa: S608 - constants
        "ORDER BY updated_at DESC, id DESC LIMIT ?",
        (*values, max(limit, 0)),
    )


_VISIBLE = "(+agent_id = ? OR json_extract(data, '$.metadata.sender.sender_id') = ?)"
_SINCE = f"+seq > {BORN_TASK.format('?')}"
"""Excludes tasks of an earlier agent with the same id."""


def is_former(connection: sqlite3.Connection, task_id: str, agent_id: str) -> bool:
    row = connection.execute(
        f"SELECT 1 FROM tasks WHERE id = ? AND seq <= {BORN_TASK.format('?')}",  # noqa: S608 - a constant
        (task_id, agent_id),
    ).fetchone()
    return row is not None


def _conditions(which: TaskFilter) -> tuple[list[str], list[str]]:
    where: list[str] = []
    values: list[str] = []
    if which.context_id is not None:
        where.append("context_id = ?")
        values.append(which.context_id)
    if which.agent_id is not None:
        # A context has few tasks, an agent many: the plus keeps the planner on the context's index.
        where += ["agent_id = ?" if which.context_id is None else "+agent_id = ?", _SINCE]
        values.extend((which.agent_id, which.agent_id))
    if which.states is not None:
        # The plus again: for several states, or without an agent, the index that gives the order has the status, too.
        one_of_an_agent = len(which.states) == 1 and which.agent_id is not None and which.context_id is None
        where.append("status = ?" if one_of_an_agent else f"+status IN ({', '.join('?' * len(which.states))})")
        values.extend(sorted(which.states))
    if which.updated_since is not None:
        where.append("updated_at >= ?")
        values.append(which.updated_since)
    if which.visible_to is not None and which.visible_to != which.agent_id:
        where += [_VISIBLE, _SINCE]
        values.extend((which.visible_to, which.visible_to, which.visible_to))
    return where, values


def _parse_cursor(cursor: str) -> tuple[str, str]:
    updated_at, tilde, task_id = cursor.partition("~")
    if not tilde:
        raise InvalidRequest(f"{cursor[:80]!r} is not a cursor: give back one that a page of tasks came with")
    return updated_at, task_id
