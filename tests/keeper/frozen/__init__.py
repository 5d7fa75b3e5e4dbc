"""Keepers as they were: one archive for each version of the protocol, made when that version was new, never changed.

Keepers outlive daemons, so a daemon meets those of the version before its own. A test that runs on `KEEPERS` runs on
every keeper that this code has to get along with. When the protocol's version grows, freeze the old keeper first:

    python -m tests.keeper.frozen
"""

from pathlib import Path

from synapsed.keeper import frames
from synapsed.keepers.launchers import KEEPER

__all__ = ["CURRENT", "KEEPERS", "frozen"]

CURRENT = KEEPER.parent


def frozen(version: int) -> Path:
    return Path(__file__).with_name(f"keeper-{version}.pyz")


KEEPERS = {"current": KEEPER} | {
    f"frozen-{version}": frozen(version) for version in range(frames.OLDEST_VERSION, frames.VERSION + 1)
}
"""What can be given to a launcher as its `keeper`."""
