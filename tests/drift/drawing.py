"""Draws a recording at some of its offsets, in a process without rights: the bytes may come from anyone."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from synapsed import own_python
from synapsed.parts.pictures.svg import svg
from synapsed.terminal.sandboxed import Screen, give_up_rights
from synapsed.terminal.screen_formats import picture

__all__ = ["Drawn", "draw", "main"]

CPU_S = 120
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A screen at one moment: its rows, its title, and its picture as an SVG document."""

    lines: tuple[str, ...]
    title: str
    svg: str


def draw(size: Sequence[int], raw: bytes, offsets: Sequence[int]) -> list[Drawn]:
    """Returns the screens after so many bytes each. Raises ValueError if they cannot be drawn."""
    head = json.dumps({"size": list(size), "offsets": list(offsets)})
    done = subprocess.run(
        [sys.executable, "-P", "-m", __name__],
        env={**own_python.bare_environment(), "PYTHONPATH": str(ROOT)},
        cwd="/",
        input=head.encode() + b"\n" + raw,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise ValueError(f"the screens cannot be drawn: {done.stderr.decode(errors='replace')[-300:]}")
    return [Drawn(tuple(one["lines"]), one["title"], one["svg"]) for one in json.loads(done.stdout)]


def main() -> int:
    head = json.loads(sys.stdin.buffer.readline())
    raw = sys.stdin.buffer.read()
    svg(picture(Screen(20, 5)))  # loads what the first picture loads
    give_up_rights(cpu_s=CPU_S)
    drawn = {}
    cols, rows = head["size"]
    screen, done = Screen(cols, rows), 0
    for offset in sorted(set(head["offsets"])):
        screen.feed(raw[done:offset])
        done, now = offset, screen.snapshot()
        drawn[offset] = {"lines": list(now.lines), "title": now.title, "svg": svg(picture(screen))}
    sys.stdout.buffer.write(json.dumps([drawn[offset] for offset in head["offsets"]]).encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
