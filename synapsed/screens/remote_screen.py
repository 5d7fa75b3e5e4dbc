"""The screen of one program, drawn in another process (`worker`): sends output, notes and requests there, checks the
answers, and keeps the last look (one reading of the screen), which is valid until something changes.

When the process ends, the screen is drawn again from its last checkpoint (the bytes that draw it, with the offset of
the output) and the spool, and open requests are sent again: their callers wait a little longer. If the process may have
been working on this screen, the output is first tried in a process of its own (`harmful_output`). Output that fails
there, or at which processes end again and again, is skipped.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from synapsed import aio
from synapsed.clock import Clock
from synapsed.errors import KeeperLost, StoreError, TooLarge
from synapsed.keeper.spool import SpoolReader
from synapsed.model.agent import Activity
from synapsed.model.outer_terminal import OuterTerminal
from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import Checkpoint
from synapsed.profiles.profile import Profile
from synapsed.screens import checked_replies, harmful_output, protocol
from synapsed.screens.harmful_output import HarmRecord
from synapsed.screens.protocol import AS_DRAWN, FrameKind, ScreenFrame, ScreenFrameError
from synapsed.terminal.explain import Witness
from synapsed.terminal.look import Look
from synapsed.terminal.screen_messages import (
    Ask,
    Drawn,
    Harmed,
    InBackground,
    Incomplete,
    KeptLook,
    LinesRead,
    LinesWanted,
    Note,
    Redraw,
    Skipped,
    StageEvent,
    Start,
    StopAsked,
    StopOver,
    TurnClosed,
    TurnOpened,
)

if TYPE_CHECKING:
    from synapsed.screens.pool import ScreenPool, Seat

TRIES_MAX = 2
"""Number of trials that output may pass although a process has ended at it; then it counts as harmful nevertheless."""

SIZES_MAX = 64
"""Number of the last sizes that are remembered."""

CHUNK = 64 * 1024
"""Bytes of the spool that are sent at a time to a process that draws a screen again."""

AHEAD = 512 * 1024
"""Largest number of bytes of the spool that are sent to such a process and not drawn yet."""

log = structlog.stdlib.get_logger("synapsed.screens")

type Told = Callable[[StageEvent], None]
type Size = tuple[int, int]
"""Columns, rows."""


class WindowSizes:
    """The sizes that a window has had: output that is drawn again is drawn in the size that the window had then.
    `now` is its present size. Pure."""

    def __init__(self, size: Size) -> None:
        """`size` is the first size, unless `resize` reports another one."""
        self.now = size
        self._first = size
        self._known: deque[tuple[int, Size]] = deque(maxlen=SIZES_MAX)
        """The last sizes, each with the offset from which on it is valid."""
        self._due: deque[tuple[int, Size]] = deque()
        """The sizes among them that the drawing has not got yet (`due`)."""
        self._drawn = size
        """The size that the drawing got last."""

    def resize(self, size: Size, at: int, sent: int) -> None:
        """Notes that the window has `size` from the offset `at` on, when output up to `sent` is already being drawn."""
        self.now = size
        if not self._known or self._known[-1][1] != size:
            self._known.append((at, size))
        if at >= sent and size != (self._due[-1][1] if self._due else self._drawn):
            self._due.append((at, size))

    def last_at(self, offset: int) -> int:
        """Returns the offset for a size that is reported when output up to `offset` has come: `offset`, but not less
        than the offset of the last known size."""
        return max(offset, self._known[-1][0]) if self._known else offset

    def begin(self, offset: int, size: Size | None) -> Size:
        """Begins to draw at `offset`: with a kept screen of that `size`, from before or after a change of size at the
        same offset; or with an empty screen (None). Returns the screen's size."""
        before = [size for at, size in self._known if at <= offset]
        self._drawn = size or (before[-1] if before else self._first)
        self._due = deque(one for one in self._known if one[0] > offset or (size is not None and one[0] == offset))
        if not self._due and self._drawn != self.now:
            self._due.append((offset, self.now))  # an older keeper does not report the sizes' offsets
        return self._drawn

    def forget_due(self) -> None:
        """Drops the due sizes, because the caller is about to report the window's sizes."""
        self._due.clear()

    def due(self, sent: int) -> Iterator[Size]:
        """Yields each size once that the drawing must get before the output after `sent`."""
        while self._due and self._due[0][0] <= sent:
            _, self._drawn = self._due.popleft()
            yield self._drawn

    def until(self, offset: int, end: int) -> int:
        """Returns the end of the output from `offset` drawn in one size, at most `end`. Call `due(offset)` first."""
        return min(self._due[0][0], end) if self._due else end


