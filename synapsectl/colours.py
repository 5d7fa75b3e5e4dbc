"""Colours: the sixteen that every terminal has in its own shades, and the rules for using them.

https://no-color.org and https://bixense.com/clicolors: NO_COLOR and CLICOLOR=0 switch them off; CLICOLOR_FORCE switches
them on, also if stdout is no terminal. A terminal that obeys no escape sequences (TERM=dumb) gets none in any case.
"""

from collections.abc import Mapping

BOLD, DIM, REVERSE = "1", "2", "7"
RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN = "31", "32", "33", "34", "35", "36"
OFF = "\x1b[0m"


def wanted(environ: Mapping[str, str], *, on_terminal: bool) -> bool:
    """Returns True if the output is coloured."""
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    if environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return on_terminal and environ.get("CLICOLOR") != "0"


def painted(text: str, style: str) -> str:
    """Returns `text` in a style: colours and attributes, joined by `;`. For an empty style it is unchanged."""
    return f"\x1b[{style}m{text}{OFF}" if style and text else text
