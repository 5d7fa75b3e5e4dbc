"""Messages and answers that are too large for one message of the broker's: whole, once, whatever is lost on the way."""

import asyncio
import hashlib
import json
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.errors import InvalidRequest
from synapsed.model.kept_file import KeptFile
from synapsed.model.task import Artifact, FileContent, FilePart, Task, TaskState
from synapsed_fleet import messages
from synapsed_fleet.envelope import BODY_MAX, BadEnvelope, Envelope
from synapsed_fleet.names import MailKind, MailSubject, chunk
from synapsed_fleet.parcel import CHUNK, Cipher, ParcelRef, Progress, files_of, id_of_body
from synapsed_fleet.parcel_fetching import document_of
from synapsed_fleet.parcel_spool import InSpool, OutSpool
from tests.parts.fleet.fakebroker import Killed
from tests.parts.fleet.world import Host, World

LONG = "0123456789abcdef" * (48 * 1024)
"""768 KiB: seven chunks with what is around it."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    await made.host("box")
    await made.host("laptop")
    yield made
    await made.close()


async def ended(world: World, host: Host, task: Task) -> Task:
    """Both hosts are worked until the task has ended there."""
    for _ in range(300):
        await world.rest(audits=1)
        found = await host.store.task(task.id)
        assert found is not None
        if found.terminal and await world.open_rows() == 0:
            return found
        await asyncio.sleep(0.01)  # what is fetched is fetched beside
    raise AssertionError(f"it does not end: {found.status.value}, open rows {await world.open_rows()}")


async def test_documents_are_written_and_read_in_threads(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a long message, and of a long answer, take seconds."""
    done_in: dict[str, set[int]] = {}

    def noted(module: Any, name: str) -> None:
        real = getattr(module, name)

        def called(*args: Any, **kwargs: Any) -> Any:
            done_in.setdefault(name, set()).add(threading.get_ident())
            return real(*args, **kwargs)

        monkeypatch.setattr(module, name, called)

    names = ["message_body", "read_message", "update_body", "read_update"]
    for name in names:
        noted(messages, name)
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    box.mailbox.answer = LONG
    found = await ended(world, laptop, await laptop.send("codex@box", LONG, key="1"))
    assert found.answer == LONG
    assert sorted(done_in) == sorted(names)
    assert threading.get_ident() not in set.union(*done_in.values())


