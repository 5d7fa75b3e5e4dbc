"""Freeze the keeper of this code under its protocol's version; an archive that is there is never written again."""

import sys
import zipfile

from synapsed.keeper import frames
from tests.keeper.frozen import CURRENT, frozen

MAIN = "import sys\nfrom synapsed.keeper.launch import main\nsys.exit(main(sys.argv[1:]))\n"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The same files make the same archive."""


def main() -> int:
    target = frozen(frames.VERSION)
    if target.exists():
        print(f"{target.name} is there already: it is what keepers of version {frames.VERSION} are", file=sys.stderr)
        return 1
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        files = {"__main__.py": MAIN, "synapsed/__init__.py": ""}
        files |= {f"synapsed/keeper/{path.name}": path.read_text() for path in sorted(CURRENT.glob("*.py"))}
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), text, zipfile.ZIP_DEFLATED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
