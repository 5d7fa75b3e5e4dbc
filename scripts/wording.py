"""Idioms that a reader abroad does not know, with the same in common English; and first words of docstrings.

python -m scripts.wording

Idioms are searched in docstrings, messages, help and documents, the changelog too. A docstring is a sentence that
begins with a verb in the third person, or a noun phrase: never with a word of `FIRST`, which begins a clause without a
main clause. `LEFT` has the rooms that are not rewritten yet. Exits with 1 if anything is found.
"""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from scripts.folders import modules

ROOT = Path(__file__).resolve().parent.parent

IDIOMS = {
    r"\banew\b": "again",
    r"\b(?:is|are) none\b": 'say what there is not: "if there is no socket", "what is no number"',
    r"\bnobody's\b": "belongs to no …",
    r"\bmay have (?:up to )?\d": "has at most …: a limit is no permission",
    r"\b(?:DESIGN|HOUSE)(?:\.md)?\b": "a document that is outside this repository: say it in docs/",
}
"""Pattern, and what to write in its place."""

PLACES = ("synapsed", "synapsectl", "packages", "scripts", "bench", "docs", "examples", "profiles", "packaging")
PLACES += ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile")

FIRST = frozenset(
    [
        "After",
        "Also",
        "Although",
        "As",
        "At",
        "Because",
        "Before",
        "Beside",
        "By",
        "Done",
        "During",
        "For",
        "From",
        "Has",
        "Have",
        "How",
        "If",
        "In",
        "Into",
        "Nobody",
        "Nothing",
        "Of",
        "On",
        "Only",
        "Since",
        "Somebody",
        "Than",
        "That",
        "Then",
        "Those",
        "Though",
        "To",
        "Under",
        "Unless",
        "Until",
        "Up",
        "What",
        "Whatever",
        "When",
        "Where",
        "Whether",
        "Which",
        "While",
        "Who",
        "Whoever",
        "Whom",
        "Whose",
        "Why",
        "With",
        "Within",
        "Without",
    ]
)
"""First words that no docstring may have."""

LEFT: dict[str, int] = {}
"""Docstrings with such a first word that a room may still have; a room that is done is not listed. The numbers only
fall."""


def found() -> list[str]:
    """A line for each idiom that is used: where, the words, and what to write."""
    listed = subprocess.run(["git", "ls-files", "-z", *PLACES], cwd=ROOT, capture_output=True, text=True, check=True)
    told = []
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if not path.is_file() or path == Path(__file__).resolve():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for pattern, instead in IDIOMS.items():
                if match := re.search(pattern, line):
                    told.append(f"{name}:{number}: {match[0]!r}: {instead}")
    return told


def first_words() -> list[str]:
    """Returns a line for each docstring that begins with a word of `FIRST`, in rooms that have more than `LEFT`."""
    rooms = defaultdict(list)
    for _, path in modules():
        for line, text in docstrings(ast.parse(path.read_text())):
            first = re.match(r"\W*([A-Za-z]*)", text)
            if first is not None and first[1] in FIRST:
                name = path.relative_to(ROOT).as_posix()
                rooms[room_of(name)].append(f"{name}:{line}: begins with {first[1]!r}: begin with a verb or a noun")
    return [line for room, lines in rooms.items() if len(lines) > LEFT.get(room, 0) for line in lines]


def docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields line and text of each docstring: of the module, of classes and functions, and those below attributes."""
    for node in ast.walk(module):
        body = getattr(node, "body", None)
        for one in body if isinstance(body, list) else []:
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
                yield one.lineno, one.value.value


def room_of(name: str) -> str:
    """Returns the room of a file: its package's folder, or the part; a whole distribution for all others."""
    package, *steps = name.split("/")[:-1]
    if package != "synapsed":
        return "/".join([package, *steps[:1]]) if package == "packages" else package
    return "/".join([package, *steps[: 2 if steps[:1] == ["parts"] else 1]])


if __name__ == "__main__":
    for line in (lines := [*found(), *first_words()]):
        print(line)
    sys.exit(1 if lines else 0)
