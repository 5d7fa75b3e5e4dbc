"""A real broker: two commands from nothing, who is removed, and every way of being somebody else."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import nats
import nats.errors
import pytest
from nats.aio.client import Client

from synapsed_fleet import tls
from synapsed_fleet.dial import connect, options
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.streams import STREAMS
from synapsed_fleet.trust import NotTrusted
from tests.parts.fleet.brokers import FleetHome, Refused, fleet, needs_broker, until
from tests.support.daemon import eventually

pytestmark = [needs_broker, pytest.mark.night, pytest.mark.system, pytest.mark.timeout(600)]
"""A test is up to ten commands, each a process with a bound of its own (`FleetHome.do`), which says which one hangs."""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetHome]:
    with fleet(tmp_path_factory.mktemp("fleet")) as made:
        yield made


@pytest.fixture(scope="module")
def laptop(box: FleetHome, tmp_path_factory: pytest.TempPathFactory) -> FleetHome:
    return box.joined(tmp_path_factory.mktemp("laptop"), "laptop")


@pytest.fixture(scope="module")
def rogue(box: FleetHome, tmp_path_factory: pytest.TempPathFactory) -> FleetHome:
    """A member that tries everything."""
    return box.joined(tmp_path_factory.mktemp("rogue"), "rogue")


def test_two_commands_from_nothing(box: FleetHome, laptop: FleetHome) -> None:
    told = box.do("status")
    assert told["broker"]["healthy"]
    assert [host["name"] for host in told["hosts"]][:2] == ["box", "laptop"]
    assert [stream["name"] for stream in told["streams"]] == [
        "SYN_IN",
        "SYN_WORK",
        "SYN_CLAIM",
        "SYN_EV",
        "SYN_FILES",
        "KV_SYN_HOSTS",
    ]
    mine = laptop.do("status")
    assert mine["member"]["name"] == "laptop"
    assert (mine["admin"], mine["broker"], mine["hosts"]) == (False, None, None)


def test_what_is_secret_is_its_owners_alone(box: FleetHome, laptop: FleetHome) -> None:
    for home in (box, laptop):
        files = [path for path in home.paths.state.rglob("*") if path.is_file()]
        assert files
        assert {path.stat().st_mode & 0o077 for path in files} == {0}
    seeds = {path.read_text().strip() for path in (box.home.keyring.folder).glob("*.seed")}
    seeds |= {home.home.identity().pair.seed for home in (box, laptop)}
    logs = (box.folder / "broker.log").read_text() + (box.home.broker / "log" / "nats-server.log").read_text()
    logs += (box.home.broker / "nats.conf").read_text() + json.dumps(box.do("status"))
    assert not [seed for seed in seeds if seed in logs]
    assert "-----BEGIN" not in logs
    commands = [_command(pid) for pid in (box.broker_pid, box.server_pid)]
    assert not [seed for seed in seeds for command in commands if seed in command]


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text() + Path(f"/proc/{pid}/environ").read_text()


def test_doing_it_again_changes_nothing(box: FleetHome, laptop: FleetHome) -> None:
    before = box.do("status")["member"]
    assert box.do("create", name="other")["again"] is True
    with pytest.raises(Refused, match=r"the broker here listens at .*set 'listen' under"):
        box.do("create", name="box", listen="127.0.0.1:1")
    assert box.do("settle")["done"] == []
    assert box.do("status")["member"] == before
    with pytest.raises(Refused, match="this host is laptop in a fleet already"):
        laptop.do("create", name="laptop")
    with pytest.raises(Refused, match="this host is laptop in a fleet already"):
        laptop.do("join", line=box.do("invite", name="third")["line"])


def test_a_broker_that_has_moved_is_named_by_invitations_from_then_on(tmp_path: Path) -> None:
    with fleet(tmp_path, addresses=["192.0.2.1"]) as box:
        assert box.do("status")["urls"] == [f"tls://192.0.2.1:{box.port}"]
        with pytest.raises(Refused, match="no address where a host can be reached"):
            box.do("create", name="box", addresses=["a b"])
        assert box.do("create", name="box", addresses=["127.0.0.1", "::1"])["urls"] == [
            box.url,
            f"tls://[::1]:{box.port}",
        ]
        assert box.do("create", name="box", addresses=["127.0.0.1"])["again"] is True
        assert box.do("create", name="box")["urls"] == [box.url], "nothing said, nothing changed"
        assert box.do("invite", name="laptop")["urls"] == [box.url]
        laptop = box.joined(tmp_path / "laptop", "laptop")
        assert laptop.do("status")["member"]["urls"] == [box.url]


def test_an_invitation_is_good_once(box: FleetHome, tmp_path: Path) -> None:
    line = box.do("invite", name="once")["line"]
    FleetHome(tmp_path / "first").do("join", line=line)
    second = FleetHome(tmp_path / "second")
    with pytest.raises(Refused, match="used already, by another key"):
        second.do("join", line=line)
    assert not second.home.is_member()
    assert not second.home.config_file.exists()
    with pytest.raises(Refused, match="a member already"):
        box.do("invite", name="once")


def test_a_host_that_lost_its_key_gets_another_and_the_old_one_ends(box: FleetHome, tmp_path: Path) -> None:
    old = box.joined(tmp_path / "old", "phoenix")
    new = FleetHome(tmp_path / "new")
    new.do("join", line=box.do("invite", name="phoenix", again=True)["line"])

    async def both() -> None:
        fresh = await new.connect([box.url])
        await fresh.close()
        with pytest.raises(nats.errors.Error):
            await old.connect([box.url])

    asyncio.run(both())


async def test_a_host_that_is_removed_ends_at_once(box: FleetHome, tmp_path: Path) -> None:
    gone = await asyncio.to_thread(box.joined, tmp_path / "gone", "gone")
    ended: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def closed() -> None:
        if not ended.done():
            ended.set_result(time.monotonic())

    client = await gone.connect([box.url], disconnected_cb=closed)
    trust = box.home.identity().trust
    began = time.monotonic()
    assert (await asyncio.to_thread(box.do, "remove", name="gone"))["told"]
    took = await asyncio.wait_for(ended, 30) - began
    print(f"removed and cut off after {took:.2f} s, with the start of the verb")
    with contextlib.suppress(nats.errors.Error):
        await client.close()
    with pytest.raises(nats.errors.Error):
        await gone.connect([box.url])
    admin = await box.connect_admin()
    newest = await _hosts_record(admin, "_fleet")
    await admin.close()
    with pytest.raises(NotTrusted, match="revoked"):
        trust.renewed(newest.decode()).host(gone.home.identity().token, now=time.time())
    with pytest.raises(Refused, match="no member"):
        await asyncio.to_thread(box.do, "remove", name="gone")


@pytest.mark.fleet
async def test_who_was_removed_while_the_broker_was_down_does_not_come_back(tmp_path: Path) -> None:
    with fleet(tmp_path) as box:
        gone = await asyncio.to_thread(box.joined, tmp_path / "gone", "gone")
        box.kill()
        told = await asyncio.to_thread(box.do, "remove", name="gone")
        assert told["told"] is False
        assert "no broker at" in told["reason"]
        await asyncio.to_thread(box.up)
        with pytest.raises(nats.errors.Error):
            await gone.connect([box.url])
        # Its mail's consumer goes when the broker is reached again.
        own = await box.connect()
        await own.close()


async def _hosts_record(client: Client, key: str) -> bytes:
    answer = await client.request(f"$JS.API.DIRECT.GET.KV_SYN_HOSTS.$KV.SYN_HOSTS.{key}", b"", timeout=5)
    return answer.data


# --- the forging table: a member tries everything ---


@pytest.fixture
async def forger(box: FleetHome, rogue: FleetHome, laptop: FleetHome) -> AsyncIterator[Client]:
    client = await rogue.connect([box.url])
    yield client
    with contextlib.suppress(nats.errors.Error):
        await client.close()


async def said_no(client: Client, subject: str, body: bytes = b"", **more: Any) -> bool:
    """Whether the broker refuses the subject: nobody is asked, and an error says so."""
    heard: asyncio.Queue[Exception] = asyncio.Queue()
    client._error_cb = heard.put  # type: ignore[assignment]
    await client.publish(subject, body, **more)
    await client.flush()
    with contextlib.suppress(TimeoutError):
        error = await asyncio.wait_for(heard.get(), 0.5)
        return "permissions violation" in str(error).lower()
    return False


FORGED = [
    "syn.to.laptop.box.msg",
    "syn.to.laptop.box.rcpt",
    "syn.to.rogue.laptop.msg",
    "syn.work.codex.laptop",
    "syn.ev.laptop.ann.taskCompleted",
    "syn.say.box.laptop",
    "$KV.SYN_HOSTS.laptop",
    "$KV.SYN_HOSTS._fleet",
    "$KV.SYN_HOSTS.rogue.x",
    "syn.adm.renew.laptop",
    "syn.adm.classes.laptop",
    "syn.adm.join.laptop",
    "$JS.API.CONSUMER.MSG.NEXT.SYN_IN.laptop",
    "$JS.API.CONSUMER.INFO.SYN_IN.laptop",
    "$JS.ACK.SYN_IN.laptop.1.1.1.1700000000000000000.0",
    "$JS.API.STREAM.MSG.GET.SYN_IN",
    "$JS.API.DIRECT.GET.SYN_IN",
    "$JS.API.DIRECT.GET.SYN_IN.syn.to.laptop.box.msg",
    "$JS.API.STREAM.PURGE.SYN_IN",
    "$JS.API.STREAM.PURGE.KV_SYN_HOSTS",
    "$JS.API.STREAM.DELETE.SYN_IN",
    "$JS.API.STREAM.UPDATE.SYN_IN",
    "$JS.API.STREAM.CREATE.OTHER",
    "$JS.API.STREAM.MSG.DELETE.SYN_IN",
    "$JS.API.STREAM.LIST",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.SNAPSHOT.SYN_IN",
    "$JS.API.STREAM.RESTORE.SYN_IN",
    "$JS.API.STREAM.PEER.REMOVE.SYN_IN",
    "$JS.API.STREAM.LEADER.STEPDOWN.SYN_IN",
    "$JS.API.CONSUMER.CREATE.SYN_IN",
    "$JS.API.CONSUMER.CREATE.SYN_IN.mine.syn.to.laptop.>",
    "$JS.API.CONSUMER.DURABLE.CREATE.SYN_IN.mine",
    "$JS.API.CONSUMER.DELETE.SYN_IN.laptop",
    "$JS.API.CONSUMER.PAUSE.SYN_IN.laptop",
    "$JS.API.CONSUMER.RESET.SYN_IN.laptop",
    "$JS.API.CONSUMER.LIST.SYN_IN",
    "$JS.API.CONSUMER.NAMES.SYN_IN",
    "$JS.API.INFO",
    "$JS.API.META.LEADER.STEPDOWN",
    "$SYS.REQ.CLAIMS.UPDATE",
    "$SYS.REQ.SERVER.PING",
    "syn.file.box.laptop.abcd.0",
    "syn.file.rogue.laptop.abcd.0",
    "$JS.API.DIRECT.GET.SYN_FILES",
    "$JS.API.DIRECT.GET.SYN_FILES.syn.file.laptop.box.abcd.0",
    "$JS.API.STREAM.PURGE.SYN_FILES",
    "_INBOX_laptop.x",
    "_INBOX__admin.x",
    "_JOIN_laptop.x",
    "_R_.x",
]


@pytest.mark.parametrize("subject", FORGED)
async def test_a_member_is_refused(forger: Client, subject: str) -> None:
    assert await said_no(forger, subject, b"{}", reply="_INBOX_rogue.x"), subject


@pytest.mark.parametrize(
    "subject",
    [
        ">",
        "syn.>",
        "syn.to.>",
        "syn.to.rogue.>",
        "_INBOX_laptop.>",
        "*.>",
        "syn.say.laptop.>",
        "$SYS.>",
        "$JS.>",
        "$KV.>",
        "syn.adm.>",
        "_JOIN_rogue.>",
        "syn.say.*.>",
        "$JS.ACK.>",
    ],
)
async def test_a_member_listens_to_nobody_else(forger: Client, subject: str) -> None:
    heard: asyncio.Queue[Exception] = asyncio.Queue()
    forger._error_cb = heard.put  # type: ignore[assignment]
    await forger.subscribe(subject, cb=_nothing)
    await forger.flush()
    error = await asyncio.wait_for(heard.get(), 10)
    assert "permissions violation" in str(error).lower()


async def _nothing(_message: object) -> None:
    raise AssertionError("nothing was to be heard")


async def test_what_is_its_own_right_is_given(box: FleetHome, forger: Client) -> None:
    """The refusals above mean something."""
    for subject in ("syn.to.laptop.rogue.msg", "$KV.SYN_HOSTS.rogue"):
        answer = json.loads((await forger.request(subject, b"x", timeout=10)).data)
        assert answer["seq"] > 0, subject
    info = await forger.request("$JS.API.CONSUMER.INFO.SYN_IN.rogue", b"", timeout=10)
    assert json.loads(info.data)["config"]["ack_policy"] == "explicit"
    classes = await forger.request("syn.adm.classes.rogue", json.dumps({"classes": ["codex", "codex-hi"]}).encode())
    assert json.loads(classes.data) == {"ok": True}
    assert json.loads((await forger.request("$JS.API.CONSUMER.INFO.SYN_WORK.codex-hi", b"")).data)["name"] == "codex-hi"


async def test_a_chunk_of_a_file_is_kept_until_it_is_released(box: FleetHome, forger: Client) -> None:
    """Whoever has put it there replaces it by one that counts for a second; nobody else does, and nothing is emptied by
    a header."""
    subject = "syn.file.rogue.rogue.abcd.0"
    read = f"$JS.API.DIRECT.GET.SYN_FILES.{subject}"
    assert json.loads((await forger.request(subject, b"sealed" * 1000, timeout=10)).data)["seq"] > 0
    assert (await forger.request(read, b"", timeout=10)).data == b"sealed" * 1000
    refused = await forger.request(subject, b"x", headers={"Nats-Rollup": "all"}, timeout=10)
    assert "error" in json.loads(refused.data)
    told = json.loads((await forger.request(subject, b"", headers={"Nats-TTL": "1s"}, timeout=10)).data)
    assert "error" not in told
    assert (await forger.request(read, b"", timeout=10)).data == b""
    facts = "$JS.API.STREAM.INFO.SYN_FILES"
    deadline = time.monotonic() + 20
    while json.loads((await forger.request(facts, b"", timeout=10)).data)["state"]["messages"]:
        assert time.monotonic() < deadline, "what is released goes"
        await asyncio.sleep(0.1)


async def test_a_header_erases_nothing(box: FleetHome, laptop: FleetHome, forger: Client) -> None:
    """`Nats-Rollup: all` once erased every host's record; here it is refused, and so are its kin."""
    admin = await box.connect_admin()
    await admin.request("$KV.SYN_HOSTS.laptop", b"here", timeout=10)
    for headers in (
        {"Nats-Rollup": "all"},
        {"Nats-Rollup": "sub"},
        {"Nats-TTL": "1s"},
        {"Nats-Schedule": "@at 2099-01-01T00:00:00Z", "Nats-Schedule-Target": "$KV.SYN_HOSTS.laptop"},
    ):
        answer = json.loads((await forger.request("$KV.SYN_HOSTS.rogue", b"x", headers=headers, timeout=10)).data)
        assert "error" in answer, headers
    assert await _hosts_record(admin, "laptop") == b"here"
    await admin.close()


