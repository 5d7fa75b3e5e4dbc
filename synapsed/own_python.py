"""How a Python of ours is started, so that it runs our code and nobody else's.

    python -P -E own_python.py MODULE ARGUMENT…

`python -m MODULE` takes that module, and every one that it imports, from the current folder if they are there, and
`PYTHONPATH` goes before all that is installed: a repository with a `select.py` would have it run. So nothing of ours is
started by `-m`: this file is run by its path, without the current folder and without Python's variables, finds our
packages beside itself, and calls `main` of MODULE. The variables stay in the environment, for programs that it starts.
"""

import os
import sys
from importlib import import_module
from pathlib import Path

FILE = Path(__file__).absolute()
PACKAGES = FILE.parent.parent
"""Where `synapsed` and `synapsectl` are."""

_FLAGS = ("-P", "-E")
_ALONE = ("-S", "-E", "-I")

_LIBRARIES = ("LD_LIBRARY_PATH", "DYLD_")
"""Variables by which an interpreter finds its libraries."""


def command(module: str, *arguments: str, python: str = sys.executable) -> list[str]:
    """The command line that calls `main` of `module`, which is ours; `sys.argv[1:]` are the `arguments` there."""
    return [python, *_FLAGS, str(FILE), module, *arguments]


def alone(*arguments: str, python: str = sys.executable) -> list[str]:
    """The command line for a file that takes the standard library only, or for `-c` and a program like that."""
    return [python, *_ALONE, *arguments]


def bare_environment() -> dict[str, str]:
    """The environment of a process that is to have no rights: no secret is among it."""
    return {name: value for name, value in os.environ.items() if name.startswith(_LIBRARIES)}


def _main() -> object:
    if str(PACKAGES) not in sys.path:  # it is neither installed there nor linked from there: a source tree
        sys.path.insert(0, str(PACKAGES))
    del sys.argv[0]
    return import_module(sys.argv[0]).main()


if __name__ == "__main__":
    raise SystemExit(_main())
