"""Attached terminals: notices over one viewer's screen."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import pytest

from synapsed.errors import KeeperLost
from synapsed.model.outer_terminal import OuterTerminal
from synapsed.model.records import Checkpoint
from synapsed.pty import viewers as viewers_module
from synapsed.pty.viewers import Viewers
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.screen_messages import Redraw

COLS, ROWS = 20, 6


class Program:
    """A screen with one viewer."""

    client: Any = None

    def __init__(self) -> None:
        self.screen = Screen(COLS, ROWS)
        self.written = 0
        self.typed = b""
        self.panes = 0
        self.seen: list[OuterTerminal] = []
        self.drawing = asyncio.Event()
        self.drawing.set()
        self.viewers = Viewers(self, self, self, outer=OuterTerminal())

    async def type(self, data: bytes) -> None:
        """Nobody reads it."""

    def follows(self, size: tuple[int, int] | None) -> None:
        if size is not None:
            self.screen.resize(*size)
            self.viewers.resize(*size)

    def seen_in(self, outer: OuterTerminal) -> None:
        self.seen.append(outer)

    async def resize(self, cols: int, rows: int) -> None:
        self.screen.resize(cols, rows)
        self.viewers.resize(cols, rows)

    async def pane(self, cols: int, rows: int, notice: Sequence[str] = ()) -> bytes:
        self.panes += 1
        return self.screen.pane(cols, rows, notice)

    async def checkpoint(self) -> Checkpoint:
        return Checkpoint(offset=self.written, cols=COLS, rows=ROWS, redraw=self.screen.redraw(scrollback=True))

    async def redraw(self, notice: Sequence[str] = (), *, alone: bool = False) -> Redraw:
        """The screen of this moment, told when `drawing` is set."""
        screen = Redraw(self.screen.redraw(notice=notice, alone=alone), self.screen.pending, self.written)
        await self.drawing.wait()
        return screen

    def type_now(self, data: bytes) -> bool:
        self.typed += data
        return True

    async def composes(self) -> bool:
        return False

    async def take_line(self, line: str) -> bool:
        return False

    def prints(self, data: bytes) -> None:
        self.screen.feed(data)
        offset, self.written = self.written, self.written + len(data)
        self.viewers.push(offset, data)


def rows(screen: Screen) -> Sequence[str]:
    return screen.snapshot().lines


async def test_a_notice_stands_over_the_last_rows_and_leaves_nothing_behind() -> None:
    program = Program()
    program.prints(b"\x1b[31mone\x1b[m\r\ntwo\x1b[6;1Hlast\x1b[2;4H")
    viewer = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    seen = Screen(COLS, ROWS)
    seen.feed(await viewer.redraw())
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
    seen.feed(await viewer.redraw())
    assert rows(seen)[-1] == "read me"


async def test_other_viewers_do_not_see_it() -> None:
    program = Program()
    first = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    second = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    first.notice("for one", stays=True)
    program.prints(b"x")
    assert await anext(second.output()) == b"x"
    assert b"for one" in await first.redraw()
    assert b"for one" not in await second.redraw()


async def test_a_program_does_not_set_the_clipboard_of_who_looks_on() -> None:
    program = Program()
    viewer = await program.viewers.join(cols=60, rows=ROWS, read_only=False)
    viewer.keep_clipboard("[ann would set the clipboard here]")
    stream = viewer.output()
    await viewer.redraw()
    program.prints(b"a\x1b]52;c;cm0gLXJm\x07b")
    seen = Screen(60, ROWS)
    seen.feed(await anext(stream))
    assert (rows(seen)[0], rows(seen)[-1]) == ("ab", "[ann would set the clipboard here]")
    await viewer.write(b"k")
    await anext(stream)
    program.prints(b"\x1b]5\x002;c;cm0gLXJm\x07c")
    assert await anext(stream) == b"c", "it is told once"


@pytest.mark.parametrize("told", [None, "told"])
async def test_the_clipboard_is_set_where_it_may_be(told: str | None) -> None:
    program = Program()
    viewer = await program.viewers.join(cols=60, rows=ROWS, read_only=False)
    viewer.keep_clipboard(told)
    await viewer.redraw()
    program.prints(b"\x1b]52;c;cm0gLXJm\x07c")
    assert (b"]52;" in await anext(viewer.output())) == (told is None)


async def test_what_is_written_while_the_screen_is_drawn_again_comes_once_and_after_it() -> None:
    """The screen is drawn by somebody else, who may have taken in some of it, or a part of a piece."""
    program = Program()
    viewer = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    program.prints(b"one \x1b[3")
    program.drawing.clear()
    drawing = asyncio.ensure_future(viewer.redraw())
    await asyncio.sleep(0)
    program.viewers.push(0, b"one \x1b[3")  # it is in the drawing
    program.viewers.push(4, b"\x1b[31mtwo")  # its beginning is
    program.drawing.set()
    seen = Screen(COLS, ROWS)
    seen.feed(await drawing)
    seen.feed(await anext(viewer.output()))
    assert rows(seen)[0] == "one two"
    assert seen.row_cells(0)[4].fg == 1


async def test_a_viewer_that_misses_too_much_while_the_screen_is_drawn_has_it_drawn_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(viewers_module, "BUFFER_MAX", 10)
    program = Program()
    viewer = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    program.drawing.clear()
    drawing = asyncio.ensure_future(viewer.redraw())
    await asyncio.sleep(0)
    program.prints(b"x" * 11)
    program.prints(b"y")
    program.drawing.set()
    await drawing
    seen = Screen(COLS, ROWS)
    seen.feed(await anext(viewer.output()))
    assert rows(seen)[0] == "x" * 11 + "y"


async def test_output_is_handed_on_as_it_comes_and_stays_in_order() -> None:
    program = Program()
    viewer = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    await viewer.redraw()
    came: list[bytes] = []
    room = [True]
    viewer.pass_to(came.append, lambda: room[0])
    program.prints(b"one \x1b[6n")
    assert came == [b"one "], "at once, and without the question"
    room[0] = False
    program.prints(b"two ")
    room[0] = True
    program.prints(b"three ")
    assert came == [b"one "], "what came later does not overtake what waits"
    output = viewer.output()
    assert await anext(output) == b"two three "
    program.prints(b"four ")
    assert came == [b"one "], "what was given last may still be on its way"
    assert await anext(output) == b"four "


async def test_keys_are_typed_at_once_by_the_one_who_typed_last() -> None:
    program = Program()
    first = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    assert first.type_now(b"a")
    second = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    assert not first.type_now(b"b"), "the window has to become its own first"
    first.notice("said", stays=True)
    await first.write(b"b")
    assert first.type_now(b"c")
    looker = await program.viewers.join(cols=COLS, rows=ROWS, read_only=True)
    assert not looker.type_now(b"x")
    assert not second.type_now(b"x")
    assert program.typed == b"ac"


async def test_a_viewer_of_another_size_is_drawn_and_never_fed() -> None:
    program = Program()
    await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    program.prints(b"0123456789abcdefghij\r\n" * 3 + b"> ")
    looker = await program.viewers.join(cols=8, rows=3, read_only=True)
    terminal = Screen(8, 3)
    passed: list[bytes] = []
    looker.pass_to(passed.append, lambda: True)
    terminal.feed(await looker.redraw())
    assert rows(terminal) == ("01234567", "01234567", ">")
    output = looker.output()
    for number in range(100):
        program.prints(b"%d" % (number % 10))
    terminal.feed(await anext(output))
    assert rows(terminal) == tuple(row[:8] for row in rows(program.screen)[-3:]), "the cursor is in it"
    assert program.panes == 2, "a hundred pieces, one picture"
    assert not passed
    program.prints(b"\r\n\x1b[2J\x1b[Hnew")
    terminal.feed(await anext(output))
    assert rows(terminal) == ("new", "", "")


@pytest.mark.parametrize("shown", ["cropped", "below a notice"])
@pytest.mark.parametrize("gone", [False, True])
async def test_the_last_words_are_drawn_for_who_gets_redrawn_screens(shown: str, *, gone: bool) -> None:
    """They came while the viewer waited until its next picture was due."""
    program = Program()
    program.viewers.resize(COLS, ROWS)
    cols = COLS + (shown == "cropped")
    viewer = await program.viewers.join(cols=cols, rows=ROWS, read_only=True)
    if shown != "cropped":
        viewer.notice("hint", stays=True)
    seen, stream = Screen(cols, ROWS), viewer.output()
    program.prints(b"$ make\r\n")
    seen.feed(await anext(stream))
    program.prints(b"FATAL\r\n")
    program.viewers.end()
    if gone:
        program.pane = program.redraw = nothing_is_drawn  # type: ignore[assignment]
    for drawn in [drawn async for drawn in stream]:
        seen.feed(drawn)
    assert rows(seen)[:2] == ("$ make", "" if gone else "FATAL")


async def nothing_is_drawn(*_: object, **__: object) -> Redraw:
    raise KeeperLost("the screen is not drawn any more")


async def test_whoever_types_gets_the_window_and_the_stream() -> None:
    program = Program()
    first = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    await first.redraw()
    program.prints(b"\x1b[?1049h\x1b[?1003hfull screen")
    second = await program.viewers.join(cols=10, rows=4, read_only=False)
    theirs, mine = Screen(COLS, ROWS), Screen(10, 4)
    mine.feed(await second.redraw())
    output, own = first.output(), second.output()
    theirs.feed(b"\x1b[?1049h\x1b[?1003hold")
    theirs.feed(await anext(output))
    assert rows(theirs)[0] == rows(mine)[0], "drawn, as the window is another's now"
    assert not theirs.snapshot().alternate
    assert 1003 not in theirs.snapshot().modes.dec
    program.prints(b"!")
    mine.feed(await anext(own))
    assert mine.snapshot().alternate, "the stream, with all that is in it"
    await first.write(b"x")
    theirs.feed(await anext(output))
    assert (theirs.snapshot().alternate, 1003 in theirs.snapshot().modes.dec) == (True, True)
    mine.feed(await anext(own))
    assert not mine.snapshot().alternate


DARK, LIGHT = OuterTerminal(background=(0, 0, 9), keyboard=True), OuterTerminal(background=(250, 250, 250))


async def test_the_terminal_is_that_of_who_was_used_last() -> None:
    program = Program()
    first = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    assert program.seen == []
    first.seen_in(DARK)
    second = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    assert program.seen == [DARK], "it has not told anything yet"
    second.seen_in(LIGHT)
    assert program.seen == [DARK, LIGHT]
    await first.write(b"x")
    assert program.seen[2:] == [DARK]
    await second.close()
    assert program.seen[3:] == []


async def test_who_only_looks_counts_while_nobody_else_has_told_anything() -> None:
    program = Program()
    looks = await program.viewers.join(cols=COLS, rows=ROWS, read_only=True)
    looks.seen_in(LIGHT)
    types = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    types.seen_in(DARK)
    looks.seen_in(LIGHT)
    assert program.seen == [LIGHT, DARK]


async def test_when_all_have_left_the_colours_stay_and_the_keyboard_does_not() -> None:
    program = Program()
    viewer = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    viewer.seen_in(DARK)
    await viewer.close()
    assert program.seen == [DARK, OuterTerminal(background=DARK.background)]


async def test_one_that_keeps_one_screen_shows_what_the_program_shows_on_it() -> None:
    program = Program()
    program.prints(b"the shell\r\n$ ")
    viewer = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    viewer.keep_one_screen()
    seen = Screen(COLS, ROWS)
    seen.feed(b"my own\r\n\x1b[?1049h" + await viewer.redraw())
    viewer.pass_to(seen.feed, lambda: True)
    drawn = asyncio.Queue[bytes]()

    async def read() -> None:
        async for data in viewer.output():
            drawn.put_nowait(data)

    reading = asyncio.ensure_future(read())
    for printed, switches in (
        (b"vim\x1b[?1049h\x1b[2J\x1b[?1003h\x1b[>1u\x1b[Hfull screen", True),
        (b"\x1b[3;1Hmore", False),
        (b"\x1b[?1003l\x1b[<u\x1b[?1049lback", True),
        (b"\x1b[3Jand on", False),
        (b"\x1bcnew", True),
    ):
        program.prints(printed)
        if switches:
            seen.feed(await drawn.get())
        now, wanted = seen.snapshot(), program.screen.snapshot()
        assert now.alternate
        assert (now.lines, now.cursor) == (wanted.lines, wanted.cursor)
        assert (1003 in now.modes.dec) == (1003 in wanted.modes.dec)
        assert seen.keyboard_flags() == program.screen.keyboard_flags()
    assert drawn.empty()
    await viewer.close()
    await reading
    seen.feed(b"\x1b[?1049l")
    assert rows(seen)[0] == "my own"
    assert not any(rows(seen)[1:])


async def test_one_that_joins_a_full_screen_program_gets_what_it_shows_alone() -> None:
    program = Program()
    program.prints(b"beneath\x1b[?1049h\x1b[Hfull")
    viewer = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    viewer.keep_one_screen()
    drawn = await viewer.redraw()
    assert b"beneath" not in drawn
    assert b"1049" not in drawn
    seen = Screen(COLS, ROWS)
    seen.feed(drawn)
    assert rows(seen) == rows(program.screen)


async def test_what_is_dropped_before_a_redraw_may_have_changed_modes() -> None:
    """The program left its full screen between a resize and the redraw that it brings."""
    program = Program()
    program.prints(b"\x1b[?1049h\x1b[?1003hfull")
    viewer = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    seen = Screen(COLS, ROWS)
    seen.feed(await viewer.redraw())
    await viewer.resize(COLS, ROWS)
    program.prints(b"\x1b[?1003l\x1b[?1049lback")
    seen.feed(await anext(viewer.output()))
    assert (seen.snapshot().alternate, 1003 in seen.snapshot().modes.dec) == (False, False)
    assert rows(seen) == rows(program.screen)


@pytest.mark.parametrize("lost", [False, True])
async def test_who_comes_counts_while_the_window_takes_the_size(*, lost: bool) -> None:
    """Else a look in between finds nobody there, and the window is made tall again behind whoever has come."""
    program, there = Program(), list[int]()

    async def resize(_cols: int, _rows: int) -> None:
        there.append(len(program.viewers))
        if lost:
            raise KeeperLost("the keeper is gone")

    program.resize = resize  # type: ignore[method-assign]
    with contextlib.suppress(KeeperLost):
        await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    assert there == [1]
    assert len(program.viewers) == (0 if lost else 1)


@pytest.mark.parametrize("cancelled", [False, True])
async def test_who_does_not_come_to_be_there_gives_the_window_back(*, cancelled: bool) -> None:
    program, asked = Program(), asyncio.Event()
    resized = program.resize

    async def resize(cols: int, rows: int) -> None:
        await resized(cols, rows)  # the size is known before the keeper has answered
        assert not other.fits
        asked.set()
        if not cancelled:
            raise KeeperLost("the keeper is gone")
        await asyncio.Event().wait()

    other = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    program.resize = resize  # type: ignore[method-assign]
    joining = asyncio.create_task(program.viewers.join(cols=COLS + 9, rows=ROWS, read_only=False))
    await asked.wait()
    joining.cancel()
    with contextlib.suppress(KeeperLost, asyncio.CancelledError):
        await joining
    assert (len(program.viewers), other.fits) == (1, True)
    program.resize = resized  # type: ignore[method-assign]
    await other.resize(COLS + 1, ROWS)
    assert other.fits, "the window is that of the one that is there"


async def test_a_window_that_has_the_size_of_who_comes_is_left_as_it_is() -> None:
    """To ask the keeper and the emulator takes a quarter of the time to the first screen."""
    program, sizes = Program(), list[tuple[int, int]]()
    resized = program.resize

    async def resize(cols: int, rows: int) -> None:
        sizes.append((cols, rows))
        await resized(cols, rows)

    program.resize = resize  # type: ignore[method-assign]
    for cols in (COLS, COLS, COLS + 1):
        viewer = await program.viewers.join(cols=cols, rows=ROWS, read_only=False)
        await viewer.close()
    assert sizes == [(COLS, ROWS), (COLS + 1, ROWS)]


async def test_one_that_keeps_the_size_takes_it_with_its_first_key_and_gives_it_back() -> None:
    """A page is opened beside a terminal in which somebody works: the program keeps its window."""
    program = Program()
    first = await program.viewers.join(cols=40, rows=12, read_only=False)
    page = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False, keep_size=True)
    await page.resize(COLS + 1, ROWS)
    for report in (b"\x1b[I", b"\x1b[<35;1;1M"):
        await page.write(report)
    assert program.viewers._size == (40, 12)
    assert not page.fits
    await page.write(b"k")
    assert program.viewers._size == (COLS + 1, ROWS)
    await page.close()  # however it went: a browser that is killed closes its connection
    assert program.viewers._size == (40, 12)
    assert first.fits
    assert first.type_now(b"x"), "it is the one that is followed"


async def test_one_that_keeps_the_size_and_is_alone_has_its_own() -> None:
    program = Program()
    page = await program.viewers.join(cols=30, rows=9, read_only=False, keep_size=True)
    assert program.viewers._size == (30, 9)
    looks_on = await program.viewers.join(cols=10, rows=4, read_only=True)
    other = await program.viewers.join(cols=31, rows=9, read_only=False, keep_size=True)
    await page.close()
    assert program.viewers._size == (31, 9)
    third = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    await other.close()
    assert program.viewers._size == (COLS, ROWS)
    await third.close()
    again = await program.viewers.join(cols=33, rows=9, read_only=False, keep_size=True)
    assert program.viewers._size == (COLS, ROWS), "somebody looks on"
    await looks_on.close()
    assert program.viewers._size == (33, 9)
    await again.close()


async def test_somebody_sits_at_a_terminal_for_a_while_after_they_gave_a_sign() -> None:
    """Keys, focus and size are signs of a person; an attached terminal alone is not, nor is one that only looks."""
    program, now = Program(), [1000.0]
    viewers = program.viewers
    viewers._now = lambda: now[0]
    looks_on = await viewers.join(cols=COLS, rows=ROWS, read_only=True)
    await looks_on.resize(COLS + 1, ROWS)
    assert not viewers.has_person
    viewer = await viewers.join(cols=COLS, rows=ROWS, read_only=False)
    assert viewers.has_person, "they have just come"

    async def typed() -> None:
        await viewer.write(b"x")

    async def looked() -> None:
        await viewer.write(b"\x1b[I")

    async def resized() -> None:
        await viewer.resize(COLS, ROWS)

    for sign in (typed, looked, resized):
        now[0] += viewers_module.PRESENT_S - 1
        assert viewers.has_person
        now[0] += 1
        assert not viewers.has_person
        await sign()
        assert viewers.has_person
    await viewer.write(b"\x1b[O")
    assert not viewers.has_person, "they look elsewhere"
    await typed()
    await viewer.close()
    assert not viewers.has_person


async def test_a_viewer_larger_than_any_window_sees_all_of_it() -> None:
    program = Program()
    program.prints(b"0123456789abcdefghij\r\n> ")
    looker = await program.viewers.join(cols=65_535, rows=65_535, read_only=True)
    terminal = Screen(200, 50)
    terminal.feed(await looker.redraw())
    assert rows(terminal)[: len(rows(program.screen))] == rows(program.screen)


class Line:
    """Follows what is typed (`interfaces.TypedLine`); what has an x in it may not pass."""

    def __init__(self) -> None:
        self.had: list[tuple[str, bytes]] = []
        self.closed = False

    def passes(self, data: bytes) -> bool:
        return b"x" not in data

    def passed(self, data: bytes) -> None:
        self.had.append(("passed", data))

    async def write(self, data: bytes) -> None:
        self.had.append(("written", data))

    async def close(self) -> None:
        self.closed = True


async def test_a_line_that_is_followed_has_all_that_is_typed() -> None:
    program, line = Program(), Line()
    viewer = await program.viewers.join(cols=COLS, rows=ROWS, read_only=False)
    viewer.follow(line)
    assert viewer.type_now(b"a")
    assert not viewer.type_now(b"x")
    assert program.typed == b"a"
    await viewer.write(b"x")
    assert line.had == [("passed", b"a"), ("written", b"x")]
    await viewer.close()
    assert line.closed
