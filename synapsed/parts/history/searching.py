"""Searches the history, in a thread of its own.

Words of three characters and more are found by the index of trigrams, wherever they stand in a text. The index knows no
shorter ones, which are ordinary words in Japanese: texts are then looked through, the newest first, `SCAN` of them for
a page, and the page's `next` goes on after them. No text of a person is taken for the query language of SQLite.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from synapsed.clock import iso
from synapsed.errors import Busy, InvalidRequest
from synapsed.parts.history.answers import HistoryItem, HistoryPage, HistoryStats, UsageReport, UsageRow
from synapsed.parts.history.file import Connections, connect, open_source
from synapsed.parts.history.indexing import there
from synapsed.parts.history.interface import By, HistoryFilter
from synapsed.parts.history.texts import Pattern, snippet, terms_of

TERMS_MAX = 32
"""Words of a query."""

SCAN = 20_000
"""Texts that are looked through for a page if no index helps."""

SEARCH_S = 5.0
"""Seconds that one question may take."""

OPERATIONS = 5_000
"""Operations of SQLite between two checks of a question's time."""

PAGE_TEXT = 256 * 1024
"""Characters of texts after which a page ends."""

TRIGRAM = 3

_COLUMNS = (
    "docs.id, at, kind, agent_id, task_id, context_id, thread, author, recipient, tool, state, docs.text AS text, cut"
)
_SUMS = (
    "count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), "
    "sum(cost_usd), count(cost_usd), max(at)"
)
_DAY = "date(at, 'unixepoch', 'localtime')"
_GROUPS: Final[dict[By, tuple[str, str]]] = {
    "agent": ("agent_id, NULL, NULL", "agent_id ORDER BY agent_id"),
    "day": (f"NULL, {_DAY}, NULL", f"{_DAY} ORDER BY {_DAY} DESC"),
    "task": ("agent_id, NULL, task_id", "agent_id, task_id ORDER BY max(at) DESC, task_id"),
}


