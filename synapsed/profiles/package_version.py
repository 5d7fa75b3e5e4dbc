"""The version of a program as its package says it: npm's package.json, Python's dist-info. The program is not run.

Some programs take longer to say it themselves than a start can wait for. The person's tool imports it too.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synapsed.profiles.releases import key

__all__ = ["package_version"]

READ_MAX = 1 << 20
"""Bytes of a package's files that are read."""
FOLDERS_MAX = 6
"""So far above a program its package.json is looked for."""
_VERSION = re.compile(r"^Version: (?P<version>\S+)\s*$", re.MULTILINE)


def package_version(program: str) -> str | None:
    """The version of the package that has installed `program`, an absolute path; None where none says that it has."""
    path = Path(os.path.realpath(program))
    found = _of_npm(path) or _of_python(Path(program), path)
    return found if found is not None and key(found) is not None else None


def _read(file: Path) -> str:
    with file.open("rb") as source:
        return source.read(READ_MAX).decode("utf-8", "replace")


def _of_npm(program: Path) -> str | None:
    for folder in list(program.parents)[:FOLDERS_MAX]:
        try:
            package: Any = json.loads(_read(folder / "package.json"))
        except (OSError, ValueError, RecursionError):
            package = None
        if isinstance(package, dict) and isinstance(package.get("version"), str) and "bin" in package:
            return package["version"] if _names(package["bin"], folder, program) else None
        if folder.name == "node_modules":
            return None
    return None


def _names(binaries: object, folder: Path, program: Path) -> bool:
    """Whether a package in `folder` says that `program` is one of its own."""
    named = binaries.values() if isinstance(binaries, dict) else [binaries]
    return any(isinstance(each, str) and os.path.realpath(folder / each) == str(program) for each in named)


def _of_python(program: Path, resolved: Path) -> str | None:
    for path in (resolved, program):
        for entry_points in _entry_points(path.parent.parent):
            try:
                if re.search(rf"^{re.escape(path.name)}\s*=", _read(entry_points), re.MULTILINE) is None:
                    continue
                found = _VERSION.search(_read(entry_points.with_name("METADATA")).partition("\n\n")[0])
            except OSError:
                continue
            return found["version"] if found is not None else None
    return None


def _entry_points(prefix: Path) -> Iterator[Path]:
    """Those of the packages below the prefix of an environment."""
    try:
        yield from sorted(prefix.glob("lib/python3*/site-packages/*.dist-info/entry_points.txt"))
    except OSError:
        return
