"""Reads an event from the database as documents for the history.

Everything is read by SQLite's own functions for JSON, and no more of a text than is kept: a thread that waits for
SQLite does not hold the interpreter, so that an answer of megabytes costs the event loop nothing.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from synapsed.model.sender import KEY, Sender
from synapsed.parts.history.answers import HistoryKind
from synapsed.parts.history.texts import READ_MAX, Collected

_EVENTS = """
SELECT id, at, agent_id, task_id, context_id, type,
  CASE type WHEN 'taskStatus' THEN data ->> '$.state' WHEN 'toolExecution' THEN data ->> '$.status' END
FROM events WHERE id > ? ORDER BY id LIMIT ?
"""
_DATA = r"""
CASE WHEN instr(data, '\u0000') THEN replace(replace(data, '\\', '\u005c'), '\u0000', '\u0020') ELSE data END
"""
"""The JSON of a row, with blanks for its NULs: some versions of SQLite end a text there."""
_TASK = """
SELECT agent_id, context_id, data ->> '$.metadata.sender.sender_id',
  CASE json_type(data, '$.metadata.sender') WHEN 'text' THEN data ->> '$.metadata.sender' END,
  data ->> '$.metadata.sender_task_id', data ->> '$.metadata.direction', data ->> '$.metadata.reply_to',
  data ->> '$.metadata.reply.implicit', data ->> '$.metadata.reply.sender.sender_id', data ->> '$.error.message'
FROM tasks WHERE id = ?
"""
_MESSAGE = f"""
SELECT substr(part.value ->> '$.text', 1, ?), length(part.value ->> '$.text')
FROM tasks, json_each({_DATA}, '$.message.parts') AS part
WHERE tasks.id = ? AND part.value ->> '$.type' = 'text'
"""  # noqa: S608 - constants
_ANSWER = f"""
SELECT substr(part.value ->> '$.text', 1, ?), length(part.value ->> '$.text')
FROM tasks, json_each({_DATA}, '$.artifacts') AS artifact, json_each(artifact.value, '$.parts') AS part
WHERE tasks.id = ? AND part.value ->> '$.type' = 'text' AND artifact.value ->> '$.artifact_id' NOT LIKE 'answer.%'
"""  # noqa: S608 - constants
_TOOL = f"SELECT data ->> '$.tool_name', substr(({_DATA}) ->> '$.error', 1, ?) FROM events WHERE id = ?"  # noqa: S608
_LEAVES = f"""
SELECT leaf.key, substr(leaf.atom, 1, ?), length(leaf.atom) FROM events, json_tree({_DATA}, ?) AS leaf
WHERE events.id = ? AND leaf.atom IS NOT NULL
"""  # noqa: S608 - constants
_TURN = f"""
SELECT substr(json ->> '$.text', 1, ?), length(json ->> '$.text'),
  substr(json ->> '$.answer', 1, ?), length(json ->> '$.answer')
FROM (SELECT {_DATA} AS json FROM events WHERE id = ?)
"""  # noqa: S608 - constants
_USED = """
SELECT data ->> '$.turn_id', data ->> '$.input_tokens', data ->> '$.output_tokens', data ->> '$.cache_read_tokens',
  data ->> '$.cache_write_tokens', data ->> '$.cost_usd'
FROM events WHERE id = ?
"""
_ENDS: Final = frozenset({"completed", "failed", "canceled", "rejected"})
_OVER: Final = frozenset({"completed", "failed"})

type Row = tuple[int, float, str, str | None, str | None, str, str | None]
"""An event: id, time, agent, task, context, type, and its state if it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doc:
    """A row of `docs`. `asked_with`: the sender's own task that the reply to it completes."""

    id: int
    at: float
    kind: HistoryKind
    agent_id: str
    task_id: str | None
    context_id: str | None
    author: str | None
    recipient: str | None = None
    tool: str | None = None
    state: str | None = None
    cut: bool
    text: str
    asked_with: str | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """A row of `used`."""

    id: int
    at: float
    agent_id: str
    task_id: str | None
    context_id: str | None
    turn_id: str | None
    figures: tuple[Any, ...]


def read_events(source: sqlite3.Connection, after: int, limit: int) -> list[Row]:
    return source.execute(_EVENTS, (after, limit)).fetchall()


