"""`scale` that is killed at each of its steps, and asked for again: with real brokers."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts.fleet.brokers import FleetHome, Refused, needs_broker, until
from tests.parts.fleet.dying import KILLED
from tests.parts.fleet.threebrokers import three_brokers

pytestmark = [needs_broker, pytest.mark.fleet, pytest.mark.timeout(1800)]

STEPS = 11
"""At least: old copies, the copy of each of six streams, the list of them, the broker's settings, and who belongs to
the fleet; that again from the step on by which the broker is another one."""


@pytest.mark.parametrize("broker_dies", [False, True], ids=["the-broker-goes-on", "the-broker-dies-too"])
def test_what_was_claimed_and_sent_is_there_though_it_is_killed_at_each_step(tmp_path: Path, broker_dies: bool) -> None:
    with three_brokers(tmp_path) as three:
        box = three.box
        assert asyncio.run(claims(box, "syn.claim.task.1"))
        asyncio.run(sends(box))
        for replicas in (3, 1):
            before = box.server_pid
            deaths = killed_at_each_step(box, replicas, broker_dies=broker_dies)
            assert deaths >= STEPS
            if not broker_dies:
                assert not box.do("scale", replicas=replicas)["again"], "the broker is to be started again"
                with pytest.raises(Refused, match="the broker is to be started again"):
                    box.do("settle", seconds=0.1)
            box.signal_broker(signal.SIGHUP)
            box.do("settle", not_pid=before if before == box.server_pid else None)
            assert box.do("scale", replicas=replicas)["again"], "all of it is done"
            box.do("settle")
            if replicas == 3:
                until(three.current, "all three have everything", 120)
            assert not asyncio.run(claims(box, "syn.claim.task.1")), f"it is claimed: {replicas}"
            assert asyncio.run(claims(box, f"syn.claim.task{replicas}.1")), "other work can be"
            (mail,) = [one for one in three.streams() if one["name"] == "SYN_IN"]
            assert mail["messages"] == 1


def killed_at_each_step(box: FleetHome, replicas: int, *, broker_dies: bool) -> int:
    """How often, until it was done. From the step on by which the broker is another one there are fewer."""
    deaths, step, another = 0, 0, False
    while True:
        step += 1
        if not dies(box, replicas, step):
            return deaths
        deaths += 1
        if not another and bool(box.broker_folder.read().get("cluster")) is (replicas == 3):
            another, step = True, 0
            if broker_dies:
                box.kill()
                box.up()


def dies(box: FleetHome, replicas: int, step: int) -> bool:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.parts.fleet.dying", str(step), "fleet", "scale"],
        input=json.dumps({"replicas": replicas}),
        capture_output=True,
        text=True,
        env=box.environ,
        timeout=90,
        check=False,
    )
    assert ended.returncode in (0, KILLED), f"{step}: {ended.stdout} {ended.stderr}"
    return ended.returncode == KILLED


async def claims(box: FleetHome, subject: str) -> bool:
    """Whether no host had claimed it before."""
    client = await box.connect()
    try:
        headers = {"Nats-Expected-Last-Subject-Sequence": "0"}
        told = json.loads((await client.request(subject, b"{}", headers=headers, timeout=20)).data)
    finally:
        await client.close()
    return "error" not in told


async def sends(box: FleetHome) -> None:
    client = await box.connect()
    try:
        told = json.loads((await client.request("syn.to.attic.box.msg", b"{}", timeout=20)).data)
    finally:
        await client.close()
    assert "error" not in told
