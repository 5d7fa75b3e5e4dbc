"""A broker that somebody else keeps: a fleet in an account of its own there, and what is refused before it is made."""

import asyncio
import base64
import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nats.errors
import pytest

from synapsed.errors import ConfigError, InvalidRequest
from synapsed_fleet import jwt, tls
from synapsed_fleet.broker_permissions import scopes
from synapsed_fleet.dial import connect, options
from synapsed_fleet.external_broker import GivenBroker, look
from synapsed_fleet.natsserver import find
from synapsed_fleet.nkey import KeyPair
from tests.parts.fleet.brokers import FleetHome, Refused, needs_broker
from tests.support.daemon import eventually
from tests.support.ports import free_port

pytestmark = [needs_broker, pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(400)]

GIB = 1 << 30


def signed(operator: KeyPair, pair: KeyPair, **claims: Any) -> str:
    """The token of an account of somebody's operator, with other claims than a fleet's own."""
    token = jwt.account(
        operator, public=pair.public, name="theirs", scopes=(), revoked={}, jetstream=True, now=time.time()
    )
    head, body, _ = token.split(".")
    told = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    told["nats"] |= {key: value for key, value in claims.items() if key != "limits"}
    told["nats"]["limits"] |= claims.get("limits", {})
    said = f"{head}.{base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip('=')}"
    return f"{said}.{base64.urlsafe_b64encode(operator.sign(said.encode())).decode().rstrip('=')}"


@dataclass
class Theirs:
    """A server with accounts, each by its name, as an operator of theirs has made them; and other keys of them."""

    port: int
    accounts: dict[str, KeyPair]
    signing: KeyPair
    scoped: KeyPair

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def admin(self, account: str) -> Any:
        pair, now = KeyPair.generate("user"), time.time()
        signer = self.accounts[account]
        token = jwt.full_user(signer, public=pair.public, name="owner", now=now, expires=now + 600)
        return await connect(
            **options([self.url], token=token, pair=pair, ca=None, inbox="_INBOX_owner"), allow_reconnect=False
        )


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    folder = tmp_path_factory.mktemp("theirs")
    operator, system = KeyPair.generate("operator"), KeyPair.generate("account")
    names = ("fleet", "signed", "other", "none", "small", "few")
    accounts = {name: KeyPair.generate("account") for name in names}
    signing, scoped = KeyPair.generate("account"), KeyPair.generate("account")
    claims: dict[str, dict[str, Any]] = {
        "signed": {
            "signing_keys": [signing.public, *jwt.scope_claims(scopes(host=scoped.public, join=system.public))],
            "limits": {"consumer": 50},
        },
        "none": {"limits": {"disk_storage": 0, "mem_storage": 0, "streams": 0, "consumer": 0}},
        "small": {"limits": {"disk_storage": 100 << 20}},
        "few": {"limits": {"streams": 3}},
    }
    made = Theirs(free_port(), accounts, signing, scoped)
    tokens = {pair.public: signed(operator, pair, **claims.get(name, {})) for name, pair in accounts.items()}
    tokens[system.public] = jwt.account(
        operator, public=system.public, name="system", scopes=(), revoked={}, jetstream=False, now=time.time()
    )
    config = {
        "listen": f"127.0.0.1:{made.port}",
        "operator": jwt.operator(operator, name="theirs", system_account=system.public, now=time.time()),
        "system_account": system.public,
        "resolver": "MEMORY",
        "resolver_preload": tokens,
        "jetstream": {"store_dir": str(folder / "store"), "max_file_store": 100 * GIB},
    }
    with serving(folder, config):
        eventually(lambda: asyncio.run(is_up(made)), "their server answers")
        yield made


@contextlib.contextmanager
def serving(folder: Path, config: dict[str, Any]) -> Iterator[None]:
    (folder / "nats.conf").write_text(json.dumps(config))
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([find().path, "--config", str(folder / "nats.conf")], stdout=log, stderr=log)
    try:
        yield
    finally:
        server.kill()
        server.wait()


async def is_up(made: Theirs) -> bool:
    with contextlib.suppress(OSError, nats.errors.Error, TimeoutError):
        client = await made.admin("fleet")
        await client.close()
        return True
    return False


