"""A screen that is drawn elsewhere: it is what it would be here, whatever becomes of the process that draws it."""

import asyncio
import errno
import os
import signal
import socket
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from synapsed.errors import KeeperLost, SynapsedError, TooLarge
from synapsed.keeper.spool import SpoolReader
from synapsed.model.agent import Activity
from synapsed.model.outer import OuterTerminal
from synapsed.model.picture import Picture
from synapsed.profiles import Signs
from synapsed.screens import process
from synapsed.screens.frames import FrameKind, ScreenFrame
from synapsed.screens.pool import KEPT_TRIES, SCREENS_EACH, ScreenPool
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.screen import Screen
from synapsed.terminal.stage import (
    Ask,
    Drawn,
    Incomplete,
    KeysTyped,
    LinesWanted,
    Skipped,
    StopAsked,
    StopOver,
    TurnClosed,
    TurnOpened,
)
from tests.fakes.screens import FakeScreenProcess
from tests.screens.conftest import PATIENT_S, PROFILE, MakePool, MakeProgram


def shown_by(redraw: bytes) -> list[str]:
    screen = Screen(80, 24)
    screen.feed(redraw)
    return [line for line in screen.snapshot().lines if line]


async def worker(pool: ScreenPool) -> int:
    """The process of `pool`, once it has begun."""
    async with asyncio.timeout(PATIENT_S):
        while not pool.pids:
            await asyncio.sleep(0.01)
    return pool.pids[0]


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
    assert await program.stage.read_lines(wanted) == "an answer\nof lines"


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


# --- the process ends ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
@pytest.mark.parametrize("during", ["idle", "feed", "look", "checkpoint", "redraw", "text", "lines"])
async def test_a_process_that_ends_costs_its_agents_a_redraw(
    pool: ScreenPool, make_program: MakeProgram, during: str, how: signal.Signals
) -> None:
    """At any moment; what was asked is answered, and nothing is missing."""
    if how is signal.SIGSTOP and during == "idle":
        pytest.skip("one that stands still and has nothing to do harms nobody")
    one, other = await make_program(pool, "one"), await make_program(pool, "other")
    one.prints(b"before\r\n")
    one.saved = await one.stage.checkpoint()
    one.prints(b"after\r\n")
    other.prints(b"spared\r\n")
    await one.look()
    await other.look()
    pid = await worker(pool)
    if how is not signal.SIGKILL:
        os.kill(pid, signal.SIGSTOP)
    asked = None
    match during:
        case "feed":
            one.prints(b"line\r\n" * 4000)
        case "look":
            asked = asyncio.ensure_future(one.stage.look(Ask(now=time.monotonic())))
        case "checkpoint":
            asked = asyncio.ensure_future(one.stage.checkpoint())
        case "redraw":
            asked = asyncio.ensure_future(one.stage.redraw())
        case "text":
            asked = asyncio.ensure_future(one.stage.text(scrollback=False))
        case "lines":
            wanted = LinesWanted(start=0, output=b"\r\na\r\n", prompt="", message="", one_by_one=False, edits=False)
            asked = asyncio.ensure_future(one.stage.read_lines(wanted))
    await asyncio.sleep(0)
    os.kill(pid, how)
    if how is signal.SIGSEGV:
        os.kill(pid, signal.SIGCONT)
    one.prints(b"last\r\n")
    assert (await one.lines())[-1] == "last"
    assert (await one.look()).offset == one.spool.end
    assert await other.lines() == ["spared"]
    if asked is not None:
        assert await asked
    if during != "feed":
        assert await one.lines() == ["before", "after", "last"]
    assert not one.harmed
    assert not other.harmed
    assert pid not in pool.pids


async def test_one_that_is_ended_over_and_over_where_it_has_nothing_to_do_blames_nobody(
    pool: ScreenPool, make_program: MakeProgram
) -> None:
    program = await make_program(pool)
    program.prints(b"text\r\n")
    for _ in range(4):
        assert await program.lines() == ["text"]
        os.kill(await worker(pool), signal.SIGKILL)
    assert await program.lines() == ["text"]
    assert not program.harmed


