"""Versions of programs: found in their output, or in the files of their package (npm's package.json, Python's
dist-info) if the program is not run; compared with each other, and with the one that a profile was tested on.

Some programs take longer to print their version than a start can wait. The person's tool imports this module too.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synapsed.shared.regex import regex

PRINTED = re.compile(r"\d+(?:\.\d+)+(?:-[0-9A-Za-z][0-9A-Za-z.-]*)?", re.MULTILINE)
"""A version as most programs print it."""

_RELEASE = regex(r"(?P<numbers>\d+(?:\.\d+)*)(?P<preview>-[0-9A-Za-z.-]+)?(?:\+.*)?")
NUMBERS_MAX = 8


def key(version: str) -> tuple[int, ...] | None:
    """Returns the sort key of a version: its numbers, a preview before its release. None if it is not a version."""
    found = _RELEASE.fullmatch(version.removeprefix("v"))
    if found is None:
        return None
    numbers = [int(number) for number in found["numbers"].split(".")[:NUMBERS_MAX]]
    return (*numbers, *[0] * (NUMBERS_MAX - len(numbers)), 0 if found["preview"] else 1)


def find(pattern: re.Pattern[str], printed: str) -> str | None:
    """Returns the version in what a program `printed`: the first match of `pattern`, or its group `version`."""
    found = pattern.search(printed)
    if found is None:
        return None
    return found["version"] if "version" in found.re.groupindex else found[0]


def within(version: str, since: str | None, below: str | None) -> bool:
    """Returns whether `version` is one from `since` on and before `below`; False if it cannot be compared."""
    number = key(version)
    first, end = (None if bound is None else key(bound) for bound in (since, below))
    return number is not None and (first is None or first <= number) and (end is None or number < end)


def drift(version: str | None, *, verified: str | None, since: str | None) -> str | None:
    """Returns a note for the person about a program whose version is not the one that its profile was `verified` on;
    None if there is nothing to say. `since`: the oldest version that the profile is known to work with. An empty
    `version`: the program was asked for it, and did not print it."""
    if version == "" and verified is not None:
        return f"profile verified on {verified}, and its version is not known: the program did not print it"
    if version is None or verified is None or version == verified:
        return None
    told = f"profile verified on {verified}, this is {version}"
    if since is not None and within(version, None, since):
        return f"{told}, older than any it is known to work with ({since} and later): update it"
    return told


READ_MAX = 1 << 20
"""Bytes of a package's files that are read."""
FOLDERS_MAX = 6
"""Number of folders above a program that are searched for its package.json."""
_VERSION = regex(r"^Version: (?P<version>\S+)\s*$", re.MULTILINE)


def package_version(program: str) -> str | None:
    """Returns the version of the package that installed `program`, an absolute path; None if no package claims it."""
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
    """Returns whether a package in `folder` lists `program` as one of its own."""
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
    """Yields the entry-point files of the packages below the prefix of an environment."""
    try:
        yield from sorted(prefix.glob("lib/python3*/site-packages/*.dist-info/entry_points.txt"))
    except OSError:
        return