def created(folder: Path, theirs: Theirs, account: str, **more: Any) -> FleetHome:
    home = FleetHome(folder)
    home.do("create", name="box", urls=[theirs.url], account_key=theirs.accounts[account].seed, **more)
    return home


async def may(home: FleetHome, url: str, subject: str) -> bool:
    """Whether the host is answered there."""
    client = await home.connect([url])
    try:
        await client.request(subject, b"{}", timeout=2)
    except nats.errors.NoRespondersError:
        return True
    except nats.errors.Error:
        return False
    else:
        return True
    finally:
        await client.close()


@pytest.mark.night
def test_a_whole_life_at_somebody_elses_broker(theirs: Theirs, tmp_path: Path) -> None:
    """With the longest name that a host may have: its rights stand in the token, and a connection's first line is
    bounded."""
    name = "a" * 31
    box = created(tmp_path / "box", theirs, "fleet", max_store="512MiB")
    box.start()
    try:
        box.do("settle")
        with pytest.raises(Refused, match=r"is the fleet \w+…'s"):
            created(tmp_path / "thief", theirs, "fleet")
        assert not (tmp_path / "thief" / "state" / "fleet" / "keys").exists()
        laptop = FleetHome(tmp_path / "laptop")
        laptop.do("join", line=box.do("invite", name=name)["line"])
        assert laptop.home.identity().given
        url = theirs.url
        assert asyncio.run(may(laptop, url, f"syn.to.box.{name}.msg"))
        assert asyncio.run(may(laptop, url, f"$JS.API.CONSUMER.INFO.SYN_IN.{name}"))
        assert not asyncio.run(may(laptop, url, "syn.to.box.box.msg"))
        assert not asyncio.run(may(laptop, url, "$JS.API.CONSUMER.INFO.SYN_IN.box"))
        told = box.do("status")
        assert told["given"]["account"] == theirs.accounts["fleet"].public
        assert (told["broker"], len(told["streams"]), len(told["hosts"])) == (None, 6, 2)
        found = {one["what"]: one["status"] for one in box.do("check")["found"]}
        assert found == dict.fromkeys(
            ("fleet", "fleet's broker", "somebody else's broker", "fleet's registrar", "fleet's streams"), "ok"
        )
        gone = box.do("remove", name=name)
        assert (gone["told"], gone["key"]) == (True, laptop.home.identity().pair.public)
        seeds = [theirs.accounts["fleet"].seed, box.home.identity().pair.seed]
        assert not [seed for seed in seeds if seed in (box.folder / "broker.log").read_text() + json.dumps(told)]
    finally:
        assert box.stop() == 0
    assert box.do("leave")["left"] is None
    assert not list(box.paths.state.rglob("*.seed"))
    assert asyncio.run(left(theirs)) == []


async def left(theirs: Theirs) -> list[str]:
    return list((await asked_of(theirs, "fleet", "STREAM.NAMES"))["streams"] or ())


async def asked_of(theirs: Theirs, account: str, subject: str) -> dict[str, Any]:
    admin = await theirs.admin(account)
    told: dict[str, Any] = json.loads((await admin.request(f"$JS.API.{subject}", b"")).data)
    await admin.close()
    return told


@pytest.mark.night
def test_a_signing_key_of_the_account_will_do_and_no_more_consumers_are_asked_for_than_it_may_have(
    theirs: Theirs, tmp_path: Path
) -> None:
    home, account = FleetHome(tmp_path / "box"), theirs.accounts["signed"].public
    home.do("create", name="box", urls=[theirs.url], account_key=theirs.signing.seed, account=account)
    assert len(home.do("settle")["done"]) == 7
    assert asyncio.run(may(home, theirs.url, "syn.to.box.box.msg"))
    assert asyncio.run(asked_of(theirs, "signed", "STREAM.INFO.SYN_IN"))["config"]["max_consumers"] == 50
    assert home.do("settle")["done"] == []


