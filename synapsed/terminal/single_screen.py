"""A program's output for a terminal that shows all of it on one screen of its own, the alternate one, so that what a
person has on the other stays there, and the rows above it. Pure.

A program changes between two screens. Here the second one is not there to change to: where it does, the stream stops,
and the screen that it is on now has to be drawn. What erases the rows above the screen is left out: they are not its.
"""

import re
from typing import Final, NamedTuple

_ZEROS: Final = rb"0{0,9}"
_SWITCH: Final = re.compile(rb"\x1b(?:c|\[\?(?:[\d;:]{0,99};)?" + _ZEROS + rb"(?:47|1047|1049)(?:;[\d;:]{0,99})?[hlr])")
"""What sets, resets or restores the mode of the alternate screen; and a full reset, which ends it."""
_ERASE_ABOVE: Final = re.compile(rb"\x1b\[(?:[\d;:]{0,99};)?" + _ZEROS + rb"3(?:;[\d;:]{0,99})?J")


class OneScreen(NamedTuple):
    """What is shown of some output, and whether the program then went to a screen that has to be drawn."""

    shown: bytes
    switched: bool


def on_one_screen(data: bytes) -> OneScreen:
    """`data` are whole sequences and text."""
    if b"\x1b[?" in data or b"\x1bc" in data:
        switch = _SWITCH.search(data)
        if switch is not None:
            return OneScreen(_kept(data[: switch.start()]), switched=True)
    return OneScreen(_kept(data), switched=False)


def _kept(data: bytes) -> bytes:
    return _ERASE_ABOVE.sub(b"", data) if b"J" in data and b"3" in data else data