@pytest.mark.parametrize("outside", [False, True])
async def test_one_that_others_end_over_and_over_at_the_same_output_blames_nobody(
    pool: ScreenPool, make_program: MakeProgram, outside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without memory ends it wherever it is: output that comes through its trial does no harm. One that ends
    by itself is believed, as the trial looks and judges nothing."""
    tried = 0

    async def survives(*_: object, **__: object) -> bool:
        nonlocal tried
        tried += 1
        return True

    monkeypatch.setattr("synapsed.screens.trial.survives", survives)
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    work = FakeScreenProcess._work
    program = await make_program(pool)
    program.prints(b"text")
    await program.look()
    monkeypatch.setattr(FakeScreenProcess, "_work", lambda _: None)
    asked = asyncio.ensure_future(program.look())
    program.prints(b" and more")
    for number in range(4):
        async with asyncio.timeout(PATIENT_S):
            while not program.stage._live:
                await asyncio.sleep(0)
        (process,) = pool._processes
        if number == 3:
            monkeypatch.setattr(FakeScreenProcess, "_work", work)
            work(cast("FakeScreenProcess", process))
        else:
            process.ended_from_outside = outside
            process.end("it is ended")
    await asked
    assert tried == (2 if outside else 3)  # the first time it is ended by others is chance
    assert bool(program.harmed) is not outside


async def test_who_ended_it_is_known(pool: ScreenPool, make_program: MakeProgram) -> None:
    program = await make_program(pool)
    for number, outside in ((signal.SIGKILL, True), (signal.SIGSEGV, False)):
        await program.look()
        (process,) = pool._processes
        os.kill(await worker(pool), number)
        await process.wait()
        assert process.ended_from_outside is outside
    await program.look()
    (process,) = pool._processes
    process.end("it hangs")
    await process.wait()
    assert not process.ended_from_outside


async def test_one_that_closes_its_socket_and_lives_on_is_ended(
    make_pool: MakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synapsed.screens.process.CLOSED_S", 0.01)
    pool = make_pool(1, ("-c", "import os, time; os.close(0); time.sleep(600)"))
    pool.begin()
    first = await worker(pool)
    async with asyncio.timeout(PATIENT_S):
        while first in pool.pids:
            await asyncio.sleep(0.01)


async def test_what_was_told_of_turns_is_told_again(pool: ScreenPool, make_program: MakeProgram) -> None:
    program = await make_program(pool)
    program.stage.note(TurnOpened("hooks", time.monotonic_ns()))
    assert (await program.look()).turn_open
    os.kill(await worker(pool), signal.SIGKILL)
    assert (await program.look()).turn_open
    program.stage.note(TurnClosed())
    program.stage.note(KeysTyped(time.monotonic()))
    os.kill(await worker(pool), signal.SIGKILL)
    assert not (await program.look()).turn_open


@pytest.mark.parametrize("stopped", [True, False])
async def test_a_stop_is_told_again_where_it_was_told(
    pool: ScreenPool, make_program: MakeProgram, stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work before it does not end it, and it does not count for the turn after it."""
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    program = await make_program(pool)
    turns = [
        lambda: program.stage.note(StopAsked(0.0)),
        lambda: program.stage.note(TurnOpened("hooks", time.monotonic_ns())),
    ]
    works = [lambda: program.prints(b"\x1b]7501;state=working\x1b\\")]
    for tell in works + turns[:1] if stopped else turns:
        tell()
        await program.look()
    before = await program.look()
    assert before.stopping is stopped
    (process,) = pool._processes
    process.end("it is killed")
    assert (await program.look()).stopping is stopped


async def test_the_terminal_that_it_is_seen_in_is_told_again(pool: ScreenPool, make_program: MakeProgram) -> None:
    program = await make_program(pool)
    program.stage.note(OuterTerminal(background=(250, 240, 230), cell=(11, 23), keyboard=True))
    os.kill(await worker(pool), signal.SIGKILL)
    program.prints(b"\x1b]11;?\x07\x1b[16t\x1b[>1u\x1b[?u")
    await program.look()
    told = [reply.data for event in program.events if isinstance(event, Drawn) for reply in event.replies]
    assert told == [b"\x1b]11;rgb:fafa/f0f0/e6e6\x07", b"\x1b[6;23;11t", b"\x1b[?1u"]


async def test_the_window_keeps_its_size(pool: ScreenPool, make_program: MakeProgram) -> None:
    program = await make_program(pool)
    program.prints(b"text\r\n")
    program.saved = await program.stage.checkpoint()
    program.stage.resize(60, 10)
    os.kill(await worker(pool), signal.SIGKILL)
    look = await program.look()
    assert (look.screen.cols, look.screen.rows) == (60, 10)
    assert await program.lines() == ["text"]


async def test_what_was_drawn_before_the_window_got_another_size_is_drawn_in_the_old_one(
    pool: ScreenPool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sign of work that the resize cuts off is known to the next process, too, until the program has drawn again."""
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    profile = PROFILE.model_copy(update={"busy": Signs(screen=[r"working \(esc\)"], rows=4)})
    program = await make_program(pool, profile=profile)
    program.prints(b"\x1b[?1049h")
    program.saved = await program.stage.checkpoint()
    program.prints(b"\x1b[5;60Hworking (esc)\x1b[6;1H$ ")
    program.stage.resize(40, 10)
    program.prints(b"\x1b[?2026h")
    before = await program.look()
    (process,) = pool._processes
    process.end("it is killed")
    after = await program.look()
    assert (after.screen.cols, after.screen.rows, after.screen.lines) == (40, 10, before.screen.lines)
    assert before.verdict.activity is Activity.BUSY
    assert after.verdict.activity is Activity.BUSY


async def test_output_that_is_gone_is_gone_for_the_next_process_too(
    pool: ScreenPool, make_program: MakeProgram
) -> None:
    program = await make_program(pool)
    program.prints(b"before\r\n")
    lost = program.spool.end + 100
    program.stage.note(Skipped(lost))
    assert (await program.look()).offset == lost
    os.kill(await worker(pool), signal.SIGKILL)
    assert (await program.look()).offset == lost


# --- output that does harm -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("poison")
async def test_output_that_ends_the_emulator_is_passed_over_and_nothing_else(
    pool: ScreenPool, make_program: MakeProgram
) -> None:
    one, other = await make_program(pool, "one"), await make_program(pool, "other")
    other.prints(b"spared\r\n")
    one.prints(b"before\r\n")
    await one.look()
    one.prints(b"a POISON b\r\n$ ")
    lines = await one.lines()
    assert "its output ended the terminal emulator" in lines[0]
    assert lines[-1] == "$"
    (harmed,) = one.harmed
    assert harmed.harm.skip_to == one.spool.end - len(b" b\r\n$ ")
    assert await other.lines() == ["spared"]
    assert not other.harmed
    one.prints(b"goes on")
    assert (await one.lines())[-1] == "$ goes on"


@pytest.mark.usefixtures("poison")
async def test_what_harms_is_known_to_the_next_daemon(
    pool: ScreenPool, make_pool: MakePool, make_program: MakeProgram
) -> None:
    one = await make_program(pool)
    one.prints(b"POISON\r\nbehind")
    await one.look()
    await one.stage.close()
    again = await make_program(make_pool(), "one")
    assert again.stage.start.harm == one.harmed[0].harm
    assert again.stage.drawn_from == one.harmed[0].harm.skip_to


@pytest.mark.usefixtures("poison")
async def test_after_so_many_times_a_launch_goes_on_without_a_screen(
    pool: ScreenPool, make_program: MakeProgram
) -> None:
    one = await make_program(pool)
    for _ in range(3):
        one.prints(b"POISON\r\n")
        await one.look()
    assert [event.harm.blind for event in one.harmed] == [False, False, True]
    one.prints(b"POISON\r\n")
    assert "it goes on without a screen" in await one.stage.text(scrollback=False)
    assert (await one.look()).offset == one.spool.end


@pytest.mark.usefixtures("poison")
async def test_an_emulator_that_does_not_return_is_ended_by_its_own_time(
    pool: ScreenPool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synapsed.screens.trial.CPU_S", 2)
    monkeypatch.setattr("synapsed.screens.trial.survives.__kwdefaults__", {"cpu_s": 2, "timeout": 600.0})
    one, other = await make_program(pool, "one"), await make_program(pool, "other")
    other.prints(b"spared\r\n")
    await other.look()
    one.prints(b"CIRCLES\r\nbehind")
    assert await other.lines() == ["spared"]
    assert (await one.lines())[-1] == "behind"
    assert one.harmed
    assert not other.harmed


@pytest.mark.usefixtures("poison")
async def test_an_answer_that_ends_the_emulator_is_read_without_the_harm(
    pool: ScreenPool, make_program: MakeProgram
) -> None:
    one = await make_program(pool)
    wanted = LinesWanted(
        start=0, output=b"\r\nPOISON\r\nrest\r\n", prompt="", message="", one_by_one=False, edits=False
    )
    assert "rest" in await asyncio.wait_for(one.stage.read_lines(wanted), PATIENT_S)
    assert not one.harmed


async def test_two_thousand_characters_without_a_width_with_the_bounds_off(
    make_pool: MakePool, make_program: MakeProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What corrupts the emulator's memory ends a process that has nothing, and the daemon goes on."""
    (tmp_path / "unbound").mkdir()
    lines = [
        "import synapsed.terminal.clusters as clusters",
        "clusters.ClusterBound.feed = lambda self, data, **_: data",
    ]
    (tmp_path / "unbound" / "sitecustomize.py").write_text("\n".join(lines))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "unbound"), *sys.path]))
    pool = make_pool()
    one, other = await make_program(pool, "one"), await make_program(pool, "other")
    other.prints(b"spared\r\n")
    for text in ("\u200b", "\ufeff", "\u0301", "\u200d", "\u1161"):
        one.prints(f"a{text * 2000}\r\n".encode())
        await one.look()
    one.prints(b"it goes on")
    assert "it goes on" in (await one.lines())[-1] or one.harmed[-1].harm.blind
    assert await other.lines() == ["spared"]


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


