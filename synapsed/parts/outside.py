"""Parts of other distributions: each says so by an entry point of the group `synapsed.parts`, its name and its package.

Also for `synapsectl`, so that nothing else of the daemon's is loaded here.
"""

import os
import sys
from collections.abc import Iterator
from functools import cache
from typing import Final

from synapsed.parts.list import NAMES

GROUP: Final = "synapsed.parts"


@cache
def packages() -> dict[str, str]:
    """Returns the package of each by its name, in the order of the names. Who takes the name of a part that is here
    already is left out; of two with one name the first on `sys.path` counts."""
    found: dict[str, str] = {}
    for folder in sys.path:
        found = dict(_named_in(folder)) | found
    return {name: found[name] for name in sorted(found) if name not in NAMES}


def _named_in(folder: str) -> Iterator[tuple[str, str]]:
    """Looks by itself: to load Python's library for that takes ten times as long as the whole look."""
    try:
        there = [entry.path for entry in os.scandir(folder) if entry.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return
    for distribution in there:
        try:
            with open(os.path.join(distribution, "entry_points.txt"), encoding="utf-8") as file:  # noqa: PTH118 - no pathlib
                text = file.read()
        except (OSError, UnicodeDecodeError):
            continue
        if f"[{GROUP}]" in text:
            yield from _entries(text)


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yields name and package of each entry point of the group."""
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        elif section == GROUP and "=" in line and not line.startswith(("#", ";")):
            name, _, package = line.partition("=")
            yield name.strip(), package.strip()
