"""Attached terminals (viewers): each gets a bounded copy of one agent's output (the stream).

If a viewer does not keep up and its buffer is full, the waiting output is dropped, and the viewer gets the whole screen
when it reads again, as in tmux. The agent and the other viewers never wait.

A viewer whose terminal has another size than the window does not get the stream, which would be drawn wrongly there.
Instead the screen is drawn for it from the cells, cropped around the cursor, at most 30 times a second.

For a viewer that keeps one screen (`terminal.viewer_filter`), the screen is drawn again when the program changes to its
other screen.

A notice is drawn over the last rows of one viewer's screen. While it is shown, the viewer gets the redrawn screen
instead of the stream, so that the notice and the program's output do not mix; then the stream goes on.

Viewers without a terminal (web pages) are notified that a screen may have changed; they then ask for the screen.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Protocol

from synapsed.errors import Forbidden, KeeperLost
from synapsed.interfaces import TypedLine
from synapsed.model.outer_terminal import OuterTerminal
from synapsed.model.records import Checkpoint
from synapsed.shared.regex import regex
from synapsed.terminal.pane import UNDO, UNDO_ON_ONE_SCREEN, notice_rows
from synapsed.terminal.screen_messages import Redraw
from synapsed.terminal.viewer_filter import ViewerFilter

BUFFER_MAX = 1 << 20
"""Largest number of bytes that wait for one viewer."""

FOCUS = (b"\x1b[I", b"\x1b[O")
"""A terminal's reports that it has got the focus, and that it has lost it. They need no key or click: with some window
managers, the focus follows the mouse."""
_REPORTS = regex(rb"(?:\x1b\[(?:<[\d;]*[Mm]|M...|[IO]))+", re.DOTALL)

PRESENT_S = 120.0
"""Seconds for which a person counts as present at the terminal after a sign (key, mouse, focus, another size). Other
programs report an absence only after ten minutes or more. But while a person is present, a question is shown to this
person only, and the agent waits all that time; two minutes are enough to read a question."""

NOTICE_S = 3.0
"""Seconds for which a notice is shown, if it does not wait for a key."""

NOTICE_EVERY_S = 0.1
"""Seconds between two redraws of the screen below a notice, while the program writes."""

PANE_EVERY_S = 1 / 30
"""Least number of seconds between two redraws for a viewer of another size."""


def are_reports(data: bytes) -> bool:
    """Returns True if `data` has only reports of a viewer's terminal about its mouse and its focus, and no key."""
    return _REPORTS.fullmatch(data) is not None


def without_reports(data: bytes) -> bytes:
    """Returns the keys in `data`."""
    return _REPORTS.sub(b"", data)


class ViewedStage(Protocol):
    """Draws the screen (`screen_messages.Stage`)."""

    async def redraw(self, notice: Sequence[str] = (), *, alone: bool = False) -> Redraw: ...

    async def pane(self, cols: int, rows: int, notice: Sequence[str] = ()) -> bytes: ...

    async def checkpoint(self) -> Checkpoint: ...


class PersonsKeys(Protocol):
    """Takes a person's keys (`person_keys.PersonKeys`)."""

    async def type(self, data: bytes) -> None: ...

    def type_now(self, data: bytes) -> bool: ...

    async def composes(self) -> bool: ...

    async def take_line(self, line: str) -> bool: ...


class ViewedWindow(Protocol):
    """The program's window, and the terminal in which the program is seen. The link implements it."""

    async def resize(self, cols: int, rows: int) -> None: ...

    def follows(self, size: tuple[int, int] | None) -> None:
        """Called when the viewer that was used last has left: `size` is the columns and rows of the one that is
        followed now, None if no other may type."""

    def seen_in(self, outer: OuterTerminal) -> None:
        """Called when the program is seen in another terminal than before."""


