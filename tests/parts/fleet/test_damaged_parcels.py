"""Parcels that are damaged on a disk, or by a member that lies: each ends with a verdict."""

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from synapsed.model.task import Artifact, TaskState, TextPart
from synapsed_fleet.names import MailKind, MailSubject, chunk
from synapsed_fleet.parcel import CHUNK, ParcelRef
from synapsed_fleet.parcel_fetching import Arrival, Fetching
from tests.parts.fleet.test_parcels import LONG, ended, kept_at, ref_of
from tests.parts.fleet.world import Host, World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    laptop, box = await made.host("laptop"), await made.host("box")
    await box.peers.learn("laptop", f"laptop|{laptop.pair.public}")
    await laptop.peers.learn("box", f"box|{box.pair.public}")
    yield made
    await made.close()


def damage(world: World, host: str, at: int = CHUNK + 5) -> None:
    """One byte of what is kept to be sent is another, in its second chunk."""
    (path,) = [path for path in world.folder.glob(f"{host}.files/out/*") if path.suffix != ".json"]
    with path.open("r+b") as file:
        file.seek(at)
        old = file.read(1)
        file.seek(at)
        file.write(bytes([old[0] ^ 1]))


def coming(world: World, host: str) -> list[Path]:
    return list(world.folder.glob(f"{host}.files/in/*/*"))


async def test_a_message_that_is_damaged_here_is_made_again(world: World) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    task = await laptop.send("codex@box", LONG, key="1")
    await laptop.outgoing.publish()
    damage(world, "laptop")
    found = await ended(world, laptop, task)
    assert found.status is TaskState.COMPLETED
    (there,) = await box.tasks()
    assert there.message.text == LONG


async def test_a_file_that_is_damaged_here_fails_its_task_and_leaves_nothing_there(world: World) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    given = await laptop.give("film.mp4", os.urandom(3 * CHUNK))
    damage(world, "laptop")
    task = await laptop.send("codex@box", "see", key="1", files=[given])
    found = await ended(world, laptop, task)
    assert found.status is TaskState.FAILED
    assert found.error is not None
    assert found.error.code == "UNDELIVERED"
    assert "film.mp4" in found.error.message
    assert await box.tasks() == []
    await world.rest(audits=1)
    assert coming(world, "box") == [], "what had come of it is removed"
    assert box.fetching.under_way() == []


async def test_an_answer_whose_file_is_damaged_comes_without_it(world: World) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    drawing = await box.give("drawing.png", os.urandom(2 * CHUNK))
    damage(world, "box")
    box.mailbox.blocks = [Artifact(artifact_id="drawing", type="file", parts=[drawing])]
    found = await ended(world, laptop, await laptop.send("codex@box", "draw", key="1"))
    assert found.status is TaskState.COMPLETED
    (block,) = [artifact for artifact in found.artifacts if artifact.is_block]
    assert block.parts == [TextPart(text="(drawing.png: box has it no more)")]


def named(laptop: Host, ref: ParcelRef) -> None:
    """What a member says whose chunks hold nothing true: a message with a file."""
    parts = [{"text": "see"}, {"url": f"syn-file:{ref.id}"}]
    body = {
        "tenant": "codex",
        "message": {"messageId": "1", "role": "ROLE_USER", "parts": parts},
        "files": [ref.told()],
    }
    subject = str(MailSubject("box", "laptop", MailKind.MESSAGE))
    said = laptop.outgoing.sign(subject, "task-0001", json.dumps(body).encode())
    laptop.world.broker.put(said, first=False)


async def test_chunks_that_are_none_though_they_are_sent_again_are_refused(world: World) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    ref = ref_of(os.urandom(2 * CHUNK))
    named(laptop, ref)
    refused = None
    while refused is None:
        await laptop.wire.say(chunk("box", "laptop", ref.id, 0), b"x" * CHUNK)
        world.broker.forget_who_has_what()
        await box.turn()
        await asyncio.sleep(0.01)  # what is fetched is fetched beside
        refused = await box.table.taken("laptop", "task-0001")
    assert "is not the one that it names" in (refused.refused or "")
    assert await box.tasks() == []
    assert coming(world, "box") == []
    assert box.fetching.under_way() == []


async def test_a_file_that_another_message_waits_for_stays(world: World) -> None:
    """One message is refused, and the other is not: they name the same."""
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    content = os.urandom(3 * CHUNK)
    given = await laptop.give("film.mp4", content)
    wrong = await laptop.send("nobody@box", "see", key="1", files=[given])
    right = await laptop.send("codex@box", "see", key="2", files=[given])
    assert (await ended(world, laptop, wrong)).status is TaskState.REJECTED
    assert (await ended(world, laptop, right)).status is TaskState.COMPLETED
    (task,) = await box.tasks()
    assert kept_at(world, "box", task.message.parts[1]) == content


async def test_why_a_receiver_cannot_keep_it_is_told_to_its_sender_and_it_goes_on_after(world: World) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    content = os.urandom(3 * CHUNK)
    given = await laptop.give("film.mp4", content)
    folder = world.folder / "box.files" / "in" / "laptop"
    folder.parent.mkdir(parents=True)
    folder.write_bytes(b"")  # nothing can be kept below it
    task = await laptop.send("codex@box", "see", key="1", files=[given])
    (parcel,) = laptop.parcels.kept()
    while not parcel.legs or laptop.parcels.why(parcel, parcel.legs[0]) is None:
        world.broker.forget_who_has_what()
        await laptop.turn()
        await box.turn()
        await asyncio.sleep(0.01)  # what is fetched is fetched beside
    why = laptop.parcels.why(parcel, parcel.legs[0])
    assert why is not None
    assert "cannot be written there" in why
    assert str(world.folder) not in why, "another host is told no path of this one"
    (arrival,) = box.fetching.under_way()
    assert arrival.why is not None
    folder.unlink()
    assert (await ended(world, laptop, task)).status is TaskState.COMPLETED
    (there,) = await box.tasks()
    assert kept_at(world, "box", there.message.parts[1]) == content
    assert box.fetching.under_way() == []


async def test_a_file_that_is_being_opened_is_closed_by_whoever_ends_it(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, may_open, closed = asyncio.Event(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(*_: object, **__: object) -> object:
        loop.call_soon_threadsafe(opening.set)
        may_open.wait(60.0)
        return SimpleNamespace(close=lambda: loop.call_soon_threadsafe(closed.set))

    async def say(_host: str, _what: object) -> None:
        pytest.fail("nothing has come")

    fetching = Fetching(broker=world.broker, clock=world.clock, folder=tmp_path / "in", say=say)
    monkeypatch.setattr(fetching._spool, "coming", slow)
    arrival = Arrival("laptop", ref_of(b"content"), "named", sealed=False, since=0.0)
    fetched = asyncio.create_task(fetching._fetch(arrival, "box"))
    await opening.wait()
    fetched.cancel()
    may_open.set()
    with pytest.raises(asyncio.CancelledError):
        await fetched
    assert closed.is_set()
