"""Asks a daemon again and again whether it is well, and tells how long the longest answer took: a process of its own,
so that what is measured is the daemon's loop and not what the test does meanwhile.

    python prober.py SOCKET     each line of its input is answered with the seconds so far
"""

import select
import socket
import sys
import time

EVERY_S = 0.005
ASKED = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def main(path: str) -> None:
    """One connection, so that it is the loop and not a socket's making."""
    longest = 0.0
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.connect(path)
        while True:
            began = time.monotonic()
            sock.sendall(ASKED)
            if not sock.recv(65536):
                return
            longest = max(longest, time.monotonic() - began)
            if select.select([sys.stdin], [], [], EVERY_S)[0]:
                if not sys.stdin.readline():
                    return
                print(longest, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
