"""The log of a companion is kept small while a real process writes it."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from synapsed.channels.launch_additions import COMPANION
from synapsed.parts.app_server import channel as app_server
from synapsed.parts.app_server.channel import AppServerChannel
from synapsed.parts.app_server.companion_log import LOG_KEPT, LOG_MAX, cut, keep_small
from synapsed.profiles.library import ProfileLibrary
from tests.channels.conftest import Launch
from tests.support.patience import PATIENCE_S

DEADLINE = PATIENCE_S

WRITES = """
import os, socket, sys, threading
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
fifo = open(sys.argv[2])
for number, _ in enumerate(fifo):
    os.write(2, b"x" * (2 << 20) + b"\\n" + b"end %d\\n" % number)
    with open(sys.argv[3], "a") as told:
        told.write("written\\n")
"""


def test_its_end_stays_and_the_rest_goes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert not cut(log)
    log.write_bytes(b"a line\n" * 10)
    assert not cut(log)
    assert log.read_bytes() == b"a line\n" * 10
    lines = b"".join(b"line %06d\n" % number for number in range(LOG_MAX // 8))
    log.write_bytes(lines)
    assert cut(log)
    kept = log.read_bytes()
    assert LOG_KEPT - 20 < len(kept) <= LOG_KEPT
    assert lines.endswith(b"\n" + kept)
    assert not cut(log)


def test_no_other_file_is_cut(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"x" * (LOG_MAX + 1))
    (tmp_path / "log").symlink_to(large)
    with pytest.raises(OSError, match="symbolic"):
        cut(tmp_path / "log")
    assert large.stat().st_size == LOG_MAX + 1


async def test_a_companion_writes_on_behind_what_was_kept(tmp_path: Path) -> None:
    """By the launcher: it is what opens the log."""
    log, fifo, told = tmp_path / "log", tmp_path / "fifo", tmp_path / "told"
    os.mkfifo(fifo)
    plan = {
        "socket": str(tmp_path / "servers" / "agent" / "s"),
        "companion": [sys.executable, "-c", WRITES, str(tmp_path / "servers" / "agent" / "s"), str(fifo), str(told)],
        "attached": [sys.executable, "-c", ""],
        "alone": [sys.executable, "-c", "raise SystemExit(9)"],
        "wait_s": DEADLINE,
        "failed": str(tmp_path / "failed"),
        "log": str(log),
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    argv = [sys.executable, "-S", "-E", "-I", str(COMPANION), str(tmp_path / "plan.json")]
    done = await asyncio.to_thread(subprocess.run, argv, timeout=DEADLINE, check=False)
    assert done.returncode == 0
    writer = await asyncio.to_thread(fifo.open, "w")  # its end ends the companion
    with writer:
        for number in range(3):
            writer.write("more\n")
            writer.flush()
            await until(lambda: told.is_file() and len(told.read_text().splitlines()) == number + 1)  # noqa: B023
            assert cut(log)
            assert log.read_bytes() == b"end %d\n" % number
            assert b"\0" not in log.read_bytes()


async def test_the_channel_keeps_it_small_and_stops_with_it(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_server, "keep_small", lambda path: keep_small(path, every_s=0.01))
    context = launch.context
    context.launch_dir.mkdir(parents=True, exist_ok=True)
    channel = AppServerChannel(
        name="server", channel=ProfileLibrary.builtin().get("codex").channels["server"], context=context
    )
    await channel.open(lambda _fact: None)
    try:
        for _ in range(2):
            with context.companion_log.open("ab") as log:
                log.write(b"x" * LOG_MAX + b"\nlast\n")
            await until(lambda: context.companion_log.read_bytes() == b"last\n")
            context.companion_log.write_bytes(b"")
    finally:
        await channel.close()
    assert not [task for task in asyncio.all_tasks() if "keep_small" in repr(task.get_coro())]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not holds():
            await asyncio.sleep(0.01)
