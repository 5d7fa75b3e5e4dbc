"""Views of the fleet for people (`fleet_control.FleetControl`)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Literal

from synapsed.clock import Clock, iso
from synapsed.interfaces import Activity
from synapsed_fleet.fleet_answers import FleetAgent, FleetHeld, FleetHost, FleetOut, FleetStatus
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.host_record import HostRecord
from synapsed_fleet.link import Link
from synapsed_fleet.member_files import Identity
from synapsed_fleet.names import BadName, MailSubject
from synapsed_fleet.ports import BrokerRefused, NoBroker
from synapsed_fleet.presence import Records
from synapsed_fleet.streams import IN

MAIL_S: Final = 1.0
"""Seconds to wait for the broker when it is asked for the waiting mail."""


class FleetTold:
    """Answers the requests that change nothing."""

    def __init__(
        self, *, identity: Callable[[], Identity], link: Link, presence: Records, table: FleetTable, clock: Clock
    ) -> None:
        self._identity = identity
        self._link = link
        self._presence = presence
        self._table = table
        self._clock = clock

    async def status(self) -> FleetStatus:
        counts = await self._table.counts()
        oldest = await self._table.oldest()
        states = {state: sum(each.get(state, 0) for each in counts.values()) for state in ("new", "piped")}
        expires = self._identity().expires
        return FleetStatus(
            host=self._identity().name,
            connected=self._link.up,
            broker=self._link.server or None,
            since=iso(self._link.since),
            problem=self._problem(),
            outbox={state: count for state, count in states.items() if count},
            oldest=None if oldest is None else iso(oldest),
            mail=await self._mail(),
            quarantined=len(await self._table.quarantined()),
            expires=None if expires is None else iso(expires),
        )

    async def _mail(self) -> dict[str, int]:
        """Returns the waiting mail by host; empty if the broker does not answer now."""
        if not self._link.up:
            return {}
        found: Counter[str] = Counter()
        with suppress(NoBroker, BrokerRefused, BadName, TimeoutError):
            async with asyncio.timeout(MAIL_S):
                facts = await self._link.facts(IN, f"syn.to.{self._identity().name}.>")
            for subject, count in facts.pending.items():
                found[MailSubject.parse(subject).src] += count
        return dict(found.most_common())

    def _problem(self) -> str | None:
        if not self._link.up:
            return self._link.error
        if not self._presence.twin:
            return None
        name = self._identity().name
        return (
            f"another machine is in the fleet with the key of {name}: each takes mail of the other. If it is a copy of "
            f"this one, 'synapsectl fleet leave --force' there; else 'synapsectl fleet invite {name} --again' where "
            "the fleet was created, and join here: the old key ends with that"
        )

    async def hosts(self) -> Sequence[FleetHost]:
        return [self._host(told) for told in await self._presence.records()]

    def _host(self, told: HostRecord) -> FleetHost:
        here = told.host == self._identity().name
        state = "here" if here else self._presence.state(told)
        known: dict[str, Literal["here", "up", "away", "sleeping"]] = {
            "here": "here",
            "up": "up",
            "sleeping": "sleeping",
        }
        idle_for = self._presence.liveness.idle_for(told.host, self._clock.monotonic())
        return FleetHost(
            host=told.host,
            state=known.get(state, "away"),
            seen=None if idle_for is None else iso(self._clock.wall() - idle_for),
            version=told.version or None,
            classes=told.classes,
            agents=[
                FleetAgent(
                    name=agent.name,
                    type=agent.type,
                    teams=agent.teams,
                    skills=agent.skills,
                    state=agent.state,
                    idle=agent.activity == Activity.READY and agent.queue == 0,
                    queue=agent.queue,
                )
                for agent in told.agents
            ],
        )

    async def outbox(self, host: str | None = None) -> Sequence[FleetOut]:
        return [
            FleetOut(
                id=row.id,
                dst=row.dst,
                kind=row.kind,
                task=row.task_id,
                state=row.state,
                attempt=row.attempt,
                since=iso(row.at),
            )
            for row in await self._table.open_rows(dst=host)
        ]

    async def quarantine(self) -> Sequence[FleetHeld]:
        return [
            FleetHeld(at=iso(one.at), subject=one.subject, reason=one.reason, size=one.size)
            for one in await self._table.quarantined()
        ]
