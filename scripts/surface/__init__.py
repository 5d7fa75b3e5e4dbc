"""The outside of the product as text in `surface/`: what a person, a client, a script or a database of before meets.

python -m scripts.surface [--check] [--folder FOLDER] [FILE …]   (`make surface` writes them all)

Each line says one thing and stands for itself, and the lines of a file are sorted: a diff shows what has changed, and
what goes with a part of the product takes its lines along and changes no other. No line names a module, a folder of
this machine, its terminal or locale, or the version of the day.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from scripts.surface import api, codes, configuration, databases, verbs

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "surface"

FILES: Mapping[str, Callable[[], Iterable[str]]] = {
    "alert-codes.txt": codes.alerts,
    "config-errors.txt": configuration.errors,
    "config-keys.txt": configuration.keys,
    "databases.txt": databases.lines,
    "environment.txt": codes.environment,
    "error-codes.txt": codes.errors,
    "events.txt": api.events,
    "exit-codes.txt": codes.exits,
    "formats.txt": databases.formats,
    "mcp-tools.txt": verbs.tools,
    "metrics.txt": codes.metrics,
    "openapi.txt": api.openapi,
    "profile-errors.txt": configuration.profile_errors,
    "profile-keys.txt": configuration.profile_keys,
    "routes.txt": api.routes,
    "synapsectl.txt": verbs.synapsectl,
    "synapsed.txt": verbs.synapsed,
    "task-error-codes.txt": codes.tasks,
}


def made(names: Iterable[str] = ()) -> dict[str, str]:
    """The text of each file as it is to be; of those of `names` alone if there are any."""
    return {name: "".join(f"{line}\n" for line in sorted(set(FILES[name]()))) for name in names or FILES}


def written(folder: Path, names: Iterable[str] = ()) -> dict[str, str]:
    """The text of each file that is there; of those of `names` alone if there are any."""
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.name: path.read_text(encoding="utf-8") for path in there if not names or path.name in names}


def write(texts: Mapping[str, str], folder: Path) -> None:
    """Write the files, and remove those that are made no more."""
    folder.mkdir(exist_ok=True)
    for name in written(folder).keys() - FILES.keys():
        (folder / name).unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The lines that are gone and those that have come, file by file."""
    told: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        place = f"surface/{name}"
        told += difflib.unified_diff(old, new, place, place, "as committed", "as it is", n=0, lineterm="")
    return told
