"""A member's credentials: renewed at half of their time, kept, and used by the next connection."""

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nats.errors
import pytest
from nats.aio.client import Client

from synapsed.errors import ConfigError, RemoteRefused
from synapsed_fleet.jwt import read
from synapsed_fleet.membership import is_due, keep_newest, renew
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.registrar import VALID_S
from tests.parts.fleet.brokers import FleetHome, fleet, needs_broker

pytestmark = [needs_broker, pytest.mark.system]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetHome]:
    with fleet(tmp_path_factory.mktemp("fleet")) as made:
        yield made


@pytest.fixture
def laptop(box: FleetHome, tmp_path: Path) -> FleetHome:
    name = f"laptop-{tmp_path.name[-8:]}".lower().replace("_", "-")
    return box.joined(tmp_path / "laptop", name)


@pytest.mark.night
async def test_credentials_are_renewed_at_half_of_their_time(box: FleetHome, laptop: FleetHome) -> None:
    mine = laptop.home.identity()
    assert not is_due(mine, now=time.time())
    assert is_due(mine, now=time.time() + VALID_S * 0.51)
    client = await laptop.connect([box.url])

    async def ask(subject: str, document: Mapping[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(
            (await client.request(subject, json.dumps(document).encode(), timeout=20)).data
        )
        return told

    assert not await renew(laptop.home, ask, now=time.time())
    old = box.home.keyring.host_token(
        mine.name, mine.pair.public, issued=time.time() - VALID_S * 0.6, expires=time.time() + 60
    )
    laptop.home.keep_token(old, mine.trust, now=time.time())
    assert await renew(laptop.home, ask, now=time.time())
    again = laptop.home.identity()
    assert again.expires is not None
    assert again.expires > time.time() + VALID_S * 0.99
    assert again.pair.seed == mine.pair.seed
    assert mine.newest_token() == again.token, "what connects again has the new one"
    await client.close()
    assert laptop.home.credentials.stat().st_mode & 0o777 == 0o600


@pytest.mark.night
async def test_what_is_no_answer_of_the_fleet_is_not_kept(box: FleetHome, laptop: FleetHome) -> None:
    mine, ring = laptop.home.identity(), box.home.keyring
    late = time.time() + VALID_S * 0.9
    other = KeyPair.generate("user")
    foreign = ring.host_token(mine.name, other.public, issued=late, expires=late + 10)
    renamed = ring.host_token("other", mine.pair.public, issued=late, expires=late + 10)
    invited = ring.join_token(mine.name, mine.pair.public, issued=late, expires=late + 10)
    good = ring.host_token(mine.name, mine.pair.public, issued=late, expires=late + 10)
    account = ring.account_token
    answers: list[dict[str, Any]] = [
        {},
        {"error": {"message": "no"}},
        {"error": "no"},
        *({"jwt": token, "account_jwt": account} for token in (foreign, renamed, invited, "x")),
        {"jwt": good, "account_jwt": "x"},
        {"jwt": None},
    ]
    for told in answers:

        async def ask(_subject: str, _document: Mapping[str, Any], told: dict[str, Any] = told) -> dict[str, Any]:
            return told

        with pytest.raises(RemoteRefused):
            await renew(laptop.home, ask, now=late)
    assert laptop.home.identity().token == mine.token


@pytest.mark.night
async def test_who_was_removed_is_not_renewed(box: FleetHome, laptop: FleetHome) -> None:
    mine = laptop.home.identity()
    client = await laptop.connect([box.url])
    with box.home.keyring.changing() as members:
        del members.hosts[mine.name]

    async def ask(subject: str, document: Mapping[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(
            (await client.request(subject, json.dumps(document).encode(), timeout=20)).data
        )
        return told

    with pytest.raises(RemoteRefused, match="no member of this fleet"):
        await renew(laptop.home, ask, now=time.time() + VALID_S * 0.6)
    await client.close()


@pytest.mark.night
def test_the_newest_word_about_who_is_removed_is_kept(box: FleetHome, laptop: FleetHome) -> None:
    gone = KeyPair.generate("user").public
    assert not keep_newest(laptop.home, laptop.home.identity().trust)
    before = laptop.home.identity().trust
    with box.home.keyring.changing() as members:
        members.revoked[gone] = int(time.time())
    newer = before.renewed(box.home.keyring.account_token)
    assert keep_newest(laptop.home, newer)
    assert laptop.home.identity().trust.is_revoked(gone, int(time.time()) - 1)
    assert not keep_newest(laptop.home, before), "an older word replaces nothing"
    assert read(laptop.home.identity().trust.account_token).nats["revocations"]


@pytest.mark.night
@pytest.mark.fleet
async def test_a_token_that_counts_no_more_ends_the_connection(box: FleetHome, laptop: FleetHome) -> None:
    client, ended = await connected_for_a_while(box, laptop)
    await asyncio.wait_for(ended.wait(), TOKEN_S[-1] + 60)
    with pytest.raises(nats.errors.Error):
        await asyncio.wait_for(let_in(box, laptop), 60)  # until the second is over in which it ends
    if not client.is_closed:
        await client.close()


TOKEN_S = (5, 20, 80)
"""How long a token counts: as short as this machine connects within it."""


async def connected_for_a_while(box: FleetHome, laptop: FleetHome) -> tuple[Client, asyncio.Event]:
    """And when it has ended."""
    mine = laptop.home.identity()
    for life in TOKEN_S:
        now = time.time()
        token = box.home.keyring.host_token(mine.name, mine.pair.public, issued=now - 60, expires=now + life)
        laptop.home.keep_token(token, mine.trust, now=now)
        ended = asyncio.Event()

        async def closed(ended: asyncio.Event = ended) -> None:
            ended.set()

        with contextlib.suppress(nats.errors.Error, OSError, TimeoutError):
            return await laptop.connect([box.url], disconnected_cb=closed), ended
    raise AssertionError("no connection was made in time")


async def let_in(box: FleetHome, laptop: FleetHome) -> None:
    """Again and again. Raises what the broker says when it does so no more."""
    while True:
        await (await laptop.connect([box.url])).close()


@pytest.mark.night
@pytest.mark.parametrize("name", ["host.creds", "trust.json"])
def test_what_is_missing_or_damaged_is_named(laptop: FleetHome, name: str) -> None:
    path = laptop.home.folder / name
    secret = laptop.home.identity().pair.seed
    path.write_text("{}" if name.endswith("json") else "nothing")
    with pytest.raises(ConfigError, match="cannot be read") as told:
        laptop.home.identity()
    assert secret not in str(told.value)
    path.unlink()
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        laptop.home.identity()
