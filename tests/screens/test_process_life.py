"""The process that draws screens, from its beginning to its end: its rights, its files, and when it is begun again."""

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
import pytest

from synapsed import own_python
from synapsed.keeper.spool import SpoolReader
from synapsed.profiles.library import ProfileLibrary
from synapsed.screens import protocol, screen_process
from synapsed.screens.pool import ScreenPool
from synapsed.screens.protocol import FrameKind, ScreenFrame
from synapsed.terminal.screen_messages import (
    Incomplete,
)
from tests.fakes.screens import FakeScreenProcess
from tests.screens.conftest import PATIENT_S, MakePool, MakeProgram, worker


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
        files = [file for file in files if "/libffi.so" not in file]  # newer ones keep their own file open
        assert sorted(file.partition(":")[0] for file in files) == [os.devnull, os.devnull, "socket"]
        limits = Path(f"/proc/{seen.pid}/limits").read_text()
        assert "Max open files            1 " in limits
        assert "Max processes             0 " in limits


def test_every_profile_is_opened_where_nothing_more_can_be_imported() -> None:
    """The process reads it when it has no rights any more, and builds no validator for it."""
    opened = (
        "import sys, pickle; from synapsed.screens import worker; from synapsed.profiles.profile import Profile;"
        "known = set(sys.modules); sys.meta_path.clear(); read = pickle.load(sys.stdin.buffer);"
        "assert set(sys.modules) == known; assert not Profile.__pydantic_complete__; print(len(read))"
    )
    library = ProfileLibrary.builtin()
    profiles = [every for name in library.names() for every in (library.get(name), *library.get(name).variants)]
    told = [
        protocol.read_value(protocol.write_opening(protocol.Opening(profile, 80, 24, 0, None, None, 1.0))).profile
        for profile in profiles
    ]
    assert told == profiles
    command = [sys.executable, "-c", opened]
    done = subprocess.run(command, input=protocol.write_value(told), capture_output=True, check=True)
    assert int(done.stdout) == len(profiles)


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

    told = screen_process.ScreenProcess((), lambda _frame: None, lambda _why: None, delay=PATIENT_S)
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
    told.say(ScreenFrame(FrameKind.FEED, blob=b"x" * (screen_process.SOON_BYTES + 1)))
    assert len(wire.pieces.get_nowait()) == 1, "nor does much"
    told.say(ScreenFrame(FrameKind.NOTE, text=b"typed"))
    told.end("the test is over")
    await told.wait()
    assert wire.pieces.empty()


async def test_nothing_is_said_to_one_that_is_just_closing() -> None:
    """Its file would stay watched after it is closed, and the next of that number could not be."""
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    told = screen_process.ScreenProcess(
        ("-c", "import sys; sys.stdin.read()"), lambda _frame: None, lambda _why: gone.set()
    )
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
    pool = make_pool(1, own_python.alone("-c", "raise SystemExit(3)"))
    program = await make_program(pool)
    asked = asyncio.ensure_future(program.look())
    async with asyncio.timeout(PATIENT_S):
        while pool._delay < 0.4:
            await asyncio.sleep(0.01)
    assert not asked.done()
    assert not program.harmed
    pool._program = own_python.command("synapsed.screens.worker")
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

    monkeypatch.setattr("synapsed.screens.screen_process.socket.socketpair", socketpair)
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

    monkeypatch.setattr("synapsed.screens.screen_process.psutil.Process", refuse)
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

    monkeypatch.setattr("synapsed.screens.remote_screen.SpoolReader", refuse)
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