async def test_a_reply_of_the_brokers_own_is_unsigned(box: FleetHome, laptop: FleetHome, forger: Client) -> None:
    """A member may have the broker's own answer delivered as if another had sent it: that is why receivers ask for a
    signature. What arrives is the broker's JSON, and has no signature."""
    admin = await box.connect_admin()
    before = json.loads((await admin.request("$JS.API.STREAM.INFO.SYN_IN", b"")).data)["state"]["last_seq"]
    await forger.publish("syn.to.box.rogue.msg", b"x", reply="syn.to.laptop.box.msg")
    await forger.flush()

    async def arrived() -> bool:
        told = json.loads((await admin.request("$JS.API.STREAM.INFO.SYN_IN", b"")).data)
        return bool(told["state"]["last_seq"] > before)

    deadline = time.monotonic() + 10
    while not await arrived() and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    got = await admin.request(
        "$JS.API.STREAM.MSG.GET.SYN_IN", json.dumps({"last_by_subj": "syn.to.laptop.box.msg"}).encode(), timeout=10
    )
    message = json.loads(got.data).get("message")
    if message is not None:
        assert "hdrs" not in message  # no Syn-Sig
    await admin.close()


async def test_who_is_no_member_does_not_come_in(box: FleetHome, rogue: FleetHome, tmp_path: Path) -> None:
    ring, pair = box.home.keyring, KeyPair.generate("user")
    now = time.time()
    mine = rogue.home.identity()
    other = FleetHome(tmp_path / "elsewhere")
    other.do("create", name="box", listen="127.0.0.1:1")
    foreign = other.home.keyring.host_token("laptop", pair.public, issued=now, expires=now + 60)
    late = ring.host_token("laptop", pair.public, issued=now - 60, expires=now - 1)
    cases = {
        "another fleet's token": (foreign, pair),
        "a token that counts no more": (late, pair),
        "another's token without its key": (box.home.identity().token, mine.pair),
    }
    for what, (token, key) in cases.items():
        asked = options([box.url], token=token, pair=key, ca=mine.ca, inbox="_INBOX_laptop")
        with pytest.raises(nats.errors.Error):
            await connect(**asked, allow_reconnect=False)
        print(f"refused: {what}")


