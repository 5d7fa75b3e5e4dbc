"""The screen of a program, drawn in this process: what is asked of it is answered at once."""

from collections.abc import Callable, Sequence
from typing import Any

from synapsed.model.agent import Activity
from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import Checkpoint, LaunchRecord
from synapsed.profiles.profile import Profile
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.explain import Witness
from synapsed.terminal.look import Look
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.printed import read_lines
from synapsed.terminal.screen_formats import document, picture
from synapsed.terminal.screen_messages import Ask, Drawn, LinesRead, LinesWanted, Note, Redraw, StageEvent, Start


def shown(screen: Screen, fmt: ScreenForm) -> Shown:
    """The screen in that form."""
    match fmt:
        case "text":
            return screen.snapshot().text()
        case "coloured":
            return screen.coloured()
        case "ansi":
            return screen.redraw()
        case "picture":
            return picture(screen)
        case "rows":
            return screen.page_rows()
    return document(screen)


def from_lines(*given: Any, **more: Any) -> str:
    """The text of `all_lines`."""
    return all_lines(*given, **more).text


def all_lines(*given: Any, **more: Any) -> LinesRead:
    """See `read_lines`, all at once."""
    reading = read_lines(*given, **more)
    while True:
        try:
            next(reading)
        except StopIteration as done:
            answer: LinesRead = done.value
            return answer


class LocalStage:
    """A `Stage`. `now` is monotonic seconds."""

    def __init__(
        self,
        profile: Profile,
        launch: LaunchRecord,
        size: tuple[int, int],
        checkpoint: Checkpoint | None,
        now: float,
    ) -> None:
        self._profile = profile
        self._told: Callable[[StageEvent], None] = lambda _: None
        # At the very offset where this launch began it is the last launch's screen.
        if checkpoint is not None and checkpoint.offset > launch.spool_start:
            self._observer = TerminalObserver.restore(profile, checkpoint, now)
        else:
            self._observer = TerminalObserver(profile, cols=size[0], rows=size[1], offset=launch.spool_start)
        kept = None if checkpoint is None else (checkpoint.cols, checkpoint.rows)
        self.start = Start(self._observer.offset, self._observer.activity is not Activity.STARTING, None, kept)

    @property
    def drawn_from(self) -> float:
        return self._observer.drawn_from

    def open(self, told: Callable[[StageEvent], None]) -> None:
        self._told = told

    def feed(self, offset: int, data: bytes, now: float, *, continues: bool = False) -> None:
        replies = self._observer.feed(offset, data, now, continues=continues)
        self._told(Drawn(self._observer.offset, replies))

    def pass_over(self, offset: int) -> None:
        """All of it is drawn at once."""
        if self._observer.offset < offset:
            self._observer.skip(offset)

    def note(self, note: Note) -> None:
        self._observer.note(note)

    def resize(self, cols: int, rows: int, at: int | None = None) -> None:
        if at is None:
            self._observer.resize(cols, rows)

    async def look(self, ask: Ask) -> Look | None:
        return self._observer.asked(ask)

    async def explain(self, ask: Ask, *, as_drawn: bool = False) -> list[Witness]:
        self._observer.believe(ask)
        return self._observer.explain(ask.now)

    async def checkpoint(self) -> Checkpoint:
        return self._observer.checkpoint()

    async def redraw(self, notice: Sequence[str] = (), *, alone: bool = False) -> Redraw:
        return Redraw(self._observer.redraw(notice, alone=alone), self._observer.screen.pending, self._observer.offset)

    async def pane(self, cols: int, rows: int, notice: Sequence[str] = ()) -> bytes:
        return self._observer.screen.pane(cols, rows, notice)

    async def text(self, *, scrollback: bool, as_drawn: bool = False) -> str:
        return self._observer.screen.text(scrollback=scrollback)

    async def shown(self, fmt: ScreenForm, *, as_drawn: bool = False) -> Shown:
        return shown(self._observer.screen, fmt)

    async def read_lines(self, wanted: LinesWanted) -> LinesRead:
        screen = self._observer.screen.snapshot()
        return all_lines(
            self._profile.answer,
            self._profile.composer,
            wanted.output,
            cols=screen.cols,
            rows=screen.rows,
            prompt=wanted.prompt,
            message=wanted.message,
            one_by_one=wanted.one_by_one,
            edits=wanted.edits,
        )

    async def close(self) -> None:
        pass
