"""Who has a host's key besides it, is removed, or comes back: members as processes, over a real broker."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nats.errors
import pytest

from synapsed_fleet.names import record
from tests.parts.fleet.brokers import FleetHome, fleet, needs_broker, until
from tests.parts.fleet.member import Member
from tests.parts.fleet.test_members import PATIENCE_S, faults, members, settled

pytestmark = [needs_broker, pytest.mark.fleet, pytest.mark.timeout(1800)]

COUNT = 120


def joined_again(home: FleetHome, member: Member) -> None:
    """The host has another key from now on, and all else that it had."""
    name = member.home.home.identity().name
    member.home.do("leave", force=True)
    member.home.do("join", line=home.do("invite", name=name, again=True)["line"])


@contextlib.asynccontextmanager
async def stealing(home: FleetHome, thief: FleetHome) -> AsyncIterator[list[str]]:
    """Somebody with a copy of a host's key takes its mail, says that it was taken, and tells nobody."""
    swallowed: list[str] = []
    client = await thief.connect([home.url])
    name = thief.home.identity().name

    async def come(message: Any) -> None:
        if message.reply.startswith("$JS.ACK."):
            swallowed.append(message.subject)
            await client.publish(message.reply, b"+ACK")

    await client.subscribe(f"_INBOX_{name}.thief", cb=come)
    batch = json.dumps({"batch": 10_000, "expires": int(600e9)}).encode()
    await client.publish(f"$JS.API.CONSUMER.MSG.NEXT.SYN_IN.{name}", batch, reply=f"_INBOX_{name}.thief")
    try:
        yield swallowed
    finally:
        with contextlib.suppress(nats.errors.Error, OSError, TimeoutError):
            await client.close()


def copied(member: Member, folder: Path) -> FleetHome:
    shutil.copytree(member.home.folder, folder, ignore=shutil.ignore_patterns("*.sock", "synapsed.db*"))
    return FleetHome(folder)


def test_what_a_thief_has_swallowed_is_sent_again_to_the_new_key(tmp_path: Path) -> None:
    plans: dict[str, dict[str, Any]] = {"laptop": {"to": ["codex@shed"], "count": COUNT}, "shed": {}}
    with fleet(tmp_path) as home, members(tmp_path, home, plans) as found:
        laptop, shed = found["laptop"], found["shed"]
        until(lambda: laptop.sent() > 0, "the first is sent", PATIENCE_S)
        shed.kill()
        thief = copied(shed, tmp_path / "thief")

        async def steal() -> None:
            async with stealing(home, thief) as swallowed:
                await asyncio.to_thread(until, lambda: swallowed, "the thief has something", PATIENCE_S)
                await asyncio.to_thread(until, lambda: laptop.sent() >= COUNT, "everything is sent", PATIENCE_S)
                await asyncio.to_thread(joined_again, home, shed)
            print(f"the thief has taken {len(swallowed)}")

        asyncio.run(steal())
        with pytest.raises(nats.errors.Error):
            asyncio.run(thief.connect([home.url]))
        shed.start()
        until(lambda: settled(list(found.values())), "nothing is open", PATIENCE_S)
        assert faults(found) == {}


def test_two_machines_with_one_key_are_told_of_each_other(tmp_path: Path) -> None:
    with fleet(tmp_path) as home, members(tmp_path, home, {"shed": {}}) as found:
        shed = found["shed"]
        until(shed.home.paths.database.exists, "it runs", PATIENCE_S)
        copy = Member(copied(shed, tmp_path / "copy"), {})
        copy.start()
        told = "another machine is in the fleet with this host's key"
        try:
            for one in (shed, copy):
                until(lambda one=one: told in one.log(), "it is told", PATIENCE_S)
        finally:
            copy.end()


def test_a_removed_host_ends_and_joins_again(tmp_path: Path) -> None:
    """What was sent to it before ends; what is sent after it has joined again is done."""
    plans: dict[str, dict[str, Any]] = {"laptop": {"to": ["codex@shed"], "count": 10}, "shed": {}}
    with fleet(tmp_path) as home, members(tmp_path, home, plans) as found:
        laptop, shed = found["laptop"], found["shed"]
        until(lambda: settled([laptop]), "nothing is open", PATIENCE_S)
        shed.kill()
        laptop.end()
        laptop.plan["count"] = 20
        laptop.start()
        until(lambda: laptop.sent() >= 20, "everything is sent", PATIENCE_S)
        home.do("remove", name="shed")
        until(lambda: laptop.undone() == 0 and laptop.open_rows() == 0, "it ends", PATIENCE_S)
        shed.home.do("leave", force=True)
        shed.home.do("join", line=home.do("invite", name="shed")["line"])
        assert asyncio.run(recorded(home, "shed")) is None
        laptop.end()
        laptop.plan["count"] = 30
        shed.start()
        laptop.start()
        until(lambda: settled(list(found.values())), "nothing is open", PATIENCE_S)
        wrong = faults(found)
        assert sorted(wrong) == ["lost", "otherwise", "without an answer"], wrong
        assert len(wrong["lost"]) == 5, "as many as it tells"
        assert all("was removed from the fleet" in one for one in wrong["otherwise"])


async def recorded(home: FleetHome, name: str) -> bytes | None:
    admin = await home.connect_admin()
    try:
        found = await admin.request(f"$JS.API.DIRECT.GET.KV_SYN_HOSTS.{record(name)}", b"", timeout=20)
    finally:
        await admin.close()
    return None if (found.headers or {}).get("Status") == "404" else found.data
