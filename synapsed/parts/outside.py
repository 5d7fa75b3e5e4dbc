"""Finds parts of other distributions: each has an entry point of the group `synapsed.parts`, with its name and its
package. `synapsectl` uses this module too, so it imports little of the daemon."""

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Final

from synapsed import __version__
from synapsed.parts.list import NAMES

GROUP: Final = "synapsed.parts"


@cache
def packages() -> dict[str, str]:
    """Returns, by name and in the order of the names, the package of each part that is for this version. Of two with
    one name the first on `sys.path` counts."""
    return {name: package for name, (package, why) in _found().items() if why is None and name not in NAMES}


@cache
def unfit() -> dict[str, str]:
    """Returns the parts that are for another version of synapsed, with a phrase such as "is for synapsed …": the
    kernel's modules are public for one version only, and pip can install one version without the other."""
    return {name: why for name, (_, why) in _found().items() if why is not None and name not in NAMES}


@cache
def clashing() -> dict[str, str]:
    """Returns the packages left out because their part has the name of one of synapsed's own, with the reason."""
    why = "its part has the name of one of synapsed's own, {!r}: its entry point needs another name"
    return {package: why.format(name) for name, (package, _) in _found().items() if name in NAMES}


def missing(part: str) -> str:
    """Returns the message about a missing part, as `released_names.missing`."""
    from synapsed.model import released_names

    return released_names.missing(part, unfit().get(part, released_names.NOT_INSTALLED))


@cache
def _found() -> dict[str, tuple[str, str | None]]:
    """Returns, by name, the package of each part, and the reason if it is not for this version."""
    found: dict[str, tuple[str, str | None]] = {}
    for folder in sys.path:
        found = dict(_named_in(folder)) | found
    return {name: found[name] for name in sorted(found)}


def _named_in(folder: str) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """Yields the parts in a folder; reads it directly: loading Python's library takes ten times as long."""
    try:
        there = [entry.path for entry in os.scandir(folder) if entry.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return
    for distribution in there:
        text = _read(distribution, "entry_points.txt")
        if f"[{GROUP}]" in text:
            why = _why_unfit(_read(distribution, "METADATA"))
            yield from ((name, (package, why)) for name, package in _entries(text))


def _read(distribution: str, name: str) -> str:
    """Returns the text of a file, empty if it cannot be read."""
    try:
        with open(os.path.join(distribution, name), encoding="utf-8") as file:  # noqa: PTH118 - no pathlib
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def _why_unfit(metadata: str) -> str | None:
    """Says which synapsed it is pinned to; returns None if that is this one."""
    headers = metadata.partition("\n\n")[0]
    pin = re.search(r"^Requires-Dist: synapsed(?:\[.*\])? *\(?== *([\w.!+]+) *\)?$", headers, re.MULTILINE)
    return None if pin is None or pin[1] == __version__ else f"is for synapsed {pin[1]}, and this is {__version__}"


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yields name and package of each entry point of the group."""
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        elif section == GROUP and "=" in line and not line.startswith(("#", ";")):
            name, _, package = line.partition("=")
            yield name.strip(), package.strip()
