"""Attached terminals: notices over one viewer's screen."""

from collections.abc import Sequence

from synapsed.pty.viewers import Viewers
from synapsed.supervisor.clipboard import UnclippedAttachment
from synapsed.terminal.screen import Screen

COLS, ROWS = 20, 6


class Program:
    """A screen with one viewer."""

    def __init__(self) -> None:
        self.screen = Screen(COLS, ROWS)
        self.viewers = Viewers(
            draw=lambda notice: (self.screen.redraw(notice=notice), self.screen.pending),
            write=self.ignore,
            resize=self.ignore,
            composes=lambda: False,
            take_line=self.take,
            empty=lambda: None,
        )

    async def ignore(self, *_: object) -> None:
        return None

    async def take(self, _line: str) -> bool:
        return False

    def prints(self, data: bytes) -> None:
        self.screen.feed(data)
        self.viewers.push(data)


def rows(screen: Screen) -> Sequence[str]:
    return screen.snapshot().lines


async def test_a_notice_stands_over_the_last_rows_and_leaves_nothing_behind() -> None:
    program = Program()
    program.prints(b"\x1b[31mone\x1b[m\r\ntwo\x1b[6;1Hlast\x1b[2;4H")
    viewer = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    seen = Screen(COLS, ROWS)
    seen.feed(viewer.redraw())
    stream = viewer.output()
    viewer.notice("[→ codex (local)]", stays=True)
    seen.feed(await anext(stream))
    assert rows(seen)[-1] == "[→ codex (local)]"
    assert seen.snapshot().cursor == program.screen.snapshot().cursor == (1, 3)

    program.prints(b"more")
    seen.feed(await anext(stream))
    assert rows(seen)[1] == "twomore"
    assert rows(seen)[-1] == "[→ codex (local)]", "it stands while the program writes"

    await viewer.write(b"k")
    seen.feed(await anext(stream))
    assert rows(seen) == rows(program.screen)
    assert seen.redraw() == program.screen.redraw()
    program.prints(b"!")
    assert await anext(stream) == b"!", "the stream goes on"


async def test_a_mouse_does_not_dismiss_it() -> None:
    program = Program()
    viewer = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    viewer.notice("read me", stays=True)
    await viewer.write(b"\x1b[<35;1;1M")
    seen = Screen(COLS, ROWS)
    seen.feed(viewer.redraw())
    assert rows(seen)[-1] == "read me"


async def test_other_viewers_do_not_see_it() -> None:
    program = Program()
    first = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    second = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    first.notice("for one", stays=True)
    program.prints(b"x")
    assert await anext(second.output()) == b"x"
    assert b"for one" in first.redraw()
    assert b"for one" not in second.redraw()


async def test_a_program_does_not_set_the_clipboard_of_who_looks_on() -> None:
    program = Program()
    viewer = UnclippedAttachment(await program.viewers.join(cols=60, rows=ROWS, read_only=False), "ann")
    stream = viewer.output()
    viewer.redraw()
    program.prints(b"a\x1b]52;c;cm0gLXJm\x07b")
    assert await anext(stream) == b"ab"
    seen = Screen(60, ROWS)
    seen.feed(await anext(stream))
    assert "ann would set the clipboard here: not passed on" in "".join(rows(seen))
    await viewer.write(b"k")
    await anext(stream)
    program.prints(b"\x1b]52;c;cm0gLXJm\x07c")
    assert await anext(stream) == b"c", "it is told once"
