"""Programs of the ACP registry that no profile was written for: pinned, installed into a cache.

    python -m tests.real.acp_programs install    # as `npm/acp/package-lock.json` says

The cache is ``$SYNAPSED_ACP_CACHE``, by default ``${XDG_CACHE_HOME:-~/.cache}/synapsed/acp-programs``.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.npm import MissingProgramsError, NpmCache, cache_root

__all__ = ["ADAPTERS", "NPM", "Adapter", "install", "missing"]

NPM = NpmCache(
    locked=Path(__file__).parent / "npm" / "acp",
    folder=Path(os.environ.get("SYNAPSED_ACP_CACHE") or cache_root() / "acp-programs"),
    what="programs of the ACP registry",
    command="python -m tests.real.acp_programs install",
)


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """`configured_as` is the program whose configuration it reads. `model` is one that it knows: of another it warns in
    each turn, in a chunk that nothing tells from the answer."""

    configured_as: str
    model: str | None = None

    def command(self, name: str) -> list[str]:
        return [str(NPM.folder / "node_modules" / ".bin" / name)]


ADAPTERS: Mapping[str, Adapter] = {
    "codex-acp": Adapter(configured_as="codex", model="gpt-5.2"),
    "claude-code-acp": Adapter(configured_as="claude"),
}


def missing() -> str | None:
    """Why the programs cannot be run, in a sentence, or None if they can."""
    return NPM.missing()


def install() -> Path:
    """Installs what is not there. subprocess.CalledProcessError, MissingProgramsError."""
    return NPM.install()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real.acp_programs", description="The cache of ACP programs.")
    parser.add_argument("verb", choices=["install", "check"])
    if parser.parse_args(arguments).verb == "install":
        try:
            install()
        except (MissingProgramsError, subprocess.CalledProcessError) as error:
            print(f"\n*** ACP PROGRAMS NOT INSTALLED: {error} ***\n", file=sys.stderr)
            return 1
    reason = missing()
    print(reason or f"ACP programs in {NPM.folder}")
    return 0 if reason is None else 1


if __name__ == "__main__":
    sys.exit(main())
