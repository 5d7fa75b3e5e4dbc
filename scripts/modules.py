"""`docs/modules.md`, the map of all modules, and the list of parts in `docs/architecture.md`: both made from the first
sentence of each docstring.

python -m scripts.modules
"""

import ast
import re
from pathlib import Path

from scripts.folders import FOLDERS, OUTSIDE
from synapsed.parts.list import NAMES

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
MAP = ROOT / "docs" / "modules.md"
BEGIN = "<!-- made by python -m scripts.modules from here -->"
END = "<!-- to here -->"
INTRODUCTION = """# Every module

Made by `python -m scripts.modules`. What they are together: [architecture.md](architecture.md).
"""


def documents() -> dict[Path, str]:
    """Returns both pages as they are to be."""
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    return {PAGE: f"{before}{BEGIN}\n{_parts()}{END}{after}", MAP: f"{INTRODUCTION}\n{_rooms()}"}


def _parts() -> str:
    """A line a part, in the order of their list."""
    folders = {name: FOLDERS["synapsed"] / "parts" / name for name in NAMES}
    folders |= {part: FOLDERS[package] for part, package in OUTSIDE.items()}
    return "".join(
        f"- [{name}](../{folder.relative_to(ROOT)}/): {first_sentence(folder / 'face.py')}\n"
        for name, folder in folders.items()
    )


def _rooms() -> str:
    """A heading for each folder with modules, and below it a line a module."""
    pieces = []
    for folder in sorted({path.parent for path in _modules()}):
        named = folder.relative_to(ROOT).as_posix()
        modules = [path for path in _modules() if path.parent == folder and path.name != "__init__.py"]
        lines = [f"- [{path.stem}](../{path.relative_to(ROOT)}): {first_sentence(path)}" for path in modules]
        face = folder / "__init__.py"
        said = f"{first_sentence(face)}\n\n" if face.read_text().strip() else ""
        pieces.append(f"## `{named}/`\n\n{said}" + "\n".join(lines) + "\n")
    return "\n".join(pieces)


def _modules() -> list[Path]:
    return sorted(path for folder in FOLDERS.values() for path in folder.rglob("*.py"))


def first_sentence(path: Path) -> str:
    """Of a module's docstring, on one line. Raises ValueError if it has no docstring."""
    said = ast.get_docstring(ast.parse(path.read_text()))
    if not said:
        raise ValueError(f"{path.relative_to(ROOT)} has no docstring: say in one sentence what the module is for")
    words = " ".join(said.split("\n\n")[0].split())
    return re.split(r"(?<=[.;])\s", words)[0].rstrip(".:;") + "."


if __name__ == "__main__":
    for path, text in documents().items():
        path.write_text(text)
