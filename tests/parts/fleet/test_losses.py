"""What a broker loses, and what it does not: power, room, its store, and an older copy of it put back.

Power is lost by copying the image of a file system that is mounted: what was written and not synced is not in the copy.
"""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats.errors
import pytest

from tests.parts.fleet.brokers import FleetHome, needs_broker, until

pytestmark = [needs_broker, pytest.mark.fleet, pytest.mark.timeout(400)]

MESSAGES = 3000
ROOM = 320 << 20


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


def mounted(folder: Path, *options: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    done = run("mount", *options, folder)
    if done.returncode != 0:
        pytest.skip(f"NO FILE SYSTEM CAN BE MOUNTED HERE: {done.stderr.strip()}")


@contextlib.contextmanager
def unmounting(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        run("umount", "-l", folder)


needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0 or shutil.which("mkfs.ext4") is None, reason="mounts file systems"
)


async def say(box: FleetHome, count: int, *, begin: int = 0) -> list[int]:
    """Numbers that the broker has confirmed, sixteen at once."""
    client = await box.connect()
    confirmed: list[int] = []

    async def one(number: int) -> None:
        answer = json.loads((await client.request("syn.to.box.box.msg", b"%d" % number, timeout=20)).data)
        if "error" not in answer:
            confirmed.append(number)

    for at in range(begin, begin + count, 16):
        with contextlib.suppress(nats.errors.Error):
            await asyncio.gather(*(one(number) for number in range(at, min(at + 16, begin + count))))
    await client.close()
    return confirmed


async def kept(box: FleetHome) -> dict[str, Any]:
    admin = await box.connect_admin()
    try:
        told: dict[str, Any] = json.loads((await admin.request("$JS.API.STREAM.INFO.SYN_IN", b"", timeout=20)).data)
    finally:
        await admin.close()
    return told


@needs_root
def test_power_is_lost_and_nothing_that_was_confirmed(tmp_path: Path) -> None:
    image, copy, disk = tmp_path / "image", tmp_path / "copy", tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(1 << 30)
    assert run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image).returncode == 0
    mounted(disk, "-o", "loop,commit=300", str(image))
    with unmounting(disk):
        box = FleetHome(disk / "box")
        try:
            box.create(max_store="512MiB")
            confirmed = asyncio.run(say(box, MESSAGES))
            assert len(confirmed) == MESSAGES
            shutil.copyfile(image, copy)  # the power is lost here
        finally:
            box.kill()
            box.close()
    mounted(disk, "-o", "loop", str(copy))
    with unmounting(disk):
        again = FleetHome(disk / "box")
        again.port = box.port
        try:
            again.up()
            state = asyncio.run(kept(again))
            assert "error" not in state, state
            assert state["state"]["messages"] == MESSAGES
        finally:
            again.close()


@needs_root
def test_a_full_disk_heals_when_there_is_room_again(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    mounted(disk, "-t", "tmpfs", "-o", f"size={ROOM + (300 << 20)}", "tmpfs")
    with unmounting(disk):
        box = FleetHome(disk / "box", environ={"SYNAPSED_BROKER_FREE_MIN": str(64 << 20)})
        try:
            box.create(max_store="256MiB")
            assert asyncio.run(say(box, 100))
            ballast = disk / "ballast"
            free = shutil.disk_usage(disk).free
            with ballast.open("wb") as file, contextlib.suppress(OSError):
                for _ in range(free // 65536 + 2):
                    file.write(b"\0" * 65536)
            first = box.server_pid

            def sick() -> bool:
                asyncio.run(_press(box))
                return not box.do("status")["broker"]["healthy"]

            until(sick, "the broker says that it is not healthy", 120)
            confirmed = asyncio.run(kept_or_none(box))
            ballast.unlink()
            took = until(lambda: box.server_pid != first, "the watchdog starts it again", 120)
            box.healthy()
            print(f"started again {took:.0f} s after there was room; it had said {confirmed}")
            assert len(asyncio.run(say(box, 100, begin=10_000))) == 100
        finally:
            box.close()


async def kept_or_none(box: FleetHome) -> str:
    with contextlib.suppress(nats.errors.Error, OSError, KeyError):
        return str((await kept(box)).get("error"))
    return "nothing"


async def _press(box: FleetHome) -> None:
    """Bodies of half a MiB, until the disk has no room for them."""
    with contextlib.suppress(nats.errors.Error, OSError, TimeoutError):
        client = await box.connect()
        for _ in range(20):
            await client.publish("syn.to.box.box.msg", b"x" * (512 << 10))
        await client.flush(2)
        await client.close()


def test_an_older_copy_of_the_store_is_put_back(tmp_path: Path) -> None:
    """What was confirmed since is gone, and the stream tells by its sequence: the sender's audit rests on that."""
    box = FleetHome(tmp_path / "box")
    try:
        box.create()
        assert len(asyncio.run(say(box, 50))) == 50
        box.stop()
        shutil.copytree(box.home.broker / "store", tmp_path / "older")
        box.up()
        assert len(asyncio.run(say(box, 50, begin=50))) == 50
        assert asyncio.run(kept(box))["state"]["last_seq"] == 100
        box.kill()
        shutil.rmtree(box.home.broker / "store")
        shutil.copytree(tmp_path / "older", box.home.broker / "store")
        box.up()
        state = asyncio.run(kept(box))["state"]
        assert (state["messages"], state["last_seq"]) == (50, 50)
    finally:
        box.close()
