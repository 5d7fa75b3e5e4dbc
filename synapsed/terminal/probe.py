"""A process that does to a screen what the daemon would do, to see whether it lives through it.

    python -m synapsed.terminal.probe < HEADER LINE, the bytes of a checkpoint, output

The header is JSON: `cols`, `rows`, how many bytes of the checkpoint there are (`drawn`), and how many seconds it may
compute (`cpu_s`). It ends with 0 if all goes well; the emulator may end it, or not return at all. What it reads is
hostile by all that is known: it has no rights.
"""

import json
import sys

from synapsed.sandbox import give_up_rights
from synapsed.terminal.screen import Screen

CHUNK = 64 * 1024


def main() -> int:
    header = json.loads(sys.stdin.buffer.readline())
    give_up_rights(cpu_s=header["cpu_s"])
    screen = Screen(header["cols"], header["rows"])
    screen.feed(sys.stdin.buffer.read(header["drawn"]))
    while output := sys.stdin.buffer.read(CHUNK):
        screen.feed(output)
        screen.snapshot()
    screen.text(scrollback=True)
    again = Screen(header["cols"], header["rows"])
    again.feed(screen.redraw(scrollback=True))
    screen.resize(header["cols"] - 1, header["rows"])
    screen.snapshot()
    return 0


if __name__ == "__main__":
    sys.exit(main())
