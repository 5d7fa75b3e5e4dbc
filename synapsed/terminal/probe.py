"""Does the daemon's work on a screen in a process of its own, to find out if the process survives it.

    python -m synapsed.terminal.probe < HEADER LINE, the bytes of a checkpoint, output

The header is JSON: `cols`, `rows`, how many bytes of the checkpoint there are (`drawn`), and how many seconds it may
compute (`cpu_s`). The process ends with 0 if all goes well; the emulator may end it, or not return at all. It has no
rights, because its input may be hostile.

With `search` in the header it finds out instead how many bytes of the output are to be skipped so that a screen which
begins after them survives, and writes their number. The process then draws nothing itself: each trial is a child of its
own, without rights, so that a search costs one start of Python.
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
"""Seconds of real time, not of computing, for one trial of a search: the emulator may wait for something."""

ENDED_MAX = 3
"""Trials in a row that may be ended from outside (SIGKILL): they prove nothing about the output."""

CASES_MAX = 100
"""Trials of one search: two dozen find one harm in 8 MiB. If they do not suffice, all of the output is skipped."""


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
    """Returns how many bytes of `output` are to be skipped. `survives(drawn, output)` is a trial. The smallest
    beginning that does not survive is skipped; the rest is tried on an empty screen, and searched in the same way. If
    there is no rest, or no end is found, all of the output is skipped."""
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
                return len(output)  # a trial without any output fails, too: trials prove nothing
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
    return passed if passed or drawn != given else len(output)  # the former harm does not happen again


class _TooManyCases(Exception):
    pass


def _survives(header: dict[str, Any], drawn: bytes, output: bytes) -> bool:
    """Makes a trial, in a child without rights. A trial that was ended from outside is repeated."""
    codes = (_ended(header, drawn, output) for _ in range(ENDED_MAX))
    return next((code for code in codes if code != -signal.SIGKILL), -signal.SIGKILL) == 0


def _ended(header: dict[str, Any], drawn: bytes, output: bytes) -> int:
    """Returns the child's status."""
    if (child := os.fork()) == 0:
        try:
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the result is the parent's to write, not the child's
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
