"""Three brokers instead of one, and one again: real servers, members that write to each other meanwhile, real kills."""

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import nats.errors
import pytest

from tests.parts.fleet.brokers import FleetHome, Refused, fleet, needs_broker, until
from tests.parts.fleet.member import Member
from tests.parts.fleet.test_members import PATIENCE_S, faults, members, settled
from tests.parts.fleet.threebrokers import Three, added, started

pytestmark = [needs_broker, pytest.mark.fleet, pytest.mark.timeout(1800)]

COUNT = 300
PER_SECOND = 20.0


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Three]:
    with fleet(tmp_path) as box, contextlib.ExitStack() as ends:
        made = Three(box, [box.joined(tmp_path / name, name) for name in ("attic", "barn")])
        with pytest.raises(Refused, match="was not chosen to keep a broker"):
            made.others[0].do("broker-take")
        added(box, made.others[0])
        with pytest.raises(Refused, match="three brokers are wanted"):
            made.others[0].do("broker-take")
        with pytest.raises(Refused, match="name two other hosts first"):
            box.do("scale", replicas=3)
        added(box, made.others[1])
        with pytest.raises(Refused, match="There: 'synapsectl fleet broker start'"):
            box.do("scale", replicas=3)
        with pytest.raises(Refused, match="one broker or three"):
            box.do("scale", replicas=2)
        for other in made.others:
            started(other)
            ends.callback(other.close)
        yield made


async def ack_after(home: FleetHome, urls: list[str]) -> float:
    """Seconds until the brokers at `urls` take a message."""
    began = time.monotonic()
    while time.monotonic() - began < 120:
        with contextlib.suppress(nats.errors.Error, OSError, TimeoutError):
            client = await home.connect(urls)
            try:
                told = json.loads((await client.request("syn.to.box.box.msg", b"{}", timeout=1)).data)
            finally:
                await client.close()
            if "error" not in told:
                return time.monotonic() - began
        await asyncio.sleep(0.05)
    raise AssertionError("nothing is taken")


def test_one_becomes_three_and_one_again_while_mail_goes_on(three: Three, tmp_path: Path) -> None:
    more = {"count": COUNT, "per_second": PER_SECOND}
    plans = {"cellar": {"to": ["codex@shed"], **more}, "shed": {"to": ["codex@cellar"], **more}}
    with members(tmp_path, three.box, plans) as found:
        begun(found, 0.1)
        three.scale(3)
        until(three.current, "all three have everything", 120)
        cellar = found["cellar"].home
        until(lambda: len(cellar.do("status")["member"]["urls"]) == 3, "a member has learned of all three", 120)
        assert len(three.box.do("invite", name="new")["urls"]) == 3
        begun(found, 0.3)
        leader = three.named(next(one["leader"] for one in three.streams() if one["name"] == "SYN_IN"))
        leader.kill()
        rest = [one for one in three.all if one is not leader]
        took = asyncio.run(ack_after(three.box, [one.url for one in rest]))
        print(f"the leader was killed: taken again after {took:.1f} s")
        begun(found, 0.6)
        leader.start()
        until(three.current, "all three have everything again", 120)
        three.scale(1)
        assert three.box.do("status")["replicas"] == 1
        until(lambda: settled(list(found.values())), "nothing is open", PATIENCE_S)
        assert faults(found) == {}


def begun(found: dict[str, Member], share: float) -> None:
    goal = int(2 * COUNT * share)
    until(lambda: sum(one.sent() for one in found.values()) >= goal, f"{goal} are sent", PATIENCE_S)


def test_what_is_claimed_stays_claimed_when_brokers_come_and_go(three: Three) -> None:
    async def claimed(urls: list[str]) -> bool:
        client = await three.box.connect(urls)
        headers = {"Nats-Expected-Last-Subject-Sequence": "0"}
        told = json.loads((await client.request("syn.claim.task.1", b"{}", headers=headers, timeout=20)).data)
        await client.close()
        return "error" not in told

    assert asyncio.run(claimed([three.box.url]))
    three.scale(3)
    assert not asyncio.run(claimed([three.others[0].url])), "by another host's broker"
    three.scale(1)
    assert not asyncio.run(claimed([three.box.url]))


def test_a_broker_that_is_lost_is_replaced(three: Three, tmp_path: Path) -> None:
    three.scale(3)
    until(three.current, "all three have everything", 120)
    attic, barn = three.others
    with pytest.raises(Refused, match="three are needed"):
        three.box.do("broker-remove", name="barn")
    shed = three.box.joined(tmp_path / "shed", "shed")
    barn.kill()
    added(three.box, shed)
    started(shed)
    try:
        until(lambda: removed(three.box, "barn"), "barn is no broker any more", 120)
        three.others = [attic, shed]
        until(three.current, "shed has everything", 120)
        assert len(three.box.do("status")["urls"]) == 3
        attic.kill()
        took = asyncio.run(ack_after(three.box, [three.box.url, shed.url]))
        print(f"another was lost: taken again after {took:.1f} s")
    finally:
        shed.close()


def removed(box: FleetHome, name: str) -> bool:
    """The brokers say whether they can, once they have a leader."""
    with contextlib.suppress(Refused):
        box.do("broker-remove", name=name)
        return True
    return False
