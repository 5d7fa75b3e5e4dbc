"""The screen of a program, drawn in this process: what is asked of it is answered at once."""

import asyncio
from collections.abc import Callable, Sequence

from synapsed.aio import Pace
from synapsed.model.agent import Activity
from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import Checkpoint, LaunchRecord
from synapsed.profiles import Profile
from synapsed.pty.feed_mark import FeedMarks
from synapsed.terminal.explain import Witness
from synapsed.terminal.look import Look
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.printed import from_lines
from synapsed.terminal.shown import shown
from synapsed.terminal.stage import Ask, Drawn, Harmed, LinesWanted, Note, Redraw, Start


class LocalStage:
    """A `Stage`. `now` is monotonic seconds; `marks` tell the next daemon what this one was ended by; `pace` is that of
    all screens that are kept."""

    def __init__(
        self,
        profile: Profile,
        launch: LaunchRecord,
        size: tuple[int, int],
        checkpoint: Checkpoint | None,
        now: float,
        marks: FeedMarks | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._profile = profile
        self._pace = pace
        self._marks = marks
        self._told: Callable[[Drawn | Harmed], None] = lambda _: None
        mark = marks.screen if marks is not None else None
        harm = mark.harm if mark is not None else None
        # At the very offset where this launch began it is the last launch's screen.
        if checkpoint is not None and checkpoint.offset > launch.spool_start:
            if mark is not None:
                mark.at(checkpoint.offset, checkpoint.offset)
            self._observer = TerminalObserver.restore(profile, checkpoint, now, guard=mark, harm=harm)
        else:
            self._observer = TerminalObserver(
                profile, cols=size[0], rows=size[1], offset=launch.spool_start, guard=mark, harm=harm
            )
        started = self._observer.activity is not Activity.STARTING
        self.start = Start(self._observer.offset, started, harm)

    @property
    def drawn_from(self) -> float:
        harm = self._marks.answers.harm if self._marks is not None else None
        return max(self._observer.drawn_from, harm.until if harm is not None else 0)

    def open(self, told: Callable[[Drawn | Harmed], None]) -> None:
        self._told = told

    def feed(self, offset: int, data: bytes, now: float, *, continues: bool = False) -> None:
        if self._marks is not None:
            self._marks.screen.at(offset, offset + len(data))
        replies = self._observer.feed(offset, data, now, continues=continues)
        self._told(Drawn(self._observer.offset, replies))

    def note(self, note: Note) -> None:
        self._observer.note(note)

    def resize(self, cols: int, rows: int) -> None:
        self._observer.resize(cols, rows)

    async def look(self, ask: Ask) -> Look | None:
        return self._observer.asked(ask)

    async def explain(self, ask: Ask) -> list[Witness]:
        self._observer.believe(ask)
        return self._observer.explain(ask.now)

    async def checkpoint(self) -> Checkpoint:
        if self._pace is not None:
            await self._pace.turn()
        return self._observer.checkpoint()

    async def redraw(self, notice: Sequence[str] = ()) -> Redraw:
        return Redraw(self._observer.redraw(notice), self._observer.screen.pending, self._observer.offset)

    async def pane(self, cols: int, rows: int, notice: Sequence[str] = ()) -> bytes:
        return self._observer.screen.pane(cols, rows, notice)

    async def text(self, *, scrollback: bool) -> str:
        return self._observer.screen.text(scrollback=scrollback)

    async def shown(self, fmt: ScreenForm) -> Shown:
        return shown(self._observer.screen, fmt)

    async def read_lines(self, wanted: LinesWanted) -> str:
        mark, screen = self._marks.answers if self._marks is not None else None, self._observer.screen.snapshot()
        if mark is not None:
            mark.at(wanted.start, wanted.start + len(wanted.output))
        return await asyncio.to_thread(
            from_lines,
            self._profile.answer,
            self._profile.composer,
            wanted.output,
            cols=screen.cols,
            rows=screen.rows,
            prompt=wanted.prompt,
            message=wanted.message,
            one_by_one=wanted.one_by_one,
            edits=wanted.edits,
            guard=mark,
        )

    async def close(self) -> None:
        if self._marks is not None:
            self._marks.close()
