"""Writes `surface/`, or with `--check` says how it differs from the product (exit code 1)."""

import argparse
import sys
from pathlib import Path

from scripts.surface import FILES, FOLDER, differences, made, write, written

SHOWN = 40
"""Lines of a difference that are told."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; say what differs")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="another folder than the one that is committed")
    parser.add_argument("files", nargs="*", choices=[*FILES, []], metavar="FILE", help="these alone")
    args = parser.parse_args()
    texts = made(args.files)
    if not args.check:
        write(texts, args.folder)
        return 0
    if not (told := differences(written(args.folder, args.files), texts)):
        return 0
    print(*told[:SHOWN], sep="\n")
    if len(told) > SHOWN:
        print(f"… and {len(told) - SHOWN} lines more")
    print("The outside has changed: 'make surface' writes it down; tell of it in CHANGELOG.md, too.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