async def test_three_hundred_screens_are_drawn_again(make_pool: MakePool, make_program: MakeProgram) -> None:
    pool = make_pool(2)
    programs = [await make_program(pool, str(number)) for number in range(300)]
    for number, program in enumerate(programs):
        program.prints(f"agent {number}\r\n".encode())
    await asyncio.gather(*(program.look() for program in programs))
    for pid in pool.pids:
        os.kill(pid, signal.SIGKILL)
    looks = await asyncio.gather(*(program.lines() for program in programs))
    assert looks == [[f"agent {number}"] for number in range(300)]


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
    """A picture of a million cells takes longer than a process may be silent, and more bytes than a frame may have."""
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    program = await make_program(pool)
    program.prints(b"text")
    (process,) = pool._processes
    program.stage.resize(1000, 1000)
    with pytest.raises(TooLarge, match="too large for a picture"):
        await program.stage.shown("picture")
    with pytest.raises(TooLarge, match="too large for a picture"):
        await pool.kept(await program.stage.checkpoint(), "picture")
    program.stage.resize(80, 24)
    assert isinstance(await program.stage.shown("picture"), Picture)
    monkeypatch.setattr("synapsed.screens.worker.TEXT_MAX", 10)
    with pytest.raises(TooLarge, match="too large for a picture"):
        await program.stage.shown("picture")
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


