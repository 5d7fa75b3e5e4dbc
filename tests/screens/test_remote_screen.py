"""A screen that is drawn elsewhere: it is what it would be here, whatever becomes of the process that draws it."""

import asyncio
import os
import signal
import time
from typing import Any

import pytest

from synapsed.errors import KeeperLost, SynapsedError, TooLarge
from synapsed.model.picture import Picture
from synapsed.screens.pool import KEPT_TRIES, SCREENS_EACH, ScreenPool
from synapsed.screens.protocol import FrameKind, ScreenFrame
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.screen_messages import (
    Ask,
    Drawn,
    KeysTyped,
    LinesRead,
    LinesWanted,
    StopAsked,
    StopOver,
)
from tests.fakes.screens import FakeScreenProcess
from tests.screens.conftest import PATIENT_S, PROFILE, MakePool, MakeProgram, shown_by, worker


async def test_a_daemon_that_comes_draws_what_was_written_in_the_sizes_of_then(
    pool: ScreenPool, make_program: MakeProgram
) -> None:
    """A keeper says which sizes its window had, and since when."""
    program = await make_program(pool)
    small, tall = b"\x1b[?1049h\x1b[999;1Ha dialog", b"\x1b[24;1H\x1b[2K\x1b[999;1Hready"
    program.stage.resize(80, 24, 0)
    program.stage.resize(80, 40, len(small))
    program.stage.resize(80, 40)
    program.prints(small + tall)
    look = await program.look()
    assert [(n, line) for n, line in enumerate(look.screen.lines) if line] == [(39, "ready")]


async def test_what_is_asked_is_answered_as_here(pool: ScreenPool, make_program: MakeProgram) -> None:
    program = await make_program(pool)
    data = "one\r\n\x1b[1mtwo\x1b[m ünï €\r\n\x1b[6n$ half a se\x1b[3".encode()
    program.prints(data)
    here = TerminalObserver(PROFILE, cols=80, rows=24, offset=0)
    (reply,) = here.feed(0, data, 0.0)
    there, expected = await program.look(), here.look(time.monotonic())
    assert (there.screen.lines, there.composer, there.offset) == (
        expected.screen.lines,
        expected.composer,
        expected.offset,
    )
    assert [one for event in program.events if isinstance(event, Drawn) for one in event.replies] == [reply]
    stage = program.stage
    assert await stage.text(scrollback=True) == here.screen.text(scrollback=True)
    redraw = await stage.redraw()
    assert (redraw.drawn, redraw.pending, redraw.offset) == (here.redraw(), b"\x1b[3", len(data))
    kept = await stage.checkpoint()
    assert (kept.redraw, kept.offset) == (here.checkpoint().redraw, len(data) - 3)
    assert await stage.pane(40, 10, ["a notice"]) == here.screen.pane(40, 10, ["a notice"])
    assert await stage.shown("ansi") == here.screen.redraw()
    assert await stage.shown("coloured") == here.screen.coloured()
    document = await stage.shown("json")
    assert isinstance(document, dict)
    assert document["lines"] == list(expected.screen.lines)
    witnesses = await stage.explain(Ask(now=time.monotonic() + 100))  # it has come to rest, however fast this was
    assert [one.channel for one in witnesses if one.decides] == ["composer"]


async def test_who_waits_for_a_screen_that_is_closed_hears_of_it(pool: ScreenPool, make_program: MakeProgram) -> None:
    """A program that ended while it was stopped is let go, and whoever stops it asks once more."""
    stage = (await make_program(pool)).stage
    await stage.text(scrollback=False)
    os.kill(await worker(pool), signal.SIGSTOP)
    waits = asyncio.create_task(stage.look(Ask(now=time.monotonic())))
    await asyncio.sleep(0)
    await stage.close()
    async with asyncio.timeout(PATIENT_S):
        with pytest.raises(KeeperLost):
            await waits
        with pytest.raises(KeeperLost):
            await stage.look(Ask(now=time.monotonic()))