@pytest.mark.parametrize(("size", "beside"), [(100, False), (BODY_MAX // 2, True)])
async def test_a_long_body_is_parsed_in_a_thread(size: int, beside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed_in: list[int] = []

    def noted(body: bytes) -> dict[str, Any]:
        parsed_in.append(threading.get_ident())
        return {"size": len(body)}

    monkeypatch.setattr("synapsed_fleet.envelope.read_object", noted)
    assert await document_of(Envelope(subject="s", id="i", body=b" " * size)) == {"size": size}
    assert (parsed_in != [threading.get_ident()]) is beside


async def test_a_long_message_and_a_long_answer_come_whole(world: World) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    await box.peers.learn("laptop", f"laptop|{laptop.pair.public}")
    await laptop.peers.learn("box", f"box|{box.pair.public}")
    box.mailbox.answer = LONG * 2
    task = await laptop.send("codex@box", LONG, key="1")
    found = await ended(world, laptop, task)
    assert found.status is TaskState.COMPLETED
    assert found.answer == LONG * 2
    assert not found.truncated
    (there,) = await box.tasks()
    assert there.message.text == LONG
    await world.rest(audits=1)
    assert world.broker.files == {}, "nothing is left at the broker"
    assert not [path for path in world.folder.glob("*.files/*/**/*") if path.is_file()], "nor on the disks"


async def test_what_the_broker_has_is_not_to_be_read_there(world: World) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    await laptop.peers.learn("box", f"box|{box.pair.public}")
    await laptop.send("codex@box", LONG, key="1")
    await laptop.outgoing.publish()
    while await laptop.parcels.step():
        pass
    assert len(world.broker.files) == 7
    assert not any(b"0123456789abcdef" in kept.body for kept in world.broker.files.values())


@pytest.mark.parametrize("killed", ["laptop", "box"])
async def test_it_comes_whole_and_once_whenever_a_daemon_is_killed(world: World, killed: str) -> None:
    """At each step of the daemon's in turn, from the one to the next."""
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    await box.peers.learn("laptop", f"laptop|{laptop.pair.public}")
    await laptop.peers.learn("box", f"box|{box.pair.public}")
    victim, at, sent = world.hosts[killed], 1, 0
    while victim.kills < 6:
        task = await laptop.send("codex@box", f"{sent} {LONG[: 3 * CHUNK]}", key=str(sent))
        sent += 1
        victim.fuse.at = victim.fuse.steps + at
        try:
            found = await ended(world, laptop, task)
            victim.fuse.at = None
        except Killed:
            await victim.kill()
            found = await ended(world, laptop, task)
        assert found.status is TaskState.COMPLETED
        at += 13
    assert len(await box.tasks()) == sent
    assert len({each.message.text for each in await box.tasks()}) == sent


async def test_what_the_broker_has_lost_is_put_there_again(world: World) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    await box.peers.learn("laptop", f"laptop|{laptop.pair.public}")
    await laptop.peers.learn("box", f"box|{box.pair.public}")
    task = await laptop.send("codex@box", LONG, key="1")
    await laptop.outgoing.publish()
    while await laptop.parcels.step():
        pass
    lost = sorted(world.broker.files)[2:5]
    for subject in lost:
        del world.broker.files[subject]
    found = await ended(world, laptop, task)
    assert found.status is TaskState.COMPLETED


async def test_what_was_kept_to_be_sent_is_made_again_when_it_is_gone(world: World) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    await box.peers.learn("laptop", f"laptop|{laptop.pair.public}")
    await laptop.peers.learn("box", f"box|{box.pair.public}")
    task = await laptop.send("codex@box", LONG, key="1")
    await laptop.outgoing.publish()
    for path in world.folder.glob("laptop.files/out/*"):
        path.unlink()
    await laptop.kill()
    found = await ended(world, laptop, task)
    assert found.status is TaskState.COMPLETED


async def test_a_member_that_promises_what_it_never_sends_holds_up_nobody_else(world: World) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    rogue = await world.host("rogue")
    await rogue.peers.learn("box", f"box|{box.pair.public}")
    await laptop.peers.learn("box", f"box|{box.pair.public}")
    for n in range(40):
        await rogue.send("codex@box", f"{n} {LONG}", key=str(n))
    await rogue.outgoing.publish()  # and no chunk
    task = await laptop.send("codex@box", LONG, key="1")
    await laptop.outgoing.publish()
    while await laptop.parcels.step():
        pass
    for _ in range(300):
        world.broker.forget_who_has_what()
        await box.turn()
        await laptop.turn()
        found = await laptop.store.task(task.id)
        if found is not None and found.terminal:
            break
        await asyncio.sleep(0.01)
    assert found is not None
    assert found.status is TaskState.COMPLETED


# --- files -----------------------------------------------------------------------------------------------------------


def kept_at(world: World, host: str, part: Any) -> bytes:
    kept = KeptFile.of(part.file.uri)
    assert kept is not None
    return (world.folder / f"{host}.files" / kept.path).read_bytes()


async def test_files_go_with_a_message_and_come_with_its_answer(world: World) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    await box.peers.learn("laptop", f"laptop|{laptop.pair.public}")
    await laptop.peers.learn("box", f"box|{box.pair.public}")
    contents = [os.urandom(3 * CHUNK + 7), b"", os.urandom(CHUNK)]
    given = [await laptop.give(f"file{n}", content) for n, content in enumerate(contents)]
    drawn = os.urandom(2 * CHUNK)
    box.mailbox.blocks = [Artifact(artifact_id="drawing", type="file", parts=[await box.give("drawing.png", drawn)])]
    found = await ended(world, laptop, await laptop.send("codex@box", "look at these", key="1", files=given))
    (there,) = await box.tasks()
    assert [kept_at(world, "box", part) for part in there.message.parts[1:]] == contents
    assert [part.metadata for part in there.message.parts[1:]] == [{"size": len(each)} for each in contents]
    (block,) = [artifact for artifact in found.artifacts if artifact.is_block]
    assert kept_at(world, "laptop", block.parts[0]) == drawn
    assert block.parts[0].file.name == "drawing.png"  # type: ignore[union-attr]


@pytest.mark.parametrize("killed", ["laptop", "box"])
async def test_a_file_comes_whole_whenever_a_daemon_is_killed(world: World, killed: str) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    await box.peers.learn("laptop", f"laptop|{laptop.pair.public}")
    await laptop.peers.learn("box", f"box|{box.pair.public}")
    victim, at, content = world.hosts[killed], 1, os.urandom(20 * CHUNK)
    while victim.kills < 4:
        given = await laptop.give("film.mp4", content)
        task = await laptop.send("codex@box", "see", key=str(at), files=[given])
        victim.fuse.at = victim.fuse.steps + at
        try:
            found = await ended(world, laptop, task)
            victim.fuse.at = None
        except Killed:
            await victim.kill()
            found = await ended(world, laptop, task)
        assert found.status is TaskState.COMPLETED
        at += 23
    for task in await box.tasks():
        assert kept_at(world, "box", task.message.parts[1]) == content


async def test_a_file_that_is_gone_here_fails_its_task_and_says_so(world: World) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    await box.peers.learn("laptop", f"laptop|{laptop.pair.public}")
    await laptop.peers.learn("box", f"box|{box.pair.public}")
    given = await laptop.give("film.mp4", os.urandom(3 * CHUNK))
    task = await laptop.send("codex@box", "see", key="1", files=[given])
    for path in world.folder.glob("laptop.files/out/*"):
        path.unlink()
    await laptop.kill()
    found = await ended(world, laptop, task)
    assert found.status is TaskState.FAILED
    assert found.error is not None
    assert (found.error.code, "not here any more" in found.error.message) == ("UNDELIVERED", True)
    assert await box.tasks() == []


async def test_a_file_that_was_not_given_here_is_refused(world: World) -> None:
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    await laptop.peers.learn("box", f"box|{box.pair.public}")
    for uri in ("syn-file:" + "ab" * 16, "syn-file:../../host.creds", "syn-file:box/" + "ab" * 16, "syn-file:"):
        with pytest.raises(InvalidRequest, match="file"):
            await laptop.send("codex@box", "see", key=uri, files=[FilePart(file=FileContent(name="x", uri=uri))])


async def test_a_member_that_names_a_file_which_it_does_not_send_is_refused(world: World) -> None:
    """Whatever stands in its address: nothing outside of what came from that host is named here."""
    laptop, box = world.hosts["laptop"], world.hosts["box"]
    await box.peers.learn("laptop", f"laptop|{laptop.pair.public}")
    for n, uri in enumerate(["syn-file:" + "ab" * 16, "syn-file:shed/" + "ab" * 16, "syn-file:../host.creds"]):
        body = {
            "tenant": "codex",
            "message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "a"}, {"url": uri}]},
        }
        subject = str(MailSubject("box", "laptop", MailKind.MESSAGE))
        said = laptop.outgoing.sign(subject, f"task-000{n}", json.dumps(body).encode())
        world.broker.put(said, first=False)
        await world.rest(audits=1)
        refused = await box.table.taken("laptop", f"task-000{n}")
        assert refused is not None
        assert "did not come with it" in (refused.refused or "")
    assert await box.tasks() == []


# --- chunks and disks ------------------------------------------------------------------------------------------------


def ref_of(content: bytes, **other: Any) -> ParcelRef:
    told = {"id": "ab" * 16, "key": bytes(32), "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return ParcelRef(**{**told, **other})


def test_a_chunk_counts_in_its_place_only() -> None:
    content = os.urandom(2 * CHUNK + 5)
    ref = ref_of(content)
    sealed = [Cipher(ref).seal(n, content[n * CHUNK : (n + 1) * CHUNK]) for n in range(ref.chunks)]
    cipher = Cipher(ref)
    assert [cipher.open(n, raw) for n, raw in enumerate(sealed)] == [content[:CHUNK], content[CHUNK:-5], content[-5:]]
    assert cipher.open(1, sealed[0]) is None, "another's place"
    assert Cipher(ref_of(content, id="cd" * 16)).open(0, sealed[0]) is None, "another's parcel"
    assert Cipher(ref_of(content, key=b"k" * 32)).open(0, sealed[0]) is None, "another's key"
    assert cipher.open(0, sealed[0][:-1] + b"x") is None
    assert cipher.open(0, b"") is None, "what was released"


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        {},
        {"id": "../../../etc/passwd"},
        {"id": "AB" * 16},
        {"size": -1},
        {"size": (1 << 30) + 1},
        {"size": True},
        {"size": 1.0},
        {"size": "7"},
        {"key": "!"},
        {"key": "AAAA"},
        {"sha256": "x"},
        {"sha256": None},
    ],
)
def test_a_reference_that_is_none_is_refused(told: Any) -> None:
    right = ref_of(b"hello").told()
    assert ParcelRef.read(right).told() == right
    with pytest.raises(BadEnvelope):
        ParcelRef.read({**right, **told} if isinstance(told, dict) and told else told)
    with pytest.raises(BadEnvelope):
        files_of({"files": [told] if not isinstance(told, dict) else [{**right, **told}] if told else 7})


@pytest.mark.parametrize("told", [{}, {"have": -1}, {"have": True}, {"parcel": "x"}, {"of": 7}, {"of": "a.b"}])
def test_progress_that_says_nothing_is_refused(told: dict[str, Any]) -> None:
    right = Progress("ab" * 16, "12345678", 7, missing=False).told()
    assert Progress.read(right).have == 7
    with pytest.raises(BadEnvelope):
        Progress.read({**right, **told} if told else {})


def test_the_same_body_is_the_same_parcel_for_one_host_only() -> None:
    assert id_of_body("box", "task-1234", b"x") == id_of_body("box", "task-1234", b"x")
    others = [("laptop", "task-1234", b"x"), ("box", "task-1234/1", b"x"), ("box", "task-1234", b"y")]
    assert len({id_of_body(*one) for one in [("box", "task-1234", b"x"), *others]}) == 4
    assert chunk("any:codex", "box", "ab", 3) == "syn.file._any.box.ab.3"


def test_what_has_come_is_gone_on_with_and_checked_as_a_whole(tmp_path: Path) -> None:
    content = os.urandom(3 * CHUNK + 1)
    ref = ref_of(content)
    sealed = [Cipher(ref).seal(n, content[n * CHUNK : (n + 1) * CHUNK]) for n in range(ref.chunks)]
    spool = InSpool(tmp_path)
    first = spool.coming("box", ref, sealed=False)
    assert first.add([sealed[0], sealed[1], sealed[3]]) == 2
    first.close()
    part = next(tmp_path.glob("box/*.part"))
    with part.open("ab") as file:
        file.write(b"half a chunk")
    again = spool.coming("box", ref, sealed=False)
    assert again.have == 2
    assert again.add(sealed[2:]) == 2
    assert again.end()
    again.close()
    whole = spool.path("box", ref.id)
    assert whole.read_bytes() == content
    assert whole.stat().st_mode & 0o777 == 0o600

    damaged = spool.coming("shed", ref, sealed=False)
    damaged.add(sealed)
    damaged.close()
    part = next(tmp_path.glob("shed/*.part"))
    with part.open("r+b") as file:
        file.write(b"power was lost")
    damaged = spool.coming("shed", ref, sealed=False)
    assert damaged.have == ref.chunks
    assert not damaged.end()
    assert damaged.have == 0
    damaged.add(sealed)
    assert damaged.end()
    damaged.close()


def test_an_upload_is_there_when_it_is_whole(tmp_path: Path) -> None:
    spool = OutSpool(tmp_path / "out")
    upload = spool.upload()
    upload.write(b"a" * CHUNK)
    assert spool.load() == [], "what a killed daemon has left is removed"
    upload.abandon()
    upload = spool.upload()
    upload.write(b"a" * CHUNK)
    upload.write(b"b")
    parcel = upload.end(name="notes.txt", at=1.0)
    (found,) = spool.load()
    assert found == parcel
    ref = ref_of(b"a" * CHUNK + b"b", id=parcel.id)
    assert Cipher(ref).open(1, spool.chunk(found, ref, 1)) == b"b"
    (tmp_path / "out" / parcel.id).write_bytes(b"a")
    with pytest.raises(FileNotFoundError):
        spool.chunk(found, ref, 0)
