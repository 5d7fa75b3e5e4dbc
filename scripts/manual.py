"""Writes the manual page, made of the verbs: `python -m scripts.manual [FILE]`, to stdout without one."""

import sys
from pathlib import Path

from synapsectl.manual import page


def main() -> int:
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
