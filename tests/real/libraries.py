"""Small programs that ask by libraries which draw menus, dialogs and questions: pinned, installed into caches.

    python -m tests.real.libraries install    # as `npm/libraries` and `pypi/libraries.lock` say
    python -m tests.real.libraries check      # exit code 0 if all are there

What Debian has (dialog, whiptail, fzf) is taken where it is installed. A program is named by its language, its library
and the kind of what it asks: ``py pick multi``, ``js ink select``, ``sh dialog menu``.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.npm import MissingProgramsError, NpmCache, cache_root
from tests.support.pypi import PypiCache

__all__ = ["argv", "install", "missing"]

_HERE = Path(__file__).parent
_COMMAND = "python -m tests.real.libraries install"
_FOLDER = Path(os.environ.get("SYNAPSED_LIBRARIES_CACHE") or cache_root() / "libraries")

NPM = NpmCache(locked=_HERE / "npm" / "libraries", folder=_FOLDER / "npm", what="libraries that ask", command=_COMMAND)
PYPI = PypiCache(
    locked=_HERE / "pypi" / "libraries.lock",
    folder=_FOLDER / "pypi",
    what="libraries from PyPI that ask",
    command=_COMMAND,
)


def missing(program: str) -> str | None:
    """Why `program` cannot be run, in a sentence, or None if it can."""
    language, library, _ = program.split()
    if language == "sh":
        return None if shutil.which(library) is not None else f"{library} is not installed"
    return (NPM if language == "js" else PYPI).missing()


def install() -> None:
    """Installs what is not there. subprocess.CalledProcessError, MissingProgramsError."""
    NPM.install()
    PYPI.install()
    shutil.copyfile(_HERE / "npm" / "libraries" / "ask.mjs", NPM.folder / "ask.mjs")


def argv(program: str) -> list[str]:
    """The command that runs `program`."""
    language, _, asked = program.partition(" ")
    if language == "js":
        return ["node", str(NPM.folder / "ask.mjs"), asked]
    if language == "py":
        return [PYPI.program("python"), str(_HERE / "pypi" / "libraries.py"), asked]
    return ["sh", str(_HERE / "libraries.sh"), asked]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real.libraries", description="The caches of libraries.")
    parser.add_argument("verb", choices=["install", "check"])
    if parser.parse_args(arguments).verb == "install":
        try:
            install()
        except (MissingProgramsError, subprocess.CalledProcessError) as error:
            print(f"\n*** LIBRARIES NOT INSTALLED: {error} ***\n", file=sys.stderr)
            return 1
    reason = NPM.missing() or PYPI.missing()
    print(reason or f"libraries in {_FOLDER}")
    return 0 if reason is None else 1


if __name__ == "__main__":
    sys.exit(main())
