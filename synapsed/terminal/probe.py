"""A process that does to a screen what the daemon would do, to see whether it lives through it.

    python -m synapsed.terminal.probe < HEADER LINE, the bytes of a checkpoint, output

The header is JSON: `cols`, `rows`, how many bytes of the checkpoint there are (`drawn`), and how many seconds it may
compute (`cpu_s`). It ends with 0 if all goes well; the emulator may end it, or not return at all. What it reads is
hostile by all that is known: it has no rights.

With `search` in the header it finds out instead how many bytes of the output are to be passed over so that a screen
which begins behind them lives, and writes their number. This process then feeds nothing itself: each trial is a child
of its own, without rights, so that a search costs one start of Python.
"""

import functools
import io
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from synapsed.process.sandbox import give_up_rights
from synapsed.terminal.emulated_screen import Screen

CHUNK = 64 * 1024

CASE_S = 30
"""For one trial of a search, by the clock on the wall: for an emulator that waits for something."""

ENDED_MAX = 3
"""Trials in a row that others may end (SIGKILL): they say nothing of the output."""

CASES_MAX = 100
"""Trials of one search: two dozen find one harm in 8 MiB. Where they do not suffice, all of the output is passed
over."""


def main() -> int:
    header = json.loads(sys.stdin.buffer.readline())
    if header.get("search"):
        drawn = sys.stdin.buffer.read(header["drawn"])
        end = harm_end(functools.partial(_survives, header), drawn, sys.stdin.buffer.read())
        sys.stdout.write(f"{end}\n")
        return 0
    give_up_rights(cpu_s=header["cpu_s"])
    _try(header, sys.stdin.buffer.read(header["drawn"]), sys.stdin.buffer.read)
    return 0


def harm_end(survives: Callable[[bytes, bytes], bool], drawn: bytes, output: bytes) -> int:
    """How many bytes of `output` are to be passed over. `survives(drawn, output)` is a trial.

    The smallest beginning that does not survive is passed over; what is behind it is tried on an empty screen, and
    searched in the same way. Where nothing is behind it, or no end is found, that is all of the output.
    """
    passed, given, cases = 0, drawn, 0

    def lives(drawn: bytes, output: bytes) -> bool:
        nonlocal cases
        cases += 1
        if cases > CASES_MAX:
            raise _TooManyCases
        return survives(drawn, output)

    try:
        while not lives(drawn, b""):
            if not drawn:
                return len(output)  # a trial of nothing ends too: it tells nothing
            drawn = b""  # the checkpoint itself does the harm
        while not lives(drawn, rest := output[passed:]):
            good, bad = 0, len(rest)
            while bad - good > 1:
                middle = (good + bad) // 2
                if lives(drawn, rest[:middle]):
                    good = middle
                else:
                    bad = middle
            passed, drawn = passed + bad, b""
    except _TooManyCases:
        return len(output)
    return passed if passed or drawn != given else len(output)  # what did harm before does none now: it is not found


class _TooManyCases(Exception):
    pass


def _survives(header: dict[str, Any], drawn: bytes, output: bytes) -> bool:
    """A trial, in a child without rights. One that others end is made again."""
    codes = (_ended(header, drawn, output) for _ in range(ENDED_MAX))
    return next((code for code in codes if code != -signal.SIGKILL), -signal.SIGKILL) == 0


def _ended(header: dict[str, Any], drawn: bytes, output: bytes) -> int:
    """How the child ended."""
    if (child := os.fork()) == 0:
        try:
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what is found is the parent's to say, not the child's
            signal.alarm(CASE_S)
            give_up_rights(cpu_s=header["cpu_s"])
            _try(header, drawn, io.BytesIO(output).read)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _try(header: dict[str, Any], drawn: bytes, read: Callable[[int], bytes]) -> None:
    screen = Screen(header["cols"], header["rows"])
    screen.feed(drawn)
    while output := read(CHUNK):
        screen.feed(output)
        screen.snapshot()
    screen.text(scrollback=True)
    again = Screen(header["cols"], header["rows"])
    again.feed(screen.redraw(scrollback=True))
    screen.resize(header["cols"] - 1, header["rows"])
    screen.snapshot()


if __name__ == "__main__":
    sys.exit(main())
