"""Small programs that ask by libraries which draw menus, dialogs and questions: pinned, installed into caches.

    python -m tests.real.libraries install    # as `npm/libraries` and `pypi/libraries.lock` say
    python -m tests.real.libraries check      # exit code 0 if all are there

What Debian has is taken where it is installed: dialog, whiptail, python3-newt, fzf, peco, fzy, percol, iselect;
ruby-tty-prompt, ruby-highline; libterm-choose-perl, libterm-ui-perl; golang-go, and golang-github- with
charmbracelet-bubbletea-dev, charmbracelet-bubbles-dev, alecaivazis-survey-dev, manifoldco-promptui-dev, rivo-tview-dev.

A program is named by its language, its library and the kind of what it asks: ``py pick multi``, ``js ink select``, ``sh
dialog menu``.
"""

import argparse
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
_DEBIAN = _HERE / "debian"
_GO = _FOLDER / "ask-go"
_GO_SOURCES = Path("/usr/share/gocode")
_LOADED: Mapping[str, tuple[str, ...]] = {
    "newt": ("/usr/bin/python3", "-c", "import snack"),
    "tty": ("ruby", "-e", "require 'tty-prompt'"),
    "highline": ("ruby", "-e", "require 'highline'"),
    "choose": ("perl", "-MTerm::Choose", "-e1"),
    "termui": ("perl", "-MTerm::UI", "-e1"),
}
"""What ends with 0 where Debian's package of the library is installed."""


def missing(program: str) -> str | None:
    """Why `program` cannot be run, in a sentence, or None if it can."""
    language, library, _ = program.split()
    if language == "go":
        return None if _GO.exists() else "Debian's Go libraries are not installed"
    if library in _LOADED:
        return None if _loads(library) else f"{library} is not installed"
    if language == "sh":
        return None if shutil.which(library) is not None else f"{library} is not installed"
    return (NPM if language == "js" else PYPI).missing()


@functools.cache
def _loads(library: str) -> bool:
    try:
        return subprocess.run(_LOADED[library], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def install() -> None:
    """Installs what is not there. subprocess.CalledProcessError, MissingProgramsError."""
    NPM.install()
    PYPI.install()
    shutil.copyfile(_HERE / "npm" / "libraries" / "ask.mjs", NPM.folder / "ask.mjs")
    if shutil.which("go") is not None and (_GO_SOURCES / "src/github.com/charmbracelet/bubbletea").is_dir():
        build = ["go", "build", "-o", str(_GO), str(_DEBIAN / "ask.go")]
        subprocess.run(build, env={**os.environ, "GO111MODULE": "off", "GOPATH": str(_GO_SOURCES)}, check=False)


def argv(program: str) -> list[str]:
    """The command that runs `program`."""
    language, _, asked = program.partition(" ")
    if language == "go":
        return [str(_GO), asked]
    if language in ("rb", "pl"):
        return ["ruby" if language == "rb" else "perl", str(_DEBIAN / f"ask.{language}"), asked]
    if asked.startswith("newt "):
        return ["/usr/bin/python3", str(_HERE / "pypi" / "libraries.py"), asked]
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