@dataclass(slots=True)
class _Asked:
    """A request that has no answer yet. `read` makes the answer from a frame, or raises ScreenFrameError."""

    frame: ScreenFrame
    read: Callable[[ScreenFrame], Any]
    answer: asyncio.Future[Any]
    tries: int = 0


class RemoteStage:
    """The screen. It begins with `checkpoint`, if that is of this launch, whose output begins at `launch_start`; `kept`
    reads the last saved checkpoint."""

    _ended_at = -1
    """End of the sent output when a process working on it was last killed from outside."""

    _passed_to = 0
    """End of the output that is not drawn any more, because no caller waits for it (`pass_over`)."""

    _before: Look | None = None
    """The last look that came from the present process: the next one is sent as a difference to it."""

    _known: tuple[tuple[object, ...], bytes] = ((), b"")
    """`Ask.known` of the last request, and its encoding."""

    def __init__(
        self,
        pool: "ScreenPool",
        *,
        agent_id: str,
        profile: Profile,
        size: tuple[int, int],
        launch_start: int,
        checkpoint: Checkpoint | None,
        kept: Callable[[], Awaitable[Checkpoint | None]],
        spool: Path,
        harms: HarmRecord,
        clock: Clock,
    ) -> None:
        self._pool = pool
        self._agent_id = agent_id
        self._profile = profile
        self._sizes = WindowSizes(size)
        self._launch_start = launch_start
        self._checkpoint = self._of_launch(checkpoint)
        self._kept = kept
        self._spool = spool
        self._harms = harms
        self._clock = clock
        begun = self._checkpoint
        self.start = Start(
            offset=self._drawn_from(launch_start if begun is None else begun.offset),
            started=begun is not None and begun.state.get("activity") not in (None, Activity.STARTING.value),
            harm=harms.harm,
            size=None if begun is None else (begun.cols, begun.rows),
            asked=None if begun is None else begun.state.get("asked"),
            misread=None if begun is None else begun.state.get("misread"),
        )
        self._told: Told = lambda _event: None
        self._tasks = aio.TaskSet()
        self._drawing_again: asyncio.Task[None] | None = None
        self._seat: Seat | None = None
        self.works_since: int | None = None
        """See `pool.PlacedScreen`."""
        self._live = False
        """True if output, notes and requests are sent to the process at once; False while the screen is drawn again."""
        self._closed = False
        self._heard = False
        """True if the process has sent a frame since it got this screen."""
        self._fed = self._sent = self._drawn = self.start.offset
        """Three offsets: ends of the output that came, that was sent to the process, and that it has drawn."""
        self._progress = asyncio.Event()
        self._tried = (0, 0)
        """End of the output that was tried last, and the number of trials."""
        self._suspected: set[int] = set()
        """Kinds of the requests that were open at that trial: once all are answered, the output is not the cause."""
        self._asked: dict[int, _Asked] = {}
        self._numbers = itertools.count(1)
        self._look = KeptLook()
        self._notes: dict[str, tuple[int, Note]] = {}
        """The last note of each kind, with the end of the output at that time, in the order of their arrival."""
        self._untold: list[tuple[int, Note]] = []
        """The notes that are still to be sent to a process that draws the screen again."""

    def _of_launch(self, checkpoint: Checkpoint | None) -> Checkpoint | None:
        """Returns the checkpoint if it is of this launch, else None. A checkpoint at exactly `launch_start` is the last
        screen of the launch before."""
        return checkpoint if checkpoint is not None and checkpoint.offset > self._launch_start else None

    @property
    def drawn_from(self) -> float:
        """Offset from which on output may be fed to an emulator; infinite if none may."""
        harm = self._harms.harm
        return 0.0 if harm is None else harm.until

    def _drawn_from(self, offset: int) -> int:
        """Returns `offset`, or the end of the skipped output if that is later."""
        harm = self._harms.harm
        return max(offset, self._passed_to, 0 if harm is None else harm.skip_to)

    # --- notes ---

    def open(self, told: Told) -> None:
        """Begins to draw. `told` is called with results that were not requested."""
        self._told = told
        self._take_seat(self._checkpoint)
        self._sizes.forget_due()  # the caller reports the sizes by `resize`
        self._checkpoint = None
        self._live = True

    def feed(self, offset: int, data: bytes, now: float, *, continues: bool = False) -> None:
        self._look.changed()
        self._fed = offset + len(data)
        if self._live:
            self._feed(offset, data, now, continues=continues)

    def pass_over(self, offset: int) -> None:
        self._look.changed()
        self._passed_to = offset
        self._fed = max(self._fed, offset)
        if self._live:
            self._sent = max(self._sent, offset)
            self._say(ScreenFrame(FrameKind.PASS, offset=offset))
            self._draw_due()

    def note(self, note: Note) -> None:
        if isinstance(note, StopOver) and not self._may_stop:
            return  # no StopAsked came before it
        self._look.changed()
        match note:
            case TurnOpened() | TurnClosed():
                self._keep("turn", note)
            case StopAsked() | StopOver():
                self._keep("stop", note)
            case OuterTerminal():
                self._keep("outer", note)
            case InBackground():
                self._keep("background", note)
            case Skipped(offset):
                self._fed = offset
                self._sent = offset if self._live else self._sent
        if self._live:
            self._tell(note)
            self._draw_due()

    @property
    def _may_stop(self) -> bool:
        """True if the last note about a stop is StopAsked, without StopOver. (A checkpoint does not contain this.)"""
        return isinstance(self._notes.get("stop", (0, None))[1], StopAsked)

    def _keep(self, kind: str, note: Note) -> None:
        self._notes.pop(kind, None)
        self._notes[kind] = (self._fed, note)
        if not self._live:
            self._untold.append(self._notes[kind])

    def _tell(self, note: Note) -> None:
        self._say(ScreenFrame(FrameKind.NOTE, text=protocol.write_value(note)))

    def resize(self, cols: int, rows: int, at: int | None = None) -> None:
        """Sets the size of the window, from offset `at` of the output on; None: from the end of the output on."""
        self._look.changed()
        self._sizes.resize((cols, rows), self._sizes.last_at(self._fed) if at is None else at, self._sent)
        if self._live:
            self._draw_due()

    def _draw_due(self) -> None:
        for cols, rows in self._sizes.due(self._sent):
            self._say(ScreenFrame(FrameKind.RESIZE, number=cols, offset=rows))

    async def close(self) -> None:
        """Ends all requests: open and later ones get KeeperLost."""
        self._live, self._closed = False, True
        if self._seat is not None:
            self._seat.leave()  # first: then the end of the process is not reported to this screen any more
            self._seat = None
        await self._tasks.cancel()
        for asked in self._asked.values():
            if not asked.answer.done():
                asked.answer.set_exception(_gone())
                asked.answer.exception()  # marks it as seen: perhaps no caller waits for it
        self._asked.clear()

    # --- requests ---

    async def look(self, ask: Ask) -> Look | None:
        """Returns the look. None only if `ask.whole` is set and the program is in the middle of a frame."""
        if (kept := self._look.answers(ask)) is not None:
            return kept
        changes = self._look.changes
        if ask.known != self._known[0]:
            self._known = ask.known, protocol.write_value(ask)
        look: Look | None = await self._ask(
            self._read_look, FrameKind.LOOK, self._known[1], now=ask.now, flag=protocol.flag_of(ask)
        )
        if look is not None:
            self._look.keep(look, ask, changes)
        return look

    def _read_look(self, frame: ScreenFrame) -> Look | None:
        look = checked_replies.read_look(frame, self._profile, self._before)
        self._before = look or self._before
        return look

    async def explain(self, ask: Ask, *, as_drawn: bool = False) -> list[Witness]:
        text, flag = protocol.write_value(ask), protocol.flag_of(ask) | AS_DRAWN * as_drawn
        return await self._ask(checked_replies.read_witnesses, FrameKind.EXPLAIN, text, now=ask.now, flag=flag)

    async def checkpoint(self) -> Checkpoint:
        return await self._ask(checked_replies.read_checkpoint, FrameKind.CHECKPOINT)

    async def redraw(self, notice: Sequence[str] = (), *, alone: bool = False) -> Redraw:
        return await self._ask(checked_replies.read_redraw, FrameKind.REDRAW, protocol.write_value((notice, alone)))

    async def pane(self, cols: int, rows: int, notice: Sequence[str] = ()) -> bytes:
        text = protocol.write_value((cols, rows, notice))
        return await self._ask(checked_replies.read_redrawn, FrameKind.PANE, text)

    async def text(self, *, scrollback: bool, as_drawn: bool = False) -> str:
        flag = int(scrollback) | AS_DRAWN * as_drawn
        return await self._ask(checked_replies.read_text, FrameKind.TEXT, flag=flag)

    async def shown(self, fmt: ScreenForm, *, as_drawn: bool = False) -> Shown:
        flag = AS_DRAWN * as_drawn
        shown = await self._ask(partial(checked_replies.read_shown, fmt), FrameKind.SHOWN, fmt.encode(), flag=flag)
        if isinstance(shown, TooLarge):
            raise shown
        return shown

    async def read_lines(self, wanted: LinesWanted) -> LinesRead:
        text = protocol.write_value((replace(wanted, output=b""), self._sizes.now))
        return await self._ask(checked_replies.read_lines, FrameKind.LINES, text, blob=wanted.output)

    async def _ask[T](
        self,
        read: Callable[[ScreenFrame], T],
        kind: FrameKind,
        text: bytes = b"",
        *,
        now: float = 0.0,
        flag: int = 0,
        blob: bytes = b"",
    ) -> T:
        if self._closed:
            raise _gone()
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        number = next(self._numbers)
        asked = self._asked[number] = _Asked(ScreenFrame(kind, 0, number, 0, now, flag, text, blob), read, answer)
        if self._live:
            self._say(asked.frame)
        try:
            return await answer
        finally:
            if not self._live:  # no process has the request: if it was cancelled, it is not sent again
                self._asked.pop(number, None)

    # --- frames from the process ---

    def came(self, frame: ScreenFrame) -> None:
        """Takes a frame from the process. Raises ScreenFrameError for an impossible one."""
        self._heard = True
        if not self._drawn <= frame.offset <= self._sent:
            raise ScreenFrameError(
                f"output drawn up to {frame.offset}, which is not from {self._drawn} to {self._sent}"
            )
        asked = result = None
        if frame.kind == FrameKind.ANSWER:
            asked = self._asked.get(frame.number)
            if asked is None or not self._live:
                raise ScreenFrameError("an answer that nobody asked for")
            result = asked.read(frame)
            del self._asked[frame.number]  # only now: a request whose answer cannot be read is sent again
            if asked.frame.kind in self._suspected:
                self._suspected.discard(asked.frame.kind)
                self._tried = self._tried if self._suspected else (0, 0)
        replies = checked_replies.read_replies(frame.text, frame.offset) if frame.kind == FrameKind.DRAWN else ()
        if replies or frame.offset > self._drawn:
            self._drawn = frame.offset
            self._progress.set()
            self._told(Drawn(frame.offset, replies))
        if not self._works:
            self.works_since = None
        if asked is not None and not asked.answer.done():
            asked.answer.set_result(result)

    @property
    def _works(self) -> bool:
        return not self._heard or self._drawn < self._sent or (self._live and bool(self._asked))

    def lost(self, *, suspect: bool, outside: bool) -> None:
        """Implements `pool.PlacedScreen`: draws the screen again after the end of its process."""
        self._look.changed()
        self._seat = self._before = self.works_since = None
        self._live = False
        self._asked = {number: asked for number, asked in self._asked.items() if not asked.answer.done()}
        left = (self._drawn, self._sent) if suspect and not (outside and self._by_chance()) else None
        if self._drawing_again is not None:
            self._drawing_again.cancel()
        self._drawing_again = self._tasks.spawn(self._draw_again(left, outside))

    def _by_chance(self) -> bool:
        """Returns True if a process was killed from outside at other output than the last one: then the output is not
        tried, because a trial takes time."""
        before, self._ended_at = self._ended_at, self._sent
        return not self._drawn <= before <= self._sent

    # --- drawn again ---

    async def _draw_again(self, left: tuple[int, int] | None, outside: bool) -> None:
        """Draws the screen again. `left` is the part of the output at which the process may have ended, or at a request
        about it; None if it was not working on this screen. `outside`: it was killed or stopped from outside."""
        try:
            checkpoint = self._of_launch(await self._kept())
        except StoreError as error:  # then the screen is drawn from the beginning of the launch
            log.warning("the last checkpoint cannot be read", agent_id=self._agent_id, error=error.message)
            checkpoint = None
        if left is not None:
            async with self._pool.trials:
                try:
                    await self._examine(checkpoint, left, outside)
                except Exception:  # the screen is drawn again nevertheless
                    log.exception("output could not be tried", agent_id=self._agent_id)
        self._take_seat(checkpoint)
        try:
            whole = await self._read_again()
        except OSError as error:  # later output is drawn nevertheless, and requests are answered
            log.error("output cannot be read back", agent_id=self._agent_id, error=str(error))  # noqa: TRY400
            whole = False
        if self._sent < self._fed:
            self._sent = self._fed
            self._tell(Skipped(self._fed))
        if not whole:
            self._told(Incomplete())
        self._tell_due()
        self._draw_due()
        self._live = True
        for asked in self._asked.values():
            self._say(asked.frame)

    async def _read_again(self) -> bool:
        """Draws the earlier output from the spool. Returns True if the spool has all of it. Raises OSError."""
        whole = True
        reader = await asyncio.to_thread(SpoolReader, str(self._spool))
        while self._sent < self._fed:
            while self._sent - self._drawn > AHEAD:
                self._progress.clear()
                await self._progress.wait()
            if self._sent < self._passed_to:
                self._sent = self._passed_to
                self._tell(Skipped(self._sent))
                continue
            upto = self._tell_due()
            at, data = await asyncio.to_thread(_read, reader, self._sent, min(CHUNK, upto - self._sent))
            whole = whole and bool(data) and at == self._sent
            if not data or at >= self._fed:
                break  # the spool does not have it: the disk was full
            self._feed(at, data[: self._fed - at], self._clock.monotonic())
        return whole

    def _tell_due(self) -> int:
        """Sends the notes that came before the next unsent output. Returns the end of the output that may be sent
        before the next note."""
        while self._untold and self._untold[0][0] <= self._sent:
            self._tell(self._untold.pop(0)[1])
        return self._untold[0][0] if self._untold else self._fed

    def _take_seat(self, checkpoint: Checkpoint | None) -> None:
        offset = self._launch_start if checkpoint is None else checkpoint.offset
        self._seat = self._pool.place(self)
        self._heard = False
        self._drawn, self._sent = offset, self._drawn_from(offset)
        now = self._clock.monotonic()
        size = self._sizes.begin(offset, None if checkpoint is None else (checkpoint.cols, checkpoint.rows))
        opening = protocol.Opening(self._profile, *size, offset, checkpoint, self._harms.harm, now)
        self._say(ScreenFrame(FrameKind.OPEN, blob=protocol.write_opening(opening)))
        if self._sent > offset:
            self._tell(Skipped(self._sent))
        self._untold = list(self._notes.values())

    def _feed(self, offset: int, data: bytes, now: float, *, continues: bool = False) -> None:
        """Sends the output in pieces, and between them the changes of the window's size at these places."""
        self._sent = offset
        self._draw_due()
        while data:
            self._sent = self._sizes.until(offset, offset + len(data))
            piece, data = data[: self._sent - offset], data[self._sent - offset :]
            self._say(ScreenFrame(FrameKind.FEED, offset=offset, now=now, flag=int(continues), blob=piece))
            offset, continues = self._sent, True
            self._draw_due()

    def _say(self, frame: ScreenFrame) -> None:
        if self._seat is not None:
            self._seat.say(frame)
            if self.works_since is None and self._works:
                self.works_since = next(self._pool.order)

    async def _examine(self, checkpoint: Checkpoint | None, left: tuple[int, int], outside: bool) -> None:
        """Tries the output at which the process ended, and records harmful output so that it is not drawn again."""
        for asked in self._asked.values():
            if asked.frame.kind == FrameKind.LINES:
                await self._examine_lines(asked, outside)
        harm = self._harms.harm
        if harm is not None and checkpoint is not None and checkpoint.offset <= harm.skip_to:
            checkpoint = None
        start = max(
            self._launch_start if checkpoint is None else checkpoint.offset, 0 if harm is None else harm.skip_to
        )
        output = await asyncio.to_thread(_read_all, self._spool, start, left[1])
        told = {"agent_id": self._agent_id, "start": left[0], "end": left[1]}
        behind = 0
        if not await harmful_output.survives(checkpoint, output):
            behind = len(output) - await harmful_output.harm_end(checkpoint, output)
        elif outside or self._passes(left):
            log.info("a process of screens ended at output that does no harm", **told)
            return
        log.error("output that ends the terminal emulator is passed over", **told, behind=behind)
        await self._harms.pass_over(left[1] - behind)
        if (harm := self._harms.harm) is not None:
            self._told(Harmed(harm))

    def _passes(self, left: tuple[int, int]) -> bool:
        """Returns True if output that passed a trial counts as harmless: until more than TRIES_MAX processes have ended
        at it."""
        tried, tries = self._tried
        self._suspected = {asked.frame.kind for asked in self._asked.values()} or {FrameKind.LOOK}
        self._tried = left[1], tries + 1 if tries and left[0] <= tried <= left[1] else 1
        return self._tried[1] <= TRIES_MAX

    async def _examine_lines(self, asked: _Asked, outside: bool) -> None:
        """Tries the output in a request for lines, which has an emulator of its own; harmful output is removed from the
        request."""
        asked.tries += not outside
        output = asked.frame.blob
        if not await harmful_output.survives(None, output):
            output = output[await harmful_output.harm_end(None, output) :]
        elif asked.tries > TRIES_MAX:
            output = b""
        asked.frame = asked.frame._replace(blob=output)


def _gone() -> KeeperLost:
    return KeeperLost("the screen is not drawn any more: the program has ended, or its link is closed")


def _read(reader: SpoolReader, offset: int, limit: int) -> tuple[int, bytes]:
    reader.refresh()
    return reader.read(offset, limit)


def _read_all(spool: Path, start: int, end: int) -> bytes:
    reader = SpoolReader(str(spool))
    pieces: list[bytes] = []
    offset = max(start, reader.start)
    while offset < min(end, reader.end):
        at, data = reader.read(offset, end - offset)
        if not data:
            break
        pieces.append(data)
        offset = at + len(data)
    return b"".join(pieces)
