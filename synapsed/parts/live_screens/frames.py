"""Draws agents' screens for pages: once for all viewers of one screen, ten times a second at most, and sends each
viewer what has changed since its last frame.

The newest screen is kept, with the frame of each row's last change. A viewer is only the number of its last frame: it
gets all rows that are newer, even if it has missed many frames. So a viewer that reads slowly has no queue: when it
reads again it gets the newest screen.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any, Final

from synapsed.aio import cancel_all
from synapsed.clock import Clock
from synapsed.errors import NotReady, SynapsedError
from synapsed.interfaces import Control, EventFilter, PageRows, ScreenWatch


class ScreenChanges:
    def __init__(self) -> None:
        self._rows: PageRows | None = None
        self._since: list[int] = []
        self._sized = 0
        """Frame in which the screen got its size."""
        self._still: str | None = None
        self._told: dict[int, bytes] = {}
        """Messages by the frame that a viewer has: many viewers have the same one."""
        self.frame = 0
        """Number that grows with each change."""

    def take(self, rows: PageRows) -> bool:
        """Takes the present screen; returns True if it has changed."""
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
        """Notes that no program draws now; the last screen stays."""
        if self._still != why:
            self._begin()
            self._still = why

    def after(self, frame: int) -> bytes:
        """Returns the JSON message that brings a viewer with `frame` (0: no frame yet) to the newest one."""
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


FRAME_S: Final = 0.1
"""Least seconds between two drawings of a screen."""

AGAIN_S: Final = 1.0
"""Seconds after which a missing screen is tried again, without an event of its agent."""


class _Live:
    """The screen of one agent, while there is a viewer."""

    def __init__(self, agent_id: str, control: Control, clock: Clock) -> None:
        self._agent_id = agent_id
        self._control = control
        self._clock = clock
        self._news = asyncio.Event()
        self.changes = ScreenChanges()
        self.viewers = 0
        self.ended = False
        self.task = asyncio.create_task(self._run())

    async def newer(self, frame: int) -> None:
        """Returns when there is a newer frame than `frame`, or the agent is gone."""
        while self.changes.frame <= frame and not self.ended:
            await self._news.wait()

    async def _run(self) -> None:
        try:
            while await self._follow():
                pass
        except SynapsedError as error:  # the agent is not there any more
            self.changes.rest(error.message)
        finally:
            self.ended = True
            self._tell()

    async def _follow(self) -> bool:
        """Follows a program to its end; returns False if no other program will follow. Raises UnknownAgent."""
        cursor = self._control.events.last_id
        self._control.directory.view(self._agent_id)
        why = "its program ended"
        try:
            watch = self._control.terminals.watch(self._agent_id)
        except NotReady as error:
            why = error.message
            await self._draw()
        else:
            try:
                await self._draw_all(watch)
            finally:
                watch.close()
        self.changes.rest(why)
        self._tell()
        which = EventFilter(types=frozenset({"agentState"}), agents=frozenset({self._agent_id}))
        try:
            async with asyncio.timeout(AGAIN_S):
                return await self._control.events.changed(cursor, which) is not None
        except TimeoutError:
            return True

    async def _draw_all(self, watch: ScreenWatch) -> None:
        there = True
        while there:
            begun = self._clock.monotonic()
            if await self._draw():
                self._tell()
            there = await watch.changed()
            if (rest := FRAME_S - (self._clock.monotonic() - begun)) > 0:
                await asyncio.sleep(rest)

    async def _draw(self) -> bool:
        """Draws the screen; returns True if it has changed, False also if it cannot be drawn now."""
        try:
            shown = await self._control.terminals.screen(self._agent_id, "rows")
        except SynapsedError as error:
            if not isinstance(error, NotReady):
                self.changes.rest(error.message)
                return True
            return False
        assert isinstance(shown, PageRows)
        return self.changes.take(shown)

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


class LiveScreens:
    """The screens with viewers, by agent."""

    def __init__(self, control: Control, clock: Clock) -> None:
        self._control = control
        self._clock = clock
        self._live: dict[str, _Live] = {}

    @property
    def drawn(self) -> int:
        """Number of screens that are drawn."""
        return len(self._live)

    async def follow(self, agent_id: str) -> AsyncGenerator[bytes]:
        """Yields messages for one viewer, each as new as possible; ends when the agent is gone."""
        with self._looking(agent_id) as live:
            frame = 0
            while True:
                await live.newer(frame)
                if live.changes.frame <= frame:
                    return
                frame, message = live.changes.frame, live.changes.after(frame)
                yield message

    @contextmanager
    def _looking(self, agent_id: str) -> Iterator[_Live]:
        live = self._live.get(agent_id)
        if live is None or live.ended:
            live = self._live[agent_id] = _Live(agent_id, self._control, self._clock)
        live.viewers += 1
        try:
            yield live
        finally:
            live.viewers -= 1
            if not live.viewers:
                live.task.cancel()
                if self._live.get(agent_id) is live:
                    del self._live[agent_id]

    async def close(self) -> None:
        await cancel_all(live.task for live in self._live.values())
