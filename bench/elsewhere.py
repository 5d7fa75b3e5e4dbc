"""Screens in a process without rights, as a daemon might have them (`bench.screens`): output in, looks out.

A frame on standard input, a socket, is a header and output to feed before the look that answers it; the first one of
an agent has its profile instead. It imports no more than it needs, as its memory is measured.
"""

import json
import os
import struct
from dataclasses import asdict
from typing import Any

from synapsed.profiles import Profile
from synapsed.sandbox import give_up_rights
from synapsed.terminal.look import Look
from synapsed.terminal.observer import TerminalObserver

FRAME = struct.Struct("<IHd")
"""How many bytes follow, the agent, the time."""
COLS, ROWS = 120, 40


def main() -> None:
    agents: dict[int, TerminalObserver] = {}
    give_up_rights()
    while head := exactly(0, FRAME.size):
        size, agent, now = FRAME.unpack(head)
        data = exactly(0, size)
        if agent not in agents:
            agents[agent] = TerminalObserver(Profile.model_validate_json(data), cols=COLS, rows=ROWS, offset=0)
        else:
            agents[agent].feed(agents[agent].offset, data, now)
        told = json.dumps(_told(agents[agent].look(now)), ensure_ascii=False).encode("utf-8", "replace")
        told = struct.pack("<I", len(told)) + told
        while told:
            told = told[os.write(0, told) :]


def exactly(file: int, size: int) -> bytes:
    """Empty at the end; without the calls for sockets, which are not allowed here."""
    data = b""
    while len(data) < size and (more := os.read(file, size - len(data))):
        data += more
    return data


def _told(look: Look) -> dict[str, Any]:
    """What of it a session needs."""
    verdict, screen = look.verdict, look.screen
    return {
        "activity": verdict.activity.value,
        "words": [verdict.evidence, verdict.source],
        "flags": [verdict.settled, verdict.lacks_composer],
        "prompt": verdict.asked.prompt.model_dump() if verdict.asked is not None else None,
        "composer": asdict(look.composer),
        "times": [look.offset, look.changed_at, look.steady_at, look.still_since, look.unreadable_at],
        "lines": screen.lines,
        "wrapped": screen.wrapped,
        "cursor": screen.cursor,
        "title": screen.title,
        "modes": [sorted(screen.modes.dec), sorted(screen.modes.ansi)],
    }


if __name__ == "__main__":
    main()
