"""Idioms that a reader abroad does not know, and what says the same in common English.

python -m scripts.wording

Docstrings, messages, help and documents are looked at, the changelog too. Exits with 1 if anything is found.
"""

import re
import subprocess
import sys
from pathlib import Path

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


if __name__ == "__main__":
    for line in (lines := found()):
        print(line)
    sys.exit(1 if lines else 0)
