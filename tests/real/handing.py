"""A program with a composer between two rules, which gives its terminal to each command that it is told to run."""

import os
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Iterator

RULE = "─" * 40
ERASED = "\r\x1b[1A\x1b[J"


def keys() -> Iterator[str]:
    while data := os.read(0, 4096).decode():
        yield from data.replace("\x1b[200~", "").replace("\x1b[201~", "")


def message() -> str:
    """What is typed up to Enter. The composer is erased then."""
    text = ""
    show(f"{RULE}\r\n> \r\n{RULE}\x1b[1A\r\x1b[2C")
    for key in keys():
        if key == "\r":
            break
        text += key
        show(key)
    show(ERASED)
    return text


def show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def main() -> None:
    show("\x1b[?2004hIt runs what it is told.\r\n")
    before = termios.tcgetattr(0)
    while True:
        tty.setraw(0)
        command = message()
        show("Thinking (esc to interrupt)")
        time.sleep(0.3)  # what it shows then is seen to be work
        show("\r\x1b[2K\x1b[?2004l")
        termios.tcsetattr(0, termios.TCSANOW, before)
        code = subprocess.run(["sh", "-c", command], check=False).returncode
        show(f"\x1b[?2004h\r\n● It ended with {code}.\r\n")


if __name__ == "__main__":
    main()
