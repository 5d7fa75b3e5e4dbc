"""A host is removed from the fleet, or invited again under its name."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapsed.model.task import TaskState
from synapsed_fleet.envelope import BadEnvelope
from synapsed_fleet.host_record import HostRecord, written
from synapsed_fleet.names import record
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.peer_certificates import NotMet
from synapsed_fleet.removed_hosts import SURE_S
from synapsed_fleet.signing import signed
from tests.parts.fleet.world import Host, World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    yield made
    await made.close()


async def met(*hosts: Host) -> None:
    """They have read each other's records."""
    for one in hosts:
        for other in hosts:
            await one.peers.learn(other.name, f"{other.name}|{other.pair.public}")


async def looked(world: World, host: Host) -> None:
    """For as long as it takes to be sure."""
    for _ in range(3):
        await host.removed.look()
        world.clock.advance(SURE_S / 2 + 1)


def removed(world: World, name: str) -> None:
    world.trust.revoked.add(name)
    world.broker.records.pop(record(name))


async def test_what_is_under_way_to_a_removed_host_ends_and_nothing_more_is_sent(world: World) -> None:
    laptop, box, shed = [await world.host(name) for name in ("laptop", "box", "shed")]
    await met(laptop, box, shed)
    had = await laptop.send("codex@box", "taken", key="1")
    kept = await laptop.send("codex@shed", "for another", key="2")
    while await laptop.turn() or await box.turn(answers=False):
        pass
    piped = await laptop.send("codex@box", "at the broker", key="3")
    await laptop.turn()
    world.broker.away = True
    new = await laptop.send("codex@box", "never left", key="4")
    world.broker.away = False
    removed(world, "box")
    await laptop.removed.look()
    assert await world.tasks_of(laptop, TaskState.FAILED) == 0, "it is not sure yet"
    await looked(world, laptop)
    found = [await laptop.store.task(task.id) for task in (had, piped, new, kept)]
    assert [task and task.error and task.error.code for task in found] == [*["UNDELIVERED"] * 3, None]
    told = [task.error.message for task in found if task is not None and task.error is not None]
    assert told[0] == "box was removed from the fleet: whether its agent has done anything cannot be told"
    assert told[2] == "box was removed from the fleet: it never had the message"
    assert await laptop.table.open_rows(dst="box") == []
    assert laptop.carrier.find("codex@box") is None
    assert laptop.carrier.find("codex@shed") == "codex@shed"
    world.hosts.pop("box")
    await world.rest()
    assert await world.tasks_of(laptop, TaskState.COMPLETED) == 1
    await box.store.close()
    assert shed.carrier.find("codex@box") == "codex@box", "it has not looked yet"


async def test_what_a_removed_host_has_sent_is_not_begun_and_owes_nothing(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    await met(laptop, box)
    await box.send("codex@laptop", "hello", key="1")
    while await box.turn() or await laptop.turn(answers=False):
        pass
    removed(world, "box")
    await looked(world, laptop)
    assert await world.tasks_of(laptop, TaskState.CANCELED) == 1
    await laptop.removed.look()
    assert await laptop.table.open_rows() == []


async def test_a_host_that_is_invited_again_keeps_what_is_under_way_to_it(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    await met(laptop, box)
    await laptop.send("codex@box", "hello", key="1")
    await laptop.turn()
    world.trust.revoked.add("box")  # its old key; the record is there until the host is there again
    await looked(world, laptop)
    assert laptop.carrier.find("codex@box") == "codex@box"
    assert await world.tasks_of(laptop, TaskState.SUBMITTED) == 1
    world.trust.revoked.clear()
    await world.rest()
    assert await world.tasks_of(box, TaskState.COMPLETED) == 1


async def test_a_removed_host_that_joins_again_is_known_by_its_new_certificate(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    await met(laptop, box)
    removed(world, "box")
    await looked(world, laptop)
    assert laptop.carrier.find("codex@box") is None
    world.trust.revoked.clear()
    token = f"box|{KeyPair.generate('user').public}"
    await box.wire.say(record("box"), written(HostRecord(v=1, host="box", jwt=token, boot="2", n=1)))
    assert await laptop.peers.learn("box", token)
    assert laptop.carrier.find("codex@box") == "codex@box"
    await looked(world, laptop)
    assert laptop.carrier.find("codex@box") == "codex@box"


async def test_what_a_host_says_that_joined_again_waits_for_its_certificate(world: World) -> None:
    """With the key that counts no more it says nothing."""
    laptop, box = await world.host("laptop"), await world.host("box")
    await met(laptop, box)
    removed(world, "box")
    said = box.outgoing.sign("syn.to.laptop.box.upd", "an-id", b"{}")
    with pytest.raises(BadEnvelope, match="revoked"):
        await laptop.peers.check(said, "box", laptop.wire)
    pair = KeyPair.generate("user")
    later = signed(said, world.trust.fleet, pair)
    with pytest.raises(NotMet):
        await laptop.peers.check(later, "box", laptop.wire)
    world.trust.revoked.clear()
    token = f"box|{pair.public}"
    await box.wire.say(record("box"), written(HostRecord(v=1, host="box", jwt=token, boot="2", n=1)))
    await laptop.peers.check(later, "box", laptop.wire)