async def test_a_man_in_the_middle_gets_no_word_in_the_clear(box: FleetHome, rogue: FleetHome) -> None:
    """A server that greets without TLS: nothing is sent to it, the token least of all."""
    said: list[bytes] = []

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.15.1","proto":1,"max_payload":1048576,"nonce":"abc"}\r\n')
        with contextlib.suppress(OSError, TimeoutError):
            await writer.drain()
            said.append(await asyncio.wait_for(reader.read(65536), 3))
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises((nats.errors.Error, OSError)):
        await rogue.connect([f"tls://127.0.0.1:{port}"], max_reconnect_attempts=1)
    server.close()
    assert said
    assert all(one[:1] == b"\x16" for one in said)  # a TLS record, the handshake
    assert not any(b"CONNECT" in one or b"jwt" in one for one in said)


# --- what happens to a broker ---


@pytest.mark.fleet
def test_both_processes_killed_and_it_goes_on_with_what_it_had(tmp_path: Path) -> None:
    with fleet(tmp_path) as box:

        async def say() -> int:
            client = await box.connect()
            answer = json.loads((await client.request("syn.to.box.box.msg", b"x", timeout=10)).data)
            await client.close()
            return int(answer["seq"])

        assert asyncio.run(say()) == 1
        box.kill()
        box.up()
        assert asyncio.run(say()) == 2


