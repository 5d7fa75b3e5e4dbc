"""The daemon of the version before, whole: its package and its profiles, as they were when the archive was made.

An upgrade and its taking back are daemons of two versions on one home: what the one wrote, keepers it launched
included, the other has to take up. With each release, make the archive again of what is released:

    python -m tests.faults.before
"""

import sys
import tarfile
from pathlib import Path

__all__ = ["unpack"]

CHECKOUT = Path(__file__).parents[2]
ARCHIVE = Path(__file__).with_name("before.tar.xz")
FOLDERS = ("synapsed", "profiles")


def unpack(directory: Path) -> Path:
    """Where the daemon can be run from: `python -m synapsed` with this as working directory."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(directory, filter="data")
    return directory


def main() -> int:
    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        """The same files make the same archive."""
        if "__pycache__" in member.name:
            return None
        member.mtime = member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mode = 0o755 if member.isdir() else 0o644
        return member

    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for folder in FOLDERS:
            archive.add(CHECKOUT / folder, folder, filter=plain)
    return 0


if __name__ == "__main__":
    sys.exit(main())
