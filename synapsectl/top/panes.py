"""The parts of `top` on a Textual screen. Their content is lines with colours (`drawing`), never markup."""

from collections.abc import Callable, Sequence

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.errors import NoWidget
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from synapsectl.colours import BOLD, REVERSE, painted
from synapsectl.output import GAP, pad
from synapsectl.top.drawing import HELP

WIDEST = 500
"""Columns of the widest line, more than any terminal has; longer ones are cut at the edge."""


def as_text(lines: Sequence[str]) -> Text:
    """Returns lines with colours; each is cut at the edge."""
    text = Text("\n", no_wrap=True, overflow="crop", end="").join(Text.from_ansi(line, end="") for line in lines)
    text.no_wrap, text.overflow = True, "crop"
    return text


def bar(line: str) -> str:
    """Returns `line` in reverse from edge to edge, without colours of its own: in reverse each would be a block."""
    return painted(pad(Text.from_ansi(line).plain, WIDEST), f"{BOLD};{REVERSE}")


class Pane(Widget):
    """Shows lines, each cut at the edge; it is drawn again if they have changed. `clicked` gets the row, and the
    time."""

    DEFAULT_CSS = "Pane { text-wrap: nowrap; text-overflow: clip; }"

    def __init__(self, name: str, *, clicked: Callable[[int, float], None] | None = None) -> None:
        super().__init__(id=name)
        self._lines: tuple[str, ...] = ()
        self._marked: int | None = None
        self._text = Text()
        self._clicked = clicked
        self.painted: tuple[str, ...] = ()
        """Lines that were drawn last."""

    def set_lines(self, lines: Sequence[str], *, marked: int | None = None) -> None:
        """Sets the lines; `marked`: the line that stands out."""
        if (tuple(lines), marked) != (self._lines, self._marked):
            self._lines, self._marked = tuple(lines), marked
            self._text = as_text([bar(line) if row == marked else line for row, line in enumerate(lines)])
            self.refresh()

    def render(self) -> Text:
        self.painted = self._lines
        return self._text

    def shows(self, lines: Sequence[str], columns: int) -> bool:
        """Returns True if these lines, of so many columns, are on the screen, each of them whole."""
        if not self.display or self.painted != tuple(lines):
            return False
        try:
            region = self.screen.find_widget(self).visible_region
        except NoWidget:
            return False
        return region.height >= len(lines) and region.width >= columns

    def on_click(self, event: events.Click) -> None:
        if self._clicked is not None:
            at = event.get_content_offset(self)
            if at is not None:
                self._clicked(at.y, event.time)


class HelpScreen(ModalScreen[None]):
    """Shows the keys; any key or click closes it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > Static { width: auto; max-width: 100%; height: auto; border: round $primary; padding: 0 1; }
    """

    def compose(self) -> ComposeResult:
        width = max(len(keys) for keys, _ in HELP)
        yield Static(Text("\n".join(f"{pad(keys, width)}{GAP}{told}" for keys, told in HELP)), markup=False)

    def on_key(self, event: events.Key) -> None:
        if event.key != "ctrl+c":
            event.stop()
            self.dismiss()

    def on_click(self) -> None:
        self.dismiss()