@pytest.mark.fleet
def test_a_server_that_dies_is_started_again(tmp_path: Path) -> None:
    with fleet(tmp_path) as box:
        first = box.server_pid
        os.kill(first, signal.SIGKILL)
        eventually(lambda: box.server_pid != first, "another server runs")
        box.healthy()


def test_a_store_that_was_lost_is_made_again(tmp_path: Path) -> None:
    with fleet(tmp_path) as box:
        laptop = box.joined(tmp_path / "laptop", "laptop")
        box.kill()
        shutil.rmtree(box.home.broker / "store")
        box.start()
        eventually(lambda: len(box.do("status")["streams"] or ()) == len(STREAMS), "its streams are there again")

        async def asked() -> dict[str, Any]:
            client = await laptop.connect([box.url])
            found = await client.request("$JS.API.CONSUMER.INFO.SYN_IN.laptop", b"", timeout=10)
            await client.close()
            told: dict[str, Any] = json.loads(found.data)
            return told

        until(lambda: asyncio.run(asked()).get("name") == "laptop", "its members' mail is there again")


async def test_what_somebody_changed_at_the_broker_is_mended(box: FleetHome) -> None:
    admin = await box.connect_admin()
    config = json.loads((await admin.request("$JS.API.STREAM.INFO.SYN_CLAIM", b"")).data)["config"]
    changed = {**config, "max_age": 600_000_000_000, "allow_direct": False}
    assert "error" not in json.loads(
        (await admin.request("$JS.API.STREAM.UPDATE.SYN_CLAIM", json.dumps(changed).encode())).data
    )
    told = await asyncio.to_thread(box.do, "repair")
    assert told["done"] == ["the stream SYN_CLAIM was corrected"]
    assert (await asyncio.to_thread(box.do, "repair"))["done"] == []
    await admin.close()


