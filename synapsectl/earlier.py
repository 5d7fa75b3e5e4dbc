"""Draws earlier output of an agent as lines, by a process of its own (`synapsed.terminal.scrollback_lines`), which has
no rights. The lines are checked, since the agent's output may have taken that process over."""

import json
import re
import subprocess
import threading
from typing import NamedTuple

from synapsed import own_python

BYTES = 4 * 1024 * 1024
"""Bytes of output for looking back."""

TIME_LIMIT = 30.0
"""Seconds for drawing the lines."""

SAID_MAX = 64 * 1024 * 1024
"""Bytes of output from the process: twenty thousand wide lines in many colours need a quarter of it."""

_CONTROLS = re.compile(r"\x1b(?!\[[\d;:]*m)|[\x00-\x1a\x1c-\x1f\x7f-\x9f]")
"""Characters that no line has: all but text and colour sequences."""


class Pieces(NamedTuple):
    """Data from the daemon: the size of the screen, and the pieces that came (the screen, the output)."""

    cols: int
    rows: int
    came: list[bytes]

    @property
    def whole(self) -> bool:
        return len(self.came) == 2


def lines(pieces: Pieces) -> list[str]:
    """Returns the lines, the oldest first. Raises OSError, ValueError if they cannot be drawn."""
    shown, output = pieces.came
    head = json.dumps({"cols": pieces.cols, "rows": pieces.rows, "shown": len(shown)}).encode()
    return checked(_drawn(head + b"\n" + shown + output))


def checked(said: bytes) -> list[str]:
    """Returns the lines of the JSON output, with nothing but text and colours in them. Raises ValueError."""
    try:
        found = json.loads(said)
    except RecursionError:
        raise ValueError("no lines") from None
    if not isinstance(found, list):
        raise ValueError("no lines")  # noqa: TRY004 - the JSON is wrong, not an argument's type
    return [_CONTROLS.sub("", line) for line in found if isinstance(line, str)]


def _drawn(given: bytes) -> bytes:
    """Returns the answer of the process."""
    process = subprocess.Popen(
        own_python.command("synapsed.terminal.scrollback_lines"),
        env=own_python.bare_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    limit = threading.Timer(TIME_LIMIT, process.kill)
    limit.start()
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin, process.stdout:  # it reads all before it writes anything
            process.stdin.write(given)
            process.stdin.close()
            said = process.stdout.read(SAID_MAX)
    finally:
        limit.cancel()
        process.kill()
        code = process.wait()
    if not said:
        raise OSError(f"it ended with {code}")
    return said
