"""A disk that is full: the program blocks, the keeper lives and says so, and nothing is lost."""

import asyncio
import functools
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from synapsed.keepers.keeper_messages import Alert, KeeperRefused
from synapsed.keepers.launchers import LaunchedKeeper
from tests.keeper.conftest import Lab, Watcher, until_file

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="takes prlimit or tmpfs")

FOUR_MB = (
    "import os,tty\ntty.setraw(0)\nopen('up','w').close()\nos.read(0,1)\n"
    "data=b''.join(b'%07d\\n'%n for n in range(500_000))\n"
    "v=memoryview(data)\n"
    "while v: v=v[os.write(1,v[:65536]):]\n"
)


@functools.cache
def expected() -> bytes:
    """Returns what FOUR_MB writes."""
    return b"".join(b"%07d\n" % n for n in range(500_000))


def limit_files(keeper: LaunchedKeeper, size: int) -> None:
    """From now on no file of the keeper's grows beyond `size` bytes: EFBIG, another name of the same misery."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.prlimit(keeper.keeper_pid, resource.RLIMIT_FSIZE, (size, hard))


def lift_limit(keeper: LaunchedKeeper) -> None:
    import resource

    limit_files(keeper, resource.RLIM_INFINITY)


def alerts(watcher: Watcher) -> list[bool]:
    return [event.active for event in watcher.events if isinstance(event, Alert)]


async def through_a_full_disk(
    lab: Lab, keeper: LaunchedKeeper, fill: Callable[[], None], free: Callable[[], None]
) -> None:
    watcher = await lab.watch(keeper)
    await until_file(lab.root / "up")
    fill()
    await watcher.client.write(b"g", "go")
    await watcher.until(lambda: alerts(watcher) == [True])
    stuck = (await watcher.client.ping()).spool_end
    assert stuck < len(expected())
    late = await lab.connect(keeper)
    assert late.hello.alert is not None  # who comes later knows it too
    assert (await late.read(0, 1 << 24))[1] == expected()[:stuck]
    free()
    record = await watcher.until_exit()
    assert alerts(watcher) == [True, False]
    assert (record.code, record.output_lost) == (0, 0)
    assert bytes(watcher.output) == expected()


async def test_a_file_size_limit(lab: Lab) -> None:
    keeper = await lab.python(FOUR_MB)
    await through_a_full_disk(lab, keeper, lambda: limit_files(keeper, 1_000_001), lambda: lift_limit(keeper))


@pytest.fixture
async def small_disk(lab: Lab) -> AsyncIterator[Path]:
    disk = lab.root / "disk"
    disk.mkdir()
    mount = await asyncio.to_thread(
        subprocess.run, ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    yield disk
    await lab.close()
    await asyncio.to_thread(subprocess.run, ["umount", "-l", str(disk)], check=True)


async def test_a_full_file_system(lab: Lab, small_disk: Path) -> None:
    keeper = await lab.python(FOUR_MB, state_dir=small_disk / "state")

    def free() -> None:
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)

    await through_a_full_disk(lab, keeper, lambda: None, free)


async def test_a_stop_does_not_wait_for_space_and_says_what_was_lost(lab: Lab) -> None:
    keeper = await lab.python(FOUR_MB)
    watcher = await lab.watch(keeper)
    await until_file(lab.root / "up")
    limit_files(keeper, 100_000)
    await watcher.client.write(b"g", "go")
    await watcher.until(lambda: alerts(watcher) == [True])
    limit_files(keeper, 0)
    assert await watcher.client.stop(0) == 0
    record = await watcher.until_exit()
    assert record.stopped
    assert 0 < record.output_lost <= 65536
    assert record.final_offset == len(watcher.output) == 100_000
    # The record is told although it could not be stored, and stored when it can be.
    path = lab.root / "state" / "exit.json"
    assert not path.exists()
    lift_limit(keeper)
    assert json.loads(await until_file(path))["signal"] == record.signal


async def test_an_input_that_cannot_be_recorded_is_not_written(lab: Lab) -> None:
    keeper = await lab.shell("stty raw -echo; echo ready; exec cat")
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    limit_files(keeper, (lab.root / "state" / "journal").stat().st_size)
    with pytest.raises(Exception, match="cannot be recorded"):
        await watcher.client.write(b"<one>", "t.1")
    lift_limit(keeper)
    result = await watcher.client.write(b"<two>", "t.1")
    assert result.status == "written"
    assert b"<one>" not in await watcher.until_output(b"<two>")


async def test_an_input_that_cannot_be_recorded_is_no_part_of_a_line(lab: Lab) -> None:
    keeper = await lab.shell("echo ready; exec cat")
    watcher = await lab.watch(keeper)
    await watcher.until_output(b"ready")
    limit_files(keeper, (lab.root / "state" / "journal").stat().st_size)
    with pytest.raises(KeeperRefused) as caught:
        await watcher.client.write(b"x" * 4000, "t.1")
    assert caught.value.reason == "journal_failed"
    lift_limit(keeper)
    assert (await watcher.client.write(b"y" * 200 + b"\n", "t.2")).status == "written"
