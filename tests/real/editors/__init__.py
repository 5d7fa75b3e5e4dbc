"""Clients of ACP that are not ours: the protocol's Python SDK and acpx, pinned, installed into caches.

    python -m tests.real.editors install    # as `npm/package-lock.json` and `requirements.lock` say

The caches are ``npm`` and ``pypi`` below ``$SYNAPSED_EDITORS_CACHE``, by default
``${XDG_CACHE_HOME:-~/.cache}/synapsed/acp-clients``.
"""

import os
from pathlib import Path

from tests.support.npm import NpmCache, cache_root
from tests.support.pypi import PypiCache

__all__ = ["NPM", "PYPI", "SDK_CLIENT", "install", "missing"]

_HERE = Path(__file__).parent
_FOLDER = Path(os.environ.get("SYNAPSED_EDITORS_CACHE") or cache_root() / "acp-clients")
_COMMAND = "python -m tests.real.editors install"

NPM = NpmCache(locked=_HERE / "npm", folder=_FOLDER / "npm", what="ACP clients from npm", command=_COMMAND)
PYPI = PypiCache(
    locked=_HERE / "requirements.lock", folder=_FOLDER / "pypi", what="ACP clients from PyPI", command=_COMMAND
)

SDK_CLIENT = _HERE / "sdk_client.py"
"""Run by the Python of `PYPI`."""


def missing() -> str | None:
    """Why the clients cannot be run, in a sentence, or None if they can."""
    return NPM.missing() or PYPI.missing()


def install() -> None:
    """Installs what is not there. subprocess.CalledProcessError, MissingProgramsError."""
    NPM.install()
    PYPI.install()
