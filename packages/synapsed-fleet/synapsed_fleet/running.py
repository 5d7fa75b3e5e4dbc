"""Opens the part: as a member if there is `[fleet]`, else with refusals for addresses of a fleet.

The modules that only a fleet needs are imported only if there is `[fleet]`.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from synapsed.errors import ConfigError
from synapsed.interfaces import AgentSource, WaitingHere, WaitingSource
from synapsed.kernel import Kernel, Running
from synapsed.model.events import AttentionItem
from synapsed_fleet.fleet_config import FleetConfig
from synapsed_fleet.fleet_control import Membership
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.no_member import NoMember

if TYPE_CHECKING:
    from synapsed_fleet.service import Fleet

log = structlog.stdlib.get_logger("synapsed.fleet")


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[Running]:
    """Opens the part. Tasks of other hosts are written with their rows even after this host has left its fleet.
    Credentials that cannot be read keep this host out of its fleet, but do not stop the daemon: its own agents matter
    more."""
    table = FleetTable(kernel.store)
    config: FleetConfig | None = kernel.config.fleet
    if config is None:
        yield OutOfFleet(kernel, table, None)
        return
    try:
        fleet = await _made(config, kernel, table)
    except ConfigError as error:
        log.error("this host takes no part in its fleet", why=error.message)  # noqa: TRY400 - the message is enough
        kernel.alert(f"this host takes no part in its fleet: {error.message}; then restart the daemon")
        yield OutOfFleet(kernel, table, error.message)
        return
    running = InFleet(kernel, fleet)
    try:
        yield running
    finally:
        await running.close()


async def _made(config: FleetConfig, kernel: Kernel, table: FleetTable) -> "Fleet":
    """Makes the fleet's service. Raises ConfigError."""
    service = await asyncio.to_thread(importlib.import_module, "synapsed_fleet.service")
    home = await asyncio.to_thread(importlib.import_module, "synapsed_fleet.member_files")
    fleet: Fleet = service.Fleet(
        config,
        home.Home(kernel.paths),
        store=kernel.store,
        table=table,
        control=kernel.control,
        clock=kernel.clock,
        version=kernel.figures.version,
    )
    await fleet.restore()
    return fleet


class OutOfFleet(Running):
    """The part on a host without a fleet. `problem`: why the host takes no part in the fleet that it is configured
    for."""

    def __init__(self, kernel: Kernel, table: FleetTable, problem: str | None) -> None:
        self.carrier = NoMember(kernel.store, table, kernel.clock, problem)
        self.provides = {Membership: Membership(None, problem)}


class InFleet(Running):
    def __init__(self, kernel: Kernel, fleet: "Fleet") -> None:
        self.carrier = fleet.carrier
        self.provides = {Membership: Membership(fleet), WaitingSource: fleet, AgentSource: fleet}
        self._kernel = kernel
        self._fleet = fleet
        self._starting: asyncio.Task[None] | None = None

    def started(self) -> None:
        self._fleet.waiting.source = self._waiting_here
        self._starting = asyncio.create_task(self._start())

    def _waiting_here(self) -> Sequence[AttentionItem] | None:
        """Returns what waits at this host; None if it has agents, and no part knows what waits for their person."""
        for here in self._kernel.all(WaitingHere):
            items: Sequence[AttentionItem] = here.items()
            return items
        return None if self._kernel.control.directory.agents() else []

    async def _start(self) -> None:
        try:
            await self._fleet.start()
        except Exception:  # the agents here, and the API, must go on
            log.exception("the fleet is not started")

    async def close(self) -> None:
        """Closes the fleet after the agents, so that the other hosts get the last updates of their tasks."""
        if self._starting is not None:
            await self._starting
        await self._fleet.close()
