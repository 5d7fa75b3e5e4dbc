"""The daemon is killed at every step of sending, taking, receipting and claiming: nothing is lost, and nothing is taken
twice. Then everything else that a broker may do to what it has."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from synapsed.errors import NotKnownYet, QueueFull
from synapsed.model.external import KEY as EXTERNAL
from synapsed.model.task import TaskState
from synapsed.store.store import SqliteStore
from synapsed.tasks import transitions
from synapsed_fleet import streams
from synapsed_fleet.envelope import encoded
from synapsed_fleet.fleet_rows import KEY, FleetOrigin
from synapsed_fleet.names import MailKind, MailSubject
from tests.parts.fleet.fakebroker import Kept, Killed
from tests.parts.fleet.world import ANSWER, Host, World
from tests.support.gated import first_of

STEPS_MAX = 400
"""More steps than any of these takes: a kill beyond the last one is no kill."""
EVERY = int(os.environ.get("FLEET_EVERY", "8"))
"""Every so manyth step is the one of a kill; `make test-fleet` takes each."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    yield made
    await made.close()


async def sent_once(host: Host, address: str) -> None:
    """A message under one key; where the host is killed over it, the next daemon is there."""
    try:
        await host.send(address, "hello", key="once")
    except Killed:
        await host.kill()


async def settle(world: World) -> None:
    """To rest, whoever is killed meanwhile (once: the next daemon has a fuse of its own)."""
    for _ in range(3):
        try:
            return await world.rest()
        except Killed:
            for each in world.hosts.values():
                if each.fuse.at is not None:
                    await each.kill()
    return await world.rest()


async def delivered(world: World, sender: Host, count: int) -> None:
    """Every message was taken once and answered, and nobody has anything open."""
    assert await world.tasks_of(sender, TaskState.COMPLETED) == count
    taken = 0
    for host in world.hosts.values():
        if host is not sender:
            taken += await world.tasks_of(host, TaskState.COMPLETED)
            assert await host.table.candidates() == []
    assert taken == count, "taken once each"
    assert await world.open_rows() == 0
    assert [await host.table.quarantined() for host in world.hosts.values()] == [[] for _ in world.hosts]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("who", ["laptop", "box"])
async def test_a_daemon_that_is_killed_at_any_step_loses_nothing_and_takes_nothing_twice(
    tmp_path: Path, who: str
) -> None:
    kills = 0
    for at in range(1, STEPS_MAX, EVERY):
        folder = tmp_path / str(at)
        folder.mkdir()
        world = World(folder)
        laptop, _ = await world.host("laptop"), await world.host("box")
        victim = world.hosts[who]
        victim.fuse.at = victim.fuse.steps + at
        await sent_once(laptop, "codex@box")
        await sent_once(laptop, "codex@box")
        await settle(world)
        await delivered(world, laptop, 1)
        killed = victim.kills
        kills += killed
        await world.close()
        if not killed:
            break
    else:
        pytest.fail("it never came to its end")
    assert kills > 15 // EVERY, "it was killed at each of its steps"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("who", first_of(["laptop", "box", "attic"]))
async def test_work_for_any_is_taken_once_whoever_is_killed_at_whatever_step(tmp_path: Path, who: str) -> None:
    kills = 0
    for at in range(1, STEPS_MAX, EVERY):
        folder = tmp_path / str(at)
        folder.mkdir()
        world = World(folder)
        world.works = {"box": ["codex"], "attic": ["codex"]}
        laptop = await world.host("laptop")
        await world.host("box")
        await world.host("attic")
        victim = world.hosts[who]
        victim.fuse.at = victim.fuse.steps + at
        await sent_once(laptop, "any:codex")
        await sent_once(laptop, "any:codex")
        world.broker.lose_acks = at % 3
        await settle(world)
        await delivered(world, laptop, 1)
        killed = victim.kills
        kills += killed
        await world.close()
        if not killed:
            break
    assert kills > 0


async def test_whatever_ack_or_receipt_is_lost_the_message_is_taken_once(world: World) -> None:
    laptop = await world.host("laptop")
    await world.host("box")
    for n in range(30):
        await laptop.send("codex@box", f"message {n}", key=str(n))
        world.broker.lose_acks = n % 4
        world.broker.lose_receipts = n % 3
        await world.rest()
    await delivered(world, laptop, 30)


