"""Programs of the ACP registry, without a profile: pinned, two of them installed into a cache of their own.

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

from tests.real import shipped
from tests.real.programs import Prepared
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
    """`configured_as` is the program whose configuration it reads, or that it is, with `arguments`. `model` is one that
    it knows: of another it warns in each turn, in a chunk that nothing tells from the answer. `tells` is one of the
    slash commands that it tells of, if it tells any."""

    configured_as: str
    arguments: tuple[str, ...] = ()
    model: str | None = None
    tells: str | None = None

    def command(self, name: str, prepared: Prepared) -> list[str]:
        if self.arguments:
            return [*prepared.argv, *self.arguments]
        return [str(NPM.folder / "node_modules" / ".bin" / name)]


ADAPTERS: Mapping[str, Adapter] = {
    "codex-acp": Adapter(configured_as="codex", model="gpt-5.2", tells="compact"),
    "claude-code-acp": Adapter(configured_as="claude", tells="compact"),
    "gemini": Adapter(configured_as="gemini", arguments=("--acp",), tells="init"),
    "opencode": Adapter(configured_as="opencode", arguments=("acp",), tells="init"),
    "kimi": Adapter(configured_as="kimi", arguments=("acp",), tells="compact"),
    "qwen": Adapter(configured_as="qwen", arguments=("--acp",), tells="init"),
    "cline": Adapter(configured_as="cline", arguments=("--acp",)),
    "goose": Adapter(configured_as="goose", arguments=("acp",), tells="compact"),
}
"""The last six have profiles, too, which count for nothing here: they are started by their command alone."""


def missing() -> str | None:
    """Why the programs cannot be run, in a sentence, or None if they can."""
    return NPM.missing() or shipped.missing("kimi", "qwen", "cline", "goose")


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