# --- its life --------------------------------------------------------------------------------------------------------


async def test_it_has_no_rights_no_environment_and_nothing_open(pool: ScreenPool, make_program: MakeProgram) -> None:
    os.environ["A_SECRET_OF_THE_TEST"] = "x"
    program = await make_program(pool)
    await program.look()
    seen = psutil.Process(await worker(pool))
    del os.environ["A_SECRET_OF_THE_TEST"]
    status = Path(f"/proc/{seen.pid}/status")
    if status.exists():
        told = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        assert told["NoNewPrivs"] == "1"
        assert told["Seccomp"].strip() == "2"
        assert "A_SECRET_OF_THE_TEST" not in Path(f"/proc/{seen.pid}/environ").read_bytes().decode()
        files = [str(path.readlink()) for path in Path(f"/proc/{seen.pid}/fd").iterdir()]
        assert sorted(file.partition(":")[0] for file in files) == [os.devnull, os.devnull, "socket"]
        limits = Path(f"/proc/{seen.pid}/limits").read_text()
        assert "Max open files            1 " in limits
        assert "Max processes             0 " in limits


async def test_it_ends_with_the_daemon(pool: ScreenPool, make_program: MakeProgram) -> None:
    """Which closes the socket, however it ends."""
    program = await make_program(pool)
    await program.look()
    seen = psutil.Process(await worker(pool))
    await pool.close()
    assert not seen.is_running() or seen.status() == psutil.STATUS_ZOMBIE


async def test_what_broke_the_protocol_is_waited_for_too(pool: ScreenPool, make_program: MakeProgram) -> None:
    program = await make_program(pool)
    await program.look()
    (broken,) = pool._processes
    await program.stage.close()
    broken.data_received(b"\xff" * 64)
    assert broken.ended
    await pool.close()
    assert broken.task.done()


async def test_a_key_and_its_echo_wake_it_once() -> None:
    """Each waking takes a processor from those who are on the way of the key."""

    class Wire(asyncio.Transport):
        def __init__(self) -> None:
            super().__init__()
            self.pieces = asyncio.Queue[list[bytes]]()

        def writelines(self, list_of_data: Iterable[Any]) -> None:
            self.pieces.put_nowait(list(list_of_data))

        def is_closing(self) -> bool:
            return False

        def abort(self) -> None:
            return None

    told = process.ScreenProcess((), lambda _frame: None, lambda _why: None, delay=PATIENT_S)
    wire = Wire()
    told.connection_made(wire)
    assert await wire.pieces.get() == []
    told.say(ScreenFrame(FrameKind.NOTE, text=b"typed"))
    told.say(ScreenFrame(FrameKind.FEED, blob=b"k"))
    assert wire.pieces.empty()
    async with asyncio.timeout(PATIENT_S):
        assert len(await wire.pieces.get()) == 2, "by itself"
    told.say(ScreenFrame(FrameKind.FEED, blob=b"e"))
    told.say(ScreenFrame(FrameKind.LOOK, number=1))
    assert len(wire.pieces.get_nowait()) == 2, "whoever asks does not wait"
    told.say(ScreenFrame(FrameKind.FEED, blob=b"x" * (process.SOON_BYTES + 1)))
    assert len(wire.pieces.get_nowait()) == 1, "nor does much"
    told.say(ScreenFrame(FrameKind.NOTE, text=b"typed"))
    told.end("the test is over")
    await told.wait()
    assert wire.pieces.empty()


