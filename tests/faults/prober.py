"""Asks a daemon again and again whether it is well, and tells how long the longest answer took: a process of its own,
so that what is measured is the daemon's loop and not what the test does meanwhile. The time in which either process
waited for a processor is left out, and an answer for which a page was read from the disk: they say how busy the machine
is, and which memory it has given to others.

    python prober.py SOCKET PID     each line of its input is answered with the seconds so far
"""

import contextlib
import os
import select
import socket
import sys
import time
from pathlib import Path

EVERY_S = 0.005
LEAST_S = 1e-6
"""An answer took that long at the least, also where all of it was spent waiting for a processor."""
ASKED = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def waited(pid: int) -> float:
    """Returns the seconds for which threads of a process were ready to run and had no processor: the loop waits for
    the one that holds the interpreter as well."""
    found = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            found += int((thread / "schedstat").read_text().split()[1])
    return found / 1e9


def read_back(pid: int) -> int:
    """Returns how often a process had to wait for a page of its memory to be read from the disk."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[9])


def main(path: str, pid: int) -> None:
    """One connection, so that it is the loop and not a socket's making."""
    longest, own = 0.0, os.getpid()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.connect(path)
        while True:
            pages, idle, began = read_back(pid), waited(pid) + waited(own), time.monotonic()
            sock.sendall(ASKED)
            if not sock.recv(65536):
                return
            took = time.monotonic() - began
            if read_back(pid) == pages:
                longest = max(longest, LEAST_S, took - max(waited(pid) + waited(own) - idle, 0.0))
            if select.select([sys.stdin], [], [], EVERY_S)[0]:
                if not sys.stdin.readline():
                    return
                print(longest, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
