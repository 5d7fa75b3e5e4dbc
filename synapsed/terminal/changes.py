"""What has changed of an agent's screen since somebody was last told of it. Pure.

The newest screen is kept, and for each row in which frame it came to be as it is. A viewer is no more than the number
of the frame that it has: what it is told is all that is newer, however many frames it has missed.
"""

import json
from typing import Any

from synapsed.model.picture import Rows


class ScreenChanges:
    def __init__(self) -> None:
        self._rows: Rows | None = None
        self._since: list[int] = []
        self._sized = 0
        """The frame in which the screen got its size."""
        self._still: str | None = None
        self._told: dict[int, bytes] = {}
        """By the frame from which on: many viewers have the same."""
        self.frame = 0
        """Grows with each change."""

    def take(self, rows: Rows) -> bool:
        """The screen as it is now; whether that is news."""
        before = self._rows
        if before == rows and self._still is None:
            return False
        self._begin()
        self._still = None
        if before is None or (before.cols, before.rows) != (rows.cols, rows.rows):
            self._sized = self.frame
            self._since = [self.frame] * len(rows.lines)
        else:
            for index, (old, new) in enumerate(zip(before.lines, rows.lines, strict=True)):
                if old != new:
                    self._since[index] = self.frame
        self._rows = rows
        return True

    def rest(self, why: str) -> None:
        """No program draws; what was shown last stands."""
        if self._still != why:
            self._begin()
            self._still = why

    def after(self, frame: int) -> bytes:
        """The JSON message that brings who has `frame` (0: nothing) to the newest."""
        if frame not in self._told:
            self._told[frame] = self._message(frame)
        return self._told[frame]

    def _begin(self) -> None:
        self.frame += 1
        self._told.clear()

    def _message(self, frame: int) -> bytes:
        told: dict[str, Any] = {"type": "screen", "frame": self.frame, "still": self._still}
        if (rows := self._rows) is not None:
            whole = frame < self._sized
            told |= {
                "cols": rows.cols,
                "rows": rows.rows,
                "title": rows.title,
                "foreground": rows.foreground,
                "background": rows.background,
                "cursor": rows.cursor,
                "whole": whole,
            }
            lines = [
                f'"{index}":{line}'
                for index, (since, line) in enumerate(zip(self._since, rows.lines, strict=True))
                if since > frame or whole
            ]
            head = json.dumps(told, separators=(",", ":"), ensure_ascii=False)
            return f'{head[:-1]},"lines":{{{",".join(lines)}}}}}'.encode("utf-8", "replace")
        return json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
