"""Another maker's terminal without a screen, xterm.js', pinned, installed into a cache; and what it understands.

    python -m tests.terminal.headless install    # as `npm/package-lock.json` says

The cache is ``$SYNAPSED_HEADLESS_CACHE``, by default ``${XDG_CACHE_HOME:-~/.cache}/synapsed/headless``.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.support.npm import NpmCache, cache_root

__all__ = ["CACHE", "Headless", "Understood", "missing"]

_HERE = Path(__file__).parent

CACHE = NpmCache(
    locked=_HERE / "npm",
    folder=Path(os.environ.get("SYNAPSED_HEADLESS_CACHE") or cache_root() / "headless"),
    what="terminal of another maker",
    command="python -m tests.terminal.headless install",
)


def missing() -> str | None:
    """Why it cannot be run, in a sentence, or None if it can."""
    return CACHE.missing() if shutil.which("node") else "node is not on PATH"


class Understood(NamedTuple):
    """A sequence as it was understood: `kind` is ``csi``, ``esc``, ``osc``, ``dcs``, ``execute`` or ``answer``; `name`
    is all of it but numbers and words, `body` those."""

    kind: str
    name: str
    body: str


class Headless:
    """A process of node with the terminal in it. Use it as a context manager."""

    def __enter__(self) -> Self:
        package = CACHE.folder / "node_modules" / "@xterm" / "headless" / "lib-headless" / "xterm-headless.js"
        self._node = subprocess.Popen(
            ["node", str(_HERE / "listener.cjs"), str(package)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        self._node.stdin.close()
        self._node.stdout.close()
        self._node.wait(timeout=60)

    def understands(self, data: bytes) -> list[Understood]:
        """What a terminal that was reset takes from `data`, but for text; what it would answer is among it."""
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        self._node.stdin.write(data.hex().encode() + b"\n")
        self._node.stdin.flush()
        return [Understood(*one) for one in json.loads(self._node.stdout.readline())]