@pytest.mark.night
def test_what_cannot_be_a_fleets_is_refused_before_anything_is_made(theirs: Theirs, tmp_path: Path) -> None:
    async def others() -> None:
        admin = await theirs.admin("other")
        config = {"name": "ORDERS", "subjects": ["syn.to.orders"], "storage": "file"}
        assert "error" not in json.loads(
            (await admin.request("$JS.API.STREAM.CREATE.ORDERS", json.dumps(config).encode())).data
        )
        await admin.close()

    asyncio.run(others())
    keys = theirs.accounts
    cases: dict[str, dict[str, Any]] = {
        "no JetStream": {"account_key": keys["none"].seed},
        "may keep 100 MiB": {"account_key": keys["small"].seed},
        "less than --max-store": {"account_key": keys["small"].seed, "max_store": "1GiB"},
        "allows at most 3 streams": {"account_key": keys["few"].seed},
        "the stream ORDERS of this account": {"account_key": keys["other"].seed},
        "not let in": {"account_key": KeyPair.generate("account").seed},
        "without a scope": {"account_key": theirs.scoped.seed, "account": keys["signed"].public},
        "no broker at": {"account_key": keys["fleet"].seed, "urls": [f"nats://127.0.0.1:{free_port()}"]},
        "is not encrypted": {"account_key": keys["fleet"].seed, "urls": ["nats://192.0.2.1:4222"]},
    }
    for words, body in cases.items():
        home = FleetHome(tmp_path / words.replace(" ", "-").replace("/", "-"))
        with pytest.raises(Refused, match=words) as told:
            home.do("create", name="box", **{"urls": [theirs.url], **body})
        assert body["account_key"] not in str(told.value)
        assert not home.home.folder.exists(), words
        assert not home.home.config_file.exists()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"urls": ["http://x:1"]}, "--url"),
        ({"urls": ["tls://x:1"] * 17}, "--url: 17 addresses"),
        ({"account_key": ""}, "--account-key"),
        ({"account_key": KeyPair.generate("user").seed}, "--account-key"),
        ({"account_key": "SAAHELLO"}, "--account-key"),
        ({"account": "UABC"}, "--account: "),
        ({"ca": "x" * 5000}, "--ca"),
        ({"max_store": "much"}, "--max-store"),
    ],
    ids=range(8),
)
def test_what_is_said_of_it_is_validated(body: dict[str, Any], words: str) -> None:
    right = {"urls": ["tls://x:1"], "account_key": KeyPair.generate("account").seed}
    assert GivenBroker.read(right).store is None
    with pytest.raises(InvalidRequest, match=words) as told:
        GivenBroker.read({**right, **body})
    assert "HELLO" not in str(told.value)


async def test_an_older_one_is_refused_by_name() -> None:
    for version, words in (("2.15.0", "is 2.15.0"), ("", "of an unknown version")):
        client: Any = SimpleNamespace(connected_server_version=version, max_payload=1 << 20)
        with pytest.raises(ConfigError, match=words):
            await look(client)
    client = SimpleNamespace(connected_server_version="2.15.1", max_payload=1 << 16)
    with pytest.raises(ConfigError, match="max_payload"):
        await look(client)


@pytest.mark.night
async def test_nothing_is_said_in_the_clear_to_it(theirs: Theirs, tmp_path: Path) -> None:
    """A server that greets without TLS, at an address that says tls: its own is asked for TLS after the greeting."""
    pair = KeyPair.generate("user")
    asked = options([f"tls://127.0.0.1:{theirs.port}"], token="x", pair=pair, ca=None, inbox="_INBOX_x", given=True)
    with pytest.raises(nats.errors.Error, match="does not ask for TLS"):
        await connect(**asked, allow_reconnect=False)
    authority = tls.make_authority("A" * 56, now=datetime.now(UTC))
    shown = tls.make_broker(authority, ["127.0.0.1"], now=datetime.now(UTC))
    (tmp_path / "cert.pem").write_text(shown.certificate)
    (tmp_path / "key.pem").write_text(shown.key)
    port = free_port()
    files = {"cert_file": str(tmp_path / "cert.pem"), "key_file": str(tmp_path / "key.pem")}
    with serving(tmp_path, {"listen": f"127.0.0.1:{port}", "tls": files}):
        asked = options(
            [f"tls://127.0.0.1:{port}"], token="x", pair=pair, ca=authority.certificate, inbox="_INBOX_x", given=True
        )
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError, nats.errors.Error):
                client = await connect(**asked, allow_reconnect=False)
                break
            assert time.monotonic() < deadline, "it is reached"
            await asyncio.sleep(0.05)
        assert client.is_connected
        await client.close()