class Searcher(Connections):
    """Answers questions. All but the constructor and `interrupt` belongs to one thread."""

    def __init__(self, database: Path, path: Path) -> None:
        super().__init__(database, path)
        self._until = 0.0
        self._ended = threading.Event()

    def interrupt(self) -> None:
        """Ends the present question soon, from another thread."""
        self._ended.set()

    def search(self, which: HistoryFilter) -> HistoryPage:
        terms = _terms(which)
        with self._asked() as (file, source):
            floor = 0 if _by_index(terms) else _floor(file, which, terms)
            rows, following = self._page(file, which, terms, floor)
            kept = there(source, [row[0] // 2 for row in rows])
        pattern = Pattern(terms)
        items = [_item(row, pattern, whole=which.whole) for row in rows if row[0] // 2 in kept]
        return HistoryPage(items=items, next=following, complete=True)

    def stats(self, which: HistoryFilter) -> HistoryStats:
        terms = _terms(which)
        tables, where, values = _conditions(which, terms)
        with self._asked() as (file, _):
            grouped = file.execute(
                f"SELECT kind, agent_id, {_DAY}, count(*), min(at), max(at) FROM {tables} WHERE {where} "  # noqa: S608
                "GROUP BY 1, 2, 3 ORDER BY 3, 2, 1",
                values,
            ).fetchall()
            tasks, contexts = file.execute(
                f"SELECT count(DISTINCT task_id), count(DISTINCT context_id) FROM {tables} WHERE {where}",  # noqa: S608
                values,
            ).fetchone()
        counts: tuple[dict[str, int], ...] = ({}, {}, {})
        for row in grouped:
            for names, name in zip(counts, row[:3], strict=True):
                names[name] = names.get(name, 0) + row[3]
        return HistoryStats(
            items=sum(row[3] for row in grouped),
            tasks=tasks,
            contexts=contexts,
            first=iso(min(row[4] for row in grouped)) if grouped else None,
            last=iso(max(row[5] for row in grouped)) if grouped else None,
            by_kind=counts[0],
            by_agent=counts[1],
            by_day=counts[2],
            complete=True,
        )

    def usage(self, which: HistoryFilter, by: By) -> UsageReport:
        where, values = _of_usage(which)
        columns, group = _GROUPS[by]
        with self._asked() as (file, _):
            rows = file.execute(
                f"SELECT {columns}, {_SUMS} FROM used WHERE {where} GROUP BY {group} LIMIT ?",  # noqa: S608 - constants
                (*values, which.limit + 1),
            ).fetchall()
            total = file.execute(
                f"SELECT NULL, NULL, NULL, {_SUMS} FROM used WHERE {where}",  # noqa: S608 - constants
                values,
            ).fetchone()
        return UsageReport(
            by=by,
            rows=[_usage_row(row) for row in rows[: which.limit]],
            total=_usage_row(total),
            more=len(rows) > which.limit,
            complete=True,
        )

    def knows(self, agent_id: str) -> bool:
        with self._asked() as (file, _):
            either = "EXISTS (SELECT 1 FROM docs WHERE agent_id = ?) OR EXISTS (SELECT 1 FROM used WHERE agent_id = ?)"
            return bool(file.execute(f"SELECT {either}", (agent_id, agent_id)).fetchone()[0])

    def _page(
        self, file: sqlite3.Connection, which: HistoryFilter, terms: list[str], floor: int
    ) -> tuple[list[Any], int | None]:
        """Returns the rows, and the beginning of the next page; None if there is nothing older."""
        tables, where, values = _conditions(which, terms)
        order = "found.rowid" if _by_index(terms) else "docs.id"
        before = which.before if which.before is not None else 2**62
        found = file.execute(
            f"SELECT {_COLUMNS} FROM {tables} WHERE {where} AND {order} < ? AND {order} >= ? "  # noqa: S608 - constants
            f"ORDER BY {order} DESC LIMIT ?",
            (*values, before, floor, which.limit + 1),
        )
        rows: list[Any] = []
        size = 0
        for row in found:
            if len(rows) == which.limit or (rows and which.whole and size + len(row[11]) > PAGE_TEXT):
                return rows, rows[-1][0]
            rows.append(row)
            size += len(row[11])
        return rows, floor or None

    @contextmanager
    def _asked(self) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection]]:
        """Yields both connections, on one state of the file. Raises Busy if it takes too long."""
        if self._file is None or self._source is None:
            self.close()
            self._source = open_source(self._database)
            self._file = connect(self._path, mode="ro")
            self._file.set_progress_handler(self._late, OPERATIONS)
        file, source = self._file, self._source
        self._until = time.monotonic() + SEARCH_S
        try:
            file.execute("BEGIN")
            yield file, source
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            raise Busy(
                f"the question took longer than {SEARCH_S:g} s: ask for less, by an agent, a context or a time"
            ) from None
        finally:
            self._until = float("inf")
            if file.in_transaction:
                file.execute("ROLLBACK")

    def _late(self) -> bool:
        return self._ended.is_set() or time.monotonic() > self._until


def _terms(which: HistoryFilter) -> list[str]:
    terms = terms_of(which.query)
    if len(terms) > TERMS_MAX:
        raise InvalidRequest(f"q: has {len(terms)} words, at most {TERMS_MAX} are looked for", field="q")
    return terms


def _by_index(terms: list[str]) -> bool:
    return any(len(term) >= TRIGRAM for term in terms)


def _floor(file: sqlite3.Connection, which: HistoryFilter, terms: list[str]) -> int:
    """Returns the oldest document that is searched for this page; 0 if all are searched."""
    if not terms:
        return 0
    _, where, values = _conditions(which, [])
    row = file.execute(
        f"SELECT docs.id FROM docs WHERE {where} AND docs.id < ? ORDER BY docs.id DESC LIMIT 1 OFFSET ?",  # noqa: S608
        (*values, which.before if which.before is not None else 2**62, SCAN - 1),
    ).fetchone()
    return 0 if row is None else row[0]


def _conditions(which: HistoryFilter, terms: list[str]) -> tuple[str, str, list[Any]]:
    """Returns tables, conditions and their values."""
    where, values = ["1"], list[Any]()
    tables = "docs"
    if indexed := [term for term in terms if len(term) >= TRIGRAM]:
        tables = "found JOIN docs ON docs.id = found.rowid"
        where.append("found MATCH ?")
        values.append(" AND ".join('"' + term.replace('"', '""') + '"' for term in indexed))
    for term in terms:
        if len(term) < TRIGRAM:
            where.append("docs.text LIKE ? ESCAPE '\\'")
            values.append("%" + "".join(f"\\{char}" if char in "\\%_" else char for char in term) + "%")
    if which.kinds is not None:
        where.append(f"kind IN ({', '.join('?' * len(which.kinds))})")
        values += sorted(which.kinds)
    if which.visible_to is not None:
        where.append("(+agent_id = ? OR author = ? OR recipient = ?)")
        values += [which.visible_to] * 3
    if which.context is not None:
        where.append("(context_id = ? OR thread = ?)")
        values += [which.context] * 2
    if which.since_event:
        where.append("docs.id > ?")
        values.append(2 * which.since_event + 1)  # an event has two documents at the most
    more, its = _common(which)
    return tables, " AND ".join([*where, *more]), [*values, *its]


def _of_usage(which: HistoryFilter) -> tuple[str, list[Any]]:
    where, values = _common(which)
    if which.visible_to is not None:
        where.append("agent_id = ?")
        values.append(which.visible_to)
    if which.context is not None:
        where.append("context_id = ?")
        values.append(which.context)
    if which.since_event:
        where.append("id > ?")
        values.append(which.since_event)
    return " AND ".join(["1", *where]), values


def _common(which: HistoryFilter) -> tuple[list[str], list[Any]]:
    asked: list[tuple[str, Any]] = [
        ("agent_id = ?", which.agent_id),
        ("at >= ?", which.since),
        ("at < ?", which.until),
    ]
    given = [(condition, value) for condition, value in asked if value is not None]
    return [condition for condition, _ in given], [value for _, value in given]


def _item(row: Any, pattern: Pattern, *, whole: bool) -> HistoryItem:
    doc_id, at, kind, agent_id, task_id, context_id, thread, author, recipient, tool, state, text, cut = row
    return HistoryItem(
        id=doc_id, time=iso(at), kind=kind, agent=agent_id, task=task_id, context=context_id, thread=thread,
        by=author, to=recipient, tool=tool, state=state, snippet=snippet(text, pattern.first_in(text)),
        text=text if whole else None, truncated=bool(cut),
    )  # fmt: skip


def _usage_row(row: Any) -> UsageRow:
    agent, day, task, turns, given, said, read, written, cost, priced, last = row
    return UsageRow(
        agent=agent, day=day, task=task, turns=turns, input_tokens=given, output_tokens=said, cache_read_tokens=read,
        cache_write_tokens=written, cost_usd=None if cost is None else round(cost, 6), priced=priced,
        last=None if last is None else iso(last),
    )  # fmt: skip
