"""Ports for servers that are started by number."""

import itertools
import os
import socket
from typing import Final

LOOPBACK: Final = "127.0.0.1"
LOWEST: Final = 20_000
COUNT: Final = 10_000
"""Below those that a kernel gives to whoever asks for any, so that nobody gets one of them between the asking and the
use; and above those of agents."""
_APART: Final = 97
"""Processes that run side by side look in other places: their ids are near each other."""

_places = itertools.count(os.getpid() * _APART)


def free_port() -> int:
    """A port of the loopback on which nobody listens; no two calls of one process get the same, until all had their
    turn."""
    for place in itertools.islice(_places, COUNT):
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, LOWEST + place % COUNT))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError(f"no port of {LOWEST} to {LOWEST + COUNT - 1} is free")