class Viewer:
    """One attached terminal (`interfaces.Attachment`)."""

    def __init__(self, group: "Viewers", *, cols: int, rows: int, read_only: bool, keep_size: bool = False) -> None:
        self._group = group
        self.read_only = read_only
        self.keep_size = keep_size
        self.used = 0
        """A number that is the larger, the later it was used; 0: not yet."""
        self._filter = ViewerFilter()
        self._waiting: list[bytes] = []
        self._size = 0
        self._drawing: list[tuple[int, bytes]] | None = None
        """The program's output, with offsets, that came while the screen is being drawn again; None otherwise."""
        self._behind = False
        """True if the screen is to be drawn again, instead of the output that was dropped."""
        self._undo = False
        """True if the viewer's terminal may be in a state that the next redraw does not expect: it is reset first."""
        self.fits = group.fits(cols, rows)
        self._one_screen = False
        self._clipboard = False
        self._told = ""
        """The notice for the person if the program sets the clipboard and may not; empty: no notice is due."""
        self._switched = False
        """True if the program changed to its other screen, which is not drawn yet."""
        self._ended = False
        self._pass: Callable[[bytes], None] | None = None
        self._ready: Callable[[], bool] = bool
        self._line: TypedLine | None = None
        self._handing = False
        """True while the caller handles the last value of `output`."""
        self._wake = asyncio.Event()
        self._notice = ""
        self._notice_over: asyncio.TimerHandle | None = None
        self.cols = cols
        self.rows = rows
        self.outer: OuterTerminal | None = None
        """The properties that the viewer's terminal has reported; None before it has."""

    async def redraw(self) -> bytes:
        """Returns the bytes that draw the present screen; if the viewer gets the stream, it goes on exactly there."""
        self._drop(behind=False)
        undo = (UNDO_ON_ONE_SCREEN if self._one_screen else UNDO) if self._undo else b""
        self._undo = False
        rows = notice_rows(self._notice, self.cols, self.rows // 2) if self._notice else ()
        if not self.fits:
            return undo + await self._group.stage.pane(self.cols, self.rows, rows)
        missed: list[tuple[int, bytes]] = []
        self._drawing = missed
        try:
            screen = await self._group.stage.redraw(rows, alone=self._one_screen)
        finally:
            self._drawing = None
        self._filter = self._fresh_filter()
        drawn = undo + screen.drawn + self._filter.feed(screen.pending)
        self._size = 0
        for offset, data in missed:
            self._take(screen.rest(offset, data))
            if self._behind:
                break
        return drawn

    async def output(self) -> AsyncIterator[bytes]:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._behind:
                self._handing = True
                try:
                    yield await self.redraw()
                except KeeperLost:
                    if not self._ended:  # at the end, the screen may be gone
                        raise
                self._handing = False
                switched, self._switched = self._switched, False
                if self._notice or switched or not self.fits:
                    await asyncio.sleep(NOTICE_EVERY_S if self._notice else PANE_EVERY_S)
            elif self._waiting:
                data = b"".join(self._waiting)
                self._waiting.clear()
                self._size = 0
                self._handing = True
                yield data
                self._handing = False
            if self._ended and not (self._waiting or self._behind):
                return

    def keep_one_screen(self) -> None:
        self._one_screen = True
        self._filter = self._fresh_filter()

    def keep_clipboard(self, told: str | None) -> None:
        self._clipboard, self._told = told is None, told or ""
        self._filter = self._fresh_filter()

    def _fresh_filter(self) -> ViewerFilter:
        return ViewerFilter(clipboard=self._clipboard, one_screen=self._one_screen)

    def pass_to(self, take: Callable[[bytes], None], ready: Callable[[], bool]) -> None:
        self._pass, self._ready = take, ready

    def draw_again(self) -> None:
        self._undo = True
        self._redraw_soon()

    def follow(self, line: TypedLine) -> None:
        self._line = line

    def _passes(self, data: bytes) -> bool:
        return not self._notice and (self._line is None or self._line.passes(data))

    def _passed(self, data: bytes) -> None:
        if self._line is not None:
            self._line.passed(data)

    def type_now(self, data: bytes) -> bool:
        if self.read_only or not self._passes(data) or not self._group.type_now(self, data):
            return False
        self._passed(data)
        return True

    async def write(self, data: bytes) -> None:
        await (self.type(data) if self._line is None else self._line.write(data))

    async def type(self, data: bytes) -> None:
        if self.read_only:
            raise Forbidden("this terminal is attached read-only")
        if self._notice and not are_reports(data):
            self._dismiss()
        await self._group.typed(self, data)

    async def earlier(self) -> Checkpoint:
        return await self._group.stage.checkpoint()

    async def resize(self, cols: int, rows: int) -> None:
        self.cols, self.rows = cols, rows
        await self._group.resized(self)
        self.fit()
        self._redraw_soon()

    def seen_in(self, outer: OuterTerminal) -> None:
        self.outer = outer
        self._group.see()

    def fit(self) -> None:
        """Adapts to the size of this viewer or of the window, which may have changed."""
        fits = self._group.fits(self.cols, self.rows)
        if not (fits and self.fits):
            self._undo = self._undo or fits != self.fits
            self.fits = fits
            self._redraw_soon()

    def _redraw_soon(self) -> None:
        self._drop(behind=True)
        self._wake.set()

    async def composes(self) -> bool:
        return await self._group.keys.composes()

    async def take_line(self, line: str) -> bool:
        return await self._group.keys.take_line(line)

    def notice(self, text: str, *, stays: bool) -> None:
        self._dismiss()
        self._notice = text
        if not stays:
            self._notice_over = asyncio.get_running_loop().call_later(NOTICE_S, self._dismiss)

    def _dismiss(self) -> None:
        """Removes the notice, and has the screen drawn again."""
        if self._notice_over is not None:
            self._notice_over.cancel()
        self._notice = ""
        self._redraw_soon()

    async def close(self) -> None:
        if self._line is not None:
            await self._line.close()
        if self._notice_over is not None:
            self._notice_over.cancel()
        self._group.leave(self)

    def push(self, offset: int, data: bytes) -> None:
        """Takes output of the program, at `offset`."""
        if self._notice or not self.fits:
            self._behind = True
        if self._drawing is not None and not self._behind:
            self._drawing.append((offset, data))
            self._note(data)
        elif not self._behind:
            self._take(data)
        else:
            self._undo = self._undo or self.fits  # the dropped output may have reset modes that the stream has set
        self._wake.set()

    def _take(self, data: bytes) -> None:
        data = self._filter.feed(data)
        if self._filter.switched:
            self._leave_screen(data)
        else:
            self._hand_on(data)
        if self._filter.unset and self._told:
            told, self._told = self._told, ""
            self.notice(told, stays=False)

    def _leave_screen(self, last: bytes) -> None:
        """Handles the program's change to its other screen: sends the output `last`, then has the other drawn."""
        self._hand_on(last)
        self._undo = self._switched = True
        self._redraw_soon()

    def _hand_on(self, data: bytes) -> None:
        if self._pass is not None and not (self._waiting or self._handing) and self._ready():
            if data:
                self._pass(data)
            return
        self._waiting.append(data)
        self._note(data)

    def _note(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > BUFFER_MAX:
            self._undo = True
            self._drop(behind=True)

    def _drop(self, *, behind: bool) -> None:
        """Drops the waiting output. `behind`: the screen will be drawn again instead."""
        self._waiting.clear()
        if self._drawing is not None:
            self._drawing.clear()
        self._size = 0
        self._behind = behind

    def end(self) -> None:
        self._ended = True
        self._wake.set()


class Watch:
    """Implements `interfaces.ScreenWatch`. Several changes between two waits count as one."""

    def __init__(self, leave: Callable[["Watch"], None]) -> None:
        self._leave = leave
        self._news = asyncio.Event()
        self._over = False

    async def changed(self) -> bool:
        await self._news.wait()
        self._news.clear()
        return not self._over

    def close(self) -> None:
        self._leave(self)

    def note(self) -> None:
        self._news.set()

    def end(self) -> None:
        """Ends the watch, because the program is gone or its link is closed."""
        self._over = True
        self._news.set()


class Watches:
    """All watches of one agent."""

    def __init__(self) -> None:
        self._watches: set[Watch] = set()
        self._over = False

    def join(self) -> Watch:
        watch = Watch(self._watches.discard)
        self._watches.add(watch)
        if self._over:
            watch.end()
        return watch

    def note(self) -> None:
        for watch in self._watches:
            watch.note()

    def end(self) -> None:
        self._over = True
        for watch in self._watches:
            watch.end()


class Viewers:
    """All terminals attached to one agent. The window follows the one that was used last of those that are there."""

    def __init__(
        self,
        stage: ViewedStage,
        keys: PersonsKeys,
        window: ViewedWindow,
        *,
        now: Callable[[], float] = time.monotonic,
        outer: OuterTerminal,
    ) -> None:
        """`outer` has the properties of the terminal in which the program was seen last."""
        self.stage = stage
        self.keys = keys
        self.window = window
        self._size: tuple[int, int] | None = None
        """Columns and rows of the window; None if they are unknown."""
        self._outer = outer
        self._viewers: list[Viewer] = []
        self._watches = Watches()
        self.watch = self._watches.join
        self._last: Viewer | None = None
        self._uses = 0
        self._joining = 0
        self._now = now
        self._signed_at: float | None = None
        """Time of the last sign of a person at a viewer that may type; None if there was none, or the last one was that
        the terminal lost the focus."""

    def __len__(self) -> int:
        """Returns the number of viewers, with those that are joining: the window takes their size before they do."""
        return len(self._viewers) + self._joining

    @property
    def writers(self) -> int:
        """Number of viewers that may type, with those that are joining."""
        return self._joining + sum(not viewer.read_only for viewer in self._viewers)

    @property
    def has_person(self) -> bool:
        """True if a person is present at a viewer that may type (PRESENT_S)."""
        recent = self._signed_at is not None and self._now() - self._signed_at < PRESENT_S
        return recent and self.writers > 0

    def _sign(self, data: bytes = b"") -> None:
        """Notes a sign of a person: `data` came from the viewer's terminal. If it reports that the terminal lost the
        focus, the person looks elsewhere."""
        self._signed_at = None if data.endswith(FOCUS[1]) else self._now()

    def fits(self, cols: int, rows: int) -> bool:
        """Returns True if the window has that size, or its size is unknown."""
        return self._size in (None, (cols, rows))

    def resize(self, cols: int, rows: int) -> None:
        """Notes that the window has another size."""
        if self._size != (cols, rows):
            self._size = (cols, rows)
            self._watches.note()
            for viewer in self._viewers:
                viewer.fit()

    async def join(self, *, cols: int, rows: int, read_only: bool, keep_size: bool = False) -> Viewer:
        """Returns a new viewer. Unless it is read-only, the window takes its size: at once, or, with `keep_size` and
        another viewer there, when a key is typed at it."""
        viewer = Viewer(self, cols=cols, rows=rows, read_only=read_only, keep_size=keep_size)
        if not read_only:
            self._sign()
        takes_window = not (read_only or (keep_size and len(self)))
        self._joining += takes_window
        try:
            if takes_window:
                await self._use(viewer)
            viewer.fits = self.fits(cols, rows)
            self._viewers.append(viewer)
        finally:
            self._joining -= takes_window
            if viewer not in self._viewers:
                self.leave(viewer)  # gives the window back
        return viewer

    async def typed(self, viewer: Viewer, data: bytes) -> None:
        self._sign(data)
        if viewer.keep_size and viewer is not self._last and are_reports(data):
            return  # they are of a window that it does not have, and take none
        await self._use(viewer)
        await self.keys.type(data)

    def type_now(self, viewer: Viewer, data: bytes) -> bool:
        if viewer is not self._last or not self.keys.type_now(data):
            return False
        self._sign(data)
        return True

    async def resized(self, viewer: Viewer) -> None:
        if not viewer.read_only:
            self._sign()
        if viewer is self._last:
            await self.window.resize(viewer.cols, viewer.rows)

    async def _use(self, viewer: Viewer) -> None:
        if viewer is not self._last:
            self._uses += 1
            viewer.used = self._uses
            self._last = viewer
            self.see()
            if self._size != (viewer.cols, viewer.rows):
                await self.window.resize(viewer.cols, viewer.rows)

    def see(self) -> None:
        """Finds the terminal in which the program is seen now: the one that was used last, or else the newest. When all
        have left, the colours and the size of the last one stay, since the program still uses them; its keyboard mode
        does not stay. Reports a change."""
        told = [viewer for viewer in self._viewers if viewer.outer is not None]
        seen = next((viewer for viewer in (self._last, *reversed(told)) if viewer in told), None)
        outer = replace(self._outer, keyboard=False) if seen is None or seen.outer is None else seen.outer
        if outer != self._outer:
            self._outer = outer
            self.window.seen_in(outer)

    def push(self, offset: int, data: bytes) -> None:
        self._watches.note()
        for viewer in self._viewers:
            viewer.push(offset, data)

    def missed(self) -> None:
        """Notes that output was skipped: the screen is drawn again for all viewers."""
        for viewer in self._viewers:
            viewer.draw_again()

    def leave(self, viewer: Viewer) -> None:
        viewer.end()
        if viewer in self._viewers:
            self._viewers.remove(viewer)
        left_alone = self._last is None and len(self._viewers) == 1
        if self._last is viewer or left_alone:
            self._last = max((one for one in self._viewers if not one.read_only), key=attrgetter("used"), default=None)
            if self._last is not None and self._size != (self._last.cols, self._last.rows):
                self.window.follows((self._last.cols, self._last.rows))
        self.see()
        if not self.writers:
            self.window.follows(None)

    def end(self) -> None:
        """Ends all viewers: the program is gone."""
        self._watches.end()
        for viewer in list(self._viewers):
            viewer.end()