async def test_a_process_that_ends_while_its_screen_is_closed_begins_nothing(
    pool: ScreenPool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link lets go while the screen is drawn once more: nobody would give that seat back."""
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    program = await make_program(pool)
    program.prints(b"text")
    await program.look()
    stage = program.stage
    (first,) = pool._processes
    first.end("it is killed")
    async with asyncio.timeout(PATIENT_S):
        while stage._seat is None:
            await asyncio.sleep(0)
    assert not stage._live
    closing = asyncio.create_task(stage.close())
    await asyncio.sleep(0)
    (second,) = pool._processes

    async def kept() -> None:
        await closing

    monkeypatch.setattr(stage, "_kept", kept)
    second.end("it is killed")
    await closing
    async with asyncio.timeout(PATIENT_S):
        await stage._tasks.finish()
    assert not any(pool._processes.values())


async def test_what_somebody_asked_who_has_gone_is_not_asked_again(
    pool: ScreenPool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While no process draws the screen, whoever waits for a second and asks again would leave a question each time."""
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    program = await make_program(pool)
    stage, drawn = program.stage, asyncio.Event()
    program.prints(b"$ ")
    await program.look()
    (process,) = pool._processes

    async def kept() -> None:
        await drawn.wait()

    monkeypatch.setattr(stage, "_kept", kept)
    monkeypatch.setattr(process, "_work", lambda: None)
    waits = [asyncio.create_task(stage.text(scrollback=False)) for _ in range(2)]
    await asyncio.sleep(0)
    waits.pop().cancel()
    await asyncio.sleep(0)
    process.end("it is killed")
    assert len(stage._asked) == 1, "that of the one who still waits"
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(stage.text(scrollback=False), 0.001)
    assert len(stage._asked) == 1
    drawn.set()
    assert await asyncio.wait_for(waits[0], PATIENT_S) == "$"
    assert not stage._asked


async def test_answers_are_read_off_lines(pool: ScreenPool, make_program: MakeProgram) -> None:
    program = await make_program(pool)
    wanted = LinesWanted(
        start=0, output=b"\r\nan answer\r\nof lines\r\n$ ", prompt="$ ", message="m", one_by_one=False, edits=False
    )
    assert await program.stage.read_lines(wanted) == LinesRead("an answer\nof lines")


async def test_a_frame_that_is_half_drawn_is_not_looked_at_where_a_whole_one_is_wanted(
    pool: ScreenPool, make_program: MakeProgram
) -> None:
    program = await make_program(pool)
    program.prints(b"\x1b[?2026h half")
    now = time.monotonic()
    half = await program.stage.look(Ask(now=now))
    assert half is not None
    assert half.mid_frame
    assert await program.stage.look(Ask(now=now)) is half
    assert await program.stage.look(Ask(now=now, whole=True)) is None
    later = await program.stage.look(Ask(now=now + 100, whole=True))
    assert later is not None, "the frame is held open"
    assert not later.mid_frame


async def test_a_look_that_would_be_the_same_is_not_asked_for_again(
    pool: ScreenPool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until something is told, the question is another one, or time changes what is judged."""
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    program = await make_program(pool)
    program.prints(b"$ ")
    await program.look()
    now = time.monotonic() + 100  # it has come to rest
    first = await program.stage.look(Ask(now=now))
    assert first is not None
    assert first.verdict.settled
    again = await program.stage.look(Ask(now=now + 1))
    assert again is first
    assert await program.stage.look(Ask(now=now + 1, whole=True)) is first, "it is whole"
    program.stage.note(StopOver())
    assert await program.stage.look(Ask(now=now + 1)) is first, "nobody had asked it to stop"
    drawn = await program.stage.look(Ask(now=now + 1, kinds=True))
    assert drawn is not None
    assert drawn is not first
    assert await program.stage.look(Ask(now=now + 1)) is drawn, "it says how it is drawn too"
    assert await program.stage.look(Ask(now=now + 1, in_turn=True)) is not drawn
    later = await program.stage.look(Ask(now=first.good_until + 1))
    assert later is not first
    for change in (
        lambda: program.prints(b"x"),
        lambda: program.stage.note(KeysTyped(now)),
        lambda: program.stage.note(StopAsked(now)),
        lambda: program.stage.note(StopOver()),
        lambda: program.stage.resize(70, 20),
        lambda: program.stage.lost(suspect=False, outside=False),
    ):
        before = await program.stage.look(Ask(now=now + 2))
        change()
        after = await program.stage.look(Ask(now=now + 2))
        assert after is not None
        assert after is not before
    assert after.composer.text == "x"


# --- many ------------------------------------------------------------------------------------------------------------


async def test_screens_are_spread_over_so_many_processes_as_there_may_be(
    make_pool: MakePool, make_program: MakeProgram
) -> None:
    pool = make_pool(2)
    programs = [await make_program(pool, str(number)) for number in range(2 * SCREENS_EACH + 4)]
    for number, program in enumerate(programs):
        program.prints(f"agent {number}\r\n".encode())
    looks = await asyncio.gather(*(program.lines() for program in programs))
    assert looks == [[f"agent {number}"] for number in range(len(programs))]
    assert len(pool.pids) == 2


@pytest.mark.slow
@pytest.mark.parametrize("many", [40, pytest.param(300, marks=pytest.mark.night)])
async def test_many_screens_are_drawn_again(make_pool: MakePool, make_program: MakeProgram, many: int) -> None:
    pool = make_pool(2)
    programs = [await make_program(pool, str(number)) for number in range(many)]
    for number, program in enumerate(programs):
        program.prints(f"agent {number}\r\n".encode())
    await asyncio.gather(*(program.look() for program in programs))
    for pid in pool.pids:
        os.kill(pid, signal.SIGKILL)
    looks = await asyncio.gather(*(program.lines() for program in programs))
    assert looks == [[f"agent {number}"] for number in range(many)]


async def test_a_look_does_not_wait_for_what_floods_another(pool: ScreenPool, make_program: MakeProgram) -> None:
    flooded, quiet = await make_program(pool, "flooded"), await make_program(pool, "quiet")
    await quiet.look()
    for _ in range(64):
        flooded.prints(b"\x1b[31mred \x1b[m text of a line\r\n" * 600)
    quiet.prints(b"$ ")
    await quiet.look()
    drawn = [event.offset for event in flooded.events if isinstance(event, Drawn)]
    assert not drawn or drawn[-1] < flooded.spool.end
    assert (await flooded.look()).offset == flooded.spool.end


async def test_screens_that_were_kept_are_drawn_without_a_stage(pool: ScreenPool) -> None:
    screen = TerminalObserver(PROFILE, cols=80, rows=24, offset=0)
    screen.feed(0, b"".join(b"line %d\r\n" % number for number in range(100)), 0.0)
    kept = screen.checkpoint()
    assert "line 99" in str(await pool.kept(kept, "text"))
    assert "line 0" not in str(await pool.kept(kept, "text"))
    assert "line 0" in str(await pool.kept(kept, "scrollback"))
    redraw = await pool.kept(kept, "ansi")
    assert isinstance(redraw, bytes)
    assert shown_by(redraw)[-1] == "line 99"
    assert b"\nline 99\n" in bytes(await pool.kept(kept, "coloured"))  # type: ignore[arg-type]  # that is bytes


@pytest.mark.parametrize("lie", [{"text": b"]"}, {"kind": FrameKind.DRAWN}])
async def test_one_that_lies_of_a_kept_screen_is_asked_no_more_and_the_next_one_is(
    pool: ScreenPool, lie: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks at a parked agent has its screen, or one error with what cannot be done."""
    screen = TerminalObserver(PROFILE, cols=80, rows=24, offset=0)
    screen.feed(0, b"hello", 0.0)
    kept = screen.checkpoint()
    lies = 0

    def says(frame: ScreenFrame) -> list[ScreenFrame]:
        nonlocal lies
        lies -= frame.kind == FrameKind.ANSWER
        return [frame._replace(**lie) if frame.kind == FrameKind.ANSWER and lies >= 0 else frame]

    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    monkeypatch.setattr(FakeScreenProcess, "lie", staticmethod(says))
    lies = 1
    assert "hello" in str(await pool.kept(kept, "json"))
    lies = KEPT_TRIES
    with pytest.raises(SynapsedError, match="cannot be drawn"):
        await pool.kept(kept, "json")


async def test_a_screen_that_is_too_large_for_a_picture_costs_nobody_anything(
    pool: ScreenPool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clusters in every cell take more bytes than a frame may have."""
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    program = await make_program(pool)
    program.prints(b"text")
    (process,) = pool._processes
    assert isinstance(await program.stage.shown("picture"), Picture)
    monkeypatch.setattr("synapsed.screens.worker.TEXT_MAX", 10)
    with pytest.raises(TooLarge, match="too large for a picture"):
        await program.stage.shown("picture")
    with pytest.raises(TooLarge, match="too large for a picture"):
        await pool.kept(await program.stage.checkpoint(), "picture")
    assert await program.lines() == ["text"]
    assert list(pool._processes) == [process]


@pytest.mark.parametrize("outside", [True, False])
async def test_one_that_others_end_at_a_kept_screen_does_not_count(
    pool: ScreenPool, outside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = TerminalObserver(PROFILE, cols=80, rows=24, offset=0)
    screen.feed(0, b"hello", 0.0)
    ends = KEPT_TRIES
    work = FakeScreenProcess._work

    def ended(process: FakeScreenProcess) -> None:
        nonlocal ends
        if ends:
            ends -= 1
            process.ended_from_outside = outside
            process.end("it is ended")
        else:
            work(process)

    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    monkeypatch.setattr(FakeScreenProcess, "_work", ended)
    asked = asyncio.ensure_future(pool.kept(screen.checkpoint(), "json"))
    if outside:
        assert "hello" in str(await asked)
    else:
        with pytest.raises(SynapsedError, match="cannot be drawn"):
            await asked


async def test_output_that_is_passed_over_stays_so_where_the_screen_is_drawn_once_more(
    pool: ScreenPool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flood that nobody waits for is not read back for the process that draws the screen once more."""
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    program = await make_program(pool)
    program.prints(b"flood\r\n" * 10)
    program.stage.pass_over(program.spool.end)
    program.prints(b"the end")
    assert await program.lines() == ["the end"]
    for process in list(pool._processes):
        process.end("as asked")
    assert await program.lines() == ["the end"]
    for process in list(pool._processes):
        process.end("as asked")
    program.stage.pass_over(program.spool.end)  # while it is drawn once more
    program.prints(b" of all")
    assert await program.lines() == [" of all"]
