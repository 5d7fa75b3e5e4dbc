"""Members as processes that write to each other while a broker, a clock or a token fails: each message is done once."""

import asyncio
import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from synapsed_fleet.registrar import VALID_S
from tests.parts.fleet.brokers import FleetHome, fleet, needs_broker, until
from tests.parts.fleet.member import Member
from tests.parts.fleet.test_members import MESSAGES, PATIENCE_S, faults, members, settled

pytestmark = [needs_broker, pytest.mark.fleet, pytest.mark.timeout(1800)]

COUNT = 3000 if MESSAGES > 10_000 else 400
PER_SECOND = 100.0
"""Of each host."""
DAY_S = 86_400.0


def plans(**more: Any) -> dict[str, dict[str, Any]]:
    """Two hosts that write to each other."""
    both = {"count": COUNT, "per_second": PER_SECOND, **more}
    return {"attic": {"to": ["codex@cellar"], **both}, "cellar": {"to": ["codex@attic"], **both}}


def sent(found: dict[str, Member]) -> int:
    return sum(one.sent() for one in found.values())


def begun(found: dict[str, Member], share: float) -> None:
    """So much of everything is sent."""
    goal = int(2 * COUNT * share)
    until(lambda: sent(found) >= goal, f"{goal} are sent", PATIENCE_S)


def ended(found: dict[str, Member], what: str) -> None:
    began = time.monotonic()
    until(lambda: settled(list(found.values())), "nothing is open", PATIENCE_S)
    print(f"{what}: {2 * COUNT} messages; nothing open {time.monotonic() - began:.1f} s after")
    assert faults(found) == {}


def test_an_older_copy_of_the_store_is_put_back_under_load(tmp_path: Path) -> None:
    with fleet(tmp_path) as home, members(tmp_path, home, plans()) as found:
        begun(found, 0.25)
        home.kill()
        shutil.copytree(home.home.broker / "store", tmp_path / "older")
        home.start()
        begun(found, 0.75)
        home.kill()
        shutil.rmtree(home.home.broker / "store")
        shutil.copytree(tmp_path / "older", home.home.broker / "store")
        home.start()
        ended(found, "an older copy of the store was put back")


def test_the_store_is_lost_under_load(tmp_path: Path) -> None:
    with fleet(tmp_path) as home, members(tmp_path, home, plans()) as found:
        begun(found, 0.5)
        home.kill()
        shutil.rmtree(home.home.broker / "store")
        home.start()
        ended(found, "the store was lost")


async def _expire(home: FleetHome) -> int:
    """What a broker does whose clock goes forward by weeks: everything in its streams is gone at once."""
    admin = await home.connect_admin()
    gone = 0
    for stream in ("SYN_IN", "SYN_WORK", "SYN_EV"):
        told = json.loads((await admin.request(f"$JS.API.STREAM.PURGE.{stream}", b"", timeout=20)).data)
        gone += int(told.get("purged", 0))
    await admin.close()
    return gone


def test_everything_that_the_broker_has_expires_under_load(tmp_path: Path) -> None:
    with fleet(tmp_path) as home, members(tmp_path, home, plans()) as found:
        begun(found, 0.3)
        for each in found.values():  # what is under way waits at the broker
            each.kill()
        gone = asyncio.run(_expire(home))
        for each in found.values():
            each.start()
        begun(found, 0.6)
        gone += asyncio.run(_expire(home))
        ended(found, f"{gone} messages had expired")


@pytest.mark.parametrize("days", [20, -20])
def test_a_host_whose_clock_is_twenty_days_wrong(tmp_path: Path, days: int) -> None:
    asked = plans()
    asked["cellar"]["ahead"] = days * DAY_S
    with fleet(tmp_path) as home, members(tmp_path, home, asked) as found:
        begun(found, 0.5)
        found["cellar"].kill()
        found["cellar"].plan["ahead"] = 0.0  # it is put right
        found["cellar"].start()
        ended(found, f"a clock was wrong by {days} days, and was put right")


def test_the_store_is_lost_while_long_messages_are_under_way(tmp_path: Path) -> None:
    """Each of 700 kB, and its answer: they go in chunks, of which the broker has some."""
    count = COUNT // 10
    with fleet(tmp_path) as home, members(tmp_path, home, plans(size=700_000, count=count)) as found:
        for share in (0.3, 0.7):
            until(lambda share=share: sent(found) >= 2 * count * share, "a part is sent", PATIENCE_S)
            home.kill()
            shutil.rmtree(home.home.broker / "store")
            home.up()
        until(lambda: settled(list(found.values())), "nothing is open", PATIENCE_S)
        assert faults(found) == {}


def test_a_token_that_ends_is_renewed_in_time_and_nothing_is_lost(tmp_path: Path) -> None:
    with fleet(tmp_path) as home, members(tmp_path, home, plans()) as found:
        begun(found, 0.2)
        cellar = found["cellar"]
        cellar.kill()
        _give_token(home, cellar, seconds=20.0)
        cellar.start()
        before = cellar.home.home.identity().expires
        until(lambda: cellar.home.home.identity().expires != before, "it has another token", 60)
        ended(found, "a token was renewed")


def test_a_token_that_has_ended_holds_its_host_up_until_it_has_another(tmp_path: Path) -> None:
    """Nobody who could renew it is there: the registrar is, by the broker, and this host is no member to it."""
    with fleet(tmp_path) as home, members(tmp_path, home, plans()) as found:
        begun(found, 0.2)
        cellar = found["cellar"]
        cellar.kill()
        _give_token(home, cellar, seconds=6.0)
        with home.home.keyring.changing() as known:
            kept = known.hosts.pop("cellar")
        cellar.start()
        time.sleep(12)  # it has ended, and what comes from it and goes to it waits
        assert not settled(list(found.values()))
        with home.home.keyring.changing() as known:
            known.hosts["cellar"] = kept
        _give_token(home, cellar, seconds=float(VALID_S))
        ended(found, "a token had ended for a while")


def _give_token(home: FleetHome, member: Member, *, seconds: float) -> None:
    mine, now = member.home.home.identity(), time.time()
    issued = now if seconds > 3600 else now - seconds  # one of a short life is over half of it: it is to be renewed
    token = home.home.keyring.host_token(mine.name, mine.pair.public, issued=issued, expires=now + seconds)
    member.home.home.keep_token(token, mine.trust, now=now)
