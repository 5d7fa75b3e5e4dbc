"""The A2A clients from npm and PyPI that tests run: pinned, installed into caches.

    python -m tests.clients.programs install    # as `npm/package-lock.json` and `pypi/requirements.lock` say

The caches are ``$SYNAPSED_CLIENT_CACHE``, by default ``${XDG_CACHE_HOME:-~/.cache}/synapsed/a2a-clients``, and the same
with ``-pypi``. What is there already is left alone.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.npm import MissingProgramsError, NpmCache, cache_root
from tests.support.pypi import PypiCache

__all__ = ["CACHE", "PYPI_CACHE"]

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


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clients.programs", description="The caches of A2A clients.")
    parser.add_argument("verb", choices=["install"])
    parser.add_argument("--optional", action="store_true", help="say so loudly, but do not fail, where it cannot")
    options = parser.parse_args(arguments)
    failed = False
    for install in (CACHE.install, PYPI_CACHE.install):
        try:
            print(f"A2A clients in {install()}")
        except (MissingProgramsError, subprocess.CalledProcessError) as error:
            print(f"\n*** A2A CLIENTS NOT INSTALLED: {error} ***\n", file=sys.stderr)
            failed = True
    return 1 if failed and not options.optional else 0


if __name__ == "__main__":
    sys.exit(main())
