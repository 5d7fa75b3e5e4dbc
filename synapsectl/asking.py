"""Asks a person at the terminal: the one place in which a verb reads what is typed there.

An answer is typed after its question is seen: keys that were pressed before the question was drawn, for a program that
had ended by then say, are dropped. The sign behind the question is drawn after that: who sees it can type. Input that
comes through a pipe stays.
"""

import select
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

LOOK = 1.0
"""Seconds between two looks at what else goes on: `meanwhile`, and a Ctrl-C that came at a bad moment."""


class QuestionOver(Exception):
    """The question was withdrawn before it was answered."""


def ask_line(stream: TextIO, sign: str, meanwhile: Callable[[], bool] = bool) -> str:
    """Writes `sign` to `stream` behind the question, which stands there, and returns the line that is typed from then
    on, with its line break; empty at Ctrl-D. Raises KeyboardInterrupt; QuestionOver when `meanwhile`, which is called
    every second, returns True.

    A Ctrl-C that arrives just before `readline` waits in the kernel is noted by Python, and seen only at the next key:
    so `select` waits before it.
    """
    stream.flush()  # it waits where the terminal is stopped: what is typed meanwhile is dropped too
    typed = sys.stdin.isatty()
    if typed:
        _forget_typed()
    stream.write(sign)
    stream.flush()
    if typed:
        while not select.select([sys.stdin], [], [], LOOK)[0]:
            if meanwhile():
                raise QuestionOver
    return sys.stdin.readline()


def ask_hidden(sign: str) -> str:
    """Returns the line that is typed after `sign`, and not shown. Raises EOFError at Ctrl-D, KeyboardInterrupt."""
    from getpass import getpass  # it imports what hardly any verb needs

    return getpass(sign)  # it drops the keys of before itself, as it stops the echo


def _forget_typed() -> None:
    """Drops the keys that wait in the terminal, those of a line without its end too."""
    import termios  # the quick verbs do without

    with suppress(termios.error):  # it hung up: the next read tells
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
