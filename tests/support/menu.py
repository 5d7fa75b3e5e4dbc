"""A program with a menu as many draw theirs: one row has the mark, arrows move it, Enter takes it.

    python -m tests.support.menu TITLE LABEL … [--stuck] [--marked N]

As some programs do it takes no digits, and one key of what it reads at a time: Enter in one write with an arrow is
lost. `--stuck`: the mark does not move. It prints ``chosen: LABEL``.
"""

import argparse
import os
import sys
import termios
import tty

UP, DOWN = (b"\x1b[A", b"\x1bOA"), (b"\x1b[B", b"\x1bOB")


def draw(title: str, labels: list[str], marked: int, *, again: bool) -> None:
    rows = [f"\x1b[36m❯ {label}\x1b[m" if n == marked else f"  {label}" for n, label in enumerate(labels)]
    back = f"\x1b[{len(rows) + 2}A\r\x1b[J" if again else "\x1b[?25l"
    sys.stdout.write(back + "\r\n".join([title, *rows, "(Use arrow keys, Enter to select)", ""]))
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("title")
    parser.add_argument("labels", nargs="+")
    parser.add_argument("--stuck", action="store_true")
    parser.add_argument("--marked", type=int, default=0)
    options = parser.parse_args()
    marked, labels = options.marked, options.labels
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        draw(options.title, labels, marked, again=False)
        while (key := os.read(0, 64)) != b"\r":
            if not options.stuck and key in UP + DOWN:
                marked = (marked + (1 if key in DOWN else -1)) % len(labels)
            draw(options.title, labels, marked, again=True)
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        sys.stdout.write(f"\x1b[{len(labels) + 2}A\r\x1b[J\x1b[?25h")
    print(f"chosen: {labels[marked]}")


if __name__ == "__main__":
    main()
