"""Runs `top` as a Textual app: keys and clicks go to the desk (`Desk`, the pure model of all that is shown), and the
desk's content goes to the panes. After each attach the app is run again, until the person leaves.

It looks for new events ten times a second; unchanged panes are not drawn.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Container
from textual.widgets import Input

from synapsectl.commands.inbox import attach_to
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, CtlError
from synapsectl.inbox.items import is_hidden
from synapsectl.inbox.model import Command, InboxAct
from synapsectl.inbox.view import TYPING_KEYS
from synapsectl.top.desk import ANSWERING, Desk
from synapsectl.top.drawing import BESIDE, Drawing, QuestionShown, below_each_other, question_most
from synapsectl.top.panes import HelpScreen, Pane
from synapsectl.top.watching import Watching

TICK = 0.1
SIGNALED = 128
"""Added to a signal's number for the exit code, as shells do."""
WIDE = 120
"""Columns from which on all panes are shown side by side."""
PANES = ("head", "agents", "tasks", "events", "title", "screen", "question", "foot")


class TopApp(App[str]):
    """The app. Its result is the agent to attach to; None if the person leaves."""

    CSS = """
    Screen { layers: base; }
    #head, #foot, #title { height: 1; }
    #body { height: 1fr; layout: vertical; }
    #left { height: auto; }
    #right { height: 1fr; }
    #screen { height: 1fr; }
    #question { height: auto; }
    #tasks, #events { height: 5; border-top: solid $primary; }
    #say { height: 1; border: none; padding: 0; display: none; }
    .-wide #body { layout: horizontal; }
    .-wide #left { width: 2fr; height: 1fr; border-right: solid $primary; }
    .-wide #right { width: 3fr; }
    .-wide #agents { height: 2fr; }
    .-wide #tasks, .-wide #events { height: 1fr; }
    .-zoom #left { display: none; }
    """
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - Textual's own form
    BINDINGS = [Binding("ctrl+c", "drop", show=False, priority=True)]  # noqa: RUF012 - Textual's own form

    def __init__(self, desk: Desk, watching: Watching, *, home: str) -> None:
        super().__init__()
        self.theme = "ansi-dark"  # the terminal's own colours, be it dark or light
        self._desk = desk
        self._watching = watching
        self._drawing = Drawing(home=home)
        self._asked, self._asked_columns = QuestionShown([], {}), 0
        self._beside = "tasks"
        """Name of the pane below the list of agents in a narrow terminal, which has room for one; empty: for none."""
        self._to = ""
        """Agent that a message is being written to."""
        self._first_row = 0
        clicked = {"agents": self._click_agent, "question": self._click_option}
        self._panes = {name: Pane(name, clicked=clicked.get(name)) for name in PANES}
        self._right = Container(id="right")
        self._box = Input(id="say", select_on_focus=False)
        self._does: dict[str, Callable[[], None]] = {
            "q": self._leave,
            "escape": self._leave,
            "question_mark": self._push_help,
            **dict.fromkeys(("j", "down"), lambda: desk.move(1)),
            **dict.fromkeys(("k", "up"), lambda: desk.move(-1)),
            **dict.fromkeys(("g", "home"), lambda: desk.choose(0)),
            **dict.fromkeys(("G", "end"), lambda: desk.choose(len(desk.agents))),
            "tab": lambda: desk.next_asking(time.monotonic()),
            **dict.fromkeys(("space", "pagedown"), lambda: self._turn(1)),
            "pageup": lambda: self._turn(-1),
            "s": self._write,
            "z": self._zoom,
            "t": lambda: self._show_beside("tasks"),
            "e": lambda: self._show_beside("events"),
            "enter": self._go_there,
        }
        """The key table, without the keys of an answer (`ANSWERING`)."""

    def compose(self) -> ComposeResult:
        panes = self._panes
        yield panes["head"]
        with Container(id="body"):
            with Container(id="left"):
                yield from (panes[name] for name in ("agents", "tasks", "events"))
            with self._right:
                yield from (panes[name] for name in ("title", "screen", "question"))
        yield self._box
        yield panes["foot"]

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGHUP):
            # A test runs the app outside the main thread, where no signal can be handled.
            with suppress(ValueError, RuntimeError, NotImplementedError):
                loop.add_signal_handler(signum, self._ended, signum)
        self._desk.inbox.drawn(None, None, time.monotonic())
        self.set_interval(TICK, self.look)
        self.look()

    def look(self) -> None:
        """Takes new events, performs the commands that are due, and shows the result."""
        if not self.screen_stack:
            return  # it is being closed: the timer may tick once more
        now = time.monotonic()
        self._do(self._watching.take(self._desk, now))
        self._do(self._desk.due(now))
        if self._words_open and self._desk.inbox.typing is None:
            self._close_box()
        self._show(now)

    # --- keys and clicks ---

    def on_key(self, event: events.Key) -> None:
        if isinstance(self.screen, HelpScreen):
            return
        if isinstance(self.focused, Input):
            if event.key in ("escape", "tab", "shift+tab"):
                event.prevent_default().stop()
                self._desk.no_words(time.monotonic())
                self._close_box()
                self.look()
            return
        key = event.character if event.character and event.character.isalnum() else event.key
        if key in self._does:
            event.prevent_default().stop()
            self._does[key]()
        elif key in ANSWERING:
            event.stop()
            self._answer(key, event.time)
        self.look()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        text, words, to = event.value, self._words_open, self._to
        self._close_box()
        if words:
            self._do(self._desk.words(text, time.monotonic()))
        elif text.strip():
            self._watching.send(to, text)
        self.look()

    def on_mouse_scroll_down(self) -> None:
        self._desk.move(1)

    def on_mouse_scroll_up(self) -> None:
        self._desk.move(-1)

    def action_drop(self) -> None:
        """Handles Ctrl-C: held answers are dropped, and listed when the terminal is a shell's again."""
        self.exit(return_code=SIGNALED + signal.SIGINT)

    def _ended(self, signum: int) -> None:
        self.exit(return_code=SIGNALED + signum)

    def _leave(self) -> None:
        self._do(self._desk.inbox.give_all())
        self.exit()

    def _go_there(self) -> None:
        if self._desk.at is not None and self._desk.place is not None:
            self._do(self._desk.inbox.give_all())
            self.exit(self._desk.at)

    def _answer(self, key: str, pressed: float | None = None) -> None:
        self._do(self._desk.answer(key, time.monotonic(), pressed))
        typing = self._desk.inbox.typing
        if typing is not None:
            self._open_box(hidden=typing.refusal is None and is_hidden(typing.item))

    def _click_agent(self, row: int, when: float) -> None:
        if row > 0:
            self._desk.choose(self._first_row + row - 1)
            self.look()

    def _click_option(self, line: int, when: float) -> None:
        if line in self._asked.options:
            self._answer(self._asked.options[line], when)
            self.look()

    def _turn(self, by: int) -> None:
        self._desk.inbox.turn(by)

    def _push_help(self) -> None:
        self._desk.inbox.drawn(None, None, time.monotonic())
        self.push_screen(HelpScreen())

    def _zoom(self) -> None:
        self.screen.toggle_class("-zoom")

    def _show_beside(self, what: str) -> None:
        self._beside = "" if self._beside == what else what

    # --- the box ---

    @property
    def _words_open(self) -> bool:
        """Returns True if an answer in words is being typed in the box, not a message."""
        return not self._to and bool(self._box.display)

    def _write(self) -> None:
        if self._desk.at is not None and self._desk.place is not None:
            self._to = self._desk.at
            self._open_box(hidden=False)

    def _open_box(self, *, hidden: bool) -> None:
        box = self._box
        box.password, box.value, box.display = hidden, "", True
        self.set_focus(box)  # at once: the next keys are for the box

    def _close_box(self) -> None:
        box = self._box
        box.value, box.display, self._to = "", False, ""
        self.set_focus(None)

    # --- showing ---

    def _do(self, commands: Iterable[Command]) -> None:
        for command in commands:
            if command is InboxAct.BELL:
                self.bell()
            else:
                self._watching.do(command)

    def _show(self, now: float) -> None:
        if isinstance(self.screen, HelpScreen):
            return
        desk, drawing = self._desk, self._drawing
        wide = self.size.width >= WIDE
        panes = self._panes
        rows, asks = self.size.height - self._box.display, desk.question(now) is not None
        listed, below = below_each_other(rows, len(desk.agents), below=bool(self._beside), asks=asks)
        for name in ("tasks", "events"):
            panes[name].display = wide or (below and self._beside == name)
        panes["agents"].styles.height = None if wide else listed
        self._show_agents(panes["agents"])
        panes["head"].set_lines([drawing.head(desk)], marked=None if desk.away else 0)
        panes["foot"].set_lines([self._told_of_box() or drawing.foot(desk)])
        panes["title"].set_lines([drawing.title(desk)], marked=0)
        panes["tasks"].set_lines(drawing.tasks(desk, *panes["tasks"].size))
        panes["events"].set_lines(drawing.events(desk, panes["events"].size.height))
        self._show_question(panes["question"], now)
        panes["screen"].set_lines(drawing.screen(desk.shown, panes["screen"].size.height))

    def _show_question(self, pane: Pane, now: float) -> None:
        """Shows the question of the chosen agent. Lines count as seen only at the next draw, if they are really on the
        screen then."""
        before = self._asked
        if before.row is None or pane.shows(before.lines, self._asked_columns):
            self._desk.inbox.drawn(before.row, before.page, now)
        columns, room = pane.size.width or self.size.width, self._right.size.height - BESIDE
        most = question_most(self.size.height)
        self._asked = self._drawing.question(self._desk, now, columns, min(most, room) if room > 0 else most)
        self._asked_columns = columns
        pane.display, pane.styles.height = bool(self._asked.lines), len(self._asked.lines)
        pane.set_lines(self._asked.lines)

    def _show_agents(self, pane: Pane) -> None:
        lines = self._drawing.agents(self._desk, pane.size.width or self.size.width)
        place, room = self._desk.place, max(1, pane.size.height - 1)
        at = place or 0
        self._first_row = max(0, min(at - room // 2, len(lines) - 1 - room))
        shown = [lines[0], *lines[1 + self._first_row : 1 + self._first_row + room]]
        marked = 1 + at - self._first_row if place is not None else None
        pane.set_lines(shown, marked=marked if marked is not None and marked < len(shown) else None)

    def _told_of_box(self) -> str:
        if not self._box.display:
            return ""
        if self._to:
            return f"a message to {self._to.strip()}: Enter sends it, Esc leaves it"
        typing = self._desk.inbox.typing
        return f"{'no, because …' if typing and typing.refusal else 'your answer'}: {TYPING_KEYS}"


def show(ctx: CommandContext, *, hold: float, first: str | None) -> int:
    """Runs `top`; returns the exit code. Raises NoDaemon if no daemon runs to begin with."""
    ctx.client.get("/inbox")
    desk, watching = Desk(hold=hold, first=first), Watching(ctx)
    watching.start()
    try:
        return _until_left(ctx, desk, watching)
    finally:
        watching.stop()


def _until_left(ctx: CommandContext, desk: Desk, watching: Watching) -> int:
    while True:
        app = TopApp(desk, watching, home=ctx.environ.get("HOME", ""))
        agent = app.run()
        if agent is None:
            break
        try:
            attach_to(ctx, agent, held=b"\r")
        except CtlError as error:
            watching.tell(str(error))
    for item, chosen in desk.inbox.held:
        ctx.out.note(f"{item['agent']} was not answered: {chosen.label}")
    if not watching.finish():
        ctx.out.note("an answer is still being typed: 'synapsectl inbox' shows what became of it")
    watching.take(desk, 0.0)
    if desk.note:
        ctx.out.note(desk.note)
    return app.return_code or DONE
