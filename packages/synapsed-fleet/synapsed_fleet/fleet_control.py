"""Interfaces to the fleet, for callers that ask this host about it."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from synapsed.errors import NotInFleet
from synapsed.interfaces import AgentSource, WaitingSource

if TYPE_CHECKING:
    from synapsed_fleet.fleet_answers import (
        FleetEvent,
        FleetFile,
        FleetHeld,
        FleetHost,
        FleetKept,
        FleetOut,
        FleetStatus,
    )


class FleetFiles(Protocol):
    """Files between hosts: given here, on their way, and received."""

    async def begin(self, name: str) -> "FleetFile":
        """Begins a file that a client uploads, and that is sent later. Raises Busy, InvalidRequest, StoreError."""
        ...

    async def add(self, file_id: str, offset: int, piece: bytes, *, last: bool) -> "FleetFile":
        """Adds the next piece of a file; `last` completes it. Raises TaskNotFound, InvalidRequest, TooLarge,
        StoreError."""
        ...

    async def path(self, host: str, file_id: str) -> Path | None:
        """Returns the path of a file that came from another host."""
        ...

    async def listed(self) -> "Sequence[FleetKept]":
        """Returns the files, those under way first."""
        ...

    async def remove(self, host: str | None, file_id: str) -> None:
        """Removes a file that came from `host`, or, with None, that was uploaded here. Raises TaskNotFound, Busy for
        what is under way."""
        ...


class FleetControl(WaitingSource, AgentSource, Protocol):
    """Control of the fleet in a daemon whose host is a member."""

    async def status(self) -> "FleetStatus": ...

    async def hosts(self) -> "Sequence[FleetHost]":
        """Returns the hosts of the fleet, this one included."""
        ...

    def events(
        self, after: str | None, *, newest: bool, host: str | None = None, types: frozenset[str] | None = None
    ) -> "AsyncGenerator[FleetEvent | None]":
        """Yields the events of all hosts after the cursor (None: from now on), without end, or with `newest` up to the
        newest of now. The first item is None, once events can be read. The caller must close it (`aclosing`). Raises
        InvalidRequest for an invalid cursor, NotReady if there is no broker at the beginning."""
        ...

    async def outbox(self, host: str | None = None) -> "Sequence[FleetOut]":
        """Returns the messages without a receipt, oldest first."""
        ...

    async def outbox_retry(self, row: str) -> bool:
        """Sends the row again now; returns False if there is no such row."""
        ...

    async def outbox_cancel(self, row: str) -> bool:
        """Gives the row up: its task fails with UNDELIVERED. Returns False if there is no such row."""
        ...

    @property
    def files(self) -> FleetFiles: ...

    async def quarantine(self) -> "Sequence[FleetHeld]":
        """Returns the quarantined messages, newest first."""
        ...


class Membership:
    """This host's fleet, or the reason why it takes part in none. `problem`: why it takes no part in the fleet that is
    configured."""

    def __init__(self, fleet: FleetControl | None, problem: str | None = None) -> None:
        self._fleet = fleet
        self._problem = problem

    @property
    def fleet(self) -> FleetControl:
        """Returns the fleet. Raises NotInFleet."""
        if self._fleet is not None:
            return self._fleet
        if self._problem is not None:
            raise NotInFleet(f"this host takes no part in its fleet: {self._problem}", problem=self._problem)
        raise NotInFleet(
            "this host is in no fleet: 'synapsectl fleet create' begins one, 'synapsectl fleet join' enters one"
        )
