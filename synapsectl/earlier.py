"""What an agent has printed before, as lines: drawn by a process of its own (`synapsed.terminal.scrollback_lines`)."""

import json
from typing import NamedTuple

from synapsed import own_python

BYTES = 4 * 1024 * 1024
"""Bytes of output that are looked back at."""

TIME_LIMIT = 30.0
"""Seconds for the lines to be drawn."""


class Pieces(NamedTuple):
    """What the daemon sends: of what size the screen is, and the pieces that came (the screen, the output)."""

    cols: int
    rows: int
    came: list[bytes]

    @property
    def whole(self) -> bool:
        return len(self.came) == 2


def lines(pieces: Pieces) -> list[str]:
    """The lines, the oldest first. Raises OSError, ValueError where they cannot be drawn."""
    import subprocess

    shown, output = pieces.came
    head = json.dumps({"cols": pieces.cols, "rows": pieces.rows, "shown": len(shown)}).encode()
    try:
        done = subprocess.run(
            own_python.command("synapsed.terminal.scrollback_lines"),
            input=head + b"\n" + shown + output,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TIME_LIMIT,
            check=True,
        )
    except subprocess.SubprocessError as error:
        raise OSError(str(error)) from None
    found = json.loads(done.stdout)
    return [line for line in found if isinstance(line, str)]
