"""The way from the daemon into this room: the one module that it loads; the others only where there is `[fleet]`."""

import asyncio
import importlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from synapsed import __version__
from synapsed.clock import Clock
from synapsed.config.paths import Paths
from synapsed.errors import ConfigError
from synapsed.interfaces import Control, Store
from synapsed.parts.fleet.fleet_config import FleetConfig
from synapsed.parts.fleet.fleet_table import FleetTable

if TYPE_CHECKING:
    from synapsed.parts.fleet.service import Fleet


log = structlog.stdlib.get_logger("synapsed.fleet")


@asynccontextmanager
async def opened(
    config: FleetConfig | None, paths: Paths, *, store: Store, control: Control, clock: Clock
) -> "AsyncGenerator[tuple[Fleet | None, str | None]]":
    """This host's part in its fleet, which is to be started; or why it has none, where it has one. Tasks of other
    hosts are written with what these are owed also where this one has left. Credentials that cannot be read, and a
    client that is not installed, do not keep the daemon down: its own agents are worth more than the way to others."""
    table = FleetTable(store)
    if config is None:
        yield None, None
        return
    try:
        fleet = await _made(config, paths, store=store, table=table, control=control, clock=clock)
    except ConfigError as error:
        log.error("this host takes no part in its fleet", why=error.message)  # noqa: TRY400 - told in words
        yield None, error.message
        return
    try:
        yield fleet, None
    finally:
        await fleet.close()


async def _made(
    config: FleetConfig, paths: Paths, *, store: Store, table: FleetTable, control: Control, clock: Clock
) -> "Fleet":
    """Raises ConfigError."""
    try:
        service = await asyncio.to_thread(importlib.import_module, "synapsed.parts.fleet.service")
        home = await asyncio.to_thread(importlib.import_module, "synapsed.parts.fleet.member_files")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "nats":
            raise
        raise ConfigError(
            "fleet: the broker's client is not installed here: install synapsed[fleet], or remove [fleet] from the "
            "configuration"
        ) from error
    fleet: Fleet = service.Fleet(
        config, home.Home(paths), store=store, table=table, control=control, clock=clock, version=__version__
    )
    return fleet
