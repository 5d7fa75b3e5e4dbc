"""The packages of the product, those of parts that are distributions of their own among them: where each is."""

from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

OUTSIDE: Mapping[str, str] = {"fleet": "synapsed_fleet"}
"""By part, the package of each that is a distribution of its own."""

FOLDERS: Mapping[str, Path] = {
    "synapsed": ROOT / "synapsed",
    "synapsectl": ROOT / "synapsectl",
    "synapsed_fleet": ROOT / "packages" / "synapsed-fleet" / "synapsed_fleet",
}
"""By the package."""


def modules() -> Iterator[tuple[str, Path]]:
    """Yields the name of each module that is there, and its file, package by package."""
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)]), path
