"""The wheels as a person has them: built and installed once for a run, with the locked dependencies and no checkout.

Nothing is asked of the network: the dependencies are those of the tests' own environment, by their folder. What that
has of the checkout is a `.pth` of its own, which counts in the folder of an environment only.
"""

import fcntl
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.support.daemon import PATIENCE_S

ROOT = Path(__file__).parents[2]

HOOK = "scripts.build_hook"
"""The module of the checkout that the building runs: named here for `tests/runs/reach.py`."""


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with the wheels."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def python(self) -> Path:
        return self.bin / "python"

    @property
    def tool(self) -> Path:
        return self.bin / "synapsectl"

    @property
    def daemon(self) -> Path:
        return self.bin / "synapsed"


def install_once(folder: Path) -> Installed:
    """Returns the environment in `folder`; the first of several processes that ask for it makes it."""
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "done"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            _install(folder)
            done.touch()
    return Installed(folder / "venv")


def _install(folder: Path) -> None:
    for source in (ROOT, ROOT / "packages" / "synapsed-fleet"):
        _run("-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), source=source)
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv/bin/python"
    pip = ("-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index", "--no-compile")
    _run(*pip, *map(str, folder.glob("*.whl")))
    own = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
    others = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (own / "dependencies.pth").write_text("".join(f"{place}\n" for place in others))


def _run(*arguments: str, source: Path = ROOT) -> None:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=source, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
