"""The tables in `docs/environment.md` of what never travels and of what is brought, of `synapsed.process.inherited`.

python -m scripts.environment
"""

from collections.abc import Iterable
from pathlib import Path

from synapsed.process.inherited import CONNECTION, LEFTOVERS, ON_PATH, OWN_VENV, Leftover

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "environment.md"
BEGIN = "<!-- made by python -m scripts.environment from here -->"
END = "<!-- to here -->"
BEGIN_BROUGHT = "<!-- made by python -m scripts.environment: connection -->"
END_BROUGHT = "<!-- to here: connection -->"


def document() -> str:
    """`docs/environment.md` as it is to be."""
    text = _between(DOCUMENT.read_text(), BEGIN, END, _table())
    return _between(text, BEGIN_BROUGHT, END_BROUGHT, f"{_listed(CONNECTION)}\n")


def _between(text: str, begin: str, end: str, made: str) -> str:
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{made}\n{end}{rest.split(end)[1]}"


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
