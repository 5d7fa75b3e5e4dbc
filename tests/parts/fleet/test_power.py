"""Three brokers that lose power, all of them or two: by copying the image of the file system that they are on, while it
is mounted. What was written and not synced is not in the copy."""

import asyncio
import contextlib
from pathlib import Path

import nats.errors
import pytest

from tests.parts.fleet.brokers import needs_broker, until
from tests.parts.fleet.test_losses import MESSAGES, kept, mounted, needs_root, run, say, unmounting
from tests.parts.fleet.threebrokers import Three, three_brokers

pytestmark = [needs_broker, needs_root, pytest.mark.fleet, pytest.mark.timeout(900)]

IMAGE = 2 << 30


@pytest.mark.parametrize("losers", [3, 2])
def test_three_brokers_lose_power_and_nothing_that_was_confirmed(tmp_path: Path, losers: int) -> None:
    image, copy, disk = tmp_path / "image", tmp_path / "copy", tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(IMAGE)
    assert run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image).returncode == 0
    mounted(disk, "-o", "loop,commit=300", str(image))
    with unmounting(disk), three_brokers(disk, apart=tmp_path if losers == 2 else None, max_store="256MiB") as three:
        three.scale(3)
        until(three.current, "all three have everything", 120)
        confirmed = asyncio.run(say(three.box, MESSAGES))
        assert len(confirmed) == MESSAGES
        assert run("cp", "--sparse=always", image, copy).returncode == 0  # the power is lost here
        for one in three.all:
            one.kill()
        run("umount", "-l", disk)
        mounted(disk, "-o", "loop", str(copy))
        for one in three.all[:losers]:  # two are enough to go on, and decide without the third
            one.start()
        until(lambda: confirmed_there(three) == MESSAGES, "what was confirmed is there", 180)
        for one in three.all[losers:]:
            one.start()
        until(three.current, "all three have everything again", 180)
        assert confirmed_there(three) == MESSAGES
        assert len(asyncio.run(say(three.box, 16, begin=MESSAGES))) == 16


def confirmed_there(three: Three) -> int:
    """How much mail the brokers have; 0 while they have no leader."""
    with contextlib.suppress(nats.errors.Error, OSError, TimeoutError, KeyError):
        return int(asyncio.run(kept(three.box))["state"]["messages"])
    return 0