async def test_nothing_is_said_to_one_that_is_just_closing() -> None:
    """Its file would stay watched after it is closed, and the next of that number could not be."""
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    told = process.ScreenProcess(("-c", "import sys; sys.stdin.read()"), lambda _frame: None, lambda _why: gone.set())
    ours, theirs = socket.socketpair()
    transport, _ = await loop.connect_accepted_socket(lambda: told, ours)
    number = ours.fileno()
    try:
        transport.abort()
        told.say(ScreenFrame(FrameKind.LOOK, number=1))
        while ours.fileno() != -1:
            await asyncio.sleep(0)
        os.dup2(theirs.fileno(), number)
        loop.add_reader(number, gone.set)
        loop.remove_reader(number)
        os.close(number)
    finally:
        theirs.close()
        told.end("the test is over")
        await told.wait()


async def test_one_that_does_not_come_to_begin_is_begun_again_later_and_later(
    make_pool: MakePool, make_program: MakeProgram
) -> None:
    pool = make_pool(1, ("-c", "raise SystemExit(3)"))
    program = await make_program(pool)
    asked = asyncio.ensure_future(program.look())
    async with asyncio.timeout(PATIENT_S):
        while pool._delay < 0.4:
            await asyncio.sleep(0.01)
    assert not asked.done()
    assert not program.harmed
    pool._program = process.PROGRAM
    assert await asked


async def test_one_that_cannot_be_begun_for_want_of_files_is_begun_later(
    pool: ScreenPool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, refused = socket.socketpair, 0

    def socketpair() -> tuple[socket.socket, socket.socket]:
        nonlocal refused
        refused += 1
        if refused <= 2:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return make()

    monkeypatch.setattr("synapsed.screens.process.socket.socketpair", socketpair)
    program = await make_program(pool)
    program.prints(b"text")
    assert await program.lines() == ["text"]
    assert refused == 3
    assert not program.harmed


async def test_where_no_file_may_be_opened_to_look_at_it_it_is_left_alone(
    pool: ScreenPool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = await make_program(pool)
    await program.look()
    (seen,) = pool._processes

    def refuse(_pid: int) -> psutil.Process:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("synapsed.screens.process.psutil.Process", refuse)
    seen.check(work=True)
    assert not seen.ended


async def test_one_that_waits_to_be_begun_holds_up_no_end(make_pool: MakePool) -> None:
    pool = make_pool()
    pool._delay = 3600.0
    pool.begin()
    await asyncio.wait_for(pool.close(), PATIENT_S)
    assert not pool.pids


async def test_output_that_cannot_be_read_back_costs_what_it_showed_and_no_look(
    pool: ScreenPool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = await make_program(pool)
    program.prints(b"gone\r\n")
    await program.look()

    def refuse(_directory: str) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("synapsed.screens.stage.SpoolReader", refuse)
    seat = program.stage._seat
    os.kill(await worker(pool), signal.SIGKILL)
    async with asyncio.timeout(PATIENT_S):
        while program.stage._seat in (None, seat) or not program.stage._live:
            await asyncio.sleep(0.01)
    program.prints(b"here")
    assert await program.lines() == ["here"]
    assert Incomplete() in program.events  # so that its link asks the program to draw again


async def test_a_screen_whose_first_output_is_gone_is_known_to_be_incomplete(
    pool: ScreenPool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    program = await make_program(pool)
    for text in (b"first\r\n", b"second"):
        program.prints(text)
        await program.look()
    (process,) = pool._processes
    process.end("it is killed")
    assert await program.lines() == ["first", "second"]
    assert Incomplete() not in program.events
    read = SpoolReader.read
    monkeypatch.setattr(SpoolReader, "read", lambda self, offset, limit: read(self, max(7, offset), limit))
    (process,) = pool._processes
    process.end("it is killed")
    assert await program.lines() == ["second"]
    assert Incomplete() in program.events
