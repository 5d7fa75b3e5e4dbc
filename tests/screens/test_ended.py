"""The process that draws screens ends, or is harmed by what it draws: what it costs its agents."""

import asyncio
import os
import signal
import time
from operator import itemgetter
from pathlib import Path
from typing import cast

import pytest

from synapsed import own_python
from synapsed.model.agent import Activity
from synapsed.model.outer_terminal import OuterTerminal
from synapsed.profiles.screen_spec import BusySigns
from synapsed.screens.pool import ScreenPool
from synapsed.terminal.screen_messages import (
    Ask,
    Drawn,
    KeysTyped,
    LinesWanted,
    Skipped,
    StopAsked,
    TurnClosed,
    TurnOpened,
)
from tests.fakes.screens import FakeScreenProcess
from tests.screens.conftest import PATIENT_S, PROFILE, MakePool, MakeProgram, worker
from tests.support.begun import begins_with
from tests.support.gated import one_each

# --- the process ends ------------------------------------------------------------------------------------------------


HOW = (signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP)
DURING = ("idle", "feed", "look", "checkpoint", "redraw", "text", "lines")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("during", "how"),
    one_each(
        [(during, how) for n, during in enumerate(DURING) for how in (*HOW[n % 3 :], *HOW[: n % 3])],
        kind=itemgetter(1),
    ),
)
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


@pytest.mark.night
@pytest.mark.slow
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

    monkeypatch.setattr("synapsed.screens.harmful_output.survives", survives)
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


@pytest.mark.night
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
    monkeypatch.setattr("synapsed.screens.screen_process.CLOSED_S", 0.01)
    pool = make_pool(1, own_python.alone("-c", "import os, time; os.close(0); time.sleep(600)"))
    pool.begin()
    first = await worker(pool)
    async with asyncio.timeout(PATIENT_S):
        while first in pool.pids:
            await asyncio.sleep(0.01)


@pytest.mark.night
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


@pytest.mark.night
async def test_the_window_keeps_its_size(pool: ScreenPool, make_program: MakeProgram) -> None:
    program = await make_program(pool)
    program.prints(b"text\r\n")
    program.saved = await program.stage.checkpoint()
    program.stage.resize(60, 10)
    os.kill(await worker(pool), signal.SIGKILL)
    look = await program.look()
    assert (look.screen.cols, look.screen.rows) == (60, 10)
    assert await program.lines() == ["text"]


async def test_each_part_of_the_output_is_drawn_in_the_size_that_the_window_had(
    pool: ScreenPool, make_program: MakeProgram
) -> None:
    """A program that draws at the window's edge takes away what it drew at the edge before."""
    program = await make_program(pool)
    program.prints(b"\x1b[?1049h\x1b[999;24Hedge\x1b[H")
    for last, rows in ((24, 40), (40, 50), (50, 60)):
        program.stage.resize(80, rows)
        program.prints(b"\x1b[%d;%dH\x1b[4X\x1b[999;%dHedge\x1b[H" % (last, last, rows))
    program.prints(b"\x1b[60;60H\x1b[4X\x1b[1;1Hdone")
    before = await program.look()
    os.kill(await worker(pool), signal.SIGKILL)
    after = await program.look()
    assert await program.lines() == ["done"]
    assert (after.screen.lines, after.screen.rows) == (before.screen.lines, 60)


async def test_what_was_drawn_before_the_window_got_another_size_is_drawn_in_the_old_one(
    pool: ScreenPool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sign of work that the resize cuts off is known to the next process, too, until the program has drawn again."""
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    profile = PROFILE.model_copy(update={"busy": BusySigns(screen=[r"working \(esc\)"], rows=4)})
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


@pytest.mark.night
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


@pytest.mark.night
@pytest.mark.slow
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


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.usefixtures("poison")
async def test_an_emulator_that_does_not_return_is_ended_by_its_own_time(
    pool: ScreenPool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synapsed.screens.screen_process.HANGS_CPU_S", 1.0)
    monkeypatch.setattr("synapsed.screens.harmful_output.CPU_S", 2)
    monkeypatch.setattr("synapsed.screens.harmful_output.survives.__kwdefaults__", {"cpu_s": 2, "timeout": 600.0})
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
    assert "rest" in (await asyncio.wait_for(one.stage.read_lines(wanted), PATIENT_S)).text
    assert not one.harmed


@pytest.mark.night
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
    monkeypatch.setattr("synapsed.own_python.FILE", begins_with(tmp_path / "unbound" / "sitecustomize.py"))
    pool = make_pool()
    one, other = await make_program(pool, "one"), await make_program(pool, "other")
    other.prints(b"spared\r\n")
    for text in ("\u200b", "\ufeff", "\u0301", "\u200d", "\u1161"):
        one.prints(f"a{text * 2000}\r\n".encode())
        await one.look()
    one.prints(b"it goes on")
    assert "it goes on" in (await one.lines())[-1] or one.harmed[-1].harm.blind
    assert await other.lines() == ["spared"]
