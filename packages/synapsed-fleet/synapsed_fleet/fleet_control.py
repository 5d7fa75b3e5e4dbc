"""The fleet, as whoever asks this host about it sees it."""

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
        """A file is to be given here, which is sent later. Raises Busy, InvalidRequest, StoreError."""
        ...

    async def add(self, file_id: str, offset: int, piece: bytes, *, last: bool) -> "FleetFile":
        """Its next piece. Raises TaskNotFound, InvalidRequest, TooLarge, StoreError."""
        ...

    async def path(self, host: str, file_id: str) -> Path | None:
        """Returns the path of a file that came from another host."""
        ...

    async def listed(self) -> "Sequence[FleetKept]":
        """Returns the files, those under way first."""
        ...

    async def remove(self, host: str | None, file_id: str) -> None:
        """Remove one that has come from `host`, or was given here. Raises TaskNotFound, Busy for what is under way."""
        ...


class FleetControl(WaitingSource, AgentSource, Protocol):
    """Control of the fleet in a daemon whose host is a member."""

    async def status(self) -> "FleetStatus": ...

    async def hosts(self) -> "Sequence[FleetHost]":
        """With this one."""
        ...

    def events(
        self, after: str | None, *, newest: bool, host: str | None = None, types: frozenset[str] | None = None
    ) -> "AsyncGenerator[FleetEvent | None]":
        """Those of all hosts after the cursor, None: from now on; for ever, or with `newest` up to what there is. The
        first is None, once it can be read. Leave it by `aclosing`. Raises InvalidRequest for what is no cursor,
        NotReady where there is no broker to begin with."""
        ...

    async def outbox(self, host: str | None = None) -> "Sequence[FleetOut]":
        """The oldest first."""
        ...

    async def outbox_retry(self, row: str) -> bool:
        """Send it again now; whether there is such a row."""
        ...

    async def outbox_cancel(self, row: str) -> bool:
        """Give it up: its task fails, UNDELIVERED; whether there is such a row."""
        ...

    @property
    def files(self) -> FleetFiles: ...

    async def quarantine(self) -> "Sequence[FleetHeld]":
        """The newest first."""
        ...


class Membership:
    """This host in its fleet, or why it is in none: `problem` says it of the one that it is configured for."""

    def __init__(self, fleet: FleetControl | None, problem: str | None = None) -> None:
        self._fleet = fleet
        self._problem = problem

    @property
    def fleet(self) -> FleetControl:
        """Raises NotInFleet."""
        if self._fleet is not None:
            return self._fleet
        if self._problem is not None:
            raise NotInFleet(f"this host takes no part in its fleet: {self._problem}", problem=self._problem)
        raise NotInFleet(
            "this host is in no fleet: 'synapsectl fleet create' begins one, 'synapsectl fleet join' enters one"
        )
