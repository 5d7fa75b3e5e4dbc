"""The program that synapse-a2a takes for claude: it asks before it does what it is told."""

import os
import re
import signal

ENABLE_PASTE = "\x1b[?2004h"
"""By which synapse-a2a knows that claude has started."""
CLEAR = "\x1b[H\x1b[J"
"""The question goes off the screen: synapse-a2a takes one that stands there for open."""
_CONTROLS = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z~]")


def say(text: str) -> None:
    os.write(1, text.encode())


def line() -> str:
    """What is typed up to the Enter key, which is no line feed: the terminal is raw."""
    typed = b""
    while not typed.endswith((b"\r", b"\n")):
        piece = os.read(0, 1)
        if not piece:
            raise SystemExit
        typed += piece
    return _CONTROLS.sub(b"", typed).decode().strip()


signal.signal(signal.SIGINT, lambda *_: say("interrupted\r\n"))
say(ENABLE_PASTE)
while True:
    say("> ")
    told = line()
    if told:
        say(f"{told}\r\nRun it? [y/N] ")
        say(CLEAR + ("Done.\r\n" if line() == "y" else "Left undone.\r\n"))
