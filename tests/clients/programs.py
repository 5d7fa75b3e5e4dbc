"""The A2A clients from npm that tests run: pinned, installed into a cache.

    python -m tests.clients.programs install    # from npm, as `npm/package-lock.json` says; nothing to do if there

The cache is ``$SYNAPSED_CLIENT_CACHE``, by default ``${XDG_CACHE_HOME:-~/.cache}/synapsed/a2a-clients``.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.npm import MissingProgramsError, NpmCache, cache_root

__all__ = ["CACHE"]

CACHE = NpmCache(
    locked=Path(__file__).with_name("npm"),
    folder=Path(os.environ.get("SYNAPSED_CLIENT_CACHE") or cache_root() / "a2a-clients"),
    what="A2A clients",
    command="python -m tests.clients.programs install",
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clients.programs", description="The cache of A2A clients.")
    parser.add_argument("verb", choices=["install"])
    parser.add_argument("--optional", action="store_true", help="say so loudly, but do not fail, where it cannot")
    options = parser.parse_args(arguments)
    try:
        print(f"A2A clients in {CACHE.install()}")
    except (MissingProgramsError, subprocess.CalledProcessError) as error:
        print(f"\n*** A2A CLIENTS NOT INSTALLED: {error} ***\n", file=sys.stderr)
        return 0 if options.optional else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