@pytest.mark.fleet
def test_one_broker_per_home(box: FleetHome) -> None:
    box_again = FleetHome(box.folder)
    box_again.start()
    assert box_again._broker is not None
    assert box_again._broker.wait(30) == 1
    assert "runs already" in (box.folder / "broker.log").read_text()


@pytest.mark.fleet
def test_leaving_is_the_end_of_it(tmp_path: Path) -> None:
    with fleet(tmp_path) as box:
        laptop = box.joined(tmp_path / "laptop", "laptop")
        with pytest.raises(Refused, match="laptop would be without their fleet"):
            box.do("leave")
        laptop.do("leave")
        assert not laptop.home.is_member()
        assert not laptop.home.config_file.exists()
        with pytest.raises(Refused, match="in no fleet"):
            laptop.do("leave")
        with pytest.raises(Refused, match="the broker still runs here"):
            box.do("leave", force=True)
        assert box.stop() == 0
        box.do("leave", force=True)
        assert not box.home.keyring.exists()
        assert not list(box.home.keyring.folder.glob("*.seed"))


@pytest.mark.fleet
def test_a_certificate_is_made_again_in_time(tmp_path: Path) -> None:
    from datetime import UTC, datetime, timedelta

    with fleet(tmp_path) as box:
        assert box.stop() == 0
        long_ago = datetime.now(UTC) - timedelta(days=tls.BROKER_DAYS * 0.6)
        old = tls.make_broker(box.home.keyring.authority, ["127.0.0.1", "box.lan"], now=long_ago)
        box.broker_folder.keep_certificate(old)
        box.up()
        now = box.broker_folder.text("cert.pem")
        assert tls.days_left(now, now=datetime.now(UTC)) > tls.BROKER_DAYS - 2
        assert "box.lan" in tls.names_in(now)
        assert box.stop() == 0
        torn = tls.Pem(now, tls.make_key()[0])  # whoever made it again was killed between its two files
        assert not tls.is_pair(torn)
        box.broker_folder.keep_certificate(torn)
        box.up()
        assert tls.is_pair(tls.Pem(box.broker_folder.text("cert.pem"), box.broker_folder.text("key.pem")))
