"""What is on the disk: the databases, as they are just made, and the versions of what is kept and spoken."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from synapsed.cli import versions
from synapsed.store.schema import migrate

OF_PARTS = {"history.db": "synapsed.parts.history.file"}
"""Files of parts, and the modules that make them."""

_COMMENT = re.compile(r"--[^\n]*")
_OUTSIDE = re.compile(r"[(),]|'[^']*'")


def lines() -> Iterator[str]:
    """Each database with its columns, indexes, triggers, and the numbers that it is known by."""
    with closing(sqlite3.connect(":memory:", autocommit=True)) as connection:
        migrate(connection)
        yield from _database("synapsed.db", connection)
    for name, module in OF_PARTS.items():
        if find_spec(module.rpartition(".")[0]) is not None:
            with (
                TemporaryDirectory() as folder,
                closing(import_module(module).open_file(Path(folder) / name)) as connection,
            ):
                yield from _database(name, connection)


def _database(name: str, connection: sqlite3.Connection) -> Iterator[str]:
    for pragma in ("user_version", "application_id", "auto_vacuum"):
        (value,) = connection.execute(f"PRAGMA {pragma}").fetchone()
        yield f"{name} {pragma}: {value}"
    # The tables behind a full text are SQLite's, and of its version.
    behind = {row[1] for row in connection.execute("PRAGMA table_list") if row[2] == "shadow"}
    for kind, called, table, sql in connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"):
        if sql is None or table in behind or called.startswith("sqlite_"):
            continue
        plain = " ".join(_COMMENT.sub("", sql).split())
        if kind == "table" and not plain.startswith("CREATE VIRTUAL"):
            yield from (f"{name} table {called}: {piece}" for piece in _pieces(plain))
        else:
            yield f"{name} {kind} {called}: {plain}"


def _pieces(sql: str) -> Iterator[str]:
    """The columns and constraints of a table, and what stands behind them."""
    begin = sql.index("(") + 1
    depth, start = 1, begin
    for found in _OUTSIDE.finditer(sql, begin):
        sign = found[0]
        depth += (sign == "(") - (sign == ")")
        if (sign == "," and depth == 1) or depth == 0:
            yield sql[start : found.start()].strip()
            start = found.end()
        if depth == 0:
            break
    if rest := sql[start:].strip():
        yield f"({rest})"


def formats() -> Iterator[str]:
    """What `synapsed version --json` says, but for the version itself."""
    for what, told in versions().items():
        if isinstance(told, dict):
            yield from (f"{what} {name}: {value}" for name, value in told.items())
