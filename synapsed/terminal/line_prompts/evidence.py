"""Evidence that a program reads a line from its terminal. Pure.

A prompt's sign proves nothing: progress ends in `%`, a question in `>`. So there is no prompt without a reader:

====================================  =================================================================================
the terminal                          says that a line is read
====================================  =================================================================================
gives whole lines, and shows them     while somebody of its foreground is blocked reading it (where the kernel tells)
gives whole lines, and hides them     never: a password is
gives keys                            where the program in its foreground has bracketed paste (2004) on, as line editors
                                      have; or is known by its name to edit lines without
====================================  =================================================================================
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

type Reads = Literal["yes", "maybe", "no"]

type Word = Literal["reads", "polls", "rests", "works"]
"""What the kernel says of those who have a terminal."""

_VERSION = re.compile(r"[-\d.]+$")
"""At the end of a program's name: `python3.13`, `lua5.4`."""


class TerminalFacts(NamedTuple):
    """A terminal as its keeper and the kernel see it, at one moment; None for what they do not tell."""

    offset: int = 0
    """Output up to there had come then."""
    line_mode: bool | None = None
    """It gives whole lines (canonical mode)."""
    echo: bool | None = None
    """It shows what is typed."""
    group: int | None = None
    """The process group in its foreground."""
    names: tuple[str, ...] = ()
    """Of that group's leader: its program's, and what the process is called."""
    since: int = 0
    """Up to this offset of the output that group was not there yet."""
    reads: Reads | None = None
    """Somebody of that group reads it; `maybe`: waits for one of several things. In line mode alone."""
    foreign: bool = False
    """While a turn runs: another group than the one at whose prompt the message was typed."""
    cwd: str | None = None
    """The working directory of the group's leader."""

    @property
    def program(self) -> str | None:
        """The name of the program in the foreground."""
        return self.names[0] if self.names else None

    @property
    def mode(self) -> Literal["lines", "keys"] | None:
        """What the terminal gives the program."""
        return None if self.line_mode is None else "lines" if self.line_mode else "keys"


class Evidence(NamedTuple):
    """Whether a line is read, and why that is believed."""

    reads: bool
    why: str


def evidence(facts: TerminalFacts, *, editors: Sequence[str], pasting: bool, pasting_since: int) -> Evidence:
    """`editors`: names of programs that edit lines without bracketed paste; `pasting`: it is on, and was switched on
    last before the offset `pasting_since`."""
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
    """The name by which a program is known to edit lines; a version behind it does not count."""
    known = {*editors}
    return next((name for name in names if name in known or _VERSION.sub("", name) in known), None)