async def test_one_that_is_lost_among_many_is_found_though_the_host_is_never_without_mail(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    shed = await world.host("shed")
    del world.hosts["shed"]  # it is away, and something that is older waits for it
    await laptop.peers.learn("shed", f"shed|{shed.pair.public}")
    await laptop.send("codex@shed", "older", key="older")
    await laptop.outgoing.publish()
    lost = await laptop.send("codex@box", "lost", key="lost")
    await laptop.outgoing.publish()
    del world.broker.streams[streams.IN].messages[1:]
    for n in range(4):
        world.clock.advance(20)
        await laptop.send("codex@box", f"later {n}", key=str(n))
        await laptop.turn()
        await box.turn()
        await laptop.turn()
        await laptop.send("codex@box", f"next {n}", key=f"next-{n}")
        await laptop.outgoing.publish()  # there is always one that waits
        again = await laptop.outgoing.audit()
        assert again == (1 if n == 2 else 0), "after 60 s"
    await world.rest()
    await shed.store.close()
    told = await laptop.store.task(lost.id)
    assert told is not None
    assert told.status is TaskState.COMPLETED


async def test_a_broker_whose_disk_is_lost_is_told_everything_again(world: World) -> None:
    laptop = await world.host("laptop")
    await world.host("box")
    for n in range(10):
        await laptop.send("codex@box", f"message {n}", key=str(n))
    await laptop.outgoing.publish()
    assert len(world.broker.streams[streams.IN].messages) == 10
    world.broker.wipe()
    laptop.outgoing.reconnected()
    assert await laptop.outgoing.audit() == 10
    await world.rest()
    await delivered(world, laptop, 10)


async def test_an_older_copy_of_its_disk_too(world: World) -> None:
    laptop = await world.host("laptop")
    await world.host("box")
    await laptop.send("codex@box", "before", key="before")
    await laptop.outgoing.publish()
    kept = [replace(each) for each in world.broker.streams[streams.IN].messages]
    for n in range(5):
        await laptop.send("codex@box", f"message {n}", key=str(n))
    await laptop.outgoing.publish()
    stream = world.broker.streams[streams.IN]
    stream.messages, stream.last = kept, len(kept)
    assert await laptop.outgoing.audit() == 6, "of what it may have, nobody knows"
    await world.rest()
    await delivered(world, laptop, 6)


@pytest.mark.parametrize("others", [3, 30])
async def test_an_older_copy_that_others_have_filled_again_is_found_without_waiting(world: World, others: int) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    for n in range(20):
        await laptop.send("codex@box", f"message {n}", key=str(n))
    await laptop.outgoing.publish()
    stream = world.broker.streams[streams.IN]
    stream.messages.clear()
    stream.seen.clear()
    stream.last = 0
    for _ in range(others):
        await box.outgoing.say("shed", MailKind.CONTROL, b"{}")
    laptop.outgoing.reconnected()
    await laptop.send("codex@box", "one more", key="more")
    while await laptop.outgoing.publish():
        pass
    there = len([each for each in stream.messages if each.subject == "syn.to.box.laptop.msg"])
    assert there == (21 if others < 20 else 1)
    await world.rest()  # with audits after a minute each
    await delivered(world, laptop, 21)


async def test_a_stream_that_expired_is_filled_again_after_a_minute(world: World) -> None:
    laptop = await world.host("laptop")
    await world.host("box")
    await laptop.send("codex@box", "hello", key="1")
    await laptop.outgoing.publish()
    world.broker.streams[streams.IN].messages.clear()
    assert await laptop.outgoing.audit() == 0
    world.clock.advance(61)
    assert await laptop.outgoing.audit() == 1
    await world.rest()
    await delivered(world, laptop, 1)


async def test_without_a_broker_messages_wait_and_go_when_it_is_there(world: World) -> None:
    laptop = await world.host("laptop")
    await world.host("box")
    world.broker.away = True
    for n in range(5):
        await laptop.send("codex@box", f"message {n}", key=str(n))
    await world.rest()
    assert await world.tasks_of(laptop, TaskState.SUBMITTED) == 5
    world.broker.away = False
    await world.rest()
    await delivered(world, laptop, 5)


async def test_an_agent_that_is_not_there_is_told_as_refused(world: World) -> None:
    laptop = await world.host("laptop")
    await world.host("box")
    task = await laptop.send("nobody@box", "hello", key="1")
    await world.rest()
    told = await laptop.store.task(task.id)
    assert told is not None
    assert told.error is not None
    assert (told.status, told.error.code) == (TaskState.REJECTED, "UNKNOWN_AGENT")
    assert await world.open_rows() == 0


async def test_what_is_canceled_before_it_comes_is_not_taken(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    world.broker.away = True
    task = await laptop.send("codex@box", "hello", key="1")
    canceled = await laptop.carrier.cancel(task)
    assert canceled.status is TaskState.CANCELED
    world.broker.away = False
    await world.rest()
    assert await world.tasks_of(box, TaskState.COMPLETED) == 0
    assert await world.open_rows() == 0


async def test_a_host_put_back_to_an_older_copy_says_that_it_does_not_know(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    task = await laptop.send("codex@box", "hello", key="1")
    await laptop.outgoing.publish()
    given = await box.wire.next(streams.IN, "box", wait=0)
    assert given is not None
    await box.incoming.take(given)
    await box.outgoing.receipts()
    receipt = await laptop.wire.next(streams.IN, "laptop", wait=0)
    assert receipt is not None
    await laptop.incoming.take(receipt)
    assert await world.open_rows() == 0
    await box.store.close()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{box.path}{suffix}").unlink(missing_ok=True)
    await box.start()
    question = encoded({"do": "tell", "tasks": [task.id]})
    await laptop.outgoing.say("box", MailKind.CONTROL, question)
    await world.rest()
    told = await laptop.store.task(task.id)
    assert told is not None
    assert told.error is not None
    assert told.error.code == "UNDELIVERED"
    assert told.metadata[EXTERNAL]["via"] == "fleet"


async def test_what_ended_while_the_fleet_was_not_installed_is_told_when_it_is_asked_for(world: World) -> None:
    """Nothing was written down of what the sender is owed."""
    laptop, box = await world.host("laptop"), await world.host("box")
    task = await laptop.send("codex@box", "hello", key="1")
    while await box.turn(answers=False) or await laptop.turn():
        pass
    await box.store.close()
    without = await SqliteStore.open(box.path, clock=world.clock)
    (taken,) = await without.open_tasks()
    commit = transitions.completed(taken, answer=ANSWER, exact=True, now=world.clock.wall())
    await without.commit(events=commit.events, tasks=[commit.task])
    await without.close()
    await box.start()
    await world.rest()
    waiting = await laptop.store.task(task.id)
    assert waiting is not None
    assert not waiting.terminal
    await laptop.outgoing.say("box", MailKind.CONTROL, encoded({"do": "tell", "tasks": [task.id]}))
    await world.rest()
    told = await laptop.store.task(task.id)
    assert told is not None
    assert told.status is TaskState.COMPLETED


async def test_an_update_tells_of_the_change_that_its_row_is_about(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row may be read from the database before its commit is shown to those who ask for tasks: what is said then
    under that row's number is the change, and not what was before, which the receipt would close for good."""
    laptop, box = await world.host("laptop"), await world.host("box")
    task = await laptop.send("codex@box", "hello", key="1")
    await laptop.outgoing.publish()
    given = await box.wire.next(streams.IN, "box", wait=0)
    assert given is not None
    await box.incoming.take(given)
    (waiting,) = await box.store.open_tasks()

    async def before(task_id: str) -> object:
        return waiting

    monkeypatch.setattr(box.store, "task", before)
    assert await box.mailbox.work()
    await box.outgoing.publish()
    monkeypatch.undo()
    await world.rest()
    told = await laptop.store.task(task.id)
    assert told is not None
    assert told.status is TaskState.COMPLETED


async def test_a_send_does_not_look_at_all_that_is_under_way(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    laptop = await world.host("laptop")
    await world.host("box")
    world.broker.away = True
    looked = 0
    count = laptop.table.counts

    async def counts() -> dict[str, dict[str, int]]:
        nonlocal looked
        looked += 1
        return await count()

    monkeypatch.setattr(laptop.table, "counts", counts)
    for n in range(20):
        await laptop.send("codex@box", "hello", key=str(n))
    assert looked == 1


async def test_what_two_hosts_call_the_same_are_two_things(world: World) -> None:
    """A task's id may be made of its sender's key, and scripts of two hosts may have the same keys."""
    attic, shed, box = await world.host("attic"), await world.host("shed"), await world.host("box")
    for each in (attic, shed):
        await each.send("codex@box", f"of {each.name}", key="nightly")
        await each.outgoing.publish()
    assert len(world.broker.streams[streams.IN].messages) == 2, "the broker takes neither for a copy of the other"
    await world.rest()
    assert await world.tasks_of(box, TaskState.COMPLETED) == 2
    world.works = {"box": ["codex"]}
    for each in (attic, shed):
        await each.send("any:codex", f"work of {each.name}", key="weekly")
    await world.rest()
    assert await world.tasks_of(box, TaskState.COMPLETED) == 4
    assert await world.open_rows() == 0


# --- what no member says ---------------------------------------------------------------------------------------------


def put(world: World, subject: str, headers: dict[str, str], body: bytes) -> None:
    stream = world.broker.streams[streams.IN]
    stream.last += 1
    stream.messages.append(Kept(subject, headers, body, stream.last))


async def forged(world: World, host: Host, count: int) -> None:
    """So many are in quarantine, nothing was done, and nothing is stuck."""
    await world.rest()
    assert len(await host.table.quarantined()) == count
    assert await host.store.open_tasks() == []
    assert world.broker.streams[streams.IN].messages == []


async def test_what_is_not_signed_by_whom_its_subject_says_is_put_aside(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    await world.host("attic")
    body = encoded({"tenant": "codex", "message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "rm"}]}})
    right = laptop.outgoing.sign("syn.to.box.laptop.msg", "task-0001", body)
    put(world, right.subject, {}, body)
    put(world, right.subject, {**right.headers(), "Syn-Sig": ""}, body)
    put(world, right.subject, right.headers(), body + b" ")
    put(world, "syn.to.box.attic.msg", right.headers(), body)
    put(world, right.subject, {**right.headers(), "Syn-Id": "task-0002"}, body)
    broker_said = b'{"stream":"SYN_IN","seq":7}'
    put(world, "syn.to.box.laptop.t", {}, broker_said)
    put(world, "syn.to.box.laptop.msg", {}, broker_said)
    await forged(world, box, 7)


async def test_what_was_said_to_another_host_is_nothing_here(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    said = laptop.outgoing.sign("syn.to.attic.laptop.msg", "task-0001", b"{}")
    put(world, "syn.to.box.laptop.msg", said.headers(), said.body)
    await forged(world, box, 1)


async def test_a_host_that_was_revoked_says_nothing_any_more(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    await laptop.send("codex@box", "hello", key="1")
    await laptop.outgoing.publish()
    world.trust.revoked.add("laptop")
    world.hosts.pop("laptop")
    await forged(world, box, 1)
    await laptop.store.close()


async def test_what_a_host_says_whose_token_has_ended_waits_until_it_has_another(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    task = await laptop.send("codex@box", "hello", key="1")
    await laptop.outgoing.publish()
    world.trust.ended.add("laptop")
    for _ in range(5):
        world.broker.forget_who_has_what()
        await box.turn()
    assert await box.store.open_tasks() == []
    assert await box.table.quarantined() == []
    world.trust.ended.clear()
    await world.rest()
    told = await laptop.store.task(task.id)
    assert told is not None
    assert told.status is TaskState.COMPLETED


async def test_what_is_said_again_is_not_done_again(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    await laptop.send("codex@box", "hello", key="1")
    await laptop.outgoing.publish()
    (said,) = [replace(each) for each in world.broker.streams[streams.IN].messages]
    await world.rest()
    for _ in range(5):
        put(world, said.subject, dict(said.headers), said.body)
    await world.rest()
    assert await world.tasks_of(box, TaskState.COMPLETED) == 1
    assert await box.table.quarantined() == []


async def test_only_the_host_that_has_a_task_says_what_becomes_of_it(world: World) -> None:
    laptop = await world.host("laptop")
    await world.host("box")
    attic = await world.host("attic")
    task = await laptop.send("codex@box", "hello", key="1")
    body = encoded({"task": {"id": "x", "status": {"state": "TASK_STATE_COMPLETED"}}})
    await attic.wire.publish(attic.outgoing.sign("syn.to.laptop.attic.upd", f"{task.id}/1", body))
    await attic.wire.publish(attic.outgoing.sign("syn.to.laptop.attic.rcpt", "receipt-1", encoded({"ids": [task.id]})))
    while (given := await laptop.wire.next(streams.IN, "laptop", wait=0)) is not None:
        await laptop.incoming.take(given)
    (aside,) = await laptop.table.quarantined()
    assert "does not have" in aside.reason
    told = await laptop.store.task(task.id)
    assert told is not None
    assert told.status is TaskState.SUBMITTED
    assert len(await laptop.table.open_rows()) == 1, "a receipt of another host closes nothing"
    await world.rest()
    told = await laptop.store.task(task.id)
    assert told is not None
    assert told.answer == ANSWER


async def test_a_later_version_is_refused_by_name(world: World) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    subject = str(MailSubject("box", "laptop", MailKind.MESSAGE))
    later = laptop.outgoing.sign(subject, "task-0001", b"{}")
    from synapsed_fleet.signing import signed

    later = signed(replace(later, version="3"), world.trust.fleet, laptop.pair)
    put(world, subject, {**later.headers(), "Syn-Enc": "x"}, later.body)
    await world.rest()
    refused = await box.table.taken("laptop", "task-0001")
    assert refused is not None
    assert "UNSUPPORTED" in (refused.refused or "")


async def test_an_agent_of_another_host_is_never_a_person_and_interrupts_nobody(world: World) -> None:
    from synapsed.errors import InvalidRequest
    from synapsed_fleet.messages import read_message

    def said(metadata: dict[str, object]) -> dict[str, object]:
        message = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "hi"}], "metadata": metadata}
        return {"tenant": "codex", "message": message}

    origin = FleetOrigin("laptop", "task-0001")
    own = {"fleet": {"src": "attic", "id": "x"}, "command": True, "in_reply_to": "x", "external": {"host": "attic"}}
    taken = read_message(said(own), origin, persons=frozenset()).request
    assert taken.metadata == {"sender": {"sender_id": "person@laptop", "verified": False, "tier": "external"}}, (
        "nothing of it is believed"
    )
    assert (taken.of_agent, taken.marks) == (True, {KEY: origin._asdict()})
    lying = read_message(said({"sender": {"sender_id": "codex@attic", "tier": "person"}}), origin, persons=frozenset())
    assert lying.request.metadata["sender"]["sender_id"] == "codex@laptop"
    person = read_message(said({}), origin, persons=frozenset({"laptop"})).request
    assert ("sender" in person.metadata, person.of_agent) == (False, False)
    with pytest.raises(InvalidRequest):
        read_message(said({"synapsed": {"priority": 5}}), origin, persons=frozenset())


async def test_a_host_that_takes_nothing_does_not_fill_the_disk_here(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synapsed_fleet.carrier.OPEN_MAX", 3)
    laptop = await world.host("laptop")
    await world.host("box")
    world.broker.away = True
    for n in range(3):
        await laptop.send("codex@box", "hello", key=str(n))
    with pytest.raises(QueueFull):
        await laptop.send("codex@box", "hello", key="one more")


async def test_a_host_that_joined_while_no_daemon_was_here_is_asked_for_again(world: World) -> None:
    laptop = await world.host("laptop")
    await world.host("box")
    laptop.carrier._met = lambda: False
    assert laptop.carrier.find("codex") is None
    with pytest.raises(NotKnownYet, match="no host 'box' is known here; which hosts the fleet has is read"):
        laptop.carrier.find("codex@box")
    laptop.peers.gone.add("box")
    assert laptop.carrier.find("codex@box") is None, "it was removed"
    laptop.peers.gone.clear()
    laptop.carrier._met = lambda: True
    assert laptop.carrier.find("codex@nowhere") is None


async def test_hosts_that_wait_for_a_full_mailbox_have_its_places_in_turn(world: World) -> None:
    laptop, attic, box = await world.host("laptop"), await world.host("attic"), await world.host("box")
    box.mailbox.room = 0
    for n in range(6):
        await laptop.send("codex@box", f"laptop {n}", key=f"{n}")
    await attic.send("codex@box", "attic", key="1")
    await world.rest(audits=0)
    for each in world.hosts.values():
        await each.turn(answers=False)
    assert await box.tasks() == []
    world.broker.forget_who_has_what()
    box.mailbox.room = 2
    await box.turn(answers=False)
    assert {task.metadata[KEY]["src"] for task in await box.tasks()} == {"laptop", "attic"}
    box.mailbox.room = None
    await world.rest()
    assert [await world.tasks_of(host, TaskState.COMPLETED) for host in (laptop, attic, box)] == [6, 1, 7]
