"""As many hosts as a fleet may have: the broker keeps a consumer of the mail for each."""

import asyncio
from pathlib import Path

import pytest

from synapsed_fleet.admin import Admin
from synapsed_fleet.streams import IN, MEMBERS_MAX, mail_of
from tests.parts.fleet.brokers import fleet, needs_broker

pytestmark = [needs_broker, pytest.mark.fleet, pytest.mark.timeout(600)]

AT_ONCE = 64


def test_each_of_the_most_hosts_has_its_mail(tmp_path: Path) -> None:
    async def made() -> None:
        client = await home.connect_admin()
        admin, gate = Admin(client), asyncio.Semaphore(AT_ONCE)

        async def one(name: str) -> None:
            async with gate:
                await admin.ensure_consumer(IN, mail_of(name, replicas=1))

        already = 1  # the host that made the fleet
        await asyncio.gather(*(one(f"host{number}") for number in range(MEMBERS_MAX - already)))
        await client.close()

    with fleet(tmp_path) as home:
        asyncio.run(made())
