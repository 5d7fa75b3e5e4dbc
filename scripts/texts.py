"""All texts that people see: errors, remarks, help and its examples, findings of `doctor`, words of the page.

python -m scripts.texts [PLACE]                 one a line: file, line, kind, text; {} stands for what is filled in
python -m scripts.texts --words                 only those with a word that is explained in docs/words.md alone
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("synapsed", "synapsectl", "packages/synapsed-fleet/synapsed_fleet")

REMARKS = frozenset({"note", "remark", "sentence", "error", "exit", "warning", "say", "line"})
"""Methods that tell a person something: of the output, of a parser, of the log."""
HELPS = frozenset({"add_argument", "add_parser", "Verb", "SubVerb", "DaemonVerb"})
CONSTRUCTORS = frozenset({"Finding", "Obstacle", "LinkAlert", "Alert", "Problem", "EvidenceLink"})
"""Classes whose texts are shown as they are."""
TABLES = frozenset({"HELP", "KEYS", "EXAMPLES", "HELD", "KINDS", "WORDS", "WHERE", "NOBODY", "TYPING_KEYS", "CHOICES"})

UNEXPLAINED = re.compile(r"\b(keepers?|sinks?|park(?:s|ed|ing)?|adopt(?:s|ed|ing|ion)?|composers?|spools?)\b")
EXPLAINED = re.compile(
    r"keeper \(the process that holds|\(its sinks\)|\(a sink\)|the sinks of \[notify\]|\[notify\] has no sink|"
    r"synapsectl (?:adopt|park)\b|\[notify\.sinks|sinks\.\{\}|\[composer\]|composer\.\w+|no composer on the screen"
)
"""Words of the glossary where they are explained, and names of verbs, keys and tables, which have to be typed so."""

BETWEEN_PROCESSES = ("synapsed/keeper/",)
"""What one process says to another, and no person is shown."""


class Text(NamedTuple):
    place: str
    kind: str
    text: str


def texts() -> Iterator[Text]:
    """Yields what people see, file by file."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            place = str(file.relative_to(ROOT))
            if place.startswith(BETWEEN_PROCESSES):
                continue
            for line, kind, text in sorted(_of_module(ast.parse(file.read_text()))):
                yield Text(f"{place}:{line}", kind, text)


def unexplained(found: Iterable[Text]) -> list[Text]:
    """Returns those that take the glossary."""
    return [told for told in found if UNEXPLAINED.search(EXPLAINED.sub("", told.text))]


def _of_module(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from ((at, "error", text) for at, text in _literals(node.exc) if " " in text)
        elif isinstance(node, ast.Call) and not _logs(node.func):
            name = _name(node.func)
            kind = "help" if name in HELPS else "remark" if name in REMARKS or name in CONSTRUCTORS else ""
            if kind:
                yield from ((at, kind, text) for at, text in _literals(node) if " " in text)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(_name(one) in TABLES for one in targets):
                yield from ((at, "table", text) for at, text in _literals(node.value) if " " in text)


def _logs(function: ast.expr) -> bool:
    """A line of the daemon's log is for whoever reads that."""
    return isinstance(function, ast.Attribute) and "log" in _name(function.value)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _literals(node: ast.expr) -> Iterator[tuple[int, str]]:
    """Yields the texts in an expression, each whole, with `{}` for what is filled in."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.lineno, " ".join(node.value.split())
    elif isinstance(node, ast.JoinedStr):
        whole = "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
        yield node.lineno, " ".join(whole.split())
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                yield from _literals(value.value)
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr | ast.keyword | ast.comprehension):
                yield from _literals(child.value if isinstance(child, ast.keyword) else child)  # type: ignore[arg-type]


def main(arguments: list[str]) -> int:
    found = list(unexplained(texts()) if "--words" in arguments else texts())
    places = [one for one in arguments if not one.startswith("--")]
    for told in found:
        if not places or any(told.place.startswith(place) for place in places):
            print(f"{told.place}\t{told.kind}\t{told.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
