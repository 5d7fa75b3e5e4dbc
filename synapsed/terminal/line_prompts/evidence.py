"""Evidence that a program reads a line from its terminal. Pure.

A prompt's sign proves nothing: progress ends in `%`, a question in `>`. So a text counts as a prompt only if a line is
read at it:

====================================  =================================================================================
the terminal                          says that a line is read
====================================  =================================================================================
gives whole lines, and shows them     while a process in its foreground is blocked reading it (where the kernel reports
                                      that)
gives whole lines, and hides them     never: the program reads a password
gives keys                            where the program in its foreground has bracketed paste (2004) on, as line editors
                                      have; or is known by its name to edit lines without it
====================================  =================================================================================
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from synapsed.shared.regex import regex

type Reads = Literal["yes", "maybe", "no"]

type Word = Literal["reads", "polls", "rests", "works"]
"""The kernel's report on the processes that have a terminal."""

_VERSION = regex(r"[-\d.]+$")
"""Version at the end of a program's name: `python3.13`, `lua5.4`."""


class TerminalFacts(NamedTuple):
    """A terminal as its keeper and the kernel see it, at one moment; None for each unknown fact."""

    offset: int = 0
    """Offset at which the output ended at that moment."""
    line_mode: bool | None = None
    """True if it gives whole lines (canonical mode)."""
    echo: bool | None = None
    """True if it shows typed text."""
    group: int | None = None
    """The process group in its foreground."""
    names: tuple[str, ...] = ()
    """Names of that group's leader: its program's, and the process's own."""
    since: int = 0
    """Offset of the output up to which that group was not in the foreground yet."""
    reads: Reads | None = None
    """`yes`: a process of that group reads the terminal; `maybe`: it waits for several things. In line mode only."""
    foreign: bool = False
    """True while a turn runs in another group than the one at whose prompt the message was typed."""
    cwd: str | None = None
    """The working directory of the group's leader."""

    @property
    def program(self) -> str | None:
        """The name of the program in the foreground."""
        return self.names[0] if self.names else None

    @property
    def mode(self) -> Literal["lines", "keys"] | None:
        """Mode of the terminal's input for the program."""
        return None if self.line_mode is None else "lines" if self.line_mode else "keys"


class Evidence(NamedTuple):
    """The evidence that a line is read, and the reason for it."""

    reads: bool
    why: str


def evidence(facts: TerminalFacts, *, editors: Sequence[str], pasting: bool, pasting_since: int) -> Evidence:
    """Returns the evidence. `editors`: names of programs that edit lines without bracketed paste; `pasting`: it is on,
    and was switched on last before the offset `pasting_since`."""
    if facts.line_mode is None:
        return Evidence(False, "nothing is known of who reads its terminal")
    if facts.line_mode:
        if facts.echo is False:
            return Evidence(False, "what is typed is not shown")
        reads = facts.reads in ("yes", None)
        return Evidence(reads, "it reads a line" if reads else "printed, nobody is seen to read a line")
    if pasting and pasting_since > facts.since:
        return Evidence(True, "it edits a line (bracketed paste)")
    if (name := edits(facts.names, editors)) is not None:
        return Evidence(True, f"{name} edits a line")
    return Evidence(False, "it takes keys, and nothing shows that they make a line")


def edits(names: Sequence[str], editors: Sequence[str]) -> str | None:
    """Returns the name by which a program is known to edit lines; a version after it does not count."""
    known = {*editors}
    return next((name for name in names if name in known or _VERSION.sub("", name) in known), None)