def docs_of(source: sqlite3.Connection, row: Row) -> list[Doc]:
    """Returns the documents of the event; none for most events, and none if the event or its task has been removed."""
    event_id, _, _, task_id, _, kind, state = row
    if kind == "taskStatus" and task_id is not None and (state == "submitted" or state in _ENDS):
        return list(_of_task(source, row, task_id, state))
    if kind == "toolExecution" and state in _OVER:
        return list(_of_tool(source, row, event_id))
    return list(_of_turn(source, row, event_id)) if kind == "turnSeen" else []


def used_of(source: sqlite3.Connection, row: Row) -> Used | None:
    if row[5] != "usage" or (found := source.execute(_USED, (row[0],)).fetchone()) is None:
        return None
    turn_id, *figures = found
    return Used(*row[:5], turn_id, tuple(figures))


def _of_task(source: sqlite3.Connection, row: Row, task_id: str, state: str) -> Iterator[Doc]:
    """Yields the documents of a task. A message that only passes on a reply is left out, and so is the answer of a task
    that a reply completes, unless that answer was given in words of its own: the texts that are left out stand in the
    task that was asked."""
    event_id, at, *_ = row
    found = source.execute(_TASK, (task_id,)).fetchone()
    if found is None:
        return
    agent_id, context_id, named, whole, asked_with, direction, reply_to, implicit, replier, error = found
    told = Sender.of({KEY: whole if named is None else {"sender_id": named}})
    sender = told.id if told is not None else None
    common: dict[str, Any] = {
        "id": 2 * event_id, "at": at, "agent_id": agent_id, "task_id": task_id, "context_id": context_id,
    }  # fmt: skip
    outgoing = direction == "outgoing"
    if state == "submitted":
        if not outgoing and reply_to is None:
            text, cut = _collected(source.execute(_MESSAGE, (READ_MAX, task_id)))
            yield Doc(
                **common, kind="message", author=sender, recipient=agent_id, cut=cut, text=text, asked_with=asked_with
            )
        return
    if outgoing and (implicit is None or implicit):
        return
    text, cut = _collected(source.execute(_ANSWER, (READ_MAX, task_id)))
    if not text and error:
        alone = Collected()
        alone.add(error)
        text, cut = alone.text()
    author, recipient = (replier, agent_id) if outgoing else (agent_id, sender)
    yield Doc(**common, kind="answer", author=author, recipient=recipient, state=state, cut=cut, text=text)


def _of_tool(source: sqlite3.Connection, row: Row, event_id: int) -> Iterator[Doc]:
    """Yields the tool's name, its input as `key: value`, and its result."""
    _, at, agent_id, task_id, context_id, _, state = row
    found = source.execute(_TOOL, (READ_MAX, event_id)).fetchone()
    if found is None:
        return
    name, error = found
    collected = Collected()
    collected.add(name or "")
    for part, named in (("$.input", True), ("$.output", False)):
        for key, value, size in source.execute(_LEAVES, (READ_MAX, part, event_id)):
            if collected.full:
                collected.cut = True
                break
            label = f"{key}: " if named and isinstance(key, str) else ""
            collected.add(f"{label}{value}", None if size is None else size + len(label))
    collected.add(error or "")
    text, cut = collected.text()
    yield Doc(
        id=2 * event_id, at=at, kind="tool", agent_id=agent_id, task_id=task_id, context_id=context_id,
        author=agent_id, tool=(name or "")[:200], state=state, cut=cut, text=text,
    )  # fmt: skip


def _of_turn(source: sqlite3.Connection, row: Row, event_id: int) -> Iterator[Doc]:
    """Yields the text that a person typed at the terminal, and the answer."""
    _, at, agent_id, task_id, context_id, *_ = row
    found = source.execute(_TURN, (READ_MAX, READ_MAX, event_id)).fetchone()
    if found is None:
        return
    asked, asked_size, answer, answer_size = found
    common: dict[str, Any] = {"at": at, "agent_id": agent_id, "task_id": task_id, "context_id": context_id}
    text, cut = _collected([(asked, asked_size)])
    yield Doc(**common, id=2 * event_id, kind="message", author=None, recipient=agent_id, cut=cut, text=text)
    if answer is not None:
        text, cut = _collected([(answer, answer_size)])
        yield Doc(**common, id=2 * event_id + 1, kind="answer", author=agent_id, state="completed", cut=cut, text=text)


def _collected(pieces: Any) -> tuple[str, bool]:
    collected = Collected()
    for text, size in pieces:
        if collected.full:
            collected.cut = True
            break
        collected.add(text or "", size)
    return collected.text()
