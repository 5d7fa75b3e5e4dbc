"""Starts a Python that runs only our code.

    python -P -E own_python.py MODULE ARGUMENT…

`python -m MODULE` takes that module, and every one that it imports, from the current folder if they are there, and
`PYTHONPATH` goes before all that is installed: a repository with a `select.py` would have it run. So our own processes
are not started by `-m`: this file is run by its path, without the current folder and without Python's variables, finds
our packages beside itself, and calls `main` of MODULE. The variables stay in the environment, for programs that it
starts.
"""

import os
import sys

# Paths are text, and only modules are used that Python loads at its start: see `leave_this_folder`.
FILE = os.path.abspath(__file__)  # noqa: PTH100
PACKAGES = os.path.dirname(os.path.dirname(FILE))  # noqa: PTH120
"""The folder of `synapsed` and `synapsectl`."""

_FLAGS = ("-P", "-E")
_ALONE = ("-S", "-E", "-I")

_LIBRARIES = ("LD_LIBRARY_PATH", "DYLD_")
"""Variables by which an interpreter finds its libraries."""


def command(module: str, *arguments: str, python: str = sys.executable) -> list[str]:
    """Returns the command line that calls `main` of our `module`; `sys.argv[1:]` are the `arguments` there."""
    return [python, *_FLAGS, FILE, module, *arguments]


def installed(module: str, *arguments: str, python: str = sys.executable) -> list[str]:
    """Returns the command line of a program that is installed as a module beside `python`, such as pip."""
    return [python, *_FLAGS, "-m", module, *arguments]


def alone(*arguments: str, python: str = sys.executable) -> list[str]:
    """Returns the command line for a file that uses the standard library only, or for `-c` and such a program."""
    return [python, *_ALONE, *arguments]


def bare_environment() -> dict[str, str]:
    """Returns the environment of a process without rights: it has no secret."""
    return {name: value for name, value in os.environ.items() if name.startswith(_LIBRARIES)}


def leave_this_folder() -> None:
    """Prevents imports from the current folder: `PYTHONPATH` may name it, by an empty entry too, and so may a start of
    the tool by `-m`. The installed scripts call this, because they obey the variable; a folder with an absolute path is
    the person's choice."""
    places = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not os.path.isabs(place)]  # noqa: PTH117
    try:
        named = {"", *places, *map(os.path.abspath, places), os.getcwd()}  # noqa: PTH109
    except OSError:  # the folder is gone, with all its files
        return
    sys.path[:] = [place for place in sys.path if place not in named or place == PACKAGES]


def open_streams() -> None:
    """Opens stdin, stdout and stderr: one that was closed becomes the null device. Otherwise the next opened file would
    take its number, and Python has None for the stream."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free: this one
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115 - it stays
            setattr(sys, name, stream)


def hear_of_children() -> None:
    """Takes back that SIGCHLD is ignored, and signals are blocked, as a process inherits both from its parent: it could
    not wait for its children."""
    import _signal  # type: ignore[import-not-found]  # typeshed has none

    if _signal.getsignal(_signal.SIGCHLD) == _signal.SIG_IGN:
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def _main() -> object:
    hear_of_children()
    if PACKAGES not in sys.path:  # a source tree, which is neither installed nor linked
        sys.path.insert(0, PACKAGES)
    del sys.argv[0]
    return __import__(sys.argv[0], fromlist=["main"]).main()


if __name__ == "__main__":
    raise SystemExit(_main())
