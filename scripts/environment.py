"""The table in `docs/environment.md` of what never travels, made from `synapsed.inherited`.

python -m scripts.environment
"""

from collections.abc import Iterable
from pathlib import Path

from synapsed.inherited import LEFTOVERS, ON_PATH, OWN_VENV, Leftover

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "environment.md"
BEGIN = "<!-- made by python -m scripts.environment from here -->"
END = "<!-- to here -->"


def document() -> str:
    """`docs/environment.md` with its table as it is to be."""
    before, rest = DOCUMENT.read_text().split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{_table()}\n{END}{after}"


def _table() -> str:
    rows = [(row.by, _which(row), row.why) for row in LEFTOVERS]
    rows.append(("uv run, an activation", _listed(OWN_VENV), "where it is the one that synapsed is installed in"))
    rows += [(row.by, f"folders `{row.pattern}` on `PATH`", f"beside `{row.beside}`") for row in ON_PATH]
    rows.append(("debuggers", "`--inspect*` and `--debug-port` in `NODE_OPTIONS`", "all the rest of it stays"))
    lines = [f"| {by} | {which} | {why} |" for by, which, why in rows]
    return "\n".join(("| set by | what | why it stays behind |", "|---|---|---|", *lines)) + "\n"


def _which(row: Leftover) -> str:
    told = _listed(row.patterns)
    if row.values != ("*",):
        told += f", where the value is {_listed(row.values)}"
    return f"{told}, beside `{row.beside}`" if row.beside else told


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


if __name__ == "__main__":
    DOCUMENT.write_text(document())
