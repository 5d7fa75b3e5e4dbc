"""Earlier output of a program, as lines with their colours, for scrolling back.

The emulator of the daemon keeps about a thousand rows, as they really were; older output is printed again from the
spool (the output on disk), in the present width. Both are joined at their overlap. Pure, but for `main`, which is a
program of its own, because reading megabytes takes its time, and because output may harm an emulator: its process has
no rights when it draws.
"""

import json
import sys
from collections.abc import Sequence

from synapsed.process.sandbox import give_up_rights
from synapsed.shared.regex import regex
from synapsed.terminal.emulated_screen import Screen

CPU_S = 30
"""Seconds for which the program may compute."""

KEPT = 20_000
"""Rows that are kept of the output printed again."""

OVERLAP = 8
"""Number of equal lines in a row that identify the overlap."""

_SGR = regex(r"\x1b\[([\d;:]*)m")
_OTHER = regex(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]"
)


def lines_of(screen: Screen) -> list[str]:
    """Returns the lines of a screen and of the rows above it, each with its colour sequences only."""
    lines: list[str] = []
    pen = ""
    for raw in screen.formatted().decode("utf-8", "replace").split("\r\n"):
        text = _OTHER.sub(lambda match: match[0] if _SGR.fullmatch(match[0]) else "", raw)
        begun = pen + text
        for match in _SGR.finditer(text):
            pen = "" if match[1] in ("", "0") else pen + match[0] if not match[1].startswith("0;") else match[0]
        lines.append(begun + ("\x1b[m" if "\x1b" in begun else ""))
    while lines and not plain(lines[-1]).strip():
        lines.pop()
    return lines


def plain(line: str) -> str:
    return _SGR.sub("", line)


def joined(older: Sequence[str], newer: Sequence[str]) -> list[str]:
    """Returns the lines of `older` that come before `newer`, then `newer`. Both end with the same line, and `older`
    begins earlier."""
    head = [plain(line).rstrip() for line in newer[:OVERLAP]]
    texts = [plain(line).rstrip() for line in older]
    for at in range(len(texts) - len(head), -1, -1):
        if texts[at : at + len(head)] == head and any(head):
            return [*older[:at], *newer]
    return [*older[: max(0, len(older) - len(newer))], *newer]


def lines_from(shown: bytes, output: bytes, cols: int, rows: int) -> list[str]:
    """Returns all the lines: `shown` draws the screen with the rows above it, `output` led to it."""
    now, again = Screen(cols, rows, scrollback_lines=KEPT), Screen(cols, rows, scrollback_lines=KEPT)
    now.feed(shown)
    newer = lines_of(now)
    if now.snapshot().alternate:
        # Nothing scrolls off a full-screen program: the rows above it were printed before it began.
        again.feed(output + b"\x1b[?1049l")
        return [*lines_of(again), *newer]
    again.feed(output)
    return joined(lines_of(again), newer)


def main() -> int:
    """Reads a line of JSON {cols, rows, shown} and the bytes: `shown` of them draw the screen, the rest is output.
    Writes a line of JSON: an array of the lines."""
    head = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    give_up_rights(cpu_s=CPU_S)
    lines = lines_from(data[: head["shown"]], data[head["shown"] :], head["cols"], head["rows"])
    sys.stdout.buffer.write(json.dumps(lines).encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
