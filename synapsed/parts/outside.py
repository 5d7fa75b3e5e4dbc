"""Parts of other distributions: each says so by an entry point of the group `synapsed.parts`, its name and its package.

Also for `synapsectl`, so that nothing else of the daemon's is loaded here.
"""

import os
import sys
from functools import cache
from typing import Final

from synapsed.parts.list import NAMES

GROUP: Final = "synapsed.parts"


@cache
def packages() -> dict[str, str]:
    """Returns the package of each by its name. Who takes the name of a part that is here already is left out."""
    if not any(map(_may_have_one, sys.path)):
        return {}
    from importlib.metadata import entry_points

    found = entry_points(group=GROUP)
    return {one.name: one.value for one in sorted(found, key=lambda one: one.name) if one.name not in NAMES}


def _may_have_one(folder: str) -> bool:
    """Looks by itself: to load the library takes fifty times as long, and hardly anybody has a part of others."""
    try:
        there = [entry.path for entry in os.scandir(folder) if entry.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    return any(map(_names_the_group, there))


def _names_the_group(distribution: str) -> bool:
    try:
        with open(os.path.join(distribution, "entry_points.txt"), "rb") as file:  # noqa: PTH118 - no pathlib
            return f"[{GROUP}]".encode() in file.read()
    except OSError:
        return False
