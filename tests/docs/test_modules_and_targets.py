"""The targets of make and the modules that the pages name: each exists, and a module can be run."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.reading import DOCS, PAGES, ROOT

TEXTS = [
    *PAGES,
    ROOT / "CONTRIBUTING.md",
    *sorted((DOCS / "adr").glob("*.md")),
    *sorted((DOCS / "releases").glob("*.md")),
]
MAKE = re.compile(r"(?:`|\$ )make ((?:[a-z]+(?:-[a-z]+)*\b ?)+)")
RUN = re.compile(r"python3? (?:-I )?-m ([a-z_]\w*(?:\.\w+)*)")
FOLDERS = ("synapsed", "synapsectl", "synapsed_fleet", "scripts", "tests", "bench")
TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


def named(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    for page in TEXTS:
        for match in pattern.finditer(page.read_text()):
            yield str(page.relative_to(ROOT)), match[1]


def file_of(module: str) -> Path | None:
    base = ROOT / "packages/synapsed-fleet" if module.startswith("synapsed_fleet") else ROOT
    path = base.joinpath(*module.split("."))
    found = (path / "__main__.py", path.with_suffix(".py"))
    return next((one for one in found if one.is_file()), None)


def test_each_target_of_make_exists() -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
    found = list(named(MAKE))
    assert len(found) > 50
    assert [(page, word) for page, words in found for word in words.split() if word not in targets] == []


def test_each_module_that_is_run_exists() -> None:
    ours = [(page, module) for page, module in named(RUN) if module.partition(".")[0] in FOLDERS]
    assert len(ours) > 20
    files = {module: file_of(module) for _, module in ours}
    assert [one for one, file in files.items() if file is None or "__main__" not in file.read_text() + file.name] == []
