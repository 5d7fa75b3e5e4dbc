"""The A2A clients and servers from npm and PyPI that tests run: pinned, installed into caches.

    python -m tests.clients.programs install            # as `npm/package-lock.json` and `pypi/requirements.lock` say
    python -m tests.clients.programs frameworks         # as the locks in `frameworks` say

The caches are ``$SYNAPSED_CLIENT_CACHE``, by default ``${XDG_CACHE_HOME:-~/.cache}/synapsed/a2a-clients``, and the same
with ``-pypi``, ``-js`` and each framework's name behind it: frameworks do not fit into one environment (they need
different versions of the SDK, and of much else). What is there already is left alone.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.npm import MissingProgramsError, NpmCache, cache_root
from tests.support.pypi import PypiCache

__all__ = ["CACHE", "FRAMEWORKS", "JS_FRAMEWORKS", "PYPI_CACHE", "REFERENCE"]

_HERE = Path(__file__).parent
_FOLDER = Path(os.environ.get("SYNAPSED_CLIENT_CACHE") or cache_root() / "a2a-clients")
_COMMAND = "python -m tests.clients.programs install"

CACHE = NpmCache(locked=_HERE / "npm", folder=_FOLDER, what="A2A clients", command=_COMMAND)
PYPI_CACHE = PypiCache(
    locked=_HERE / "pypi" / "requirements.lock",
    folder=_FOLDER.with_name(f"{_FOLDER.name}-pypi"),
    what="A2A clients from PyPI",
    command=_COMMAND,
)

REFERENCE = NpmCache(
    locked=_HERE.parents[1] / "bench" / "javascript",
    folder=_FOLDER.with_name(f"{_FOLDER.name}-bench"),
    what="the JavaScript reference server",
    command=_COMMAND,
)
"""The server beside which `bench a2a` measures the daemon."""

_FRAMEWORKS_COMMAND = "python -m tests.clients.programs frameworks"

FRAMEWORKS = {
    locked.stem: PypiCache(
        locked=locked,
        folder=_FOLDER.with_name(f"{_FOLDER.name}-{locked.stem}"),
        what=locked.stem,
        command=_FRAMEWORKS_COMMAND,
    )
    for locked in sorted((_HERE / "frameworks").glob("*.lock"))
}
"""By name, as clients; and as servers `sdk03`, the SDK of A2A 0.3, and `synapse-a2a`."""

JS_FRAMEWORKS = NpmCache(
    locked=_HERE / "frameworks" / "npm",
    folder=_FOLDER.with_name(f"{_FOLDER.name}-js"),
    what="frameworks from npm",
    command=_FRAMEWORKS_COMMAND,
)

_SETS: dict[str, list[Callable[[], Path]]] = {
    "install": [CACHE.install, PYPI_CACHE.install, FRAMEWORKS["sdk03"].install, REFERENCE.install],
    "frameworks": [JS_FRAMEWORKS.install, *(cache.install for cache in FRAMEWORKS.values())],
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clients.programs", description="The caches of A2A clients.")
    parser.add_argument("verb", choices=sorted(_SETS))
    parser.add_argument("--optional", action="store_true", help="say so loudly, but do not fail, where it cannot")
    options = parser.parse_args(arguments)
    failed = False
    for install in _SETS[options.verb]:
        try:
            print(f"A2A clients in {install()}")
        except (MissingProgramsError, subprocess.CalledProcessError) as error:
            print(f"\n*** A2A CLIENTS NOT INSTALLED: {error} ***\n", file=sys.stderr)
            failed = True
    return 1 if failed and not options.optional else 0


if __name__ == "__main__":
    sys.exit(main())
